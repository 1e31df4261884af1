"""Tables: create, list, read, alter, rename, truncate of names, drop."""

from collections.abc import Iterator

from hms_gateway.rpc.structs import (
    EnvironmentContext,
    FieldSchema,
    GetTableRequest,
    GetTablesRequest,
    Order,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
)
from tests.comparison.objects import SOME_KEYS, database, descriptor, external, partition, table, view
from tests.comparison.scripts.names import ODD_NAMES, PATTERNS
from tests.comparison.servers import Step, call

ORC_INPUT = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
KINDS = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)"),
    *("string", "varchar(5)", "char(2)", "date", "timestamp", "binary"),
)
ORC_OUTPUT = "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"


def steps() -> Iterator[Step]:
    yield call("create_database", database("sales"))
    yield call("create_database", database("other"))
    yield from _create()
    yield from _create_what_is_wrong()
    yield from _transactional()
    yield from _list()
    yield from _select()
    yield from _columns()
    yield from _alter()
    yield from _alter_types()
    yield from _rename()
    yield from _drop()


def _create() -> Iterator[Step]:
    yield call("create_table", table("sales", "plain"))
    yield call("create_table", table("sales", "Mixed", (("DS", "string"), ("HR", "int"))))
    yield call("create_table", table("SALES", "upper", pairs=(("ID", "bigint"), ("Name", "string"))))
    yield call("create_table", external("sales", "ext"))
    yield call("create_table", external("sales", "placed", sd=descriptor(location="{elsewhere}/placed//x/")))
    yield call("create_table", table("sales", "unmarked", tableType="EXTERNAL_TABLE"))
    yield call("create_table", table("sales", "lower_mark", parameters={"EXTERNAL": "true"}))
    yield call("create_table", table("sales", "marked", parameters={"EXTERNAL": "TRUE"}))
    yield call("create_table", table("sales", "odd_type", tableType="ODD"))
    yield call("create_table", table("sales", "no_type", tableType=None))
    yield call("create_table", table("sales", "slash/name"))
    yield call("create_table", table("sales", "ddl", parameters={"transient_lastDdlTime": "17", "a": "", "b": "é\t"}))
    yield call("create_table", table("sales", "kept_out", parameters={"DO_NOT_UPDATE_STATS": "true"}))
    yield call("create_table", table("sales", "temporary", temporary=True))
    yield call("create_table", table("sales", "times", createTime=5, lastAccessTime=6, retention=7, owner=None))
    yield call("create_table", table("sales", "no_columns", pairs=()))
    yield call("create_table", view("sales", "seen"))
    yield call("create_table", view("sales", "materialized", tableType="MATERIALIZED_VIEW"))
    yield call("create_table", table("default", "at_home"))
    rich = descriptor(
        (("a", "array<struct<x:int,y:decimal(10,2)>>"), ("b", "decimal(10,2)"), ("c", "varchar(5)")),
        compressed=True,
        numBuckets=4,
        bucketCols=["B"],
        sortCols=[Order("B", 1), Order("a", 0)],
        parameters={"p": "q"},
        serdeInfo=SerDeInfo("named", "a.SerDe", {"x": "y"}),
        skewedInfo=SkewedInfo(["a", "b"], [["1", "2"], ["3", "4"]], {}),
        storedAsSubDirectories=True,
    )
    yield call("create_table", table("sales", "rich", sd=rich))
    commented = descriptor(cols=[FieldSchema("a", "int", "a comment"), FieldSchema("b", "string", "")])
    yield call("create_table", table("sales", "commented", sd=commented))
    duplicates = (("a", "int"), ("a", "string"))
    yield call("create_table", table("sales", "twice", pairs=duplicates))
    yield call("create_table", table("sales", "key_twice", (("k", "int"), ("k", "string"))))
    yield call("create_table", table("sales", "key_is_column", (("id", "int"),)))
    yield call("create_table_with_environment_context", table("sales", "in_context"), EnvironmentContext({"a": "b"}))
    yield call("create_table_with_environment_context", table("sales", "no_context"), None)
    for name in [
        "plain",
        "mixed",
        "Mixed",
        "upper",
        "ext",
        "placed",
        "unmarked",
        "lower_mark",
        "marked",
        "odd_type",
        "no_type",
    ]:
        yield call("get_table", "sales", name)
    for name in [
        "slash/name",
        "ddl",
        "kept_out",
        "temporary",
        "times",
        "no_columns",
        "seen",
        "materialized",
        "rich",
        "commented",
        "twice",
    ]:
        yield call("get_table", "sales", name)
    for name in ["key_twice", "key_is_column", "in_context", "no_context"]:
        yield call("get_table", "sales", name)
    yield call("get_table", "default", "AT_home ")


