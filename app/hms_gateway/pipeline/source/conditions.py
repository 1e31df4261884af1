"""Spark's filters as conditions: evaluated here, exactly as Spark would, and as the metastore's filter text.

The text may select more than the condition, never less; what it selects is compared again. So a metastore that
compares otherwise, or refuses the text, changes the time that a query takes and not its result.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final, NamedTuple

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

Path = tuple[str, ...]

_COMPARISONS: Final[dict[type[Any], str]] = {
    EqualTo: "=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}
_EVALUATED: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": eq,
    "!=": ne,
    ">": gt,
    ">=": ge,
    "<": lt,
    "<=": le,
    "in": lambda value, wanted: value in wanted,
    "not in": lambda value, wanted: None not in wanted and value not in wanted,
    "starts": lambda value, wanted: value.startswith(wanted),
    "is not null": lambda value, wanted: True,
}
_VALUES_MAX: Final = 500
_PLAIN_NAME: Final = re.compile("[a-z][a-z0-9_]*")
_WORDS: Final = frozenset(("and", "or", "not", "in", "between", "like", "struct", "const", "date", "timestamp"))
_PLAIN_TEXT: Final = re.compile("[A-Za-z0-9_-]+")
TEXT_TYPES: Final = ("string", "varchar")
_NUMBER_TYPES: Final = ("tinyint", "smallint", "int", "bigint")


class Condition(NamedTuple):
    """One filter. `value` is None for the two about null, a tuple for `in` and `not in`."""

    path: Path
    operator: str
    value: Any = None

    def holds(self, value: Any) -> bool:
        """Whether SQL's WHERE keeps a row with this value."""
        if self.operator == "is null" or value is None:
            return self.operator == "is null" and value is None
        if self.value is None and self.operator != "is not null":
            return False
        return _EVALUATED[self.operator](value, self.value)


def condition_of(given: Filter) -> Condition | None:
    """None for a filter that is left to Spark."""
    if type(given) in _COMPARISONS:
        return Condition(given.attribute, _COMPARISONS[type(given)], given.value)
    if isinstance(given, In):
        return Condition(given.attribute, "in", tuple(given.value))
    if isinstance(given, StringStartsWith):
        return Condition(given.attribute, "starts", given.value)
    if isinstance(given, IsNull):
        return Condition(given.attribute, "is null")
    if isinstance(given, IsNotNull):
        return Condition(given.attribute, "is not null")
    return _negated(given.child) if isinstance(given, Not) else None


def _negated(child: Filter) -> Condition | None:
    if isinstance(child, EqualTo):
        return Condition(child.attribute, "!=", child.value)
    if isinstance(child, In):
        return Condition(child.attribute, "not in", tuple(child.value))
    return None


def keeps(conditions: Iterable[Condition], path: Path, value: Any) -> bool:
    """Whether every condition about `path` holds for the value."""
    return all(condition.holds(value) for condition in conditions if condition.path == path)


def exact_values(conditions: Iterable[Condition], path: Path) -> list[str] | None:
    """The texts that alone can satisfy the conditions about `path`; None when they do not name any."""
    for condition in conditions:
        if condition.path == path and condition.operator in ("=", "in"):
            wanted = condition.value if condition.operator == "in" else (condition.value,)
            return sorted({text for text in wanted if isinstance(text, str) and keeps(conditions, path, text)})
    return None


def filter_text(conditions: Iterable[Condition], key_types: Mapping[str, str]) -> str:
    """The conditions on partition keys, as far as a metastore's filter can say them; "" for nothing."""
    parts = (_part(condition, key_types.get(condition.path[-1], "")) for condition in conditions)
    return " and ".join(part for part in parts if part)


def _part(condition: Condition, key_type: str) -> str:
    name, base = condition.path[-1], key_type.partition("(")[0]
    key = name if _PLAIN_NAME.fullmatch(name) and name not in _WORDS else f"`{name}`"
    if "`" in name or condition.operator in ("not in", "is null", "is not null"):
        return ""
    if condition.operator == "starts":
        is_plain = base in TEXT_TYPES and _PLAIN_TEXT.fullmatch(condition.value)
        return f"{key} like '{condition.value}.*'" if is_plain else ""
    if condition.operator != "in":
        text = _literal(condition.value, base)
        return f"{key} {condition.operator} {text}" if text else ""
    texts = [_literal(value, base) for value in condition.value if value is not None]
    if not texts or not all(texts) or len(texts) > _VALUES_MAX:
        return ""
    return f"({_alternatives(key, texts)})"


def _alternatives(key: str, texts: Sequence[str]) -> str:
    """Every metastore reads OR; IN came late."""
    return " or ".join(f"{key} = {text}" for text in texts)


def _literal(value: Any, base: str) -> str:
    """ "" for what the filter's grammar cannot write."""
    if base in TEXT_TYPES and isinstance(value, str) and value and "\\" not in value:
        quote = next((quote for quote in "'\"" if quote not in value), "")
        return f"{quote}{value}{quote}" if quote else ""
    if base in _NUMBER_TYPES and isinstance(value, int):
        return str(int(value))
    return value.isoformat() if base == "date" and type(value) is date else ""
