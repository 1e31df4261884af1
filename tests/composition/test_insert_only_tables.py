"""Insert-only tables of Hive 3 and 4 at a whole gateway: made, written, compacted; shown to clients that know them."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from hms_gateway import MetastoreClient
from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import (
    ClientCapabilities,
    ClientCapability,
    CompactionRequest,
    CompactionType,
    FindNextCompactRequest,
    GetTableRequest,
    GetTablesRequest,
    MetaException,
)
from hms_gateway.rpc.wire import ApplicationError
from hms_gateway.txn.rules.write_ids import valid_write_ids_text
from tests.support.catalog import columns, new_table
from tests.support.patience import until
from tests.support.server import API_PATH, METASTORE_PATH, GatewayServer, trusting

KNOWN = ClientCapabilities([ClientCapability.INSERT_ONLY_TABLES])
INSERT_ONLY = {"transactional": "true", "transactional_properties": "insert_only"}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    with GatewayServer(tmp_path_factory.mktemp("insert-only"), settings={"workers": 1}) as server:
        yield server


@pytest.fixture
def ours(gateway: GatewayServer) -> Iterator[MetastoreClient]:
    """A client of this package."""
    with MetastoreClient(gateway.url, (gateway.user, gateway.password), trusting()) as client:
        yield client
        for name in client.call("get_all_tables", "default"):
            client.call("drop_table", "default", name, True)


@pytest.fixture(params=list(Dialect))
def hive(gateway: GatewayServer, request: pytest.FixtureRequest) -> Iterator[MetastoreClient]:
    """A client that says in requests alone what it knows, as Hive's do."""
    url = gateway.url if request.param is Dialect.HIVE_2_3 else gateway.url.replace(API_PATH, METASTORE_PATH)
    options = {"headers": {"x-hms-capabilities": ""}, "methods": methods_of(request.param)}
    with MetastoreClient(url, (gateway.user, gateway.password), trusting(), **options) as client:
        yield client


def hits(gateway: GatewayServer) -> float:
    answer = httpx.get(
        f"https://127.0.0.1:{gateway.port}/metrics", verify=trusting(), auth=(gateway.user, gateway.password)
    )
    (line,) = (line for line in answer.text.splitlines() if line.startswith("hms_gateway_cache_hits_total "))
    return float(line.split()[1])


def answer_from_memory(gateway: GatewayServer, client: MetastoreClient, name: str, *arguments: object) -> None:
    """A reply is kept once the gateway has seen in the log what it was read from, which is soon."""

    def is_kept() -> bool:
        before = hits(gateway)
        client.call(name, *arguments)
        return hits(gateway) > before

    until(is_kept)


def assert_refused(call: Callable[[], object]) -> None:
    """Hive 3.1 and later declare no exception for `get_table_objects_by_name`."""
    with pytest.raises((MetaException, ApplicationError), match="does not appear to support insert-only tables"):
        call()


def test_a_kept_reply_is_given_to_those_only_who_know_such_tables(
    gateway: GatewayServer, ours: MetastoreClient, hive: MetastoreClient
) -> None:
    ours.call("create_table", new_table(parameters=INSERT_ONLY, keys=columns("ds string")))
    with ours.transaction() as txn:
        (valid,) = txn.valid_write_ids("default.t")
    lists = (None, valid_write_ids_text(valid))
    for seen in lists:
        answer_from_memory(
            gateway, hive, "get_table_req", GetTableRequest("default", "t", KNOWN, validWriteIdList=seen)
        )
    answer_from_memory(gateway, hive, "get_table_objects_by_name_req", GetTablesRequest("default", ["t"], KNOWN))
    for _ in range(2):
        assert ours.call("get_table", "default", "t").tableName == "t"
        assert [table.tableName for table in ours.call("get_table_objects_by_name", "default", ["t"])] == ["t"]
        for capabilities in (None, ClientCapabilities([]), ClientCapabilities([ClientCapability.TEST_CAPABILITY])):
            for seen in lists:
                request = GetTableRequest("default", "t", capabilities, validWriteIdList=seen)
                assert_refused(lambda request=request: hive.call("get_table_req", request))
            listed = GetTablesRequest("default", ["t"], capabilities)
            assert_refused(lambda listed=listed: hive.call("get_table_objects_by_name_req", listed))
        assert_refused(lambda: hive.call("get_table", "default", "t"))
        assert_refused(lambda: hive.call("get_table_objects_by_name", "default", ["t"]))


def test_a_table_that_becomes_insert_only_is_no_longer_answered_from_memory(
    gateway: GatewayServer, ours: MetastoreClient, hive: MetastoreClient
) -> None:
    ours.call("create_table", new_table())
    answer_from_memory(gateway, hive, "get_table", "default", "t")
    ours.call("alter_table", "default", "t", new_table(parameters=INSERT_ONLY))
    assert_refused(lambda: hive.call("get_table", "default", "t"))
    ours.call("alter_table", "default", "t", new_table(parameters={}))
    assert hive.call("get_table", "default", "t").tableName == "t"


def test_it_is_written_and_compacted_as_other_transactional_tables(ours: MetastoreClient) -> None:
    ours.call("create_table", new_table(parameters=INSERT_ONLY))
    with ours.transaction() as txn:
        assert txn.allocate("default.t") == 1
    with ours.transaction() as txn:
        (seen,) = txn.valid_write_ids("default.t")
        assert seen.ids.high_water_mark == 1
    ours.call("compact2", CompactionRequest("default", "t", None, CompactionType.MAJOR))
    taken = ours.call("find_next_compact2", FindNextCompactRequest("worker", "4")).ci
    assert (taken.dbname, taken.tablename, taken.type) == ("default", "t", CompactionType.MAJOR)
