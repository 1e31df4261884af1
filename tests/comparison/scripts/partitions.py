"""Partitions: add, append, read, select, alter, rename, exchange, drop."""

from collections.abc import Iterator

from hms_gateway.rpc.structs import (
    AddPartitionsRequest,
    DropPartitionsRequest,
    EnvironmentContext,
    PartitionListComposingSpec,
    PartitionSpec,
    PartitionSpecWithSharedSD,
    PartitionValuesRequest,
    PartitionWithoutSD,
    RequestPartsSpec,
)
from hms_gateway.rpc.structs import FieldSchema as Column
from tests.comparison.objects import SOME_KEYS, database, descriptor, external, partition, table, view
from tests.comparison.servers import Step, call

ODD_VALUES = (
    ["a/b=c %:é", "10"],
    ["", "3"],
    ["__HIVE_DEFAULT_PARTITION__", "3"],
    ["D1", "01"],
    ["d1", "1"],
    ["😀\x01\x7f", "notint"],
    ["\"#'*?\\[]^{}<>|", "-5"],
    [" blank ", " 1 "],
)
LIMITS = (-1, 0, 1, 2, 100)


def steps() -> Iterator[Step]:
    yield call("create_database", database("sales"))
    yield call("create_table", table("sales", "part", SOME_KEYS))
    yield call("create_table", table("sales", "flat"))
    yield call("create_table", view("sales", "seen"))
    yield call("create_table", view("sales", "seen_by_day", partitionKeys=[Column("ds", "string")]))
    yield call("create_table", external("sales", "ext", SOME_KEYS))
    yield from _add()
    yield from _add_several()
    yield from _add_specs()
    yield from _append()
    yield from _read()
    yield from _names()
    yield from _alter()
    yield from _rename()
    yield from _exchange()
    yield from _drop()


def _add() -> Iterator[Step]:
    for values in (["2024-01-01", "1"], ["2024-01-02", "2"], *ODD_VALUES):
        yield call("add_partition", partition("sales", "part", values))
        yield call("get_partition", "sales", "part", values)
    for values in (["2024-01-01", "1"], ["x"], [], None, ["x", "y", "z"]):
        yield call("add_partition", partition("sales", "part", values))
    yield call("add_partition", partition("SALES", "PART", ["cased", "9"], createTime=5, lastAccessTime=6))
    yield call("get_partition", "sales", "part", ["cased", "9"])
    yield call("add_partition", partition("sales", "part", ["placed", "1"], location="{elsewhere}/placed//p/"))
    yield call("add_partition", partition("sales", "part", ["params", "1"], parameters={"a": "b", "c": ""}))
    yield call("add_partition", partition("sales", "part", ["typed", "1"], pairs=(("a", "xyz"),)))
    yield call("add_partition", partition("sales", "part", ["no sd", "1"], sd=None))
    yield call("add_partition", partition("sales", "part", ["no columns", "1"], sd=descriptor(cols=None)))
    yield call("get_partition", "sales", "part", ["no columns", "1"])
    yield call("add_partition", partition("sales", "part", ["relative", "1"], location="file:relative"))
    yield call("add_partition", partition("sales", "flat", ["x"]))
    yield call("add_partition", partition("sales", "seen", ["x"]))
    yield call("add_partition", partition("sales", "seen_by_day", ["x"]))
    yield call("add_partition", partition("sales", "seen_by_day", ["y"], location="{elsewhere}/y"))
    yield call("add_partition", partition("sales", "seen_by_day", ["z"], sd=None))
    yield call("get_partitions", "sales", "seen_by_day", -1)
    for db_name, tbl_name in (("sales", "nosuch"), ("nosuch", "part"), (None, "part"), ("sales", None), ("", "")):
        yield call("add_partition", partition(db_name, tbl_name, ["x", "1"]))
    yield call("add_partition", None)
    quiet = EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})
    quietly = partition("sales", "part", ["quiet", "1"])
    yield call("add_partition_with_environment_context", quietly, quiet)
    yield call("get_partition", "sales", "part", ["quiet", "1"])


