"""A metastore in this process, random changes of its catalog, and its whole content as rows."""

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hms_gateway.composition.main import Metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.pipeline.snapshot.objects import LISTED, ObjectRow
from hms_gateway.pipeline.snapshot.steps import objects
from hms_gateway.pipeline.snapshot.units import CONTENTS, REFERENCE, Unit, Work, listed, works_of
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Database,
    EnvironmentContext,
    FieldSchema,
    Function,
    LongColumnStatsData,
    NoSuchObjectException,
    Partition,
    SerDeInfo,
    SQLForeignKey,
    SQLPrimaryKey,
    StorageDescriptor,
    Table,
    ThriftException,
)
from tests.handlers.peers import Peer, metastore_in
from tests.support.kept_store import empty_database

DATABASES = ("d1", "d2")
TABLES = ("t1", "t2", "t3")
CASCADE = EnvironmentContext({"CASCADE": "true"})
# What differs between two metastores that were given the same.
OF_THE_MOMENT = ("createTime", "transient_lastDdlTime", "grantTime", "lastAnalyzed", "hms.stats.at")
UNCOUNTED = EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})


@dataclass(frozen=True)
class Client:
    """As the pipeline calls a metastore."""

    peer: Peer

    def call(self, name: str, *values: Any, fields: object = None) -> Any:
        """`fields` only makes a client's answer smaller."""
        return self.peer.ask(name, *values)


def open_metastore(folder: Path) -> tuple[Metastore, Client]:
    (folder / DATABASE_FILE).write_bytes(empty_database())
    metastore = metastore_in(folder)
    return metastore, Client(Peer(metastore, metastore.codecs.tjson, Dialect.HIVE_2_3))


def descriptor(*columns: str) -> StorageDescriptor:
    return StorageDescriptor(
        cols=[FieldSchema(*column.split(":")) for column in columns or ("id:bigint", "note:string")],
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        serdeInfo=SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}),
    )


def statistics(database: str, table: str, partition: str | None, low: int) -> ColumnStatistics:
    desc = ColumnStatisticsDesc(isTblLevel=partition is None, dbName=database, tableName=table, partName=partition)
    data = ColumnStatisticsData(longStats=LongColumnStatsData(lowValue=low, highValue=99, numNulls=0, numDVs=3))
    return ColumnStatistics(statsDesc=desc, statsObj=[ColumnStatisticsObj("id", "bigint", data)])


def read(client: Any, works: list[Work]) -> tuple[list[ObjectRow], dict[tuple[str, str], set[tuple[str, str]]]]:
    """All rows of the works and of what they lead to; tables by those that they refer to."""
    rows: list[ObjectRow] = []
    children: dict[tuple[str, str], set[tuple[str, str]]] = {}
    remaining = list(works)

    def more(work: Work) -> None:
        if work.what == REFERENCE:
            children.setdefault((work.names[0], work.names[1]), set()).add((work.database, work.table))
        else:
            remaining.append(work)

    while remaining:
        rows += [row._replace(said=None) for row in objects(client, remaining.pop(), more)]
    return rows, children


def everything(client: Any) -> list[Work]:
    names = client.call("get_all_databases")
    units = [Unit(CONTENTS, name) for name in names]
    tables = {name: client.call("get_all_tables", name) for name in names}
    return [*works_of(units, tables), *listed()]


def whole(client: Any, *, listed: bool = True) -> dict[tuple[str, ...], str]:
    """The catalog in a quiet moment: objects by their keys."""
    rows, _ = read(client, everything(client))
    return {row[:5]: row.object for row in rows if listed or row.kind not in LISTED}


def timeless(objects: dict[tuple[str, ...], str], root: Path) -> dict[tuple[str, ...], Any]:
    """Without what differs between two metastores that were given the same."""

    def cleaned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: cleaned(each) for key, each in value.items() if key not in OF_THE_MOMENT}
        if isinstance(value, list):
            return [cleaned(each) for each in value]
        return value.replace(str(root), "ROOT") if isinstance(value, str) else value

    return {key: cleaned(json.loads(text)) for key, text in objects.items()}


