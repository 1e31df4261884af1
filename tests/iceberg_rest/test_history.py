"""The history of a table for people: the newest of each list, names of old columns, files that cannot be read."""

from pathlib import Path

import pytest

from hms_gateway.iceberg.history import history
from hms_gateway.iceberg.metadata import new_table
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import (
    IcebergRef,
    IcebergSnapshot,
    IcebergVersion,
    MetaException,
    NoSuchObjectException,
)
from tests.handlers.peers import Peer
from tests.iceberg_rest.conftest import SCHEMA
from tests.iceberg_rest.test_metadata import NOW, PLACE, after, appended, snapshot
from tests.iceberg_rest.test_rights import admin, grant

assert admin

DAY = {"source-id": 3, "field-id": 1000, "transform": "day", "name": "at_day"}
WIDE = {
    **SCHEMA,
    "schema-id": 1,
    "fields": [*SCHEMA["fields"], {"id": 3, "name": "at", "required": False, "type": "timestamptz"}],
}
LIST = {"type": "list", "element-id": 4, "element": "uuid", "element-required": True}
NARROW = {**SCHEMA, "fields": [SCHEMA["fields"][0], {"id": 5, "name": "tags", "required": False, "type": LIST}]}


@pytest.fixture
def changed():
    """A table with two snapshots, a tag, three schemas and two specs; the column of the second is dropped."""
    summary = {"operation": "append", "added-records": "2"}
    first = after(
        new_table({"schema": SCHEMA}, PLACE, NOW),
        *appended(1, summary=summary),
        {"action": "set-snapshot-ref", "ref-name": "audited", "type": "tag", "snapshot-id": 1, "max-ref-age-ms": 5},
    )
    second = after(
        first,
        {"action": "add-snapshot", "snapshot": snapshot(2**62, 2, 1, at_ms=NOW + 5)},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 2**62},
        {"action": "add-schema", "schema": WIDE},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"fields": [DAY, {"source-id": 1, "transform": "bucket[4]", "name": "b"}]}},
    )
    return after(second, {"action": "add-schema", "schema": NARROW}, {"action": "set-current-schema", "schema-id": -1})


def test_the_newest_is_first_and_a_dropped_column_keeps_its_name(changed):
    found = history("file:/srv/m.json", changed, 10)
    assert (found.metadata_location, found.format_version) == ("file:/srv/m.json", 2)
    assert found.snapshots == [
        IcebergSnapshot(2**62, 1, NOW + 5, "append", {}),
        IcebergSnapshot(1, None, NOW, "append", {"added-records": "2"}),
    ]
    assert found.refs == [IcebergRef("main", "branch", 2**62), IcebergRef("audited", "tag", 1, 5)]
    assert found.schemas == [
        IcebergVersion(2, ["id long required", "tags array<string>"], True),
        IcebergVersion(1, ["id long required", "name string", "at timestamptz"], False),
        IcebergVersion(0, ["id long required", "name string"], False),
    ]
    assert found.partition_specs == [
        IcebergVersion(1, ["day(at)", "bucket[4](id)"], False),
        IcebergVersion(0, [], True),
    ]


def test_lists_are_cut_to_the_newest(changed):
    found = history(PLACE, changed, 1)
    assert [one.snapshot_id for one in found.snapshots] == [2**62]
    assert [one.name for one in found.refs] == ["main"]
    assert [one.id for one in (*found.schemas, *found.partition_specs)] == [2, 1]


@pytest.fixture
def peer(metastore, rest):
    rest.table()
    return Peer(metastore, metastore.codecs.tjson, Dialect.HIVE_4)


def test_a_table_of_the_catalog_has_its_history(peer, rest):
    _, loaded = rest.get("namespaces/sales/tables/orders")
    found = peer.ask("get_iceberg_history", "Sales", "orders", 10)
    assert found.metadata_location == loaded["metadata-location"]
    assert [len(each) for each in (found.snapshots, found.schemas, found.partition_specs)] == [0, 1, 1]


BROKEN = {
    b"{": "is no JSON",
    b"[]": "is no JSON object",
    b"{}": "is not the metadata of a table",
    b'{"format-version": 9}': "format version 9",
    b'{"format-version": 2, "location": "l", "last-updated-ms": 1, "snapshots": [{"snapshot-id": 1}]}': "timestamp-ms",
    b'{"format-version": 2, "location": "l", "last-updated-ms": 1, "refs": {"a": 1}}': "odd value",
}


@pytest.mark.parametrize(("content", "text"), [*BROKEN.items(), (None, "cannot be read")])
def test_a_file_that_cannot_be_read_is_named(peer, rest, content, text):
    _, loaded = rest.get("namespaces/sales/tables/orders")
    file = Path(loaded["metadata-location"].removeprefix("file:"))
    other = file.with_name("00001-of-another.metadata.json")
    if content is not None:
        other.write_bytes(content)
    table = peer.ask("get_table", "sales", "orders")
    table.parameters |= {
        "metadata_location": f"file:{other}",
        "previous_metadata_location": loaded["metadata-location"],
    }
    peer.ask("alter_table", "sales", "orders", table)
    with pytest.raises(MetaException, match=text):
        peer.ask("get_iceberg_history", "sales", "orders", 10)


def test_what_has_no_history_is_refused(peer, rest):
    for name, most, error, text in [
        ("nothing", 10, NoSuchObjectException, "sales.nothing table not found"),
        ("orders", 0, MetaException, "max_entries is 0; ask for 1 to 10000"),
        ("orders", 10_001, MetaException, "max_entries is 10001"),
    ]:
        with pytest.raises(error, match=text):
            peer.ask("get_iceberg_history", "sales", name, most)
    table = peer.ask("get_table", "sales", "orders")
    table.tableName, table.parameters, table.sd.location = "plain", {}, None
    peer.ask("create_table", table)
    with pytest.raises(MetaException, match=r"sales\.plain is not an Iceberg table"):
        peer.ask("get_iceberg_history", "sales", "plain", 10)


def test_the_file_of_a_hidden_table_stays_hidden(admin):
    """A user's own table that points to the file of another one."""
    metastore = admin.metastore
    own, theirs = (Peer(metastore, metastore.codecs.tjson, Dialect.HIVE_4, user) for user in ("admin", "rosa"))
    with pytest.raises(NoSuchObjectException):
        theirs.ask("get_iceberg_history", "sales", "orders", 10)
    table = own.ask("get_table", "sales", "orders")
    table.tableName, table.sd.location = "copied", f"{table.sd.location}-copied"
    own.ask("create_table", table)
    with pytest.raises(MetaException, match="lies in the place of another table"):
        own.ask("get_iceberg_history", "sales", "copied", 10)
    grant(admin, "SELECT")
    assert theirs.ask("get_iceberg_history", "sales", "orders", 10).schemas
