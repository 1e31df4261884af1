"""The same row through the metastore's other calls: locks of HiveCatalog hold, and no commit is undone unseen."""

import errno
import gzip
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest

from hms_gateway.catalog.directories.places import PlaceRows
from hms_gateway.composition.main import build_metastore
from hms_gateway.iceberg.appends import REBASE
from hms_gateway.metastore.checks.table_shape import with_location
from hms_gateway.rpc.call import Dialect, Waiting
from hms_gateway.rpc.structs import (
    AlterTableRequest,
    ChangesRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    MetaException,
    UnlockRequest,
)
from hms_gateway.runtime.settings import Settings
from hms_gateway.storage.files.local import LocalDirectories
from tests.handlers.peers import Peer
from tests.iceberg_rest.conftest import SCHEMA, USER, Rest, kind_of
from tests.iceberg_rest.test_appends import Writer

SET = {"action": "set-properties", "updates": {"a": "b"}}
MANY_VALUES = gzip.compress(b"[" + b"{}," * 4_500_000 + b"{}]")
POINTER, PREVIOUS = "metadata_location", "previous_metadata_location"


@pytest.fixture(params=[Dialect.HIVE_2_3, Dialect.HIVE_4])
def hive(metastore, request):
    """A client of the metastore, of the same user as the REST client's."""
    return Peer(metastore, metastore.codecs.binary, request.param, USER)


def with_parameters(table, **parameters):
    return msgspec.structs.replace(table, parameters={**table.parameters, **parameters})


def test_the_row_is_that_of_hive_catalog(rest, hive):
    made = rest.table(properties={"gc.enabled": "false"})
    row = hive.ask("get_table", "sales", "orders")
    assert (row.tableType, row.owner) == ("EXTERNAL_TABLE", USER)
    assert [(column.name, column.type, column.comment) for column in row.sd.cols] == [
        ("id", "bigint", ""),
        ("name", "string", "of the customer"),
    ]
    expected = {
        "EXTERNAL": "TRUE",
        "table_type": "ICEBERG",
        POINTER: made["metadata-location"],
        "uuid": made["metadata"]["table-uuid"],
        "external.table.purge": "false",
    }
    assert row.parameters.items() >= expected.items()
    rest.commit("orders", SET, {"action": "remove-properties", "removals": ["gc.enabled"]})
    changed = hive.ask("get_table", "sales", "orders").parameters
    assert changed[PREVIOUS] == made["metadata-location"]
    assert changed["a"] == "b"
    assert "external.table.purge" not in changed


def row_of(metastore, name="orders"):
    return Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4, USER).ask("get_table", "sales", name)


def test_a_row_keeps_the_form_in_which_it_was_stored(rest, metastore, tmp_path):
    place = str(tmp_path / "warehouse" / "mine")
    schema = {"type": "struct", "fields": [{"id": 1, "name": "Id", "required": False, "type": "long"}]}
    version = {"version-id": 1, "timestamp-ms": 1, "summary": {}, "default-namespace": ["sales"], "schema-id": 0}
    version["representations"] = [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}]
    rest.table(location=place, schema=schema)
    view = {"name": "seen", "location": f"{place}_view", "schema": schema, "view-version": version}
    assert rest.post("namespaces/sales/views", view)[0] == 200
    made = [row_of(metastore, name).sd for name in ("orders", "seen")]
    assert [(sd.location, sd.cols[0].name) for sd in made] == [(f"file:{place}", "id"), (f"file:{place}_view", "id")]
    assert rest.commit("orders", SET)[0] == rest.post("namespaces/sales/views/seen", {"updates": [SET]})[0] == 200
    assert [row_of(metastore, name).sd for name in ("orders", "seen")] == made
    assert kind_of(rest.table_answer("bills", location=f"{place}/inside")) == (400, "BadRequestException")


def test_a_commit_does_not_take_the_place_of_another_table(rest, metastore, tmp_path):
    hive = Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4, USER)
    outer = f"file:{tmp_path}/warehouse/outer"
    rest.table(location=f"{outer}/inner")
    moved = with_location(row_of(metastore), outer)
    hive.ask("alter_table", "sales", "orders", moved)
    hive.ask("create_table", plain("bills", f"{outer}/inner", moved))
    answer = rest.commit("orders", SET)
    assert kind_of(answer) == (400, "BadRequestException")
    assert "lies at, in or around that of another table" in answer[1]["error"]["message"]
    assert row_of(metastore).sd.location == outer


