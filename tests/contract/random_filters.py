"""Random partition keys, rows and filters. The same seed gives the same ones."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Final, TypeVar

from tests.contract.filter_reference import (
    DEFAULT_PARTITION,
    OPERATORS,
    Between,
    Comparison,
    In,
    Joined,
    Key,
    Like,
    Literal,
    MultiIn,
    Node,
    kinds_mixed,
    mirrored,
    value_of,
)

TYPES: Final = (
    "string", "string", "string", "varchar(20)", "char(5)", "int", "int", "bigint", "tinyint", "smallint", "date",
    "date", "timestamp", "boolean", "decimal(38,10)", "decimal(5,2)", "double", "float", "binary", "array<int>",
)  # fmt: skip
NAMES: Final = (
    "ds", "hr", "Region", "date", "timestamp", "x1", "2x", "_under", "order_by", "`or`", "`in`", "`a b`", "`12`", "é"
)  # fmt: skip
OPAQUE: Final = frozenset({"binary", "array<int>"})

ODD_TEXTS: Final = (
    "", DEFAULT_PARTITION, "a", "A", "b", "ab", "a.b", "axb", "a*b", "a%b", "a_b", "a!b", "a?b", "[a]", "[!a]", "*",
    "%", "é", "É", "😀", "z😀", "\uffee", " a", "a ", "a/b=c %:é", "o'q", '"quoted"',
    "\\", "a\\b", "\\.", "a\\.b", "10",
    "9", "09", "-1", "1.5", "NULL", "2024-01-02", "2024-1-2", "2024-01-02 00:00:00", "true", "tab\there", "line\nbreak",
    "\x7f", "a+b", "(a)", "a|b", "^a$", "0",
)  # fmt: skip
# What stands in keys of every type without being a value of most.
NO_VALUES: Final = (
    "", DEFAULT_PARTITION, "x", "1x", "0x10", "1_000", "--1", "NaN", "٣", "null", "-", ".", "1,5", "2024"
)  # fmt: skip
POOLS: Final[dict[str, tuple[str, ...]]] = {
    "tinyint": ("0", "1", "-1", "127", "-128", "128", "300", "007", "+5", "5", "5.0", "5.00", "-0", " 5", "5 "),
    "smallint": ("0", "10", "9", "-9", "32767", "32768", "-32769", "0010", "1e1"),
    "int": (
        "0", "1", "01", "001", "2", "10", "9", "-3", "-30", "-2", "2147483647", "2147483648", "-2147483649", "1.5",
    ),
    "bigint": (
        "0", "9223372036854775807", "9223372036854775806", "-9223372036854775808", "9223372036854775808",
        "-9223372036854775809", "99999999999999999999999", "12", "012", "-12", "9007199254740993", "9007199254740992",
    ),
    "date": (
        "2024-01-02", "2024-1-2", "2024-01-02 00:00:00", "2024-01-02 23:59:59.9", "2023-12-31", "2024-02-29",
        "2023-02-29", "2024-13-01", "2024-00-10", "1969-12-31", "0001-01-01", "9999-12-31", "20240102",
        "2024-01-02T03:04:05", "24-01-02", "2024-01-02x", " 2024-01-02", "10000-01-01",
    ),
    "timestamp": (
        "2024-01-02", "2024-01-02 00:00:00", "2024-01-02 00:00:00.0", "2024-01-02 00:00:00.5",
        "2024-01-02 00:00:00.45", "2024-1-2 3:4:5", "2024-01-02 03:04:05", "2024-01-02 03:04", "2024-01-02 24:00:00",
        "2024-01-01 23:59:59.999999999", "2024-01-02 00:00:60", "2024-02-30 00:00:00", "2024-01-02T03:04:05",
        "2024-01-02 00:00:00.1234567890",
    ),
    "boolean": ("true", "false", "TRUE", "False", "t", "1", "0", "yes", " true"),
    "decimal": (
        "0", "0.0", "-0.0", "1.5", "1.50", "01.5", "+1.5", ".5", "0.5", "5.", "-0.1", "-0.12", "-0.123", "-12", "100",
        "1e2", "1E+2", "99.99", "100.01", "-100.01", "12345678901234567890.123456789",
        "12345678901234567890.123456788", "1e-9", "x",
    ),
    "double": (
        "0", "-0.0", "1", "1.0", "0.1", "0.10", "1e-1", "1e308", "1e400", "-1e400", "Infinity", "-inf", "nan", "5e-324",
        "1e-400", "0.30000000000000004", "0.3", "9007199254740993", "9007199254740992", "-1.5", "-1.25", "100",
    ),
}  # fmt: skip
POOLS["float"] = POOLS["double"]

# Some literals that fit no key or another one.
STRAY: Final = (
    Literal("string", "x", "'x'"), Literal("integer", "7", "7"), Literal("decimal", "0.5", "0.5"),
    Literal("timestamp", "2024-01-02 3:4:5", "timestamp '2024-01-02 3:4:5'"),
    Literal("date", "2024-01-02", "2024-01-02"), Literal("string", "", "''"), Literal("integer", "00", "00"),
    Literal("string", "2024-01-02", '"2024-01-02"'),
)  # fmt: skip

Item = TypeVar("Item")


@dataclass(frozen=True)
class RandomTable:
    keys: tuple[Key, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def bare_names(self) -> list[str]:
        """The names of the keys without the quotes they need in filters."""
        return [key.name.strip("`") for key in self.keys]

    @cached_property
    def values(self) -> list[list[object]]:
        """The rows as what they mean."""
        return [[value_of(key, text) for key, text in zip(self.keys, row, strict=True)] for row in self.rows]


def random_table(source: random.Random, rows_max: int = 60) -> RandomTable:
    """Few values a key, so that filters meet some; now and then more keys than have columns."""
    count = source.choice((1, 1, 2, 2, 3, 3, 4, 5, 9, 11))
    keys = tuple(Key(name, source.choice(TYPES)) for name in source.sample(NAMES, count))
    pools = [_pool(source, key) for key in keys]
    rows = {tuple(source.choice(pool) for pool in pools) for _ in range(source.randint(1, rows_max))}
    # '' and the default partition's name are one partition.
    unlike = {tuple(text or DEFAULT_PARTITION for text in row): row for row in sorted(rows)}
    return RandomTable(keys, tuple(unlike.values()))


def _pool(source: random.Random, key: Key) -> list[str]:
    known = ODD_TEXTS if key.is_text else POOLS.get(key.kind, ODD_TEXTS)
    pool = [source.choice(known) for _ in range(source.randint(1, 12))]
    pool += [source.choice(NO_VALUES)] if source.random() < 0.4 else []
    if key.is_text and source.random() < 0.5:
        pool += [changed for text in pool for changed in (text.swapcase(), text + "a", text[:-1])]
    if key.is_text and source.random() < 0.5:
        pool += ["".join(source.choices("ab.*%_\\é'", k=source.randint(1, 4))) for _ in range(4)]
    if key.kind in ("int", "bigint", "decimal") and source.random() < 0.5:
        pool += [f"{'0' * source.randint(0, 2)}{source.randint(0, 30)}" for _ in range(6)]
    if key.kind == "date" and source.random() < 0.5:
        pool += [f"2024-{source.randint(1, 12):02}-{source.randint(1, 28):02}" for _ in range(8)]
    return pool


class FilterMaker:
    """Filters about a table's keys, most of them with the values of its rows or near them."""

    def __init__(self, source: random.Random, table: RandomTable, stray: float = 0.01) -> None:
        """`stray` is how often a literal is of some other type."""
        self._random = source
        self._table = table
        self._stray = stray

    def filter(self, depth: int = 3) -> Node:
        if depth and self._random.random() < 0.5:
            return self._joined(depth)
        kinds: Sequence[Callable[[], Node]] = (
            self._comparison, self._comparison, self._comparison, self._like, self._between, self._in, self._multi_in
        )  # fmt: skip
        return self._random.choice(kinds)()

    def _joined(self, depth: int) -> Node:
        is_and = self._random.random() < 0.5
        parts = tuple(self.filter(depth - 1) for _ in range(self._random.choice((2, 2, 2, 3, 4))))
        written = [
            f"({part.written})" if (is_and and _is_or(part)) or self._random.random() < 0.3 else part.written
            for part in parts
        ]
        word = self._case("and" if is_and else "or")
        return Joined(is_and, parts, f"{self._space(1)}{word}{self._space(1)}".join(written))

    def _comparison(self) -> Comparison:
        position, key = self._key()
        sign, literal = self._random.choice(list(OPERATORS)), self._literal(position, key)
        name = self._name(key)
        if self._random.random() < 0.2:
            written = f"{literal.written}{self._space(0)}{sign}{self._space(0)}{name}"
            return Comparison(position, key, mirrored(sign), literal, written)
        return Comparison(
            position, key, sign, literal, f"{name}{self._space(0)}{sign}{self._space(0)}{literal.written}"
        )

    def _like(self) -> Node:
        texts = [number for number, key in enumerate(self._table.keys) if key.is_text]
        if not texts:
            return self._comparison()
        position = self._random.choice(texts)
        key = self._table.keys[position]
        text = self._anchor(position)
        pattern = "".join(
            self._random.choice((character, character, character, ".", ".*", "")) for character in text
        ) + self._random.choice(("", "", ".*", "."))
        quoted = self._quoted(pattern) or self._quoted(self._random.choice((".*", "a.*", ".*b", "..", "", r"a\.b")))
        assert quoted is not None
        return Like(position, key, quoted.text, f"{self._name(key)} {self._case('like')} {quoted.written}")

    def _between(self) -> Node:
        position, key = self._key()
        low, high = self._literals(position, key, 2)
        if kinds_mixed([low, high]):
            return self._comparison()
        negated = self._random.random() < 0.3
        written = (
            f"{self._name(key)} {self._negation(negated)}{self._case('between')} {low.written}"
            f" {self._case('and')} {high.written}"
        )
        return Between(position, key, low, high, negated, written)

    def _in(self) -> Node:
        position, key = self._key()
        literals = self._literals(position, key, self._random.choice((1, 2, 2, 3, 5)))
        if kinds_mixed(literals):
            return self._comparison()
        negated = self._random.random() < 0.3
        listed = f"{self._space(0)},{self._space(0)}".join(literal.written for literal in literals)
        written = f"({self._name(key)}) {self._negation(negated)}{self._case('in')} ({listed})"
        return In(position, key, tuple(literals), negated, written)

    def _multi_in(self) -> Node:
        count = min(len(self._table.keys), self._random.choice((1, 2, 3)))
        positions = self._random.sample(range(len(self._table.keys)), count)
        keys = [self._table.keys[position] for position in positions]
        count = self._random.choice((1, 2, 3))
        columns = [self._literals(position, key, count) for position, key in zip(positions, keys, strict=True)]
        if any(kinds_mixed(column) for column in columns):
            return self._comparison()
        constants = tuple(zip(*columns, strict=True))
        negated = self._random.random() < 0.3
        struct = self._case("struct")
        names = ", ".join(self._name(key) for key in keys)
        listed = ", ".join(
            f"{self._case('const')} {struct}({', '.join(literal.written for literal in constant)})"
            for constant in constants
        )
        written = f"({struct}({names})) {self._negation(negated)}{self._case('in')} ({listed})"
        return MultiIn(tuple(positions), tuple(keys), constants, negated, written)

    def _key(self) -> tuple[int, Key]:
        """Seldom one that can be compared with nothing, unless there is no other."""
        positions = list(range(len(self._table.keys)))
        if self._random.random() >= self._stray:
            positions = [one for one in positions if self._table.keys[one].kind not in OPAQUE] or positions
        position = self._random.choice(positions)
        return position, self._table.keys[position]

    def _name(self, key: Key) -> str:
        name = key.name
        if name.startswith("`") or not re.fullmatch("[A-Za-z0-9_]+", name):
            return f"`{name.strip('`')}`"
        return self._random.choice((name, name, name.upper(), name.lower(), f"`{name}`"))

    def _anchor(self, position: int) -> str:
        """A value of the key, of some row or of its type."""
        key = self._table.keys[position]
        if self._random.random() < 0.75:
            return self._random.choice(self._table.rows)[position]
        return self._random.choice(ODD_TEXTS if key.is_text else POOLS.get(key.kind, ODD_TEXTS))

    def _literals(self, position: int, key: Key, count: int) -> list[Literal]:
        """Of one kind where that can be done."""
        drawn = [self._literal(position, key) for _ in range(count * 4)]
        first = drawn[0]
        like_first = [literal for literal in drawn if not kinds_mixed([first, literal])]
        return (like_first + [first] * count)[:count]

    def _literal(self, position: int, key: Key) -> Literal:
        if self._random.random() < self._stray:
            return self._random.choice(STRAY)
        for _ in range(5):
            found = self._written(key, self._anchor(position))
            if found is not None:
                return found
        return self._random.choice(STRAY)

    def _written(self, key: Key, text: str) -> Literal | None:
        """A literal that means `text` or nearly so, None when there is none."""
        if key.is_text:
            bare = self._bare(text) if self._random.random() < 0.3 else None
            return bare or self._quoted(text)
        value = value_of(key, text)
        if value is None:
            return None
        match key.kind:
            case "date":
                return self._date(str(value))
            case "timestamp":
                return self._random.choice((self._timestamp, self._quoted))(text) or self._date(str(value[0])[:10])
            case "boolean":
                return self._quoted(self._random.choice((text, text.upper(), text.lower())))
            case _:
                return self._number(text)

    def _number(self, text: str) -> Literal | None:
        """The number spelled in some way, or one beside it."""
        spelled = text.strip()
        if re.fullmatch("[+-]?[0-9]{1,30}", spelled):
            number = int(spelled) + self._random.choice((0, 0, 0, 0, 1, -1))
            sign, digits = "-" if number < 0 else "", str(abs(number))
            padded = f"{sign}{'0' * self._random.randint(0, 3)}{digits}"
            spelled = self._random.choice((f"{number}", f"{number}", padded, f"{number}.0", f"{number}.5"))
        elif re.fullmatch(r"-?[0-9]*\.[0-9]+", spelled) and self._random.random() < 0.5:
            spelled += "0"
        return (self._bare(spelled) if self._random.random() < 0.7 else None) or self._quoted(spelled)

    def _bare(self, text: str) -> Literal | None:
        """Without quotes, where the text can stand so."""
        if re.fullmatch("-?[0-9]+", text) and -(2**63) <= int(text) < 2**63:
            return Literal("integer", text, text)
        if re.fullmatch(r"-?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", text) and Decimal(text).is_finite():
            return Literal("decimal", text, text)
        return self._date(text) if re.fullmatch("[0-9]{4}-[01][0-9]-[0-2][0-9]", text) else None

    def _date(self, text: str) -> Literal | None:
        """`YYYY-MM-DD` in one of its forms, or None for a day that is none."""
        if value_of(Key("", "date"), text) is None:
            return None
        year, month, day = text.split("-")
        lenient = f"{year}-{int(month)}-{int(day)}"
        word = self._case("date")
        return self._random.choice((
            Literal("date", text, text), Literal("date", text, text), Literal("date", text, f"{word} '{text}'"),
            Literal("date", lenient, f'{word} "{lenient}"'), Literal("string", text, f"'{text}'"),
            Literal("string", lenient, f"'{lenient}'"), Literal("string", f"{text} 00:00:00", f"'{text} 00:00:00'"),
        ))  # fmt: skip

    def _timestamp(self, text: str) -> Literal | None:
        quoted = self._quoted(text)
        return quoted and Literal("timestamp", text, f"{self._case('timestamp')} {quoted.written}")

    def _quoted(self, text: str) -> Literal | None:
        """None for what has no spelling: both kinds of quotes, or a backslash before the closing one."""
        if re.search(r"(?<!\\)(?:\\\\)*\\$", text):
            return None
        for quote in self._random.sample("'\"", 2):
            if quote not in text:
                return Literal("string", text, f"{quote}{text}{quote}")
        return None

    def _negation(self, negated: bool) -> str:
        return f"{self._case('not')} " if negated else ""

    def _case(self, word: str) -> str:
        return self._random.choice((word, word.upper(), word.capitalize()))

    def _space(self, least: int) -> str:
        return self._random.choice((" ", " ", " ", "\t", "\n ", "" if not least else "  "))


def _is_or(node: Node) -> bool:
    return isinstance(node, Joined) and not node.is_and


def parts(node: Node) -> list[Node]:
    """The node's smallest parts first, the node itself last."""
    inner = [small for part in node.parts for small in parts(part)] if isinstance(node, Joined) else []
    return [*inner, node]
