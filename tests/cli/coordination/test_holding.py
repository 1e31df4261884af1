"""Commands that run while something is held."""

import os
import signal

import pytest

from hms_gateway.cli.coordination.holding import HoldingLost, run_while_held
from hms_gateway.client.metastore_client import NotReached
from hms_gateway.rpc.structs import NoSuchLockException


def held(keep, *command, every_seconds=0.02, lost_after_seconds=60.0):
    return run_while_held(command, os.environ, keep, every_seconds=every_seconds, lost_after_seconds=lost_after_seconds)


@pytest.fixture(autouse=True)
def default_signals():
    """The run may have been started with signals ignored, as under nohup."""
    handlers = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


def until(path):
    """A command that ends when the file is there."""
    return "sh", "-c", f"until [ -e '{path}' ]; do sleep 0.01; done"


def test_the_status_of_the_command_is_passed_on():
    assert held(pytest.fail, "sh", "-c", "exit 7", every_seconds=60) == 7
    assert held(pytest.fail, "sh", "-c", "kill -TERM $$", every_seconds=60) == 128 + signal.SIGTERM


def test_it_is_kept_alive_until_the_command_ends(tmp_path):
    beats = []

    def keep():
        beats.append(None)
        if len(beats) == 3:
            (tmp_path / "end").touch()

    assert held(keep, *until(tmp_path / "end")) == 0
    assert len(beats) >= 3


def test_a_hold_that_is_lost_stops_the_command(tmp_path):
    def keep():
        raise NoSuchLockException("No such lock: lockid:1")

    with pytest.raises(HoldingLost, match="No such lock: lockid:1"):
        held(keep, *until(tmp_path / "never"))


def test_nobody_answering_is_borne_for_a_while(tmp_path):
    answers = [NotReached("away"), NotReached("away"), None]

    def keep():
        if (answer := answers.pop(0)) is not None:
            raise answer
        (tmp_path / "end").touch()
        answers.append(None)

    assert held(keep, *until(tmp_path / "end")) == 0


def test_nobody_answering_for_too_long_stops_the_command(tmp_path):
    def keep():
        raise NotReached("away")

    with pytest.raises(HoldingLost, match="away"):
        held(keep, *until(tmp_path / "never"), lost_after_seconds=0.05)


def test_an_interrupt_is_for_the_command(tmp_path):
    def keep():
        (tmp_path / "end").touch()
        raise KeyboardInterrupt

    assert held(keep, *until(tmp_path / "end")) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_stop_is_passed_on(tmp_path, number):
    def keep():
        os.kill(os.getpid(), number)

    assert held(keep, *until(tmp_path / "never")) == 128 + number
    assert signal.getsignal(number) is signal.SIG_DFL


def test_an_ignored_signal_stays_ignored(tmp_path):
    def keep():
        os.kill(os.getpid(), signal.SIGHUP)
        (tmp_path / "end").touch()

    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert held(keep, *until(tmp_path / "end")) == 0
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_anything_else_stops_the_command_before_it_goes_on(tmp_path):
    def keep():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        held(keep, *until(tmp_path / "never"))
