"""Reading every object in a real Spark, out of a gateway over HTTPS and out of the real metastore over Thrift."""

import json
from datetime import date, datetime

import pytest

from hms_gateway.rpc.structs import (
    AbortTxnRequest,
    DataOperationType,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    OpenTxnRequest,
)
from tests.pipeline.content import DAYS, HOURS, ODD, VALUES
from tests.support.patience import until
from tests.support.sample import sample

PySparkException = pytest.importorskip("pyspark.errors", reason="no PySpark (requirements/spark.txt)").PySparkException
pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(params=["gateway", pytest.param("real", marks=pytest.mark.whole)])
def metastore(request):
    return request.getfixturevalue(request.param)


def rows(frame):
    return sorted(tuple(row) for row in frame.collect())


def formatted_plan(frame):
    return frame._sc._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), "formatted")


def methods_called(server, since):
    """Of the access log; the line of `get_version` that is asked last ends it."""
    with_end = [json.loads(line) for line in server.log_text()[since:].splitlines() if '"method"' in line]
    return [line["method"] for line in with_end]


def test_databases(spark, metastore):
    frame = metastore.read(spark, "databases").select("database", "description")
    assert rows(frame.where("database like 's%'")) == [("sales", "all sales"), ("stock", "all stock")]


def test_tables_and_columns(spark, metastore):
    tables = metastore.read(spark, "tables").where("database in ('sales', 'stock')").collect()
    assert sorted((table.database, table.table) for table in tables) == [
        ("sales", "customers"),
        ("sales", "days"),
        ("sales", "orders"),
        ("stock", "items"),
    ]
    orders = next(table for table in tables if table.table == "orders")
    assert [(key.name, key.type) for key in orders.partition_keys] == [("ds", "string"), ("hr", "int")]
    assert (orders.type, orders.owner, orders.parameters["made_by"]) == ("MANAGED_TABLE", "tester", "test")
    assert isinstance(orders.create_time, datetime)
    columns = metastore.read(spark, "columns", table="sales.days").orderBy("position")
    assert [tuple(row)[2:] for row in columns.collect()] == [
        ("id", "bigint", "", 0, False),
        ("note", "string", "", 1, False),
        ("d", "date", "a key", 2, True),
    ]


def test_partitions_of_one_table_with_typed_keys(spark, metastore):
    frame = metastore.read(spark, "partitions", table="sales.orders", partitionsPerTask="5")
    assert frame.rdd.getNumPartitions() == 3
    found = {tuple(row["values"]): row for row in frame.collect()}
    assert sorted(found) == sorted(map(tuple, VALUES))
    assert tuple(found["2024-01-02", "10"].key) == ("2024-01-02", 10)
    assert tuple(found[tuple(ODD[1])].key) == (None, 8)
    assert found["2024-01-02", "10"].location.endswith("/ds=2024-01-02/hr=10")
    assert found["2024-01-02", "10"].parameters["n"] == "1"


def test_partitions_of_all_tables(spark, metastore):
    frame = metastore.read(spark, "partitions").groupBy("database", "table").count()
    assert rows(frame) == [("sales", "days", 3), ("sales", "orders", len(VALUES))]


# Every pair is the condition in Spark's SQL and what Python says of (ds, hr), None for the default partition.
CONDITIONS = [
    ("key.ds = '2024-01-02'", lambda ds, hr: ds == "2024-01-02"),
    ("key.ds > '2024-01-01'", lambda ds, hr: ds is not None and ds > "2024-01-01"),
    ("key.ds <> '2024-01-01'", lambda ds, hr: ds is not None and ds != "2024-01-01"),
    ("key.ds IN ('2024-01-01', '2024-01-03') AND key.hr >= 2", lambda ds, hr: ds in (DAYS[0], DAYS[2]) and hr >= 2),
    ("key.hr BETWEEN 2 AND 8", lambda ds, hr: hr is not None and 2 <= hr <= 8),
    ("key.hr NOT IN (1, 2)", lambda ds, hr: hr is not None and hr not in (1, 2)),
    ("key.ds LIKE '2024-01%' AND key.hr < 3", lambda ds, hr: ds in DAYS and hr < 3),
    ("key.ds IS NULL", lambda ds, hr: ds is None),
    ('key.hr IS NOT NULL AND key.ds = "a/b=c\'d"', lambda ds, hr: ds == ODD[0][0]),
    ("key.ds = 'a' OR key.hr = 10", lambda ds, hr: hr == 10),
    ("upper(key.ds) = '%É Ü'", lambda ds, hr: ds == ODD[2][0]),
    ("table = 'Orders'", lambda ds, hr: False),
]


