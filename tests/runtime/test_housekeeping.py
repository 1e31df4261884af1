"""Chores are done when they are due, whatever happens to one of them, and no more once it is stopped."""

import logging
import threading
from pathlib import Path

import pytest

from hms_gateway.composition.main import build_metastore
from hms_gateway.runtime.clock import Chore, Housekeeping
from hms_gateway.runtime.settings import Settings
from tests.support.patience import PATIENCE_SECONDS


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_each_chore_has_its_own_period() -> None:
    done: list[str] = []
    time = Time()
    chores = [Chore("often", 10, lambda: done.append("often")), Chore("seldom", 25, lambda: done.append("seldom"))]
    housekeeping = Housekeeping(chores, time)
    assert housekeeping.do_what_is_due() == 10
    assert done == []
    time.now += 10
    assert housekeeping.do_what_is_due() == 10
    assert done == ["often"]
    time.now += 30
    assert housekeeping.do_what_is_due() == 10
    assert done == ["often", "often", "seldom"]


def test_a_chore_that_fails_is_tried_again_and_holds_up_no_other(caplog: pytest.LogCaptureFixture) -> None:
    done: list[str] = []
    time = Time()

    def fail() -> None:
        done.append("failed")
        raise OSError("no luck")

    housekeeping = Housekeeping([Chore("bad", 10, fail), Chore("good", 10, lambda: done.append("good"))], time)
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            time.now += 10
            housekeeping.do_what_is_due()
    assert done == ["failed", "good"] * 2
    assert "chore bad failed" in caplog.text


def test_it_runs_in_a_thread_until_it_is_stopped() -> None:
    was_done = threading.Event()
    before = set(threading.enumerate())
    housekeeping = Housekeeping([Chore("now", 0.001, was_done.set)])
    housekeeping.start()
    [thread] = set(threading.enumerate()) - before
    assert was_done.wait(PATIENCE_SECONDS)
    housekeeping.stop()
    assert not thread.is_alive()


def test_it_stops_while_it_waits_for_the_next_chore() -> None:
    housekeeping = Housekeeping([Chore("never", 1_000_000, lambda: None)])
    housekeeping.start()
    housekeeping.stop()
    housekeeping.stop()


def test_it_may_be_stopped_before_it_starts_and_have_nothing_to_do() -> None:
    Housekeeping([]).stop()
    assert Housekeeping([], Time()).do_what_is_due() == 60


def test_the_chores_of_a_server_can_be_done_at_any_time(tmp_path: Path) -> None:
    metastore = build_metastore(Settings(data_dir=tmp_path, file_systems={"file": "ignore"}))
    try:
        assert {"expire events", "expire executions of queries"} <= {chore.name for chore in metastore.chores}
        for chore in metastore.chores:
            chore.do()
    finally:
        metastore.store.close()