def plain(name, place, row):
    """An external table of Hive with the columns of a row."""
    return with_location(msgspec.structs.replace(row, tableName=name, parameters={"EXTERNAL": "TRUE"}), place)


def test_tables_around_a_place_are_found_by_every_scheme(rest, metastore):
    hive = Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4, USER)
    rest.table()
    row = row_of(metastore)
    for name, place in (("above", "s3a://b/t"), ("inside", "s3n://b/t/x/y"), ("beside", "s3a://b/t/x2")):
        hive.ask("create_table", plain(name, place, row))
    found = metastore.store.read(lambda snapshot: PlaceRows(snapshot).tables_around("s3://b/t/x"))
    assert [one.name for one in found] == ["above", "inside"]


def test_a_lock_of_hive_catalog_makes_a_commit_wait(rest, hive):
    rest.table()
    component = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, "sales", "orders")
    lock = hive.ask("lock", LockRequest([component], user=USER, hostname="h"))
    before = rest.get("namespaces/sales/tables/orders")
    with pytest.raises(Waiting):
        rest.commit("orders", SET)
    assert rest.get("namespaces/sales/tables/orders") == before
    hive.ask("unlock", UnlockRequest(lock.lockid))
    assert rest.commit("orders", SET)[0] == 200


@pytest.mark.parametrize(("locks_implicit", "rebases"), [("off", "true"), ("deny", "false"), ("wait", "false")])
def test_a_commit_waits_ten_seconds_for_a_lock(rest, metastore, database, tmp_path, locks_implicit, rebases):
    table = rest.table(properties={REBASE: rebases})
    holder = Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4, "pia")
    component = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, "sales", "orders")
    holder.ask("lock", LockRequest([component], user="pia", hostname="h"))
    with locking(tmp_path, database, locks_implicit) as client:
        writer = Writer(client, table)
        with pytest.raises(Waiting):
            writer.append(1)
        client.waited_seconds = 10.0
        assert kind_of(writer.append(2)) == (409, "CommitFailedException")
        if locks_implicit == "deny":
            assert kind_of(client.send("DELETE", "namespaces/sales/tables/orders")) == (409, "CommitFailedException")
        assert client.get("namespaces/sales/tables/orders") == (200, table)


@pytest.mark.parametrize("rebases", ["true", "false"])
def test_implicit_locks_hold_for_every_commit(rest, metastore, database, tmp_path, rebases):
    table = rest.table(properties={REBASE: rebases})
    reader = Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4, "pia")
    component = LockComponent(LockType.SHARED_READ, LockLevel.TABLE, "sales", "orders")
    reader.ask("lock", LockRequest([component], user="pia", hostname="h"))
    with locking(tmp_path, database, "deny") as client, pytest.raises(Waiting):
        Writer(client, table).append(1)
    assert Writer(rest, table).append(1)[0] == 200


@contextmanager
def locking(tmp_path, database, locks_implicit):
    """A client of another gateway on the same data."""
    metastore = build_metastore(Settings(data_dir=tmp_path, database_url=database, locks_implicit=locks_implicit))
    with closing(metastore.store):
        yield Rest(metastore.iceberg())


@pytest.mark.parametrize("rebases", ["true", "false"])
def test_who_commits_is_known(rest, metastore, rebases):
    table = rest.table(properties={REBASE: rebases})
    assert Writer(rest.as_user("pia"), table).append(1)[0] == 200
    administrator = Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4, "admin")
    (found,) = administrator.ask("list_changes", ChangesRequest(user="pia"))
    assert (found.event_type, found.table_name, found.method) == ("ALTER_TABLE", "orders", "alter_table_req")


def test_a_commit_from_an_old_state_is_refused_whichever_client_sends_it(rest, hive):
    first = rest.table()["metadata-location"]
    old = hive.ask("get_table", "sales", "orders")
    status, second = rest.commit("orders", SET)
    lost = with_parameters(old, **{POINTER: f"{first}.new", PREVIOUS: first})
    with pytest.raises(MetaException, match=r"The table has been modified\. The parameter value for key"):
        hive.ask("alter_table", "sales", "orders", lost)
    assert rest.get("namespaces/sales/tables/orders") == (status, second)
    without = with_parameters(old, **{POINTER: f"{first}.new"})
    with pytest.raises(MetaException, match="The table has been modified"):
        hive.ask("alter_table", "sales", "orders", without)
    current = hive.ask("get_table", "sales", "orders")
    hive.ask("alter_table", "sales", "orders", with_parameters(current, note="kept"))
    assert hive.ask("get_table", "sales", "orders").parameters["note"] == "kept"
    assert rest.commit("orders", {"action": "set-properties", "updates": {"c": "d"}})[0] == 200
    assert hive.ask("get_table", "sales", "orders").parameters["note"] == "kept"


