"""The answer of /status/costs: what calls cost, by method, user and object, for people and the console.

docs/observability.md describes every field.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from hms_gateway.gateway.observability.figures import (
    Figures,
    MethodFigures,
    NameFigures,
    Period,
    Replica,
    percentile,
)
from hms_gateway.gateway.observability.metrics import PERIOD_SECONDS, PERIODS_MAX

NOW_SECONDS = 60.0
NAMES_MAX = 50


def cost_report(
    figures: Figures, *, user: str, sees_all: bool, newest_event: int | None, now: float | None = None
) -> dict[str, Any]:
    """The report for `user`: who does not see all gets no object, no machine and no other user's name."""
    now = time.time() if now is None else now
    window = figures.window
    users = {name: of for name, of in window.users.items() if sees_all or name == user}
    replicas = [
        *(_own(replica, newest_event) for replica in figures.replicas),
        *(_replica(replica, is_own=False) for replica in figures.others),
    ]
    slow = [call for call in figures.slow_calls if sees_all or call.user == user]
    return {
        "time": now,
        "started": figures.started,
        "workers": figures.workers,
        "user": user,
        "sees_all": sees_all,
        "now": _now(figures, now),
        "series": _series(figures.periods, now),
        "window_seconds": now - window.since,
        "methods": _methods(window.methods),
        "users": _names(users),
        "objects": _names(window.objects) if sees_all else [],
        "cache": _cache(figures),
        "database": {
            name: figures.counters.get(f"database_{name}", 0)
            for name in ("reads", "read_seconds", "writes", "write_seconds")
        },
        "queues": {
            name: figures.gauges.get(name, 0)
            for name in ("calls_in_flight", "calls_queued", "calls_waiting", "writes_queued", "streams_in_flight")
        },
        "refused": figures.labelled,
        "replicas": replicas if sees_all else [_nameless(row, number) for number, row in enumerate(replicas, 1)],
        "slow_calls": [asdict(call) for call in reversed(slow)],
    }


def _own(replica: Replica, newest_event: int | None) -> dict[str, Any]:
    """A process of this gateway, as it is now."""
    lag_events = None if newest_event is None else max(0, newest_event - replica.event_id)
    row = _replica(replica, is_own=True) | {"lag_events": lag_events}
    return row if lag_events else row | {"lag_seconds": lag_events}


def _replica(replica: Replica, *, is_own: bool) -> dict[str, Any]:
    return {
        "name": replica.name,
        "pid": replica.pid,
        "version": replica.version,
        "is_own": is_own,
        "started": replica.started,
        "seen": replica.seen,
        "event_id": replica.event_id,
        "lag_events": replica.lag_events,
        "lag_seconds": replica.lag_seconds,
    }


def _nameless(row: dict[str, Any], number: int) -> dict[str, Any]:
    """The progress of each replica without machine, process and version."""
    return row | {"name": f"gateway {number}", "pid": None, "version": ""}


def _now(figures: Figures, now: float) -> dict[str, float | None]:
    """Figures of the last minute."""
    recent = [period for period in figures.periods if period.end > now - NOW_SECONDS]
    seconds = max(1.0, min(NOW_SECONDS, now - figures.started))
    counts = [sum(each) for each in zip(*(period.counts for period in recent), strict=True)]
    calls = sum(counts)
    return {
        "seconds": seconds,
        "calls_per_second": calls / seconds,
        "errors_per_second": sum(period.errors for period in recent) / seconds,
        "bytes_in_per_second": sum(period.bytes_in for period in recent) / seconds,
        "bytes_out_per_second": sum(period.bytes_out for period in recent) / seconds,
        "cache_hit_share": sum(period.cached for period in recent) / calls if calls else None,
        **_percentiles(counts),
    }


def _series(periods: Sequence[Period], now: float) -> dict[str, Any]:
    """Columns of equal length, oldest first; a period of each worker counts in the slot in which it ended."""
    last = int(now // PERIOD_SECONDS)
    slots: dict[int, list[Period]] = {}
    for period in periods:
        slots.setdefault(int(period.end // PERIOD_SECONDS), []).append(period)
    first = max(last - PERIODS_MAX, min(slots, default=last))
    columns: dict[str, Any] = {
        "seconds": PERIOD_SECONDS,
        "time": [slot * PERIOD_SECONDS for slot in range(first, last)],
    }
    for name in ("calls", "errors", "cached", "bytes_in", "bytes_out"):
        columns[f"{name}_per_second"] = [
            sum(sum(it.counts) if name == "calls" else getattr(it, name) for it in slots.get(slot, ())) / PERIOD_SECONDS
            for slot in range(first, last)
        ]
    counts = [
        [sum(each) for each in zip(*(it.counts for it in slots.get(slot, ())), strict=True)]
        for slot in range(first, last)
    ]
    for name in ("p50_seconds", "p99_seconds"):
        columns[name] = [_percentiles(of)[name] for of in counts]
    return columns


def _percentiles(counts: Sequence[int]) -> dict[str, float | None]:
    return {f"p{part}_seconds": percentile(counts, part / 100) for part in (50, 95, 99)}


def _methods(methods: Mapping[str, MethodFigures]) -> list[dict[str, Any]]:
    rows = [
        {
            "name": name,
            "calls": of.calls,
            "errors": of.errors,
            "outcomes": of.outcomes,
            "seconds": of.seconds,
            "cached": of.cached,
            "bytes_in": of.bytes_in,
            "bytes_out": of.bytes_out,
            **_percentiles(of.counts),
        }
        for name, of in methods.items()
    ]
    return sorted(rows, key=lambda row: row["seconds"], reverse=True)


def _names(names: Mapping[str, NameFigures]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"name": name, **asdict(of)} for name, of in names.items() if name]
    return sorted(rows, key=lambda row: row["seconds"], reverse=True)[:NAMES_MAX]


def _cache(figures: Figures) -> dict[str, float | None]:
    hits, misses = figures.counters.get("cache_hits", 0), figures.counters.get("cache_misses", 0)
    return {
        "hits": hits,
        "misses": misses,
        "hit_share": hits / (hits + misses) if hits + misses else None,
        "bytes": figures.gauges.get("cache_bytes", 0),
        "replies": figures.gauges.get("cache_replies", 0),
    }
