"""Column statistics of tables and partitions, their aggregation, and constraints."""

from collections.abc import Iterator

from hms_gateway.rpc.structs import (
    AddForeignKeyRequest,
    AddPrimaryKeyRequest,
    BinaryColumnStatsData,
    BooleanColumnStatsData,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Date,
    DateColumnStatsData,
    DoubleColumnStatsData,
    DropConstraintRequest,
    ForeignKeysRequest,
    LongColumnStatsData,
    PartitionsStatsRequest,
    PrimaryKeysRequest,
    SetPartitionsStatsRequest,
    SQLForeignKey,
    SQLPrimaryKey,
    StringColumnStatsData,
    TableStatsRequest,
)
from tests.comparison.objects import database, table
from tests.comparison.servers import Step, call

COLUMNS = (("i", "bigint"), ("f", "double"), ("s", "string"), ("b", "boolean"), ("x", "binary"), ("d", "date"))
DATA = {
    "i": ColumnStatisticsData(longStats=LongColumnStatsData(1, 100, 3, 50)),
    "f": ColumnStatisticsData(doubleStats=DoubleColumnStatsData(-1.5, 2.5, 0, 10)),
    "s": ColumnStatisticsData(stringStats=StringColumnStatsData(10, 4.5, 1, 20)),
    "b": ColumnStatisticsData(booleanStats=BooleanColumnStatsData(5, 6, 7)),
    "x": ColumnStatisticsData(binaryStats=BinaryColumnStatsData(9, 3.5, 2)),
    "d": ColumnStatisticsData(dateStats=DateColumnStatsData(Date(100), Date(200), 1, 30)),
}
KINDS = dict(COLUMNS)


def steps() -> Iterator[Step]:
    yield call("create_database", database("sales"))
    yield call("create_table", table("sales", "plain", pairs=COLUMNS))
    yield call("create_table", table("sales", "parted", (("ds", "string"),), COLUMNS))
    for number in range(4):
        yield call("append_partition", "sales", "parted", [str(number)])
    yield from _of_tables()
    yield from _of_partitions()
    yield from _deleted()
    yield from _constraints()
    yield call("create_table_with_constraints", table("sales", "keyed3", pairs=COLUMNS), None, [])
    yield call("drop_database", "sales", True, True)


def statistics(tbl_name: str, *names: str, part_name: str | None = None, db_name: str = "sales") -> ColumnStatistics:
    where = ColumnStatisticsDesc(part_name is None, db_name, tbl_name, part_name)
    return ColumnStatistics(
        where,
        [
            ColumnStatisticsObj(name, KINDS.get(name.lower(), "int"), DATA.get(name.lower(), DATA["i"]))
            for name in names
        ],
    )


def _of_tables() -> Iterator[Step]:
    yield call("update_table_column_statistics", statistics("plain", *DATA))
    yield call("update_table_column_statistics", statistics("PLAIN", "I", db_name="Sales"))
    yield call("update_table_column_statistics", statistics("plain", "nosuch"))
    yield call("update_table_column_statistics", statistics("nosuch", "i"))
    yield call("update_table_column_statistics", statistics("plain", "i", db_name="nosuch"))
    for name in (*DATA, "S", "nosuch", ""):
        yield call("get_table_column_statistics", "sales", "plain", name)
    yield call("get_table_column_statistics", "sales", "nosuch", "i")
    for names in (list(DATA), ["i", "nosuch"], []):
        yield call("get_table_statistics_req", TableStatsRequest("sales", "plain", names))
    yield call("get_table_statistics_req", TableStatsRequest("sales", "nosuch", ["i"]))
    yield call("get_table", "sales", "plain")


