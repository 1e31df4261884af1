"""The reply cache of one replica against changes made through another: what it serves is what a fresh read answers."""

import asyncio
import inspect
import random

import pytest

from hms_gateway.cache import ReplyCache
from hms_gateway.composition.main import build_metastore
from hms_gateway.rpc import Call
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Settings
from hms_gateway.structs import METHODS, Database, FieldSchema, Function, Partition, SerDeInfo, StorageDescriptor, Table
from hms_gateway.wire import MessageType

pytestmark = pytest.mark.slow

CALL = Call("alice")
DATABASES = ("sales", "hr")
TABLES = ("orders", "people")
STEPS = 60


@pytest.fixture(params=["sqlite", "postgres", pytest.param("mariadb", marks=pytest.mark.mariadb)])
def database_url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'metastore.db'}"
    from hms_gateway.storage import migrate

    url = request.getfixturevalue(f"fresh_{request.param}_database")
    migrate(url)
    return url


def replica(tmp_path, database_url):
    settings = Settings(data_dir=tmp_path, database_url=database_url, file_systems={"file": "ignore"})
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
    )


def change(random_, metastore):
    """One change, which the catalog may refuse."""
    db_name, other_db = random_.choice(DATABASES), random_.choice(DATABASES)
    name, other_name = random_.choice(TABLES), random_.choice(TABLES)
    value = str(random_.randrange(3))
    function = Function(name, other_db, f"class{value}")
    match random_.choices(range(10), weights=(2, 1, 6, 1, 6, 6, 3, 3, 2, 1))[0]:
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
        case _:
            return call(metastore, "drop_function", db_name, name)


def reads():
    yield "get_all_databases", ()
    yield "get_all_functions", ()
    for db_name in DATABASES:
        yield "get_database", (db_name,)
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


async def check(cache, metastore):
    """Every read through the cache, as the endpoint does it; the number of hits."""
    hits = 0
    for method, values in reads():
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


@pytest.mark.parametrize("seed", [1, 2])
def test_what_the_cache_serves_is_what_a_fresh_read_answers(tmp_path, database_url, seed):
    random_ = random.Random(seed)
    writing, reading = replica(tmp_path, database_url), replica(tmp_path, database_url)
    cache = ReplyCache(reading.store, Limits())
    outcomes, hits = set(), 0
    try:
        # One loop for all, as a server has: the cache asks a database on a connection that belongs to its loop.
        with asyncio.Runner() as runner:
            for _ in range(STEPS):
                outcomes.add(change(random_, random_.choice((writing, writing, reading))).outcome)
                hits += runner.run(check(cache, reading))
            cache.close()
    finally:
        writing.store.close()
        reading.store.close()
    assert hits > STEPS
    assert {"ok", "AlreadyExistsException"} <= outcomes