def _add_several() -> Iterator[Step]:
    def some(*values: tuple[str, str], tbl_name: str = "part") -> list[object]:
        return [partition("sales", tbl_name, pair) for pair in values]

    yield call("add_partitions", some(("p", "1"), ("p", "2")))
    yield call("add_partitions", some(("left", "1"), ("p", "2")))
    yield call("add_partitions", some(("twice", "1"), ("twice", "1")))
    yield call("add_partitions", some(("q", "1"), tbl_name="Part"))
    yield call("add_partitions", [partition("sales", "part", ["n", "1"]), partition("other", "part", ["n", "2"])])
    yield call("add_partitions", [partition("sales", "part", ["n", "1"]), partition("sales", "part", ["n"])])
    yield call("add_partition", partition("sales", "part", ["twice", "1"]))
    yield call("drop_partition", "sales", "part", ["twice", "1"], True)
    for parts in ([], None):
        yield call("add_partitions", parts)
    yield call("add_partitions", some(("q", "1"), tbl_name="nosuch"))
    for tbl_name, parts, if_not_exists, need_result in (
        ("part", some(("p", "1"), ("r", "1")), True, True),
        ("part", some(("p", "1")), False, True),
        ("part", some(("r", "2")), False, False),
        ("part", [], False, True),
        ("nosuch", [], False, True),
        ("nosuch", some(("r", "1")), False, True),
        ("flat", some(("r", "1")), False, True),
        ("PART", some(("r", "3")), False, True),
    ):
        request = AddPartitionsRequest("sales", tbl_name, parts, if_not_exists, need_result)
        yield call("add_partitions_req", request)
    yield call("add_partitions_req", None)
    yield call("get_partitions", "sales", "part", -1)


def _add_specs() -> Iterator[Step]:
    shared = PartitionSpecWithSharedSD(
        [PartitionWithoutSD(["s1", "1"], 0, 0, "/ds=s1/hr=1", {"a": "b"})],
        descriptor(location="{warehouse}/sales.db/part"),
    )
    listed = PartitionListComposingSpec([partition("sales", "part", ["s2", "1"])])
    yield call("add_partitions_pspec", [PartitionSpec("sales", "part", "{warehouse}/sales.db/part", shared)])
    yield call("add_partitions_pspec", [PartitionSpec("sales", "part", None, None, listed)])
    yield call("add_partitions_pspec", [PartitionSpec("sales", "part", None, None, listed)])
    yield call("add_partitions_pspec", [PartitionSpec("sales", "nosuch", None, None, listed)])
    yield call("add_partitions_pspec", [])
    for values in (["s1", "1"], ["s2", "1"]):
        yield call("get_partition", "sales", "part", values)


def _append() -> Iterator[Step]:
    for tbl_name, values in (
        ("part", ["ap", "5"]),
        ("part", ["ap", "5"]),
        ("part", []),
        ("part", ["x"]),
        ("part", None),
        ("nosuch", ["x"]),
        ("flat", ["x"]),
        ("seen", ["x"]),
        ("seen_by_day", ["x"]),
        ("PART", ["", "7"]),
    ):
        yield call("append_partition", "sales", tbl_name, values)
    for name in (
        "ds=an/hr=6",
        "hr=7/ds=an",
        "ds=an",
        "DS=x/HR=1",
        "",
        "nonsense",
        "ds=/hr=1",
        "ds=zz/hr=1/x=2",
        "ds=a%2Fb/hr=1",
        "ds=x=y/hr=2",
        None,
    ):
        yield call("append_partition_by_name", "sales", "part", name)
    yield call("append_partition_by_name", "sales", "nosuch", "ds=an/hr=6")
    yield call("append_partition_with_environment_context", "sales", "part", ["env", "1"], None)
    yield call("append_partition_by_name_with_environment_context", "sales", "part", "ds=env/hr=2", None)


