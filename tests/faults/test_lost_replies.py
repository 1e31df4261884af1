"""Every method that changes something, through a proxy that loses its request or reply: it takes effect once, and the
client is told what it would have been told.

Each row runs once undisturbed; the runs with a loss have to leave the same events and the same numbers of transactions,
locks and so on, and to give the same answer.
"""

import contextlib
import http.client
import io
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from thrift.transport.TTransport import TTransportBase

from hms_gateway.rpc.idl.method_facts import changes_something
from hms_gateway.rpc.structs import METHODS, NotificationEventRequest, ShowCompactRequest, ShowLocksRequest
from tests.bridge.bridge_process import ApacheClient, BridgeProcess, connected
from tests.faults.changing_calls import ROWS, World
from tests.faults.dropping_proxy import DroppingProxy, Loss
from tests.support.sample import sample
from tests.support.server import API_PATH, GatewayServer, basic

# What differs between two runs by its nature: ids and times.
_NUMBER = re.compile(r"\d+")
# Before it asks: this client has no login of its own.
REFUSED_BY_THE_BRIDGE = {"get_delegation_token"}


class Behind(NamedTuple):
    """A gateway behind the proxy behind a bridge; `client` calls the bridge, `direct` the gateway."""

    proxy: DroppingProxy
    client: ApacheClient
    direct: ApacheClient


class KeptConnection(TTransportBase):  # type: ignore[misc]
    """Posts what Apache's client writes: what is not lost on the way need not take the way, nor a new connection."""

    def __init__(self, gateway: GatewayServer, connection: http.client.HTTPConnection) -> None:
        self._headers = {**basic(gateway.user, gateway.password), "content-type": "application/x-thrift"}
        self._connection = connection
        self._sent, self._received = io.BytesIO(), io.BytesIO()

    def write(self, part: bytes) -> None:
        self._sent.write(part)

    def flush(self) -> None:
        self._connection.request("POST", API_PATH, self._sent.getvalue(), self._headers)
        answer = self._connection.getresponse()
        self._sent, self._received = io.BytesIO(), io.BytesIO(answer.read())

    def read(self, size: int) -> bytes:
        return self._received.read(size)


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    gateway = GatewayServer(tmp_path_factory.mktemp("lost-replies"))
    with gateway, DroppingProxy(gateway) as proxy:
        url = f"http://127.0.0.1:{proxy.port}{API_PATH}"
        with contextlib.ExitStack() as stack:
            bridge = stack.enter_context(BridgeProcess(gateway, "--url", url))
            kept = KeptConnection(gateway, stack.enter_context(gateway.connection()))
            yield Behind(proxy, stack.enter_context(connected(bridge)), ApacheClient(kept))


def test_every_changing_method_has_a_row():
    changing = {name for name, method in METHODS.items() if changes_something(name) and not method.oneway}
    assert changing == ROWS.keys()


@pytest.mark.parametrize("method", sample(list(ROWS)[::10], of=list(ROWS)))
def test_a_call_takes_effect_once_and_is_answered_as_if_nothing_had_been_lost(behind, method):
    expected = run(behind, method, None)
    for loss in Loss:
        before = behind.proxy.losses
        assert run(behind, method, loss) == expected, loss.value
        assert behind.proxy.losses == before + (method not in REFUSED_BY_THE_BRIDGE)


class Outcome(NamedTuple):
    """The answer, the events and what has become more or less; names and numbers replaced."""

    answer: str
    events: list[str]
    more: dict[str, int]


def run(behind: Behind, method: str, loss: Loss | None) -> Outcome:
    direct = behind.direct
    world = World(direct, f"db_{method}_{loss.name if loss else 'none'}".lower())
    arguments = ROWS[method](world)
    event_id = direct.get_current_notificationEventId().eventId
    counted = counts(direct)
    behind.proxy.lose(method.encode(), loss)
    try:
        answer = repr(behind.client.call(method, *arguments))
    except Exception as error:
        answer = repr(error)
    behind.proxy.lose(b"", None)
    events = direct.get_next_notification(NotificationEventRequest(event_id, -1)).events
    happened = [anonymous(f"{event.eventType} {event.message}", world.db) for event in events]
    now = counts(direct)
    more = {name: now[name] - counted[name] for name in now.keys() | counted.keys()}
    for lease in direct.list_lease([]):
        direct.drop_lease(lease.lease_id, [])
    return Outcome(anonymous(answer, world.db), happened, {name: number for name, number in more.items() if number})


def counts(client: ApacheClient) -> Counter[str]:
    """How many there are of what leaves no event."""
    txns = client.get_open_txns_info()
    counted = Counter(
        {
            "transactions begun": txns.txn_high_water_mark,
            "locks": len(client.show_locks(ShowLocksRequest()).locks),
            "leases": len(client.list_lease([])),
            "roles": len(client.get_role_names()),
            "tokens": len(client.get_all_token_identifiers()),
            "master keys": len(client.get_master_keys()),
        }
    )
    counted.update(f"transactions in state {txn.state}" for txn in txns.open_txns)
    counted.update(f"compactions {one.state}" for one in client.show_compact(ShowCompactRequest()).compacts)
    return counted


def anonymous(text: str, db: str) -> str:
    return _NUMBER.sub("#", text.replace(db, "DB"))
