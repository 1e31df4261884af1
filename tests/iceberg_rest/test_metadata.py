"""Commits of tables as values: requirements, updates, and what every reader of Iceberg relies on."""

import copy
import tracemalloc

import pytest

from hms_gateway.iceberg import metadata
from hms_gateway.iceberg.errors import IcebergError
from hms_gateway.iceberg.metadata import TableDraft, committed, new_table, normalized
from hms_gateway.iceberg.schemas import ids_by_name
from tests.iceberg_rest.conftest import SCHEMA

NOW = 1_700_000_000_000
PLACE = "file:/srv/t"


@pytest.fixture
def base():
    return new_table({"schema": SCHEMA}, PLACE, NOW)


def snapshot(number, sequence=1, parent=None, at_ms=NOW, **more):
    found = {
        "snapshot-id": number,
        "sequence-number": sequence,
        "timestamp-ms": at_ms,
        "manifest-list": f"{PLACE}/{number}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
        **more,
    }
    return found if parent is None else {**found, "parent-snapshot-id": parent}


def appended(number, sequence=1, parent=None, **more):
    return [
        {"action": "add-snapshot", "snapshot": snapshot(number, sequence, parent, **more)},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number},
    ]


def after(base, *updates, at_ms=NOW + 1000):
    return committed(base, (), updates, at_ms, f"{PLACE}/metadata/00000.json")


def test_a_commit_leaves_its_base_as_it_was(base):
    before = copy.deepcopy(base)
    schema = {**SCHEMA, "fields": [*SCHEMA["fields"], {"id": 3, "name": "x", "required": False, "type": "int"}]}
    after(
        base,
        *appended(1),
        {"action": "add-schema", "schema": schema},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "set-properties", "updates": {"a": "b"}},
        {"action": "remove-snapshots", "snapshot-ids": [1]},
    )
    assert base == before


def test_new_tables_have_ids_from_one_on_level_by_level():
    nested = {
        "type": "struct",
        "fields": [
            {"id": 70, "name": "m", "required": False, "type": {
                "type": "map", "key-id": 71, "key": "string", "value-id": 72, "value-required": False, "value": {
                    "type": "struct", "fields": [{"id": 73, "name": "deep", "required": False, "type": "int"}]}}},
            {"id": 90, "name": "last", "required": True, "type": "long"},
        ],
        "identifier-field-ids": [90],
    }  # fmt: skip
    spec = {"fields": [{"source-id": 90, "transform": "bucket[4]", "name": "b", "field-id": 1234}]}
    order = {"fields": [{"source-id": 90, "transform": "identity", "direction": "asc", "null-order": "nulls-last"}]}
    table = new_table({"schema": nested, "partition-spec": spec, "write-order": order}, PLACE, NOW)
    schema = table["schemas"][0]
    assert [field["id"] for field in schema["fields"]] == [1, 2]
    assert (schema["fields"][0]["type"]["key-id"], schema["fields"][0]["type"]["value-id"]) == (3, 4)
    assert schema["fields"][0]["type"]["value"]["fields"][0]["id"] == 5
    assert schema["identifier-field-ids"] == [2]
    assert table["last-column-id"] == 5
    field = {"source-id": 2, "transform": "bucket[4]", "name": "b", "field-id": 1000}
    assert table["partition-specs"] == [{"spec-id": 0, "fields": [field]}]
    assert (table["default-sort-order-id"], table["sort-orders"][0]["fields"][0]["source-id"]) == (1, 2)


