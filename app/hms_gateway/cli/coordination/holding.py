"""Runs a command for as long as a lock or lease is held, and keeps that alive meanwhile."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType

import msgspec

from hms_gateway.cli.calls.calling import connected
from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.cli.terminal.output import EXIT_REFUSED, fail, say
from hms_gateway.client.metastore_client import ClientError, MetastoreClient
from hms_gateway.rpc.structs import ThriftException

STOP_SECONDS_MAX = 10.0


class HoldingLost(Exception):
    """The lock or lease is lost, so the command was stopped; the text says why."""


def run_holding(
    target: CallTarget,
    what: str,
    command: Sequence[str],
    variables: Mapping[str, str],
    keep: Callable[[MetastoreClient], object],
    *,
    every_seconds: float,
    lost_after_seconds: float,
) -> int:
    """Run `command` while `what` is held, with more variables; its exit status. Ends the command when `what` is lost.

    Uses a client of its own, which does not wait so long for an answer that the hold is lost meanwhile.
    """
    impatient = msgspec.structs.replace(target, timeout_seconds=min(target.timeout_seconds, every_seconds))
    seconds = {"every_seconds": every_seconds, "lost_after_seconds": lost_after_seconds}
    with connected(impatient) as client:
        try:
            return run_while_held(command, {**os.environ, **variables}, lambda: keep(client), **seconds)
        except HoldingLost as error:
            fail(f"{what} lost and {command[0]} was stopped: {error}", exit_code=EXIT_REFUSED)


def run_while_held(
    command: Sequence[str],
    environment: Mapping[str, str],
    keep: Callable[[], object],
    *,
    every_seconds: float,
    lost_after_seconds: float,
) -> int:
    """Run `command` and call `keep` now and then until it ends; its exit status, 128 and more for a signal.

    An exception of the metastore from `keep` means that the hold is lost; without an answer it is lost after
    `lost_after_seconds`. Raises HoldingLost.
    """
    try:
        process = subprocess.Popen(command, env=dict(environment))
    except OSError as error:
        fail(f"{command[0]}: {error.strerror or error}")
    with _passing_on(process):
        try:
            status = _watch(process, keep, every_seconds, lost_after_seconds)
        except BaseException:
            _stop(process)
            raise
    return 128 - status if status < 0 else status


@contextlib.contextmanager
def ended_by_exception() -> Iterator[None]:
    """A signal to stop raises SystemExit, so that what is waited for is given up; what is ignored stays ignored."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    with _handling(stop):
        yield


def _watch(
    process: subprocess.Popen[bytes], keep: Callable[[], object], every_seconds: float, lost_after_seconds: float
) -> int:
    kept_at = time.monotonic()
    while True:
        # The command has the same terminal and decides itself what an interrupt means.
        with contextlib.suppress(KeyboardInterrupt):
            try:
                return process.wait(every_seconds)
            except subprocess.TimeoutExpired:
                kept_at = _kept(keep, kept_at, lost_after_seconds - every_seconds)


def _kept(keep: Callable[[], object], kept_at: float, silent_seconds_max: float) -> float:
    """When it was last kept alive, after another try. Raises HoldingLost."""
    asked_at = time.monotonic()
    try:
        keep()
    except ThriftException as error:
        raise HoldingLost(error.message or type(error).__name__) from error
    except ClientError as error:
        if time.monotonic() - kept_at >= silent_seconds_max:
            raise HoldingLost(str(error)) from error
        say(f"not kept alive, will try again: {error}")
        return kept_at
    return asked_at


@contextlib.contextmanager
def _passing_on(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """A signal to stop is for the command: what it was protected by is given back once it has ended.

    What is ignored (SIGHUP under nohup) stays ignored, here as in the command.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        process.send_signal(number)

    with _handling(stop):
        yield


@contextlib.contextmanager
def _handling(stop: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    handled = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in handled}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