@dataclass
class Changes:
    """Random changes; what the metastore refuses is a change that does nothing."""

    client: Any
    random: random.Random
    made: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._all = [getattr(self, name) for name in dir(self) if name.startswith("change_")]

    def make_one(self) -> str:
        change = self.random.choice(self._all)
        try:
            change()
        except ThriftException:
            return ""
        self.made.append(change.__name__)
        return change.__name__

    def database(self) -> str:
        return self.random.choice(DATABASES)

    def table(self) -> tuple[str, str]:
        return self.database(), self.random.choice(TABLES)

    def value(self) -> str:
        return self.random.choice(("a", "b", "c/d=é", "%x"))

    def partition(self) -> Partition:
        database, table = self.table()
        names = self.client.call("get_partitions", database, table, -1)
        return self.random.choice(names) if names else Partition(values=["none"], dbName=database, tableName=table)

    def _seldom(self, share: float) -> None:
        if self.random.random() > share:
            raise NoSuchObjectException("not this time")

    def number(self) -> str:
        return str(self.random.randrange(10**6))

    def change_create_database(self) -> None:
        self.client.call("create_database", Database(name=self.database(), parameters={"n": self.number()}))

    def change_alter_database(self) -> None:
        name = self.database()
        self.client.call("alter_database", name, Database(name=name, parameters={"n": self.number()}))

    def change_drop_database(self) -> None:
        self._seldom(0.1)
        self.client.call("drop_database", self.database(), False, True)

    def change_create_table(self) -> None:
        database, name = self.table()
        keys = [FieldSchema("k", "string", "a key")] if self.random.random() < 0.8 else []
        table = Table(
            dbName=database,
            tableName=name,
            owner="ann",
            sd=descriptor(),
            partitionKeys=keys,
            parameters={"n": self.number()},
        )
        self.client.call("create_table", table)

    change_create_another_table = change_create_table

    def change_drop_table(self) -> None:
        self._seldom(0.2)
        self.client.call("drop_table", *self.table(), False)

    def _altered(self, **fields: Any) -> None:
        database, name = self.table()
        table = self.client.call("get_table", database, name)
        for key, value in fields.items():
            setattr(table, key, value)
        self.client.call("alter_table_with_environment_context", database, name, table, CASCADE)

    def change_table_parameters(self) -> None:
        self._altered(parameters={"n": self.number()})

    def change_columns(self) -> None:
        database, name = self.table()
        table = self.client.call("get_table", database, name)
        assert table.sd is not None
        table.sd.cols = [FieldSchema("id", "bigint"), FieldSchema(f"c{self.number()}", "string", "new")]
        self.client.call("alter_table_with_environment_context", database, name, table, CASCADE)

    def change_table_name(self) -> None:
        self._altered(tableName=self.random.choice(TABLES))

    def change_table_database(self) -> None:
        self._altered(dbName=self.database())

    def change_add_partitions(self) -> None:
        database, table = self.table()
        parts = [
            Partition(values=[value], dbName=database, tableName=table, sd=descriptor(), parameters={"n": "1"})
            for value in {self.value(), self.value()}
        ]
        self.client.call("add_partitions", parts)

    change_add_more_partitions = change_add_partitions

    def change_partition(self) -> None:
        found = self.partition()
        found.parameters = {"n": self.number()}
        arguments = (found.dbName, found.tableName, [found], UNCOUNTED)
        self.client.call("alter_partitions_with_environment_context", *arguments)

    def change_partition_name(self) -> None:
        found, before = self.partition(), None
        before, found.values = found.values, [self.value()]
        self.client.call("rename_partition", found.dbName, found.tableName, before, found)

    def change_drop_partition(self) -> None:
        found = self.partition()
        self.client.call("drop_partition", found.dbName, found.tableName, found.values, False)

    def change_table_statistics(self) -> None:
        database, table = self.table()
        self.client.call("update_table_column_statistics", statistics(database, table, None, int(self.number())))

    def change_partition_statistics(self) -> None:
        database, table = self.table()
        names = self.client.call("get_partition_names", database, table, -1)
        one = statistics(database, table, self.random.choice(names or ["k=none"]), int(self.number()))
        self.client.call("update_partition_column_statistics", one)

    def change_no_statistics(self) -> None:
        database, table = self.table()
        self.client.call("delete_table_column_statistics", database, table, "id")

    def change_primary_key(self) -> None:
        from hms_gateway.rpc.structs import AddPrimaryKeyRequest

        database, table = self.table()
        key = SQLPrimaryKey(database, table, "id", 1, f"pk_{table}", True, False, True)
        self.client.call("add_primary_key", AddPrimaryKeyRequest([key]))

    def change_foreign_key(self) -> None:
        from hms_gateway.rpc.structs import AddForeignKeyRequest

        (parent_db, parent), (database, table) = self.table(), self.table()
        names = (parent_db, parent, "id", database, table, "id")
        key = SQLForeignKey(*names, 1, 0, 0, f"fk_{self.number()}", f"pk_{parent}", True, False, True)
        self.client.call("add_foreign_key", AddForeignKeyRequest([key]))

    def change_drop_constraint(self) -> None:
        from hms_gateway.rpc.structs import DropConstraintRequest

        database, table = self.table()
        self.client.call("drop_constraint", DropConstraintRequest(database, table, f"pk_{table}"))

    def change_function(self) -> None:
        name, database = f"f{self.random.randrange(3)}", self.database()
        self.client.call(
            "create_function",
            Function(functionName=name, dbName=database, className=self.number(), functionType=1, resourceUris=[]),
        )

    def change_truncate(self) -> None:
        self.client.call("truncate_table", *self.table(), None)

    def change_exchange(self) -> None:
        (database, table), (other_db, other) = self.table(), self.table()
        self.client.call("exchange_partition", {"k": self.value()}, database, table, other_db, other)
