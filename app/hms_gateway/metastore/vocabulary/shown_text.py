"""Text of callers as error messages repeat it: bounded, so that no answer grows with a caller's mistake."""

from typing import Final

SHOWN_CHARACTERS_MAX: Final = 200


def shown(text: str | None) -> str:
    """`text` or its beginning; `null` for none, as Java prints it."""
    if text is None:
        return "null"
    return text if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[:SHOWN_CHARACTERS_MAX]}…"
