"""A client of Hive 2.3 and one of Hive 4, each with bindings of its own IDL, at the same tables at the same time."""

import importlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.THttpClient import THttpClient

from tests.support.patience import until
from tests.support.server import API_PATH, METASTORE_PATH, GatewayServer, basic

IDLS = Path(__file__).parent / "idl"
DB = "default"


class Client:
    """The generated service and structs of one dialect, connected where its clients connect."""

    def __init__(self, types: ModuleType, service: Any) -> None:
        self.types: Any = types
        self.service = service


@pytest.fixture(scope="module")
def bindings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    compiler = shutil.which("thrift")
    if compiler is None:
        pytest.skip("no Thrift compiler (command `thrift`, package thrift-compiler)")
    folder = tmp_path_factory.mktemp("dialects")
    for idl in IDLS.glob("*.thrift"):
        subprocess.run([compiler, "--gen", "py", "-out", folder, idl], check=True, capture_output=True)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


@pytest.fixture
def old(bindings: Path, gateway: GatewayServer) -> Iterator[Client]:
    with _connected("dialect2", gateway, API_PATH) as client:
        yield client


@pytest.fixture
def new(bindings: Path, gateway: GatewayServer) -> Iterator[Client]:
    with _connected("dialect4", gateway, METASTORE_PATH) as client:
        yield client


@contextmanager
def _connected(package: str, server: GatewayServer, path: str) -> Iterator[Client]:
    transport = THttpClient(server.url.replace(API_PATH, path))
    transport.setCustomHeaders(basic(server.user, server.password))
    service = importlib.import_module(f"{package}.Metastore")
    try:
        yield Client(importlib.import_module(f"{package}.ttypes"), service.Client(TBinaryProtocol(transport)))
    finally:
        transport.close()


def _make_table(old: Client, db_name: str) -> None:
    types = old.types
    old.service.create_database(types.Database(name=db_name))
    sd = types.StorageDescriptor(
        cols=[types.FieldSchema("id", "bigint")],
        inputFormat="in.Format",
        outputFormat="out.Format",
        compressed=False,
        numBuckets=-1,
        serdeInfo=types.SerDeInfo(serializationLib="a.SerDe", parameters={}),
        parameters={},
    )
    old.service.create_table(
        types.Table("t", db_name, "somebody", 0, 0, 0, sd, [], {"made by": "2.3"}, tableType="MANAGED_TABLE")
    )


def test_both_see_and_change_one_table(old: Client, new: Client) -> None:
    _make_table(old, "dialects")
    table = new.service.get_table_req(new.types.GetTableRequest("dialects", "t", catName="hive")).table
    assert (table.catName, table.parameters["made by"]) == ("hive", "2.3")

    table.parameters["changed by"] = "4"
    table.requiredReadCapabilities = ["reading"]
    table.sd.cols.append(new.types.FieldSchema("more", "string", "new"))
    new.service.alter_table_req(new.types.AlterTableRequest("hive", "dialects", "t", table))
    seen = old.service.get_table("dialects", "t")
    assert [column.name for column in seen.sd.cols] == ["id", "more"]
    assert (seen.parameters["made by"], seen.parameters["changed by"]) == ("2.3", "4")

    seen.parameters["changed again by"] = "2.3"
    old.service.alter_table("dialects", "t", seen)
    table = new.service.get_table("@hive#dialects", "t")
    assert table.parameters["changed again by"] == "2.3"
    # The old client knows nothing of the field, so its change must not take it away.
    assert table.requiredReadCapabilities == ["reading"]


def test_names_with_a_catalog_mean_the_same_databases(old: Client, new: Client) -> None:
    old.service.create_database(old.types.Database(name="with_catalog"))
    for pattern in ("@hive#with*", "with_*", "@hive#"):
        assert "with_catalog" in new.service.get_databases(pattern)
    assert "with_catalog" in old.service.get_all_databases()
    with pytest.raises(new.types.NoSuchObjectException):
        new.service.get_table("@hive#with_catalog", "t")
    with pytest.raises(new.types.NoSuchObjectException):
        new.service.get_table("@other#dialects", "t")


def test_every_change_may_name_the_catalog(old: Client, new: Client) -> None:
    """As Hive 3 and 4 spell nearly every call of the old style (semantics §1.4)."""
    _make_table(old, "by_catalog")
    table = new.service.get_table("@hive#by_catalog", "t")
    table.parameters["changed by"] = "4"
    new.service.alter_table("@hive#by_catalog", "t", table)
    assert old.service.get_table("by_catalog", "t").parameters["changed by"] == "4"
    table.tableName = "made_by_4"
    table.sd.location = None
    new.service.create_table(table)
    assert new.service.get_tables("@hive#by_catalog", "made*") == ["made_by_4"]
    assert new.service.get_all_tables("@hive#by_catalog") == ["made_by_4", "t"]
    new.service.drop_table("@hive#by_catalog", "t", True)
    with pytest.raises(old.types.NoSuchObjectException):
        old.service.get_table("by_catalog", "t")
    assert old.service.get_table("by_catalog", "made_by_4").parameters["changed by"] == "4"


def test_one_field_id_is_two_exceptions(old: Client, new: Client) -> None:
    with pytest.raises(old.types.MetaException):
        old.service.get_partition_names("nosuch", "t", -1)
    with pytest.raises(new.types.NoSuchObjectException):
        new.service.get_partition_names("nosuch", "t", -1)


