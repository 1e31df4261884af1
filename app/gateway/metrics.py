"""What /metrics shows. Counting is a few list and dict operations per call; the text is made when it is asked for."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

SECONDS_BUCKETS = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0
)  # fmt: skip
UNKNOWN_METHOD = "unknown"
CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class _MethodTimes:
    counts: list[int] = field(default_factory=lambda: [0] * (len(SECONDS_BUCKETS) + 1))
    seconds: float = 0.0


class Metrics:
    """Counters of one process, touched from the event loop's thread only.

    Method names come from outside, so those that are not `known_methods` share one label.
    """

    def __init__(self, known_methods: Collection[str]) -> None:
        self._known = frozenset(known_methods)
        self._times: defaultdict[str, _MethodTimes] = defaultdict(_MethodTimes)
        self._outcomes: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._statuses: defaultdict[int, int] = defaultdict(int)
        self._refusals: defaultdict[str, int] = defaultdict(int)
        self.bytes_in = 0
        self.bytes_out = 0
        self.cache_hits = 0
        self.cache_misses = 0
        self.calls_in_flight = 0
        self.calls_waiting = 0
        self.streams_in_flight = 0
        self.connections_refused = 0
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Collector(self))
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)

    def call(self, method: str, outcome: str, seconds: float) -> None:
        """One Thrift call was answered."""
        if method not in self._known:
            method = UNKNOWN_METHOD
        times = self._times[method]
        times.counts[bisect_left(SECONDS_BUCKETS, seconds)] += 1
        times.seconds += seconds
        self._outcomes[method, outcome] += 1

    def calls_by_method(self) -> dict[str, int]:
        """How often each method was answered; safe to ask from any thread."""
        return {method: sum(times.counts) for method, times in list(self._times.items())}

    def response(self, status: int, bytes_in: int, bytes_out: int) -> None:
        """One HTTP response of the Thrift endpoint was sent."""
        self._statuses[status] += 1
        self.bytes_in += bytes_in
        self.bytes_out += bytes_out

    def authentication_refused(self, reason: str) -> None:
        self._refusals[reason] += 1

    def text(self) -> bytes:
        """Everything in the Prometheus text format."""
        return generate_latest(self._registry)

    def families(self) -> Iterator[Metric]:
        yield self._seconds_family()
        yield self._counter("calls", "Thrift calls answered", ("method", "outcome"), self._outcomes.items())
        statuses = [((str(status),), count) for status, count in self._statuses.items()]
        yield self._counter("http_responses", "HTTP responses of the endpoint", ("status",), statuses)
        refusals = [((reason,), count) for reason, count in self._refusals.items()]
        yield self._counter("authentication_refused", "Requests refused before the call", ("reason",), refusals)
        for name, text, value in (
            ("received_bytes", "Bytes of request bodies", self.bytes_in),
            ("sent_bytes", "Bytes of response bodies", self.bytes_out),
            ("cache_hits", "Calls answered from the reply cache", self.cache_hits),
            ("cache_misses", "Calls the reply cache could not answer", self.cache_misses),
            ("connections_refused", "Connections closed because there were too many", self.connections_refused),
        ):
            yield CounterMetricFamily(f"hms_gateway_{name}", text, value=value)
        yield GaugeMetricFamily("hms_gateway_calls_in_flight", "Calls being worked on", value=self.calls_in_flight)
        yield GaugeMetricFamily("hms_gateway_calls_waiting", "Calls that wait for others", value=self.calls_waiting)
        yield GaugeMetricFamily("hms_gateway_streams_in_flight", "Replies being streamed", value=self.streams_in_flight)

    def _seconds_family(self) -> Metric:
        family = HistogramMetricFamily("hms_gateway_call_seconds", "Time to answer a call", labels=("method",))
        for method, times in list(self._times.items()):
            total = 0
            buckets = []
            for bound, count in zip((*map(str, SECONDS_BUCKETS), "+Inf"), times.counts, strict=True):
                total += count
                buckets.append((bound, float(total)))
            family.add_metric((method,), buckets, times.seconds)
        return family

    def _counter(
        self, name: str, text: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], int]]
    ) -> Metric:
        family = CounterMetricFamily(f"hms_gateway_{name}", text, labels=labels)
        for label_values, count in list(values):
            family.add_metric(label_values, count)
        return family


class _Collector:
    """What prometheus-client asks for metrics."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        return self._metrics.families()