# One that the metastore decides, one of both, one that names decide, one of Spark's own.
FEW = (
    "key.ds IN ('2024-01-01', '2024-01-03') AND key.hr >= 2",
    "key.ds LIKE '2024-01%' AND key.hr < 3",
    "key.ds IS NULL",
    "upper(key.ds) = '%É Ü'",
)


@pytest.mark.parametrize(
    ("condition", "holds"),
    sample([each for each in CONDITIONS if each[0] in FEW], of=CONDITIONS),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_conditions_on_keys_select_what_spark_would(spark, metastore, condition, holds):
    frame = metastore.read(spark, "partitions", table="sales.orders", columns="name,key,values,table")
    found = sorted(tuple(row["values"]) for row in frame.where(condition).collect())

    def typed(values):
        ds, hr = (None if value == "__HIVE_DEFAULT_PARTITION__" else value for value in values)
        return ds, None if hr is None else int(hr)

    assert found == sorted(tuple(values) for values in VALUES if holds(*typed(values)))


def test_keys_that_are_dates(spark, metastore):
    frame = metastore.read(spark, "partitions", table="sales.days").where("key.d >= DATE '2024-01-02'")
    assert rows(frame.select("key.d")) == [(date(2024, 1, 2),), (date(2024, 1, 3),)]


def test_statistics(spark, metastore):
    frame = metastore.read(spark, "statistics").where("database = 'sales'")
    shown = frame.select("table", "partition", "column", "nulls", "distinct_values", "low", "high", "average_length")
    assert sorted(map(tuple, shown.collect()), key=str) == [
        ("customers", None, "id", 2, 5, "-3", "9", None),
        ("days", "d=2024-01-01", "id", 2, 5, "-3", "9", None),
    ]


def test_functions_and_privileges(spark, metastore):
    functions = metastore.read(spark, "functions").select("database", "function", "class", "owner_type")
    assert rows(functions) == [("sales", "twice", "org.example.Twice", "USER")]
    grants = metastore.read(spark, "privileges").where("principal = 'reporter'")
    shown = grants.select("object_type", "database", "table", "privilege", "grantor")
    assert rows(shown) == [("TABLE", "sales", "orders", "SELECT", "tester")]


def test_transactions_and_locks(spark, metastore):
    with metastore.client() as client:
        txn = client.call("open_txns", OpenTxnRequest(num_txns=1, user="tester", hostname="here")).txn_ids[0]
        component = LockComponent(
            type=LockType.SHARED_READ,
            level=LockLevel.TABLE,
            dbname="sales",
            tablename="orders",
            operationType=DataOperationType.SELECT,
        )
        client.call("lock", LockRequest(component=[component], txnid=txn, user="tester", hostname="here"))
        found = rows(metastore.read(spark, "transactions").select("txn_id", "state", "host"))
        locks = rows(metastore.read(spark, "locks").select("txn_id", "database", "table", "state", "type"))
        client.call("abort_txn", AbortTxnRequest(txnid=txn))
    assert (txn, "OPEN", "here") in found
    assert locks == [(txn, "sales", "orders", "ACQUIRED", "SHARED_READ")]


def test_events(spark, metastore):
    frame = metastore.read(spark, "events", eventsPerTask="4")
    ids = [row.id for row in frame.orderBy("id").collect()]
    assert ids == list(range(ids[0], ids[0] + len(ids)))
    assert rows(frame.where("type = 'CREATE_TABLE' AND table = 'orders'").select("database")) == [("sales",)]
    assert [row.id for row in frame.where(f"id > {ids[2]} AND id <= {ids[4]}").orderBy("id").collect()] == ids[3:5]


def test_the_plan_and_the_access_log_show_that_the_metastore_filters(spark, gateway):
    since = len(gateway.server.log_text())
    frame = gateway.read(spark, "partitions", table="sales.orders").where("key.ds = '2024-01-02' AND key.hr > 1")
    plan = formatted_plan(frame)
    assert "EqualTo(key.ds,2024-01-02)" in plan
    assert "GreaterThan(key.hr,1)" in plan
    assert "Condition :" not in plan
    assert len(frame.collect()) == 2
    with gateway.client() as client:
        client.call("getVersion")
    # Lines are written every 0.2 s, in order.
    until(lambda: "getVersion" in gateway.server.log_text()[since:])
    called = methods_called(gateway.server, since)
    assert "get_partition_values" in called
    assert "get_partitions_by_names_req" in called
    assert "get_partition_names" not in called


def test_names_suffice_for_columns_that_follow_from_them(spark, gateway):
    since = len(gateway.server.log_text())
    frame = gateway.read(spark, "partitions", table="sales.orders", columns="key").groupBy("key.ds").count()
    assert dict(map(tuple, frame.collect()))["2024-01-01"] == len(HOURS)
    assert not [name for name in methods_called(gateway.server, since) if name.startswith("get_partitions_by_names")]


def test_the_password_is_in_no_plan(spark, gateway):
    frame = gateway.read(spark, "tables").where("database = 'sales'")
    frame.createOrReplaceTempView("shown")
    for mode in ("simple", "extended", "formatted", "cost"):
        plan = frame._sc._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), mode)
        assert gateway.server.password not in plan
    assert gateway.server.password not in spark.sql("EXPLAIN EXTENDED SELECT * FROM shown").collect()[0][0]


