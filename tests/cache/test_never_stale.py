"""The reply cache of one replica against changes made through another: what it serves is what a fresh read answers."""

import asyncio
import inspect
import random

import pytest

from hms_gateway.cache import ReplyCache
from hms_gateway.composition.main import build_metastore
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    METHODS,
    AddForeignKeyRequest,
    AddPrimaryKeyRequest,
    AllTableConstraintsRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Database,
    DropConstraintRequest,
    FieldSchema,
    ForeignKeysRequest,
    Function,
    GetDatabaseRequest,
    GetPartitionsByNamesRequest,
    GetPartitionsPsWithAuthRequest,
    GetTablesRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    LongColumnStatsData,
    Partition,
    PartitionsRequest,
    PartitionsStatsRequest,
    PrimaryKeysRequest,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    SerDeInfo,
    SQLForeignKey,
    SQLPrimaryKey,
    StorageDescriptor,
    Table,
    TableStatsRequest,
)
from hms_gateway.rpc.wire import MessageType
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Settings
from tests.support.catalog import place_empty_database
from tests.support.sample import sample

pytestmark = pytest.mark.slow

CALL = Call("alice")
DATABASES = ("sales", "hr")
TABLES = ("orders", "people")
STEPS = 100
# tests/storage/dialects/test_version_watch.py asks a MariaDB.
MARIADB_OF_THE_WHOLE = pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.whole])
# After a step a part of the reads is made, after the next ones the others: what is stale stays so.
PARTS = sample(4, of=1)
# How often which kind of `change` is made.
WEIGHTS = (4, 1, 6, 1, 4, 6, 3, 3, 2, 2, 3, 3, 3, 4, 2, 2)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres), MARIADB_OF_THE_WHOLE])
def database_url(request, tmp_path):
    if request.param == "sqlite":
        place_empty_database(tmp_path / "metastore.db")
        return f"sqlite:///{tmp_path / 'metastore.db'}"
    return request.getfixturevalue(f"migrated_{request.param}_database")


def replica(tmp_path, database_url):
    given = {"file_systems": {"file": "ignore"}, "administrators": ["alice"]}
    settings = Settings(data_dir=tmp_path, database_url=database_url, **given)
    return build_metastore(settings)


def message(metastore, method, *values):
    codec = metastore.codecs.tjson
    before, after = codec.envelope(method, MessageType.CALL, 1)
    return codec.read_message(before + codec.encode(METHODS[method].arguments(*values)) + after)


def call(metastore, method, *values):
    return metastore.processor.process(metastore.codecs.tjson, message(metastore, method, *values), CALL)


def table(db_name, name, columns=1):
    return Table(
        tableName=name,
        dbName=db_name,
        sd=StorageDescriptor(
            cols=[FieldSchema(f"c{number}", "string") for number in range(columns)],
            location="",
            serdeInfo=SerDeInfo(),
        ),
        partitionKeys=[FieldSchema("ds", "string")],
        tableType="MANAGED_TABLE",
        parameters={"PARTITION_LEVEL_PRIVILEGE": "TRUE"} if columns == 3 else {},
    )


def statistics(db_name, name, part_name, number):
    described = ColumnStatisticsDesc(part_name is None, db_name, name, part_name)
    data = ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=number, numDVs=1))
    return ColumnStatistics(described, [ColumnStatisticsObj("c0", "bigint", data)])


def grant(db_name, name, value):
    column = HiveObjectRef(HiveObjectType.PARTITION, db_name, name, [value])
    info = PrivilegeGrantInfo("SELECT", 0, "admin", PrincipalType.USER, False)
    return PrivilegeBag([HiveObjectPrivilege(column, "alice", PrincipalType.USER, info)])


def change(kind, random_, metastore):
    """One change of a kind, which the catalog may refuse."""
    db_name, other_db = random_.choice(DATABASES), random_.choice(DATABASES)
    name, other_name = random_.choice(TABLES), random_.choice(TABLES)
    value = str(random_.randrange(3))
    function = Function(name, other_db, f"class{value}")
    match kind:
        case 0:
            return call(metastore, "create_database", Database(db_name))
        case 1:
            return call(metastore, "drop_database", db_name, False, True)
        case 2:
            return call(metastore, "create_table", table(db_name, name))
        case 3:
            return call(metastore, "drop_table", db_name, name, False)
        case 4:
            return call(metastore, "alter_table", db_name, name, table(other_db, other_name, random_.randrange(1, 4)))
        case 5:
            sd = StorageDescriptor(cols=[], serdeInfo=SerDeInfo())
            return call(metastore, "add_partition", Partition([value], db_name, name, sd=sd))
        case 6:
            return call(metastore, "drop_partition", db_name, name, [value], False)
        case 7:
            return call(metastore, "create_function", function)
        case 8:
            return call(metastore, "alter_function", db_name, name, function)
        case 9:
            return call(metastore, "drop_function", db_name, name)
        case 10:
            return call(metastore, "update_table_column_statistics", statistics(db_name, name, None, int(value)))
        case 11:
            given = statistics(db_name, name, f"ds={value}", int(value))
            return call(metastore, "update_partition_column_statistics", given)
        case 12:
            key = SQLPrimaryKey(db_name, name, "c0", 1, f"pk_{name}")
            return call(metastore, "add_primary_key", AddPrimaryKeyRequest([key]))
        case 13:
            key = SQLForeignKey(other_db, other_name, "c0", db_name, name, "c0", 1, fk_name=f"fk_{value}")
            return call(metastore, "add_foreign_key", AddForeignKeyRequest([key]))
        case 14:
            return call(metastore, "drop_constraint", DropConstraintRequest(db_name, name, f"pk_{name}"))
        case _:
            return call(metastore, "grant_privileges", grant(db_name, name, value))


