"""Which partitions an expression asks for: a filter as text, or a Java object of Hive's compiler (semantics §4.5)."""

from hms_gateway.metastore.checks.selection import matching_filter
from hms_gateway.metastore.filters.binding import bind
from hms_gateway.metastore.filters.expression_filter import expression_filter
from hms_gateway.metastore.filters.grammar import FilterError, parse_filter
from hms_gateway.metastore.filters.hive_expression import read_expression
from hms_gateway.metastore.ports.store import Selection, StoredTable
from hms_gateway.runtime.limits import Limits
from hms_gateway.structs import MetaException


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
    keys = [(key.name or "", key.type or "") for key in table.table.partitionKeys or []]
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
