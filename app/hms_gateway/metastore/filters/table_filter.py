"""Filters of get_table_names_by_filter: owner, last access time and parameters of a table (semantics §2.6)."""

from collections.abc import Callable, Mapping
from enum import Enum
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final, TypeAlias

import msgspec

from hms_gateway.metastore.filters.grammar import (
    And,
    Between,
    Comparison,
    Filter,
    FilterError,
    In,
    IsNull,
    Like,
    LiteralKind,
    MultiIn,
    Operator,
    Or,
    parse_filter,
)
from hms_gateway.metastore.vocabulary.patterns import Pattern, parse_like
from hms_gateway.runtime.limits import DEFAULT_LIMITS, Limits

OWNER_KEY: Final = "hive_filter_field_owner__"
LAST_ACCESS_KEY: Final = "hive_filter_field_last_access__"
PARAMETER_KEY_PREFIX: Final = "hive_filter_field_params__"

COMPARISONS: Final[dict[Operator, Callable[[Any, Any], bool]]] = {
    Operator.EQUAL: eq,
    Operator.NOT_EQUAL: ne,
    Operator.LESS: lt,
    Operator.LESS_OR_EQUAL: le,
    Operator.GREATER: gt,
    Operator.GREATER_OR_EQUAL: ge,
}


class TableField(Enum):
    """What of a table a condition looks at."""

    OWNER = "owner"
    LAST_ACCESS = "last access time"
    PARAMETER = "parameter"


class TableComparison(msgspec.Struct, frozen=True):
    """`parameter` names the parameter for PARAMETER. The operand is an int for LAST_ACCESS, a text for the others.

    A table without owner, or without the parameter, satisfies no condition on it, `!=` included.
    """

    field: TableField
    parameter: str | None
    operator: Operator
    operand: str | int


class TableLike(msgspec.Struct, frozen=True):
    field: TableField
    parameter: str | None
    pattern: Pattern


class TableAnd(msgspec.Struct, frozen=True):
    children: "tuple[TableNode, ...]"


class TableOr(msgspec.Struct, frozen=True):
    """Without children it matches no table."""

    children: "tuple[TableNode, ...]"


TableNode: TypeAlias = TableAnd | TableOr | TableComparison | TableLike


class TableFilter(msgspec.Struct, frozen=True):
    """A checked table filter, for storage to translate."""

    root: TableNode

    def matches(self, owner: str | None, last_access_time: int, parameters: Mapping[str, str]) -> bool:
        """Whether a table satisfies the filter: the reference that SQL has to agree with."""
        return _matches(self.root, owner, last_access_time, parameters)


def parse_table_filter(text: str, limits: Limits = DEFAULT_LIMITS) -> TableFilter | None:
    """The filter of get_table_names_by_filter; None for `""`, which selects every table.

    Key names are case-sensitive. Raises FilterError with the texts of semantics §2.6.
    """
    node = parse_filter(text, limits)
    if node is None:
        return None
    root = _table_node(node)
    if _conditions(root) > limits.table_filter_conditions_max:
        raise FilterError(
            "Error parsing table filter : more conditions than"
            f" table_filter_conditions_max = {limits.table_filter_conditions_max}"
        )
    return TableFilter(root)


def _conditions(node: TableNode) -> int:
    """How many there are: each is evaluated here, for every table."""
    return sum(map(_conditions, node.children)) if isinstance(node, TableAnd | TableOr) else 1


def _table_node(node: Filter) -> TableNode:
    match node:
        case And(children):
            return TableAnd(tuple(map(_table_node, children)))
        case Or(children):
            return TableOr(tuple(map(_table_node, children)))
        case Comparison():
            return _comparison(node)
        case Like(key, text):
            return _like(key, text)
        case Between() | In() | MultiIn():
            return _table_node(_spelled_out(node))
        case IsNull():
            raise AssertionError("no text says this")


def _spelled_out(node: Between | In | MultiIn) -> Filter:
    """The same condition in comparisons, as semantics §4.3 defines it."""
    match node:
        case Between(key, low, high, negated):
            if negated:
                return Or((Comparison(key, Operator.LESS, low), Comparison(key, Operator.GREATER, high)))
            lower = Comparison(key, Operator.GREATER_OR_EQUAL, low)
            return And((lower, Comparison(key, Operator.LESS_OR_EQUAL, high)))
        case In(key, literals, negated):
            operator = Operator.NOT_EQUAL if negated else Operator.EQUAL
            comparisons = tuple(Comparison(key, operator, literal) for literal in literals)
            return And(comparisons) if negated else Or(comparisons)
        case MultiIn(keys, rows, negated):
            operator = Operator.NOT_EQUAL if negated else Operator.EQUAL
            compared = [
                tuple(Comparison(key, operator, literal) for key, literal in zip(keys, row, strict=True))
                for row in rows
            ]
            return And(tuple(map(Or, compared))) if negated else Or(tuple(map(And, compared)))


def _field(key: str) -> tuple[TableField, str | None]:
    if key == OWNER_KEY:
        return TableField.OWNER, None
    if key == LAST_ACCESS_KEY:
        return TableField.LAST_ACCESS, None
    if key.startswith(PARAMETER_KEY_PREFIX):
        return TableField.PARAMETER, key.removeprefix(PARAMETER_KEY_PREFIX)
    raise FilterError("Invalid key name in filter.  Use constants from org.apache.hadoop.hive.metastore.api")


def _comparison(node: Comparison) -> TableNode:
    field, parameter = _field(node.key)
    if field is TableField.PARAMETER and node.operator not in (Operator.EQUAL, Operator.NOT_EQUAL):
        raise FilterError("Only [=, <>, !=, LIKE] are supported operators for HIVE_FILTER_FIELD_PARAMS")
    if field is TableField.LAST_ACCESS:
        if node.literal.kind is not LiteralKind.INTEGER:
            return TableOr(())  # a quoted number matches nothing, as in Hive
        return TableComparison(field, parameter, node.operator, int(node.literal.text))
    return TableComparison(field, parameter, node.operator, node.literal.text)


def _like(key: str, text: str) -> TableLike:
    field, parameter = _field(key)
    if field is TableField.LAST_ACCESS:
        raise FilterError("Like is not supported for HIVE_FILTER_FIELD_LAST_ACCESS")
    return TableLike(field, parameter, parse_like(text))


def _matches(node: TableNode, owner: str | None, last_access_time: int, parameters: Mapping[str, str]) -> bool:
    match node:
        case TableAnd(children):
            return all(_matches(child, owner, last_access_time, parameters) for child in children)
        case TableOr(children):
            return any(_matches(child, owner, last_access_time, parameters) for child in children)
        case TableComparison(TableField.LAST_ACCESS, _, operator, operand):
            return COMPARISONS[operator](last_access_time, operand)
        case TableComparison(field, parameter, operator, operand):
            text = _text(field, parameter, owner, parameters)
            return text is not None and COMPARISONS[operator](text, operand)
        case TableLike(field, parameter, pattern):
            text = _text(field, parameter, owner, parameters)
            return text is not None and pattern.matches(text)


def _text(field: TableField, parameter: str | None, owner: str | None, parameters: Mapping[str, str]) -> str | None:
    return owner if field is TableField.OWNER else parameters.get(parameter or "")
