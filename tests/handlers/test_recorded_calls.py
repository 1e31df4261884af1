"""The header x-hms-recorded-at: calls that record what another metastore knows, with its times and its directories."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import (
    AddPartitionsRequest,
    Database,
    FieldSchema,
    Function,
    GetPrincipalsInRoleRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    MetaException,
    Partition,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Role,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from hms_gateway.runtime.settings import Settings
from tests.handlers.peers import Peer
from tests.support.kept_store import empty_database

THEN, LATER = 1_500_000_000, 1_500_000_001
USER = PrincipalType.USER


@pytest.fixture
def metastore(tmp_path: Path) -> Iterator[Metastore]:
    """One that manages directories."""
    (tmp_path / DATABASE_FILE).write_bytes(empty_database())
    metastore = build_metastore(Settings(data_dir=tmp_path, warehouse_dir=f"file:{tmp_path}/warehouse"))
    yield metastore
    metastore.store.close()


@pytest.fixture
def recorder(metastore: Metastore) -> Peer:
    return peer(metastore)


def peer(metastore: Metastore, principal: str = "admin", recorded_at: str | None = str(THEN)) -> Peer:
    return Peer(metastore, metastore.codecs.tjson, Dialect.HIVE_2_3, principal, recorded_at)


def descriptor(location: str | None = None, *columns: str) -> StorageDescriptor:
    fields = [FieldSchema(name=name, type="int") for name in columns or ("id",)]
    return StorageDescriptor(cols=fields, location=location, serdeInfo=SerDeInfo())


def table(name: str = "t", location: str | None = None, **fields: object) -> Table:
    key = FieldSchema(name="ds", type="string")
    given = {"sd": descriptor(location), "partitionKeys": [key], "createTime": LATER, **fields}
    return Table(dbName="default", tableName=name, **given)


def partition(day: str, **fields: object) -> Partition:
    given = {"sd": descriptor(), "createTime": LATER, **fields}
    return Partition(dbName="default", tableName="t", values=[day], **given)


def directories(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_dir()}


def test_ordinary_users_may_not_use_it(metastore: Metastore) -> None:
    with pytest.raises(MetaException, match="user ann is not an administrator; the header x-hms-recorded-at"):
        peer(metastore, "ann").ask("create_table", table())
    assert peer(metastore, "ann", None).ask("get_all_tables", "default") == []


@pytest.mark.parametrize("text", ["", "soon", "-1", "2147483648", "99999999999999", "1.5", "١"])
def test_what_is_not_a_time_is_refused(metastore: Metastore, text: str) -> None:
    with pytest.raises(MetaException, match=r"the header x-hms-recorded-at is .*; it is seconds since 1970"):
        peer(metastore, recorded_at=text).ask("create_table", table())


def test_times_of_creation_are_kept(metastore: Metastore, recorder: Peer) -> None:
    recorder.ask("create_table", table())
    recorder.ask("add_partitions_req", AddPartitionsRequest("default", "t", [partition("1"), partition("2")], True))
    function = Function("f", "default", "org.example.F", "ann", USER, LATER)
    recorder.ask("create_function", function)
    assert recorder.ask("get_table", "default", "t").createTime == LATER
    found = recorder.ask("get_partitions_by_names", "default", "t", ["ds=1", "ds=2"])
    assert [one.createTime for one in found] == [LATER, LATER]
    assert recorder.ask("get_function", "default", "f").createTime == LATER


def test_without_the_header_it_is_now(metastore: Metastore) -> None:
    ordinary = peer(metastore, recorded_at=None)
    ordinary.ask("create_table", table())
    ordinary.ask("add_partition", partition("1"))
    assert ordinary.ask("get_table", "default", "t").createTime > LATER
    assert ordinary.ask("get_partition", "default", "t", ["1"]).createTime > LATER


def test_roles_and_grants_are_as_old_as_they_were(recorder: Peer) -> None:
    recorder.ask("create_table", table())
    recorder.ask("create_role", Role("r", LATER, "ann"))
    recorder.ask("grant_role", "r", "bob", USER, "ann", USER, False)
    on = HiveObjectRef(HiveObjectType.TABLE, "default", "t")
    info = PrivilegeGrantInfo("SELECT", LATER, "ann", USER, False)
    recorder.ask("grant_privileges", PrivilegeBag([HiveObjectPrivilege(on, "bob", USER, info)]))
    assert recorder.ask("list_roles", "bob", USER)[0] == Role("r", LATER, "ann")
    (granted,) = recorder.ask("get_principals_in_role", GetPrincipalsInRoleRequest("r")).principalGrants
    assert (granted.grantTime, granted.grantorName) == (THEN, "ann")
    assert recorder.ask("list_privileges", "bob", USER, on)[0].grantInfo == info


def test_no_directory_is_made_moved_or_deleted(metastore: Metastore, recorder: Peer, tmp_path: Path) -> None:
    before = directories(tmp_path)
    recorder.ask("create_database", Database("d", locationUri=f"file:{tmp_path}/d"))
    recorder.ask("create_table", table())
    recorder.ask("add_partitions_req", AddPartitionsRequest("default", "t", [partition("1")], True))
    assert "numFiles" not in recorder.ask("get_partition", "default", "t", ["1"]).parameters
    location = recorder.ask("get_table", "default", "t").sd.location
    assert directories(tmp_path) == before

    Path(location.removeprefix("file:"), "ds=1").mkdir(parents=True)
    made = directories(tmp_path)
    recorder.ask("alter_table", "default", "t", table("u", location))
    recorder.ask("drop_partition", "default", "u", ["1"], True)
    recorder.ask("drop_table", "default", "u", True)
    recorder.ask("drop_database", "d", True, True)
    assert directories(tmp_path) == made


def test_places_outside_the_roots_are_recorded(metastore: Metastore, recorder: Peer) -> None:
    elsewhere = "file:/nowhere/of/ours/t"
    with pytest.raises(MetaException, match="outside the directories this server manages"):
        peer(metastore, recorded_at=None).ask("create_table", table(location=elsewhere))
    recorder.ask("create_table", table(location=elsewhere))
    assert recorder.ask("get_table", "default", "t").sd.location == elsewhere


def test_transactional_tables_are_taken_as_they_are(recorder: Peer) -> None:
    """Hive 2.3 has some whose kind is not stored, or one that Hive 3 refuses."""
    parameters = {"transactional": "true", "transactional_properties": "legacy", "transient_lastDdlTime": "7"}
    recorder.ask("create_table", table(parameters=parameters))
    assert recorder.ask("get_table", "default", "t").parameters == parameters
    recorder.ask("alter_table", "default", "t", table(parameters={"transient_lastDdlTime": "8"}, createTime=THEN))
    found = recorder.ask("get_table", "default", "t")
    assert (found.parameters, found.createTime) == ({"transient_lastDdlTime": "8"}, THEN)


def test_a_table_becomes_another_one(recorder: Peer) -> None:
    recorder.ask("create_table", table())
    recorder.ask("alter_table", "default", "t", table(sd=descriptor("file:/elsewhere", "name", "id")))
    assert [column.name for column in recorder.ask("get_table", "default", "t").sd.cols] == ["name", "id"]


def test_a_database_becomes_another_one(recorder: Peer, metastore: Metastore) -> None:
    wanted = Database("default", "ours", "file:/elsewhere", {"a": "1"}, ownerName="ann", ownerType=USER)
    recorder.ask("alter_database", "default", wanted)
    assert recorder.ask("get_database", "default") == wanted
    peer(metastore, recorded_at=None).ask("alter_database", "default", Database("default", "", "file:/x"))
    assert recorder.ask("get_database", "default").locationUri == "file:/elsewhere"


def test_partitions_do_not_get_the_grants_of_their_table(recorder: Peer) -> None:
    """They have been copied where the partition was made, and are recorded from there."""
    recorder.ask("create_table", table(parameters={"PARTITION_LEVEL_PRIVILEGE": "TRUE"}))
    on = HiveObjectRef(HiveObjectType.TABLE, "default", "t")
    info = PrivilegeGrantInfo("SELECT", LATER, "ann", USER, False)
    recorder.ask("grant_privileges", PrivilegeBag([HiveObjectPrivilege(on, "bob", USER, info)]))
    recorder.ask("add_partition", partition("1"))
    ref = HiveObjectRef(HiveObjectType.PARTITION, "default", "t", ["1"])
    assert recorder.ask("list_privileges", None, None, ref) == []
