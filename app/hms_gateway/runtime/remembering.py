"""Remembers what functions of texts gave, but not for long texts: those come from callers, and could be of any size."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

CHARACTERS_MAX = 1_000


def remembered(entries_max: int, characters: Callable[P, int]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Like lru_cache, for arguments of at most CHARACTERS_MAX `characters`; longer ones are computed each time."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        known = lru_cache(entries_max)(function)

        @wraps(function)
        def answer(*arguments: P.args, **named: P.kwargs) -> T:
            if characters(*arguments, **named) > CHARACTERS_MAX:
                return function(*arguments, **named)
            return known(*arguments, **named)  # type: ignore[arg-type]

        return answer

    return decorate
