"""Costs of calls as values: one process counts them, workers exchange them, `merged` adds them up."""

import contextlib
import os
import shutil
import socket
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec
import structlog

SECONDS_BUCKETS = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0
)  # fmt: skip
# Outcomes of calls that did what was asked.
GOOD_OUTCOMES = frozenset({"ok", "replayed"})
# What a call ends with that met an error of ours: within the message, or as an HTTP status of 500.
INTERNAL_OUTCOMES = frozenset({"INTERNAL_ERROR", "internal_error"})
SLOW_CALLS_MAX = 100

# Gauges of the process that is asked, by their names and the values of their labels.
Health: TypeAlias = Mapping[str, Mapping[str, float]]

K = TypeVar("K")
V = TypeVar("V", int, float)


def _no_counts() -> list[int]:
    return [0] * (len(SECONDS_BUCKETS) + 1)


class MethodFigures(msgspec.Struct, array_like=True):
    """Calls of one method: how many fell into each bucket of time, the last for longer ones, and what they took."""

    counts: list[int] = msgspec.field(default_factory=_no_counts)
    seconds: float = 0.0
    bytes_in: int = 0
    bytes_out: int = 0
    cached: int = 0
    outcomes: dict[str, int] = {}

    @property
    def calls(self) -> int:
        return sum(self.counts)

    @property
    def errors(self) -> int:
        return sum(count for outcome, count in self.outcomes.items() if outcome not in GOOD_OUTCOMES)

    def add(self, other: "MethodFigures") -> None:
        self.counts = [one + more for one, more in zip(self.counts, other.counts, strict=True)]
        self.seconds += other.seconds
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        self.cached += other.cached
        add_counts(self.outcomes, other.outcomes)


class NameFigures(msgspec.Struct, array_like=True):
    """Calls of one user, or on one object."""

    calls: int = 0
    errors: int = 0
    seconds: float = 0.0
    bytes_in: int = 0
    bytes_out: int = 0

    def add(self, other: "NameFigures") -> None:
        self.calls += other.calls
        self.errors += other.errors
        self.seconds += other.seconds
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out


class Period(msgspec.Struct, array_like=True):
    """Calls that ended between two moments, in seconds since 1970; a process closes one when it looks at its counts."""

    begin: float
    end: float
    counts: list[int] = msgspec.field(default_factory=_no_counts)
    errors: int = 0
    cached: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


class Window(msgspec.Struct):
    """Calls since a moment, in seconds since 1970. `objects` and `users` are those with most calls or time."""

    since: float
    methods: dict[str, MethodFigures] = {}
    users: dict[str, NameFigures] = {}
    objects: dict[str, NameFigures] = {}


class SlowCall(msgspec.Struct):
    """A call that took long, and where its time went."""

    time: float
    request_id: str
    method: str
    user: str
    objects: list[str]
    seconds: float
    outcome: str
    spans: dict[str, float]


class Replica(msgspec.Struct, array_like=True):
    """A process that keeps replies, and the newest event of the catalog that it has seen.

    What follows `gateway_id` is known where the database is a server: `lag_…` as of `seen`, in seconds since 1970;
    `clock_seconds` is how far the database's clock is ahead, for processes of this gateway.
    """

    name: str
    pid: int
    event_id: int
    gateway_id: str = ""
    version: str = ""
    started: float | None = None
    seen: float | None = None
    lag_events: int | None = None
    lag_seconds: float | None = None
    clock_seconds: float | None = None


class Watched(msgspec.Struct):
    """Figures that another part of the process counts. `others` share the database."""

    counters: dict[str, float] = {}
    gauges: dict[str, float] = {}
    replicas: list[Replica] = []
    others: list[Replica] = []


class Figures(msgspec.Struct):
    """Everything that one process knows of its calls.

    taken      when, by a clock of the process that does not go back
    methods    since the process began; `window` is of the last minutes, with users and objects
    counters   since the process began, some of them by a label
    gauges     what is the case now; added up over workers
    """

    pid: int
    started: float
    taken: float = 0.0
    methods: dict[str, MethodFigures] = {}
    statuses: dict[int, int] = {}
    window: Window = msgspec.field(default_factory=lambda: Window(0.0))
    periods: list[Period] = []
    slow_calls: list[SlowCall] = []
    counters: dict[str, float] = {}
    labelled: dict[str, dict[str, int]] = {}
    gauges: dict[str, float] = {}
    replicas: list[Replica] = []
    others: list[Replica] = []
    workers: int = 1