def test_open_transactions_are_shaped_for_each(old: Client, new: Client) -> None:
    opened = old.service.open_txns(old.types.OpenTxnRequest(2, "somebody", "somewhere")).txn_ids
    old.service.abort_txn(old.types.AbortTxnRequest(opened[0]))
    as_set, as_list = old.service.get_open_txns(), new.service.get_open_txns()
    assert as_set.open_txns == set(as_list.open_txns) >= set(opened)
    assert isinstance(as_list.abortedBits, bytes)
    aborted = [
        txn
        for place, txn in enumerate(as_list.open_txns)
        if place // 8 < len(as_list.abortedBits) and as_list.abortedBits[place // 8] >> place % 8 & 1
    ]
    assert opened[0] in aborted
    assert opened[1] not in aborted
    old.service.abort_txn(old.types.AbortTxnRequest(opened[1]))


class Reader:
    """A transaction of Hive 4: what it may see is asked for when it begins, and sent with each read."""

    def __init__(self, client: Client, table_id: int) -> None:
        self._client, self._table_id = client, table_id
        types, service = client.types, client.service
        open_txns = service.get_open_txns_req(types.GetOpenTxnsRequest())
        self.txn_id = service.open_txns(types.OpenTxnRequest(1, "ann", "node-1")).txn_ids[0]
        numbers = ",".join(map(str, open_txns.open_txns))
        seen = f"{open_txns.txn_high_water_mark}:{open_txns.min_open_txn or 2**63 - 1}:{numbers}:"
        request = types.GetValidWriteIdsRequest([f"{DB}.t"], seen)
        (valid,) = service.get_valid_write_ids(request).tblValidWriteIds
        assert not any(valid.abortedBits)
        invalid = ",".join(map(str, valid.invalidWriteIds))
        self.list = f"{DB}.t:{valid.writeIdHighWaterMark}:{valid.minOpenWriteId or 2**63 - 1}:{invalid}:"

    def names(self) -> list[str]:
        types, service = self._client.types, self._client.service
        fields = {"validWriteIdList": self.list, "id": self._table_id}
        table = service.get_table_req(types.GetTableRequest(DB, "t", catName="hive", **fields)).table
        assert table.id == self._table_id
        request = types.GetPartitionNamesPsRequest("hive", DB, "t", [""], **fields)
        names: list[str] = service.get_partition_names_ps_req(request).names
        return names

    def add(self, value: str) -> None:
        types, service = self._client.types, self._client.service
        request = types.AllocateTableWriteIdsRequest(DB, "t", [self.txn_id])
        (given,) = service.allocate_table_write_ids(request).txnToWriteIds
        sd = types.StorageDescriptor(cols=[], serdeInfo=types.SerDeInfo())
        service.add_partition(types.Partition([value], DB, "t", sd=sd, writeId=given.writeId))

    def commit(self) -> None:
        self._client.service.commit_txn(self._client.types.CommitTxnRequest(self.txn_id))


@pytest.mark.parametrize("path", [API_PATH, METASTORE_PATH])
def test_two_transactions_of_a_client_of_hive_4(bindings: Path, gateway: GatewayServer, path: str) -> None:
    """Bindings of Hive 4's IDL alone, at both paths: who begins before a commit goes on with its own list, who begins
    after it sees what was committed, again without a question to the database.
    """
    with _connected("dialect4", gateway, path) as writer, _connected("dialect4", gateway, path) as other:
        table_id = _make_transactional_table(writer)
        early, changing = Reader(other, table_id), Reader(writer, table_id)
        assert early.names() == []
        changing.add("1")
        changing.commit()
        late = Reader(other, table_id)
        assert late.list != early.list

        def is_kept() -> bool:
            before = _hits(gateway)
            assert late.names() == ["ds=1"]
            return _hits(gateway) - before == 2

        # A reply is kept once the gateway has seen the commit in the log, which is soon.
        until(is_kept)
        early.commit()
        late.commit()
        other.service.drop_table(DB, "t", True)


def _make_transactional_table(client: Client) -> int:
    types, service = client.types, client.service
    orc = "org.apache.hadoop.hive.ql.io.orc.Orc"
    sd = types.StorageDescriptor(
        cols=[types.FieldSchema("a", "int")],
        inputFormat=f"{orc}InputFormat",
        outputFormat=f"{orc}OutputFormat",
        numBuckets=1,
        bucketCols=["a"],
        serdeInfo=types.SerDeInfo(parameters={}),
        parameters={},
    )
    keys = [types.FieldSchema("ds", "string")]
    service.create_table(
        types.Table("t", DB, "ann", 0, 0, 0, sd, keys, {"transactional": "true"}, tableType="MANAGED_TABLE")
    )
    table_id: int = service.get_table_req(types.GetTableRequest(DB, "t", catName="hive")).table.id
    return table_id


def _hits(gateway: GatewayServer) -> float:
    answer = httpx.get(gateway.url.replace(API_PATH, "/metrics"), auth=(gateway.user, gateway.password))
    (line,) = (line for line in answer.text.splitlines() if line.startswith("hms_gateway_cache_hits_total "))
    return float(line.split()[1])
