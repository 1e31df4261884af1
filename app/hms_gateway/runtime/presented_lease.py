"""The lease that the caller presents: its units of work are fenced by it (`metastore.fencing`)."""

from contextvars import ContextVar

from hms_gateway.runtime.bound import bound

_presented: ContextVar[int | None] = ContextVar("presented_lease", default=None)


def presenting(lease_id: int) -> bound[int | None]:
    """Units of work that this thread starts inside are made under the lease."""
    return bound(_presented, lease_id)


def presented_lease_id() -> int | None:
    """The lease of the call this thread is answering, None when its caller presents none."""
    return _presented.get()
