"""A request that may still take effect is answered as such: no client sends it again by itself."""

import asyncio
from contextlib import ExitStack
from types import SimpleNamespace

import msgspec
import pytest

from hms_gateway.gateway.admission.identity import Refused, overloaded
from hms_gateway.gateway.http.iceberg_door import IcebergDoor

SLOW = Refused(503, "too slow; it may still take effect", headers=((b"retry-after", b"10"),), reason="call_too_slow")
LATE = Refused(503, "there are too many long replies", headers=((b"retry-after", b"1"),), reason="overload")
UNKNOWN, AWAY = (500, "CommitStateUnknownException"), (503, "ServiceUnavailableException")


@pytest.mark.parametrize(
    ("method", "is_read", "error", "expected"),
    [
        ("POST", True, SLOW, UNKNOWN),
        ("DELETE", True, asyncio.CancelledError(), UNKNOWN),
        ("POST", False, asyncio.CancelledError(), AWAY),
        ("GET", True, SLOW, AWAY),
        ("GET", True, asyncio.CancelledError(), AWAY),
        ("POST", True, overloaded("there are too many calls in flight"), AWAY),
        ("POST", True, LATE, UNKNOWN),
        ("GET", True, LATE, AWAY),
    ],
)
def test_what_may_still_take_effect_is_unknown(method, is_read, error, expected):
    class Door(IcebergDoor):
        async def _answered(self, exchange, channel, held):
            exchange.is_read = is_read
            raise error

    exchange = SimpleNamespace(outcome="ok", is_read=False, head=SimpleNamespace(headers={}))
    channel = SimpleNamespace(body_is_read=True, scope={"method": method})
    door = Door("/iceberg", None, SimpleNamespace(endpoint=None))
    answer = asyncio.run(door._answer(exchange, channel, ExitStack()))
    found = msgspec.json.decode(answer.body)["error"]
    assert (answer.status, found["type"], found["code"]) == (*expected, expected[0])
    assert answer.status != 500 or answer.headers == ()