REQUIREMENTS = [
    {"type": "assert-create"},
    {"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000000"},
    {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 2},
    {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
    {"type": "assert-ref-snapshot-id", "ref": "gone", "snapshot-id": 1},
    {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 9},
    {"type": "assert-current-schema-id", "current-schema-id": 9},
    {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 9},
    {"type": "assert-default-spec-id", "default-spec-id": 9},
    {"type": "assert-default-sort-order-id", "default-sort-order-id": 9},
]


def nested(names, leaf):
    """A struct in a struct for each of the names around the fields of `leaf`."""
    kind = {"type": "struct", "fields": leaf}
    for number, name in enumerate(names, 1):
        kind = {"type": "struct", "fields": [{"id": number, "name": name, "required": False, "type": kind}]}
    return kind


def column(number, name, kind="string"):
    return {"id": number, "name": name, "required": False, "type": kind}


def list_of(number, *fields):
    """A list of structs."""
    return {"type": "list", "element-id": number, "element-required": False, "element": nested([], list(fields))}


def identity(number, name):
    return {"fields": [{"source-id": number, "name": name, "transform": "identity"}]}


def test_a_partition_has_the_name_of_no_other_column():
    homes, jobs = list_of(3, column(4, "city")), nested([], [column(6, "x")])
    prices = {"type": "map", "key-id": 8, "key": "int", "value-id": 9, "value-required": False}
    prices["value"] = nested([], [column(10, "value")])
    columns = [column(1, "city"), column(2, "homes", homes), column(5, "work", jobs), column(7, "prices", prices)]
    schema = nested([], columns)
    table = new_table({"schema": schema, "partition-spec": identity(1, "city")}, PLACE, NOW)
    assert table["partition-specs"][0]["fields"][0]["name"] == "city"
    short = ("homes.city", "prices.value")
    for name in ("homes", "homes.element", "homes.element.city", "work.x", "prices.key", "prices.value.value", *short):
        with pytest.raises(IcebergError, match=f"{name} is the name of another column"):
            new_table({"schema": schema, "partition-spec": identity(1, name)}, PLACE, NOW)
    with pytest.raises(IcebergError, match="longer than 1000 characters"):
        new_table({"schema": schema, "partition-spec": identity(1, "x" * 1001)}, PLACE, NOW)


def test_a_short_name_is_that_of_the_only_column_that_has_it():
    """Readers take different ones of two; a full name is always that of its column."""
    both = [column(1, "a", list_of(2, column(3, "b.c"))), column(4, "a.b", list_of(5, column(6, "c")))]
    full = nested([], [*both, column(7, "a.b.c")])
    for source, schema in ((3, nested([], both)), (6, nested([], both)), (3, full), (6, full)):
        with pytest.raises(IcebergError, match=r"a\.b\.c is the name of another column"):
            new_table({"schema": schema, "partition-spec": identity(source, "a.b.c")}, PLACE, NOW)
    for source, schema, name in ((7, full, "a.b.c"), (3, nested([], both[:1]), "a.b.c"), (6, full, "a.b.element.c")):
        new_table({"schema": schema, "partition-spec": identity(source, name)}, PLACE, NOW)


def test_a_new_column_has_the_name_of_no_partition():
    """Check earlier specs as well: Java's readers make all of them with the current schema."""
    kept = column(2, "e")
    base = new_table({"schema": nested([], [column(1, "d"), kept]), "partition-spec": identity(1, "d")}, PLACE, NOW)

    def with_columns(before, *columns):
        schema = {"action": "add-schema", "schema": nested([], list(columns))}
        return after(before, schema, {"action": "set-current-schema", "schema-id": -1})

    spec = {"action": "add-spec", "spec": {"fields": []}}
    unpartitioned = after(base, spec, {"action": "set-default-spec", "spec-id": -1})
    dropped = with_columns(unpartitioned, kept)
    with pytest.raises(IcebergError, match="d is the name of another column"):
        with_columns(dropped, kept, column(3, "d"))
    assert with_columns(dropped, column(1, "d"), kept)["current-schema-id"] == 0
    free = after(dropped, {"action": "remove-partition-specs", "spec-ids": [0]})
    again = with_columns(free, kept, column(3, "d"))
    # Another writer has left such a table.
    left = {**again, "partition-specs": [*base["partition-specs"], *again["partition-specs"]]}
    assert after(left, *appended(1))["current-snapshot-id"] == 1


def test_the_short_name_of_a_long_one_is_known():
    long = "x" * 990
    schema = nested([], [column(1, "city"), column(2, long, list_of(3, column(4, "longname")))])
    with pytest.raises(IcebergError, match="is the name of another column"):
        new_table({"schema": schema, "partition-spec": identity(1, f"{long}.longname")}, PLACE, NOW)


def test_no_two_columns_have_one_full_name(base):
    schema = nested([], [column(1, "a.b"), column(2, "a", nested([], [column(3, "b")]))])
    for change in (
        lambda: new_table({"schema": schema}, PLACE, NOW),
        lambda: after(base, {"action": "add-schema", "schema": schema}),
    ):
        with pytest.raises(IcebergError, match=r"schema: two fields have the name a\.b"):
            change()


def test_long_names_around_many_fields_take_no_memory():
    """All full names of its fields would have 4 MB, and are 0.04 MB of text."""
    schema = nested(["x" * 1000] * 40, [column(number, f"f{number}") for number in range(100, 200)])
    tracemalloc.start()
    try:
        new_table({"schema": schema}, PLACE, NOW)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1_000_000


def test_the_columns_are_looked_up_once_for_many_updates(base, monkeypatch):
    looked_up = []
    monkeypatch.setattr(metadata, "ids_by_name", lambda schema: looked_up.append(schema) or ids_by_name(schema))
    order = {"direction": "asc", "null-order": "nulls-last", "source-id": 1}
    wider = {**SCHEMA, "fields": [*SCHEMA["fields"], column(3, "x")]}
    updates = [
        {"action": "add-sort-order", "sort-order": {"fields": [{**order, "transform": f"bucket[{each}]"}]}}
        for each in range(1, 50)
    ]
    of_new_column = {"action": "add-spec", "spec": identity(3, "x")}
    with pytest.raises(IcebergError, match="no column of the current schema has the id 3"):
        after(base, *updates, of_new_column)
    assert len(looked_up) == 1
    changed = [{"action": "add-schema", "schema": wider}, {"action": "set-current-schema", "schema-id": -1}]
    assert len(after(base, *updates, *changed, of_new_column)["partition-specs"]) == 2
    assert len(looked_up) == 3


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda each: each["type"])
def test_a_requirement_that_does_not_hold_is_a_conflict(base, requirement):
    table = after(base, *appended(1))
    with pytest.raises(IcebergError, match="Requirement failed: ") as caught:
        committed(table, [requirement], [], NOW, PLACE)
    assert caught.value.status == 409