def _read() -> Iterator[Step]:
    for values in (["2024-01-01", "1"], ["2024-01-01"], ["nosuch", "2"], [], None, *ODD_VALUES):
        yield call("get_partition", "sales", "part", values)
        yield call("get_partition_with_auth", "sales", "part", values, "somebody", ["group"])
    for db_name, tbl_name in (
        ("sales", "nosuch"),
        ("sales", "flat"),
        ("nosuch", "part"),
        (None, "part"),
        ("sales", None),
    ):
        yield call("get_partition", db_name, tbl_name, ["x", "1"])
        yield call("get_partition_by_name", db_name, tbl_name, "ds=x/hr=1")
        yield call("get_partitions", db_name, tbl_name, -1)
        yield call("get_partitions_with_auth", db_name, tbl_name, -1, "somebody", [])
        yield call("get_partition_names", db_name, tbl_name, -1)
        yield call("get_partitions_pspec", db_name, tbl_name, -1)
        yield call("get_partitions_ps", db_name, tbl_name, ["x"], -1)
        yield call("get_partition_names_ps", db_name, tbl_name, ["x"], -1)
        yield call("get_partitions_by_names", db_name, tbl_name, ["ds=x/hr=1"])
        yield call("get_partitions_by_filter", db_name, tbl_name, 'ds = "x"', -1)
        yield call("get_num_partitions_by_filter", db_name, tbl_name, 'ds = "x"')
        yield call("get_part_specs_by_filter", db_name, tbl_name, 'ds = "x"', -1)
    for name in (
        "ds=2024-01-01/hr=1",
        "hr=1/ds=2024-01-01",
        "ds=nope/hr=1",
        "ds=x",
        "",
        "nonsense",
        "DS=2024-01-01/HR=1",
        "ds=D1/hr=01",
        "ds=a%2Fb%3Dc %25%3Aé/hr=10",
        None,
    ):
        yield call("get_partition_by_name", "sales", "part", name)
    yield call("get_partitions_pspec", "SALES", "NOSUCH", -1)
    yield call("get_num_partitions_by_filter", "SALES", "NOSUCH", 'ds = "x"')
    for limit in LIMITS:
        yield call("get_partitions", "sales", "part", limit)
        yield call("get_partition_names", "sales", "part", limit)
        yield call("get_partitions_pspec", "sales", "part", limit)
        yield call("get_partitions_ps", "sales", "part", ["p"], limit)
        yield call("get_partition_names_ps", "sales", "part", ["p"], limit)
    for values in (["p", ""], ["", ""], ["p"], ["x", "y", "z"], [], None, ["", "2"], ["nope"], ["D1"], ["a/b=c %:é"]):
        yield call("get_partition_names_ps", "sales", "part", values, -1)
        yield call("get_partitions_ps", "sales", "part", values, -1)
        yield call("get_partitions_ps_with_auth", "sales", "part", values, -1, "somebody", [])
    for names in (["ds=p/hr=1", "ds=p/hr=1", "nope", "DS=p/HR=2", "ds=p/hr=2"], [], None, [""]):
        yield call("get_partitions_by_names", "sales", "part", names)
    grouped = table("sales", "grouped", SOME_KEYS, parameters={"hive.hcatalog.partition.spec.grouping.enabled": "TRUE"})
    yield call("create_table", grouped)
    for number in range(3):
        yield call("append_partition", "sales", "grouped", ["g", str(number)])
    yield call("add_partition", partition("sales", "grouped", ["outside", "1"], location="{elsewhere}/grouped"))
    yield call("get_partitions_pspec", "sales", "grouped", -1)
    yield call("get_part_specs_by_filter", "sales", "grouped", "hr >= 1", -1)
    values = PartitionValuesRequest("sales", "grouped", [Column("ds", "string")])
    yield call("get_partition_values", values)


def _names() -> Iterator[Step]:
    for name in (
        "a=1/b=2",
        "A=1/b=x%2Fy",
        "nonsense",
        "",
        "a=1/a=2",
        "a==b",
        "=a",
        "a=",
        "a=1//b=2",
        "a=%zz",
        "%61=1",
        None,
    ):
        yield call("partition_name_to_vals", name)
        yield call("partition_name_to_spec", name)
    for values in (["a", "b"], [], ["😀", "\x01"], None):
        for throw in (True, False):
            yield call("partition_name_has_valid_characters", values, throw)


