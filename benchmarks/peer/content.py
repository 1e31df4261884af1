"""What all sides hold: the same databases, tables and partitions.

Ours are written through the store. The real metastore would take hours for 100,000 partitions, so it is asked to make
one of each kind, and the rows of that one are multiplied by SQL in its own tables.
"""

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import psycopg

from benchmarks.peer.caller import Caller
from benchmarks.peer.speech import LIMITS
from hms_gateway.metastore.ports.store import NewPartition
from hms_gateway.rpc.structs import Database, FieldSchema, Partition, SerDeInfo, SkewedInfo, StorageDescriptor, Table
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.storage.writing.store import open_store

DATABASE: Final = "bench"
OTHER_DATABASES: Final = tuple(f"other_{number}" for number in range(10))
KEYS: Final = (("name", "string"), ("number", "int"), ("day", "date"))
FIRST_DAY: Final = date(2000, 1, 1)
MADE: Final = 1_700_000_000
BATCH: Final = 5_000
# Far above the ids that the real metastore gives out itself.
FIRST_CLONE: Final = 1_000_000_000


class Sizes(NamedTuple):
    """How many partitions the tables `parts_N` have, and how many tables the databases `many_N`."""

    partitions: tuple[int, ...] = (10, 100, 1_000, 10_000, 100_000)
    tables: tuple[int, ...] = (100, 1_000, 20_000)


QUICK: Final = Sizes((10, 1_000, 10_000), (100, 1_000))
FOR_WRITERS: Final = Sizes((10,), (100,))


def columns(count: int = 10) -> list[FieldSchema]:
    return [FieldSchema(f"column_{number}", "decimal(18,2)", f"what column {number} says") for number in range(count)]


def descriptor(location: str, cols: list[FieldSchema] | None = None) -> StorageDescriptor:
    return StorageDescriptor(
        cols=columns() if cols is None else cols,
        location=location,
        inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=SerDeInfo("orc", "org.apache.hadoop.hive.ql.io.orc.OrcSerde", {"serialization.format": "1"}),
        bucketCols=[],
        sortCols=[],
        parameters={},
        skewedInfo=SkewedInfo([], [], {}),
        storedAsSubDirectories=False,
    )


def database(warehouse: str, name: str) -> Database:
    return Database(name, "for the comparison", f"file:{warehouse}/{name}.db", {})


def table(
    warehouse: str, db_name: str, name: str, *, cols: list[FieldSchema] | None = None, is_partitioned: bool = False
) -> Table:
    keys = [FieldSchema(key, kind, "") for key, kind in KEYS] if is_partitioned else []
    parameters = {"made.by": "bench", "transient_lastDdlTime": str(MADE)}
    return Table(
        tableName=name, dbName=db_name, owner="bench", createTime=MADE, lastAccessTime=0, retention=0,
        sd=descriptor(f"file:{warehouse}/{db_name}.db/{name}", cols), partitionKeys=keys, parameters=parameters,
        tableType="MANAGED_TABLE",
    )  # fmt: skip


def values(number: int) -> list[str]:
    return [f"n{number:06}", str(number), (FIRST_DAY + timedelta(days=number)).isoformat()]


def partition_name(number: int) -> str:
    return "/".join(f"{key}={value}" for (key, _), value in zip(KEYS, values(number), strict=True))


def partition(of_table: Table, number: int) -> Partition:
    parameters = {"numFiles": "1", "totalSize": "108", "numRows": "0", "transient_lastDdlTime": str(MADE)}
    location = f"{of_table.sd.location}/{partition_name(number)}"
    sd = descriptor(location, of_table.sd.cols)
    return Partition(values(number), of_table.dbName, of_table.tableName, MADE, 0, sd, parameters)


def partitions(of_table: Table, first: int, count: int) -> list[Partition]:
    return [partition(of_table, number) for number in range(first, first + count)]


def plain_tables(warehouse: str) -> Iterator[Table]:
    yield table(warehouse, DATABASE, "wide_10")
    yield table(warehouse, DATABASE, "wide_1000", cols=columns(1_000))


def databases(warehouse: str, sizes: Sizes) -> list[Database]:
    names = (DATABASE, *OTHER_DATABASES, *(f"many_{count}" for count in sizes.tables))
    return [database(warehouse, name) for name in names]