def test_requirements_that_hold(base):
    table = after(base, *appended(1))
    held = [
        {"type": "assert-table-uuid", "uuid": table["table-uuid"].upper()},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1},
        {"type": "assert-ref-snapshot-id", "ref": "gone", "snapshot-id": None},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 2},
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999},
    ]
    assert committed(table, held, [], NOW, PLACE) is None


def test_a_schema_without_its_last_column(base):
    """Java's clients send the highest id of the new schema; the table's stays, so that no id is given away twice."""
    schema = {"type": "struct", "fields": SCHEMA["fields"][:1]}
    updates = [
        {"action": "add-schema", "schema": schema, "last-column-id": 1},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    found = committed(base, [], updates, NOW, PLACE)
    assert (found["last-column-id"], found["current-schema-id"]) == (base["last-column-id"], 1)


REFUSED = [
    {"action": "assign-uuid", "uuid": "11111111-1111-1111-1111-111111111111"},
    {"action": "upgrade-format-version", "format-version": 1},
    {"action": "upgrade-format-version", "format-version": 4},
    {"action": "set-current-schema", "schema-id": 5},
    {"action": "set-current-schema", "schema-id": -1},
    {"action": "add-schema", "schema": {**SCHEMA, "identifier-field-ids": [9]}},
    {"action": "add-schema", "schema": {"type": "list"}},
    {"action": "add-schema", "schema": {"type": "struct", "fields": [*SCHEMA["fields"], *SCHEMA["fields"]]}},
    {"action": "add-spec", "spec": {"fields": [{"source-id": 9, "transform": "identity", "name": "x"}]}},
    {"action": "add-spec", "spec": {"fields": [{"source-id": 1, "transform": "weekly", "name": "x"}]}},
    {"action": "add-spec", "spec": {"fields": [{"source-id": 1, "transform": "identity", "name": "x"}] * 2}},
    {"action": "set-default-spec", "spec-id": 3},
    {"action": "add-sort-order", "sort-order": {"fields": [{"source-id": 1, "transform": "identity"}]}},
    {"action": "set-default-sort-order", "sort-order-id": 3},
    {"action": "add-snapshot", "snapshot": snapshot(1)},
    {"action": "add-snapshot", "snapshot": snapshot(2, 2, 1, NOW - 70_000)},
    {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 5},
    {"action": "set-snapshot-ref", "ref-name": "main", "type": "tag", "snapshot-id": 1},
    {"action": "remove-schemas", "schema-ids": [0]},
    {"action": "remove-partition-specs", "spec-ids": [0]},
    {"action": "set-location"},
    {"action": "no-action"},
    {},
]


@pytest.mark.parametrize("update", REFUSED, ids=lambda each: each.get("action", "none"))
def test_an_update_that_does_not_apply_is_refused(base, update):
    table = after(base, *appended(1))
    with pytest.raises(IcebergError) as caught:
        after(table, update)
    assert caught.value.status == 400


def test_a_snapshot_with_an_old_sequence_number_is_a_conflict(base):
    table = after(base, *appended(1, 1))
    with pytest.raises(IcebergError, match="older than last sequence number 1") as caught:
        after(table, *appended(2, 1, 1))
    assert caught.value.status == 409


@pytest.mark.parametrize("kind", ["decimal(39,2)", "decimal(4,5)", "money", "timestamp_ns", "fixed[-1]", "geometry"])
def test_a_type_that_the_format_version_does_not_have(base, kind):
    schema = {"type": "struct", "fields": [{"id": 1, "name": "x", "required": False, "type": kind}]}
    with pytest.raises(IcebergError, match="schema: "):
        after(base, {"action": "add-schema", "schema": schema})


def test_equal_schemas_specs_and_orders_are_kept_once(base):
    spec = {"action": "add-spec", "spec": {"fields": [{"source-id": 1, "transform": "identity", "name": "p"}]}}
    table = after(base, {"action": "add-schema", "schema": base["schemas"][0]}, spec, spec)
    assert len(table["schemas"]) == 1
    assert [one["spec-id"] for one in table["partition-specs"]] == [0, 1]
    assert table["last-partition-id"] == 1000


def test_the_log_of_snapshots_has_what_was_current_between_commits(base):
    both = after(base, *appended(1, 1), *appended(2, 2, 1))
    assert [entry["snapshot-id"] for entry in both["snapshot-log"]] == [2]
    one_by_one = after(after(base, *appended(1, 1)), *appended(2, 2, 1))
    assert [entry["snapshot-id"] for entry in one_by_one["snapshot-log"]] == [1, 2]
    left = after(one_by_one, {"action": "remove-snapshots", "snapshot-ids": [1]})
    assert [entry["snapshot-id"] for entry in left["snapshot-log"]] == [2]


def test_a_table_is_never_older_than_its_newest_snapshot(base):
    ahead = after(base, *appended(1, 1, at_ms=NOW + 10_000_000))
    assert after(ahead, {"action": "set-properties", "updates": {"a": "b"}})["last-updated-ms"] == NOW + 10_000_000


def test_removed_snapshots_take_their_branches_and_statistics(base):
    statistics = {
        "snapshot-id": 1,
        "statistics-path": "x",
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }
    table = after(base, *appended(1, 1), {"action": "set-statistics", "statistics": statistics})
    tagged = after(table, {"action": "set-snapshot-ref", "ref-name": "t", "type": "tag", "snapshot-id": 1})
    left = after(tagged, {"action": "remove-snapshots", "snapshot-ids": [1]})
    assert (left["refs"], left["statistics"], left["current-snapshot-id"]) == ({}, [], -1)


def test_row_lineage_of_version_three(base):
    upgrade = {"action": "upgrade-format-version", "format-version": 3}
    table = after(base, upgrade, *appended(1, 1, **{"first-row-id": 0, "added-rows": 5}))
    assert table["next-row-id"] == 5
    with pytest.raises(IcebergError, match="first-row-id is behind") as caught:
        after(table, *appended(2, 2, 1, **{"first-row-id": 4, "added-rows": 1}))
    assert caught.value.status == 409
    with pytest.raises(IcebergError, match="first-row-id is missing"):
        after(table, *appended(2, 2, 1))


def test_the_log_of_files_is_bounded(base):
    table = after(base, {"action": "set-properties", "updates": {"write.metadata.previous-versions-max": "2"}})
    for number in range(4):
        table = committed(table, (), [{"action": "set-location", "location": f"{PLACE}{number}"}], NOW, f"f{number}")
    assert [one["metadata-file"] for one in table["metadata-log"]] == ["f2", "f3"]


def test_metadata_of_version_one_is_read_and_written():
    old = {
        "format-version": 1, "table-uuid": "x", "location": PLACE, "last-updated-ms": NOW, "last-column-id": 2,
        "schema": SCHEMA, "partition-spec": [{"source-id": 1, "name": "id", "transform": "identity"}],
    }  # fmt: skip
    table = after(normalized(old), {"action": "set-properties", "updates": {"a": "b"}})
    assert table["partition-specs"] == [
        {"spec-id": 0, "fields": [{"source-id": 1, "name": "id", "transform": "identity", "field-id": 1000}]}
    ]
    assert (table["schema"], table["partition-spec"]) == (table["schemas"][0], table["partition-specs"][0]["fields"])


@pytest.mark.parametrize("value", [{}, {"format-version": 9}, {"format-version": "2"}, [], None])
def test_what_is_no_metadata_of_a_table(value):
    with pytest.raises(IcebergError, match="the metadata file"):
        normalized(value)


def test_a_table_needs_a_schema_and_a_place():
    draft = TableDraft(None, NOW)
    with pytest.raises(IcebergError, match="location"):
        draft.built(None)
    draft.apply({"action": "set-location", "location": PLACE})
    with pytest.raises(IcebergError, match="schema"):
        draft.built(None)
