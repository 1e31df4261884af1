"""Partition filters bound to a table's keys: which values of which key a partition must have (semantics §4).

Binding resolves keys to positions, checks types, and turns every literal into a sort key (`typed_values`). So every
condition compares the sort key of one partition value with constants, as text in code-point order; storage does it in
SQL. A value without sort key (None, NULL) satisfies no condition.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

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
    Literal,
    LiteralKind,
    MultiIn,
    Operator,
    Or,
)
from hms_gateway.metastore.vocabulary.partition_names import DEFAULT_PARTITION_NAME, canonical_value
from hms_gateway.metastore.vocabulary.patterns import Pattern, parse_like
from hms_gateway.metastore.vocabulary.typed_values import ValueClass, class_sort_key, value_class

_STRING_KEYS_ONLY: Final = "Filtering is supported only on partition keys of type string"


class BoundComparison(msgspec.Struct, frozen=True):
    position: int
    operator: Operator
    operand: str


class BoundLike(msgspec.Struct, frozen=True):
    """On text keys only, so the sort key is the value itself. Compares case-sensitively."""

    position: int
    pattern: Pattern


class BoundBetween(msgspec.Struct, frozen=True):
    """`low <= key AND key <= high`; negated `key < low OR key > high`."""

    position: int
    low: str
    high: str
    negated: bool


class BoundIn(msgspec.Struct, frozen=True):
    """Operands are distinct."""

    position: int
    operands: tuple[str, ...]
    negated: bool


class BoundMultiIn(msgspec.Struct, frozen=True):
    """OR over the rows of AND of equality; negated AND over the rows of OR of inequality (semantics §4.3)."""

    positions: tuple[int, ...]
    rows: tuple[tuple[str, ...], ...]
    negated: bool


class BoundIsNull(msgspec.Struct, frozen=True):
    """The key has no value of its type; of text keys only the default partition has none."""

    position: int
    value_class: ValueClass
    negated: bool


class BoundAnd(msgspec.Struct, frozen=True):
    children: "tuple[BoundNode, ...]"


class BoundOr(msgspec.Struct, frozen=True):
    children: "tuple[BoundNode, ...]"


BoundNode: TypeAlias = (
    BoundAnd | BoundOr | BoundComparison | BoundLike | BoundBetween | BoundIn | BoundMultiIn | BoundIsNull
)


def bind(filter: Filter, keys: Sequence[tuple[str, str]]) -> BoundNode:
    """Fit a parsed filter to partition keys, given as (name, type) in order.

    Types as in semantics §4.2, and beyond it: every primitive type can be compared, LIKE concerns only its own key, and
    a text key can be compared with an unquoted number, by the number's text. Raises FilterError.
    """
    return _Binder(keys).node(filter)


def null_key(kind: ValueClass) -> str | None:
    """The sort key that means no value."""
    return DEFAULT_PARTITION_NAME if kind is ValueClass.TEXT else None


class _Binder:
    def __init__(self, keys: Sequence[tuple[str, str]]) -> None:
        self._classes = tuple(value_class(type_name) for _, type_name in keys)
        self._positions = {name.lower(): position for position, (name, _) in reversed(list(enumerate(keys)))}

    def node(self, node: Filter) -> BoundNode:
        match node:
            case And(children):
                return BoundAnd(tuple([self.node(child) for child in children]))
            case Or(children):
                return BoundOr(tuple([self.node(child) for child in children]))
            case Comparison():
                return self._comparison(node)
            case Like(key, text):
                return self._like(key, text)
            case Between(key, low, high, negated):
                position, kind = self._resolve(key)
                return BoundBetween(position, _operand(kind, low), _operand(kind, high), negated)
            case In(key, literals, negated):
                position, kind = self._resolve(key)
                operands = dict.fromkeys(_equality_operand(kind, literal) for literal in literals)
                return BoundIn(position, tuple(operands), negated)
            case MultiIn():
                return self._multi_in(node)
            case IsNull(key, negated):
                return BoundIsNull(*self._resolve(key), negated)

    def _resolve(self, key: str) -> tuple[int, ValueClass]:
        position = self._positions.get(key.lower())
        if position is None:
            raise FilterError(f"Specified key <{key}> is not a partitioning key for the table")
        return position, self._classes[position]

    def _comparison(self, node: Comparison) -> BoundComparison:
        position, kind = self._resolve(node.key)
        is_equality = node.operator in (Operator.EQUAL, Operator.NOT_EQUAL)
        operand = _equality_operand(kind, node.literal) if is_equality else _operand(kind, node.literal)
        return BoundComparison(position, node.operator, operand)

    def _like(self, key: str, text: str) -> BoundLike:
        position, kind = self._resolve(key)
        if kind is not ValueClass.TEXT:
            raise FilterError(_STRING_KEYS_ONLY)
        return BoundLike(position, parse_like(text))

    def _multi_in(self, node: MultiIn) -> BoundMultiIn:
        resolved = [self._resolve(key) for key in node.keys]
        rows = dict.fromkeys(
            tuple(_equality_operand(kind, literal) for (_, kind), literal in zip(resolved, row, strict=True))
            for row in node.rows
        )
        return BoundMultiIn(tuple(position for position, _ in resolved), tuple(rows), node.negated)


# What each class of key can be compared with. Text keys take everything, by its text.
_COMPARABLE: Final = {
    ValueClass.TEXT: frozenset(LiteralKind),
    ValueClass.INTEGER: frozenset({LiteralKind.STRING, LiteralKind.INTEGER, LiteralKind.DECIMAL}),
    ValueClass.DECIMAL: frozenset({LiteralKind.STRING, LiteralKind.INTEGER, LiteralKind.DECIMAL}),
    ValueClass.DOUBLE: frozenset({LiteralKind.STRING, LiteralKind.INTEGER, LiteralKind.DECIMAL}),
    ValueClass.DATE: frozenset({LiteralKind.STRING, LiteralKind.DATE}),
    ValueClass.TIMESTAMP: frozenset({LiteralKind.STRING, LiteralKind.DATE, LiteralKind.TIMESTAMP}),
    ValueClass.BOOLEAN: frozenset({LiteralKind.STRING}),
    ValueClass.OPAQUE: frozenset[LiteralKind](),
}


def _operand(kind: ValueClass, literal: Literal) -> str:
    """The sort key of a literal, as a bound: `""` comes before everything."""
    if literal.kind not in _COMPARABLE[kind]:
        raise FilterError(_STRING_KEYS_ONLY)
    if kind is ValueClass.TEXT:
        return literal.text
    # An integer key may be compared with 1.5: only values, not literals, have to be of the key's type.
    compared_as = ValueClass.DECIMAL if kind is ValueClass.INTEGER else kind
    key = class_sort_key(compared_as, literal.text)
    if key is None:
        raise FilterError(_STRING_KEYS_ONLY)
    return key


def _equality_operand(kind: ValueClass, literal: Literal) -> str:
    """The sort key of a literal that must be equal: `""` and the default partition name are the same value."""
    operand = _operand(kind, literal)
    return canonical_value(operand) if kind is ValueClass.TEXT else operand
