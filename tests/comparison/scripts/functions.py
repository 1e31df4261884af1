"""Functions, types, indexes, tokens, master keys, and what a server says about itself."""

from collections.abc import Iterator

from hms_gateway.rpc.structs import FieldSchema, Function, Index, ResourceUri, Type
from tests.comparison.objects import database, descriptor, table
from tests.comparison.scripts.names import ODD_NAMES, PATTERNS
from tests.comparison.servers import Step, call

JAVA = 1

# Their values are Hive's here too.
CONFIGURED = (
    "hive.txn.timeout",
    "hive.max.open.txns",
    "hive.txn.max.open.batch",
    "hive.txn.manager",
    "hive.txn.strict.locking.mode",
    "hive.support.concurrency",
    "hive.lock.numretries",
    "hive.lock.sleep.between.retries",
    "hive.unlock.numretries",
    "hive.compactor.history.retention.attempted",
    "hive.compactor.history.retention.failed",
    "hive.compactor.history.retention.succeeded",
    "hive.compactor.worker.timeout",
    "hive.metastore.batch.retrieve.max",
    "hive.metastore.batch.retrieve.table.partition.max",
    "hive.metastore.client.connect.retry.delay",
    "hive.metastore.client.socket.lifetime",
    "hive.metastore.client.socket.timeout",
    "hive.metastore.connect.retries",
    "hive.metastore.disallow.incompatible.col.type.changes",
    "hive.metastore.event.db.listener.timetolive",
    "hive.metastore.event.expiry.duration",
    "hive.metastore.execute.setugi",
    "hive.metastore.failure.retries",
    "hive.metastore.fshandler.threads",
    "hive.metastore.limit.partition.request",
    "hive.metastore.orm.retrieveMapNullsAsEmptyStrings",
    "hive.metastore.partition.inherit.table.properties",
    "hive.metastore.partition.name.whitelist.pattern",
    "hive.metastore.stats.ndv.densityfunction",
    "hive.metastore.stats.ndv.tuner",
    "hive.metastore.try.direct.sql",
)


def steps() -> Iterator[Step]:
    yield call("create_database", database("sales"))
    yield from _functions()
    yield from _types()
    yield from _indexes()
    yield from _tokens()
    yield from _service()


def function(name: str | None, **fields: object) -> Function:
    uris = [ResourceUri(1, "file:/a.jar"), ResourceUri(2, "file:/b.txt")]
    return Function(
        name,
        **{
            "dbName": "sales",
            "className": "a.B",
            "ownerName": "somebody",
            "ownerType": 1,
            "createTime": 0,
            "functionType": JAVA,
            "resourceUris": uris,
            **fields,
        },
    )  # type: ignore[arg-type]


def _functions() -> Iterator[Step]:
    yield call("create_function", function("f1"))
    yield call("create_function", function("f2", resourceUris=None))
    yield call("create_function", function("f3", ownerName=None))
    for name in ("f1", "F1", *ODD_NAMES[:6]):
        yield call("create_function", function(name))
    for wrong in (
        function("f4", className=None),
        function("f4", dbName="nosuch"),
        function("f4", dbName=None),
        function(None),
        None,
    ):
        yield call("create_function", wrong)
    for db_name, name in (
        ("sales", "f1"),
        ("SALES", " F1 "),
        ("sales", "nosuch"),
        ("nosuch", "f1"),
        (None, "f1"),
        ("sales", None),
    ):
        yield call("get_function", db_name, name)
    for pattern in (*PATTERNS, "f*", "F1", None):
        yield call("get_functions", "sales", pattern)
    yield call("get_functions", "nosuch", "*")
    yield call("get_functions", None, "*")
    yield call("get_all_functions")
    yield call("alter_function", "sales", "f2", function("f2", className="c.D", ownerName="else"))
    yield call("get_function", "sales", "f2")
    yield call("alter_function", "sales", "f2", function("f5"))
    yield call("get_function", "sales", "f5")
    for name, new in (("nosuch", function("x")), ("f5", function("a-b")), ("f5", None)):
        yield call("alter_function", "sales", name, new)
    yield call("drop_database", "sales", True, False)
    for db_name, name in (("sales", "F5"), ("sales", "f5"), ("nosuch", "f1"), ("sales", ""), (None, "f1")):
        yield call("drop_function", db_name, name)


def _types() -> Iterator[Step]:
    yield call("create_type", Type("pair", fields=[FieldSchema("a", "int"), FieldSchema("b", "string")]))
    yield call("create_type", Type("pair", fields=[]))
    for name in ("pair", "int", "nosuch", ""):
        yield call("get_type", name)
    yield call("create_type", Type("a-b", fields=[]))
    yield call("get_type_all", "x")
    for _ in range(2):
        yield call("drop_type", "pair")


def _indexes() -> Iterator[Step]:
    yield call("create_table", table("sales", "indexed"))
    made = Index("idx", "a.Handler", "sales", "indexed", 0, 0, "idx_table", descriptor(), {"a": "b"}, True)
    yield call("add_index", made, table("sales", "idx_table", tableType="INDEX_TABLE"))
    yield call("add_index", made, table("sales", "idx_table", tableType="INDEX_TABLE"))
    for name in ("idx", "IDX", "nosuch", ""):
        yield call("get_index_by_name", "sales", "indexed", name)
    for tbl_name in ("indexed", "nosuch"):
        yield call("get_indexes", "sales", tbl_name, -1)
        yield call("get_index_names", "sales", tbl_name, -1)
    yield call("drop_table", "sales", "idx_table", True)
    yield call("drop_index_by_name", "sales", "indexed", "idx", True)
    yield call("drop_index_by_name", "sales", "indexed", "idx", True)
    yield call("get_all_tables", "sales")


def _tokens() -> Iterator[Step]:
    for _ in range(2):
        yield call("add_token", "one", "dGV4dA==")
    for name in ("one", "nosuch", ""):
        yield call("get_token", name)
    yield call("get_all_token_identifiers")
    for _ in range(2):
        yield call("remove_token", "one")
    yield call("update_master_key", 4711, "key")
    yield call("remove_master_key", 4711)
    yield call("get_delegation_token", "owner", "renewer")


def _service() -> Iterator[Step]:
    for name in ("hive.metastore.nosuch", "nosuch", "", None, "mapred.x", "hdfs.x", *CONFIGURED):
        yield call("get_config_value", name, "default")
    for key in ("hive.metastore.try.direct.sql", "hive.metastore.client.socket.timeout", "x", "", None):
        yield call("getMetaConf", key)
        yield call("setMetaConf", key, "true")
    for method in ("getVersion", "getStatus", "getStatusDetails", "flushCache"):
        yield call(method)
    yield call("getOption", "nosuch")
    yield call("getCpuProfile", 1)
