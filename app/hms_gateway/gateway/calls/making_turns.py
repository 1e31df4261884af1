"""Whose thread makes a chunk of a long reply: one at a time, of users in turn, each after a turn of the event loop.

A thread that makes chunks competes with the event loop for the interpreter, which the loop gives up some twenty times
in a call that it answers. Two such threads hand the interpreter to each other, and the loop comes third. So while
several replies are made, one chunk is made at a time, and the loop lets the next one begin when it has done what was
there to do. A reply that is made alone waits for nothing.
"""

import asyncio
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager

from hms_gateway.runtime.event_loop import call_in_loop

# A chunk that takes longer waits for something else than the interpreter, such as a database.
CHUNK_SECONDS_MAX = 0.02


class _Turn:
    """Of one thread to make one chunk. It has a number from when it begins."""

    __slots__ = ("begins", "number")

    def __init__(self) -> None:
        self.number = 0
        self.begins = threading.Lock()
        self.begins.acquire()


class MakingTurns:
    """Used from the threads that make chunks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._replies = 0
        self._waiting: OrderedDict[str | None, deque[_Turn]] = OrderedDict()
        # Whether a turn was given that has not ended, the number of the last one, and when it began.
        self._is_taken = False
        self._number = 0
        self._begun = 0.0

    @contextmanager
    def reply(self) -> Iterator[None]:
        """Inside, a long reply is made."""
        with self._lock:
            self._replies += 1
        try:
            yield
        finally:
            with self._lock:
                self._replies -= 1

    @contextmanager
    def of(self, user: str | None, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """Inside, the calling thread makes a chunk for `user`."""
        turn = self._ask(user)
        while not turn.begins.acquire(timeout=CHUNK_SECONDS_MAX):
            self._pass_over()
        try:
            yield
        finally:
            self._leave(turn.number, loop)

    def _ask(self, user: str | None) -> "_Turn":
        turn = _Turn()
        with self._lock:
            if self._is_taken:
                self._waiting.setdefault(user, deque()).append(turn)
            else:
                self._take(turn)
        return turn

    def _leave(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            if number != self._number:
                # Another one has the turn already.
                return
            # It stays taken until the loop has come by.
            self._is_taken = bool(self._waiting) or self._replies > 1
            is_given = self._is_taken
            self._begun = time.monotonic()
        if is_given and not call_in_loop(loop, loop.call_soon, self._give, number):
            self._give(number)

    def _give(self, number: int) -> None:
        """After the turn of this number: to the user whose last turn is the longest ago."""
        with self._lock:
            if number != self._number:
                return
            if not self._waiting:
                self._is_taken = False
                return
            user, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[user] = turns
            self._take(turn)

    def _take(self, turn: "_Turn") -> None:
        """With the lock held."""
        self._is_taken = True
        self._number += 1
        self._begun = time.monotonic()
        turn.number = self._number
        turn.begins.release()

    def _pass_over(self) -> None:
        """One that takes too long does not keep the others waiting."""
        with self._lock:
            number, is_late = self._number, time.monotonic() - self._begun > CHUNK_SECONDS_MAX
        if is_late:
            self._give(number)
