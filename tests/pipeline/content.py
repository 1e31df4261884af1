"""What the tests of the data source put into a metastore."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.client.thrift_client import ThriftClient
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.rpc.structs import (
    AddPartitionsRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Database,
    FieldSchema,
    Function,
    FunctionType,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    LongColumnStatsData,
    Partition,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from tests.support.server import GatewayServer

Client = MetastoreClient | ThriftClient | PatientClient

DAYS = ("2024-01-01", "2024-01-02", "2024-01-03")
HOURS = ("1", "2", "10")
ODD = (["a/b=c'd", "7"], ["__HIVE_DEFAULT_PARTITION__", "8"], ["%é ü", "__HIVE_DEFAULT_PARTITION__"])
VALUES = [[day, hour] for day in DAYS for hour in HOURS] + list(ODD)


@dataclass(frozen=True)
class Metastore:
    """How it is called; `server` is our own."""

    options: dict[str, str]
    server: GatewayServer | None = None

    def client(self) -> Client:
        # Imports PySpark, which may be missing where tests are collected.
        from hms_gateway.pipeline.connection import Connection

        return Connection.of(self.options).open()

    def read(self, spark: Any, object_name: str, **options: str) -> Any:
        """A DataFrame of an object."""
        return spark.read.format("hms").options(object=object_name, **self.options, **options).load()


def storage(*columns: tuple[str, str]) -> StorageDescriptor:
    return StorageDescriptor(
        cols=[FieldSchema(name=name, type=type, comment="") for name, type in columns],
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=SerDeInfo(
            name="s", serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}
        ),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


def make_table(client: Client, database: str, name: str, *keys: tuple[str, str]) -> None:
    client.call(
        "create_table",
        Table(
            dbName=database,
            tableName=name,
            owner="tester",
            sd=storage(("id", "bigint"), ("note", "string")),
            partitionKeys=[FieldSchema(name=key, type=type, comment="a key") for key, type in keys],
            parameters={"made_by": "test"},
            tableType="MANAGED_TABLE",
        ),
    )


def add_partitions(client: Client, database: str, table: str, values: list[list[str]]) -> None:
    sd = client.call("get_table", database, table).sd
    sd.location = None
    parts = [Partition(values=one, dbName=database, tableName=table, sd=sd, parameters={"n": "1"}) for one in values]
    client.call(
        "add_partitions_req",
        AddPartitionsRequest(dbName=database, tblName=table, parts=parts, ifNotExists=False, needResult=False),
    )


@contextmanager
def filled_gateway(folder: Path) -> Iterator[Metastore]:
    """A gateway of one's own, with what `fill` puts into it."""
    with GatewayServer(folder / "var") as running:
        certificate = str(running.data_dir / "certificate.pem")
        options = {"url": running.url, "user": running.user, "password": running.password, "cafile": certificate}
        metastore = Metastore(options, running)
        fill(metastore)
        yield metastore


def fill(metastore: Metastore) -> None:
    with metastore.client() as client:
        for database in ("sales", "stock"):
            client.call("create_database", Database(name=database, description=f"all {database}"))
        make_table(client, "sales", "orders", ("ds", "string"), ("hr", "int"))
        make_table(client, "sales", "days", ("d", "date"))
        make_table(client, "sales", "customers")
        make_table(client, "stock", "items")
        add_partitions(client, "sales", "orders", VALUES)
        add_partitions(client, "sales", "days", [[day] for day in DAYS])
        client.call(
            "create_function",
            Function(
                functionName="twice",
                dbName="sales",
                className="org.example.Twice",
                ownerName="tester",
                ownerType=PrincipalType.USER,
                createTime=1_700_000_000,
                functionType=FunctionType.JAVA,
                resourceUris=[],
            ),
        )
        _grant(client)
        client.call("update_table_column_statistics", _statistics("customers", None))
        client.call("update_partition_column_statistics", _statistics("days", f"d={DAYS[0]}"))


def _grant(client: Client) -> None:
    grant = HiveObjectPrivilege(
        hiveObject=HiveObjectRef(objectType=HiveObjectType.TABLE, dbName="sales", objectName="orders", partValues=[]),
        principalName="reporter",
        principalType=PrincipalType.USER,
        grantInfo=PrivilegeGrantInfo(
            privilege="SELECT",
            createTime=1_700_000_000,
            grantor="tester",
            grantorType=PrincipalType.USER,
            grantOption=False,
        ),
    )
    client.call("grant_privileges", PrivilegeBag(privileges=[grant]))


def _statistics(table: str, partition: str | None) -> ColumnStatistics:
    desc = ColumnStatisticsDesc(isTblLevel=partition is None, dbName="sales", tableName=table, partName=partition)
    data = LongColumnStatsData(lowValue=-3, highValue=9, numNulls=2, numDVs=5)
    one = ColumnStatisticsObj(colName="id", colType="bigint", statsData=ColumnStatisticsData(longStats=data))
    return ColumnStatistics(statsDesc=desc, statsObj=[one])
