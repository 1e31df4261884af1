"""What a client sends never becomes a table that other readers refuse, nor a row that nobody can read."""

import msgspec
import pytest
from pyiceberg.table.metadata import TableMetadataUtil

from tests.iceberg_rest.conftest import kind_of

TABLE = "namespaces/sales/tables/orders"
MAIN = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1}


def snapshot(**more):
    found = {
        "snapshot-id": 1,
        "sequence-number": 1,
        "timestamp-ms": 4_000_000_000_000,
        "manifest-list": "file:/x/1.avro",
        "summary": {"operation": "append"},
        **more,
    }
    return {"action": "add-snapshot", "snapshot": found}


def field(**more):
    return {"id": 1, "name": "id", "required": True, "type": "long", **more}


def schema(*fields, **more):
    return {"action": "add-schema", "schema": {"type": "struct", "fields": list(fields), **more}}


def spec(**more):
    of = {"source-id": 1, "transform": "bucket[4]", "name": "b", **more}
    return {"action": "add-spec", "spec": {"fields": [of]}}


DEEP_STRUCT = {
    "type": "struct",
    "fields": [field(id=2, name="x", type="double"), field(id=3, name="y", required=False)],
}
STATISTICS = {"snapshot-id": 1, "statistics-path": "x", "file-size-in-bytes": 1}
ODD = [
    snapshot(**{"snapshot-id": 2**63}),
    snapshot(**{"timestamp-ms": 2**70}),
    snapshot(**{"parent-snapshot-id": "1"}),
    snapshot(**{"manifest-list": 5}),
    snapshot(summary=[]),
    snapshot(summary={"operation": "append", "total-records": 5}),
    snapshot(summary={"total-records": "5"}),
    snapshot(summary={}),
    snapshot(summary={"operation": "merge"}),
    schema(field(id=2**31)),
    schema(field(id=-1)),
    schema(field(doc=5)),
    schema(field(required=None)),
    schema(field(required="yes")),
    schema(field(type="fixed[99999999999]")),
    schema(field(type="decimal(٣,٢)")),
    schema(field(type=f"decimal({'9' * 5000},2)")),
    schema(field(type={"type": "list", "element-id": 2, "element": "int"})),
    schema(field(required=False), **{"identifier-field-ids": [1]}),
    schema(field(type="double"), **{"identifier-field-ids": [1]}),
    schema(field(type=DEEP_STRUCT), **{"identifier-field-ids": [2]}),
    schema(field(type=DEEP_STRUCT), **{"identifier-field-ids": [3]}),
    {"action": "add-schema", "schema": {"type": "struct"}},
    {"action": "add-schema", "schema": {"type": "list", "element-id": 1, "element-required": True, "element": "int"}},
    spec(transform="bucket[99999999999]"),
    spec(**{"field-id": 2**31}),
    spec(name="name"),
    {"action": "add-spec", "spec": {"fields": [
        {"source-id": 1, "transform": f"bucket[{each}]", "name": f"b{each}", "field-id": 1000} for each in (4, 5)]}},
    {**MAIN, "min-snapshots-to-keep": 0},
    {**MAIN, "min-snapshots-to-keep": 2**31},
    {**MAIN, "ref-name": "t", "type": "tag", "min-snapshots-to-keep": 1},
    {"action": "set-statistics", "statistics": {"snapshot-id": 1}},
    {"action": "set-statistics", "statistics": STATISTICS},
    {"action": "set-statistics", "statistics": {**STATISTICS, "file-footer-size-in-bytes": 1, "blob-metadata": [{}]}},
    {"action": "set-partition-statistics", "partition-statistics": {"snapshot-id": 1}},
    {"action": "add-encryption-key", "encryption-key": {"key-id": "1"}},
]  # fmt: skip


@pytest.mark.parametrize("update", ODD, ids=str)
def test_an_odd_value_is_refused(rest, update):
    rest.table()
    assert rest.commit("orders", snapshot(**{"snapshot-id": 7, "timestamp-ms": 4_000_000_000_000}))[0] == 200
    before = rest.get(TABLE)
    sent = {**update, "snapshot-id": 7} if update["action"] == "set-snapshot-ref" else update
    answer = rest.commit("orders", sent, *([MAIN] if update["action"] == "add-snapshot" else []))
    assert answer[0] == 400, answer
    assert len(answer[1]["error"]["message"]) < 5000
    assert kind_of(answer)[1] in ("BadRequestException", "ValidationException", "IllegalArgumentException")
    assert rest.get(TABLE) == before
    TableMetadataUtil.parse_obj(before[1]["metadata"])


def test_numbers_of_properties_without_bounds(rest):
    rest.table()
    many = {"action": "set-properties", "updates": {"write.metadata.previous-versions-max": "9" * 5000}}
    assert rest.commit("orders", many)[0] == 200
    assert kind_of(rest.get("namespaces/sales/tables", query={"pageSize": "9" * 5000})) == (400, "BadRequestException")


@pytest.mark.parametrize(
    ("field", "value"),
    [("properties", {"a": 1}), ("location", None), ("schemas", [{"schema-id": 0, "fields": [{"name": 1}]}]),
     ("snapshots", 5), ("schemas", 5), ("partition-specs", 5), ("table-uuid", 5), ("refs", [1])],
)  # fmt: skip
def test_a_registered_file_with_odd_values_makes_no_row(rest, tmp_path, field, value):
    metadata = rest.table()["metadata"]
    rest.send("DELETE", TABLE)
    place = f"{metadata['location']}/metadata/00005-x.metadata.json"
    (tmp_path / place.removeprefix("file:")).write_bytes(msgspec.json.encode({**metadata, field: value}))
    answer = rest.post("namespaces/sales/register", {"name": "orders", "metadata-location": place})
    assert answer[0] == 400, answer
    assert kind_of(rest.get(TABLE)) == (404, "NoSuchTableException")


