"""Name patterns (`a*|b`) and the LIKE of filters: parsed once, then matched here or translated into SQL.

Both are what is left of a regular expression once Hive has turned it into SQL LIKE (semantics §1.5, §4.4): `.*` is any
run, any other `.` exactly one character, `\\.` a dot, and every other character means itself.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby
from typing import Final, TypeAlias

from hms_gateway.metastore.vocabulary.names import trim
from hms_gateway.rpc.structs.catalogs import prefix_of


class Wildcard(Enum):
    """What a token may be besides literal text."""

    ANY_ONE = "_"
    ANY_RUN = "%"


Token: TypeAlias = str | Wildcard
Alternative: TypeAlias = tuple[Token, ...]

_SQL_WILDCARDS: Final[dict[str, Token]] = {wildcard.value: wildcard for wildcard in Wildcard}
# No text that is stored has them.
_FIRST_SURROGATE: Final = 0xD800
_AFTER_SURROGATES: Final = 0xE000
_GLOB_OF: Final = {Wildcard.ANY_ONE: "?", Wildcard.ANY_RUN: "*"}


@dataclass(frozen=True, slots=True)
class Pattern:
    """Alternatives of tokens; a text matches when it equals one alternative from its first to its last character.

    With `folds_case` the tokens are lower-case and are compared with the lower-cased text.
    """

    alternatives: tuple[Alternative, ...]
    folds_case: bool
    _shortest: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_shortest", tuple(map(_length, self.alternatives)))

    @property
    def matches_everything(self) -> bool:
        """Whether no text at all is refused, so that a query needs no condition."""
        return (Wildcard.ANY_RUN,) in self.alternatives

    @property
    def literals(self) -> tuple[str, ...]:
        """The alternatives without wildcards: equality can use an index."""
        return tuple("".join(_literal_text(each)) for each in self.alternatives if not _has_wildcards(each))

    @property
    def without_literals(self) -> "Pattern":
        """The other alternatives, each once."""
        return Pattern(tuple(filter(_has_wildcards, dict.fromkeys(self.alternatives))), self.folds_case)

    def after(self, prefix: str) -> "Pattern":
        """The pattern of the same texts with `prefix` before each."""
        return (
            Pattern(tuple(_joined((prefix, *each)) for each in self.alternatives), self.folds_case) if prefix else self
        )

    def matches(self, text: str) -> bool:
        """Whether `text` matches. What is longer than the text is refused unread: the pattern may be any caller's."""
        compared = text.lower() if self.folds_case else text
        return any(
            shortest <= len(compared) and _matches_alternative(alternative, compared)
            for alternative, shortest in zip(self.alternatives, self._shortest, strict=True)
        )

    def like_alternatives(self, escape: str = "\\") -> list[str]:
        """Each alternative as a SQL LIKE pattern, with `escape` before literal `%`, `_` and itself.

        LIKE must compare case-sensitively (SQLite's does not: use `glob_alternatives` there); with `folds_case`,
        against the lower-cased column.
        """
        return [_as_like(alternative, escape) for alternative in self.alternatives]

    def glob_alternatives(self) -> list[str]:
        """Each alternative as a pattern for SQLite's GLOB, which is case-sensitive where its LIKE is not."""
        return [_as_glob(alternative) for alternative in self.alternatives]


def parse_pattern(text: str) -> Pattern:
    """The pattern of get_databases, get_tables, get_table_meta and get_functions (semantics §1.5).

    No text is an error. Hive lower-cases all but the get_databases pattern, then compares all of them ignoring case, so
    one rule serves every caller. An absent pattern means "all" and is the caller's case.
    """
    alternatives = _java_split(trim(text).lower())
    return Pattern(
        tuple(_joined(_pieces(alternative.replace("*", ".*"))) for alternative in alternatives), folds_case=True
    )


def parse_database_pattern(key: str | None) -> tuple[str, Pattern | None]:
    """The prefix of the catalog that a pattern of databases is about, and the pattern of the names in it.

    No names after the prefix are all of them, as is no pattern.
    """
    prefix = prefix_of(key)
    names = None if key is None else key[len(prefix) :]
    return prefix, None if names is None or (prefix and not names) else parse_pattern(names)


def parse_like(text: str) -> Pattern:
    """The right side of LIKE in a partition or table filter: case-sensitive, no alternatives (semantics §4.4)."""
    return Pattern((_joined(_pieces(text)),), folds_case=False)


