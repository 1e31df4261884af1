"""What objects may be, by the answers of a metastore that is broken again and again: a change without an answer may
have been made, and nothing else may be unknown.
"""

import threading
from collections.abc import Set
from typing import NamedTuple

Value = int | None
"""The number that the last change wrote; None where the object is missing."""
VALUE = "value"
"""The parameter that has it."""


class Look(NamedTuple):
    """What was possible when a read began."""

    possible: Set[Value]
    asked: int


class Believed:
    """One object with one writer and any number of readers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._possible: frozenset[Value] = frozenset([None])
        self._asked: list[Value] = []

    @property
    def is_certain(self) -> bool:
        return len(self._possible) == 1

    @property
    def is_there(self) -> bool:
        return None not in self._possible

    def ask_for(self, value: Value) -> None:
        """A change to the value is on its way: both values are right from now on."""
        with self._lock:
            self._asked.append(value)
            self._possible |= {value}

    def acknowledge(self) -> None:
        """The last change is answered: no read that begins from now on may see another value."""
        with self._lock:
            self._possible = frozenset(self._asked[-1:])

    def look(self) -> Look:
        with self._lock:
            return Look(self._possible, len(self._asked))

    def may_be(self, value: Value, look: Look) -> bool:
        """Whether a read that began with the look, and ends now, may see the value."""
        with self._lock:
            return value in look.possible or value in self._asked[look.asked :]

    def may_exist(self, exists: bool, look: Look) -> bool:
        """Whether a list that was asked for with the look, and comes now, may have the object, or may not."""
        with self._lock:
            return any((value is not None) == exists for value in (*look.possible, *self._asked[look.asked :]))

    def found(self, value: Value) -> None:
        """The writer has read the value, with no change on its way: one without an answer was made if it shows."""
        with self._lock:
            if self._asked and value == self._asked[-1]:
                self._possible = frozenset([value])