def _create_what_is_wrong() -> Iterator[Step]:
    for name in ("plain", "PLAIN", "seen", *ODD_NAMES):
        yield call("create_table", table("sales", name))
    for db_name in ("nosuch", "", None):
        yield call("create_table", table(db_name, "t"))
    yield call("create_table", None)
    yield call("create_table", table("sales", None))
    yield call("create_table", Table("bare", "sales"))
    yield call("create_table", Table("bare", "sales", tableType="VIRTUAL_VIEW"))
    yield call("create_table", table("sales", "no_cols", sd=StorageDescriptor()))
    yield call("create_table", table("sales", "no_serde", sd=descriptor(serdeInfo=None)))
    for kind in (
        "xyz",
        "INT",
        "int(",
        "array<nonsense",
        "",
        None,
        "decimal(10,2)",
        "<derived from deserializer>",
        " int",
    ):
        yield call("create_table", table("sales", "typed", pairs=(("a", kind),)))  # type: ignore[arg-type]
        yield call("drop_table", "sales", "typed", True)
        yield call("create_table", table("sales", "key_typed", (("a", kind),)))  # type: ignore[arg-type]
        yield call("drop_table", "sales", "key_typed", True)
    for name in ("col umn", "", "ä", "a.b", "UPPER"):
        yield call("create_table", table("sales", "column_named", pairs=((name, "int"),)))
        yield call("get_table", "sales", "column_named")
        yield call("drop_table", "sales", "column_named", True)
    skewed = descriptor(skewedInfo=SkewedInfo(["nosuch"], [["1"]], {}))
    yield call("create_table", table("sales", "skewed", sd=skewed))
    for location in ("", "file:relative", "nosuchscheme://host/a", "{elsewhere path}/bare", "{elsewhere}/lt%20a b?x#y"):
        yield call("create_table", table("sales", "located", location=location))
        yield call("get_table", "sales", "located")
        yield call("drop_table", "sales", "located", True)


def _transactional() -> Iterator[Step]:
    for value in ("true", "TRUE", "false", "maybe", ""):
        yield call("create_table", table("sales", "tx", parameters={"transactional": value}))
        yield call("get_table", "sales", "tx")
        yield call("drop_table", "sales", "tx", True)
    orc = descriptor(inputFormat=ORC_INPUT, outputFormat=ORC_OUTPUT, bucketCols=["id"], numBuckets=2)
    yield call("create_table", table("sales", "acid", sd=orc, parameters={"Transactional": "TRUE"}))
    yield call("get_table", "sales", "acid")
    placed = descriptor(
        inputFormat=ORC_INPUT,
        outputFormat=ORC_OUTPUT,
        bucketCols=["id"],
        numBuckets=2,
        location="{warehouse}/sales.db/acid",
    )
    yield call("alter_table", "sales", "acid", table("sales", "acid", sd=placed))
    yield call("alter_table", "sales", "acid", table("sales", "acid", sd=placed, parameters={"transactional": "false"}))
    yield call("alter_table", "sales", "acid", table("sales", "acid", sd=placed, parameters={"transactional": "true"}))
    for value in ("default", "nonsense"):
        properties = {"transactional": "true", "transactional_properties": value}
        yield call("create_table", table("sales", "acid2", sd=orc, parameters=properties))
        yield call("get_table", "sales", "acid2")
        yield call("drop_table", "sales", "acid2", True)
    yield call(
        "create_table", external("sales", "acid3", sd=orc, parameters={"EXTERNAL": "TRUE", "transactional": "true"})
    )
    yield call("drop_table", "sales", "acid", True)
    properties = {"transactional": "true", "transactional_properties": "LEGACY"}
    yield call("create_table", table("sales", "legacy", sd=orc, parameters=properties))
    yield call("drop_table", "sales", "legacy", True)
    yield call("create_table", table("sales", "acid4", sd=descriptor(inputFormat=ORC_INPUT, outputFormat=ORC_OUTPUT)))
    plain = descriptor(inputFormat=ORC_INPUT, outputFormat=ORC_OUTPUT, location="{warehouse}/sales.db/acid4")
    yield call(
        "alter_table", "sales", "acid4", table("sales", "acid4", sd=plain, parameters={"transactional": "false"})
    )
    yield call("drop_table", "sales", "acid4", True)


