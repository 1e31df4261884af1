"""`bridge --do-as` against `proxy_users`: Apache thrift's client says who it is, the gateway decides and remembers."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TSaslClientTransport

from hms_gateway.gateway.auth.users import add_user
from hms_gateway.rpc.structs import Database, LeaseObject, MetaException
from tests.bridge.bridge_process import ApacheClient, BridgeProcess, connected
from tests.support.server import GatewayServer

RULE = {"proxy_users.admin.users": ["alice", "al ice&x=ü"], "administrators": ["alice"]}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    with GatewayServer(tmp_path_factory.mktemp("gateway"), settings=RULE) as running:
        yield running


@pytest.fixture(scope="module")
def bridge(gateway: GatewayServer) -> Iterator[BridgeProcess]:
    with BridgeProcess(gateway, "-k", "--do-as") as running:
        yield running


def caller(client: ApacheClient, database: str) -> str:
    """Who the gateway takes the client for: the owner of a lease it asks for."""
    lease_id = client.grab_lease([LeaseObject(database)], 60, 0)
    (lease,) = client.list_lease([LeaseObject(database)])
    client.drop_lease(lease_id, [])
    assert isinstance(lease.user, str)
    return lease.user


def test_the_user_of_each_connection_is_the_one_it_named(bridge):
    with connected(bridge) as first, connected(bridge) as second, connected(bridge) as silent:
        first.set_ugi("alice", ["staff"])
        second.set_ugi("al ice&x=ü", [])
        assert caller(first, "one") == "alice"
        assert caller(second, "two") == "al ice&x=ü"
        assert caller(silent, "three") == "admin"
        first.set_ugi("admin", [])
        assert caller(first, "four") == "admin"


def test_a_user_that_the_rule_does_not_name_is_refused_and_nothing_is_made(bridge):
    with connected(bridge) as client:
        assert client.set_ugi("mallory", []) == []
        text = "User admin may not act for user mallory: the rule proxy_users.admin does not name mallory"
        for _ in range(2):
            with pytest.raises(MetaException, match=text):
                client.create_database(Database("of_mallory", None, None, {}))
        client.set_ugi("alice", [])
        assert client.get_databases("of_*") == []


def test_what_only_some_may_do_is_decided_by_the_user_acted_for(bridge):
    with connected(bridge) as client:
        client.grab_lease([LeaseObject("held")], 60, 0)
        with pytest.raises(MetaException, match="admin"):
            client.force_drop_lease([LeaseObject("held")])
        client.set_ugi("alice", [])
        client.force_drop_lease([LeaseObject("held")])
        assert client.list_lease([LeaseObject("held")]) == []


def test_a_client_with_a_password_of_its_own_acts_by_the_rule_of_its_own_user(gateway: GatewayServer) -> None:
    add_user(gateway.data_dir / "users", "bob", "bob's own")

    def as_bob(sock: TSocket) -> TSaslClientTransport:
        return TSaslClientTransport(sock, "localhost", "hive", "PLAIN", username="bob", password="bob's own")

    with (
        BridgeProcess(gateway, "-k", "--do-as", "--sasl", "require", password="unused") as bridge,
        connected(bridge, as_bob) as client,
    ):
        assert caller(client, "six") == "bob"
        client.set_ugi("alice", [])
        with pytest.raises(MetaException, match="User bob may not act for user alice: the rule proxy_users"):
            client.get_all_databases()
        client.set_ugi("bob", [])
        assert caller(client, "six") == "bob"


def test_without_the_option_it_is_the_bridges_user(gateway):
    with BridgeProcess(gateway, "-k") as bridge, connected(bridge) as client:
        client.set_ugi("mallory", ["staff"])
        assert caller(client, "five") == "admin"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "the rule proxy_users.admin does not exist"),
        (
            {"proxy_users.admin.users": ["*"], "proxy_users.admin.hosts": ["10.0.0.0/8"]},
            "the rule proxy_users.admin does not hold for calls from 127.0.0.1",
        ),
    ],
)
def test_a_gateway_without_a_fitting_rule_says_so(settings: dict[str, object], text: str, tmp_path: Path) -> None:
    with (
        GatewayServer(tmp_path, settings=settings) as gateway,
        BridgeProcess(gateway, "-k", "--do-as") as bridge,
        connected(bridge) as client,
    ):
        client.set_ugi("alice", [])
        with pytest.raises(MetaException, match=f"HTTP 403: User admin may not act for user alice: {text}"):
            client.get_all_databases()
        with connected(bridge) as silent:
            assert silent.get_all_databases() == ["default"]


def test_both_logs_name_the_user_acted_for(tmp_path: Path) -> None:
    with GatewayServer(tmp_path, settings=RULE) as gateway:
        with BridgeProcess(gateway, "-k", "--do-as") as bridge, connected(bridge) as client:
            client.set_ugi("alice", [])
            client.create_database(Database("sales", None, None, {}))
            bridge.stop()
        gateway.stop()
        assert user_of_call(bridge.log_text(), "bridge call") == user_of_call(gateway.log_text(), "call") == "alice"


def user_of_call(log: str, event: str) -> str:
    records = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    (user,) = {each["user"] for each in records if (each["event"], each.get("method")) == (event, "create_database")}
    return str(user)
