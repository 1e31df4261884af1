"""What a call says about the write ids its reader sees, and what was committed when a reply was read.

A reply is tagged with the write ids of its table that the database knew as committed just before it was read. A reader
whose list holds no other ids may be given the reply without asking the database (semantics §6.2): all that the reader
sees had happened when it was read. The tag is never what a reader says, because a reader counts its own open write id
as valid, and goes on changing things under it.

A name may come to mean another table, whose write ids begin anew, so the tag also holds the id of the table, and the
list where its sender knows it. A list without an id is one of the table that has the name when the list comes for the
first time (`ReplyCache.lookup_for`).
"""

from collections.abc import Callable, Hashable
from typing import Final, TypeAlias

import msgspec

from hms_gateway.cache.scopes import Scope
from hms_gateway.catalog.statistics.aggregation import deciding_write_id
from hms_gateway.metastore.changes.events import ALLOC_WRITE_ID
from hms_gateway.metastore.ports.store import EventId, EventSelection, Snapshot, StoreError
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.metastore.vocabulary.table_types import is_transactional
from hms_gateway.rpc.idl.method_facts import method_facts
from hms_gateway.rpc.structs import METHODS, Struct, Table
from hms_gateway.rpc.wire import Codec, ProtocolError
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.rules.write_ids import (
    InvalidList,
    TooManyIds,
    ValidIds,
    ValidWriteIds,
    covers,
    parse_valid_write_ids,
    split_table_id,
)
from hms_gateway.txn.services.write_ids import write_ids_now

ReplyKey: TypeAlias = tuple[str, str, str, bytes] | tuple[str, str, str, bytes, Hashable]
"""Codec name, dialect, method name, encoded arguments; where not all see the same, who asks (`ReplyCache.viewer`)."""

HEADER_ONLY: Final = "header"
# Methods whose answer says whether statistics hold for the reader's list.
_JUDGING: Final = frozenset(
    {"get_table_statistics_req", "get_partitions_statistics_req", "get_aggr_stats_for", "get_partition_req"}
)
# Fields of requests that ask for column statistics as well.
_WITH_STATISTICS: Final = ("getColumnStats", "get_col_stats")
# Here one write id of the table decides, which the tag has: readers whose lists say the same of it share an answer.
_JUDGING_BY_TABLE: Final = "get_table_req"
# Lists are compared on the event loop. A reader with more exceptions is answered as one without a list.
COMPARED_IDS_MAX: Final = 10_000


class Tag(msgspec.Struct, frozen=True):
    """The state of a table just before a reply was read from it.

    `valid` are the write ids that were committed, None for a table that is not transactional and so has none.
    `version` is the newest event at that moment, which orders tags of different tables under one name.
    `judged` is the write id that decides whether the table's statistics hold, and whether they do in the reply; None
    where that is the same for every list, and for replies that do not say it.
    """

    scope: Scope
    table_id: int
    version: EventId
    valid: ValidWriteIds | None
    judged: tuple[int, bool] | None = None

    def is_older_than(self, other: "Tag") -> bool:
        if self.version != other.version:
            return self.version < other.version
        return self.valid is not None and other.valid is not None and not covers(self.valid, other.valid)

    def with_committed(self, write_id: int, version: EventId) -> "Tag":
        """The tag of the same, unchanged reply, when the event `version` has committed a write id."""
        if self.valid is None:
            return self
        ids = self.valid.ids.with_committed(write_id, COMPARED_IDS_MAX)
        newest = EventId(max(self.version, version))
        return msgspec.structs.replace(self, version=newest, valid=ValidWriteIds(self.valid.table, ids))


class Reading:
    """A call of a reader with a list; `key` is that of the same call without it.

    `table_id` is None where the list comes without it. `is_judging` where the reply says of statistics whether they
    hold for the list, which is not in the key. `seen_at` orders the first time that the list came among changes.
    """

    __slots__ = ("_covered_by", "is_judging", "key", "scope", "seen_at", "table_id", "valid")

    def __init__(self, key: ReplyKey, table_id: int | None, valid: ValidWriteIds, *, is_judging: bool = False) -> None:
        db_name, _, tbl_name = (valid.table or "").partition(".")
        self.key = key
        self.is_judging = is_judging
        self.scope: Scope = ("table", db_name, tbl_name)
        self.table_id = table_id
        self.valid = valid
        self.seen_at = 0
        self._covered_by: Tag | None = None

    def is_judged_alike(self, tag: Tag | None) -> bool:
        """Tell if statistics hold for this reader where they hold in the reply that has this tag."""
        if not self.is_judging:
            return True
        if tag is None or tag.scope != self.scope:
            return False
        return tag.judged is None or self.valid.ids.is_valid(tag.judged[0]) == tag.judged[1]

    def is_covered_by(self, tag: Tag) -> bool:
        """Tell if all that the reader sees had happened when the reply with this tag was read."""
        if tag is self._covered_by:
            return True
        is_of_table = self.table_id in (None, tag.table_id)
        if not is_of_table or tag.valid is None or not covers(tag.valid, self.valid):
            return False
        self._covered_by = tag
        return True


