"""The text of /metrics, made with Prometheus' own library."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from hms_gateway.gateway.observability.figures import (
    SECONDS_BUCKETS,
    Figures,
    Health,
    MethodFigures,
    NameFigures,
    Replica,
)
from hms_gateway.gateway.observability.metrics import Metrics

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
