"""Apache Thrift's Python client (THttpClient) with bindings generated from our schema, in every protocol and path."""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.protocol.TJSONProtocol import TJSONProtocol
from thrift.Thrift import TApplicationException
from thrift.transport.THttpClient import THttpClient

from tests.support.server import API_PATH, METASTORE_PATH, GatewayServer, basic, trusting

DEMO = "hmshttptestdatabase"
PROTOCOLS = {"tjson": TJSONProtocol, "binary": TBinaryProtocol, "compact": TCompactProtocol}
PATHS = [API_PATH, METASTORE_PATH, "/metastore/", "/metastore/*"]


class Bindings:
    """The generated modules: `types` with the structs, `service` with the client."""

    def __init__(self, types: ModuleType, service: ModuleType) -> None:
        self.types: Any = types
        self.service: Any = service


@pytest.fixture(scope="module")
def bindings(generate: Callable[[str], Path]) -> Iterator[Bindings]:
    folder = str(generate("py"))
    sys.path.insert(0, folder)
    try:
        yield Bindings(
            importlib.import_module("hive_metastore.ttypes"),
            importlib.import_module("hive_metastore.ThriftHiveMetastore"),
        )
    finally:
        sys.path.remove(folder)


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@contextmanager
def connected(
    server: GatewayServer,
    bindings: Bindings,
    protocol: str,
    path: str = API_PATH,
    headers: dict[str, str | None] | None = None,
) -> Iterator[tuple[Any, THttpClient]]:
    """A client and its transport. A header that is None is not sent."""
    transport = THttpClient(f"https://127.0.0.1:{server.port}{path}", ssl_context=trusting())
    fields = {**basic(server.user, server.password), **(headers or {})}
    transport.setCustomHeaders({name: value for name, value in fields.items() if value is not None})
    transport.setTimeout(30_000)
    try:
        yield bindings.service.Client(PROTOCOLS[protocol](transport)), transport
    finally:
        transport.close()


@pytest.mark.parametrize("path", PATHS)
def test_nine_reads(server: GatewayServer, bindings: Bindings, protocol: str, path: str) -> None:
    with connected(server, bindings, protocol, path) as (client, _):
        assert {"default", DEMO} <= set(client.get_all_databases())
        assert client.get_databases("default*") == ["default"]
        assert client.get_database("default").ownerName == "public"
        assert client.get_all_tables(DEMO) == ["test_table"]
        assert client.get_tables(DEMO, "*") == ["test_table"]
        assert client.get_tables_by_type(DEMO, ".*", "MANAGED_TABLE") == ["test_table"]
        table = client.get_table(DEMO, "test_table")
        assert [column.name for column in table.sd.cols] == ["name", "age"]
        assert table.sd.compressed is False
        assert client.get_partition_names(DEMO, "test_table", 10) == ["hair_color=black", "hair_color=brown"]
        partitions = client.get_partitions(DEMO, "test_table", -1)
        assert [partition.values for partition in partitions] == [["black"], ["brown"]]


def test_create_change_and_drop(server: GatewayServer, bindings: Bindings, protocol: str) -> None:
    types = bindings.types
    with connected(server, bindings, protocol) as (client, _):
        database = f"python_{protocol}"
        client.create_database(
            types.Database(name=database, description="ünïcode", parameters={"control": "\x01\t\x1f"})
        )
        assert client.get_database(database).parameters["control"] == "\x01\t\x1f"
        client.create_table(partitioned_table(types, database))
        added = [partition(types, database, year, month) for year in (2023, 2024) for month in range(1, 13)]
        assert client.add_partitions(added) == 24
        found = client.get_partitions_by_filter(database, "sales", 'year = 2024 and month > "10"', -1)
        assert [one.values for one in found] == [["2024", "11"], ["2024", "12"]]
        assert client.get_partition_names_ps(database, "sales", ["2023", ""], 2) == [
            "year=2023/month=01",
            "year=2023/month=02",
        ]
        found[0].parameters["checked"] = "yes"
        client.alter_partition(database, "sales", found[0])
        assert client.get_partition(database, "sales", ["2024", "11"]).parameters["checked"] == "yes"
        assert client.drop_partition_by_name(database, "sales", "year=2023/month=01", True) is True
        with pytest.raises(types.InvalidOperationException, match=f"Database {database} is not empty"):
            client.drop_database(database, True, False)
        client.drop_database(database, True, True)
        with pytest.raises(types.NoSuchObjectException):
            client.get_database(database)


def test_declared_exception_keeps_its_class_and_text(server: GatewayServer, bindings: Bindings, protocol: str) -> None:
    with (
        connected(server, bindings, protocol) as (client, _),
        pytest.raises(bindings.types.NoSuchObjectException, match="no_such_table") as caught,
    ):
        client.get_table("default", "no_such_table")
    assert not isinstance(caught.value, TApplicationException)


def test_unknown_method_has_the_text_clients_match(server: GatewayServer, bindings: Bindings, protocol: str) -> None:
    with connected(server, bindings, protocol) as (client, _):
        written = client._oprot.writeMessageBegin
        client._oprot.writeMessageBegin = lambda name, kind, seqid: written("no_such_method", kind, seqid)
        with pytest.raises(TApplicationException) as caught:
            client.get_all_databases()
    assert caught.value.message == "Invalid method name: 'no_such_method'"
    assert caught.value.type == TApplicationException.UNKNOWN_METHOD