def _alter() -> Iterator[Step]:
    here = "{warehouse}/sales.db/part/ds=p/hr=1"
    same = partition("sales", "part", ["p", "1"], location=here, parameters={"x": "y"}, createTime=4)
    for altered in (
        same,
        partition("sales", "part", ["p", "1"], location="{elsewhere}/moved//"),
        partition("sales", "part", ["p", "1"], location=here, pairs=(("a", "int"),)),
        partition("sales", "part", ["p", "1"], location=here, parameters={"transient_lastDdlTime": "5"}),
        partition("sales", "part", ["p", "1"], location=here, parameters={"transient_lastDdlTime": "0"}),
        partition("sales", "part", ["p", "1"], location=here, parameters={"transient_lastDdlTime": "x"}),
        partition("sales", "part", ["p", "1"], location=""),
        partition("sales", "part", ["p", "1"]),
        partition("sales", "part", ["p", "1"], sd=None),
        partition("sales", "part", ["nope", "1"], location=here),
        partition("sales", "part", ["p"], location=here),
        partition("sales", "part", None, location=here),
        partition("other", "thing", ["p", "1"], location=here),
        partition(None, None, ["p", "1"], location=here),
        None,
    ):
        yield call("alter_partition", "sales", "part", altered)
        yield call("get_partition", "sales", "part", ["p", "1"])
    for tbl_name in ("nosuch", "flat"):
        yield call("alter_partition", "sales", tbl_name, same)
    quiet = EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})
    yield call("alter_partition_with_environment_context", "sales", "part", same, quiet)
    yield call("get_partition", "sales", "part", ["p", "1"])
    task = EnvironmentContext({"STATS_GENERATED": "TASK"})
    yield call("alter_partition_with_environment_context", "sales", "part", same, task)
    yield call("get_partition", "sales", "part", ["p", "1"])
    missing = partition("sales", "part", ["zz", "2"], location="{elsewhere}/x")
    for tbl_name, altered_list in (
        ("part", [same, partition("sales", "part", ["p", "2"], location="{elsewhere}/p2")]),
        ("part", [same, missing]),
        ("part", [missing, partition("sales", "part", ["p"], location="{elsewhere}/x")]),
        ("part", []),
        ("part", None),
        ("nosuch", [same]),
    ):
        yield call("alter_partitions", "sales", tbl_name, altered_list)
    yield call("alter_partitions_with_environment_context", "sales", "part", [same], None)
    yield call("get_partitions", "sales", "part", -1)


def _rename() -> Iterator[Step]:
    yield call("append_partition", "sales", "part", ["r1", "1"])
    for old, new in (
        (["r1", "1"], partition("sales", "part", ["r2", "1"], location="")),
        (["r1", "1"], partition("sales", "part", ["r2", "1"], location="{warehouse}/sales.db/part/ds=r1/hr=1")),
        (["zz", "1"], partition("sales", "part", ["r3", "1"], location="{elsewhere}/x")),
        (["p", "2"], partition("sales", "part", ["r2", "1"], location="{elsewhere}/x")),
        ([], partition("sales", "part", ["r9", "1"], location="{elsewhere}/r9")),
        (["r2"], partition("sales", "part", ["r3", "1"], location="{elsewhere}/x")),
        (["r2", "1"], partition("sales", "part", ["r3"], location="{elsewhere}/x")),
        (["r2", "1"], partition("sales", "part", ["r3", "1"])),
        (["r2", "1"], partition("sales", "part", ["r3", "1"], sd=None)),
        (["r2", "1"], None),
        (["r2", "1"], partition("sales", "part", ["r2", "1"], location="{elsewhere}/x")),
        (["r2", "1"], partition("sales", "part", ["r/4", "=1"], location="{elsewhere}/other")),
    ):
        yield call("rename_partition", "sales", "part", old, new)
        yield call("get_partition_names", "sales", "part", -1)
    yield call("get_partition", "sales", "part", ["r2", "1"])
    yield call("get_partition", "sales", "part", ["r/4", "=1"])
    yield call(
        "rename_partition", "sales", "nosuch", ["r1", "1"], partition("sales", "nosuch", ["r2", "1"], location="")
    )
    yield call("append_partition", "sales", "ext", ["e1", "1"])
    yield call("rename_partition", "sales", "ext", ["e1", "1"], partition("sales", "ext", ["e2", "1"], location=""))
    yield call("get_partition", "sales", "ext", ["e2", "1"])


