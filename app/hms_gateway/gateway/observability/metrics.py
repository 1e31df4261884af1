"""Figures of one process for /metrics and /status/costs. Counting is a few additions; texts are made on request."""

import os
from collections import defaultdict
from collections.abc import Callable, Collection

from hms_gateway.gateway.observability.call_counter import CallCounter
from hms_gateway.gateway.observability.figures import INTERNAL_OUTCOMES, Figures, Watched, add_counts

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
