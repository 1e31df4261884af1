"""The lease that a call presents: in a header, or in the environment context among its arguments."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, Final

from hms_gateway.rpc.call import Call
from hms_gateway.runtime.presented_lease import presenting
from hms_gateway.structs import IDL, InvalidOperationException, Method, Struct

PROPERTY: Final = "hms.lease.id"
LEASE_SERVICE: Final = "HiveLease"

_CONTEXT: Final = "EnvironmentContext"
_NOT_FENCED: Final = nullcontext()


def under_presented_lease(method: Method, call: Call, arguments: Struct) -> AbstractContextManager[None]:
    """What to answer the call in: its changes are refused when they are not covered by the lease it presents.

    Calls about leases themselves are not fenced. Raises InvalidOperationException for what is not a lease id, and for
    two that differ.
    """
    in_context = _in_context(method, arguments)
    if (call.lease is None and in_context is None) or method.service == LEASE_SERVICE:
        return _NOT_FENCED
    texts = {text for text in (call.lease, in_context) if text is not None}
    if len(texts) > 1:
        raise InvalidOperationException(f"Refused: the call presents two leases, {' and '.join(sorted(texts))}")
    text = texts.pop().strip()
    if not (text.isascii() and text.isdigit()):
        raise InvalidOperationException(f"Refused: {text[:80]!r} is not a lease id")
    return presenting(int(text))


def _in_context(method: Method, arguments: Struct) -> str | None:
    for path in _paths(method):
        context: Any = arguments
        for name in path:
            context = None if context is None else getattr(context, name)
        found: str | None = None if context is None else (context.properties or {}).get(PROPERTY)
        if found is not None:
            return found
    return None


@cache
def _paths(method: Method) -> tuple[tuple[str, ...], ...]:
    """Where the arguments of a method have an environment context: among them, or in a request."""
    return tuple(_contexts_in(method.definition.arguments, depth=2))


def _contexts_in(fields: Iterable[Any], depth: int) -> Iterator[tuple[str, ...]]:
    for field in fields:
        struct = IDL.structs.get(getattr(field.type, "name", ""))
        if struct is None:
            continue
        if struct.name == _CONTEXT:
            yield (field.name,)
        elif depth > 1:
            yield from ((field.name, *path) for path in _contexts_in(struct.fields, depth - 1))
