"""Who is let in without a password: the decision, the ways of finding an account out, and what is logged."""

import json
import os
import socket
import ssl
import sys
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pytest
import uvloop

from hms_gateway.bridge.server import admission as admission_module
from hms_gateway.bridge.server.admission import Admission, BridgeOptions, Ends, ListenerTls, PeerAccounts, find_accounts
from hms_gateway.runtime.addresses import Networks
from hms_gateway.runtime.logging import configure_logging
from tests.bridge.canned_upstream import CannedUpstream
from tests.bridge.thrift_bytes import bridge, call, client

OWN = os.geteuid()
ANOTHER = OWN + 1
GET = call("get_all_databases")

linux = pytest.mark.skipif(sys.platform != "linux", reason="sockets have owners on Linux")
pytestmark = linux


@contextmanager
def a_connection(host="127.0.0.1", family=socket.AF_INET, client_family=None, client_host=None):
    with (
        socket.create_server((host, 0), family=family, dualstack_ipv6=host == "::") as listener,
        socket.socket(client_family or family) as peer,
    ):
        peer.connect((client_host or host, listener.getsockname()[1]))
        accepted, _ = listener.accept()
        with accepted:
            yield Ends(accepted.getpeername()[:2], accepted.getsockname()[:2]), peer


@pytest.fixture
def accounts():
    accounts = PeerAccounts()
    yield accounts
    accounts.close()


@pytest.fixture
def logged():
    stream = StringIO()
    configure_logging(stream=stream)
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("host", "family", "client_family", "client_host"),
    [
        ("127.0.0.1", socket.AF_INET, socket.AF_INET, None),
        ("::1", socket.AF_INET6, socket.AF_INET6, None),
        # Java's sockets are for IPv6 and hold IPv4 addresses in it.
        ("127.0.0.1", socket.AF_INET, socket.AF_INET6, "::ffff:127.0.0.1"),
        ("::", socket.AF_INET6, socket.AF_INET, "127.0.0.1"),
        ("::", socket.AF_INET6, socket.AF_INET6, "::ffff:127.0.0.1"),
    ],
)
def test_the_owner_of_the_other_end_is_known(accounts, host, family, client_family, client_host):
    with a_connection(host, family, client_family, client_host) as (ends, _):
        assert accounts.owner(ends) == OWN


def test_a_client_that_has_ended_its_side_still_has_an_owner(accounts):
    with a_connection() as (ends, peer):
        peer.shutdown(socket.SHUT_WR)
        assert accounts.owner(ends) == OWN


def test_a_socket_that_was_closed_has_no_owner(accounts):
    """The kernel shows account 0 for it, which would be the gateway's own where that runs as root."""
    with a_connection() as (ends, peer):
        peer.sendall(GET)
        peer.close()
        assert accounts.owner(ends) is None


