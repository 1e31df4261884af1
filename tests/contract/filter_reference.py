"""What a filter means, told in plain Python values (semantics §4): the brute force that the product is held against.

Nothing of the product's filters is used here. Values are compared as Decimal, float, date, (datetime, fraction), bool
and str, one row at a time; every node carries the text that clients would send.
"""

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, TypeAlias

DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
WRONG_TYPE: Final = "Filtering is supported only on partition keys of type string"
MIXED_TYPES: Final = "Error parsing partition filter : the values of {} are of different types"

OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NUMBER: Final = re.compile(r" *[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)? *")
_WHOLE_NUMBER: Final = re.compile(r" *[+-]?[0-9]+(?:\.0*)? *")
_DATE_AND_TIME: Final = re.compile(r" *([0-9]{4}-[0-9]{1,2}-[0-9]{1,2})(?:[ T]([0-9:.]*))? *")


class Refused(Exception):
    """The filter does not fit the keys; the text is that of the MetaException."""


@dataclass(frozen=True, slots=True)
class Key:
    name: str
    type: str

    @property
    def kind(self) -> str:
        """The type without its parameters."""
        return self.type.partition("(")[0]

    @property
    def is_text(self) -> bool:
        return self.kind in ("string", "varchar", "char")


@dataclass(frozen=True, slots=True)
class Literal:
    """`kind` is how it is written: string, integer, decimal, date or timestamp; `text` without quotes and prefix."""

    kind: str
    text: str
    written: str


def value_of(key: Key, text: str) -> Any:
    """A stored value as what it means, None when it is no value of the key's type."""
    if key.is_text:
        return text or DEFAULT_PARTITION
    if key.kind in ("tinyint", "smallint", "int", "bigint"):
        return Decimal(text.strip(" ")) if _WHOLE_NUMBER.fullmatch(text) else None
    return _typed(key, text)


@lru_cache(100_000)
def operand_of(key: Key, literal: Literal, *, is_equality: bool) -> Any:
    """A literal as what it means beside the key. Raises Refused."""
    if key.is_text:
        text = _text_of(literal)
        return DEFAULT_PARTITION if is_equality and not text else text
    numeric = ("integer", "decimal", "string")
    allowed = {"date": ("date", "string"), "timestamp": ("date", "timestamp", "string"), "boolean": ("string",),
               "binary": (), "array<int>": ()}.get(key.kind, numeric)  # fmt: skip
    value = _typed(key, literal.text) if literal.kind in allowed else None
    if value is None:
        raise Refused(WRONG_TYPE)
    return value


def _typed(key: Key, text: str) -> Any:
    match key.kind:
        case "tinyint" | "smallint" | "int" | "bigint" | "decimal":
            return Decimal(text.strip(" ")) if _NUMBER.fullmatch(text) else None
        case "double" | "float":
            return _double(text)
        case "date":
            found = _moment(text)
            return found and found[0].date()
        case "timestamp":
            return _moment(text)
        case "boolean":
            return {"true": True, "false": False}.get(text.strip(" ").lower())
    return None


def _double(text: str) -> float | None:
    bare = text.strip(" ")
    if not _NUMBER.fullmatch(text) and bare.lstrip("+-").lower() not in ("inf", "infinity"):
        return None
    try:
        return float(bare)
    except ValueError:
        return None


@lru_cache(10_000)
def _moment(text: str) -> tuple[datetime, Decimal] | None:
    """A time to the second, and the fraction of a second; a missing time is midnight."""
    found = _DATE_AND_TIME.fullmatch(text)
    if not found:
        return None
    time, point, fraction = (found[2] or "0:0").partition(".")
    if (point and time.count(":") != 2) or (found[2] == "" and "T" in text) or len(fraction) > 9:
        return None
    for form in ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"):
        try:
            moment = datetime.strptime(f"{found[1]} {time}", form)
        except ValueError:
            continue
        return (moment, Decimal(f"0.{fraction or 0}")) if re.fullmatch("[0-9]*", fraction) else None
    return None


