"""Chunks of long replies are made one at a time, of users in turn, with a turn of the event loop between them."""

import threading
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from hms_gateway.gateway.calls import making_turns
from hms_gateway.gateway.calls.making_turns import MakingTurns
from tests.support.patience import PATIENCE_SECONDS, until


class HandLoop:
    """An event loop that calls what it was handed when the test says so."""

    def __init__(self) -> None:
        self._handed: list[tuple[Callable[..., object], tuple[object, ...]]] = []

    def call_soon_threadsafe(self, function: Callable[..., object], *arguments: object) -> None:
        self._handed.append((function, arguments))

    call_soon = call_soon_threadsafe

    def run(self) -> int:
        """How many turns it took."""
        turns = 0
        while self._handed:
            handed, self._handed = self._handed, []
            for function, arguments in handed:
                function(*arguments)
            turns += 1
        return turns


class Maker:
    """A thread that makes one chunk, and is inside from when it may until `leave`."""

    def __init__(self, turns: MakingTurns, loop: HandLoop, user: str) -> None:
        self.is_inside = threading.Event()
        self._may_leave = threading.Event()
        self._thread = threading.Thread(target=self._make, args=(turns, loop, user), daemon=True)
        self._thread.start()

    def _make(self, turns: MakingTurns, loop: HandLoop, user: str) -> None:
        with turns.of(user, loop):
            self.is_inside.set()
            assert self._may_leave.wait(PATIENCE_SECONDS)

    def leave(self) -> None:
        self._may_leave.set()
        self._thread.join(PATIENCE_SECONDS)


@pytest.fixture
def loop():
    return HandLoop()


@pytest.fixture
def turns(monkeypatch):
    monkeypatch.setattr(making_turns, "CHUNK_SECONDS_MAX", 60.0)
    return MakingTurns()


def waiting(turns: MakingTurns) -> int:
    return sum(map(len, turns._waiting.values()))


def queued(turns: MakingTurns, loop: HandLoop, *users: str) -> list[Maker]:
    """Makers that wait in this order."""
    makers = []
    for user in users:
        before = waiting(turns)
        makers.append(Maker(turns, loop, user))
        until(lambda before=before: waiting(turns) == before + 1)
    return makers


def test_the_next_chunk_is_made_after_a_turn_of_the_loop(turns, loop):
    first = Maker(turns, loop, "ann")
    assert first.is_inside.wait(PATIENCE_SECONDS)
    [second] = queued(turns, loop, "ann")
    first.leave()
    assert not second.is_inside.is_set()
    assert loop.run() == 2
    assert second.is_inside.wait(PATIENCE_SECONDS)
    second.leave()


def test_users_take_turns(turns, loop):
    first = Maker(turns, loop, "greedy")
    assert first.is_inside.wait(PATIENCE_SECONDS)
    one, two, other = queued(turns, loop, "greedy", "greedy", "quiet")
    for leaving, following in ((first, one), (one, other), (other, two)):
        leaving.leave()
        loop.run()
        assert following.is_inside.wait(PATIENCE_SECONDS)
    two.leave()
    loop.run()


def test_a_reply_that_is_made_alone_waits_for_nothing(turns, loop):
    with turns.reply():
        for _ in range(3):
            with turns.of("ann", loop):
                pass
    assert loop.run() == 0


def test_of_several_replies_each_chunk_waits_for_the_loop(turns, loop):
    with turns.reply(), turns.reply():
        with turns.of("ann", loop):
            pass
        [second] = queued(turns, loop, "ann")
        loop.run()
        assert second.is_inside.wait(PATIENCE_SECONDS)
        second.leave()
        loop.run()
    # Nobody waits any more, and the last one has left.
    with turns.of("ann", loop):
        pass


def test_a_chunk_that_waits_for_a_database_holds_up_no_other(loop, monkeypatch):
    monkeypatch.setattr(making_turns, "CHUNK_SECONDS_MAX", 0.001)
    turns = MakingTurns()
    with ExitStack() as slow:
        slow.enter_context(turns.of("ann", loop))
        second = Maker(turns, loop, "bo")
        assert second.is_inside.wait(PATIENCE_SECONDS)
        [third] = queued_behind(turns, loop, monkeypatch)
    # The slow one has no turn to pass on.
    assert loop.run() == 0
    assert not third.is_inside.is_set()
    second.leave()
    loop.run()
    assert third.is_inside.wait(PATIENCE_SECONDS)
    third.leave()


def queued_behind(turns: MakingTurns, loop: HandLoop, monkeypatch: pytest.MonkeyPatch) -> list[Maker]:
    """One that is not let in by the time that passes."""
    monkeypatch.setattr(making_turns, "CHUNK_SECONDS_MAX", 60.0)
    return queued(turns, loop, "eve")
