"""Mistakes in how readers with lists are answered, each of which a simulation has to see."""

from collections.abc import Callable
from typing import Any, TypeAlias

from hms_gateway.cache import reader_lists, replies
from hms_gateway.txn.rules.write_ids import ValidIds, ValidWriteIds, compare, covers, write_ids_seen
from tests.simulation import reader_lists_simulation
from tests.simulation.reader_lists_simulation import Simulation

Bug: TypeAlias = tuple[Any, str, Callable[..., Any]]

_covers = covers


def _orders_lists(cached: ValidWriteIds, reader: ValidWriteIds) -> bool:
    return cached.table == reader.table and compare(cached, reader) >= 0


def _compares_marks(cached: ValidWriteIds, reader: ValidWriteIds) -> bool:
    return cached.table == reader.table and cached.ids.high_water_mark >= reader.ids.high_water_mark


def _looks_up_to_its_mark(cached: ValidWriteIds, reader: ValidWriteIds) -> bool:
    mark = min(cached.ids.high_water_mark, reader.ids.high_water_mark)
    return _covers(cached, ValidWriteIds(reader.table, ValidIds(mark, reader.ids.open_ids, reader.ids.aborted_ids)))


class _TagOfTheReader(reader_lists.TagReading):
    valid: ValidWriteIds

    def _tag(self, snapshot: Any) -> reader_lists.Tag | None:
        tag = super()._tag(snapshot)
        return None if tag is None else reader_lists.Tag(tag.scope, tag.table_id, tag.version, self.valid)


def _takes_the_readers_list(self: replies.ReplyCache, reading: reader_lists.Reading) -> reader_lists.TagReading:
    assert self._read_tag is not None
    tagged = _TagOfTheReader(self._read_tag, reading.scope)
    tagged.valid = reading.valid
    return tagged


def _knows_tables_by_name(self: reader_lists.Reading, tag: reader_lists.Tag) -> bool:
    return tag.valid is not None and _covers(tag.valid, self.valid)


def _takes_open_ids_for_committed(txns: Any, name: str, table: Any) -> ValidWriteIds:
    return write_ids_seen(name, ValidIds(txns.high_water_mark()), txns.last_write_id(table) or 0, [])


class _TagReadLate(reader_lists.TagReading):
    def __call__(self) -> None:
        pass

    @property
    def tag(self) -> reader_lists.Tag | None:  # type: ignore[override]
        return self._read(self._tag)

    @tag.setter
    def tag(self, value: reader_lists.Tag | None) -> None:
        pass


def _reads_the_tag_last(self: replies.ReplyCache, reading: reader_lists.Reading) -> reader_lists.TagReading:
    assert self._read_tag is not None
    return _TagReadLate(self._read_tag, reading.scope)


def _takes_the_id_first(self: Simulation) -> None:
    """The id, and the list some time later."""
    if self.taking is None:
        name = self.random.choice(reader_lists_simulation.NAMES)
        found = self.database.tables.get(name)
        self.taking = None if found is None else (name, found.table_id)
        return
    (name, table_id), self.taking = self.taking, None
    found = self.database.tables.get(name)
    if found is not None:
        self._keep_list(name, found, table_id)


def _raises_the_mark(self: ValidIds, number: int, gap_max: int) -> ValidIds:
    open_ids = tuple(one for one in self.open_ids if one != number)
    return ValidIds(max(self.high_water_mark, number), open_ids, self.aborted_ids)


_begin = Simulation._begin


def _commits_when_it_begins(self: Simulation) -> None:
    known = len(self.txns)
    _begin(self)
    for txn in self.txns[known:]:
        self.database.commit(txn.txn_id, self._committed(txn))


BUGS: dict[str, Bug] = {
    "lists are put in order": (reader_lists, "covers", _orders_lists),
    "exceptions are not compared": (reader_lists, "covers", _compares_marks),
    "what is beyond the tag's mark is not compared": (reader_lists, "covers", _looks_up_to_its_mark),
    "the reader's list is the tag": (replies.ReplyCache, "tag_reading", _takes_the_readers_list),
    "tables are known by their names": (reader_lists.Reading, "is_covered_by", _knows_tables_by_name),
    "open write ids are in the tag": (reader_lists, "write_ids_now", _takes_open_ids_for_committed),
    "the tag is read after the reply": (replies.ReplyCache, "tag_reading", _reads_the_tag_last),
    "the table's id is older than the list": (Simulation, "_take_list", _takes_the_id_first),
    "tables without write ids are tagged": (reader_lists, "is_transactional", lambda parameters: True),
    "events drop nothing": (replies, "scopes_changed", lambda event: ()),
    "what was read before a change is kept after it": (replies.ReplyCache, "ticket", lambda self: 10**9),
    "a commit commits all before it": (ValidIds, "with_committed", _raises_the_mark),
    "a write id is announced before it is committed": (Simulation, "_begin", _commits_when_it_begins),
}
