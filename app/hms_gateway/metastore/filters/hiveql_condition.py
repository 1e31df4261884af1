"""A condition on partition keys, as WHERE of HiveQL has it, in the grammar of the metastore's filters (semantics §4.1).

That grammar has no NOT of its own, no NOT LIKE and no IS NULL, takes the key of IN in brackets, and writes `.*` for
LIKE's `%`. What it cannot say of a key is left to the caller where AND joins it to the rest. A value becomes the
literal that metastores compare with keys of its type: text in quotes, integers and dates without.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from hms_gateway.metastore.filters.grammar import OPERATORS, Operator
from hms_gateway.metastore.vocabulary.hiveql_tokens import CommandError, Token, TokenReader
from hms_gateway.metastore.vocabulary.partition_names import DEFAULT_PARTITION_NAME
from hms_gateway.metastore.vocabulary.patterns import parse_like
from hms_gateway.metastore.vocabulary.typed_values import (
    ValueClass,
    canonical_boolean,
    canonical_date,
    canonical_timestamp,
    class_sort_key,
    value_class,
)

_BRACKETS_MAX: Final = 100
_SOME_VALUE: Final = {
    ValueClass.DATE: "1970-01-01",
    ValueClass.TIMESTAMP: "1970-01-01 00:00:00",
    ValueClass.BOOLEAN: "true",
}
_CANONICAL: Final = {"DATE": canonical_date, "TIMESTAMP": canonical_timestamp}
_PLAIN_KEY: Final = re.compile(r"(?!(?:and|or|not|like|between|in|struct|const)$)[a-z_]\w*", re.IGNORECASE | re.ASCII)
_PLAIN_INTEGER: Final = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_QUOTED: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_LIKE_PIECE: Final = re.compile(r"\\[%_]|.", re.DOTALL)
_LIKE_TEXTS: Final = {"%": ".*", "_": ".", ".": r"\.", r"\%": "%", r"\_": "_"}
_LAST_BEFORE_SURROGATES: Final = "\ud7ff"
_AFTER_SURROGATES: Final = "\ue000"
_LAST_CHARACTER: Final = "\U0010ffff"


class ConditionCheck(NamedTuple):
    """A condition that no filter can say; `fits` decides it by the value of the key at `place`."""

    what: str
    begin: int
    place: int
    fits: Callable[[str], bool]


def metastore_filter(condition: str, keys: Sequence[tuple[str, str]]) -> str:
    """The filter that says what a condition on partition keys, given as (name, type), says. Raises CommandError."""
    text, checks = divided_condition(condition, keys)
    for check in checks:
        raise _without_counterpart(check)
    return text


def divided_condition(condition: str, keys: Sequence[tuple[str, str]]) -> tuple[str, Sequence[ConditionCheck]]:
    """A filter, empty for every partition, and what has to be true besides. Raises CommandError."""
    return _ConditionReader(condition, keys).divided()


def not_of_type(key: str, type_name: str, value: str) -> str | None:
    """The text that refuses a value of a partition; None for one that filters on the key can find."""
    kind = value_class(type_name)
    if kind is ValueClass.OPAQUE or value == DEFAULT_PARTITION_NAME or class_sort_key(kind, value) is not None:
        return None
    return f"'{value}' is not of type {type_name}, the type of {key}"


class _Key(NamedTuple):
    name: str
    type_name: str
    place: int
    begin: int

    @property
    def kind(self) -> ValueClass:
        return value_class(self.type_name)

    def __str__(self) -> str:
        return self.name if _PLAIN_KEY.fullmatch(self.name) else f"`{self.name}`"


class _Value(NamedTuple):
    text: str
    begin: int


class _Part(NamedTuple):
    """`connective` is the one that joins the text, empty for one condition; the text may be empty beside checks."""

    text: str
    connective: str = ""
    checks: tuple[ConditionCheck, ...] = ()


class _ConditionReader(TokenReader):
    """Each method is given whether its part is negated, so that NOT ends at the comparisons."""

    def __init__(self, text: str, keys: Sequence[tuple[str, str]]) -> None:
        super().__init__(text)
        self._types = {name.lower(): (name, type_name, place) for place, (name, type_name) in enumerate(keys)}
        self._open = 0

    def divided(self) -> tuple[str, Sequence[ConditionCheck]]:
        if self._is_at_end():
            return "", ()
        found = self._either(is_negated=False)
        if not self._is_at_end():
            raise self._expected("AND, OR or the end of the condition", ["AND", "OR"])
        return found.text, found.checks

    def _either(self, *, is_negated: bool) -> _Part:
        parts = [self._both(is_negated=is_negated)]
        while self._takes("OR"):
            parts.append(self._both(is_negated=is_negated))
        return _joined("and" if is_negated else "or", parts)

    def _both(self, *, is_negated: bool) -> _Part:
        parts = [self._one(is_negated=is_negated)]
        while self._takes("AND"):
            parts.append(self._one(is_negated=is_negated))
        return _joined("or" if is_negated else "and", parts)

    def _one(self, *, is_negated: bool) -> _Part:
        while self._takes("NOT"):
            is_negated = not is_negated
        is_group = self._peek() == "(" and self._peek(1) != "STRUCT" and self._peek(2) != ")"
        if not is_group:
            return self._condition(is_negated=is_negated)
        if self._open >= _BRACKETS_MAX:
            raise CommandError(f"more than {_BRACKETS_MAX} brackets are open here", self._position())
        self._at += 1
        self._open += 1
        found = self._either(is_negated=is_negated)
        self._open -= 1
        if not self._takes(")"):
            raise self._expected("AND, OR or )", ["AND", "OR"])
        return found

    def _condition(self, *, is_negated: bool) -> _Part:
        if self._starts_value():
            value = self._value()
            operator = self._operator().mirrored
            return self._comparison(self._key(), operator, value, is_negated=is_negated)
        is_bracketed = self._takes("(")
        if self._peek() == "STRUCT":
            return self._struct(is_bracketed=is_bracketed, is_negated=is_negated)
        key = self._key()
        if is_bracketed:
            self._needs(")")
        if self._peek() == "IS":
            return self._null(key, is_negated=is_negated)
        if self._peek() in ("NOT", "LIKE", "IN", "BETWEEN"):
            if self._takes("NOT"):
                is_negated = not is_negated
            return self._word_condition(key, is_negated=is_negated)
        return self._comparison(key, self._operator(), self._value(), is_negated=is_negated)

    def _word_condition(self, key: _Key, *, is_negated: bool) -> _Part:
        begin = self._position()
        word = self._needs_any("LIKE", "IN", "BETWEEN")
        if word == "LIKE":
            return self._like(key, begin, is_negated=is_negated)
        negation = "not " if is_negated else ""
        if word == "IN":
            values = self._values()
            return _Part(f"({key}) {negation}in ({', '.join(_literals(key, values))})")
        low = self._value()
        self._needs("AND")
        first, last = _literals(key, [low, self._value()])
        return _Part(f"{key} {negation}between {first} and {last}")

    def _comparison(self, key: _Key, operator: Operator, value: _Value, *, is_negated: bool) -> _Part:
        shown = operator.negated if is_negated else operator
        return _Part(f"{key} {shown.value} {_literals(key, [value])[0]}")

    def _null(self, key: _Key, *, is_negated: bool) -> _Part:
        begin = self._position()
        self._needs("IS")
        if self._takes("NOT"):
            is_negated = not is_negated
        self._needs("NULL")
        if key.kind is ValueClass.TEXT:
            return _Part(f"{key} {'!=' if is_negated else '='} '{DEFAULT_PARTITION_NAME}'")
        if is_negated and key.kind is not ValueClass.OPAQUE:
            # No condition on such a key is true without a value.
            some = _literals(key, [_Value(_SOME_VALUE.get(key.kind, "0"), begin)])[0]
            return _Part(f"{key} = {some} or {key} != {some}", "or")

        def fits(value: str) -> bool:
            return (value == DEFAULT_PARTITION_NAME) is not is_negated

        return _Part("", checks=(ConditionCheck(f"IS {'NOT ' * is_negated}NULL", begin, key.place, fits),))

    def _like(self, key: _Key, begin: int, *, is_negated: bool) -> _Part:
        if key.kind is not ValueClass.TEXT:
            raise CommandError(f"LIKE is for keys of type string; {key.name} is of type {key.type_name}", begin)
        at = self._position()
        pieces = _LIKE_PIECE.findall(self._string("a pattern in quotes, such as 'a%'"))
        text = "".join(_LIKE_TEXTS.get(piece, piece) for piece in pieces)
        if ("_", "*") in pairwise(pieces):
            raise CommandError("a filter of a metastore cannot say _* of this pattern", at)
        if not is_negated:
            return _Part(f"{key} like {_quoted(_Value(text, at))}")
        plain = "".join(piece[-1] for piece in pieces)
        if not {"%", "_"}.intersection(pieces):
            return _Part(f"{key} != {_quoted(_Value(plain, at))}")
        prefix = plain[:-1]
        if pieces[-1] != "%" or {"%", "_"}.intersection(pieces[:-1]) or prefix[-1:] in ("", _LAST_CHARACTER):
            pattern = parse_like(text)
            return _Part(
                "", checks=(ConditionCheck("NOT LIKE", begin, key.place, lambda value: not pattern.matches(value)),)
            )
        last = _AFTER_SURROGATES if prefix[-1] == _LAST_BEFORE_SURROGATES else chr(ord(prefix[-1]) + 1)
        low, high = _quoted(_Value(prefix, at)), _quoted(_Value(prefix[:-1] + last, at))
        return _Part(f"{key} < {low} or {key} >= {high}", "or")

    def _struct(self, *, is_bracketed: bool, is_negated: bool) -> _Part:
        """`struct(a, b) IN (struct(1, 2), …)`, as equalities."""
        self._needs("STRUCT", "(")
        keys = [self._key()]
        while self._takes(","):
            keys.append(self._key())
        self._needs(")")
        if is_bracketed:
            self._needs(")")
        if self._takes("NOT"):
            is_negated = not is_negated
        self._needs("IN", "(")
        rows = [self._row(keys, is_negated=is_negated)]
        while self._takes(","):
            rows.append(self._row(keys, is_negated=is_negated))
        self._needs(")")
        return _joined("and" if is_negated else "or", rows)

    def _row(self, keys: Sequence[_Key], *, is_negated: bool) -> _Part:
        begin = self._position()
        self._needs("STRUCT")
        values = self._values()
        if len(values) != len(keys):
            raise CommandError(f"{len(values)} values for {len(keys)} keys", begin)
        parts = [
            self._comparison(key, Operator.EQUAL, value, is_negated=is_negated)
            for key, value in zip(keys, values, strict=True)
        ]
        return _joined("or" if is_negated else "and", parts)

    def _key(self) -> _Key:
        token = self._peek_token()
        if token is None or not token.is_name or self._peek(1) == "(":
            raise self._expected("a partition key (a metastore evaluates no functions)")
        if token.text.lower() not in self._types:
            known = ", ".join(name for name, _, _ in self._types.values())
            raise CommandError(f"{token.text} is not a partition key; the table is partitioned by {known}", token.begin)
        self._at += 1
        return _Key(*self._types[token.text.lower()], token.begin)

    def _operator(self) -> Operator:
        if self._peek() not in OPERATORS:
            raise self._expected("a comparison, LIKE, IN or BETWEEN", ["LIKE", "IN", "BETWEEN", "NOT"])
        operator = OPERATORS[self._next("a comparison").upper]
        if operator is Operator.EQUAL:
            self._takes("=")
        return operator

    def _starts_value(self) -> bool:
        token = self._peek_token()
        if token is None:
            return False
        if token.upper in ("DATE", "TIMESTAMP"):
            return self._at + 1 < len(self._tokens) and self._tokens[self._at + 1].is_string
        return token.is_string or token.upper in ("-", ".", "TRUE", "FALSE") or token.upper[:1].isdigit()

    def _values(self) -> list[_Value]:
        """In brackets."""
        self._needs("(")
        values = [self._value()]
        while self._takes(","):
            values.append(self._value())
        if not self._takes(")"):
            raise self._expected(", or )")
        return values

    def _value(self) -> _Value:
        begin = self._position()
        if not self._starts_value():
            raise self._expected("a value")
        kind = self._takes_any("DATE", "TIMESTAMP")
        if self._is_string():
            text = self._string("a value")
            canonical = _CANONICAL[kind](text) if kind else text
            if canonical is None:
                raise CommandError(f"{_shown(text)} is not of type {kind.lower()}", begin)
            return _Value(canonical, begin)
        # A number has signs and points in it, which are tokens of their own.
        token = self._next("a value")
        while token.upper[:1] in ("-", ".", *"0123456789") and (after := self._peek_token()) is not None:
            if after.begin != token.end or not (after.upper in (".", "-", "+") or after.upper[:1].isdigit()):
                break
            token = self._next("a value")
        return _Value(self._text[begin : token.end], begin)

    def _peek_token(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None


def _without_counterpart(check: ConditionCheck) -> CommandError:
    known = "; NOT LIKE 'text%' may be anywhere" if check.what == "NOT LIKE" else ""
    beside = "hms-gateway sql evaluates it, but only where AND, not OR or NOT, joins it to the rest"
    return CommandError(f"no filter of a metastore can express this {check.what}; {beside}{known}", check.begin)


def _joined(connective: str, parts: Sequence[_Part]) -> _Part:
    if len(parts) == 1:
        return parts[0]
    checks = tuple(check for part in parts for check in part.checks)
    if checks and connective == "or":
        raise _without_counterpart(checks[0])
    said = [part for part in parts if part.text]
    if len(said) == 1:
        return said[0]._replace(checks=checks)
    texts = (part.text if part.connective in ("", connective) else f"({part.text})" for part in said)
    return _Part(f" {connective} ".join(texts), connective, checks)


def _literals(key: _Key, values: Sequence[_Value]) -> list[str]:
    """All of one kind, as IN and BETWEEN need them. Raises CommandError."""
    if key.kind is ValueClass.OPAQUE:
        raise CommandError(f"{key.name} is of type {key.type_name}, which a metastore does not compare", key.begin)
    for value in values:
        # An integer key may be compared with 1.5, which is no value of it.
        compared_as = ValueClass.DECIMAL if key.kind is ValueClass.INTEGER else key.kind
        if class_sort_key(compared_as, value.text) is None:
            raise CommandError(
                f"{_shown(value.text)} is not of type {key.type_name}, the type of {key.name}", value.begin
            )
    match key.kind:
        case ValueClass.DATE:
            return [canonical_date(value.text) or "" for value in values]
        case ValueClass.TIMESTAMP:
            return [f"timestamp '{canonical_timestamp(value.text)}'" for value in values]
        case ValueClass.BOOLEAN:
            return [f"'{canonical_boolean(value.text)}'" for value in values]
    if key.kind.is_numeric and all(_PLAIN_INTEGER.fullmatch(value.text) for value in values):
        return [value.text for value in values]
    return [_quoted(value) for value in values]


def _shown(text: str) -> str:
    return f"'{text[:40]}'"


def _quoted(value: _Value) -> str:
    """Raises CommandError for a text that the grammar, which has no escapes, cannot hold."""
    for mark in "'\"":
        text = f"{mark}{value.text}{mark}"
        if _QUOTED.fullmatch(text):
            return text
    raise CommandError(
        "a filter of a metastore cannot hold this text: both kinds of quotes, or a \\ at its end", value.begin
    )