def _exchange() -> Iterator[Step]:
    yield call("create_table", table("sales", "source", SOME_KEYS))
    yield call("create_table", table("sales", "target", SOME_KEYS))
    yield call("create_table", table("sales", "unlike", SOME_KEYS, pairs=(("a", "int"),)))
    for values in (["x", "1"], ["x", "2"], ["y", "1"], ["z", "1"]):
        yield call("append_partition", "sales", "source", values)
    yield call("append_partition", "sales", "target", ["z", "1"])
    for method in ("exchange_partition", "exchange_partitions"):
        for spec, source, target in (
            ({"ds": "x", "hr": "1"}, "source", "unlike"),
            ({"ds": "nosuch", "hr": "1"}, "source", "target"),
            ({"hr": "1"}, "source", "target"),
            ({}, "source", "target"),
            ({"nokey": "1"}, "source", "target"),
            ({"ds": "z", "hr": "1"}, "source", "target"),
            ({"ds": "x", "hr": "1"}, "source", "nosuch"),
            ({"ds": "x", "hr": "1"}, "nosuch", "target"),
        ):
            yield call(method, spec, "sales", source, "sales", target)
    yield call("exchange_partition", {"ds": "x", "hr": "1"}, "sales", "source", "sales", "target")
    yield call("exchange_partitions", {"ds": "x"}, "sales", "source", "sales", "target")
    yield call("exchange_partitions", {"ds": "y", "hr": ""}, "sales", "source", "sales", "target")
    for tbl_name in ("source", "target"):
        yield call("get_partitions", "sales", tbl_name, -1)


def _drop() -> Iterator[Step]:
    for values in (["p", "2"], ["p", "2"], ["p"], [], None, ["", "3"]):
        yield call("drop_partition", "sales", "part", values, True)
    for tbl_name, name in (
        ("part", "ds=ap/hr=5"),
        ("part", "hr=6/ds=an"),
        ("part", "ds=nope/hr=5"),
        ("part", "ds=nope"),
        ("part", ""),
        ("part", None),
        ("nosuch", "ds=nope/hr=5"),
        ("flat", "ds=nope/hr=5"),
    ):
        yield call("drop_partition_by_name", "sales", tbl_name, name, True)
    yield call("drop_partition_with_environment_context", "sales", "part", ["quiet", "1"], True, None)
    yield call("drop_partition_by_name_with_environment_context", "sales", "part", "ds=env/hr=1", True, None)
    yield call("drop_partition", "sales", "nosuch", ["x", "1"], True)
    name = "ds=2024-01-02/hr=2"
    for request in (
        DropPartitionsRequest("sales", "part", RequestPartsSpec([name]), True, needResult=True),
        DropPartitionsRequest("sales", "part", RequestPartsSpec([name]), True),
        DropPartitionsRequest("sales", "part", RequestPartsSpec([name]), True, True),
        DropPartitionsRequest("sales", "part", RequestPartsSpec([name, "ds=p/hr=1"]), True, True, needResult=False),
        DropPartitionsRequest("sales", "part", RequestPartsSpec(["nonsense"]), True, False),
        DropPartitionsRequest("sales", "part", RequestPartsSpec([]), True),
        DropPartitionsRequest("sales", "nosuch", RequestPartsSpec([name]), True),
    ):
        yield call("drop_partitions_req", request)
    yield call("get_partition_names", "sales", "part", -1)
    yield call("drop_database", "sales", True, True)
