"""`bridge --encoding tjson` in front of Hive's own server behind TJSON over HTTP, and in front of our gateway.

What Apache thrift's client writes through it and reads back is what it reads without it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from thrift.Thrift import TApplicationException

from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    CheckLockRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CommitTxnRequest,
    Database,
    DataOperationType,
    DoubleColumnStatsData,
    FieldSchema,
    Function,
    FunctionType,
    InvalidOperationException,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    LongColumnStatsData,
    NoSuchObjectException,
    OpenTxnRequest,
    Order,
    Partition,
    PrincipalType,
    ResourceType,
    ResourceUri,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    StringColumnStatsData,
    Table,
)
from tests.bridge.bridge_process import ApacheClient, BridgeProcess, connected
from tests.oracle.peer import PeerUnavailable, RealMetastore
from tests.support.server import GatewayServer

HIVE = pytest.param("hive", marks=[pytest.mark.java, pytest.mark.whole])
DATABASE = "through_tjson"
LETTERS = 'ünï😀 "quoted" \\ / \x01\t\n <&>'

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Upstream:
    """What a BridgeProcess wants to know of the server behind it."""

    url: str
    data_dir: Path
    user: str = "admin"
    password: str = "unasked"


@dataclass(frozen=True)
class Ways:
    """Two clients of one metastore: through TJSON, and through binary alone."""

    bridged: ApacheClient
    direct: ApacheClient


@pytest.fixture(scope="module", params=["gateway", HIVE])
def ways(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    folder = tmp_path_factory.mktemp(request.param)
    with (through_gateway if request.param == "gateway" else through_hive)(folder) as both:
        both.bridged.create_database(Database(DATABASE, LETTERS, None, {"letters": LETTERS, "": "no key"}))
        yield both


@contextmanager
def through_gateway(folder: Path) -> Iterator[Ways]:
    with (
        GatewayServer(folder) as gateway,
        BridgeProcess(gateway, "-k", "--encoding", "tjson") as tjson,
        BridgeProcess(gateway, "-k") as binary,
        connected(tjson) as bridged,
        connected(binary) as direct,
    ):
        yield Ways(bridged, direct)


@contextmanager
def through_hive(folder: Path) -> Iterator[Ways]:
    hive = RealMetastore(folder, notifies=False)
    try:
        hive.start()
    except PeerUnavailable as reason:
        pytest.skip(str(reason))
    try:
        upstream: Any = Upstream(f"http://127.0.0.1:{hive.http_port}/hms", folder)
        with (
            BridgeProcess(upstream, "--encoding", "tjson") as tjson,
            connected(tjson) as bridged,
            connected(hive) as direct,
        ):
            yield Ways(bridged, direct)
    finally:
        hive.stop()


def both_read(ways: Ways, method: str, *arguments: Any) -> Any:
    """The answer that both ways give."""
    through, without = ways.bridged.call(method, *arguments), ways.direct.call(method, *arguments)
    assert through == without
    return through


def descriptor() -> StorageDescriptor:
    return StorageDescriptor(
        cols=[FieldSchema("id", "bigint", LETTERS), FieldSchema("size", "struct<a:int,b:array<string>>")],
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        compressed=False,
        numBuckets=4,
        serdeInfo=SerDeInfo(
            serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={"field.delim": "\x01"}
        ),
        bucketCols=["id"],
        sortCols=[Order("id", 1)],
        parameters={},
        skewedInfo=SkewedInfo([], [], {}),
        storedAsSubDirectories=False,
    )


def make_table(ways: Ways, name: str, **changes: Any) -> None:
    made = Table(
        tableName=name,
        dbName=DATABASE,
        owner="interop",
        sd=descriptor(),
        partitionKeys=[FieldSchema("ds", "string", "a day")],
        parameters={"letters": LETTERS},
        tableType="MANAGED_TABLE",
    )
    for field, value in changes.items():
        setattr(made, field, value)
    ways.bridged.create_table(made)


def test_text_and_parameters(ways: Ways) -> None:
    database = both_read(ways, "get_database", DATABASE)
    assert (database.description, database.parameters["letters"]) == (LETTERS, LETTERS)
    assert DATABASE in both_read(ways, "get_all_databases")


def test_tables_and_partitions(ways: Ways) -> None:
    make_table(ways, "events")
    values = ["2024-01-01", "a b/c=d", "ü", "%"]
    added = [Partition(values=[each], dbName=DATABASE, tableName="events", sd=descriptor()) for each in values]
    assert ways.bridged.add_partitions(added) == len(values)
    table = both_read(ways, "get_table", DATABASE, "events")
    assert table.parameters["letters"] == LETTERS
    found = both_read(ways, "get_partitions", DATABASE, "events", -1)
    assert sorted(one.values[0] for one in found) == sorted(values)
    (one,) = both_read(ways, "get_partitions_by_filter", DATABASE, "events", "ds > '2024' and ds < '2025'", -1)
    one.parameters["checked"] = LETTERS
    ways.bridged.alter_partition(DATABASE, "events", one)
    assert both_read(ways, "get_partition", DATABASE, "events", one.values).parameters["checked"] == LETTERS
    table.sd.cols.append(FieldSchema("added", "double"))
    ways.bridged.alter_table(DATABASE, "events", table)
    assert both_read(ways, "get_schema", DATABASE, "events")[2].name == "added"
    assert ways.bridged.drop_partition_by_name(DATABASE, "events", "ds=%25", True) is True
    assert len(both_read(ways, "get_partition_names", DATABASE, "events", -1)) == len(values) - 1


def make_skewed_table(ways: Ways, name: str) -> None:
    skewed = descriptor()
    skewed.skewedInfo = SkewedInfo(["id", "size"], [["1", "x"], ["2", "y"]], {("1", "x"): "file:/tmp/skewed/1"})
    make_table(ways, name, sd=skewed, partitionKeys=[])
    assert skewed_locations(ways.direct, name) == {("1", "x"): "file:/tmp/skewed/1"}


def skewed_locations(client: ApacheClient, name: str) -> dict[tuple[str, ...], str]:
    locations = client.get_table(DATABASE, name).sd.skewedInfo.skewedColValueLocationMaps
    return {tuple(key): location for key, location in locations.items()}


@pytest.mark.parametrize("ways", [HIVE], indirect=True)
def test_lists_as_keys_of_a_map(ways: Ways) -> None:
    make_skewed_table(ways, "skewed")
    both_read(ways, "get_table", DATABASE, "skewed")


@pytest.mark.parametrize("ways", ["gateway"], indirect=True)
def test_our_tjson_leaves_them_out_for_browsers_and_a_change_keeps_them(ways: Ways) -> None:
    make_skewed_table(ways, "kept")
    assert skewed_locations(ways.bridged, "kept") == {}
    ways.bridged.alter_table(DATABASE, "kept", ways.bridged.get_table(DATABASE, "kept"))
    assert skewed_locations(ways.direct, "kept") == {("1", "x"): "file:/tmp/skewed/1"}


def test_numbers_at_their_ends(ways: Ways) -> None:
    columns = {"id": "bigint", "size": "double", "name": "string"}
    sd = descriptor()
    sd.cols = [FieldSchema(name, kind) for name, kind in columns.items()]
    make_table(ways, "numbers", sd=sd, partitionKeys=[])
    longs = LongColumnStatsData(lowValue=-(2**63), highValue=2**63 - 1, numNulls=2**53 + 1, numDVs=0)
    doubles = DoubleColumnStatsData(lowValue=-1.7976931348623157e308, highValue=5e-324, numNulls=0, numDVs=3)
    strings = StringColumnStatsData(maxColLen=2**40, avgColLen=0.1, numNulls=0, numDVs=2)
    given = {
        "id": ColumnStatisticsData(longStats=longs),
        "size": ColumnStatisticsData(doubleStats=doubles),
        "name": ColumnStatisticsData(stringStats=strings),
    }
    objects = [ColumnStatisticsObj(name, columns[name], data) for name, data in given.items()]
    written = ColumnStatistics(ColumnStatisticsDesc(True, DATABASE, "numbers"), objects)
    assert ways.bridged.update_table_column_statistics(written) is True
    for name, data in given.items():
        found = both_read(ways, "get_table_column_statistics", DATABASE, "numbers", name)
        assert found.statsObj[0].statsData == data


def test_functions(ways: Ways) -> None:
    made = Function(
        "shout", DATABASE, "org.example.Shout", "ann", PrincipalType.USER, 0, FunctionType.JAVA,
        [ResourceUri(ResourceType.JAR, "hdfs://nn/lib/é.jar")],
    )  # fmt: skip
    ways.bridged.create_function(made)
    assert both_read(ways, "get_function", DATABASE, "shout").resourceUris == made.resourceUris
    assert both_read(ways, "get_functions", DATABASE, "*") == ["shout"]


def test_transactions_and_locks(ways: Ways) -> None:
    opened = ways.bridged.open_txns(OpenTxnRequest(2, "ann", "localhost")).txn_ids
    assert set(opened) <= set(both_read(ways, "get_open_txns").open_txns)
    component = LockComponent(LockType.SHARED_WRITE, LockLevel.TABLE, DATABASE, "locked")
    component.operationType = DataOperationType.UPDATE
    held = ways.bridged.lock(LockRequest([component], opened[0], "ann", "localhost"))
    assert held.state == LockState.ACQUIRED
    assert both_read(ways, "check_lock", CheckLockRequest(held.lockid)).state == LockState.ACQUIRED
    for each in opened:
        ways.bridged.commit_txn(CommitTxnRequest(each))
    assert not set(opened) & set(both_read(ways, "get_open_txns").open_txns)


def test_exceptions_have_their_class_and_text(ways: Ways) -> None:
    for method, arguments, expected in (
        ("get_table", (DATABASE, "no_such_table"), NoSuchObjectException),
        ("create_database", (Database(DATABASE, None, None, {}),), AlreadyExistsException),
        ("get_partition_by_name", (DATABASE, "no_such_table", "ds=1"), NoSuchObjectException),
    ):
        with pytest.raises(expected) as through:
            ways.bridged.call(method, *arguments)
        with pytest.raises(expected) as without:
            ways.direct.call(method, *arguments)
        assert type(through.value) is type(without.value)
        assert through.value.message == without.value.message


@pytest.mark.parametrize("ways", [HIVE], indirect=True)
def test_a_method_that_the_server_does_not_know(ways: Ways) -> None:
    for way in (ways.bridged, ways.direct):
        with pytest.raises(TApplicationException, match="Invalid method name: 'grab_lease'") as refused:
            way.call("grab_lease")
        assert refused.value.type == TApplicationException.UNKNOWN_METHOD


def test_a_goodbye_and_a_refused_drop_leave_everything(ways: Ways) -> None:
    make_table(ways, "stays")
    with pytest.raises(InvalidOperationException):
        ways.bridged.drop_database(DATABASE, True, False)
    ways.bridged.shutdown()
    assert both_read(ways, "get_tables", DATABASE, "stays") == ["stays"]
    ways.bridged.drop_table(DATABASE, "stays", True)
    assert both_read(ways, "get_tables", DATABASE, "stays") == []
