"""The text of partition and table filters: tokens, syntax tree, parser (semantics §4.1).

Differences from Hive's grammar, all on purpose: text after a complete expression is an error instead of being ignored;
`date '…'`, `timestamp '…'`, decimals and back-quoted keys of newer versions are understood; a key may start with `_`.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Final, NamedTuple, NoReturn, TypeAlias, TypeVar

import msgspec

from hms_gateway.metastore.vocabulary.typed_values import canonical_date, canonical_timestamp
from hms_gateway.runtime.limits import DEFAULT_LIMITS, Limits

_SHOWN_CHARACTERS_MAX: Final = 40
_DIGITS_OF_64_BITS: Final = 19


class FilterError(ValueError):
    """A filter cannot be parsed, or does not fit the keys; the text is that of the MetaException clients see."""


class Operator(Enum):
    """A comparison, by the way it is written."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="

    @property
    def mirrored(self) -> "Operator":
        """The operator with its sides exchanged: `5 < hr` is `hr > 5`."""
        return _MIRRORED.get(self, self)

    @property
    def negated(self) -> "Operator":
        """The operator that holds where this one does not: `hr >= 5` of `hr < 5`."""
        return _NEGATED[self]


_MIRRORED: Final = {
    Operator.LESS: Operator.GREATER,
    Operator.LESS_OR_EQUAL: Operator.GREATER_OR_EQUAL,
    Operator.GREATER: Operator.LESS,
    Operator.GREATER_OR_EQUAL: Operator.LESS_OR_EQUAL,
}
_NEGATED: Final = {
    Operator.EQUAL: Operator.NOT_EQUAL,
    Operator.NOT_EQUAL: Operator.EQUAL,
    Operator.LESS: Operator.GREATER_OR_EQUAL,
    Operator.GREATER_OR_EQUAL: Operator.LESS,
    Operator.GREATER: Operator.LESS_OR_EQUAL,
    Operator.LESS_OR_EQUAL: Operator.GREATER,
}


class LiteralKind(Enum):
    """How a literal was written."""

    STRING = "string"
    INTEGER = "integer"
    DECIMAL = "decimal"
    DATE = "date"
    TIMESTAMP = "timestamp"


class Literal(msgspec.Struct, frozen=True):
    """A value in a filter; `text` is as written, without quotes, a backslash in it kept."""

    kind: LiteralKind
    text: str


class Comparison(msgspec.Struct, frozen=True):
    key: str
    operator: Operator
    literal: Literal


class Like(msgspec.Struct, frozen=True):
    key: str
    text: str


class Between(msgspec.Struct, frozen=True):
    key: str
    low: Literal
    high: Literal
    negated: bool


class In(msgspec.Struct, frozen=True):
    key: str
    literals: tuple[Literal, ...]
    negated: bool


class MultiIn(msgspec.Struct, frozen=True):
    """Several keys together equal one of the rows (or, negated, none of them)."""

    keys: tuple[str, ...]
    rows: tuple[tuple[Literal, ...], ...]
    negated: bool


class IsNull(msgspec.Struct, frozen=True):
    """A key without value of its type, or (negated) with one. No text says this, expressions do."""

    key: str
    negated: bool


class And(msgspec.Struct, frozen=True):
    """At least two children, none of them an And."""

    children: "tuple[Filter, ...]"


class Or(msgspec.Struct, frozen=True):
    """At least two children, none of them an Or."""

    children: "tuple[Filter, ...]"


Condition: TypeAlias = Comparison | Like | Between | In | MultiIn | IsNull
Filter: TypeAlias = And | Or | Condition


def parse_filter(text: str | None, limits: Limits = DEFAULT_LIMITS) -> Filter | None:
    """The syntax tree of a filter; None for an absent or empty one, which selects everything.

    `filter_depth_max` bounds the alternation of AND and OR; brackets that change nothing do not count. Raises
    FilterError.
    """
    if not text:
        return None
    return _Parser(_tokens(text), limits).parse()


class _TokenKind(Enum):
    WORD = "word"
    KEYWORD = "keyword"
    QUOTED_KEY = "quoted key"
    STRING = "string"
    DATE = "date"
    DECIMAL = "decimal"
    INTEGER = "integer"
    OPERATOR = "operator"
    PUNCTUATION = "punctuation"
    END = "end"


class _Token(NamedTuple):
    kind: _TokenKind
    text: str
    offset: int