def _list() -> Iterator[Step]:
    yield call("get_all_tables", "sales")
    for db_name in ("SALES", "nosuch", "", None):
        yield call("get_all_tables", db_name)
        yield call("get_tables", db_name, "*")
        yield call("get_tables_by_type", db_name, "*", "MANAGED_TABLE")
    for pattern in (*PATTERNS, "P*", "p*|s*", "m.xed", None):
        yield call("get_tables", "sales", pattern)
    for kind in ("MANAGED_TABLE", "EXTERNAL_TABLE", "VIRTUAL_VIEW", "INDEX_TABLE", "MATERIALIZED_VIEW", "X", "", None):
        yield call("get_tables_by_type", "sales", ".*", kind)
    for name in ("plain", "nosuch", *ODD_NAMES):
        yield call("get_table", "sales", name)
    for db_name, name in (("nosuch", "t"), ("", "plain"), (None, "plain"), ("sales", None), (" SALES", " Plain ")):
        yield call("get_table", db_name, name)
    yield call("get_table_req", GetTableRequest("sales", "plain"))
    yield call("get_table_req", GetTableRequest("sales", "nosuch"))
    yield Step("get_table_req", {"1": {"rec": {"1": {"str": "sales"}}}})
    yield Step("get_table_req", {})
    for names in (["plain", "nosuch", "PLAIN", "ext"], [], ["nosuch"], None):
        yield call("get_table_objects_by_name", "sales", names)
    for db_name in ("nosuch", "", None):
        yield call("get_table_objects_by_name", db_name, ["plain"])
        yield call("get_table_objects_by_name", db_name, [])
    yield call("get_table_objects_by_name_req", GetTablesRequest("sales", ["plain", "seen"]))
    yield call("get_table_objects_by_name_req", GetTablesRequest("sales", None))
    yield call("get_table_objects_by_name_req", GetTablesRequest("nosuch", ["plain"]))
    for db_pattern, pattern, kinds in (
        ("sales", "p*", []),
        ("*", "at_home", None),
        ("s*|d*", "*", ["VIRTUAL_VIEW"]),
        ("sales", "*", ["MANAGED_TABLE", "ODD"]),
        ("sales", "*", [""]),
        ("sales", "*", ["nonsense"]),
        ("nosuch", "*", []),
        (None, None, ["VIRTUAL_VIEW"]),
        ("", "*", []),
    ):
        yield call("get_table_meta", db_pattern, pattern, kinds)


