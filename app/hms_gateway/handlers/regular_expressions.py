"""Whether a text can be a regular expression of Java, decided in one pass and without compiling it.

What a client sends could take any time and memory to compile, and Python would keep the result. So only what no dialect
accepts is found: brackets without their other half, a quantifier with nothing before it, a backslash at the end.
"""

import re
from typing import Final

# Quoted text, an escaped character, a class up to its first member (where `]` means itself), what opens a group,
# counts, and single characters. No alternative begins like another that can fail after it.
_PIECE: Final = re.compile(
    r"""
      (?P<quoted>     \\Q (?: [^\\] | \\(?!E) )*+ (?: \\E )? )
    | (?P<escaped>    \\ . )
    | (?P<class>      \[ \^? \]? )
    | (?P<open>       \( (?: \? [^)]? )? )
    | (?P<close>      \) )
    | (?P<quantifier> [*+?] | \{ [0-9]++ (?: , [0-9]*+ )? \} )
    | (?P<bar>        \| )
    | (?P<plain>      [^\\] )
    """,
    re.VERBOSE | re.DOTALL,
)
_COUNT_DIGITS_MAX: Final = 9


def complaint_about(text: str) -> str | None:
    """What is wrong with a regular expression, None when nothing is."""
    groups, at, repeatable = 0, 0, False
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            return f"a backslash at the end, at character {at}"
        at = piece.end()
        match piece.lastgroup:
            case "class":
                closed = _end_of_class(text, at)
                if closed is None:
                    return f"[ without ] at character {piece.start()}"
                at, repeatable = closed, True
            case "open":
                groups, repeatable = groups + 1, False
            case "close":
                if not groups:
                    return f") without ( at character {piece.start()}"
                groups, repeatable = groups - 1, True
            case "quantifier":
                if not repeatable:
                    return f"nothing to repeat at character {piece.start()}"
                if not _counts_fit(piece[0]):
                    return f"a count that is too large at character {piece.start()}"
            case "bar":
                repeatable = False
            case _:
                repeatable = True
    return "( without )" if groups else None


def _end_of_class(text: str, at: int) -> int | None:
    """After the class that is open at `at`; classes of Java may hold classes."""
    depth = 1
    while at < len(text):
        character = text[at]
        at += 2 if character == "\\" else 1
        depth += (character == "[") - (character == "]")
        if not depth:
            return at
    return None


def _counts_fit(quantifier: str) -> bool:
    counts = [count for count in quantifier.strip("{}").split(",") if count]
    if any(len(count) > _COUNT_DIGITS_MAX for count in counts):
        return False
    return len(counts) < 2 or not quantifier.startswith("{") or int(counts[0]) <= int(counts[1])
