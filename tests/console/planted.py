"""A catalog as people have it, with what a console has to survive in it."""

import contextlib
import random
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.rpc.structs import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CompactionRequest,
    CompactionType,
    Database,
    DataOperationType,
    FieldSchema,
    Function,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    LongColumnStatsData,
    OpenTxnRequest,
    Partition,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    SerDeInfo,
    StorageDescriptor,
    StringColumnStatsData,
    Table,
    TxnAbortedException,
)

SCRIPT = "<script>globalThis.ran = true</script>"
IMAGE = '"><img src=x onerror="globalThis.ran = true">'
HOSTILE = f"{SCRIPT}{IMAGE} & ' ` ${{1}} \u202e \x01 é 💥"
WIDE = 10_000
LONG_TYPE = "struct<" + ",".join(f"f{number}:int" for number in range(90_000)) + ">"
# What a filter says between other quotes, and what it cannot say.
QUOTED = 'say "hi"'
UNENDING = "over\\"
DAYS = [f"2026-10-{day:02}" for day in range(1, 31)]
REGIONS = ["africa", "americas", "asia", "europe", "oceania"]


# Parameters that no line of a form can say.
UNTYPED = {"field.delim": "\t", " spaced ": "1", "ends": "line\r", "of = it": "2", "empty": " "}


def plant(client: MetastoreClient) -> None:
    """A catalog of a shop, with a lake beside it."""
    shop, lake = (f"hdfs://warehouse.example:8020/hive/{name}.db" for name in ("shop", "lake"))
    client.call("create_database", Database("shop", "What customers ordered", shop, parameters={"team": "orders"}))
    client.call("create_database", Database("lake", "Events, as they come in", lake))
    columns = [
        ("order_id", "bigint", "Counts up"),
        ("customer", "string", None),
        ("amount", "decimal(12,2)", "With tax"),
    ]
    parameters = {"numRows": "48213377", "totalSize": "91827364551", "numFiles": "1500", "comment": "One row per order"}
    create_table(client, "shop", "orders", columns, keys=("ds", "region"), parameters=parameters)
    create_table(
        client, "shop", "customers", [("customer", "string", None)], parameters={"spark.sql.statistics.numRows": "1000"}
    )
    create_table(client, "shop", "big_orders", columns)
    _partitions(client)
    _statistics(client)
    client.call("create_table", new_view("shop", "recent"))
    client.call("create_function", Function("euro", "shop", "org.example.Euro"))
    client.call("grant_privileges", customers_for_dana())
    _iceberg(client)
    _mixed(client)


def _mixed(client: MetastoreClient) -> None:
    """A table of Parquet with a partition of ORC, which has a column less and one of another type."""
    create_table(client, "lake", "mixed", [("id", "bigint", None), ("name", "string", None)], keys=("day",))
    orc = StorageDescriptor(
        cols=[FieldSchema("id", "int")],
        inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        serdeInfo=SerDeInfo(None, "org.apache.hadoop.hive.ql.io.orc.OrcSerde", {"orc.compress": "ZLIB"}),
    )
    parts = [("1", _descriptor([("id", "bigint", None), ("name", "string", None)])), ("2", orc)]
    client.call(
        "add_partitions",
        [Partition([day], "lake", "mixed", sd=sd, parameters={"of": f"day {day}"}) for day, sd in parts],
    )


def new_view(db_name: str, name: str) -> Table:
    """A view of one column."""
    text = "select order_id from shop.orders where ds > '2026-10-20'"
    return _table(db_name, name, [("order_id", "bigint", None)], table_type="VIRTUAL_VIEW", viewOriginalText=text)


def customers_for_dana() -> PrivilegeBag:
    grant = PrivilegeGrantInfo("SELECT", 0, "admin", PrincipalType.USER, False)
    what = HiveObjectRef(HiveObjectType.TABLE, "shop", "customers")
    return PrivilegeBag([HiveObjectPrivilege(what, "dana", PrincipalType.USER, grant)])


