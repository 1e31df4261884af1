"""Files of a table that a user may not see stay unread and unwritten, whatever the user's own rows and files say."""

from pathlib import Path

import msgspec
import pytest

from hms_gateway.iceberg.appends import REBASE
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import (
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
)
from tests.handlers.peers import Peer
from tests.iceberg_rest.conftest import SCHEMA, kind_of
from tests.iceberg_rest.test_appends import Writer
from tests.iceberg_rest.test_rights import admin

__all__ = ["admin"]

SET = {"action": "set-properties", "updates": {"a": "b"}}
VERSION = {
    "version-id": 1, "timestamp-ms": 1, "summary": {}, "default-namespace": ["sales"], "schema-id": 0,
    "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
}  # fmt: skip
VIEW = {"name": "seen", "schema": SCHEMA, "view-version": VERSION, "properties": {}}


def path_of(location):
    return Path(location.removeprefix("file:"))


def files_of(location):
    return sorted(one for one in path_of(location).rglob("*") if one.is_file())


@pytest.fixture
def hidden(admin):
    """A table of which `rosa` knows the place, and may not see it."""
    return admin.get("namespaces/sales/tables/orders")[1]


@pytest.fixture
def rosa(admin, hidden):
    """May make tables in `sales`."""
    database = HiveObjectRef(HiveObjectType.DATABASE, "sales", None, None, None)
    info = PrivilegeGrantInfo("CREATE", 0, "admin", PrincipalType.USER, False)
    bag = PrivilegeBag([HiveObjectPrivilege(database, "rosa", PrincipalType.USER, info)])
    Peer(admin.metastore, admin.metastore.codecs.binary, Dialect.HIVE_4, "admin").ask("grant_privileges", bag)
    return admin.as_user("rosa")


@pytest.fixture
def hive(admin):
    return Peer(admin.metastore, admin.metastore.codecs.binary, Dialect.HIVE_4, "rosa")


def point(hive, name, location):
    """As a HiveCatalog does."""
    row = hive.ask("get_table", "sales", name)
    before = row.parameters["metadata_location"]
    parameters = {**row.parameters, "metadata_location": location, "previous_metadata_location": before}
    hive.ask("alter_table", "sales", name, msgspec.structs.replace(row, parameters=parameters))


def with_place_of(made, hidden):
    """A file beside that of a table, which says that the table lies where the hidden one does."""
    location = made["metadata-location"].replace("/00000-", "/00009-")
    metadata = {**made["metadata"], "location": hidden["metadata"]["location"]}
    path_of(location).write_bytes(msgspec.json.encode(metadata))
    return location, metadata


def test_a_row_that_points_to_a_file_of_another_table(rosa, hive, hidden):
    rosa.table("mine")
    point(hive, "mine", hidden["metadata-location"])
    path = "namespaces/sales/tables/mine"
    answers = [rosa.get(path), rosa.commit("mine", SET), rosa.post(f"{path}/unregister")]
    assert [kind_of(each) for each in answers] == [(403, "ForbiddenException")] * 3
    assert "fields" not in str(answers)


def test_a_row_that_points_to_a_file_of_a_dropped_table(admin, rosa, hive, hidden):
    rosa.table("mine")
    assert admin.send("DELETE", "namespaces/sales/tables/orders") == (204, None)
    assert path_of(hidden["metadata-location"]).exists()
    point(hive, "mine", hidden["metadata-location"])
    answers = [rosa.get("namespaces/sales/tables/mine"), rosa.commit("mine", SET)]
    assert [kind_of(each) for each in answers] == [(403, "ForbiddenException")] * 2
    assert "fields" not in str(answers)


def test_metadata_that_names_the_place_of_another_table(rosa, hive, hidden):
    made = rosa.table("mine", properties={REBASE: "true"})
    location, metadata = with_place_of(made, hidden)
    point(hive, "mine", location)
    assert kind_of(rosa.commit("mine", SET)) == (403, "ForbiddenException")
    body = Writer(rosa, {"metadata": metadata}).request(1)
    before = files_of(hidden["metadata"]["location"])
    assert kind_of(rosa.post("namespaces/sales/tables/mine", body)) == (403, "ForbiddenException")
    assert files_of(hidden["metadata"]["location"]) == before


def test_a_table_is_not_registered_over_ones_own_at_the_place_of_another(rosa, hidden):
    made = rosa.table("mine")
    location, _ = with_place_of(made, hidden)
    body = {"name": "mine", "metadata-location": location, "overwrite": True}
    assert rosa.post("namespaces/sales/register", body)[0] in (400, 403)
    assert rosa.get("namespaces/sales/tables/mine") == (200, made)


@pytest.mark.parametrize("user", ["rosa", "admin"])
def test_a_view_is_not_moved_to_the_place_of_a_table(rosa, hidden, user):
    client = rosa.as_user(user)
    status, made = client.post("namespaces/sales/views", VIEW)
    assert status == 200, made
    before = files_of(hidden["metadata"]["location"])
    move = {"updates": [{"action": "set-location", "location": hidden["metadata"]["location"]}]}
    assert client.post("namespaces/sales/views/seen", move)[0] in (400, 403)
    assert files_of(hidden["metadata"]["location"]) == before


def test_a_purge_keeps_what_the_row_says_to_keep(rosa, hive):
    made = rosa.table("mine")
    row = hive.ask("get_table", "sales", "mine")
    parameters = {**row.parameters, "external.table.purge": "FALSE"}
    hive.ask("alter_table", "sales", "mine", msgspec.structs.replace(row, parameters=parameters))
    assert rosa.send("DELETE", "namespaces/sales/tables/mine", query={"purgeRequested": "true"}) == (204, None)
    assert path_of(made["metadata-location"]).exists()


def test_a_new_table_is_its_makers(rosa, hive):
    rosa.table("mine", properties={"hive.metastore.table.owner": "admin"})
    assert hive.ask("get_table", "sales", "mine").owner == "rosa"


def test_places_are_not_told_to_those_who_may_not_use_them(admin, rosa, hidden):
    stranger = admin.as_user("rolf")
    place = hidden["metadata"]["location"]
    for location in (place, f"{place}-free"):
        body = {"name": "mine", "schema": SCHEMA, "location": location}
        assert kind_of(stranger.post("namespaces/sales/tables", body))[0] in (403, 404)
    rosa.table("mine")
    for location in (place, f"{place}-free"):
        move = {"action": "set-location", "location": location}
        assert kind_of(rosa.commit("mine", move)) == (403, "ForbiddenException")
