"""What /metrics of the bridge shows."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from hms_gateway.rpc.structs import METHODS

SECONDS_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
UNKNOWN_METHOD = "unknown"


class BridgeMetrics:
    """Counters of one bridge. Method names come from outside, so unknown ones share a label."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._seconds = Histogram(
            "hms_bridge_call_seconds",
            "Time to answer a call",
            ["method"],
            buckets=SECONDS_BUCKETS,
            registry=self.registry,
        )
        self._calls = Counter("hms_bridge_calls", "Calls", ["method", "outcome"], registry=self.registry)
        self._refused = Counter(
            "hms_bridge_connections_refused", "Connections closed without a call", ["reason"], registry=self.registry
        )
        self._bytes = Counter("hms_bridge_bytes", "Bytes of messages", ["direction"], registry=self.registry)
        self._bytes_in, self._bytes_out = self._bytes.labels("in"), self._bytes.labels("out")
        self._observers: dict[str, Callable[[float], None]] = {}
        self._counters: dict[tuple[str, str], Callable[[], None]] = {}
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)

    def watch(self, name: str, text: str, value: Callable[[], float]) -> None:
        """A gauge whose value is asked for when it is shown."""
        Gauge(f"hms_bridge_{name}", text, registry=self.registry).set_function(value)

    def call(self, method: str, outcome: str, seconds: float, bytes_in: int, bytes_out: int) -> None:
        """One call was answered, or not."""
        name = method if method in METHODS else UNKNOWN_METHOD
        observe = self._observers.get(name)
        if observe is None:
            observe = self._observers[name] = self._seconds.labels(name).observe
        observe(seconds)
        count = self._counters.get((name, outcome))
        if count is None:
            count = self._counters[name, outcome] = self._calls.labels(name, outcome).inc
        count()
        self._bytes_in.inc(bytes_in)
        self._bytes_out.inc(bytes_out)

    def refused(self, reason: str, *, user: str = "", address: str = "") -> None:
        """A connection was closed; whose it was is in the log."""
        self._refused.labels(reason).inc()

    def text(self) -> bytes:
        """Everything in the Prometheus text format."""
        return generate_latest(self.registry)
