"""Calls of administrators that record what another metastore knows, by a header."""

from collections.abc import Container, Iterator
from contextlib import AbstractContextManager, contextmanager

from hms_gateway.rpc.call import Call
from hms_gateway.runtime.recorded_calls import recording
from hms_gateway.structs import MetaException

SECONDS_MAX = 2**31 - 1


@contextmanager
def as_recorded(call: Call, administrators: Container[str], fence: AbstractContextManager[None]) -> Iterator[None]:
    """What to answer a call with the header in, inside `fence`.

    Raises MetaException for users who are not administrators, and for what is not a time.
    """
    text = (call.recorded_at or "").strip()
    if call.principal not in administrators:
        raise MetaException(
            f"user {call.principal} is not an administrator; the header x-hms-recorded-at is for the users of the "
            "setting administrators"
        )
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= SECONDS_MAX):
        raise MetaException(
            f"the header x-hms-recorded-at is {text[:80]!r}; it is seconds since 1970, at most {SECONDS_MAX}"
        )
    with fence, recording(int(text)):
        yield
