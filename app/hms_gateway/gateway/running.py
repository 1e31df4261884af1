"""Runs the server: in this process, or in several that share the listening sockets."""

import contextlib
import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from hms_gateway.gateway.application import Gateway
from hms_gateway.gateway.observability.figures import make_folder, remove_folder
from hms_gateway.gateway.server import Server
from hms_gateway.runtime.logging import configure_logging, format_for_stderr
from hms_gateway.runtime.settings import Settings

# What a worker may take to end besides finishing its calls.
STOPPING_SECONDS = 5.0
LOOK_EVERY_SECONDS = 0.5

Build = Callable[[Settings], Gateway]
Addresses = list[tuple[Any, ...]]

_log = structlog.get_logger("hms_gateway.running")


class WorkerFailed(Exception):
    """A worker process could not start; its own log says why."""


def run(
    settings: Settings,
    build: Build,
    listeners: list[socket.socket],
    *,
    on_listening: Callable[[Addresses], None] = lambda addresses: None,
) -> None:
    """Serve until SIGTERM or SIGINT; returns when the calls in flight are finished, with the listeners closed.

    `build` makes the gateway inside the process that serves it. With several workers it runs in each of them, so it has
    to be a function that can be imported. `on_listening` gets the socket addresses when calls are accepted.
    SIGHUP makes it read the certificate again.
    Raises OSError when the address cannot be had, WorkerFailed, and what `build` raises.
    """
    try:
        if settings.workers == 1:
            _serve(settings, build, listeners, on_listening)
        else:
            _Workers(settings, build, listeners).run(on_listening)
    finally:
        for listener in listeners:
            listener.close()


def _serve(
    settings: Settings,
    build: Build,
    listeners: list[socket.socket],
    on_listening: Callable[[Addresses], None],
    figures: Path | None = None,
) -> None:
    gateway = build(settings)
    if figures is not None:
        gateway.status.share(figures)
    Server(gateway, on_listening=on_listening).run(sockets=listeners)


class _Workers:
    """The parent: starts workers, replaces those that die, and passes the wish to stop on to them."""

    def __init__(self, settings: Settings, build: Build, listeners: list[socket.socket]) -> None:
        self._settings = settings
        self._build = build
        self._listeners = listeners
        self._context = multiprocessing.get_context("spawn")
        self._wants_stop = threading.Event()
        self._workers: list[_Worker] = []

    def run(self, on_listening: Callable[[Addresses], None]) -> None:
        self._figures = make_folder(self._settings.data_dir)
        with _signals(self._wants_stop.set, (signal.SIGTERM, signal.SIGINT)), _signals(self._hang_up, (signal.SIGHUP,)):
            try:
                self._workers = [self._start() for _ in range(self._settings.workers)]
                self._wait_until_listening()
                on_listening([listener.getsockname() for listener in self._listeners])
                while not self._wants_stop.wait(LOOK_EVERY_SECONDS):
                    self._replace_dead()
            finally:
                self._stop()
                remove_folder(self._figures)

    def _start(self) -> "_Worker":
        listening = self._context.Event()
        arguments = (self._settings, self._build, self._listeners, listening, self._figures)
        process = self._context.Process(target=_work, args=arguments)
        # A new program inherits what is ignored and not what is handled: until it handles SIGHUP, it would be killed.
        with _signals(None, (signal.SIGHUP,)):
            process.start()
        return _Worker(process, listening)

    def _hang_up(self) -> None:
        for worker in self._workers:
            if worker.process.pid is not None and worker.process.is_alive():
                os.kill(worker.process.pid, signal.SIGHUP)

    def _wait_until_listening(self) -> None:
        for worker in self._workers:
            while not self._wants_stop.is_set() and not worker.listening.wait(0.05):
                if not worker.process.is_alive():
                    raise WorkerFailed(f"a worker process ended with code {worker.process.exitcode} while starting")

    def _replace_dead(self) -> None:
        for number, worker in enumerate(self._workers):
            if worker.process.is_alive():
                continue
            if not worker.listening.is_set():
                raise WorkerFailed(f"a worker process ended with code {worker.process.exitcode} while starting")
            _log.error("a worker process died and is replaced", pid=worker.process.pid, code=worker.process.exitcode)
            self._workers[number] = self._start()

    def _stop(self) -> None:
        for worker in self._workers:
            if worker.process.is_alive():
                worker.process.terminate()
        for worker in self._workers:
            worker.process.join(self._settings.stopping_seconds_max + STOPPING_SECONDS)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()


class _Worker(NamedTuple):
    process: BaseProcess
    listening: Any


def _work(settings: Settings, build: Build, listeners: list[socket.socket], listening: Any, figures: Path) -> None:
    """Body of a worker process."""
    configure_logging(settings.log_level, format_for_stderr(settings.log_format))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _serve(settings, build, listeners, lambda _addresses: listening.set(), figures)


def _end_with_parent() -> None:
    """A parent that was killed cannot pass anything on: stop as if by a signal."""
    process = multiprocessing.parent_process()
    if process is not None:
        process.join()
        os.kill(os.getpid(), signal.SIGTERM)


@contextlib.contextmanager
def _signals(do: Callable[[], None] | None, names: Sequence[signal.Signals]) -> Iterator[None]:
    """Inside, call `do` for these signals; None ignores them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.SIG_IGN if do is None else lambda *_: do()
    before = {name: signal.signal(name, handler) for name in names}
    try:
        yield
    finally:
        for name, handler_before in before.items():
            signal.signal(name, handler_before)
