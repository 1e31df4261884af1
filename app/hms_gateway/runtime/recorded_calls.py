"""Calls that record what another metastore knows: they keep its times, and no directory is made, moved or deleted.

The value is when it happened there, in seconds since 1970, for what the arguments of a call give no time of.
"""

from contextvars import ContextVar

from hms_gateway.runtime.bound import bound

_recorded_at: ContextVar[int | None] = ContextVar("recorded_at", default=None)


def recording(at_seconds: int) -> bound[int | None]:
    """Context manager: calls of this thread record what happened elsewhere."""
    return bound(_recorded_at, at_seconds)


def is_recorded() -> bool:
    """Whether the call this thread is answering records what another metastore knows. Units of work do not know it."""
    return _recorded_at.get() is not None


def creation_seconds(sent: int | None, now_seconds: int) -> int:
    """When something was made: now, but for a recorded call as it was sent, or when that says it was."""
    recorded_at = _recorded_at.get()
    if recorded_at is None:
        return now_seconds
    return recorded_at if sent is None else sent
