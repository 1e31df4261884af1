"""Name patterns (`a*|b`) and the LIKE of filters: parsed once, then matched here or translated into SQL.

Both are what is left of a regular expression once Hive has turned it into SQL LIKE (semantics §1.5, §4.4): `.*` is any
run, any other `.` exactly one character, `\\.` a dot, and every other character stands for itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from app.metastore.names import trim


class Wildcard(Enum):
    """What a token may be besides literal text."""

    ANY_ONE = "_"
    ANY_RUN = "%"


Token: TypeAlias = str | Wildcard
Alternative: TypeAlias = tuple[Token, ...]

_GLOB_OF: Final = {Wildcard.ANY_ONE: "?", Wildcard.ANY_RUN: "*"}


@dataclass(frozen=True, slots=True)
class Pattern:
    """Alternatives of tokens; a text matches when it equals one alternative from its first to its last character.

    With `folds_case` the tokens are lower-case and are compared with the lower-cased text.
    """

    alternatives: tuple[Alternative, ...]
    folds_case: bool

    @property
    def matches_everything(self) -> bool:
        """Whether no text at all is refused, so that a query needs no condition."""
        return (Wildcard.ANY_RUN,) in self.alternatives

    @property
    def literals(self) -> tuple[str, ...] | None:
        """The texts that match, when there is no wildcard anywhere (equality can use an index); else None."""
        texts = []
        for alternative in self.alternatives:
            if any(isinstance(token, Wildcard) for token in alternative):
                return None
            texts.append("".join(_literal_text(alternative)))
        return tuple(texts)

    def matches(self, text: str) -> bool:
        """Whether `text` matches, in time proportional to text length times pattern length."""
        compared = text.lower() if self.folds_case else text
        return any(_matches_alternative(alternative, compared) for alternative in self.alternatives)

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
    return Pattern(tuple(_tokens(alternative.replace("*", ".*")) for alternative in alternatives), folds_case=True)


def parse_like(text: str) -> Pattern:
    """The right side of LIKE in a partition or table filter: case-sensitive, no alternatives (semantics §4.4)."""
    return Pattern((_tokens(text),), folds_case=False)


def _java_split(text: str) -> list[str]:
    """Split on `|` as Java does: trailing empty parts vanish, except when there was nothing to split."""
    if "|" not in text:
        return [text]
    parts = text.split("|")
    while parts and not parts[-1]:
        parts.pop()
    return parts


def _tokens(expression: str) -> Alternative:
    tokens: list[Token] = []
    for token in _raw_tokens(expression):
        if isinstance(token, Wildcard):
            if token is not Wildcard.ANY_RUN or not tokens or tokens[-1] is not Wildcard.ANY_RUN:
                tokens.append(token)
        elif tokens and isinstance(tokens[-1], str):
            tokens[-1] += token
        else:
            tokens.append(token)
    return tuple(tokens)


def _raw_tokens(expression: str) -> Iterator[Token]:
    position = 0
    while position < len(expression):
        pair = expression[position : position + 2]
        if pair == ".*":
            yield Wildcard.ANY_RUN
        elif pair == "\\.":
            yield "."
        else:
            yield Wildcard.ANY_ONE if pair[0] == "." else pair[0]
            position += 1
            continue
        position += 2


def _matches_alternative(alternative: Alternative, text: str) -> bool:
    """Greedy matching that on a mismatch returns only to the latest run, so that it cannot explode."""
    symbols = [symbol for token in alternative for symbol in ((token,) if isinstance(token, Wildcard) else token)]
    at_symbol = at_text = 0
    run_symbol, run_text = -1, 0
    while at_text < len(text):
        symbol = symbols[at_symbol] if at_symbol < len(symbols) else None
        if symbol is Wildcard.ANY_RUN:
            run_symbol, run_text = at_symbol, at_text
            at_symbol += 1
        elif symbol is Wildcard.ANY_ONE or symbol == text[at_text]:
            at_symbol += 1
            at_text += 1
        elif run_symbol >= 0:
            run_text += 1
            at_symbol, at_text = run_symbol + 1, run_text
        else:
            return False
    return all(symbol is Wildcard.ANY_RUN for symbol in symbols[at_symbol:])


def _literal_text(alternative: Alternative) -> Iterator[str]:
    return (token for token in alternative if isinstance(token, str))


def _as_like(alternative: Alternative, escape: str) -> str:
    escapes = str.maketrans({character: escape + character for character in ("%", "_", escape)})
    return "".join(token.value if isinstance(token, Wildcard) else token.translate(escapes) for token in alternative)


def _as_glob(alternative: Alternative) -> str:
    escapes = str.maketrans({character: f"[{character}]" for character in "*?["})
    globs = (_GLOB_OF[token] if isinstance(token, Wildcard) else token.translate(escapes) for token in alternative)
    return "".join(globs)