def test_without_the_setting_spark_refuses_and_an_option_leaves_filters_to_spark(spark, gateway):
    setting = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(setting, "false")
    try:
        with pytest.raises(PySparkException, match=f"{setting}.*Set it to true"):
            gateway.read(spark, "tables").collect()
        frame = gateway.read(spark, "partitions", table="sales.orders", pushdown="false")
        assert frame.where("key.ds = '2024-01-02'").count() == len(HOURS)
    finally:
        spark.conf.set(setting, "true")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"object": "tabels"}, "option object is 'tabels'; it is one of databases, tables"),
        ({"object": "tables", "tabel": "x"}, "option tabel is unknown"),
        ({"object": "partitions", "table": "orders"}, "option table is 'orders'; it is database.table"),
        ({"object": "partitions", "table": "sales.customers"}, "table sales.customers has no partition keys"),
        ({"object": "tables", "columns": "database,size"}, "column size is not one of object tables"),
        ({"object": "tables", "tablesPerTask": "0"}, "option tablesPerTask is '0'; it is a whole number above zero"),
        ({"object": "tables", "verify": "no"}, "option verify is 'no'; it is one of true, false"),
        ({"object": "tables", "url": "ftp://x"}, "option url has the scheme 'ftp'"),
        ({"object": "tables", "cafile": "/nowhere.pem"}, "option cafile: /nowhere.pem cannot be read"),
        ({"object": "tables", "password": "wrong"}, "401"),
    ],
)
def test_what_does_not_fit_is_named(spark, gateway, options, text):
    given = {**gateway.options, **options}
    with pytest.raises(PySparkException) as caught:
        spark.read.format("hms").options(**given).load().collect()
    assert text in str(caught.value)
    assert gateway.server.password not in str(caught.value)


def test_a_schema_is_a_choice_of_columns(spark, gateway):
    reader = spark.read.format("hms").options(object="tables", **gateway.options)
    found = reader.schema("table string, database string").load().where("database = 'stock'")
    assert rows(found) == [("items", "stock")]
    with pytest.raises(PySparkException, match="column create_time of object tables is asked for as string"):
        reader.schema("create_time string").load().collect()


def test_a_session_may_be_configured(spark, gateway):
    from hms_gateway.pipeline import HmsDataSource, register

    for name, value in gateway.options.items():
        spark.sparkContext._conf.set(f"spark.hms.{name}", value)
    try:
        register(spark)
        assert spark.read.format("hms").option("object", "databases").load().count() >= 2
    finally:
        spark.dataSource.register(HmsDataSource)
