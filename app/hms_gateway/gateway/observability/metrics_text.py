"""The text of /metrics, made with Prometheus' own library."""

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from hms_gateway.gateway.observability.metrics import SECONDS_BUCKETS, Metrics


def metrics_text(metrics: Metrics) -> bytes:
    """Everything in the Prometheus text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(metrics))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return generate_latest(registry)


class _Collector:
    """What prometheus-client asks for metrics."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        return _families(self._metrics)


def _families(metrics: Metrics) -> Iterator[Metric]:
    yield _seconds_family(metrics)
    yield _counter("calls", "Thrift calls answered", ("method", "outcome"), metrics.outcomes.items())
    statuses = [((str(status),), count) for status, count in metrics.statuses.items()]
    yield _counter("http_responses", "HTTP responses of the endpoint", ("status",), statuses)
    refusals = [((reason,), count) for reason, count in metrics.refusals.items()]
    yield _counter("authentication_refused", "Requests refused before the call", ("reason",), refusals)
    limited = [((limit,), count) for limit, count in metrics.limited.items()]
    yield _counter("limited", "Requests and connections that a limit refused or cut off", ("limit",), limited)
    thrift_refusals = [((reason,), count) for reason, count in metrics.thrift_refusals.items()]
    yield _counter("thrift_connections_refused", "Connections closed by the Thrift port", ("reason",), thrift_refusals)
    for name, text, value in (
        ("internal_errors", "Calls that failed because of the gateway", metrics.internal_errors),
        ("received_bytes", "Bytes of request bodies", metrics.bytes_in),
        ("sent_bytes", "Bytes of response bodies", metrics.bytes_out),
        ("cache_hits", "Calls answered from the reply cache", metrics.cache_hits),
        ("cache_misses", "Calls the reply cache could not answer", metrics.cache_misses),
        ("connections_refused", "Connections closed because there were too many", metrics.connections_refused),
    ):
        yield CounterMetricFamily(f"hms_gateway_{name}", text, value=value)
    yield GaugeMetricFamily("hms_gateway_calls_in_flight", "Calls being worked on", value=metrics.calls_in_flight)
    yield GaugeMetricFamily("hms_gateway_calls_waiting", "Calls that wait for others", value=metrics.calls_waiting)
    yield GaugeMetricFamily("hms_gateway_streams_in_flight", "Replies being streamed", value=metrics.streams_in_flight)
    yield from _certificate_families(metrics)
    if metrics.database_damaged is not None:
        text = "1 when the last check of the SQLite database found damage"
        yield GaugeMetricFamily("hms_gateway_database_damaged", text, value=metrics.database_damaged)


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


def _seconds_family(metrics: Metrics) -> Metric:
    family = HistogramMetricFamily("hms_gateway_call_seconds", "Time to answer a call", labels=("method",))
    for method, times in list(metrics.times.items()):
        total = 0
        buckets = []
        for bound, count in zip((*map(str, SECONDS_BUCKETS), "+Inf"), times.counts, strict=True):
            total += count
            buckets.append((bound, float(total)))
        family.add_metric((method,), buckets, times.seconds)
    return family


def _counter(name: str, text: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], int]]) -> Metric:
    family = CounterMetricFamily(f"hms_gateway_{name}", text, labels=labels)
    for label_values, count in list(values):
        family.add_metric(label_values, count)
    return family
