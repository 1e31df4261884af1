"""What may have been meant by a word that is not known."""

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean x or y?`, or nothing when no known word is near."""
    near = difflib.get_close_matches(word, list(known), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""