def merged(all_figures: Sequence[Figures], alive: frozenset[int]) -> Figures:
    """The figures of all processes as one; of one that has ended only what it has counted."""
    first = min(all_figures, key=lambda one: one.started)
    whole = Figures(first.pid, first.started, workers=len(alive))
    whole.window.since = min((one.window.since for one in all_figures if one.pid in alive), default=first.started)
    for one in all_figures:
        add_figures(whole.methods, one.methods, MethodFigures)
        add_counts(whole.statuses, one.statuses)
        add_counts(whole.counters, one.counters)
        for name, counts in one.labelled.items():
            add_counts(whole.labelled.setdefault(name, {}), counts)
        whole.periods += one.periods
        whole.slow_calls += one.slow_calls
        if one.pid in alive:
            add_counts(whole.gauges, one.gauges)
            whole.replicas += one.replicas
            add_figures(whole.window.methods, one.window.methods, MethodFigures)
            add_figures(whole.window.users, one.window.users, NameFigures)
            add_figures(whole.window.objects, one.window.objects, NameFigures)
    # Figures of a process that is gone: workers that are asked to stop end together, with the folder.
    whole.counters["worker_deaths"] = len(all_figures) - len(alive)
    own = {replica.gateway_id for replica in whole.replicas}
    others = (replica for one in all_figures if one.pid in alive for replica in one.others)
    # As each worker has seen them: the last is the newest.
    by_id = {each.gateway_id: each for each in sorted(others, key=lambda each: each.seen or 0.0)}
    whole.others = sorted((by_id[id] for id in by_id.keys() - own), key=lambda each: (each.name, each.pid))
    whole.slow_calls = sorted(whole.slow_calls, key=lambda call: call.time)[-SLOW_CALLS_MAX:]
    return whole


def add_counts(sums: dict[K, V], more: Mapping[K, V]) -> None:
    for name, count in more.items():
        sums[name] = sums.get(name, 0) + count


F = TypeVar("F", MethodFigures, NameFigures)


def add_figures(sums: dict[str, F], more: Mapping[str, F], kind: type[F]) -> None:
    for name, figures in more.items():
        known = sums.get(name)
        if known is None:
            known = sums[name] = kind()
        known.add(figures)


def percentile(counts: Sequence[int], part: float) -> float | None:
    """The time that `part` of the calls did not exceed, read off the buckets' bounds; None without calls."""
    total = sum(counts)
    if not total:
        return None
    wanted, below = part * total, 0
    for place, count in enumerate(counts):
        if count and below + count >= wanted:
            if place == len(SECONDS_BUCKETS):
                return SECONDS_BUCKETS[-1]
            low = SECONDS_BUCKETS[place - 1] if place else 0.0
            return low + (SECONDS_BUCKETS[place] - low) * (wanted - below) / count
        below += count
    return SECONDS_BUCKETS[-1]


_PREFIX = "workers"

_log = structlog.get_logger("hms_gateway.observability")


class WorkerFigures:
    """The place of one worker in the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._left = 0.0

    def leave(self, figures: Figures) -> None:
        """Replace what the others see of this process; harmless when the disk refuses it."""
        path = self._folder / str(figures.pid)
        with self._lock:
            if figures.taken < self._left:
                return
            self._left = figures.taken
            self._write(path, figures)

    def _write(self, path: Path, figures: Figures) -> None:
        try:
            path.with_suffix(".new").write_bytes(msgspec.msgpack.encode(figures))
            path.with_suffix(".new").replace(path)
        except OSError as error:
            _log.warning("the figures of this worker cannot be shared", file=str(path), problem=str(error))

    def all(self, own: Figures) -> Figures:
        """The figures of all workers as one; `own` is left first."""
        self.leave(own)
        found = [figures for path in self._folder.iterdir() if (figures := _read(path)) is not None]
        alive = frozenset(figures.pid for figures in found if _is_alive(figures.pid))
        return merged(found or [own], alive or frozenset({own.pid}))


def make_folder(data_dir: Path) -> Path:
    """A folder for the workers of this process; those of processes that were killed are removed. Raises OSError."""
    host = socket.gethostname()
    for left in data_dir.glob(f"{_PREFIX}-{host}-*"):
        pid = left.name.rpartition("-")[2]
        if pid.isdigit() and (int(pid) == os.getpid() or not _is_alive(int(pid))):
            remove_folder(left)
    folder = data_dir / f"{_PREFIX}-{host}-{os.getpid()}"
    folder.mkdir(mode=0o700)
    return folder


def remove_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _read(path: Path) -> Figures | None:
    if not path.name.isdigit():
        return None
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.msgpack.decode(path.read_bytes(), type=Figures)
    return None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