def _select() -> Iterator[Step]:
    owner, access, params = (f"hive_filter_field_{name}__" for name in ("owner", "last_access", "params"))
    for filter in (
        f'{owner} = "somebody"',
        f'{owner} = "nobody"',
        f'{owner} != "nobody"',
        f'{owner} like ".*bod.*"',
        f'{owner} > "a"',
        f"{access} = 0",
        f"{access} > 5",
        f'{access} = "0"',
        f'{access} like "x"',
        f'{params}EXTERNAL = "TRUE"',
        f'{params}EXTERNAL != "x"',
        f'{params}EXTERNAL <> "TRUE"',
        f'{params}external = "TRUE"',
        f'{params}EXTERNAL like "T.*"',
        f'{params}EXTERNAL > "T"',
        f'{params}EXTERNAL = "TRUE" and {owner} = "somebody"',
        f'{owner} = "x" or {access} = 6',
        f'{owner.upper()} = "somebody"',
        'nokey = "1"',
        "",
        " ",
        "garbage (",
        None,
    ):
        yield call("get_table_names_by_filter", "sales", filter, -1)
    for limit in (0, 1, 1000):
        yield call("get_table_names_by_filter", "sales", f"{access} = 6", limit)
    for db_name in ("nosuch", "", None):
        yield call("get_table_names_by_filter", db_name, f"{access} = 0", -1)


def _columns() -> Iterator[Step]:
    for method in ("get_fields", "get_schema"):
        for db_name, name in (
            ("sales", "mixed"),
            ("sales", "seen"),
            ("sales", "plain.id"),
            ("sales", "nosuch"),
            ("nosuch", "plain"),
            ("", "plain"),
            ("sales", ""),
            (None, "plain"),
            ("sales", None),
        ):
            yield call(method, db_name, name)
            yield call(f"{method}_with_environment_context", db_name, name, None)


def _alter() -> Iterator[Step]:
    here = "{warehouse}/sales.db/plain"
    yield call("alter_table", "sales", "plain", table("sales", "plain", location=here, parameters={"a": "b"}))
    yield call("get_table", "sales", "plain")
    yield call("alter_table", "SALES", "PLAIN", table("Sales", "Plain", location="{elsewhere}/plain//", owner="new"))
    yield call("get_table", "sales", "plain")
    yield call("alter_table", "sales", "plain", table("sales", "plain", location=""))
    yield call("alter_table", "sales", "plain", table("sales", "plain", location=here, createTime=1, retention=9))
    yield call("get_table", "sales", "plain")
    kept = EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})
    changed = table("sales", "plain", location=here, parameters={"transient_lastDdlTime": "3"})
    yield call("alter_table_with_environment_context", "sales", "plain", changed, kept)
    yield call("get_table", "sales", "plain")
    task = EnvironmentContext({"STATS_GENERATED": "TASK"})
    yield call("alter_table_with_environment_context", "sales", "plain", changed, task)
    yield call("get_table", "sales", "plain")
    yield call("alter_table", "sales", "plain", table("sales", "plain"))
    yield call("alter_table", "sales", "plain", table("sales", "plain", location=here))
    yield call("get_table", "sales", "plain")
    mixed = "{warehouse}/sales.db/mixed"
    for name, new in (
        ("nosuch", table("sales", "nosuch", location=here)),
        ("plain", None),
        ("plain", table("sales", "bad-name", location=here)),
        ("plain", table("sales", "plain", pairs=(("a", "xyz"),), location=here)),
        ("plain", table("sales", "plain", sd=None)),
        ("mixed", table("sales", "mixed", (("ds", "string"),), location=mixed)),
        ("mixed", table("sales", "mixed", (("hr", "int"), ("ds", "string")), location=mixed)),
        ("mixed", table("sales", "mixed", (("ds", "int"), ("hr", "string")), location=mixed)),
        ("mixed", table("sales", "mixed", (), location=mixed)),
    ):
        yield call("alter_table", "sales", name, new)
    yield call("get_table", "sales", "mixed")
    yield call("alter_table", "sales", "seen", view("sales", "seen", viewExpandedText="select 2"))
    yield call("get_table", "sales", "seen")
    for kind, parameters in (("EXTERNAL_TABLE", {}), ("MANAGED_TABLE", {"EXTERNAL": "TRUE"}), ("ODD", {})):
        again = table("sales", "ext", location="{warehouse}/sales.db/ext", tableType=kind, parameters=parameters)
        yield call("alter_table", "sales", "ext", again)
        yield call("get_table", "sales", "ext")