def test_sequence_number_comes_back(server: GatewayServer, bindings: Bindings, protocol: str) -> None:
    with connected(server, bindings, protocol) as (client, _):
        for seqid in (0, 1, -1, 2**31 - 1):
            client._seqid = seqid
            client.send_get_all_databases()
            assert client._iprot.readMessageBegin()[2] == seqid
            client._iprot.trans.read(1 << 20)


def test_extreme_long_integers_are_read(server: GatewayServer, bindings: Bindings, protocol: str) -> None:
    request = bindings.types.GetTableRequest(dbName=DEMO, tblName="test_table")
    with connected(server, bindings, protocol) as (client, _):
        for number in (-(2**63), 2**63 - 1, 2**53 + 1):
            request.id = number
            assert client.get_table_req(request).table.tableName == "test_table"


def test_goodbye_leaves_the_server_running(server: GatewayServer, bindings: Bindings, protocol: str) -> None:
    with connected(server, bindings, protocol) as (client, transport):
        client.shutdown()
        assert transport.code == 200
        assert transport.headers["Content-Length"] == "0"
        assert "default" in client.get_all_databases()


def test_two_content_type_headers(server: GatewayServer, bindings: Bindings, protocol: str) -> None:
    with connected(server, bindings, protocol, headers={"Content-Type": "application/json"}) as (client, _):
        assert client.get_databases("default") == ["default"]


def test_no_cookie_to_send_back(server: GatewayServer, bindings: Bindings, protocol: str) -> None:
    with connected(server, bindings, protocol) as (client, transport):
        client.get_all_databases()
        assert transport.headers.get("Set-Cookie") is None


def test_basic_header_without_padding(server: GatewayServer, bindings: Bindings, protocol: str) -> None:
    complete = basic(server.user, server.password)["Authorization"]
    shortened = complete.rstrip("=")
    assert shortened != complete, "the test wants a password whose header needs padding"
    with connected(server, bindings, protocol, headers={"Authorization": shortened}) as (client, _):
        assert client.get_databases("default") == ["default"]


def test_wrong_password_is_an_exception_with_a_text(server: GatewayServer, bindings: Bindings) -> None:
    # This client does not look at the status, it reads the body.
    with connected(server, bindings, "tjson", headers=basic(server.user, "wrong")) as (client, transport):
        with pytest.raises(TApplicationException) as caught:
            client.get_all_databases()
        assert transport.code == 401
        assert "Basic" in transport.headers["WWW-Authenticate"]
    assert caught.value.message


def test_wrong_password_in_binary_is_an_error_at_once(server: GatewayServer, bindings: Bindings) -> None:
    for protocol in ("binary", "compact"):
        with connected(server, bindings, protocol, headers=basic(server.user, "wrong")) as (client, transport):
            with pytest.raises(Exception, match=r".+"):
                client.get_all_databases()
            assert transport.code == 401


def test_a_wrong_token_is_refused_with_a_text(server: GatewayServer, bindings: Bindings) -> None:
    bearer = {"Authorization": "Bearer placeholder"}
    with connected(server, bindings, "tjson", METASTORE_PATH, bearer) as (client, transport):
        with pytest.raises(TApplicationException, match="The token is wrong or was revoked"):
            client.get_all_databases()
        assert transport.code == 401
    with connected(server, bindings, "binary", METASTORE_PATH, bearer) as (client, transport):
        client.send_get_all_databases()
        assert transport.code == 401
        assert b"The token is wrong or was revoked" in transport.read(200)


@pytest.fixture(scope="module")
def trusting_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    """Believes what this machine says about ann."""
    settings = {
        "trusted_proxy.addresses": ["127.0.0.1"],
        "trusted_proxy.users": ["ann"],
        "trusted_proxy.user_header": "x-actor-username",
    }
    with GatewayServer(tmp_path_factory.mktemp("trusting"), settings=settings) as running:
        yield running


def test_a_name_in_a_header_counts_from_a_trusted_peer_only(
    server: GatewayServer, trusting_server: GatewayServer, bindings: Bindings, protocol: str
) -> None:
    for peer, name, status in ((server, "ann", 401), (trusting_server, "ann", 200), (trusting_server, "mallory", 403)):
        headers = {"x-actor-username": name, "Authorization": None}
        with connected(peer, bindings, protocol, "/metastore/*", headers) as (client, transport):
            client.send_get_all_databases()
            assert transport.code == status
            if status == 200:
                assert "default" in client.recv_get_all_databases()


def partitioned_table(types: Any, database: str) -> Any:
    return types.Table(
        dbName=database,
        tableName="sales",
        owner="interop",
        tableType="MANAGED_TABLE",
        sd=descriptor(types),
        partitionKeys=[types.FieldSchema(name="year", type="int"), types.FieldSchema(name="month", type="string")],
        parameters={},
    )


def partition(types: Any, database: str, year: int, month: int) -> Any:
    return types.Partition(
        values=[str(year), f"{month:02}"], dbName=database, tableName="sales", sd=descriptor(types), parameters={}
    )


def descriptor(types: Any) -> Any:
    return types.StorageDescriptor(
        cols=[types.FieldSchema(name="id", type="bigint", comment="")],
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=types.SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )
