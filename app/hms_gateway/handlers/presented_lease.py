"""The lease that a call presents: in a header, or in the environment context among its arguments."""

from contextlib import AbstractContextManager, nullcontext
from typing import Final

from hms_gateway.handlers.environment import in_environment
from hms_gateway.rpc.call import Call
from hms_gateway.runtime.presented import presenting
from hms_gateway.structs import InvalidOperationException, Method, Struct

PROPERTY: Final = "hms.lease.id"
LEASE_SERVICE: Final = "HiveLease"

_NOT_FENCED: Final = nullcontext()


def under_presented_lease(
    method: Method, call: Call, arguments: Struct, holder: str | None = None
) -> AbstractContextManager[None]:
    """What to answer the call in: its changes are refused when they are not covered by the lease it presents.

    `holder` is the user whose the lease has to be, None is every user. Calls about leases themselves are not fenced.

    Raises InvalidOperationException for what is not a lease id, and for two that differ.
    """
    in_context = in_environment(method, arguments, PROPERTY)
    if (call.lease is None and in_context is None) or method.service == LEASE_SERVICE:
        return _NOT_FENCED
    texts = {text for text in (call.lease, in_context) if text is not None}
    if len(texts) > 1:
        raise InvalidOperationException(f"Refused: the call presents two leases, {' and '.join(sorted(texts))}")
    text = texts.pop().strip()
    if not (text.isascii() and text.isdigit()):
        raise InvalidOperationException(f"Refused: {text[:80]!r} is not a lease id")
    return presenting(int(text), holder)