_KEYWORDS: Final = frozenset({"AND", "OR", "NOT", "LIKE", "BETWEEN", "IN", "STRUCT", "CONST"})
OPERATORS: Final = {operator.value: operator for operator in Operator} | {"<>": Operator.NOT_EQUAL}
_LITERAL_KINDS: Final = {
    _TokenKind.STRING: LiteralKind.STRING,
    _TokenKind.INTEGER: LiteralKind.INTEGER,
    _TokenKind.DECIMAL: LiteralKind.DECIMAL,
    _TokenKind.DATE: LiteralKind.DATE,
}
_LITERAL_PREFIXES: Final = {"DATE": LiteralKind.DATE, "TIMESTAMP": LiteralKind.TIMESTAMP}

_TOKEN = re.compile(
    r"""
      (?P<space>      [ \t\r\n]+ )
    | (?P<STRING>     "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' )
    | (?P<QUOTED_KEY> `[^`]+` )
    | (?P<DATE>       [0-9]{4}-[0-9]{2}-[0-9]{2} (?![A-Za-z0-9_]) )
    | (?P<DECIMAL>    -? (?: [0-9]+\.[0-9]* | \.[0-9]+ ) (?: [eE][+-]?[0-9]+ )? (?![A-Za-z0-9_]) )
    | (?P<INTEGER>    -? [0-9]+ (?![A-Za-z0-9_]) )
    | (?P<WORD>       [A-Za-z0-9_]+ )
    | (?P<OPERATOR>   <> | <= | >= | != | [=<>] )
    | (?P<PUNCTUATION> [(),] )
    """,
    re.VERBOSE | re.DOTALL,
)


def _tokens(text: str) -> Iterator[_Token]:
    """As they are asked for: of a text that is refused early, the rest is not read. Ends with END."""
    offset = 0
    while offset < len(text):
        found = _TOKEN.match(text, offset)
        if not found:
            raise _lexer_error(text, offset)
        if found.lastgroup != "space":
            yield _token(_TokenKind[found.lastgroup or ""], found[0], offset)
        offset = found.end()
    yield _Token(_TokenKind.END, "", len(text))


def _token(kind: _TokenKind, text: str, offset: int) -> _Token:
    if kind is _TokenKind.WORD and text.upper() in _KEYWORDS:
        return _Token(_TokenKind.KEYWORD, text.upper(), offset)
    if kind in (_TokenKind.STRING, _TokenKind.QUOTED_KEY):
        return _Token(kind, text[1:-1], offset)
    return _Token(kind, text, offset)


def _lexer_error(text: str, offset: int) -> FilterError:
    what = "a quote without its end" if text[offset] in "\"'`" else f"unexpected character {text[offset]!r}"
    return FilterError(f"Error parsing partition filter; lexer error: {what} at character {offset}; exception null")


class _Joined(msgspec.Struct, frozen=True):
    """An And or Or that brackets may still become a part of, so its children are in no tuple yet."""

    connective: type[And] | type[Or]
    children: deque[Filter]


_Item = TypeVar("_Item")
_Part: TypeAlias = tuple[Condition | _Joined, int]  # a node, and how deep AND and OR alternate in it


def _joined(connective: type[And] | type[Or], parts: Sequence[_Part]) -> _Part:
    """The parts under one connective; those that are such a connective themselves give their children."""
    if len(parts) == 1:
        return parts[0]
    runs: list[deque[Filter]] = [deque()]
    depth = 1
    for node, node_depth in parts:
        if isinstance(node, _Joined) and node.connective is connective:
            runs += [node.children, deque()]
            depth = max(depth, node_depth)
        else:
            runs[-1].append(_finished(node))
            depth = max(depth, node_depth + 1)
    return _Joined(connective, _concatenated(runs)), depth


def _concatenated(runs: Sequence[deque[Filter]]) -> deque[Filter]:
    """The longest run stays where it is, so that brackets in brackets move a child a few times only."""
    longest = max(range(len(runs)), key=lambda index: len(runs[index]))
    for run in reversed(runs[:longest]):
        runs[longest].extendleft(reversed(run))
    for run in runs[longest + 1 :]:
        runs[longest].extend(run)
    return runs[longest]


def _finished(node: Condition | _Joined) -> Filter:
    return node.connective(tuple(node.children)) if isinstance(node, _Joined) else node