def test_a_listener_on_the_same_port_is_not_the_owner(accounts):
    """sock_diag answers with it when a connection with these ends does not exist."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert accounts.owner(Ends(listener.getsockname(), ("127.0.0.1", 1))) is None


def test_a_connection_that_was_never_made_has_no_owner(accounts):
    assert accounts.owner(Ends(("127.0.0.1", 1), ("127.0.0.1", 2))) is None
    assert accounts.owner(Ends(("::1", 1), ("::1", 2))) is None


def test_the_way_that_is_found_works_here():
    accounts = find_accounts()
    assert accounts is not None
    with a_connection() as (ends, _):
        assert accounts.owner(ends) == OWN
    accounts.close()


@pytest.mark.parametrize(
    ("sasl", "own", "is_open", "policy"),
    [
        ("off", OWN, False, "off"),
        ("off", ANOTHER, False, None),
        ("off", ANOTHER, True, "off"),
        ("allow", OWN, False, "allow"),
        ("allow", ANOTHER, False, "require"),
        ("allow", ANOTHER, True, "allow"),
        ("require", ANOTHER, False, "require"),
    ],
)
def test_the_account_decides_unless_a_password_does(sasl, own, is_open, policy):
    admission = Admission(BridgeOptions(sasl=sasl, is_open=is_open), find_accounts, lambda: own)
    admission.start()
    with a_connection() as (ends, _):
        assert admission.policy_for(ends) == policy
    admission.stop()


def test_where_accounts_are_not_known_only_passwords_open(logged):
    for sasl, policy in (("off", None), ("allow", "require"), ("require", "require")):
        admission = Admission(BridgeOptions(sasl=sasl), lambda: None)
        admission.start()
        with a_connection() as (ends, _):
            assert admission.policy_for(ends) == policy
    texts = [line["event"] for line in logged()]
    assert sum("names no account" in text for text in texts) == 2
    assert all("thrift_networks" in line["hint"] for line in logged())


def test_an_address_that_others_reach_is_beyond_accounts():
    """Whoever starts a bridge there has said so by --allow-remote."""
    options = BridgeOptions(host="0.0.0.0", allows_remote=True)
    admission = Admission(options, PeerAccounts, lambda: ANOTHER)
    admission.start()
    with a_connection() as (ends, _):
        assert (options.lets_in, admission.policy_for(ends)) == ("network", "off")


@pytest.mark.parametrize("sasl", ["off", "allow"])
def test_clients_of_networks_come_without_a_login_and_others_by_their_account(sasl):
    options = BridgeOptions(host="0.0.0.0", allows_remote=True, sasl=sasl, networks=Networks(["127.0.2.0/24"]))
    for own, beside in ((OWN, sasl), (ANOTHER, None if sasl == "off" else "require")):
        admission = Admission(options, find_accounts, lambda own=own: own)
        admission.start()
        with a_connection() as (ends, _):
            assert admission.policy_for(ends) == beside
            assert admission.policy_for(Ends(("127.0.2.7", 1), ends.server)) == sasl
            assert admission.policy_for(Ends(("::ffff:127.0.2.7", 1), ends.server)) == sasl
        admission.stop()


def test_refusals_are_logged_once_in_a_while(logged):
    now = [100.0]
    refusals = admission_module.ConnectionRefusals(seconds=lambda: now[0])
    ends = Ends(("127.0.0.1", 5), ("127.0.0.1", 6))
    for _ in range(1000):
        refusals.log(ends, 4711)
        refusals.log(ends, None)
    now[0] += admission_module.LOG_EVERY_SECONDS
    refusals.log(ends, 4712)
    shown = [(line["level"], line.get("account"), line["left_out"]) for line in logged()]
    assert shown == [("warning", 4711, 0), ("info", None, 0), ("warning", 4712, 999)]
    assert logged()[0]["address"] == "127.0.0.1:5"


def test_certificates_that_name_no_user_are_logged_once_in_a_while(logged):
    tls = ListenerTls(ssl.create_default_context(), lambda _: None, lambda _: "", requires_certificate=True)
    admission = Admission(BridgeOptions(tls=tls))
    ends = Ends(("127.0.0.1", 5), ("127.0.0.1", 6))
    assert [admission.policy_for(ends) for _ in range(100)] == [None] * 100
    [line] = logged()
    assert line["event"] == "connection refused: its certificate names no user"


@pytest.mark.parametrize("own", [OWN, ANOTHER])
def test_a_server_closes_what_is_refused(own):
    async def work():
        upstream = CannedUpstream({"get_all_databases": ["default"]})
        async with upstream.running(), bridge(upstream.url) as server:
            server.admission.stop()
            server.admission = Admission(server.options, find_accounts, lambda: own)
            server.admission.start()
            async with client(server) as peer:
                await peer.send(GET)
                if own == OWN:
                    assert (await peer.ask(b"")).success == ["default"]
                    return
                assert await peer.rest() == b""
            async with client(server) as peer:
                # One that says nothing is closed, too.
                assert await peer.rest() == b""
            assert b'hms_bridge_connections_refused_total{reason="other_account"} 2.0' in server.metrics.text()
            assert server.connections == 0

    uvloop.run(work())


def test_nothing_is_left_open_by_asking_for_a_way():
    before = len(list(Path("/proc/self/fd").iterdir()))
    accounts = find_accounts()
    assert accounts is not None
    accounts.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