def _of_partitions() -> Iterator[Step]:
    for number in range(3):
        yield call("update_partition_column_statistics", statistics("parted", *DATA, part_name=f"ds={number}"))
    for name in ("ds=nosuch", "nonsense", "DS=0"):
        yield call("update_partition_column_statistics", statistics("parted", "i", part_name=name))
    yield call("get_partition_column_statistics", "sales", "parted", "ds=0", "i")
    yield call("get_partition_column_statistics", "sales", "parted", "ds=3", "i")
    for parts in (["ds=0"], ["ds=0", "ds=1", "ds=2"], ["ds=3"], ["ds=nosuch"], []):
        for names in (list(DATA), ["i"], ["nosuch"], []):
            yield call("get_partitions_statistics_req", PartitionsStatsRequest("sales", "parted", names, parts))
    for names, parts in ((list(DATA), ["ds=0", "ds=1", "ds=2"]), ([], ["ds=0"]), (["i"], [])):
        yield call("get_aggr_stats_for", PartitionsStatsRequest("sales", "parted", names, parts))
    yield call("get_aggr_stats_for", PartitionsStatsRequest("sales", "nosuch", ["i"], ["ds=0"]))
    several = [statistics("parted", "i", "s", part_name=f"ds={number}") for number in (1, 3)]
    yield call("set_aggr_stats_for", SetPartitionsStatsRequest(several))
    yield call("set_aggr_stats_for", SetPartitionsStatsRequest([]))
    yield call("set_aggr_stats_for", SetPartitionsStatsRequest([statistics("plain", "i")] * 2))
    yield call("get_partitions_statistics_req", PartitionsStatsRequest("sales", "parted", ["i", "s"], ["ds=3"]))
    yield call("get_partition", "sales", "parted", ["0"])


def _deleted() -> Iterator[Step]:
    for tbl_name, name in (
        ("plain", "i"),
        ("plain", "i"),
        ("plain", "nosuch"),
        ("nosuch", "i"),
        ("plain", None),
        ("plain", None),
    ):
        yield call("delete_table_column_statistics", "sales", tbl_name, name)
    for part_name, name in (("ds=0", "i"), ("ds=0", "i"), ("ds=nosuch", "i"), ("ds=0", None)):
        yield call("delete_partition_column_statistics", "sales", "parted", part_name, name)


def _constraints() -> Iterator[Step]:
    def key(tbl_name: str, column: str, name: str | None = "pk1") -> AddPrimaryKeyRequest:
        return AddPrimaryKeyRequest([SQLPrimaryKey("sales", tbl_name, column, 1, name, True, False, True)])

    def foreign(parent: str, child: str, column: str = "i") -> AddForeignKeyRequest:
        places = ("sales", parent, "i", "sales", child, column)
        return AddForeignKeyRequest([SQLForeignKey(*places, 1, 0, 0, "fk1", "pk1", True, False, False)])

    for request in (key("plain", "i"), key("plain", "s", "pk2"), key("nosuch", "i"), key("parted", "nosuch")):
        yield call("add_primary_key", request)
    for request in (
        foreign("plain", "parted"),
        foreign("nosuch", "parted"),
        foreign("plain", "nosuch"),
        foreign("plain", "parted", "nosuch"),
    ):
        yield call("add_foreign_key", request)
    for tbl_name in ("plain", "parted", "nosuch"):
        yield call("get_primary_keys", PrimaryKeysRequest("sales", tbl_name))
        yield call("get_foreign_keys", ForeignKeysRequest("sales", tbl_name, "sales", "parted"))
    yield call("get_foreign_keys", ForeignKeysRequest(None, None, "sales", "parted"))
    for tbl_name, name in (("plain", "nosuch"), ("parted", "fk1"), ("parted", "fk1"), ("plain", "pk1")):
        yield call("drop_constraint", DropConstraintRequest("sales", tbl_name, name))
    columns = [SQLPrimaryKey("sales", "keyed", "i", 1, "pk3", True, False, True)]
    yield call("create_table_with_constraints", table("sales", "keyed", pairs=COLUMNS), columns, [])
    columns = [SQLPrimaryKey("sales", "keyed2", "nosuch", 1, "pk4", True, False, True)]
    yield call("create_table_with_constraints", table("sales", "keyed2", pairs=COLUMNS), columns, [])
    yield call("get_primary_keys", PrimaryKeysRequest("sales", "keyed"))
    yield call("get_all_tables", "sales")
