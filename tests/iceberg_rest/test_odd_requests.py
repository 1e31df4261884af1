"""Each field of each request with values of other kinds: refused or taken, and never a failure of the server."""

import random

import pytest

from tests.iceberg_rest.conftest import SCHEMA

ODD = [None, 5, -1, 2**63, 1.5, "x", "", [], {}, [1], {"a": 1}, True, "\0", [[]], [None]]
VERSION = {
    "version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {"a": "b"}, "default-namespace": ["sales"],
    "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
}  # fmt: skip
NESTED = {"type": "map", "key-id": 7, "key": "string", "value-id": 8, "value-required": False, "value": "int"}
ORDER = {"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}
SNAPSHOT = {
    "snapshot-id": 5, "sequence-number": 1, "timestamp-ms": 4_000_000_000_000, "manifest-list": "x",
    "summary": {"operation": "append"}, "schema-id": 0,
}  # fmt: skip
UPDATES = [
    {"action": "add-schema", "schema": {"type": "struct", "fields": [
        {"id": 1, "name": "id", "required": True, "type": NESTED}]}, "last-column-id": 9},
    {"action": "add-spec", "spec": {"fields": [{"source-id": 1, "transform": "void", "name": "z", "field-id": 1000}]}},
    {"action": "add-sort-order", "sort-order": {"fields": [ORDER]}},
    {"action": "add-snapshot", "snapshot": SNAPSHOT},
    {"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": 5, "max-ref-age-ms": 5},
    {"action": "remove-snapshots", "snapshot-ids": [5]},
    {"action": "remove-schemas", "schema-ids": [5]},
    {"action": "set-properties", "updates": {"a": "b"}},
    {"action": "set-location", "location": "x"},
]  # fmt: skip
REQUIREMENTS = [
    {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
    {"type": "assert-table-uuid", "uuid": "x"},
]
REQUESTS = [
    *(("namespaces/sales/tables/orders", {"requirements": [], "updates": [each]}) for each in UPDATES),
    ("namespaces/sales/tables/orders", {"requirements": REQUIREMENTS, "updates": []}),
    ("namespaces/sales/tables", {"name": "new", "schema": SCHEMA, "write-order": {"fields": [ORDER]}, "location": "x"}),
    ("namespaces/sales/views", {"name": "new", "schema": SCHEMA, "view-version": VERSION, "properties": {}}),
    ("namespaces/sales/views/seen", {"updates": [{"action": "add-view-version", "view-version": VERSION}]}),
    ("namespaces/sales/register", {"name": "new", "metadata-location": "x", "overwrite": True}),
    ("namespaces/sales/properties", {"removals": ["q"], "updates": {"a": "b"}}),
    ("namespaces", {"namespace": ["n"], "properties": {"a": "b"}}),
    ("tables/rename", {name: {"namespace": ["sales"], "name": name} for name in ("source", "destination")}),
    ("transactions/commit", {"table-changes": [{"identifier": {"namespace": ["sales"], "name": "orders"}}]}),
]  # fmt: skip


def places(value, path=()):
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield from places(each, (*path, key))


def with_value(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = with_value(value[path[0]], path[1:], new)
    return copy


@pytest.mark.parametrize("number", range(len(REQUESTS)), ids=str)
def test_odd_values_are_no_failures_of_the_server(rest, number):
    path, body = REQUESTS[number]
    chosen = random.Random(number)
    rest.table()
    assert rest.post("namespaces/sales/views", {"name": "seen", "schema": SCHEMA, "view-version": VERSION})[0] == 200
    for place in places(body):
        for value in chosen.sample(ODD, 4):
            status, answer = rest.post(path, with_value(body, place, value))
            assert status < 500, (place, value, answer)
    assert rest.get("namespaces/sales/tables/orders")[0] in (200, 404)
    assert rest.get("namespaces/sales/views/seen")[0] == 200
