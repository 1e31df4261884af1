"""Statistics of a transactional table, valid or not for a reader who says which write ids it sees; and their events.

Basic statistics are parameters of a table or partition, which keeps the write id under which they were written; column
statistics have their own. Their notification events are as 3.1 and later write them; earlier servers said nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

import msgspec

from hms_gateway.metastore.vocabulary.parameters import COLUMN_STATS_ACCURATE, parse_accuracy, without_accuracy
from hms_gateway.metastore.vocabulary.table_types import is_transactional
from hms_gateway.storage.catalog.statistics import ColumnFigures
from hms_gateway.structs import MetaException, Partition, Table
from hms_gateway.txn.rules.write_ids import InvalidList, ValidIds, parse_valid_write_ids

Name = TypeVar("Name")

Verdict: TypeAlias = bool | None
"""None where the reader did not say what it sees."""


class Judged(msgspec.Struct, Generic[Name], frozen=True):
    """The statistics that hold, by partition or for the table, and whether those are all."""

    figures: Mapping[Name, Sequence[ColumnFigures]]
    all_hold: Verdict


def judged(
    table: Table,
    valid_write_ids: str | None,
    figures: Mapping[Name, Sequence[ColumnFigures]],
    parameters: Callable[[], Mapping[Name, Mapping[str, str]]],
) -> Judged[Name]:
    """Leave out what a reader with this list must not go by, as Hive 4 does. Raises MetaException for another text.

    `parameters` reads those of the table or the partitions, which say whether anything was written since.
    """
    if not valid_write_ids:
        return Judged(figures, None)
    if not is_transactional(table.parameters or {}):
        return Judged(figures, True)
    seen = seen_by(valid_write_ids)
    if not any(one.write_id for each in figures.values() for one in each):
        return Judged(figures, True)
    known = parameters()
    holding = {name: each for name, each in figures.items() if _hold(each, seen, known.get(name, {}))}
    return Judged(holding, len(holding) == len(figures))


def table_for(table: Table, valid_write_ids: str | None) -> Table:
    """A table as a reader with this list is to see it. Raises MetaException for another text.

    It says whether its basic statistics hold. Where they do not, it does not say that they are accurate. A partitioned
    table has none of its own (`partition_for`).
    """
    if not valid_write_ids or table.partitionKeys or not is_transactional(table.parameters or {}):
        return table
    holds = _basic_hold(table, seen_by(valid_write_ids))
    parameters = table.parameters if holds else without_accuracy(table.parameters or {})
    return msgspec.structs.replace(table, parameters=parameters, isStatsCompliant=holds)


def partition_for(table: Table, partition: Partition, valid_write_ids: str | None) -> Partition:
    """The same for a partition of a table."""
    if not valid_write_ids or not is_transactional(table.parameters or {}):
        return partition
    holds = _basic_hold(partition, seen_by(valid_write_ids))
    parameters = partition.parameters if holds else without_accuracy(partition.parameters or {})
    return msgspec.structs.replace(partition, parameters=parameters, isStatsCompliant=holds)


def deciding_write_id(table: Table) -> int | None:
    """The write id that readers have to see for the basic statistics to hold; None where all get the same answer."""
    parameters = table.parameters or {}
    if table.partitionKeys or not is_transactional(parameters) or not _are_accurate(parameters):
        return None
    return table.writeId


def after_concurrent_write(parameters: dict[str, str], before: int | None, seen: ValidIds) -> dict[str, str]:
    """The parameters that a writer leaves who sees these ids, where `before` is the write id of those it replaces.

    What it did not see is not in its figures, unless that was aborted; so they are not accurate then, as in Hive 4.
    """
    if not before or seen.is_valid(before) or seen.is_aborted(before):
        return parameters
    return without_accuracy(parameters)


def seen_by(valid_write_ids: str) -> ValidIds:
    """The ids of a list as it was sent. Raises MetaException for another text."""
    try:
        return parse_valid_write_ids(valid_write_ids).ids
    except InvalidList as error:
        raise MetaException(str(error)) from error


def _basic_hold(one: Table | Partition, seen: ValidIds) -> bool:
    if not one.writeId:
        return True
    return _are_accurate(one.parameters or {}) and seen.is_valid(one.writeId)


def _are_accurate(parameters: Mapping[str, str]) -> bool:
    return parse_accuracy(parameters.get(COLUMN_STATS_ACCURATE)).basic


def _hold(figures: Iterable[ColumnFigures], seen: ValidIds, parameters: Mapping[str, str]) -> bool:
    """Those without a write id hold as far as is known: their writer knew none."""
    write_ids = {one.write_id for one in figures if one.write_id}
    if not write_ids:
        return True
    return _are_accurate(parameters) and all(seen.is_valid(write_id) for write_id in write_ids)