def load_ours(url: str, warehouse: str, sizes: Sizes) -> None:
    """Before a gateway runs on the database `url`, which has our tables."""
    store = open_store(url, SystemClock(), LIMITS)
    for of_all in databases(warehouse, sizes):
        store.write(lambda tx, one=of_all: tx.insert_database(one))
    _insert_tables(store, DATABASE, list(plain_tables(warehouse)))
    for count in sizes.tables:
        db_name = f"many_{count}"
        for first in range(0, count, 1_000):
            some = range(first, min(first + 1_000, count))
            _insert_tables(store, db_name, [table(warehouse, db_name, f"t{number:06}") for number in some])
    for count in sizes.partitions:
        made = table(warehouse, DATABASE, f"parts_{count}", is_partitioned=True)
        _insert_tables(store, DATABASE, [made])
        for first in range(0, count, BATCH):
            batch = partitions(made, first, min(BATCH, count - first))
            new = [NewPartition(partition_name(first + at), one) for at, one in enumerate(batch)]
            store.write(lambda tx, new=new, made=made: tx.insert_partitions(tx.table(DATABASE, made.tableName), new))
    store.close()
    _make_directories(warehouse, sizes)


def load_theirs(caller: Caller, postgres: str, warehouse: str, sizes: Sizes) -> None:
    for of_all in databases(warehouse, sizes):
        caller.call("create_database", of_all)
    for made in plain_tables(warehouse):
        caller.call("create_table", made)
    for count in sizes.tables:
        caller.call("create_table", table(warehouse, f"many_{count}", "t000000"))
    for count in sizes.partitions:
        made = table(warehouse, DATABASE, f"parts_{count}", is_partitioned=True)
        caller.call("create_table", made)
        caller.call("add_partitions", partitions(made, 0, 1))
    with psycopg.connect(postgres, autocommit=True) as connection:
        first = FIRST_CLONE
        for count in sizes.tables:
            _clone_table(connection, f"many_{count}", count - 1, first)
            first += count
        for count in sizes.partitions:
            _clone_partition(connection, f"parts_{count}", count - 1, first)
            first += count


def _insert_tables(store, db_name: str, tables: list[Table]) -> None:
    def work(tx) -> None:
        database_id = tx.database(db_name).database_id
        for one in tables:
            tx.insert_table(database_id, one)

    store.write(work)


def _make_directories(warehouse: str, sizes: Sizes) -> None:
    """The real metastore makes its own; a rename moves what is there."""
    for count in sizes.partitions:
        Path(warehouse, f"{DATABASE}.db", f"parts_{count}").mkdir(parents=True, exist_ok=True)