def wait_for_each_other(client: MetastoreClient) -> list[int]:
    """An exclusive lock, and two requests that wait for it: their ids."""
    statement = "insert overwrite table shop.orders select * from staging"
    return [
        _lock(client, "ann", LockType.EXCLUSIVE, statement),
        _lock(client, "ben", LockType.SHARED_READ, f"select count(*) from shop.orders {SCRIPT}"),
        _lock(client, "cleo", LockType.SHARED_READ, "analyze table shop.orders"),
    ]


def wait_behind(client: MetastoreClient) -> int:
    """A request that has to wait for all others on shop.orders."""
    return _lock(client, "dora", LockType.EXCLUSIVE, "drop table shop.orders")


def _lock(client: MetastoreClient, user: str, kind: LockType, statement: str) -> int:
    component = LockComponent(kind, LockLevel.TABLE, "shop", "orders")
    lock_id: int = client.call(
        "lock", LockRequest([component], user=user, hostname="node-7", agentInfo=statement)
    ).lockid
    return lock_id


def _descriptor(columns: Sequence[tuple[str, str, str | None]], location: str | None = None) -> StorageDescriptor:
    return StorageDescriptor(
        cols=[FieldSchema(*each) for each in columns],
        location=location,
        inputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        serdeInfo=SerDeInfo(None, "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe", {}),
    )


def _table(
    db_name: str,
    name: str,
    columns: Sequence[tuple[str, str, str | None]],
    keys: tuple[str, ...] = (),
    parameters: dict[str, str] | None = None,
    table_type: str = "MANAGED_TABLE",
    **fields: Any,
) -> Table:
    return Table(
        dbName=db_name,
        tableName=name,
        owner="ann",
        sd=_descriptor(columns),
        partitionKeys=[FieldSchema(key, "string") for key in keys],
        parameters={"DO_NOT_UPDATE_STATS": "true", **(parameters or {})},
        tableType=table_type,
        **fields,
    )


def create_table(client: MetastoreClient, *parts: Any, **more: Any) -> None:
    """A table of columns, each a name, a type and a comment."""
    client.call("create_table", _table(*parts, **more))


def _partitions(client: MetastoreClient) -> None:
    sizes = random.Random(1)
    client.call(
        "add_partitions",
        [
            Partition(
                values=[day, region],
                dbName="shop",
                tableName="orders",
                createTime=1_790_000_000 + 86_400 * number,
                sd=_descriptor([]),
                parameters={"totalSize": str(int(sizes.lognormvariate(18, 1))), "numRows": "4711", "numFiles": "3"},
            )
            for number, day in enumerate(DAYS)
            for region in REGIONS
        ],
    )


def _statistics(client: MetastoreClient) -> None:
    names = StringColumnStatsData(maxColLen=40, avgColLen=11.5, numNulls=120, numDVs=950)
    found = [
        ColumnStatisticsObj("customer", "string", ColumnStatisticsData(stringStats=names)),
    ]
    described = ColumnStatisticsDesc(True, "shop", "customers")
    client.call("update_table_column_statistics", ColumnStatistics(described, found))
    amounts = LongColumnStatsData(lowValue=-(2**63), highValue=2**63 - 1, numNulls=0, numDVs=48_213_377)
    long = [ColumnStatisticsObj("order_id", "bigint", ColumnStatisticsData(longStats=amounts))]
    client.call(
        "update_table_column_statistics", ColumnStatistics(ColumnStatisticsDesc(True, "shop", "big_orders"), long)
    )
    for day in DAYS[:2]:
        described = ColumnStatisticsDesc(False, "shop", "orders", f"ds={day}/region=asia")
        ids = LongColumnStatsData(lowValue=1, highValue=9, numNulls=3, numDVs=9)
        of_part = [ColumnStatisticsObj("order_id", "bigint", ColumnStatisticsData(longStats=ids))]
        client.call("update_partition_column_statistics", ColumnStatistics(described, of_part))


