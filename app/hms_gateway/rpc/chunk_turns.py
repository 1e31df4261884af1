"""Chunks of long replies are made in turn: what the thread of a call goes through for each."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

Turn = Callable[[], AbstractContextManager[None]]


class _OfThread(threading.local):
    # In threads that answer no calls, such as tests, nothing waits.
    turn: Turn = staticmethod(nullcontext)


_of_thread = _OfThread()


def take_turns(turn: Turn) -> None:
    """From now on the calling thread makes each chunk inside of what `turn` gives."""
    _of_thread.turn = turn


def in_turn() -> AbstractContextManager[None]:
    """Inside, it is the calling thread's turn to make a chunk."""
    return _of_thread.turn()
