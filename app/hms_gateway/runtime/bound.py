"""A context variable that has a value for as long as a `with` block lasts."""

from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Generic, TypeVar

T = TypeVar("T")


class bound(AbstractContextManager[None], Generic[T]):
    """Sets `variable` inside the block, and what it was before behind it.

    A class, because a generator takes three times as long, and every call enters several of these.
    """

    __slots__ = ("_token", "_value", "_variable")

    def __init__(self, variable: ContextVar[T], value: T) -> None:
        self._variable = variable
        self._value = value

    def __enter__(self) -> None:
        self._token = self._variable.set(self._value)

    def __exit__(self, *_: object) -> None:
        self._variable.reset(self._token)
