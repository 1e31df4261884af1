"""What /metrics shows. Counting is a few list and dict operations per call; the text is made when it is asked for."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection

import msgspec

SECONDS_BUCKETS = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0
)  # fmt: skip
UNKNOWN_METHOD = "unknown"
# What a call ends with that met an error of ours: within the message, or as an HTTP status of 500.
INTERNAL_OUTCOMES = frozenset({"INTERNAL_ERROR", "internal_error"})
CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


class MethodTimes(msgspec.Struct):
    """How many calls of a method fell into each bucket, the last for longer ones, and the time of all."""

    counts: list[int] = msgspec.field(default_factory=lambda: [0] * (len(SECONDS_BUCKETS) + 1))
    seconds: float = 0.0


class Metrics:
    """Counters of one process, touched from the event loop's thread only.

    Method names come from outside, so those that are not `known_methods` share one label.
    """

    def __init__(self, known_methods: Collection[str]) -> None:
        self._known = frozenset(known_methods)
        self.times: defaultdict[str, MethodTimes] = defaultdict(MethodTimes)
        self.outcomes: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.statuses: defaultdict[int, int] = defaultdict(int)
        self.refusals: defaultdict[str, int] = defaultdict(int)
        # By the name of the limit, see `gateway.admission.refusals`.
        self.limited: defaultdict[str, int] = defaultdict(int)
        self.bytes_in = 0
        self.bytes_out = 0
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

    def call(self, method: str, outcome: str, seconds: float) -> None:
        """One Thrift call was answered."""
        if method not in self._known:
            method = UNKNOWN_METHOD
        times = self.times[method]
        times.counts[bisect_left(SECONDS_BUCKETS, seconds)] += 1
        times.seconds += seconds
        self.outcomes[method, outcome] += 1

    def calls_by_method(self) -> dict[str, int]:
        """How often each method was answered; safe to ask from any thread."""
        return {method: sum(times.counts) for method, times in list(self.times.items())}

    @property
    def internal_errors(self) -> int:
        """Calls that failed because of the gateway, and not because of what was asked."""
        return sum(count for (_, outcome), count in list(self.outcomes.items()) if outcome in INTERNAL_OUTCOMES)

    def response(self, status: int, bytes_in: int, bytes_out: int) -> None:
        """One HTTP response of the Thrift endpoint was sent."""
        self.statuses[status] += 1
        self.bytes_in += bytes_in
        self.bytes_out += bytes_out

    def authentication_refused(self, reason: str) -> None:
        self.refusals[reason] += 1
