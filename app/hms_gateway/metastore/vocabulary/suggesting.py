"""What may have been meant by a word that is not known."""

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str], *, most: int = 3, likeness: float = 0.6) -> str:
    """`; did you mean x or y?`, or nothing when no known word is near."""
    near = difflib.get_close_matches(word, list(known), n=most, cutoff=likeness)
    return f"; did you mean {' or '.join(near)}?" if near else ""