class _Parser:
    """One pass with a stack of open brackets instead of recursion, so that no input can exhaust Python's stack."""

    def __init__(self, tokens: Iterator[_Token], limits: Limits) -> None:
        self._tokens = tokens
        self._limits = limits
        self._ahead: deque[_Token] = deque()
        self._literal_count = 0

    def parse(self) -> Filter:
        groups: list[list[list[_Part]]] = [[[]]]  # open brackets -> alternatives -> what holds together
        while True:
            if self._opens_group():
                self._next()
                groups.append([[]])
                if len(groups) > self._limits.filter_brackets_max:
                    raise _beyond("more brackets open at once", "filter_brackets_max", self._limits)
                continue
            groups[-1][-1].append((self._condition(), 0))
            while len(groups) > 1 and self._takes(_TokenKind.PUNCTUATION, ")"):
                closed = self._closed(groups.pop())
                groups[-1][-1].append(closed)
            if self._takes_keyword("OR"):
                groups[-1].append([])
            elif not self._takes_keyword("AND"):
                break
        if len(groups) > 1:
            self._fail("AND, OR or )")
        if self._peek().kind is not _TokenKind.END:
            self._fail("AND, OR or the end")
        return _finished(self._closed(groups[0])[0])

    def _closed(self, alternatives: list[list[_Part]]) -> _Part:
        node, depth = _joined(Or, [_joined(And, conjunction) for conjunction in alternatives])
        if depth > self._limits.filter_depth_max:
            raise _beyond("AND and OR nested deeper", "filter_depth_max", self._limits)
        return node, depth

    def _opens_group(self) -> bool:
        """Whether the bracket here groups conditions, rather than being the one round the key of IN."""
        if not self._is_at(0, _TokenKind.PUNCTUATION, "("):
            return False
        if self._is_at(1, _TokenKind.KEYWORD, "STRUCT"):
            return False
        return not (self._is_key_at(1) and self._is_at(2, _TokenKind.PUNCTUATION, ")"))

    def _condition(self) -> Condition:
        if self._takes(_TokenKind.PUNCTUATION, "("):
            return self._multi_in() if self._takes_keyword("STRUCT") else self._in()
        if self._starts_literal():
            return self._mirrored_comparison()
        key = self._key()
        if self._takes_keyword("LIKE"):
            return Like(key, self._like_text())
        negated = self._takes_keyword("NOT")
        if self._takes_keyword("BETWEEN"):
            return self._between(key, negated)
        if negated or self._peek().kind is not _TokenKind.OPERATOR:
            if self._is_at(0, _TokenKind.KEYWORD, "IN"):
                self._fail(f"the key of IN in brackets, ({key}) in (...)")
            self._fail("BETWEEN" if negated else "a comparison, LIKE or BETWEEN")
        return Comparison(key, OPERATORS[self._next().text], self._literal())

    def _mirrored_comparison(self) -> Comparison:
        literal = self._literal()
        if self._takes_keyword("LIKE"):
            raise FilterError(f"Value should be on the RHS for LIKE operator : Key <{self._key()}>")
        if self._peek().kind is not _TokenKind.OPERATOR:
            self._fail("a comparison")
        operator = OPERATORS[self._next().text]
        return Comparison(self._key(), operator.mirrored, literal)

    def _like_text(self) -> str:
        if self._peek().kind is not _TokenKind.STRING:
            self._fail("a quoted text")
        return self._next().text

    def _between(self, key: str, negated: bool) -> Between:
        low = self._literal()
        if not self._takes_keyword("AND"):
            self._fail("AND")
        high = self._literal()
        _check_same_kind("BETWEEN", [low, high])
        return Between(key, low, high, negated)

    def _in(self) -> In:
        key = self._key()
        self._expect(")")
        negated = self._in_keyword()
        literals = self._bracketed(self._literal)
        _check_same_kind("IN", literals)
        return In(key, literals, negated)

    def _multi_in(self) -> MultiIn:
        keys = self._bracketed(self._counted_key)
        self._expect(")")
        negated = self._in_keyword()
        rows = self._bracketed(lambda: self._constant_row(len(keys)))
        for column in zip(*rows, strict=True):
            _check_same_kind("IN", column)
        return MultiIn(keys, rows, negated)

    def _constant_row(self, key_count: int) -> tuple[Literal, ...]:
        self._takes_keyword("CONST")  # Hive 4 takes a row with it and without it.
        if not self._takes_keyword("STRUCT"):
            self._fail("STRUCT")
        row = self._bracketed(self._literal)
        if len(row) != key_count:
            raise FilterError(f"Error parsing partition filter : {len(row)} values for {key_count} keys in IN")
        return row

    def _in_keyword(self) -> bool:
        negated = self._takes_keyword("NOT")
        if not self._takes_keyword("IN"):
            self._fail("IN")
        return negated

    def _bracketed(self, item: Callable[[], _Item]) -> tuple[_Item, ...]:
        self._expect("(")
        items = [item()]
        while self._takes(_TokenKind.PUNCTUATION, ","):
            items.append(item())
        self._expect(")")
        return tuple(items)

    def _key(self) -> str:
        if not self._is_key_at(0):
            self._fail("a key")
        return self._next().text

    def _counted_key(self) -> str:
        self._count_literal()
        return self._key()

    def _starts_literal(self) -> bool:
        return self._peek().kind in _LITERAL_KINDS or self._literal_prefix() is not None

    def _literal_prefix(self) -> LiteralKind | None:
        """DATE or TIMESTAMP before a quoted text; without one they are keys like any other."""
        if self._peek().kind is not _TokenKind.WORD or self._peek(1).kind is not _TokenKind.STRING:
            return None
        return _LITERAL_PREFIXES.get(self._peek().text.upper())

    def _literal(self) -> Literal:
        self._count_literal()
        kind = self._literal_prefix()
        if kind is not None:
            self._next()
        else:
            kind = _LITERAL_KINDS.get(self._peek().kind)
        if kind is None:
            self._fail("a value")
        return _literal(kind, self._next().text)

    def _count_literal(self) -> None:
        self._literal_count += 1
        if self._literal_count > self._limits.filter_literals_max:
            raise _beyond("more values or keys", "filter_literals_max", self._limits)

    def _peek(self, ahead: int = 0) -> _Token:
        while len(self._ahead) <= ahead:
            token = next(self._tokens, None)
            if token is None:
                return self._ahead[-1]
            self._ahead.append(token)
        return self._ahead[ahead]

    def _next(self) -> _Token:
        """The token here; END stays."""
        token = self._peek()
        if token.kind is not _TokenKind.END:
            self._ahead.popleft()
        return token

    def _is_at(self, ahead: int, kind: _TokenKind, text: str) -> bool:
        token = self._peek(ahead)
        return token.kind is kind and token.text == text

    def _is_key_at(self, ahead: int) -> bool:
        return self._peek(ahead).kind in (_TokenKind.WORD, _TokenKind.QUOTED_KEY)

    def _takes(self, kind: _TokenKind, text: str) -> bool:
        taken = self._is_at(0, kind, text)
        if taken:
            self._next()
        return taken

    def _takes_keyword(self, word: str) -> bool:
        return self._takes(_TokenKind.KEYWORD, word)

    def _expect(self, punctuation: str) -> None:
        if not self._takes(_TokenKind.PUNCTUATION, punctuation):
            self._fail(punctuation)

    def _fail(self, expected: str) -> NoReturn:
        token = self._peek()
        found = "the end" if token.kind is _TokenKind.END else repr(token.text[:_SHOWN_CHARACTERS_MAX])
        raise FilterError(
            f"Error parsing partition filter : expected {expected}, found {found} at character {token.offset}"
        )