def parse_sql_like(text: str) -> Pattern:
    """A pattern as SQL writes it: `%` is any run, `_` one character, nothing is escaped."""
    pieces = (_SQL_WILDCARDS.get(part, part) for part in re.split("([%_])", text) if part)
    return Pattern((_joined(pieces),), folds_case=False)


def _java_split(text: str) -> list[str]:
    """Split on `|` as Java does: trailing empty parts vanish, except when there was nothing to split."""
    if "|" not in text:
        return [text]
    parts = text.split("|")
    while parts and not parts[-1]:
        parts.pop()
    return parts


# A run, one character, an escaped dot, and everything between.
_PIECE: Final = re.compile(r"(?P<run>\.\*)|(?P<one>\.)|(?P<dot>\\\.)|(?P<text>\\|[^.\\]+)")


def _pieces(expression: str) -> Iterator[Token]:
    for piece in _PIECE.finditer(expression):
        match piece.lastgroup:
            case "run":
                yield Wildcard.ANY_RUN
            case "one":
                yield Wildcard.ANY_ONE
            case "dot":
                yield "."
            case _:
                yield piece[0]


def _joined(pieces: Iterable[Token]) -> Alternative:
    """Literal texts that follow each other become one, and so do runs."""
    tokens: list[Token] = []
    for is_literal, group in groupby(pieces, lambda piece: isinstance(piece, str)):
        if is_literal:
            tokens.append("".join(piece for piece in group if isinstance(piece, str)))
            continue
        for wildcard in group:
            if wildcard is Wildcard.ANY_ONE or not tokens or tokens[-1] is not Wildcard.ANY_RUN:
                tokens.append(wildcard)
    return tuple(tokens)


def _matches_alternative(alternative: Alternative, text: str) -> bool:
    """Each part between two runs is found as early as it can be; the last one has to end the text."""
    parts = _between_runs(alternative)
    if len(parts) == 1:
        return len(text) == _length(parts[0]) and _fits(parts[0], text, 0)
    first, *inner, last = parts
    at, end = _length(first), len(text) - _length(last)
    if at > end or not _fits(first, text, 0) or not _fits(last, text, end):
        return False
    for part in inner:
        at = _find(part, text, at, end)
        if at < 0:
            return False
        at += _length(part)
    return True


def _between_runs(alternative: Alternative) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in alternative:
        if token is Wildcard.ANY_RUN:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _find(part: Sequence[Token], text: str, start: int, end: int) -> int:
    """Where a part first is in `text[start:end]`, -1 for nowhere."""
    if len(part) == 1 and isinstance(part[0], str):
        return text.find(part[0], start, end)
    last = end - _length(part)
    return next((at for at in range(start, last + 1) if _fits(part, text, at)), -1)


def _fits(part: Sequence[Token], text: str, at: int) -> bool:
    for token in part:
        if isinstance(token, str) and not text.startswith(token, at):
            return False
        at += _width(token)
    return True


def containing(text: str) -> Pattern:
    """What has the text anywhere in it, whatever the case; `*` is any run of characters."""
    runs = [run.lower() for run in text.split("*") if run]
    tokens: list[Token] = [Wildcard.ANY_RUN]
    for run in runs:
        tokens += [run, Wildcard.ANY_RUN]
    return Pattern((tuple(tokens),), folds_case=True)


def end_of_beginning(text: str) -> str | None:
    """The first text, by code points, after all that begin with `text`; None where every text after it does."""
    begins = text.rstrip(chr(sys.maxunicode))
    if not begins:
        return None
    last = ord(begins[-1]) + 1
    return begins[:-1] + chr(_AFTER_SURROGATES if last == _FIRST_SURROGATE else last)


def _length(part: Sequence[Token]) -> int:
    return sum(map(_width, part))


def _width(token: Token) -> int:
    """How many characters a token takes, at least."""
    if isinstance(token, str):
        return len(token)
    return 1 if token is Wildcard.ANY_ONE else 0


def _has_wildcards(alternative: Alternative) -> bool:
    return any(isinstance(token, Wildcard) for token in alternative)


def _literal_text(alternative: Alternative) -> Iterator[str]:
    return (token for token in alternative if isinstance(token, str))


def _as_like(alternative: Alternative, escape: str) -> str:
    escapes = str.maketrans({character: escape + character for character in ("%", "_", escape)})
    return "".join(token.value if isinstance(token, Wildcard) else token.translate(escapes) for token in alternative)


def _as_glob(alternative: Alternative) -> str:
    escapes = str.maketrans({character: f"[{character}]" for character in "*?["})
    globs = (_GLOB_OF[token] if isinstance(token, Wildcard) else token.translate(escapes) for token in alternative)
    return "".join(globs)
