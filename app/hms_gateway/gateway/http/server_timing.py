"""The header Server-Timing: what the time of a call went to, for the client that asked for it."""

import time

from hms_gateway.gateway.http.exchange import Exchange
from hms_gateway.timing.spans import seconds_by_name

# The metric that each span counts for.
_METRICS = {"parse": "parse", "cache": "cache", "queue": "queue", "read": "db", "write": "db", "call": "call"}


def server_timing(exchange: Exchange) -> bytes:
    """In milliseconds, as W3C Server Timing has it; what the call did not need is left out."""
    noted = () if exchange.notes is None else exchange.notes.parts
    spans = [*((part.name, part.begin, part.end) for part in noted), *exchange.spans]
    known = [(_METRICS[name], begin, end) for name, begin, end in spans if name in _METRICS]
    found = {**seconds_by_name(known), "total": time.perf_counter() - exchange.started}
    described = "cache;desc=hit" if exchange.cached else "cache"
    return ", ".join(
        f"{described if name == 'cache' else name};dur={seconds * 1000:.3f}" for name, seconds in found.items()
    ).encode()
