"""Figures of one process for /metrics and /status/costs. Counting is a few additions; texts are made on request."""

import os
import threading
import time
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

import msgspec

from hms_gateway.gateway.observability.figures import (
    GOOD_OUTCOMES,
    INTERNAL_OUTCOMES,
    SECONDS_BUCKETS,
    SLOW_CALLS_MAX,
    Figures,
    MethodFigures,
    NameFigures,
    Period,
    SlowCall,
    Watched,
    Window,
    add_counts,
    add_figures,
)
from hms_gateway.runtime.call_record import CallRecord, Objects, object_name, seconds_by_name

UNKNOWN_METHOD = "unknown"
OBJECTS_MAX = 512
OBJECTS_KEPT = 128
USERS_MAX = 512
USERS_KEPT = 128
GROUPS_MAX = 1_024
FOLD_SECONDS = 1.0
PERIOD_SECONDS = 5.0
PERIODS_MAX = 120
WINDOW_SECONDS = 300.0

K = TypeVar("K")
T = TypeVar("T")
_Key = tuple[str, str, int, bool, str]
"""Method, outcome, status, whether the cache answered, user."""


class CallCounter:
    """`add` is for the event loop's thread; `read` for any.

    Method names come from outside, so those that are not `known_methods` share one.
    """

    def __init__(
        self,
        known_methods: Collection[str],
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._known = frozenset(known_methods)
        self._clock = clock
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # What their keys say of them is added when they are folded.
        self._groups: dict[_Key, MethodFigures] = {}
        self._objects: dict[Objects, NameFigures] = {}
        self._fold_at = monotonic()
        self._figures = Figures(os.getpid(), clock(), window=Window(clock()))
        self._before = Window(clock())
        self._periods: deque[Period] = deque(maxlen=PERIODS_MAX)
        self._slow: deque[SlowCall] = deque(maxlen=SLOW_CALLS_MAX)

    def add(self, record: CallRecord) -> None:
        key = (record.method, record.outcome, record.status, record.cached, record.user)
        seconds, bytes_in, bytes_out = record.seconds, record.bytes_in, record.bytes_out
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = MethodFigures()
            self._fold_if_due()
        group.counts[bisect_left(SECONDS_BUCKETS, seconds)] += 1
        group.seconds += seconds
        group.bytes_in += bytes_in
        group.bytes_out += bytes_out
        if record.objects:
            figures = self._objects.get(record.objects)
            if figures is None:
                figures = self._objects[record.objects] = NameFigures()
                if len(self._objects) > OBJECTS_MAX:
                    self._forget_objects()
            figures.calls += 1
            figures.seconds += seconds
            figures.bytes_in += bytes_in
            figures.bytes_out += bytes_out
            if record.outcome not in GOOD_OUTCOMES:
                figures.errors += 1

    def add_slow(self, record: CallRecord) -> None:
        """A call that took long; what a kept reply depends on counts for one object."""
        names = [name for name in record.objects if isinstance(name, str)]
        if not names and (name := object_name(record.objects)):
            names = [name]
        self._slow.append(
            SlowCall(
                record.time,
                record.request_id,
                record.method,
                record.user,
                names,
                record.seconds,
                record.outcome,
                seconds_by_name(record.spans),
            )
        )

    def look(self) -> None:
        """Close periods and windows whose time has come; to be called now and then, from the event loop's thread."""
        if self._monotonic() >= self._fold_at:
            self._fold()

    def methods(self) -> dict[str, MethodFigures]:
        """The figures by method since the process began."""
        return self.read().methods

    def read(self) -> Figures:
        """All figures, without gauges and other counters."""
        with self._lock:
            whole = _copy(self._figures, Figures)
            before = _copy(self._before, Window)
            groups, objects = list(self._groups.items()), list(self._objects.items())
            whole.periods = list(self._periods)
        now, whole.taken = self._clock(), self._monotonic()
        current = Period(whole.periods[-1].end if whole.periods else whole.started, now)
        self._add_groups(whole, current, groups)
        whole.periods.append(current)
        _add_objects(whole.window.objects, objects)
        whole.slow_calls = list(self._slow)
        if now - before.since <= 3 * WINDOW_SECONDS:
            whole.window.since = before.since
            add_figures(whole.window.methods, before.methods, MethodFigures)
            add_figures(whole.window.users, before.users, NameFigures)
            add_figures(whole.window.objects, before.objects, NameFigures)
        return whole

    def _fold_if_due(self) -> None:
        if len(self._groups) > GROUPS_MAX or self._monotonic() >= self._fold_at:
            self._fold()

    def _fold(self) -> None:
        now = self._clock()
        with self._lock:
            figures = self._figures
            # A group that was just made is still to be counted in.
            groups = [(key, group) for key, group in self._groups.items() if any(group.counts)]
            for key, _ in groups:
                del self._groups[key]
            self._add_groups(figures, self._period(now), groups)
            if len(figures.window.users) > USERS_MAX:
                figures.window.users = top(figures.window.users, USERS_KEPT)
            if now - figures.window.since >= WINDOW_SECONDS:
                _add_objects(figures.window.objects, list(self._objects.items()))
                self._objects = {}
                figures.window.objects = top(figures.window.objects, OBJECTS_KEPT)
                self._before, figures.window = figures.window, Window(now)
            self._fold_at = self._monotonic() + FOLD_SECONDS

    def _period(self, now: float) -> Period:
        """The period that calls until now belong to."""
        last = self._periods[-1] if self._periods else None
        if last is not None and last.end // PERIOD_SECONDS == now // PERIOD_SECONDS:
            last.end = now
            return last
        begin = self._figures.started if last is None else max(last.end, now - PERIOD_SECONDS)
        following = Period(begin, now)
        self._periods.append(following)
        return following

    def _add_groups(self, figures: Figures, period: Period, groups: list[tuple[_Key, MethodFigures]]) -> None:
        for (method, outcome, status, cached, user), group in groups:
            calls = group.calls
            if status:
                add_counts(figures.statuses, {status: calls})
            add_counts(figures.counters, {"received_bytes": group.bytes_in, "sent_bytes": group.bytes_out})
            period.bytes_in += group.bytes_in
            period.bytes_out += group.bytes_out
            # Requests whose method is not known count as calls where the gateway has failed.
            if not method and outcome not in INTERNAL_OUTCOMES:
                continue
            of_method = msgspec.structs.replace(group, cached=calls if cached else 0, outcomes={outcome: calls})
            of_user = NameFigures(calls, of_method.errors, group.seconds, group.bytes_in, group.bytes_out)
            period.counts = [one + more for one, more in zip(period.counts, group.counts, strict=True)]
            period.errors += of_method.errors
            period.cached += of_method.cached
            label = method if method in self._known else UNKNOWN_METHOD
            add_figures(figures.methods, {label: of_method}, MethodFigures)
            add_figures(figures.window.methods, {label: of_method}, MethodFigures)
            add_figures(figures.window.users, {user: of_user}, NameFigures)

    def _forget_objects(self) -> None:
        with self._lock:
            self._objects = top(self._objects, OBJECTS_KEPT)


def top(figures: Mapping[K, NameFigures], count: int) -> dict[K, NameFigures]:
    """The entries with most calls and those with most time."""
    by_calls = sorted(figures, key=lambda name: figures[name].calls, reverse=True)[: count // 2]
    by_seconds = sorted(figures, key=lambda name: figures[name].seconds, reverse=True)[: count // 2]
    return {name: figures[name] for name in dict.fromkeys([*by_calls, *by_seconds])}


def _add_objects(sums: dict[str, NameFigures], objects: list[tuple[Objects, NameFigures]]) -> None:
    for about, figures in objects:
        name = object_name(about)
        if name:
            add_figures(sums, {name: figures}, NameFigures)


def _copy(value: T, kind: type[T]) -> T:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(value), type=kind)


CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counters of one process, touched from the event loop's thread only."""

    def __init__(self, known_methods: Collection[str]) -> None:
        self.known_methods = known_methods
        self.served = CallCounter(known_methods)
        self.refusals: defaultdict[str, int] = defaultdict(int)
        # By the name of the limit, see `gateway.admission.identity.Refusals`.
        self.limited: defaultdict[str, int] = defaultdict(int)
        self.cache_hits = 0
        self.cache_misses = 0
        self.calls_in_flight = 0
        self.calls_waiting = 0
        self.streams_in_flight = 0
        self.connections_refused = 0
        # None without TLS; set by the thread that looks at the certificate.
        self.certificate_expires_seconds: int | None = None
        self.certificate_unusable = 0
        # None until the SQLite database was checked, and with other databases.
        self.database_damaged: int | None = None
        self.thrift_refusals: defaultdict[str, int] = defaultdict(int)
        self._watched: list[Callable[[], Watched]] = []

    def watch(self, look: Callable[[], Watched]) -> None:
        """Figures that another part counts; `look` is called whenever they are shown, from the event loop's thread."""
        self._watched.append(look)

    def figures(self) -> Figures:
        """Everything, as values."""
        figures = self.served.read()
        figures.counters |= {
            "internal_errors": self.internal_errors,
            "cache_hits": self.cache_hits,
            "cache_misses": self.cache_misses,
            "connections_refused": self.connections_refused,
            "cpu_seconds": sum(os.times()[:2]),
        }
        figures.gauges |= {
            "calls_in_flight": self.calls_in_flight,
            "calls_waiting": self.calls_waiting,
            "streams_in_flight": self.streams_in_flight,
        }
        for name, counts in (
            ("authentication_refused", self.refusals),
            ("limited", self.limited),
            ("thrift_connections_refused", self.thrift_refusals),
        ):
            figures.labelled[name] = dict(counts)
        for look in self._watched:
            watched = look()
            add_counts(figures.counters, watched.counters)
            add_counts(figures.gauges, watched.gauges)
            figures.replicas += watched.replicas
            figures.others += watched.others
        return figures

    def calls_by_method(self) -> dict[str, int]:
        """Number of answers of each method; safe from any thread."""
        return {name: figures.calls for name, figures in self.served.methods().items()}

    @property
    def internal_errors(self) -> int:
        """Calls that failed because of the gateway, and not because of what was asked."""
        return sum(
            count
            for figures in self.served.methods().values()
            for outcome, count in figures.outcomes.items()
            if outcome in INTERNAL_OUTCOMES
        )


# The text of /metrics, made with Prometheus' own library.