def test_a_commit_of_hive_catalog_is_one_of_rest(rest, metastore):
    newer = Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4, USER)
    first = rest.table()
    other = first["metadata-location"].replace("/00000-", "/00001-")
    Path(other.removeprefix("file:")).write_bytes(Path(first["metadata-location"].removeprefix("file:")).read_bytes())
    current = newer.ask("get_table", "sales", "orders")
    table = with_parameters(current, **{POINTER: other, PREVIOUS: first["metadata-location"]})
    request = AlterTableRequest(
        dbName="sales",
        tableName="orders",
        table=table,
        expectedParameterKey=POINTER,
        expectedParameterValue=first["metadata-location"],
    )
    newer.ask("alter_table_req", request)
    assert rest.get("namespaces/sales/tables/orders")[1]["metadata-location"] == other


def test_a_plain_table_is_not_shown(rest, hive):
    rest.table()
    row = hive.ask("get_table", "sales", "orders")
    parameters = {key: value for key, value in row.parameters.items() if key not in ("table_type", POINTER)}
    hive.ask("create_table", msgspec.structs.replace(row, tableName="plain", parameters=parameters))
    assert [one["name"] for one in rest.get("namespaces/sales/tables")[1]["identifiers"]] == ["orders"]
    answer = rest.get("namespaces/sales/tables/plain")
    assert kind_of(answer) == (404, "NoSuchTableException")
    assert "a table of Hive" in answer[1]["error"]["message"]
    assert kind_of(rest.table_answer("plain")) == (409, "AlreadyExistsException")


def test_a_dropped_and_a_renamed_table(rest, hive):
    rest.table()
    row = hive.ask("get_table", "sales", "orders")
    hive.ask("alter_table", "sales", "orders", msgspec.structs.replace(row, tableName="bills"))
    assert kind_of(rest.commit("orders", SET)) == (404, "NoSuchTableException")
    assert rest.commit("bills", SET)[0] == 200
    hive.ask("drop_table", "sales", "bills", False)
    assert kind_of(rest.commit("bills", SET)) == (404, "NoSuchTableException")


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"\x1f\x8bx", b'{"format-version": 12}', MANY_VALUES])
def test_a_metadata_file_that_is_gone_or_damaged(rest, anew, content):
    made = rest.table()
    file = made["metadata-location"].removeprefix("file:")
    Path(file).unlink()
    if content is not None:
        Path(file).write_bytes(content)
    again = anew()
    for answer in (again.get("namespaces/sales/tables/orders"), again.commit("orders", SET)):
        assert kind_of(answer) in [(404, "NotFoundException"), (400, "ValidationException")]
    assert again.send("DELETE", "namespaces/sales/tables/orders") == (204, None)


def test_a_file_system_that_is_away_is_no_missing_table(rest, anew, monkeypatch):
    rest.table()
    path = "namespaces/sales/tables/orders"

    def away(*_):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(LocalDirectories, "write", away)
    assert kind_of(rest.commit("orders", SET)) == (409, "CommitFailedException")
    monkeypatch.setattr(LocalDirectories, "read", away)
    again = anew()
    assert kind_of(again.get(path)) == (503, "ServiceUnavailableException")
    assert kind_of(again.commit("orders", SET)) == (503, "ServiceUnavailableException")


def test_an_old_state_of_a_view_is_refused_too(rest, hive):
    version = {
        "version-id": 1,
        "timestamp-ms": 1,
        "summary": {},
        "default-namespace": ["sales"],
        "schema-id": 0,
        "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
    }
    made = rest.post("namespaces/sales/views", {"name": "seen", "schema": SCHEMA, "view-version": version})
    assert made[0] == 200, made
    old = hive.ask("get_table", "sales", "seen")
    assert rest.post("namespaces/sales/views/seen", {"updates": [SET]})[0] == 200
    with pytest.raises(MetaException, match="The table has been modified"):
        hive.ask("alter_table", "sales", "seen", msgspec.structs.replace(old, tableName="moved"))
    current = hive.ask("get_table", "sales", "seen")
    hive.ask("alter_table", "sales", "seen", msgspec.structs.replace(current, tableName="moved"))
