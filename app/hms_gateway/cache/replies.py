"""Encoded replies, kept until an event says that what they were read from has changed (design D8).

A lookup first brings the cache up to date with the newest committed event, so a reply that is served was true at some
moment between the arrival of the request and its answer: reads stay linearizable, over every replica of a database.
Learning the newest event costs a `PRAGMA data_version` on SQLite. On other databases it is a query (`freshness`).

A reader that says which write ids it sees asks for less: an answer that is no older than those. It gets one without
any question to the database (`reader_lists`). Events drop these replies as well, but nothing waits for them: as long
as such replies are kept, the database is asked for events once a second.
"""

import asyncio
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import structlog

from hms_gateway.cache.freshness import Done, Freshness, QueriedFeed
from hms_gateway.cache.reader_lists import ReaderLists, Reading, ReplyKey, Tag, TagReading
from hms_gateway.cache.scopes import Scope, scopes_changed, scopes_read
from hms_gateway.metastore.changes.events import COMMIT_TXN, committed_write_ids
from hms_gateway.metastore.ports.store import EventId, Snapshot, StoredEvent
from hms_gateway.rpc.idl.method_facts import method_facts
from hms_gateway.rpc.structs import METHODS, Struct
from hms_gateway.rpc.structs.catalogs import fold
from hms_gateway.rpc.wire import Codec, ProtocolError
from hms_gateway.runtime.limits import Limits
from hms_gateway.txn.rules.write_ids import ValidWriteIds

T = TypeVar("T")
Entry: TypeAlias = tuple[bytes, tuple[Scope, ...], Tag | None]
"""The encoded result, what it depends on, and what readers with a list go by."""
ReadTag: TypeAlias = Callable[[Callable[[Snapshot], Tag | None]], Tag | None]
"""Reads a tag from one consistent state, such as `Store.read`."""

FOLLOW_SECONDS = 1.0
IDLE_FOLLOW_SECONDS = 3.0
# Calls whose lists are known already take up to this part of the cache.
_READINGS_PART = 16
_ENTRY_BYTES = 512  # what an entry costs besides its payload and arguments, roughly
_ID_BYTES = 40  # an integer, and its place in a list
_CHANGES_REMEMBERED = 10_000
# A list that is given may read like one of an earlier table of the name.
_GIVING_LISTS = frozenset({"get_valid_write_ids"})
_TICKET_DIGITS_MAX = 19  # Python does not read numbers of any length


_log = structlog.get_logger("hms_gateway.cache")


class ChangeFeed(QueriedFeed, Protocol):
    """Where the newest events come from; a store."""

    def data_version(self) -> int | None:
        """A number that differs whenever anything was committed; None where only a query shows it."""


class CurrentAnswer(NamedTuple):
    """An answer that a client has and that is that of now: its tag, and what it depends on."""

    tag: bytes
    scopes: tuple[Scope, ...]


