"""Patterns of names in rules: `*` is any run of characters, everything else means itself."""

import re
from collections.abc import Callable

import msgspec


class NamePattern(msgspec.Struct, frozen=True):
    """A pattern over normalised names."""

    text: str

    @property
    def matches_everything(self) -> bool:
        return not self.text.strip("*")

    def matcher(self) -> Callable[[str], bool]:
        """A function of a name; the usual kinds of pattern are matched without a regular expression."""
        if self.matches_everything:
            return lambda name: True
        text, stars = self.text, self.text.count("*")
        if stars == 0:
            return text.__eq__
        if stars == 1 and text.endswith("*"):
            prefix = text[:-1]
            return lambda name: name.startswith(prefix)
        found = re.compile(".*".join(map(re.escape, re.sub(r"\*+", "*", text).split("*"))), re.DOTALL).fullmatch
        return lambda name: found(name) is not None