def _iceberg(client: MetastoreClient) -> None:
    def at(number: int) -> dict[str, str]:
        pointer = f"s3://lake/events/metadata/{number:05}.metadata.json"
        return {"table_type": "ICEBERG", "metadata_location": pointer}

    columns = [("event", "string", None)]
    create_table(client, "lake", "events", columns, parameters=at(0), table_type="EXTERNAL_TABLE")
    for number in (1, 2):
        parameters = {**at(number), "previous_metadata_location": at(number - 1)["metadata_location"]}
        table = _table("lake", "events", columns, parameters=parameters, table_type="EXTERNAL_TABLE")
        client.call("alter_table", "lake", "events", table)


def plant_hostile(client: MetastoreClient) -> None:
    """What a browser may take for its own, 10,000 columns, and a type of a megabyte."""
    columns = [("a", "string", HOSTILE), ("b", LONG_TYPE, None), (IMAGE, "int", None)]
    parameters = {"comment": HOSTILE, "javascript:alert(1)": HOSTILE, "__proto__": "own", HOSTILE: "1", **UNTYPED}
    client.call("create_database", Database("odd", HOSTILE, parameters={HOSTILE: HOSTILE}))
    create_table(client, "odd", "hostile", columns, keys=("in",), parameters=parameters)
    client.call(
        "add_partitions",
        [
            Partition(values=[value], dbName="odd", tableName="hostile", sd=_descriptor([]))
            for value in (HOSTILE.replace("\x01", ""), QUOTED, UNENDING)
        ],
    )
    create_table(client, "odd", "spread", [("a", "int", None)], keys=("batch", "run"))
    client.call(
        "add_partitions",
        [
            Partition(values=[str(number % 5), f"r{number}"], dbName="odd", tableName="spread", sd=_descriptor([]))
            for number in range(70)
        ],
    )
    create_table(client, "odd", "wide", [(f"column_{number}", "int", HOSTILE) for number in range(WIDE)])


def plant_trouble(client: MetastoreClient, database: Path) -> None:
    """A slow filter, a hot table, a deadlock, a queued compaction, and a lock whose holder is gone and that is
    waited for.
    """
    terms = " or ".join(f"ds = '2026-10-{number}' and region != 'x{number}'" for number in range(1_200))
    for _ in range(60):
        client.call("get_table", "shop", "customers")
    # Only the last slow calls are kept, and on a busy machine many are slow.
    client.call("get_partitions_by_filter", "shop", "orders", terms, -1)
    _deadlock(client)
    queued = CompactionRequest("shop", "orders", "ds=2026-10-30/region=asia", CompactionType.MAJOR)
    client.call("compact2", queued)
    orphan = _lock_on(client, "gone", "lake", "events", 0)
    _lock_on(client, "patient", "lake", "events", 0)
    _stop_heartbeats(database, orphan)


def _deadlock(client: MetastoreClient) -> None:
    first, second = (
        client.call("open_txns", OpenTxnRequest(1, user, "node-8")).txn_ids[0] for user in ("first", "second")
    )
    _lock_on(client, "first", "shop", "customers", first)
    _lock_on(client, "second", "shop", "big_orders", second)
    _lock_on(client, "first", "shop", "big_orders", first)
    with contextlib.suppress(TxnAbortedException):
        _lock_on(client, "second", "shop", "customers", second)


def _lock_on(client: MetastoreClient, user: str, db_name: str, table: str, txn_id: int) -> int:
    component = LockComponent(
        LockType.EXCLUSIVE, LockLevel.TABLE, db_name, table, operationType=DataOperationType.UPDATE
    )
    request = LockRequest([component], txnid=txn_id, user=user, hostname="node-8", agentInfo=f"job of {user}")
    lock_id: int = client.call("lock", request).lockid
    return lock_id


def _stop_heartbeats(database: Path, lock_id: int) -> None:
    """As after 48 minutes of silence."""
    with contextlib.closing(sqlite3.connect(database, timeout=30)) as connection, connection:
        connection.execute(
            "UPDATE locks SET last_heartbeat_ms = last_heartbeat_ms - 2880000 WHERE lock_id = ?", (lock_id,)
        )
