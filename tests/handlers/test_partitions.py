"""The IDL's methods that read partitions, through the binding that the server uses."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.catalog.partitions.reads import Partitions
from hms_gateway.catalog.partitions.specs import ProjectedPartitions, Projection
from hms_gateway.rpc.binding import bind
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import (
    METHODS,
    FieldSchema,
    GetPartitionNamesPsRequest,
    GetPartitionRequest,
    GetPartitionsByFilterRequest,
    GetPartitionsByNamesRequest,
    GetPartitionsFilterSpec,
    GetPartitionsPsWithAuthRequest,
    GetPartitionsRequest,
    GetProjectionsSpec,
    MetaException,
    NoSuchObjectException,
    Partition,
    PartitionFilterMode,
    PartitionsByExprRequest,
    PartitionsRequest,
    PartitionsResponse,
    PartitionValuesRequest,
    ThriftException,
)
from hms_gateway.rpc.wire import make_codecs
from hms_gateway.runtime.limits import Limits
from tests.metastore.partition_world import SALES, World, partition_world, structs, values_of

OLD, NEW = Call("nobody"), Call("nobody", dialect=Dialect.HIVE_4)
EVERY = [["a", "1"], ["a", "2"], ["b", "1"]]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with partition_world(tmp_path) as opened:
        opened.calls.add_to(SALES, [opened.partition(*values, parameters={"k": "v"}) for values in EVERY])
        yield opened


@pytest.fixture
def handlers(world: World) -> Partitions:
    return world.calls.reads


def refusal(call: Any) -> ThriftException:
    with pytest.raises(ThriftException) as caught:
        call()
    return caught.value


def test_every_method_of_partitions_has_a_handler(world: World) -> None:
    handlers = world.calls.handlers
    elsewhere = (
        "statistics",
        "ForEvent",
        "add_dynamic_partitions",
        "aggr_stats",
        "list_partition_names",
        "count_partition_groups",
    )
    ours = {
        name: method
        for name, method in METHODS.items()
        if ("partition" in name.lower() or "part_" in name) and not any(word in name for word in elsewhere)
    }
    assert set(bind(handlers, ours)) == set(ours)
    assert len(ours) == 54


@pytest.mark.parametrize("db_name", ["shop", "@hive#shop", " SHOP "])
def test_databases_with_and_without_catalog(handlers: Partitions, db_name: str) -> None:
    assert handlers.get_partition(OLD, db_name, "sales", ["a", "1"]).values == ["a", "1"]
    assert values_of(handlers.get_partitions(OLD, db_name, "sales", -1)) == EVERY
    assert handlers.get_partition_names_ps(OLD, db_name, "sales", ["a"], -1) == ["ds=a/hr=1", "ds=a/hr=2"]


def test_other_catalogs_and_broken_markers(handlers: Partitions) -> None:
    error = refusal(lambda: handlers.get_partition(OLD, "@lake#shop", "sales", ["a", "1"]))
    assert isinstance(error, NoSuchObjectException)
    assert refusal(lambda: handlers.get_partitions(OLD, "@shop", "sales", -1)) == MetaException(
        "@shop is prepended with the catalog marker but does not appear to have a catalog name in it"
    )


def test_texts_show_plain_names(handlers: Partitions) -> None:
    error = refusal(lambda: handlers.get_partitions(NEW, "@hive#Shop", "Nothing", -1))
    assert error == NoSuchObjectException("Shop.Nothing table not found")


def test_one_partition(handlers: Partitions) -> None:
    expected = handlers.get_partition(OLD, "shop", "sales", ["a", "1"])
    assert handlers.get_partition_with_auth(OLD, "shop", "sales", ["a", "1"], "nobody", ["none"]) == expected
    assert handlers.get_partition_by_name(OLD, "shop", "sales", "ds=a/hr=1") == expected
    request = GetPartitionRequest(catName="hive", dbName="shop", tblName="sales", partVals=["a", "1"])
    newer = handlers.get_partition(NEW, "shop", "sales", ["a", "1"])
    assert handlers.get_partition_req(NEW, request).partition == newer
    assert expected.privileges is None


def test_many_partitions(handlers: Partitions) -> None:
    assert values_of(handlers.get_partitions_with_auth(OLD, "shop", "sales", 2, "nobody", [])) == EVERY[:2]
    request = PartitionsRequest(dbName="shop", tblName="sales")
    assert values_of(handlers.get_partitions_req(NEW, request).partitions or []) == EVERY
    (spec,) = handlers.get_partitions_pspec(OLD, "shop", "sales", 1)
    assert spec.partitionList is not None
    assert values_of(spec.partitionList.partitions or []) == EVERY[:1]


@pytest.mark.parametrize(
    ("call", "max_parts", "count"), [(OLD, -1, 3), (OLD, 0, 3), (OLD, 2, 2), (NEW, -1, 3), (NEW, 0, 0), (NEW, 2, 2)]
)
def test_names_follow_the_dialect(handlers: Partitions, call: Call, max_parts: int, count: int) -> None:
    assert len(handlers.get_partition_names(call, "shop", "sales", max_parts)) == count


def test_names_by_request(handlers: Partitions) -> None:
    request = PartitionsRequest(dbName="shop", tblName="sales", maxParts=1)
    assert handlers.fetch_partition_names_req(NEW, request) == ["ds=a/hr=1"]


def test_values(handlers: Partitions) -> None:
    request = PartitionValuesRequest(dbName="shop", tblName="sales", partitionKeys=[FieldSchema("hr")])
    rows = handlers.get_partition_values(NEW, request).partitionValues or []
    assert [row.row for row in rows] == [["1"], ["2"]]


def test_partial_specs_as_spark_sends_them(handlers: Partitions) -> None:
    found = handlers.get_partitions_ps_with_auth(OLD, "shop", "sales", ["", ""], -1, "root", ["root"])
    assert values_of(found) == EVERY
    assert values_of(handlers.get_partitions_ps(OLD, "shop", "sales", ["", "1"], -1)) == [["a", "1"], ["b", "1"]]
    assert handlers.get_partition_names_ps(OLD, "shop", "sales", ["a", ""], -1) == ["ds=a/hr=1", "ds=a/hr=2"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, EVERY),
        ({"partVals": ["b"]}, EVERY[2:]),
        ({"partNames": ["ds=b/hr=1"]}, EVERY[2:]),
        ({"maxParts": 1}, EVERY[:1]),
    ],
)
def test_partial_specs_by_request(handlers: Partitions, fields: dict[str, Any], expected: list[list[str]]) -> None:
    request = GetPartitionsPsWithAuthRequest(dbName="shop", tblName="sales", **fields)
    assert values_of(handlers.get_partitions_ps_with_auth_req(NEW, request).partitions or []) == expected


def test_names_of_partial_specs_by_request(handlers: Partitions) -> None:
    request = GetPartitionNamesPsRequest(dbName="shop", tblName="sales")
    assert len(handlers.get_partition_names_ps_req(NEW, request).names or []) == 3
    request.partValues = ["b"]
    assert handlers.get_partition_names_ps_req(NEW, request).names == ["ds=b/hr=1"]


def test_filters(handlers: Partitions) -> None:
    text = "ds = 'a' and hr = 2"
    assert values_of(handlers.get_partitions_by_filter(OLD, "shop", "sales", text, -1)) == [["a", "2"]]
    assert handlers.get_num_partitions_by_filter(OLD, "shop", "sales", text) == 1
    (spec,) = handlers.get_part_specs_by_filter(OLD, "shop", "sales", text, -1)
    assert spec.partitionList is not None
    assert values_of(spec.partitionList.partitions or []) == [["a", "2"]]
    request = GetPartitionsByFilterRequest(dbName="shop", tblName="sales", filter=text)
    assert values_of(handlers.get_partitions_by_filter_req(NEW, request)) == [["a", "2"]]


@pytest.mark.parametrize(("expression", "count", "is_unsure"), [(b"\xac\xed", 3, True), (b"hr = 1", 2, False)])
def test_expressions(handlers: Partitions, expression: bytes, count: int, is_unsure: bool) -> None:
    request = PartitionsByExprRequest(dbName="shop", tblName="sales", expr=expression)
    result = handlers.get_partitions_by_expr(OLD, request)
    assert (len(values_of(result.partitions or [])), result.hasUnknownPartitions) == (count, is_unsure)
    specs = handlers.get_partitions_spec_by_expr(NEW, request)
    assert specs.hasUnknownPartitions is is_unsure
    (spec,) = specs.partitionsSpec or []
    assert spec.partitionList is not None
    assert len(values_of(spec.partitionList.partitions or [])) == count
    assert len(handlers.get_partition_names_req(NEW, request)) == count


def test_by_names(handlers: Partitions) -> None:
    names = ["ds=b/hr=1", "ds=unknown/hr=1"]
    assert values_of(handlers.get_partitions_by_names(OLD, "shop", "sales", names)) == [["b", "1"]]
    request = GetPartitionsByNamesRequest(db_name="@hive#shop", tbl_name="sales", names=names)
    assert values_of(handlers.get_partitions_by_names_req(NEW, request).partitions or []) == [["b", "1"]]


def test_requests_that_leave_parts_out(handlers: Partitions) -> None:
    request = PartitionsRequest(
        dbName="shop", tblName="sales", skipColumnSchemaForPartition=True, excludeParamKeyPattern="transient%"
    )
    found: Any = handlers.get_partitions_req(NEW, request).partitions
    (chunk,) = found.struct_chunks()
    assert [(one.sd.cols, one.parameters) for one in chunk] == [(None, {"k": "v"})] * 3
    found.close()


def test_a_list_without_columns_is_that_list_with_each_partition_reduced(handlers: Partitions) -> None:
    request = PartitionsRequest(dbName="shop", tblName="sales", skipColumnSchemaForPartition=True)
    for read in (lambda found: [one for chunk in found.struct_chunks() for one in chunk], as_structs_of_tjson):
        found: Any = handlers.get_partitions_req(NEW, request).partitions
        assert not isinstance(found, ProjectedPartitions), "it makes an object of every partition"
        whole: Any = handlers.get_partitions(NEW, "shop", "sales", -1)
        reduced = [Projection(skips_columns=True).apply(one) for chunk in whole.struct_chunks() for one in chunk]
        assert [one.sd.cols for one in reduced] == [None] * 3
        assert read(found) == reduced


def as_structs_of_tjson(found: Any) -> list[Partition]:
    codec = make_codecs(Limits()).tjson
    text = b"".join((b'["rec",%d,' % len(found), b",".join(found.tjson_chunks()), b"]"))
    result: Any = codec.decode(PartitionsResponse, b'{"1":{"lst":%b}}' % text)
    partitions: list[Partition] = result.partitions
    return partitions


def test_projected_specs(handlers: Partitions) -> None:
    request = GetPartitionsRequest(
        dbName="shop",
        tblName="sales",
        projectionSpec=GetProjectionsSpec(fieldList=["values"]),
        filterSpec=GetPartitionsFilterSpec(filterMode=PartitionFilterMode.BY_EXPR, filters=["hr = 2"]),
    )
    (spec,) = handlers.get_partitions_with_specs(NEW, request).partitionSpec or []
    assert spec.partitionList is not None
    found: Any = spec.partitionList.partitions
    assert b"".join(found.tjson_chunks()) == b'{"1":{"lst":["str",2,"a","2"]}}'
    found.close()


@pytest.mark.parametrize(
    ("fields", "unknown"),
    [
        (["nothing"], "nothing"),
        ([""], ""),
        (["values", "bad", "worse"], "bad, worse"),
        (["sd.nothing"], "sd.nothing"),
        (["values.of"], "values.of"),
        (["sd."], "sd."),
        (["parameters.a"], "parameters.a"),
    ],
)
def test_unknown_fields_are_refused(handlers: Partitions, fields: list[str], unknown: str) -> None:
    request = GetPartitionsRequest(dbName="shop", tblName="sales", projectionSpec=GetProjectionsSpec(fields))
    error = refusal(lambda: handlers.get_partitions_with_specs(NEW, request))
    assert error == MetaException(f"Invalid partition fields in the projection spec[{unknown}]")


def test_fields_of_every_depth_are_known(handlers: Partitions) -> None:
    fields = ["dbName", "sd", "sd.serdeInfo.parameters", "sd.cols.name", "sd.sortCols.col", "privileges.userPrivileges"]
    request = GetPartitionsRequest(dbName="shop", tblName="sales", projectionSpec=GetProjectionsSpec(fields))
    assert handlers.get_partitions_with_specs(NEW, request).partitionSpec


@pytest.mark.parametrize(
    ("name", "values", "spec"),
    [
        ("ds=a%2Fb/hr=1", ["a/b", "1"], {"ds": "a/b", "hr": "1"}),
        ("", [], {}),
        ("nonsense", [], {}),
        ("a=1/a=2", ["2"], {"a": "2"}),
        ("DS=a=b/hr=", ["b"], {"DS=a": "b"}),
    ],
)
def test_names_taken_apart(handlers: Partitions, name: str, values: list[str], spec: dict[str, str]) -> None:
    assert handlers.partition_name_to_vals(OLD, name) == values
    assert handlers.partition_name_to_spec(OLD, name) == spec


def test_no_name_to_take_apart(handlers: Partitions) -> None:
    nothing: Any = None
    assert isinstance(refusal(lambda: handlers.partition_name_to_vals(OLD, nothing)), MetaException)
    assert isinstance(refusal(lambda: handlers.partition_name_to_spec(OLD, nothing)), MetaException)


def test_valid_characters(world: World) -> None:
    assert world.calls.reads.partition_name_has_valid_characters(OLD, ["anything /"], True)


LISTS: dict[str, Any] = {
    "get_partitions": lambda handlers: handlers.get_partitions(OLD, "shop", "sales", -1),
    "get_partitions_req": lambda handlers: handlers.get_partitions_req(
        NEW, PartitionsRequest(dbName="shop", tblName="sales", includeParamKeyPattern="k")
    ),
    "get_partitions_pspec": lambda handlers: handlers.get_partitions_pspec(OLD, "shop", "sales", -1),
    "get_partitions_by_expr": lambda handlers: handlers.get_partitions_by_expr(
        OLD, PartitionsByExprRequest(dbName="shop", tblName="sales", expr=b"?")
    ),
    "get_partitions_by_names_req": lambda handlers: handlers.get_partitions_by_names_req(
        NEW, GetPartitionsByNamesRequest(db_name="shop", tbl_name="sales", names=["ds=a/hr=1", "ds=b/hr=1"])
    ),
    "get_partitions_with_specs": lambda handlers: handlers.get_partitions_with_specs(
        NEW,
        GetPartitionsRequest(
            dbName="shop", tblName="sales", projectionSpec=GetProjectionsSpec(fieldList=["values", "sd.location"])
        ),
    ),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_inside_answers_are_encoded_alike_by_every_protocol(handlers: Partitions, name: str) -> None:
    codecs = make_codecs(Limits())
    result: Any = METHODS[name].result
    decoded = []
    for codec in (codecs.tjson, codecs.binary, codecs.compact):
        encoded = codec.encode(result(success=LISTS[name](handlers)))
        payload = encoded if isinstance(encoded, bytes) else b"".join(encoded)
        decoded.append(codec.decode(result, payload))
    assert decoded[0] == decoded[1] == decoded[2]
    assert "file:" in str(decoded[0])


def every_reading_call(handlers: Partitions, call: Call, db_name: str) -> Iterator[Any]:
    """Partitions as each method that lists them answers, all of them read."""
    yield [handlers.get_partition(call, db_name, "sales", ["a", "1"])]
    yield [handlers.get_partition_by_name(call, db_name, "sales", "ds=a/hr=1")]
    yield structs(handlers.get_partitions(call, db_name, "sales", -1))
    yield structs(handlers.get_partitions_ps(call, db_name, "sales", ["a"], -1))
    yield structs(handlers.get_partitions_by_filter(call, db_name, "sales", "hr = 1", -1))
    yield structs(handlers.get_partitions_by_names(call, db_name, "sales", ["ds=a/hr=1"]))
    spec = handlers.get_partitions_pspec(call, db_name, "sales", -1)[0]
    yield [spec]
    yield structs(spec.partitionList.partitions)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "db_name", "catalog"), [(OLD, "shop", None), (OLD, "@hive#shop", "hive"), (NEW, "shop", "hive")]
)
def test_newer_callers_see_the_catalog_of_partitions(
    handlers: Partitions, call: Call, db_name: str, catalog: str | None
) -> None:
    for found in every_reading_call(handlers, call, db_name):
        assert {one.catName for one in found} == {catalog}


@pytest.mark.parametrize(("call", "has_it"), [(OLD, False), (NEW, True)])
def test_the_catalog_is_in_tjson_too(handlers: Partitions, call: Call, has_it: bool) -> None:
    found = handlers.get_partitions(call, "shop", "sales", -1)
    text = b",".join(found.tjson_chunks())  # type: ignore[union-attr]
    assert text.count(b'"9":{"str":"hive"}') == (len(EVERY) if has_it else 0)
    json.loads(b"[" + text + b"]")


def test_a_request_that_names_the_catalog_is_answered_with_it(handlers: Partitions) -> None:
    for cat_name, shown in ((None, None), ("hive", "hive")):
        request = PartitionsRequest(catName=cat_name, dbName="shop", tblName="sales")
        found = handlers.get_partitions_req(OLD, request).partitions
        assert {one.catName for one in structs(found)} == {shown}  # type: ignore[arg-type]