class ReaderLists:
    """Finds the lists of calls: in the request where it has a place for one, else in what came with the call."""

    def __init__(self, *, keeps_apart: bool = False, is_asked_always: bool = False) -> None:
        """With `keeps_apart` the keys of such calls are those of no call without a list.

        `is_asked_always` where replies are not looked up by their tags: what depends on the list has it in its key.
        """
        self._keeps_apart = keeps_apart
        self._judging = _JUDGING | {_JUDGING_BY_TABLE} if is_asked_always else _JUDGING
        self._places = {name: facts.write_ids_in for name, facts in method_facts().items() if facts.write_ids_in}
        self.in_requests = frozenset(name for name, place in self._places.items() if place != HEADER_ONLY)

    def reading(self, key: ReplyKey, codec: Codec, sent: str | None) -> Reading | None:
        """Find the list of a call; None without one that can be compared.

        `sent` is the text of the header. Raises InvalidList for one that cannot be read.
        """
        place = self._places.get(key[2])
        if place is None:
            return None
        asked = key
        table_id, valid = (None, None) if sent is None else _parsed(sent)
        found = None if place == HEADER_ONLY else self._from_request(key, codec, place)
        if found is not None:
            arguments, text, id_in_request = found
            valid = _list_of(text)
            table_id = table_id if id_in_request is None else id_in_request
            payload = codec.encode(arguments)
            assert isinstance(payload, bytes)
            key = (*key[:3], payload, *key[4:])
        if valid is None or valid.table is None:
            return None
        is_judging = found is not None and key[2] == _JUDGING_BY_TABLE and key[2] not in self._judging
        # A call that keeps its list is not to be found by its arguments alone, which asks the database.
        if self._keeps_apart or is_judging or (found is not None and key == asked):
            key = (key[0], f"{key[1]} with a list", *key[2:])
        return Reading(key, table_id, ValidWriteIds(normalize(valid.table), valid.ids), is_judging=is_judging)

    def _from_request(self, key: ReplyKey, codec: Codec, place: str) -> tuple[Struct, str, int | None] | None:
        """The arguments of a call without its list, the list, and the table's id; None where there is no list."""
        try:
            arguments = codec.decode(METHODS[key[2]].arguments, key[3])
        except ProtocolError:
            return None
        request = getattr(arguments, place)
        if request is None or not request.validWriteIdList:
            return None
        table_id = getattr(request, "id", None)
        keeps_list = key[2] in self._judging or any(getattr(request, name, None) for name in _WITH_STATISTICS)
        # No answer depends on the id, which only says whose the list is.
        without = request if table_id is None else msgspec.structs.replace(request, id=None)
        without = without if keeps_list else msgspec.structs.replace(without, validWriteIdList=None)
        return (
            msgspec.structs.replace(arguments, **{place: without}),
            request.validWriteIdList,
            None if table_id is None or table_id < 0 else table_id,
        )


class TagReading:
    """Reads the tag of a call's reply. Called in the thread of the call, before it reads anything else."""

    def __init__(
        self, read: Callable[[Callable[[Snapshot], Tag | None]], Tag | None], scope: Scope, seen: ValidIds | None = None
    ) -> None:
        """`seen` are the ids of the reader's list, where the reply says whether statistics hold for it."""
        self._read = read
        self._seen = seen
        self._scope = scope
        self.tag: Tag | None = None

    def __call__(self) -> None:
        try:
            self.tag = self._read(self._tag)
        except StoreError:
            # The call itself will say what is wrong with the database.
            self.tag = None

    def confirm(self) -> None:
        """Called in the same thread when the reply was read: forget the tag if the name may mean another table since.

        A table that came under the name meanwhile would be kept under the id of the one before it, which may come back
        by a rename. What comes under a name has an event that is filed under it.
        """
        if self.tag is not None and not self._read_unchanged(self.tag):
            self.tag = None

    def _read_unchanged(self, tag: Tag) -> bool:
        _, db_name, tbl_name = tag.scope
        selection = EventSelection(
            after=tag.version, db_name=db_name, table_names=[tbl_name], skipped_types=[ALLOC_WRITE_ID], limit=1
        )
        try:
            return self._read(lambda snapshot: None if snapshot.events(selection) else tag) is not None
        except StoreError:
            return False

    def _tag(self, snapshot: Snapshot) -> Tag | None:
        _, db_name, tbl_name = self._scope
        found = snapshot.table(db_name, tbl_name)
        if found is None:
            return None
        valid = None
        if is_transactional(found.table.parameters or {}):
            valid = write_ids_now(snapshot.txns, f"{db_name}.{tbl_name}", Target(db_name, tbl_name))
        return Tag(self._scope, found.table_id, snapshot.current_event_id(), valid, self._judged(found.table))

    def _judged(self, table: Table) -> tuple[int, bool] | None:
        write_id = None if self._seen is None else deciding_write_id(table)
        return None if self._seen is None or write_id is None else (write_id, self._seen.is_valid(write_id))


def _parsed(sent: str) -> tuple[int | None, ValidWriteIds | None]:
    """`db.table:…;id=17`: the list, and the table's id. Raises InvalidList."""
    text, table_id = split_table_id(sent)
    try:
        return table_id, parse_valid_write_ids(text, COMPARED_IDS_MAX)
    except TooManyIds:
        return None, None


def _list_of(text: str) -> ValidWriteIds | None:
    try:
        return parse_valid_write_ids(text, COMPARED_IDS_MAX)
    except InvalidList:
        return None