class ReplyCache:
    """Used from the event loop's thread only."""

    def __init__(
        self,
        feed: ChangeFeed,
        limits: Limits,
        read_tag: ReadTag | None = None,
        *,
        keeps_apart: bool = False,
        generation: Callable[[], int] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Without `read_tag` readers' lists are not looked at.

        `keeps_apart` where a reader without a list is not to get what one with a list has brought in. With
        `generation` each caller has replies of its own, and all are dropped when it gives another number: rights
        besides those of the catalog have changed.
        """
        self._feed = feed
        self._read_tag = read_tag
        self._generation = generation
        self._seen_generation = 0 if generation is None else generation()
        # Whether replies are those of one caller each.
        self.is_apart = generation is not None
        self._monotonic = monotonic
        self.keeps_apart = keeps_apart
        # Where rights change, no reply is given by its tag alone.
        self._lists = ReaderLists(keeps_apart=keeps_apart, is_asked_always=generation is not None)
        # Methods whose arguments may have a list.
        self.with_lists = self._lists.in_requests if read_tag is not None else frozenset[str]()
        self._readings: dict[tuple[ReplyKey, bytes | None], Reading] = {}
        self._readings_bytes = 0
        self._followed_at = float("-inf")
        self._following: asyncio.TimerHandle | None = None
        self._is_closed = False
        # Lists without a table's id, with the moment at which each came for the first time. A moment is a number that
        # grows with each of these and with each change that was answered here.
        self._first_seen: dict[ValidWriteIds, int] = {}
        self._moment = 0
        self._changed_here = 0
        self._refreshed_at = 0
        self._tagged = 0
        self._bytes_max = limits.cache_bytes_max
        self._reply_bytes_max = limits.cached_reply_bytes_max
        self._entries: OrderedDict[ReplyKey, Entry] = OrderedDict()
        self._keys_of: dict[Scope, set[ReplyKey]] = {}
        self._bytes = 0
        self._data_version = feed.data_version()
        self._is_watched = self._data_version is not None
        self._version = feed.version()
        # When each scope last changed; older tickets than the floor cannot be judged any more.
        self._changed_at: dict[Scope, int] = {}
        self._floor = 0
        # Of the tags that this process gives: others count events as they like, and may have another database.
        self._mark = b"%b." % os.urandom(6).hex().encode()
        # Added to an event's id to order it after those that were applied before the database lost some.
        self._shift = 0
        self._freshness = Freshness(feed, lambda: self._version, self._apply, self._restart, self._doubt)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size_bytes(self) -> int:
        return self._bytes + self._readings_bytes

    def viewer(self, user: str, groups: frozenset[str], may_administer: bool = True) -> Hashable:
        """The last part of the key of a call where `is_apart`: whose reply it is."""
        if not may_administer:
            return (user, groups, False)
        return (user, groups) if groups else user

    def ticket(self) -> int:
        """Taken before a reply is read and handed to `remember` with it."""
        return self._shift + self._version

    @property
    def version(self) -> EventId:
        """The newest event that the cache has seen."""
        return self._version

    def scopes_of(self, key: ReplyKey) -> tuple[Scope, ...]:
        """What the reply that is kept for `key` depends on."""
        entry = self._entries.get(key)
        return () if entry is None else entry[1]

    def lookup(self, key: ReplyKey) -> "bytes | asyncio.Future[bytes | None] | None":
        """The encoded result for `key` if it is known and current.

        Without a data version the question is put at once, and its answer has to be awaited.
        """
        if self._generation is not None and (generation := self._generation()) != self._seen_generation:
            self._seen_generation = generation
            self._doubt()
        entry = self._entries.get(key)
        if entry is None:
            return None
        if not self._is_watched:
            return self._lookup_after_refresh(key)
        if self._feed.data_version() != self._data_version:
            self._look()
            return self._get(key)
        self._entries.move_to_end(key)
        return entry[0]

    def reading(self, key: ReplyKey, codec: Codec, sent: bytes | None) -> Reading | None:
        """The call with `key` as that of a reader with a list; None for one without.

        `sent` is the list that came with the call. Raises InvalidList for one that cannot be read.
        """
        known = self._readings.get((key, sent))
        if known is None and self._read_tag is not None:
            known = self._lists.reading(key, codec, None if sent is None else sent.decode("latin-1"))
            if known is not None:
                self._keep_reading(key, sent, known)
        return known

    def note_answered(self, method: str) -> None:
        """A call that was not answered from memory is over; one without an answer may have changed something."""
        facts = method_facts().get(method)
        if method in _GIVING_LISTS or facts is None or (facts.changes and not facts.suspendable):
            self._moment += 1
            self._changed_here = self._moment

    def lookup_for(self, reading: Reading) -> "bytes | asyncio.Future[bytes | None] | None":
        """Look up for a reader with a list: at once and without the database when all it sees is in the reply.

        A list without the table's id waits until the log is applied up to the moment at which it came for the first
        time, or something was changed here, or lists were given: what is kept then is not of an earlier table.
        """
        entry = self._entries.get(reading.key)
        if entry is None:
            return None
        payload, scopes, tag = entry
        if reading.is_judging and not reading.is_judged_alike(tag):
            return None
        if scopes != (reading.scope,) or (tag is not None and tag.valid is None):
            if self.keeps_apart and scopes != (reading.scope,):
                # A list of another table, which the call itself refuses.
                return None
            # Not this table's list, or a table without write ids.
            if reading.is_judging and not self._is_watched:
                return self._lookup_after_refresh(reading.key, reading)
            return self.lookup(reading.key)
        if tag is None or not reading.is_covered_by(tag):
            return None
        if self._generation is not None:
            # Whether the reader may still see the table is known to the newest events only.
            return self.lookup(reading.key)
        if reading.table_id is None and self._refreshed_at < max(reading.seen_at, self._changed_here):
            if not self._is_watched:
                return self._after_refresh(lambda: self._get_covered(reading))
            self._look()
            return self._get_covered(reading)
        self._entries.move_to_end(reading.key)
        self._follow()
        return payload

    def _get_covered(self, reading: Reading) -> bytes | None:
        """The reply that is kept for a reader with a list, once the log is applied."""
        entry = self._entries.get(reading.key)
        if entry is None or entry[2] is None or not reading.is_covered_by(entry[2]):
            return None
        return self._get(reading.key, reading)

    def version_tag(self, method: str, arguments: Struct | None, ticket: int) -> bytes | None:
        """The tag of a reply that is not kept, which was read after `ticket`; None where it cannot be judged later."""
        if arguments is None or not scopes_read(method, arguments):
            return None
        return b'"%b%d"' % (self._mark, ticket)

    async def current(self, key: ReplyKey, codec: Codec, tags: bytes) -> CurrentAnswer | None:
        """The answer of now, where one of the tags that a client has, by `version_tag`, is that of it."""
        # Also without such a tag: the answer gets one as of now.
        await self._refreshed()
        begins = b'"' + self._mark
        tickets = [tag.strip()[len(begins) : -1] for tag in tags.split(b",") if tag.strip().startswith(begins)]
        known = [int(ticket) for ticket in tickets if ticket.isdigit() and len(ticket) <= _TICKET_DIGITS_MAX]
        if not known or key[2] not in METHODS or self.keeps_apart:
            return None
        try:
            arguments = codec.decode(METHODS[key[2]].arguments, key[3])
            fold(arguments)
            scopes = scopes_read(key[2], arguments)
        except ProtocolError:
            return None
        is_same = bool(scopes) and max(known) >= self._floor and not self._have_changed(scopes, max(known))
        return CurrentAnswer(b'"%b%d"' % (self._mark, max(known)), scopes) if is_same else None

    def tag_reading(self, reading: Reading) -> TagReading:
        """Make the function to call before the reply to such a reader is read, and to hand to `remember`."""
        assert self._read_tag is not None
        return TagReading(self._read_tag, reading.scope, reading.valid.ids if reading.is_judging else None)

    def follow(self) -> None:
        """Have the cache brought up to date soon where no client asks; it also shows whether the database answers."""
        if not self._is_watched and self._monotonic() - self._followed_at >= IDLE_FOLLOW_SECONDS:
            self._follow()

    def close(self) -> None:
        """Give the connection back that watches the database."""
        self._is_closed = True
        if self._following is not None:
            self._following.cancel()
        self._freshness.close()

    def remember(
        self,
        key: ReplyKey,
        arguments: Struct | None,
        payload: bytes,
        ticket: int,
        tagged: TagReading | None = None,
    ) -> None:
        """Keep `payload` for `key`, unless what it was read from has changed since `ticket`."""
        if arguments is None or len(payload) > self._reply_bytes_max:
            return
        scopes = scopes_read(key[2], arguments)
        if not scopes or ticket < self._floor or self._have_changed(scopes, ticket):
            return
        tag = None if tagged is None else self._tag_for(scopes, tagged)
        known = self._entries.get(key)
        if known is not None and known[2] is not None and (tag is None or tag.is_older_than(known[2])):
            return
        if known is not None:
            self._forget(key)
        self._entries[key] = (payload, scopes, tag)
        self._tagged += tag is not None
        self._bytes += _cost(key, payload, tag)
        for scope in scopes:
            self._keys_of.setdefault(scope, set()).add(key)
        while self._bytes > self._bytes_max - self._readings_bytes:
            self._forget(next(iter(self._entries)))

    def _have_changed(self, scopes: Sequence[Scope], ticket: int) -> bool:
        return any(self._changed_at.get(scope, 0) > ticket for scope in scopes)

    async def _refreshed(self) -> None:
        """Until every event that was committed before is applied."""
        if self._is_watched:
            self._look()
        else:
            await self._after_refresh(lambda: None)

    def _tag_for(self, scopes: tuple[Scope, ...], tagged: TagReading) -> Tag | None:
        if tagged.tag is None or scopes != (tagged.tag.scope,):
            return None
        self._follow()
        return tagged.tag if self._is_watched or self._freshness.notices_losses else None

    def _keep_reading(self, key: ReplyKey, sent: bytes | None, reading: Reading) -> None:
        if self._readings_bytes > self._bytes_max // _READINGS_PART:
            self._readings.clear()
            self._first_seen.clear()
            self._readings_bytes = 0
        if reading.table_id is None:
            self._moment += 1
            reading.seen_at = self._first_seen.setdefault(reading.valid, self._moment)
        self._readings[key, sent] = reading
        self._readings_bytes += 2 * len(key[3]) + len(sent or b"") + _ids_bytes(reading.valid) + _ENTRY_BYTES

    def _follow(self) -> None:
        """Have the cache brought up to date soon, though nothing waits for it, and again while tags are kept."""
        now = self._monotonic()
        if now - self._followed_at >= FOLLOW_SECONDS:
            self._followed_at = now
            asyncio.get_running_loop().call_soon(self._catch_up)
        if self._following is None and not self._is_closed:
            self._following = asyncio.get_running_loop().call_later(FOLLOW_SECONDS, self._follow_on)

    def _follow_on(self) -> None:
        self._following = None
        if self._tagged:
            self._follow()

    def _catch_up(self) -> None:
        if self._is_closed:
            return
        if not self._is_watched:
            self._refresh(lambda error: None)
            return
        try:
            self._look()
        except Exception as error:
            _log.warning("the log of events cannot be followed", problem=repr(error))

    def _refresh(self, done: Done) -> None:
        """Apply the log up to the moment of now, then call `done`."""
        moment = self._moment

        def refreshed(error: Exception | None) -> None:
            if error is None:
                self._refreshed_at = max(self._refreshed_at, moment)
            done(error)

        self._freshness.refresh(refreshed)

    def _look(self) -> None:
        data_version = self._feed.data_version()
        if data_version != self._data_version:
            self._apply(self._feed.changes_since(self._version))
            self._data_version = data_version
        self._refreshed_at = self._moment

    def _doubt(self) -> None:
        """What was read may be lost. Readers without a list wait for `_restart`; those with one must not be served."""
        self._shift += 1
        self._clear(self.ticket())

    def _get(self, key: ReplyKey, reading: Reading | None = None) -> bytes | None:
        entry = self._entries.get(key)
        # Another reader's reply may have come under the key meanwhile.
        if entry is None or (reading is not None and not reading.is_judged_alike(entry[2])):
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def _lookup_after_refresh(self, key: ReplyKey, reading: Reading | None = None) -> "asyncio.Future[bytes | None]":
        return self._after_refresh(lambda: self._get(key, reading))

    def _after_refresh(self, result: Callable[[], T]) -> "asyncio.Future[T]":
        """What `result` gives when every event that was committed before is applied."""
        found: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def done(error: Exception | None) -> None:
            if found.done():
                return
            if error is not None:
                found.set_exception(error)
            else:
                found.set_result(result())

        self._refresh(done)
        return found

    def _apply(self, events: Sequence[StoredEvent]) -> None:
        if events and events[0].event_id > self._version + 1:
            self._clear(self._shift + events[0].event_id)
        for event in events:
            scopes = scopes_changed(event)
            if scopes is None:
                self._clear(self._shift + event.event_id)
            else:
                self._drop(scopes, self._shift + event.event_id)
            if event.event.event_type == COMMIT_TXN:
                self._tag_committed(event)
            self._version = event.event_id
        if len(self._changed_at) > _CHANGES_REMEMBERED:
            self._changed_at.clear()
            self._floor = self.ticket()

    def _tag_committed(self, stored: StoredEvent) -> None:
        """What is kept of the tables that a transaction has written to is as true after its commit as before it.

        All that it changed has events of its own, which have dropped what was read before. Where the commit does not
        name its write ids, readers who see them go to the database.
        """
        for db_name, table_name, write_id in committed_write_ids(stored.event):
            scope = ("table", db_name, table_name)
            for key in self._keys_of.get(scope, ()):
                payload, scopes, tag = self._entries[key]
                # What was read after the commit has it already, and may be another table of the name.
                if tag is not None and scopes == (scope,) and tag.version < stored.event_id:
                    after = tag.with_committed(write_id, stored.event_id)
                    self._entries[key] = (payload, scopes, after)
                    self._bytes += _ids_bytes(after.valid) - _ids_bytes(tag.valid)

    def _restart(self, version: EventId) -> None:
        """Begin anew at `version`: events that were applied may be lost, and their ids given to others."""
        self._shift = self.ticket() + 1 - version
        self._version = version
        self._clear(self.ticket())

    def _drop(self, scopes: Sequence[Scope], ticket: int) -> None:
        for scope in scopes:
            self._changed_at[scope] = ticket
            for key in list(self._keys_of.get(scope, ())):
                self._forget(key)

    def _clear(self, ticket: int) -> None:
        self._entries.clear()
        self._tagged = 0
        self._keys_of.clear()
        self._bytes = 0
        self._floor = ticket

    def _forget(self, key: ReplyKey) -> None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        payload, scopes, tag = entry
        self._tagged -= tag is not None
        self._bytes -= _cost(key, payload, tag)
        for scope in scopes:
            keys = self._keys_of[scope]
            keys.discard(key)
            if not keys:
                del self._keys_of[scope]


def _cost(key: ReplyKey, payload: bytes, tag: Tag | None) -> int:
    return len(payload) + len(key[3]) + _ENTRY_BYTES + (0 if tag is None else _ids_bytes(tag.valid))


def _ids_bytes(valid: ValidWriteIds | None) -> int:
    return 0 if valid is None else _ID_BYTES * (len(valid.ids.open_ids) + len(valid.ids.aborted_ids))