def _beyond(what: str, limit: str, limits: Limits) -> FilterError:
    return FilterError(f"Error parsing partition filter : {what} than {limit} = {getattr(limits, limit)}")


def _literal(kind: LiteralKind, text: str) -> Literal:
    """Dates and timestamps become canonical text, so that they can be compared with text keys, too."""
    if kind is LiteralKind.DATE:
        return Literal(kind, _valid(kind, canonical_date(text), text))
    if kind is LiteralKind.TIMESTAMP:
        return Literal(kind, _valid(kind, canonical_timestamp(text), text))
    if kind is LiteralKind.INTEGER:
        return Literal(kind, _valid(kind, text if _fits_64_bits(text) else None, text))
    return Literal(kind, text)


def _valid(kind: LiteralKind, canonical: str | None, text: str) -> str:
    if canonical is None:
        what = "an integer of 64 bits" if kind is LiteralKind.INTEGER else f"a {kind.value}"
        raise FilterError(f"Error parsing partition filter : {text[:_SHOWN_CHARACTERS_MAX]!r} is not {what}")
    return canonical


def _fits_64_bits(text: str) -> bool:
    digits = text.lstrip("-").lstrip("0") or "0"
    if len(digits) > _DIGITS_OF_64_BITS:
        return False
    return int(digits) <= (2**63 if text.startswith("-") else 2**63 - 1)


def _check_same_kind(what: str, literals: Sequence[Literal]) -> None:
    kinds = {LiteralKind.DECIMAL if literal.kind is LiteralKind.INTEGER else literal.kind for literal in literals}
    if len(kinds) > 1:
        raise FilterError(f"Error parsing partition filter : the values of {what} are of different types")
