"""Rights on one thing that were all rights on it, or on another: moves, exchanges, indexes, views and functions."""

from typing import Any

from hms_gateway.rpc.structs import (
    CreationMetadata,
    Database,
    FieldSchema,
    Function,
    Index,
    NotificationEventRequest,
    Partition,
    PrincipalType,
    SourceTable,
)
from tests.handlers.rights.test_authorizer import DENIED, Everybody, everybody, table  # noqa: F401

GONE = "Permission denied: user alice lacks {} on {}"


def test_a_table_is_moved_away_by_who_may_drop_it(everybody: Everybody) -> None:  # noqa: F811
    everybody.ask("root", "create_database", Database(name="alices", ownerName="alice", ownerType=PrincipalType.USER))
    everybody.grant("root", "alter", "sales.orders")
    moved = table("alices", "orders", "root")
    assert everybody.ask("alice", "alter_table", "sales", "orders", moved) == DENIED.format("DROP")
    assert everybody.ask("root", "get_all_tables", "alices") == []
    everybody.grant("root", "drop", "sales.orders")
    assert everybody.ask("alice", "alter_table", "sales", "orders", moved) is None


def test_a_table_is_renamed_in_its_database_as_before(everybody: Everybody) -> None:  # noqa: F811
    everybody.grant("root", "alter", "sales.orders")
    everybody.grant("root", "create", "sales")
    assert everybody.ask("alice", "alter_table", "sales", "orders", table("sales", "renamed", "root")) is None


def test_partitions_are_exchanged_by_who_may_delete_them(everybody: Everybody) -> None:  # noqa: F811
    keys = [FieldSchema("ds", "string")]
    for db, name, owner in (("sales", "parts", "root"), ("sales", "taken", "alice")):
        made = table(db, name, owner)
        made.partitionKeys = keys
        assert everybody.ask("root", "create_table", made) is None
    part = Partition(["1"], "sales", "parts", sd=table("sales", "parts").sd)
    everybody.ask("root", "add_partition", part)
    everybody.grant("root", "alter", "sales.parts")
    for name in ("exchange_partition", "exchange_partitions"):
        answer = everybody.ask("alice", name, {"ds": "1"}, "sales", "parts", "sales", "taken")
        assert answer == "MetaException: " + GONE.format("DELETE", "table sales.parts")
    assert everybody.ask("root", "get_partition_names", "sales", "parts", -1) == ["ds=1"]


def test_an_index_does_not_ask_for_tables_of_others(everybody: Everybody) -> None:  # noqa: F811
    everybody.grant("root", "create", "sales")
    everybody.ask("alice", "create_table", table("sales", "mine"))

    def added(index_table: str) -> Any:
        index = Index("i", "a.B", "sales", "mine", 0, 0, index_table, table("sales", "i").sd, {}, False)
        return everybody.ask("alice", "add_index", index, table("sales", "i"))

    hidden, missing = added("hr.people"), added("hr.nothing")
    assert hidden.replace("hr.people", "hr.nothing") == missing


def view(name: str, **sources: Any) -> Any:
    made = table("default", name)
    made.tableType, made.sd.location = "MATERIALIZED_VIEW", None
    made.creationMetadata = CreationMetadata("hive", "default", name, set(), **sources)
    return made


def test_a_view_is_made_of_tables_that_are_seen(everybody: Everybody) -> None:  # noqa: F811
    for name in ("people", "nothing"):
        made = view("mine")
        made.creationMetadata.tablesUsed = {f"hr.{name}"}
        answer = everybody.ask("alice", "create_table", made)
        assert answer == "MetaException: " + GONE.format("SEE", f"table hr.{name}")
        listed = view("mine", sourceTables=[SourceTable(table("hr", name), 0, 0, 0)])
        assert everybody.ask("alice", "create_table", listed) == answer
    assert everybody.ask("alice", "create_table", view("mine")) is None
    changed = view("mine")
    changed.creationMetadata.tablesUsed = {"hr.people"}
    answer = everybody.ask("alice", "update_creation_metadata", "hive", "default", "mine", changed.creationMetadata)
    assert "lacks SEE on table hr.people" in answer
    events = everybody.ask("alice", "get_next_notification", NotificationEventRequest(0, 100)).events
    assert {event.tableName for event in events} <= {None, "mine"}


def function(db: str) -> Function:
    return Function("to_euro", db, "org.example.ToEuro", "mallory", PrincipalType.USER, 0, 1, [])


def test_functions_of_everybody_are_made_by_administrators(everybody: Everybody) -> None:  # noqa: F811
    """Engines load their code for whoever calls them."""
    refused = "MetaException: " + GONE.format("REGISTER", "database default")
    assert everybody.ask("alice", "create_function", function("default")) == refused
    everybody.grant("root", "create", "sales")
    assert everybody.ask("alice", "create_function", function("sales")) is None
    assert everybody.ask("alice", "alter_function", "sales", "to_euro", function("default")) == refused
    everybody.grant("root", "create", "default")
    assert everybody.ask("alice", "create_function", function("default")) is None