def _alter_types() -> Iterator[Step]:
    """All the changes of one type at once: the refusal lists the columns, the rest may change."""
    kinds = [*KINDS, "void", "array<int>", "interval_day_time"]
    for number, old in enumerate(kinds):
        name = f"retyped{number}"
        here = f"{{warehouse}}/sales.db/{name}"
        yield call("create_table", table("sales", name, pairs=[(f"c{place}", old) for place in range(len(kinds))]))
        for new in (kinds, [*kinds[1:], "array<string>"]):
            changed = [(f"n{place}", kind) for place, kind in enumerate(new)]
            yield call("alter_table", "sales", name, table("sales", name, pairs=changed, location=here))
    for number, (old, new) in enumerate(
        (("int", "bigint"), ("date", "string"), ("void", "binary"), ("string", "double"))
    ):
        name = f"widened{number}"
        here = f"{{warehouse}}/sales.db/{name}"
        yield call("create_table", table("sales", name, pairs=(("a", old), ("b", old))))
        yield call("alter_table", "sales", name, table("sales", name, pairs=(("a", new),), location=here))
        yield call("get_table", "sales", name)


def _rename() -> Iterator[Step]:
    yield call("create_table", table("sales", "moving", SOME_KEYS))
    yield call("add_partition", partition("sales", "moving", ["2024", "1"]))
    yield call("add_partition", partition("sales", "moving", ["2024", "2"], location="{elsewhere}/hour2"))
    for new in (
        table("sales", "ext", SOME_KEYS, location=""),
        table("nosuch", "moving", SOME_KEYS, location=""),
        table("sales", "moved", SOME_KEYS),
        table("sales", "Moved", SOME_KEYS, location=""),
    ):
        yield call("alter_table", "sales", "moving", new)
    yield call("get_table", "sales", "moved")
    yield call("get_table", "sales", "moving")
    yield call("get_partitions", "sales", "moved", -1)
    yield call("alter_table", "sales", "moved", table("other", "arrived", SOME_KEYS, location=""))
    yield call("get_table", "other", "arrived")
    yield call("get_partitions", "other", "arrived", -1)
    yield call(
        "alter_table", "sales", "placed", external("sales", "placed2", sd=descriptor(location="{elsewhere}/placed/x"))
    )
    yield call("get_table", "sales", "placed2")
    yield call("alter_table", "sales", "seen", view("sales", "seen2"))
    yield call("get_table", "sales", "seen2")
    wider = (*(("id", "bigint"), ("name", "string")), ("more", "int"))
    cascading = table("other", "arrived", SOME_KEYS, wider, location="{warehouse}/other.db/arrived")
    yield call("alter_table_with_cascade", "other", "arrived", cascading, True)
    yield call("get_partitions", "other", "arrived", -1)
    yield call("get_table", "other", "arrived")
    narrower = table("other", "arrived", SOME_KEYS, location="{warehouse}/other.db/arrived")
    yield call("alter_table_with_cascade", "other", "arrived", narrower, False)
    yield call("get_partition", "other", "arrived", ["2024", "1"])


def _drop() -> Iterator[Step]:
    for name in ("plain", "plain", "PLACED2", "seen2", "nosuch", ""):
        yield call("drop_table", "sales", name, True)
    for db_name, name in (("nosuch", "t"), (None, "t"), ("sales", None)):
        yield call("drop_table", db_name, name, True)
    purge = EnvironmentContext({"ifPurge": "TRUE"})
    yield call("drop_table_with_environment_context", "other", "arrived", True, purge)
    yield call("drop_table_with_environment_context", "sales", "rich", False, None)
    yield call("drop_database", "sales", True, True)
    yield call("get_all_tables", "sales")