def _text_of(literal: Literal) -> str:
    """Dates and timestamps compare with text as `YYYY-MM-DD` and `YYYY-MM-DD HH:MM:SS[.fraction]`."""
    if literal.kind not in ("date", "timestamp"):
        return literal.text
    moment = _moment(literal.text)
    assert moment is not None
    if literal.kind == "date":
        return date.isoformat(moment[0])[:10]
    return moment[0].isoformat(" ") + f"{moment[1].normalize():f}"[1:]


Row: TypeAlias = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Comparison:
    position: int
    key: Key
    sign: str
    literal: Literal
    written: str

    def holds(self, row: Row) -> bool:
        value = row[self.position]
        operand = operand_of(self.key, self.literal, is_equality=self.sign in ("=", "!=", "<>"))
        return value is not None and OPERATORS[self.sign](value, operand)


@dataclass(frozen=True, slots=True)
class Like:
    position: int
    key: Key
    pattern: str
    written: str

    def holds(self, row: Row) -> bool:
        if not self.key.is_text:
            raise Refused(WRONG_TYPE)
        return like_expression(self.pattern).fullmatch(row[self.position]) is not None


@dataclass(frozen=True, slots=True)
class Between:
    position: int
    key: Key
    low: Literal
    high: Literal
    negated: bool
    written: str

    def holds(self, row: Row) -> bool:
        value = row[self.position]
        low = operand_of(self.key, self.low, is_equality=False)
        high = operand_of(self.key, self.high, is_equality=False)
        if value is None:
            return False
        return value < low or value > high if self.negated else low <= value <= high


@dataclass(frozen=True, slots=True)
class In:
    position: int
    key: Key
    literals: tuple[Literal, ...]
    negated: bool
    written: str

    def holds(self, row: Row) -> bool:
        value = row[self.position]
        operands = [operand_of(self.key, literal, is_equality=True) for literal in self.literals]
        if value is None:
            return False
        return all(value != one for one in operands) if self.negated else any(value == one for one in operands)


@dataclass(frozen=True, slots=True)
class MultiIn:
    positions: tuple[int, ...]
    keys: tuple[Key, ...]
    constants: tuple[tuple[Literal, ...], ...]
    negated: bool
    written: str

    def holds(self, row: Row) -> bool:
        values = [row[position] for position in self.positions]
        constants = [
            [operand_of(key, literal, is_equality=True) for key, literal in zip(self.keys, constant, strict=True)]
            for constant in self.constants
        ]
        known = [value is not None for value in values]
        if self.negated:
            return all(
                any(is_known and value != one for is_known, value, one in zip(known, values, constant, strict=True))
                for constant in constants
            )
        return all(known) and any(
            all(value == one for value, one in zip(values, constant, strict=True)) for constant in constants
        )


@dataclass(frozen=True, slots=True)
class Joined:
    """AND or OR of the parts, in brackets where the writer put them."""

    is_and: bool
    parts: "tuple[Node, ...]"
    written: str

    def holds(self, row: Row) -> bool:
        # All parts are looked at: a part that does not fit its key is an error wherever it stands.
        held = [part.holds(row) for part in self.parts]
        return all(held) if self.is_and else any(held)


Node: TypeAlias = Comparison | Like | Between | In | MultiIn | Joined


@lru_cache(10_000)
def like_expression(pattern: str) -> re.Pattern[str]:
    """`.*` is any run, `.` one character, `\\.` a dot, all else itself (semantics §4.4)."""
    tokens = re.findall(r"\.\*|\\\.|\.|[^.\\]+|\\", pattern)
    meaning = {".*": ".*", ".": ".", r"\.": r"\."}
    return re.compile("".join(meaning.get(token, re.escape(token)) for token in tokens), re.DOTALL)


def mirrored(sign: str) -> str:
    """The operator of `literal sign key`, written with the key first."""
    return _MIRRORED.get(sign, sign)


def kinds_mixed(literals: Sequence[Literal]) -> bool:
    """Whether IN or BETWEEN would refuse these together; integers and decimals are one kind."""
    return len({"number" if one.kind in ("integer", "decimal") else one.kind for one in literals}) > 1


def selected(node: Node, rows: Sequence[Row]) -> list[int]:
    """The numbers of the rows the filter selects. Raises Refused."""
    return [number for number, row in enumerate(rows) if node.holds(row)]