def reads():
    yield "get_all_databases", ()
    yield "get_all_functions", ()
    for db_name in DATABASES:
        yield "get_database", (db_name,)
        yield "get_database_req", (GetDatabaseRequest(db_name),)
        yield "get_table_objects_by_name_req", (GetTablesRequest(db_name, list(TABLES)),)
        yield "get_all_tables", (db_name,)
        yield "get_functions", (db_name, "*")
        yield "get_tables", (db_name, "*")
        yield "get_table_objects_by_name", (db_name, list(TABLES))
        for name in TABLES:
            yield "get_table", (db_name, name)
            yield "get_function", (db_name, name)
            yield "get_partitions", (db_name, name, -1)
            yield "get_partition_names", (db_name, name, -1)
            yield "get_partitions_by_filter", (db_name, name, 'ds > "0"', -1)
            yield "get_partitions_ps_with_auth", (db_name, name, [""], -1, "alice", [])
            by_request = GetPartitionsPsWithAuthRequest(dbName=db_name, tblName=name, userName="alice", groupNames=[])
            yield "get_partitions_ps_with_auth_req", (by_request,)
            yield "get_partitions_req", (PartitionsRequest(dbName=db_name, tblName=name),)
            wanted = GetPartitionsByNamesRequest(db_name, name, ["ds=0", "ds=1"], get_col_stats=True)
            yield "get_partitions_by_names_req", (wanted,)
            yield "get_table_statistics_req", (TableStatsRequest(db_name, name, ["c0"]),)
            yield "get_aggr_stats_for", (PartitionsStatsRequest(db_name, name, ["c0"], ["ds=0", "ds=1"]),)
            yield "get_primary_keys", (PrimaryKeysRequest(db_name, name),)
            yield "get_foreign_keys", (ForeignKeysRequest(None, None, db_name, name),)
            yield "get_all_table_constraints", (AllTableConstraintsRequest(db_name, name),)


async def check(cache, metastore, chosen):
    """Reads through the cache, as the endpoint does it; the number of hits."""
    hits = 0
    for method, values in chosen:
        asked = message(metastore, method, *values)
        key = ("tjson", "2.3", method, asked.payload)
        found = cache.lookup(key)
        if inspect.isawaitable(found):
            found = await found
        ticket = cache.ticket()
        fresh = metastore.processor.process(metastore.codecs.tjson, asked, CALL)
        payload = fresh.payload if isinstance(fresh.payload, bytes) else b"".join(fresh.payload)
        if found is None:
            cache.remember(key, fresh.arguments, payload, ticket)
        else:
            hits += 1
            assert found == payload, (method, values)
    return hits


@pytest.mark.parametrize("seed", range(1, 1 + sample(1, of=10)))
def test_what_the_cache_serves_is_what_a_fresh_read_answers(tmp_path, database_url, seed):
    random_ = random.Random(seed)
    writing, reading = replica(tmp_path, database_url), replica(tmp_path, database_url)
    cache = ReplyCache(reading.store, Limits())
    outcomes, hits = set(), 0
    try:
        # One loop for all, as a server has: the cache asks a database on a connection that belongs to its loop.
        with asyncio.Runner() as runner:
            for db_name in DATABASES:
                call(writing, "create_database", Database(db_name))
                call(writing, "create_table", table(db_name, TABLES[0]))
            for step in range(STEPS):
                kind = random_.choices(range(len(WEIGHTS)), weights=WEIGHTS)[0]
                replica_ = random_.choice((writing, writing, reading))
                outcomes.add((kind, change(kind, random_, replica_).outcome))
                hits += runner.run(check(cache, reading, list(reads())[step % PARTS :: PARTS]))
            cache.close()
    finally:
        writing.store.close()
        reading.store.close()
    assert hits > STEPS
    made = {kind for kind, outcome in outcomes if outcome == "ok"}
    assert len(made) > len(WEIGHTS) * 3 // 4, made
    assert any(outcome == "AlreadyExistsException" for _, outcome in outcomes)
