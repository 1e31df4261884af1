"""Whether statistics of a transactional table hold for a reader who says which write ids it sees."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

import msgspec

from hms_gateway.metastore.ports.statistics import ColumnFigures
from hms_gateway.metastore.vocabulary.parameters import COLUMN_STATS_ACCURATE, parse_accuracy
from hms_gateway.metastore.vocabulary.table_types import is_transactional
from hms_gateway.structs import MetaException, Table
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
    try:
        seen = parse_valid_write_ids(valid_write_ids).ids
    except InvalidList as error:
        raise MetaException(str(error)) from error
    if not any(one.write_id for each in figures.values() for one in each):
        return Judged(figures, True)
    known = parameters()
    holding = {name: each for name, each in figures.items() if _hold(each, seen, known.get(name, {}))}
    return Judged(holding, len(holding) == len(figures))


def _hold(figures: Iterable[ColumnFigures], seen: ValidIds, parameters: Mapping[str, str]) -> bool:
    """Those without a write id hold as far as is known: their writer knew none."""
    write_ids = {one.write_id for one in figures if one.write_id}
    if not write_ids:
        return True
    is_accurate = parse_accuracy(parameters.get(COLUMN_STATS_ACCURATE)).basic
    return is_accurate and all(seen.is_valid(write_id) for write_id in write_ids)
