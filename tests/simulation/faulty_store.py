"""A server's connection to the one database of a simulation, which is lost now and then."""

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any, Protocol, TypeVar

from hms_gateway.metastore.ports.store import OutcomeUnknown, StoreUnavailable

T = TypeVar("T")


class Database(Protocol):
    """Units of work one after the other; one that raises changes nothing."""

    local_skew_ms: int
    """By how much the clock of the server that works on it is wrong."""

    def read(self, work: Callable[[Any], T]) -> T: ...
    def write(self, work: Callable[[Any], T]) -> T: ...


class Undone(Exception):
    """Ends a unit of work that is not to be committed."""


class FaultyStore:
    """`faults` is how likely each kind of fault is for a unit of work, one way or the other."""

    def __init__(self, store: Database, random: Random, skew_ms: int) -> None:
        self.store = store
        self.skew_ms = skew_ms
        self.faults = 0.0
        self._random = random

    def read(self, work: Callable[[Any], T]) -> T:
        return self.store.read(work)

    def write(self, work: Callable[[Any], T]) -> T:
        """The connection may be lost before the work, after it, and after the commit; or it has to be done again."""
        self.store.local_skew_ms = self.skew_ms
        fault = self._random.random() / self.faults if self.faults else 4
        if fault < 1:
            raise StoreUnavailable("lost before anything was done")
        if fault < 3:
            self.undo(work)
        if fault < 2:
            raise StoreUnavailable("lost before the commit")
        result = self.store.write(work)
        if 3 <= fault < 4:
            raise OutcomeUnknown("lost after the commit")
        return result

    def undo(self, work: Callable[[Any], Any]) -> None:
        """As far as the commit, which fails: the connection is lost, or two units of work could not be serialized."""

        def undone(transaction: Any) -> None:
            work(transaction)
            raise Undone

        with suppress(Undone):
            self.store.write(undone)
