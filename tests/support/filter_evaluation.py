"""The meaning of bound filters in plain Python: the reference that SQL has to agree with."""

from collections.abc import Callable, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from hms_gateway.metastore.filters.binding import (
    BoundAnd,
    BoundBetween,
    BoundComparison,
    BoundIn,
    BoundIsNull,
    BoundLike,
    BoundMultiIn,
    BoundNode,
    BoundOr,
    null_key,
)
from hms_gateway.metastore.filters.grammar import Operator
from hms_gateway.metastore.vocabulary.typed_values import sort_key

COMPARISONS: dict[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQUAL: eq,
    Operator.NOT_EQUAL: ne,
    Operator.LESS: lt,
    Operator.LESS_OR_EQUAL: le,
    Operator.GREATER: gt,
    Operator.GREATER_OR_EQUAL: ge,
}


def evaluate(bound: BoundNode, keys: Sequence[tuple[str, str]], values: Sequence[str]) -> bool:
    """True if the filter selects a partition with these values of keys, given as (name, type)."""
    return _holds(bound, [sort_key(kind, value) for (_, kind), value in zip(keys, values, strict=True)])


def _holds(node: BoundNode, keys: Sequence[str | None]) -> bool:
    match node:
        case BoundAnd(children):
            return all(_holds(child, keys) for child in children)
        case BoundOr(children):
            return any(_holds(child, keys) for child in children)
        case BoundMultiIn():
            return _holds_multi_in(node, keys)
        case BoundIsNull():
            return (keys[node.position] == null_key(node.value_class)) is not node.negated
        case _:
            key = keys[node.position]
            return key is not None and _leaf_holds(node, key)


def _leaf_holds(node: BoundComparison | BoundLike | BoundBetween | BoundIn, key: str) -> bool:
    match node:
        case BoundComparison(_, operator, operand):
            return COMPARISONS[operator](key, operand)
        case BoundLike(_, pattern):
            return pattern.matches(key)
        case BoundBetween(_, low, high, negated):
            return (low <= key <= high) is not negated
        case BoundIn(_, operands, negated):
            return (key in operands) is not negated


def _holds_multi_in(node: BoundMultiIn, keys: Sequence[str | None]) -> bool:
    compared = [keys[position] for position in node.positions]
    if not node.negated:
        return tuple(compared) in node.rows
    return all(
        any(key is not None and key != operand for key, operand in zip(compared, row, strict=True)) for row in node.rows
    )
