"""Encoded replies, kept until an event says that what they were read from has changed (design D8).

A lookup first brings the cache up to date with the newest committed event, so a reply that is served was true at some
moment between the arrival of the request and its answer: reads stay linearizable, over every replica of a database.
Learning the newest event costs a `PRAGMA data_version` on SQLite. On other databases it is a query (`freshness`).
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from hms_gateway.cache.freshness import Freshness, VersionWatch
from hms_gateway.cache.scopes import Scope, is_cacheable, scopes_changed, scopes_read
from hms_gateway.metastore.ports.store import EventId, StoredEvent
from hms_gateway.runtime.limits import Limits
from hms_gateway.structs import Struct

ReplyKey: TypeAlias = tuple[str, str, str, bytes]
"""Codec name, dialect, method name, encoded arguments."""

_ENTRY_BYTES = 512  # what an entry costs besides its payload and arguments, roughly
_CHANGES_REMEMBERED = 10_000


class ChangeFeed(Protocol):
    """Where the newest events come from; a store."""

    def data_version(self) -> int | None:
        """A number that differs whenever anything was committed; None where only a query shows it."""

    def version_watch(self) -> VersionWatch | None:
        """See `freshness.QueriedFeed`; asked for only without a data version."""

    def version(self) -> EventId:
        """The id of the newest committed event."""

    def changes_since(self, event_id: EventId) -> Sequence[StoredEvent]:
        """Events after `event_id` in order; their messages may be empty.

        Old events are forgotten, the newest never is: the first is not `event_id + 1` when some are missing.
        """


class ReplyCache:
    """Used from the event loop's thread only."""

    def __init__(self, feed: ChangeFeed, limits: Limits) -> None:
        self._feed = feed
        self._bytes_max = limits.cache_bytes_max
        self._reply_bytes_max = limits.cached_reply_bytes_max
        self._entries: OrderedDict[ReplyKey, tuple[bytes, tuple[Scope, ...]]] = OrderedDict()
        self._keys_of: dict[Scope, set[ReplyKey]] = {}
        self._bytes = 0
        self._data_version = feed.data_version()
        self._is_watched = self._data_version is not None
        self._version = feed.version()
        # When each scope last changed; older tickets than the floor cannot be judged any more.
        self._changed_at: dict[Scope, int] = {}
        self._floor = 0
        # Added to an event's id to order it after those that were applied before the database lost some.
        self._shift = 0
        self._freshness = Freshness(feed, lambda: self._version, self._apply, self._restart)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size_bytes(self) -> int:
        return self._bytes

    def ticket(self) -> int:
        """Taken before a reply is read and handed to `remember` with it."""
        return self._shift + self._version

    def lookup(self, key: ReplyKey) -> "bytes | asyncio.Future[bytes | None] | None":
        """The encoded result for `key` if it is known and current.

        Without a data version the question is put at once, and its answer has to be awaited.
        """
        entry = self._entries.get(key)
        if entry is None:
            return None
        if not self._is_watched:
            return self._lookup_after_refresh(key)
        data_version = self._feed.data_version()
        if data_version != self._data_version:
            self._apply(self._feed.changes_since(self._version))
            self._data_version = data_version
            return self._get(key)
        self._entries.move_to_end(key)
        return entry[0]

    def close(self) -> None:
        """Give the connection back that watches the database."""
        self._freshness.close()

    def remember(self, key: ReplyKey, arguments: Struct | None, payload: bytes, ticket: int) -> None:
        """Keep `payload` for `key`, unless what it was read from has changed since `ticket`."""
        if arguments is None or len(payload) > self._reply_bytes_max or not is_cacheable(key[2]):
            return
        scopes = scopes_read(key[2], arguments)
        if not scopes or ticket < self._floor or any(self._changed_at.get(scope, 0) > ticket for scope in scopes):
            return
        self._forget(key)
        self._entries[key] = (payload, scopes)
        self._bytes += _cost(key, payload)
        for scope in scopes:
            self._keys_of.setdefault(scope, set()).add(key)
        while self._bytes > self._bytes_max:
            self._forget(next(iter(self._entries)))

    def _get(self, key: ReplyKey) -> bytes | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def _lookup_after_refresh(self, key: ReplyKey) -> "asyncio.Future[bytes | None]":
        found: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()

        def done(error: Exception | None) -> None:
            if found.done():
                return
            if error is not None:
                found.set_exception(error)
            else:
                found.set_result(self._get(key))

        self._freshness.refresh(done)
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
            self._version = event.event_id
        if len(self._changed_at) > _CHANGES_REMEMBERED:
            self._changed_at.clear()
            self._floor = self.ticket()

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
        self._keys_of.clear()
        self._bytes = 0
        self._floor = ticket

    def _forget(self, key: ReplyKey) -> None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        payload, scopes = entry
        self._bytes -= _cost(key, payload)
        for scope in scopes:
            keys = self._keys_of[scope]
            keys.discard(key)
            if not keys:
                del self._keys_of[scope]


def _cost(key: ReplyKey, payload: bytes) -> int:
    return len(payload) + len(key[3]) + _ENTRY_BYTES
