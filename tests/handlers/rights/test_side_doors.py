"""Objects that a call reaches other than by the names that it is about: ids, lists, policies, flags, error texts."""

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hms_gateway.catalog.rights.decisions import USER, Permissions
from hms_gateway.catalog.rights.keeper import _touched
from hms_gateway.catalog.rights.policy import GrantedPrivilege, Policy, Principal, Securable
from hms_gateway.composition.main import build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.handlers.rights.answers import ANSWERS, Asked
from hms_gateway.rpc.structs import (
    AbortTxnRequest,
    AllocateTableWriteIdsRequest,
    CommitTxnKeyValue,
    CommitTxnRequest,
    CompactionRequest,
    CompactionType,
    CreationMetadata,
    Database,
    Function,
    GetTableRequest,
    HiveObjectRef,
    HiveObjectType,
    Index,
    LeaseObject,
    OpenTxnRequest,
    PrincipalType,
    SerDeInfo,
    SQLForeignKey,
    SQLPrimaryKey,
    StorageDescriptor,
)
from hms_gateway.runtime.settings import MetastoreRules, Settings
from tests.handlers.rights.test_authorizer import DENIED, MISSING, Everybody, everybody, table  # noqa: F401
from tests.support.catalog import columns, place_empty_database, transactional_table

REFUSED = "PROTOCOL_ERROR"


def key(database: str | None, name: str | None, column: str = "a") -> SQLPrimaryKey:
    return SQLPrimaryKey(database, name, column, 1, "pk_1", False, False, False)


def with_keys(everybody: Everybody, name: str, keys: Any, foreign: Any = ()) -> Any:  # noqa: F811
    lists: tuple[list[Any], ...] = (list(keys), list(foreign), [], [], [], [])
    return everybody.ask("alice", "create_table_with_constraints", table("sales", name), *lists)


def test_a_new_tables_constraints_are_its_own(everybody: Everybody) -> None:  # noqa: F811
    everybody.grant("root", "create", "sales")
    hidden, missing = (with_keys(everybody, "mine", [key("sales", name)]) for name in ("orders", "nothing"))
    assert hidden.replace("orders", "nothing") == missing
    everybody.grant("root", "select", "sales.orders")
    assert with_keys(everybody, "mine", [key("sales", "orders")]) == DENIED.format("ALTER")
    own = SQLForeignKey("sales", "mine", "a", "sales", "mine", "a", 1, 0, 0, "fk_1", "pk_1", False, False, False)
    assert with_keys(everybody, "mine", [key(None, None)], [own]) is None


def test_a_commit_marks_tables_of_the_caller_only(everybody: Everybody) -> None:  # noqa: F811
    found = everybody.metastore.store.read(lambda snapshot: snapshot.table("sales", "orders"))
    assert found is not None

    def committed(table_id: int) -> Any:
        (txn_id,) = everybody.ask("alice", "open_txns", OpenTxnRequest(1, "alice", "h")).txn_ids
        mark = CommitTxnKeyValue(table_id, "_meta.x", "1")
        return everybody.ask("alice", "commit_txn", CommitTxnRequest(txn_id, keyValue=mark))

    def parameters() -> dict[str, str]:
        return dict(everybody.ask("root", "get_table", "sales", "orders").parameters)

    assert committed(found.table_id) == REFUSED
    assert "_meta.x" not in parameters()
    everybody.grant("root", "alter", "sales.orders")
    assert committed(found.table_id) is None
    assert parameters()["_meta.x"] == "1"


def test_ids_of_a_replication_are_administrators(everybody: Everybody) -> None:  # noqa: F811
    everybody.grant("root", "all", "sales.orders")
    calls = (
        ("abort_txn", AbortTxnRequest(1, "policy")),
        ("commit_txn", CommitTxnRequest(1, "policy")),
        ("allocate_table_write_ids", AllocateTableWriteIdsRequest("sales", "orders", replPolicy="policy")),
        ("compact", CompactionRequest("sales", "orders", type=CompactionType.MAJOR, runas="root")),
    )
    for name, request in calls:
        answer = everybody.ask("alice", name, request)
        assert answer == REFUSED or "lacks ADMIN" in answer
        assert "lacks ADMIN" not in str(everybody.ask("root", name, request))


