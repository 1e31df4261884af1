"""Which partitions of a table a call asks for."""

from collections.abc import Sequence

from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.filters.binding import BoundFilter, bind
from hms_gateway.metastore.filters.expression_filter import expression_filter
from hms_gateway.metastore.filters.grammar import FilterError, parse_filter
from hms_gateway.metastore.filters.hive_expression import read_expression
from hms_gateway.metastore.filters.hiveql_condition import metastore_filter
from hms_gateway.metastore.ports.store import Selection, StoredTable
from hms_gateway.metastore.vocabulary.hiveql_tokens import CommandError
from hms_gateway.metastore.vocabulary.partition_names import (
    InvalidPartitionName,
    PartitionNameError,
    make_name,
    parse_name,
    partial_spec,
)
from hms_gateway.runtime.limits import Limits
from hms_gateway.structs import EncodedList, MetaException, NoSuchObjectException, Partition
from hms_gateway.structs.base import EncodedTexts


def values_name(table: StoredTable, values: Sequence[str] | None) -> str:
    """The name of the partition with these values. Raises MetaException for a wrong count (semantics §2.8)."""
    given = required(values, "partition values")
    try:
        return make_name(table.key_names, [required(value, "partition value") for value in given])
    except PartitionNameError as error:
        raise MetaException(str(error)) from error


def named_values(table: StoredTable, name: str | None) -> list[str]:
    """The values in a name a client gave. Raises MetaException and NoSuchObjectException (semantics §2.9)."""
    try:
        return parse_name(table.key_names, name)
    except InvalidPartitionName as error:
        raise MetaException(str(error)) from error
    except PartitionNameError as error:
        raise NoSuchObjectException(str(error)) from error


def matching_partial(table: StoredTable, values: Sequence[str] | None, limit: int | None = None) -> Selection:
    """The partitions whose leading values are these, `""` meaning any (semantics §4.6). Raises MetaException."""
    given = required(values, "partition values")
    try:
        return Selection(partial_values=partial_spec(len(table.key_names), given), limit=limit)
    except PartitionNameError as error:
        raise MetaException(str(error)) from error


def bound_filter(table: StoredTable, text: str | None, limits: Limits) -> BoundFilter | None:
    """The filter for this table's keys, None for "every partition". Raises MetaException (semantics §4.1, §4.2)."""
    try:
        parsed = parse_filter(text, limits)
        return None if parsed is None else bind(parsed, _typed_keys(table))
    except FilterError as error:
        raise MetaException(str(error)) from error


def filter_of_condition(table: StoredTable, condition: str) -> str:
    """The filter that says what a condition of HiveQL says. Raises MetaException with the place that is wrong."""
    try:
        return metastore_filter(condition, _typed_keys(table))
    except CommandError as error:
        raise MetaException(f"{error} at character {error.position}") from error


def matching_filter(table: StoredTable, text: str | None, limits: Limits) -> Selection:
    """The partitions a filter selects; no filter selects all. Raises MetaException."""
    return Selection(filter=bound_filter(table, text, limits))


def matching_expression(table: StoredTable, expression: bytes | None, limits: Limits) -> tuple[Selection, bool]:
    """The partitions an expression may select, and whether it selects just these.

    Of bytes that are neither all partitions are the safe answer. Raises MetaException for a filter that does not fit.
    """
    text = _filter_text(expression, limits)
    if text is not None:
        return matching_filter(table, text, limits), True
    found = read_expression(expression or b"")
    if found is None:
        return Selection(), False
    keys = _typed_keys(table)
    filter = expression_filter(found, keys)
    if isinstance(filter.selected, bool):
        return (Selection() if filter.selected else Selection(names=[])), filter.is_exact
    try:
        return Selection(filter=bind(filter.selected, keys)), filter.is_exact
    except FilterError as error:
        raise MetaException(str(error)) from error


def _filter_text(expression: bytes | None, limits: Limits) -> str | None:
    """The filter in an expression that is the text of one, as newer clients send it; else None."""
    try:
        text = (expression or b"").decode()
        return text if parse_filter(text, limits) is not None else None
    except (UnicodeDecodeError, FilterError):
        return None


def _typed_keys(table: StoredTable) -> list[tuple[str, str]]:
    return [(key.name or "", key.type or "") for key in table.table.partitionKeys or []]


def java_list(values: Sequence[str]) -> str:
    """A list as Java prints it, which is how Hive's texts show partition values."""
    return f"[{', '.join(values)}]"


def partitions_of(found: Sequence[Partition] | EncodedList) -> list[Partition]:
    """All of a list at once, also of one that would be read while it is sent."""
    if not isinstance(found, EncodedList):
        return list(found)
    return [one for chunk in found.struct_chunks() for one in chunk if isinstance(one, Partition)]


def names_of(found: Sequence[str] | EncodedTexts) -> list[str]:
    """All of a list of names at once, also of one that would be read while it is sent."""
    return [name for chunk in found.text_chunks() for name in chunk] if isinstance(found, EncodedTexts) else list(found)
