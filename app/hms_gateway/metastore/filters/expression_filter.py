"""Partition filters out of the expressions of Hive's compiler (semantics §4.5).

An expression that the grammar of filters can say is that filter, as in Hive: the default partition of a text key has
its own name as value. All others Hive evaluates, in SQL's logic of three values: a condition on a key without value is
neither true nor false, nor is its negation. Negations are pushed down to the conditions, where each form then says
"true", and that needs a value.

What cannot be decided selects all partitions, so that a filter selects too many rather than too few, and says so.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Final, TypeAlias

import msgspec

from hms_gateway.metastore.filters.grammar import (
    And,
    Between,
    Comparison,
    Filter,
    In,
    IsNull,
    Like,
    Literal,
    LiteralKind,
    Operator,
    Or,
)
from hms_gateway.metastore.filters.hive_expression import ColumnReference, Constant, Expression, Function
from hms_gateway.metastore.vocabulary.typed_values import ValueClass, class_sort_key, value_class

# All partitions or none of them, where no condition is needed.
Selected: TypeAlias = Filter | bool


class ExpressionFilter(msgspec.Struct, frozen=True):
    """What an expression selects; not `is_exact` when it may be less."""

    selected: Selected
    is_exact: bool = True


_UNKNOWN: Final = ExpressionFilter(True, is_exact=False)

_OPERATORS: Final = {
    "GenericUDFOPEqual": Operator.EQUAL,
    "GenericUDFOPNotEqual": Operator.NOT_EQUAL,
    "GenericUDFOPLessThan": Operator.LESS,
    "GenericUDFOPEqualOrLessThan": Operator.LESS_OR_EQUAL,
    "GenericUDFOPGreaterThan": Operator.GREATER,
    "GenericUDFOPEqualOrGreaterThan": Operator.GREATER_OR_EQUAL,
}
# Of these types Hive compares the values as we do. It takes blanks at the end of char values away, knows no false
# boolean, compares floats with less digits, and the time zone of a timestamp is unknown.
_ALIKE: Final = frozenset(
    {"string", "varchar", "tinyint", "smallint", "int", "bigint", "decimal", "double", "date"}
)  # fmt: skip


# The types that filters compare in Hive.
_IN_FILTERS: Final = frozenset({"string", "tinyint", "smallint", "int", "bigint", "date"})


def expression_filter(expression: Expression, keys: Sequence[tuple[str, str]]) -> ExpressionFilter:
    """The filter for partition keys given as (name, type)."""
    types = {name.lower(): type_name for name, type_name in keys}
    return _Translator(types, knows_null=not _is_filter(expression, types)).of(expression, negated=False)


def _is_filter(node: Expression, types: Mapping[str, str]) -> bool:
    """True for an expression that Hive writes as a filter: without NOT, IS NULL, LIKE and fractions."""
    match node:
        case Function("GenericUDFOPAnd" | "GenericUDFOPOr", parts):
            return all(_is_filter(part, types) for part in parts)
        case Function("GenericUDFBetween", (Constant(_, bool()), *parts)):
            return all(_is_in_filters(part, types) for part in parts)
        case Function("GenericUDFIn" | "GenericUDFOPEqual", parts) if Constant("string", "") in parts:
            # To filters it is the default partition, and Hive's compiler does not mean that by it.
            return False
        case Function(name, parts):
            return (name in _OPERATORS or name == "GenericUDFIn") and all(_is_in_filters(part, types) for part in parts)
        case _:
            return False


def _is_in_filters(part: Expression, types: Mapping[str, str]) -> bool:
    match part:
        case ColumnReference(key):
            return types.get(key.lower(), "").lower() in _IN_FILTERS
        case Constant(_, str() as text):
            # It is put between quotes as it is.
            return "'" not in text and "\\" not in text
        case Constant(_, value):
            return isinstance(value, int | date) and not isinstance(value, bool)
        case _:
            return False


class _Translator:
    """Filters out of expressions. `knows_null`: a condition on a key without value is neither true nor false."""

    def __init__(self, types: Mapping[str, str], *, knows_null: bool) -> None:
        self._types = types
        self._knows_null = knows_null

    def of(self, node: Expression, *, negated: bool) -> ExpressionFilter:
        match node:
            case Constant(_, bool() as value):
                return ExpressionFilter(value is not negated)
            case Function("GenericUDFOPNot", (child,)):
                return self.of(child, negated=not negated)
            case Function("GenericUDFOPAnd" | "GenericUDFOPOr" as name, children):
                parts = [self.of(child, negated=negated) for child in children]
                return _all_of(parts) if (name == "GenericUDFOPAnd") is not negated else _any_of(parts)
            case Function("GenericUDFOPNull" | "GenericUDFOPNotNull" as name, (ColumnReference(key),)) if self._kind(
                key
            ):
                return ExpressionFilter(IsNull(key, negated=(name == "GenericUDFOPNotNull") is not negated))
            case Function(name, (ColumnReference(key), Constant(_, value))) if name in _OPERATORS:
                return self._comparison(key, _OPERATORS[name], value, negated)
            case Function(name, (Constant(_, value), ColumnReference(key))) if name in _OPERATORS:
                return self._comparison(key, _OPERATORS[name].mirrored, value, negated)
            case Function("GenericUDFIn", (ColumnReference(key), *constants)):
                return self._in(key, constants, negated)
            case Function(
                "GenericUDFBetween",
                (Constant(_, bool() as is_not), ColumnReference(key), Constant() as low, Constant() as high),
            ):
                return self._between(key, low, high, is_not is not negated)
            case Function("UDFLike", (ColumnReference(key), Constant(_, str() as pattern))):
                return self._like(key, pattern, negated)
            case _:
                return _UNKNOWN

    def _comparison(self, key: str, operator: Operator, value: object, negated: bool) -> ExpressionFilter:
        literal = self._literal(key, value)
        if literal is None:
            return _UNKNOWN
        return self._with_value(Comparison(key, operator.negated if negated else operator, literal))

    def _in(self, key: str, constants: Sequence[Expression], negated: bool) -> ExpressionFilter:
        literals = [self._literal(key, one.value) for one in constants if isinstance(one, Constant)]
        found = tuple(literal for literal in literals if literal is not None)
        return self._with_value(In(key, found, negated)) if found and len(found) == len(constants) else _UNKNOWN

    def _between(self, key: str, low: Constant, high: Constant, negated: bool) -> ExpressionFilter:
        lowest, highest = self._literal(key, low.value), self._literal(key, high.value)
        if lowest is None or highest is None:
            return _UNKNOWN
        return self._with_value(Between(key, lowest, highest, negated))

    def _like(self, key: str, pattern: str, negated: bool) -> ExpressionFilter:
        """`%` is any run, `_` one character. What a backslash does is left to Hive."""
        if negated or self._kind(key) is not ValueClass.TEXT or "\\" in pattern:
            return _UNKNOWN
        meaning = {"%": ".*", "_": ".", ".": r"\."}
        return self._with_value(Like(key, "".join(meaning.get(character, character) for character in pattern)))

    def _with_value(self, condition: Comparison | In | Between | Like) -> ExpressionFilter:
        return ExpressionFilter(
            And((condition, IsNull(condition.key, negated=True))) if self._knows_null else condition
        )

    def _kind(self, key: str) -> ValueClass | None:
        """None for what is not a partition key, or compares otherwise in Hive."""
        type_name = self._types.get(key.lower(), "").lower()
        return value_class(type_name) if type_name.partition("(")[0] in _ALIKE else None

    def _literal(self, key: str, value: object) -> Literal | None:
        """The constant beside the key; None where Hive would convert the key's values to another type.

        Also for null: with that the compiler replaces what it cannot express by partition keys.
        """
        kind = self._kind(key)
        match value:
            case bool():
                return None
            case str() if kind is ValueClass.TEXT:
                return Literal(LiteralKind.STRING, value)
            case str() if kind is ValueClass.DATE and class_sort_key(kind, value) is not None:
                return Literal(LiteralKind.STRING, value)
            case date() if kind is ValueClass.DATE:
                return Literal(LiteralKind.DATE, value.isoformat())
            case int() if kind is not None and kind.is_numeric:
                return Literal(LiteralKind.INTEGER, str(value))
            case Decimal() if kind is not None and kind.is_numeric:
                return Literal(LiteralKind.DECIMAL, f"{value:f}")
            case float() if kind is ValueClass.DOUBLE and class_sort_key(kind, repr(value)) is not None:
                return Literal(LiteralKind.DECIMAL, repr(value))
            case _:
                return None


def _all_of(parts: Sequence[ExpressionFilter]) -> ExpressionFilter:
    if any(part.selected is False for part in parts):
        return ExpressionFilter(False)
    return _joined(And, [part.selected for part in parts if part.selected is not True], parts, nothing=True)


def _any_of(parts: Sequence[ExpressionFilter]) -> ExpressionFilter:
    if any(part.selected is True for part in parts):
        return ExpressionFilter(True, any(part.selected is True and part.is_exact for part in parts))
    return _joined(Or, [part.selected for part in parts if part.selected is not False], parts, nothing=False)


def _joined(
    connective: Callable[[tuple[Filter, ...]], Filter],
    selected: Sequence[Selected],
    parts: Sequence[ExpressionFilter],
    *,
    nothing: bool,
) -> ExpressionFilter:
    """Nested connectives of one kind become one."""
    children: list[Filter] = []
    for one in selected:
        assert not isinstance(one, bool)
        children += one.children if isinstance(one, And | Or) and type(one) is connective else [one]
    is_exact = all(part.is_exact for part in parts)
    if not children:
        return ExpressionFilter(nothing, is_exact)
    return ExpressionFilter(children[0] if len(children) == 1 else connective(tuple(children)), is_exact)