# Each statement multiplies the rows of one table; {x} stands for its number, from 1 to the count.
_DESCRIPTORS = (
    """INSERT INTO "SERDES" ("SERDE_ID", "NAME", "SLIB")
       SELECT %(first)s + x, "NAME", "SLIB" FROM "SERDES", generate_series(1, %(count)s) x
       WHERE "SERDE_ID" = %(serde)s""",
    """INSERT INTO "SERDE_PARAMS" ("SERDE_ID", "PARAM_KEY", "PARAM_VALUE")
       SELECT %(first)s + x, "PARAM_KEY", "PARAM_VALUE" FROM "SERDE_PARAMS", generate_series(1, %(count)s) x
       WHERE "SERDE_ID" = %(serde)s""",
)
_DESCRIPTOR_COLUMNS = '"INPUT_FORMAT", "IS_COMPRESSED", "IS_STOREDASSUBDIRECTORIES", "NUM_BUCKETS", "OUTPUT_FORMAT"'
_TABLES = (
    """INSERT INTO "CDS" ("CD_ID") SELECT %(first)s + x FROM generate_series(1, %(count)s) x""",
    """INSERT INTO "COLUMNS_V2" ("CD_ID", "COMMENT", "COLUMN_NAME", "TYPE_NAME", "INTEGER_IDX")
       SELECT %(first)s + x, "COMMENT", "COLUMN_NAME", "TYPE_NAME", "INTEGER_IDX"
       FROM "COLUMNS_V2", generate_series(1, %(count)s) x WHERE "CD_ID" = %(columns)s""",
    f"""INSERT INTO "SDS" ("SD_ID", "CD_ID", "SERDE_ID", "LOCATION", {_DESCRIPTOR_COLUMNS})
        SELECT %(first)s + x, %(first)s + x, %(first)s + x,
               regexp_replace("LOCATION", '[^/]*$', 't' || lpad(x::text, 6, '0')), {_DESCRIPTOR_COLUMNS}
        FROM "SDS", generate_series(1, %(count)s) x WHERE "SD_ID" = %(sd)s""",
    """INSERT INTO "TBLS" ("TBL_ID", "TBL_NAME", "SD_ID", "CREATE_TIME", "DB_ID", "LAST_ACCESS_TIME", "OWNER",
                           "RETENTION", "IS_REWRITE_ENABLED", "TBL_TYPE")
       SELECT %(first)s + x, 't' || lpad(x::text, 6, '0'), %(first)s + x, "CREATE_TIME", "DB_ID", "LAST_ACCESS_TIME",
              "OWNER", "RETENTION", "IS_REWRITE_ENABLED", "TBL_TYPE"
       FROM "TBLS", generate_series(1, %(count)s) x WHERE "TBL_ID" = %(id)s""",
    """INSERT INTO "TABLE_PARAMS" ("TBL_ID", "PARAM_KEY", "PARAM_VALUE")
       SELECT %(first)s + x, "PARAM_KEY", "PARAM_VALUE" FROM "TABLE_PARAMS", generate_series(1, %(count)s) x
       WHERE "TBL_ID" = %(id)s""",
)
_NAME = "'n' || lpad(x::text, 6, '0')"
_DAY = f"to_char(date '{FIRST_DAY}' + x, 'YYYY-MM-DD')"
_PARTITION_NAME = f"'name=' || {_NAME} || '/number=' || x || '/day=' || {_DAY}"
_PARTITIONS = (
    f"""INSERT INTO "SDS" ("SD_ID", "CD_ID", "SERDE_ID", "LOCATION", {_DESCRIPTOR_COLUMNS})
        SELECT %(first)s + x, "CD_ID", %(first)s + x, regexp_replace("LOCATION", 'name=.*$', '') || {_PARTITION_NAME},
               {_DESCRIPTOR_COLUMNS}
        FROM "SDS", generate_series(1, %(count)s) x WHERE "SD_ID" = %(sd)s""",
    f"""INSERT INTO "PARTITIONS" ("PART_ID", "CREATE_TIME", "LAST_ACCESS_TIME", "PART_NAME", "SD_ID", "TBL_ID")
        SELECT %(first)s + x, "CREATE_TIME", "LAST_ACCESS_TIME", {_PARTITION_NAME}, %(first)s + x, "TBL_ID"
        FROM "PARTITIONS", generate_series(1, %(count)s) x WHERE "PART_ID" = %(id)s""",
    """INSERT INTO "PARTITION_PARAMS" ("PART_ID", "PARAM_KEY", "PARAM_VALUE")
       SELECT %(first)s + x, "PARAM_KEY", "PARAM_VALUE" FROM "PARTITION_PARAMS", generate_series(1, %(count)s) x
       WHERE "PART_ID" = %(id)s""",
    f"""INSERT INTO "PARTITION_KEY_VALS" ("PART_ID", "PART_KEY_VAL", "INTEGER_IDX")
        SELECT %(first)s + x, (ARRAY[{_NAME}, x::text, {_DAY}])[1 + key], key
        FROM generate_series(1, %(count)s) x, generate_series(0, 2) key""",
)


def _clone_table(connection: psycopg.Connection, db_name: str, count: int, first: int) -> None:
    row = connection.execute(
        """SELECT "TBL_ID", "SD_ID", "SERDE_ID", "CD_ID" FROM "TBLS" JOIN "DBS" USING ("DB_ID")
           JOIN "SDS" USING ("SD_ID") WHERE "NAME" = %s""",
        [db_name],
    ).fetchone()
    _multiply(connection, (*_DESCRIPTORS, *_TABLES), row, count, first)


def _clone_partition(connection: psycopg.Connection, table_name: str, count: int, first: int) -> None:
    row = connection.execute(
        """SELECT "PART_ID", p."SD_ID", "SERDE_ID", "CD_ID" FROM "PARTITIONS" p JOIN "TBLS" USING ("TBL_ID")
           JOIN "SDS" s ON s."SD_ID" = p."SD_ID" WHERE "TBL_NAME" = %s""",
        [table_name],
    ).fetchone()
    _multiply(connection, (*_DESCRIPTORS, *_PARTITIONS), row, count, first)


def _multiply(connection: psycopg.Connection, statements, row, count: int, first: int) -> None:
    names = ("id", "sd", "serde", "columns")
    given = {**dict(zip(names, row, strict=True)), "count": count, "first": first}
    with connection.transaction():
        for statement in statements:
            connection.execute(statement, given)