def test_privileges_are_shown_of_ones_own_groups_on_what_is_seen(everybody: Everybody) -> None:  # noqa: F811
    everybody.grant("root", "select", "sales.orders", "staff", PrincipalType.GROUP)
    ref = HiveObjectRef(HiveObjectType.TABLE, "sales", "orders")
    shown = everybody.ask("alice", "get_privilege_set", ref, "alice", ["staff"])
    assert not shown.groupPrivileges
    shown = everybody.ask("alice:staff", "get_privilege_set", ref, "alice", [])
    assert shown.groupPrivileges["staff"]
    for method, rest in (("get_privilege_set", ("alice", [])), ("list_privileges", ("alice", USER))):
        answers = []
        for name in ("orders", "nothing"):
            part = HiveObjectRef(HiveObjectType.PARTITION, "sales", name, ["a", "b", "c"])
            arguments = (part, *rest) if method == "get_privilege_set" else (*rest, part)
            answers.append(everybody.ask("alice", method, *arguments))
        assert answers[0] == answers[1]


def test_statistics_beside_a_table_take_select(everybody: Everybody, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    asked: list[Any] = []

    def noted(store: Any, name: Any, shown: Any, *rest: Any) -> Any:
        asked.append(name)
        return shown

    monkeypatch.setattr("hms_gateway.catalog.tables.tables.with_table_statistics", noted)
    for privilege, times in (("insert", 0), ("select", 1)):
        everybody.grant("root", privilege, "sales.orders")
        request = GetTableRequest("sales", "orders", getColumnStats=True, engine="hive")
        assert everybody.ask("alice", "get_table_req", request).table.tableName == "orders"
        assert len(asked) == times


def test_leases_need_what_locks_need_and_name_nothing_hidden(everybody: Everybody) -> None:  # noqa: F811
    everybody.grant("root", "select", "sales.public_prices")
    exclusive = LeaseObject("sales", "public_prices", lease_type="x")
    assert not isinstance(everybody.ask("alice", "grab_lease", [exclusive], 9, 0), int)
    everybody.ask("root", "grab_lease", [LeaseObject("sales", "orders", lease_type="x")], 9, 0)
    refused = everybody.ask("alice", "grab_lease", [LeaseObject("sales")], 9, 0)
    assert refused == "LeaseAlreadyExistsException: sales conflicts with another lease"
    everybody.grant("root", "lock", "sales.public_prices")
    assert isinstance(everybody.ask("alice", "grab_lease", [exclusive], 9, 0), int)


def test_who_may_alter_neither_takes_the_owner_away_nor_renames(everybody: Everybody) -> None:  # noqa: F811
    everybody.grant("root", "alter", "sales.orders")
    assert everybody.ask("alice", "alter_table", "sales", "orders", table("sales", "orders")) is None
    assert everybody.ask("root", "get_table", "sales", "orders").owner == "root"
    other = table("sales", "orders", "root")
    other.ownerType = 0
    assert everybody.ask("alice", "alter_table", "sales", "orders", other) == DENIED.format("OWNERSHIP")
    renamed = table("sales", "renamed", "root")
    renamed.dbName = None
    refused = everybody.ask("alice", "alter_table", "sales", "orders", renamed)
    assert refused == "MetaException: Permission denied: user alice lacks CREATE on database sales"
    everybody.grant("root", "alter", "sales")
    assert everybody.ask("alice", "alter_database", "sales", Database(name="sales")) is None
    assert everybody.ask("root", "get_database", "sales").ownerName == "root"


def test_the_table_of_an_index_is_created_by_its_owner(everybody: Everybody) -> None:  # noqa: F811
    sd = StorageDescriptor(cols=[], serdeInfo=SerDeInfo(parameters={}))
    index = Index("i", "h", "sales", "orders", 0, 0, "orders_i", sd, {}, True)
    entries = table("sales", "orders_i", "root")
    everybody.grant("root", "alter", "sales.orders")
    refused = "MetaException: Permission denied: user alice lacks CREATE on database sales"
    assert everybody.ask("alice", "add_index", index, entries) == refused
    everybody.grant("root", "create", "sales")
    assert everybody.ask("alice", "add_index", index, entries).indexName == "i"
    assert everybody.ask("root", "get_table", "sales", "orders_i").owner == "alice"


def test_names_of_tables_with_more_points_are_those_that_the_handler_reads(everybody: Everybody) -> None:  # noqa: F811
    everybody.ask("root", "create_database", Database(name="mine", ownerName="alice", ownerType=1))
    metadata = CreationMetadata("hive", "mine", "v", {"mine.x.hr.people"}, "")
    assert everybody.ask("alice", "get_materialization_invalidation_info", metadata, "") in (
        REFUSED,
        "MetaException: Permission denied: user alice lacks SEE on table x.hr.people",
    )


def test_a_source_without_a_database_hides_no_view(everybody: Everybody) -> None:  # noqa: F811
    permissions = Permissions(
        "alice",
        frozenset(),
        Policy(held={Principal(USER, "alice"): (GrantedPrivilege("select", Securable("sales", "v")),)}),
    )
    view = table("sales", "v")
    view.creationMetadata = CreationMetadata("hive", "sales", "v", {"nothing", "sales.v", "hive.sales.v"}, "")
    shown = ANSWERS["table"](Asked(permissions, SimpleNamespace(), view, (), None))  # type: ignore[arg-type]
    assert shown.creationMetadata.tablesUsed == {"sales.v", "hive.sales.v"}


def test_a_hidden_database_does_not_narrow_a_search(everybody: Everybody) -> None:  # noqa: F811
    everybody.ask("root", "create_database", Database(name="shared_hr", ownerName="alice", ownerType=1))
    everybody.ask("root", "create_table", table("shared_hr", "people", "alice"))
    found = everybody.ask("alice", "search_names", "hr.people", 10)
    assert [(one.db_name, one.name) for one in found] == [("shared_hr", "people")]
    # A database is in none, also one whose name has both parts.
    everybody.ask("root", "create_database", Database(name="people_hr", ownerName="alice", ownerType=1))
    assert everybody.ask("alice", "search_names", "hr.people", 10) == found


def test_a_search_finds_the_functions_of_a_database_that_is_seen(everybody: Everybody) -> None:  # noqa: F811
    assert everybody.ask("root", "create_function", Function("order_value", "sales", "org.example.F")) is None
    assert everybody.ask("alice", "search_names", "order_v", 10) == []
    everybody.grant("root", "select", "sales.orders")
    found = everybody.ask("alice", "search_names", "order_v", 10)
    assert [(one.db_name, one.name, one.kind) for one in found] == [("sales", "order_value", "FUNCTION")]


def test_only_databases_that_are_seen_as_a_whole_are_counted(everybody: Everybody) -> None:  # noqa: F811
    everybody.grant("root", "select", "sales.orders")
    assert "sales" not in {one.db_name for one in everybody.ask("alice", "count_objects", "", False)}
    assert everybody.ask("alice", "count_objects", "sales", True) == []
    assert [one.db_name for one in everybody.ask("root", "count_objects", "sales", True)] == ["sales"]


def test_a_list_is_asked_for_after_rights(tmp_path: Path) -> None:
    place_empty_database(tmp_path / DATABASE_FILE)
    settings = Settings(
        data_dir=tmp_path,
        file_systems={"file": "ignore"},
        administrators=["root"],
        authorization="grants",
        metastore=MetastoreRules(require_write_id_lists=True),
    )
    made = Everybody(build_metastore(settings))
    with contextlib.closing(made.metastore.store):
        acid = transactional_table("acid", columns("ds string"))
        assert made.ask("root", "create_table", acid) is None
        assert made.ask("alice", "get_table", "default", "acid") == MISSING.replace("sales.orders", "default.acid")
        made.grant("root", "select", "default.acid")
        assert "is transactional and read without a list" in made.ask("alice", "get_table", "default", "acid")


def test_grants_on_partitions_end_with_them() -> None:
    dropped = SimpleNamespace(
        event_id=2, event=SimpleNamespace(event_type="DROP_PARTITION", db_name="sales", table_name="orders")
    )
    assert _touched([dropped], 1, {("sales", "orders")}) is None  # type: ignore[list-item,arg-type]
    assert _touched([dropped], 1, {("sales", "other")}) == []  # type: ignore[list-item,arg-type]


def test_a_place_of_another_table_takes_its_ownership(everybody: Everybody) -> None:  # noqa: F811
    place = f"{everybody.ask('root', 'get_database', 'sales').locationUri}/mine-old"
    other, mine = table("sales", "other", "root"), table("sales", "mine", "alice")
    other.sd.location = mine.sd.location = place  # type: ignore[union-attr]
    assert everybody.ask("root", "create_table", other) is None
    for privilege, on in (("create", "sales"), ("insert", "sales.other"), ("drop", "sales.other")):
        everybody.grant("root", privilege, on)
        answer = everybody.ask("alice", "create_table", mine)
        assert answer is not None
        assert "Permission denied" in answer
    other.owner = "alice"
    assert everybody.ask("root", "alter_table", "sales", "other", other) is None
    assert everybody.ask("alice", "create_table", mine) is None
