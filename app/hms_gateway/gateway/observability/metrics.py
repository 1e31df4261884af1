"""Figures of one process for /metrics and /status/costs. Counting is a few additions; texts are made on request."""

import os
import threading
import time
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from hms_gateway.gateway.observability.figures import (
    GOOD_OUTCOMES,
    INTERNAL_OUTCOMES,
    SECONDS_BUCKETS,
    SLOW_CALLS_MAX,
    Figures,
    Health,
    MethodFigures,
    NameFigures,
    Period,
    Replica,
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


class _Group:
    """Calls with the same method, outcome, status, user, and answered by the cache or not."""

    __slots__ = ("bytes_in", "bytes_out", "counts", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(SECONDS_BUCKETS) + 1)
        self.seconds = 0.0
        self.bytes_in = 0
        self.bytes_out = 0


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
        self._groups: dict[_Key, _Group] = {}
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
            group = self._groups[key] = _Group()
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
        with self._lock:
            sums = _copy(self._figures.methods, dict[str, MethodFigures])
            groups = list(self._groups.items())
        for key, group in groups:
            if _is_of_calls(key):
                _add_group(sums, self._label(key[0]), key, group)
        return sums

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

    def _add_groups(self, figures: Figures, period: Period, groups: list[tuple[_Key, _Group]]) -> None:
        for key, group in groups:
            method, outcome, status, cached, user = key
            calls = sum(group.counts)
            if status:
                figures.statuses[status] = figures.statuses.get(status, 0) + calls
            errors = 0 if outcome in GOOD_OUTCOMES else calls
            period.bytes_in += group.bytes_in
            period.bytes_out += group.bytes_out
            for name in ("received_bytes", "sent_bytes"):
                amount = group.bytes_in if name == "received_bytes" else group.bytes_out
                figures.counters[name] = figures.counters.get(name, 0) + amount
            if not _is_of_calls(key):
                continue
            period.counts = [one + more for one, more in zip(period.counts, group.counts, strict=True)]
            period.errors += errors
            period.cached += calls if cached else 0
            label = self._label(method)
            _add_group(figures.methods, label, key, group)
            _add_group(figures.window.methods, label, key, group)
            of_user = figures.window.users.setdefault(user, NameFigures())
            of_user.add(NameFigures(calls, errors, group.seconds, group.bytes_in, group.bytes_out))

    def _label(self, method: str) -> str:
        return method if method in self._known else UNKNOWN_METHOD

    def _forget_objects(self) -> None:
        with self._lock:
            self._objects = top(self._objects, OBJECTS_KEPT)


def _is_of_calls(key: _Key) -> bool:
    """Requests whose method is not known count as calls where the gateway has failed."""
    return bool(key[0]) or key[1] in INTERNAL_OUTCOMES


def top(figures: Mapping[K, NameFigures], count: int) -> dict[K, NameFigures]:
    """The entries with most calls and those with most time."""
    by_calls = sorted(figures, key=lambda name: figures[name].calls, reverse=True)[: count // 2]
    by_seconds = sorted(figures, key=lambda name: figures[name].seconds, reverse=True)[: count // 2]
    return {name: figures[name] for name in dict.fromkeys([*by_calls, *by_seconds])}


def _add_group(sums: dict[str, MethodFigures], label: str, key: _Key, group: _Group) -> None:
    method = sums.get(label)
    if method is None:
        method = sums[label] = MethodFigures()
    calls = sum(group.counts)
    method.counts = [one + more for one, more in zip(method.counts, group.counts, strict=True)]
    method.seconds += group.seconds
    method.bytes_in += group.bytes_in
    method.bytes_out += group.bytes_out
    method.cached += calls if key[3] else 0
    method.outcomes[key[1]] = method.outcomes.get(key[1], 0) + calls


def _add_objects(sums: dict[str, NameFigures], objects: list[tuple[Objects, NameFigures]]) -> None:
    for about, figures in objects:
        name = object_name(about)
        if name:
            sums.setdefault(name, NameFigures()).add(figures)


def _copy(value: T, kind: type[T]) -> T:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(value), type=kind)


CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counters of one process, touched from the event loop's thread only."""

    def __init__(self, known_methods: Collection[str]) -> None:
        self.known_methods = known_methods
        self.served = CallCounter(known_methods)
        self.refusals: defaultdict[str, int] = defaultdict(int)
        # By the name of the limit, see `gateway.admission.refusals`.
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

    def authentication_refused(self, reason: str) -> None:
        self.refusals[reason] += 1


# The text of /metrics, made with Prometheus' own library.


_COUNTERS = {
    "internal_errors": "Calls that failed because of the gateway",
    "received_bytes": "Bytes of request bodies",
    "sent_bytes": "Bytes of response bodies",
    "cache_hits": "Calls answered from the reply cache",
    "cache_misses": "Calls the reply cache could not answer",
    "connections_refused": "Connections closed because there were too many",
    "audit_lines_lost": "Lines of the audit log that could not be written",
    "spans_exported": "Spans of traces that the collector has taken",
    "spans_dropped": "Spans of traces that were left out because the collector was too slow or away",
    "database_reads": "Units of work that read the database",
    "database_read_seconds": "Time that calls waited for reading the database",
    "database_writes": "Units of work that changed the database",
    "database_write_seconds": "Time that calls waited for changing the database",
    "commits_unknown": "Changes that were answered as failed and may have happened: the connection was lost meanwhile",
    "worker_deaths": "Worker processes that died and were replaced",
}
_GAUGES = {
    "calls_in_flight": "Calls being worked on",
    "calls_waiting": "Calls that wait for others",
    "streams_in_flight": "Replies being streamed",
    "calls_queued": "Calls that wait for a thread",
    "writes_queued": "Units of work that wait for the writer",
    "cache_bytes": "Memory of the reply cache",
    "cache_replies": "Replies in the cache",
    "database_connections_in_use": "Connections for reading that are in use",
    "database_connections_max": "Connections for reading that there may be (setting database_connections_max)",
}
_HEALTH = {
    "disk_free_bytes": ("folder", "Room on the disk of the folder that a setting names"),
    "file_unreadable": ("file", "1 when the file that a setting names cannot be read as it is now"),
}
_RECENT = {
    "calls": "Calls",
    "errors": "Calls that failed",
    "seconds": "Time to answer",
    "bytes_out": "Bytes of responses",
}
_LAGS = {
    "lag_events": "Events of the catalog that the reply cache has not seen, a few seconds ago",
    "lag_seconds": "Age of the first event that the reply cache has not seen",
}
_LABELLED = {
    "authentication_refused": ("reason", "Requests refused before the call"),
    "limited": ("limit", "Requests and connections that a limit refused or cut off"),
    "thrift_connections_refused": ("reason", "Connections closed by the Thrift port"),
}


def metrics_text(
    metrics: Metrics, figures: Figures | None = None, health: Health | None = None, *, show_names: bool = False
) -> bytes:
    """Everything in the Prometheus text format.

    `figures` are those of all workers; without them this process is the only one. `show_names` adds the users and
    objects with most calls.
    """
    registry = CollectorRegistry(auto_describe=False)
    shown = metrics.figures() if figures is None else figures
    registry.register(_Collector(metrics, shown, health or {}, show_names))
    if figures is None:
        # Of several workers they would be those of the one that was asked.
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
    return generate_latest(registry)


class _Collector:
    """The collector that prometheus-client asks for metrics."""

    def __init__(self, metrics: Metrics, figures: Figures, health: Health, show_names: bool) -> None:
        self._metrics = metrics
        self._figures = figures
        self._health = health
        self._show_names = show_names

    def collect(self) -> Iterator[Metric]:
        yield from _families(self._figures)
        yield from _health_families(self._health)
        yield from _certificate_families(self._metrics)
        if self._show_names:
            yield from _name_families("user", self._figures.window.users)
            yield from _name_families("object", self._figures.window.objects)
            yield from _replica_families([*self._figures.replicas, *self._figures.others])
        if self._metrics.database_damaged is not None:
            text = "1 when the last check of the SQLite database found damage"
            yield GaugeMetricFamily("hms_gateway_database_damaged", text, value=self._metrics.database_damaged)


def _families(figures: Figures) -> Iterator[Metric]:
    methods = figures.methods
    yield _seconds_family(methods)
    outcomes = (((method, outcome), count) for method, of in methods.items() for outcome, count in of.outcomes.items())
    yield _counter("calls", "Thrift calls answered", ("method", "outcome"), outcomes)
    yield _counter("method_received_bytes", "Bytes of requests", ("method",), _each(methods, "bytes_in"))
    yield _counter("method_sent_bytes", "Bytes of responses", ("method",), _each(methods, "bytes_out"))
    yield _counter("method_cached", "Calls answered by the reply cache", ("method",), _each(methods, "cached"))
    statuses = [((str(status),), count) for status, count in figures.statuses.items()]
    yield _counter("http_responses", "HTTP responses of the endpoint", ("status",), statuses)
    for name, (label, text) in _LABELLED.items():
        counts = [((value,), count) for value, count in figures.labelled.get(name, {}).items()]
        yield _counter(name, text, (label,), counts)
    for name, text in _COUNTERS.items():
        yield CounterMetricFamily(f"hms_gateway_{name}", text, value=figures.counters.get(name, 0))
    for name, text in _GAUGES.items():
        yield GaugeMetricFamily(f"hms_gateway_{name}", text, value=figures.gauges.get(name, 0))
    # Each process adds 1 while it can use the database.
    is_up = figures.gauges.get("database_up", 0) >= figures.workers
    yield GaugeMetricFamily("hms_gateway_database_up", "1 when every process can use the database", value=int(is_up))
    yield from _lag_families(figures)
    yield from _clock_families(figures)
    yield GaugeMetricFamily("hms_gateway_workers", "Processes that these figures are of", value=figures.workers)


def _each(methods: Mapping[str, MethodFigures], field: str) -> list[tuple[tuple[str, ...], float]]:
    return [((method,), getattr(of, field)) for method, of in methods.items()]


def _name_families(label: str, names: Mapping[str, NameFigures]) -> Iterator[Metric]:
    """Gauges of the last minutes: names come and go, so a counter of one would go back."""
    for field, text in _RECENT.items():
        name = f"hms_gateway_{label}_recent_{field}"
        family = GaugeMetricFamily(name, f"{text} in the last minutes", labels=(label,))
        for of, figures in names.items():
            family.add_metric((of,), getattr(figures, field))
        yield family


def _lag_families(figures: Figures) -> Iterator[Metric]:
    """Of this gateway, the worker that is the farthest behind; nothing where the database is not a server."""
    known = [replica for replica in figures.replicas if replica.lag_events is not None]
    if not known:
        return
    others = "Processes that share the database, with those of this gateway"
    yield GaugeMetricFamily("hms_gateway_replicas", others, value=len(figures.replicas) + len(figures.others))
    for field, text in _LAGS.items():
        worst = max(getattr(replica, field) for replica in known)
        yield GaugeMetricFamily(f"hms_gateway_{field}", text, value=worst)


def _clock_families(figures: Figures) -> Iterator[Metric]:
    """The clock difference of the worker that differs most; nothing where the database is not a server."""
    known = [replica.clock_seconds for replica in figures.replicas if replica.clock_seconds is not None]
    if known:
        text = "How far the database's clock is ahead of the gateway's"
        yield GaugeMetricFamily("hms_gateway_clock_difference_seconds", text, value=max(known, key=abs))


def _health_families(health: Health) -> Iterator[Metric]:
    for name, (label, text) in _HEALTH.items():
        family = GaugeMetricFamily(f"hms_gateway_{name}", text, labels=(label,))
        for value, count in health.get(name, {}).items():
            family.add_metric((value,), count)
        yield family


def _replica_families(replicas: Sequence[Replica]) -> Iterator[Metric]:
    # One that was killed is known for a minute beside the one that was started again in its place.
    newest = {(each.name, each.pid): each for each in sorted(replicas, key=lambda each: each.seen or 0.0)}
    for field, text in {**_LAGS, "seen": "When a process last said that it is there, in seconds since 1970"}.items():
        name = "seen_timestamp_seconds" if field == "seen" else field
        family = GaugeMetricFamily(f"hms_gateway_replica_{name}", text, labels=("replica", "pid"))
        for replica in newest.values():
            value = getattr(replica, field)
            if value is not None:
                family.add_metric((replica.name, str(replica.pid)), value)
        yield family


def _certificate_families(metrics: Metrics) -> Iterator[Metric]:
    if metrics.certificate_expires_seconds is None:
        return
    yield GaugeMetricFamily(
        "hms_gateway_certificate_expires_timestamp_seconds",
        "When the certificate that new connections are shown expires, in seconds since 1970",
        value=metrics.certificate_expires_seconds,
    )
    yield GaugeMetricFamily(
        "hms_gateway_certificate_unusable",
        "1 when the certificate's files hold something else than is shown and cannot be used",
        value=metrics.certificate_unusable,
    )


def _seconds_family(methods: Mapping[str, MethodFigures]) -> Metric:
    family = HistogramMetricFamily("hms_gateway_call_seconds", "Time to answer a call", labels=("method",))
    for method, figures in methods.items():
        total = 0
        buckets = []
        for bound, count in zip((*map(str, SECONDS_BUCKETS), "+Inf"), figures.counts, strict=True):
            total += count
            buckets.append((bound, float(total)))
        family.add_metric((method,), buckets, figures.seconds)
    return family


def _counter(name: str, text: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
    family = CounterMetricFamily(f"hms_gateway_{name}", text, labels=labels)
    for label_values, count in values:
        family.add_metric(label_values, count)
    return family
