"""Grants, roles, owners and rules, enforced over the calls of several users."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.catalog.access.grant_rows import note_changed_rights
from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.handlers.rights.authorizer import Authorizer
from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import (
    METHODS,
    CheckLockRequest,
    Database,
    FieldSchema,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    MetaException,
    NotificationEventRequest,
    OpenTxnRequest,
    PrincipalType,
    Role,
    SerDeInfo,
    ShowLocksRequest,
    StorageDescriptor,
    Table,
    UnlockRequest,
)
from hms_gateway.rpc.wire import MessageType
from hms_gateway.runtime.settings import Settings
from tests.handlers.rights.privileges import bag
from tests.support.catalog import place_empty_database
from tests.support.steps import through

RULES = """
[[rule]]
name = "marketing reads marketing"
groups = ["marketing"]
actions = ["select"]
objects = ["marketing_*", "sales.public_*"]
"""


class Everybody:
    """Calls of any user through the processor of one metastore."""

    def __init__(self, metastore: Metastore) -> None:
        self.metastore = metastore

    def ask(self, who: str, name: str, *values: Any) -> Any:
        """The answer; `NAME: text` for an exception. `who` may have groups behind a colon."""
        user, _, groups = who.partition(":")
        dialect = Dialect.HIVE_2_3 if name in methods_of(Dialect.HIVE_2_3) else Dialect.HIVE_4
        codec, method = self.metastore.codecs.binary, methods_of(dialect)[name]
        before, after = codec.envelope(name, MessageType.CALL, 1)
        payload = codec.encode(method.arguments(*values))
        assert isinstance(payload, bytes)
        call = Call(user, groups=frozenset(groups.split(",")) if groups else frozenset(), dialect=dialect)
        reply = self.metastore.processor.process(codec, codec.read_message(before + payload + after), call)
        if reply.type is MessageType.EXCEPTION:
            return reply.outcome
        assert reply.payload is not None
        encoded = reply.payload if isinstance(reply.payload, bytes) else b"".join(reply.payload)
        result: Any = codec.decode(method.result, encoded)
        for field in method.definition.throws:
            if (raised := getattr(result, field.name)) is not None:
                return f"{type(raised).__name__}: {raised.message}"
        return None if method.definition.returns is None else result.success

    def grant(
        self, who: str, privilege: str, on: str = "", to: str = "alice", kind: int = 1, option: bool = False
    ) -> Any:
        return self.ask(who, "grant_privileges", bag(privilege, on, to, kind, option))

    def revoke(self, who: str, privilege: str, on: str = "", to: str = "alice", kind: int = 1) -> Any:
        return self.ask(who, "revoke_privileges", bag(privilege, on, to, kind))


def table(database: str, name: str, owner: str | None = None) -> Table:
    sd = StorageDescriptor(
        cols=[FieldSchema("a", "int")], serdeInfo=SerDeInfo(parameters={}), location=f"file:/w/{database}.db/{name}"
    )
    return Table(tableName=name, dbName=database, owner=owner, sd=sd, partitionKeys=[], parameters={})


@pytest.fixture
def everybody(tmp_path: Path) -> Iterator[Everybody]:
    place_empty_database(tmp_path / DATABASE_FILE)
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES)
    settings = Settings(
        data_dir=tmp_path,
        file_systems={"file": "ignore"},
        warehouse_dir="file:/w",
        administrators=["root"],
        authorization="grants",
        authorization_rules_file=rules,
    )
    made = Everybody(build_metastore(settings))
    for name in ("sales", "hr", "marketing_web"):
        made.ask("root", "create_database", Database(name=name, ownerName="root"))
    for name in ("sales.orders", "sales.public_prices", "hr.people", "marketing_web.clicks"):
        assert made.ask("root", "create_table", table(*name.split("."), "root")) is None
    with contextlib.closing(made.metastore.store):
        yield made


MISSING = "NoSuchObjectException: sales.orders table not found"
DENIED = "MetaException: Permission denied: user alice lacks {} on table sales.orders"


def test_without_rights_there_is_nothing(everybody: Everybody) -> None:
    assert everybody.ask("alice", "get_table", "sales", "orders") == MISSING
    assert everybody.ask("alice", "drop_table", "sales", "orders", False) == MISSING
    assert everybody.ask("alice", "get_all_databases") == ["default"]
    assert everybody.ask("alice", "get_all_tables", "sales") == []
    assert everybody.ask("alice", "get_table_meta", "*", "*", None) == []
    missing = everybody.ask("alice", "get_table_objects_by_name", "nowhere", ["orders"]).replace("nowhere", "sales")
    assert everybody.ask("alice", "get_table_objects_by_name", "sales", ["orders"]) == missing
    events = everybody.ask("alice", "get_next_notification", NotificationEventRequest(0, 2))
    assert [event.dbName for event in events.events] == ["default"]


def test_a_grant_of_one_table_shows_it_and_no_more(everybody: Everybody) -> None:
    assert everybody.grant("root", "SELECT", "sales.orders") is True
    assert everybody.ask("alice", "get_table", "sales", "orders").tableName == "orders"
    assert everybody.ask("alice", "get_all_databases") == ["default", "sales"]
    assert everybody.ask("alice", "get_all_tables", "sales") == ["orders"]
    assert everybody.ask("alice", "drop_table", "sales", "orders", False) == DENIED.format("DROP")
    names = everybody.ask("alice", "get_table_names_by_filter", "sales", None, 1)
    assert names == ["orders"] or isinstance(names, str)
    events = everybody.ask("alice", "get_next_notification", NotificationEventRequest(0, 100)).events
    assert {event.tableName for event in events} == {None, "orders"}
    assert everybody.revoke("root", "SELECT", "sales.orders") is True
    assert everybody.ask("alice", "get_table", "sales", "orders") == MISSING


def test_a_grant_follows_a_rename_and_ends_with_a_drop(everybody: Everybody) -> None:
    everybody.grant("root", "SELECT", "sales.orders")
    everybody.ask("root", "alter_table", "sales", "orders", table("sales", "renamed", "root"))
    assert everybody.ask("alice", "get_all_tables", "sales") == ["renamed"]
    everybody.ask("root", "drop_table", "sales", "renamed", False)
    everybody.ask("root", "create_table", table("sales", "renamed", "root"))
    assert everybody.ask("alice", "get_all_tables", "sales") == []


def test_roles_give_what_they_have_through_other_roles_and_groups(everybody: Everybody) -> None:
    for name in ("reader", "analyst"):
        everybody.ask("root", "create_role", Role(name, 0, "root"))
    grant = ("root", PrincipalType.USER, False)
    everybody.ask("root", "grant_role", "reader", "analyst", PrincipalType.ROLE, *grant)
    everybody.ask("root", "grant_role", "analyst", "staff", PrincipalType.GROUP, *grant)
    everybody.grant("root", "select", "hr", "reader", PrincipalType.ROLE)
    assert everybody.ask("alice", "get_table", "hr", "people").startswith("NoSuchObject")
    assert everybody.ask("alice:staff", "get_table", "hr", "people").tableName == "people"
    assert everybody.ask("alice:staff", "get_role_names") == ["analyst", "public", "reader"]
    assert everybody.ask("alice", "get_role_names") == ["public"]
    everybody.ask("root", "drop_role", "reader")
    assert everybody.ask("alice:staff", "get_table", "hr", "people").startswith("NoSuchObject")


def test_who_makes_something_owns_it_whatever_it_says(everybody: Everybody) -> None:
    everybody.grant("root", "CREATE", "sales")
    assert everybody.ask("alice", "create_table", table("sales", "mine", "root")) is None
    assert everybody.ask("alice", "get_table", "sales", "mine").owner == "alice"
    assert everybody.ask("alice", "get_all_tables", "sales") == ["mine"]
    assert everybody.grant("alice", "select", "sales.mine", "bob") is True
    assert everybody.ask("bob", "get_all_tables", "sales") == ["mine"]
    taken = everybody.ask("bob", "alter_table", "sales", "mine", table("sales", "mine", "bob"))
    assert taken == "MetaException: Permission denied: user bob lacks ALTER on table sales.mine"
    assert everybody.grant("alice", "alter", "sales.mine", "bob") is True
    taken = everybody.ask("bob", "alter_table", "sales", "mine", table("sales", "mine", "bob"))
    assert taken == "MetaException: Permission denied: user bob lacks OWNERSHIP on table sales.mine"
    assert everybody.grant("bob", "drop", "sales.mine", "bob").endswith("lacks OWNERSHIP on table sales.mine")
    assert everybody.ask("alice", "drop_table", "sales", "mine", False) is None


def test_the_grant_option_gives_that_privilege_on_and_no_other(everybody: Everybody) -> None:
    everybody.grant("root", "select", "sales.orders", option=True)
    assert everybody.grant("alice", "select", "sales.orders", "bob") is True
    assert "Permission denied" in everybody.grant("alice", "drop", "sales.orders", "bob")
    for hidden, missing in (("hr", "nothing"), ("hr.people", "hr.nothing"), ("sales.public_prices", "sales.nothing")):
        refused = everybody.grant("alice", "select", hidden, "alice")
        assert "Permission denied" in refused
        assert refused.replace(hidden, missing) == everybody.grant("alice", "select", missing, "alice")
    assert everybody.ask("alice", "get_all_tables", "hr") == []


def test_rules_are_read_by_pattern_and_group(everybody: Everybody) -> None:
    assert everybody.ask("mia:marketing", "get_all_databases") == ["default", "marketing_web", "sales"]
    assert everybody.ask("mia:marketing", "get_all_tables", "sales") == ["public_prices"]
    assert everybody.ask("mia:marketing", "get_table", "marketing_web", "clicks").tableName == "clicks"
    refused = everybody.ask("mia:marketing", "drop_table", "marketing_web", "clicks", False)
    assert refused == "MetaException: Permission denied: user mia lacks DROP on table marketing_web.clicks"
    assert everybody.ask("mia", "get_all_databases") == ["default"]


def test_locks_and_transactions_are_their_users(everybody: Everybody) -> None:
    everybody.grant("root", "select", "sales.orders")

    def locked(who: str, kind: int, name: str = "orders") -> Any:
        component = LockComponent(kind, LockLevel.TABLE, "sales", name)
        return everybody.ask(who, "lock", LockRequest([component], user="somebody", hostname="h"))

    assert locked("alice", LockType.EXCLUSIVE) == "PROTOCOL_ERROR"
    assert locked("alice", LockType.SHARED_READ, "hidden") == "PROTOCOL_ERROR"
    lock_id = locked("alice", LockType.SHARED_READ).lockid
    assert everybody.ask("bob", "show_locks", ShowLocksRequest()).locks == []
    (shown,) = everybody.ask("alice", "show_locks", ShowLocksRequest()).locks
    assert shown.user == "alice"
    assert str(lock_id) in everybody.ask("bob", "check_lock", CheckLockRequest(lock_id))
    everybody.ask("bob", "unlock", UnlockRequest(lock_id))
    assert len(everybody.ask("alice", "show_locks", ShowLocksRequest()).locks) == 1
    everybody.ask("alice", "unlock", UnlockRequest(lock_id))
    assert everybody.ask("alice", "show_locks", ShowLocksRequest()).locks == []
    assert everybody.ask("alice", "open_txns", OpenTxnRequest(1, "bob", "h")).txn_ids
    assert everybody.ask("bob", "get_open_txns_info").open_txns == []


def test_keys_and_tokens_are_administrators(everybody: Everybody) -> None:
    for name in ("get_master_keys", "get_all_token_identifiers"):
        assert everybody.ask("alice", name) == "PROTOCOL_ERROR"
        assert everybody.ask("root", name) == []
    everybody.ask("root", "grant_role", "admin", "alice", PrincipalType.USER, "root", PrincipalType.USER, False)
    assert everybody.ask("alice", "get_all_databases") == ["default", "hr", "marketing_web", "sales"]


def test_a_handler_that_does_not_read_the_hidden_name_changes_nothing(everybody: Everybody) -> None:
    store, rights, method = everybody.metastore.store, everybody.metastore.rights, METHODS["drop_table"]
    assert rights is not None
    gate = Authorizer(rights, store, frozenset())
    for table_name, is_changed in (("people", False), ("mine", True)):
        everybody.ask("root", "create_table", table("hr", "mine", "alice"))
        arguments = method.arguments("hr", table_name, False)
        before = store.version()
        with contextlib.nullcontext() if is_changed else pytest.raises(MetaException, match="Permission denied"):
            through(gate, method, Call("alice"), arguments, lambda: store.write(note_changed_rights))
        assert (store.version() > before) is is_changed