def test_a_summary_that_another_writer_left_is_no_parameter(rest, tmp_path):
    metadata = rest.table()["metadata"]
    rest.send("DELETE", TABLE)
    place = f"{metadata['location']}/metadata/00005-x.metadata.json"
    newest = snapshot(summary={"operation": "append", "total-records": 5})["snapshot"]
    with_snapshot = {**metadata, "snapshots": [newest], "current-snapshot-id": 1}
    (tmp_path / place.removeprefix("file:")).write_bytes(msgspec.json.encode(with_snapshot))
    assert rest.post("namespaces/sales/register", {"name": "orders", "metadata-location": place})[0] == 200
    assert rest.get(TABLE)[0] == 200


def test_a_writer_whose_clock_is_behind_makes_no_table_older(rest):
    metadata = rest.table()["metadata"]
    late = snapshot(**{"timestamp-ms": metadata["last-updated-ms"] - 300_000})
    status, found = rest.commit("orders", late, MAIN)
    assert status == 200
    log = found["metadata"]["metadata-log"]
    assert found["metadata"]["last-updated-ms"] >= log[-1]["timestamp-ms"]


def test_a_branch_of_a_writer_whose_clock_is_ahead(rest):
    metadata = rest.table()["metadata"]
    ahead_ms = metadata["last-updated-ms"] + 10_000_000
    branch = {**MAIN, "ref-name": "b"}
    assert rest.commit("orders", snapshot(**{"timestamp-ms": ahead_ms}), branch)[0] == 200
    found = rest.commit("orders", {"action": "set-properties", "updates": {"a": "b"}})[1]["metadata"]
    assert found["last-updated-ms"] >= found["metadata-log"][-1]["timestamp-ms"] == ahead_ms


def test_many_removals_of_snapshots_are_one():
    from hms_gateway.iceberg.metadata import _merged

    removals = [{"action": "remove-snapshots", "snapshot-ids": [each]} for each in range(3)]
    merged = list(_merged([*removals, MAIN, removals[0]]))
    assert [each["action"] for each in merged] == ["remove-snapshots", "set-snapshot-ref", "remove-snapshots"]
    assert merged[0]["snapshot-ids"] == [0, 1, 2]


def with_nulls(value):
    """The value with a null in each object."""
    if isinstance(value, dict):
        return {**{key: with_nulls(each) for key, each in value.items()}, "absent": None}
    return [with_nulls(each) for each in value] if isinstance(value, list) else value


def test_a_null_is_an_absent_field_that_java_reads(rest):
    rest.table()
    statistics = {**STATISTICS, "file-footer-size-in-bytes": 1, "blob-metadata": []}
    order = {"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-last"}
    answer = rest.commit(
        "orders",
        {"action": "add-schema", "schema": with_nulls(schema(field(), field(id=9, name="new", doc=None))["schema"])},
        {"action": "add-spec", "spec": with_nulls(spec()["spec"])},
        {"action": "add-sort-order", "sort-order": with_nulls({"fields": [order]})},
        snapshot(**{"parent-snapshot-id": None, "absent": None, "summary": None}),
        {"action": "set-statistics", "statistics": with_nulls(statistics)},
        {"action": "set-partition-statistics", "partition-statistics": with_nulls(STATISTICS)},
    )
    assert answer[0] == 200, answer
    found = answer[1]["metadata"]
    assert ":null" not in msgspec.json.encode({**found, "current-snapshot-id": 1}).decode()
    assert [one["snapshot-id"] for one in found["snapshots"]] == [1]
    version = {
        "version-id": 1, "timestamp-ms": 1, "schema-id": 0, "default-namespace": ["sales"], "summary": {},
        "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark", "absent": None}],
    }  # fmt: skip
    body = {"name": "seen", "schema": with_nulls(schema(field())["schema"]), "view-version": {**version, "x": None}}
    status, made = rest.post("namespaces/sales/views", body)
    assert status == 200, made
    assert ":null" not in msgspec.json.encode(made["metadata"]).decode()


SAME = [
    {"action": "set-location"},
    {"action": "assign-uuid"},
    {"action": "set-current-schema", "schema-id": 0},
    {"action": "set-default-spec", "spec-id": 0},
    {"action": "remove-snapshots", "snapshot-ids": [5]},
    {"action": "remove-snapshot-ref", "ref-name": "gone"},
    {"action": "upgrade-format-version", "format-version": 2},
]


def test_what_changes_nothing_writes_no_file(rest):
    made = rest.table()
    same = {"location": made["metadata"]["location"], "uuid": made["metadata"]["table-uuid"]}
    known = {"action": "add-schema", "schema": made["metadata"]["schemas"][0], "last-column-id": 2}
    assert rest.commit("orders", *({**each, **same} for each in SAME), known) == (200, made)


@pytest.mark.parametrize(("path", "most"), [("tables/orders", 10_000), ("views/seen", 1_000)])
def test_more_updates_than_a_commit_may_have(rest, path, most):
    rest.table()
    body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {}}] * (most + 1)}
    version = {"default-namespace": ["sales"], "summary": {}, "schema-id": 0, "version-id": 1, "representations": []}
    view = {"name": "seen", "schema": schema(field())["schema"], "view-version": version}
    assert rest.post("namespaces/sales/views", view)[0] == 200
    answer = rest.post(f"namespaces/sales/{path}", body)
    assert kind_of(answer) == (400, "BadRequestException")
    assert f"more than {most}" in answer[1]["error"]["message"]
    assert rest.post(f"namespaces/sales/{path}", {**body, "updates": body["updates"][1:]})[0] == 200
