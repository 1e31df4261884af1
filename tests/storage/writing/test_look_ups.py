"""Reads by names go past SQLAlchemy, and go on with it where they ask for more."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import event

from hms_gateway.metastore.ports.store import CatalogWork, NewPartition, Selection, Snapshot
from hms_gateway.rpc.structs import Database, FieldSchema, Partition, StorageDescriptor, Table
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.writing.store import SqlStore, open_store
from tests.storage.test_outage import cut_connections
from tests.support.patience import until


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlStore]:
    postgres = request.param == "postgres"
    url = request.getfixturevalue("migrated_postgres_database") if postgres else f"sqlite:///{tmp_path}/one.db"
    store = open_store(url, SystemClock(), Limits())
    store.write(lambda tx: tx.insert_database(Database("d", None, "file:/d", {})))
    add(store, "t")
    yield store
    store.close()


def add(store: SqlStore, name: str) -> None:
    def work(tx):
        table = Table(
            name, "d", "o", 0, 0, 0, StorageDescriptor(location=f"file:/d/{name}"), [FieldSchema("k", "string")]
        )
        tx.insert_table(tx.database("d").database_id, table)
        part = Partition(["1"], "d", name, 0, 0, StorageDescriptor(location=f"file:/d/{name}/k=1"), {})
        tx.insert_partitions(tx.table("d", name), [NewPartition("k=1", part)])

    store.write(CatalogWork(work, [("d", name)], new_tables=1))


@pytest.fixture
def usual(store: SqlStore) -> Iterator[list[str]]:
    """Statements of reads that SQLAlchemy runs."""
    run: list[str] = []

    def note(connection: object, cursor: object, statement: str, *_: object) -> None:
        run.append(statement)

    event.listen(store._reading, "before_cursor_execute", note)
    yield run
    event.remove(store._reading, "before_cursor_execute", note)


def names(snapshot: Snapshot) -> tuple[list[str | None], list[str]]:
    snapshot.foresee([("d", "t"), ("d", "other")])
    found = [snapshot.table("d", name) for name in ("t", "other")]
    databases = [snapshot.database("d")]
    return [one and one.table.tableName for one in found], [one.database.name for one in databases if one]


def parts(snapshot: Snapshot) -> tuple[list[str], list[list[str] | None]]:
    table = snapshot.table("d", "t")
    assert table is not None
    selection = Selection(names=["k=1"])
    return snapshot.partition_names(table, selection), [
        p.partition.values for p in snapshot.partitions(table, selection)
    ]


def test_names_are_looked_up_past_sqlalchemy(store, usual):
    for _ in range(3):
        assert store.read(names, asks_once=True) == (["t", None], ["d"])
        assert store.read(parts) == (["k=1"], [["1"]])
        assert store.read(lambda snapshot: snapshot.table("d", "none"), asks_once=True) is None
    assert usual == []


def test_every_look_up_sees_what_was_committed_before_and_one_state_only(store):
    for number in range(3):
        add(store, f"t{number}")

        def work(snapshot: Snapshot, number: int = number) -> list[bool]:
            before = snapshot.table("d", f"t{number}") is not None
            if snapshot.table("d", f"later{number}") is None:
                add(store, f"later{number}")
            return [before, snapshot.table("d", f"later{number}") is not None]

        assert store.read(work) == [True, False]


def test_what_asks_for_more_goes_on_in_the_same_state(store, usual):
    def work(snapshot: Snapshot) -> tuple[bool, list[str]]:
        found = snapshot.table("d", "t")
        add(store, f"t{found is not None}")
        return found is None, snapshot.table_names("d")

    assert store.read(parts, asks_once=True) == (["k=1"], [["1"]])
    assert usual == []
    assert store.read(work) == (False, ["t"])
    assert len(usual) == 1


def test_what_it_raises_passes_through(store, usual):
    def work(snapshot: Snapshot) -> None:
        assert snapshot.table("d", "t") is not None
        raise LookupError("d.x")

    for asks_once in (True, False):
        with pytest.raises(LookupError, match=r"d\.x"):
            store.read(work, asks_once=asks_once)
    assert store.read(parts)[0] == ["k=1"]
    assert usual == []


@pytest.mark.postgres
def test_lost_connections_are_replaced(migrated_postgres_database, postgres_server):
    store = open_store(migrated_postgres_database, SystemClock(), Limits())
    try:
        store.write(lambda tx: tx.insert_database(Database("d", None, "file:/d", {})))
        for _ in range(2):
            for asks_once in (True, False):
                for _ in range(3):
                    assert store.read(lambda snapshot: snapshot.database("d") is not None, asks_once=asks_once)
                cut_connections(postgres_server)
                assert store.read(lambda snapshot: snapshot.database("d") is not None, asks_once=asks_once)
        assert store.connections_in_use == 0
    finally:
        store.close()


@pytest.mark.parametrize("asks_once", [True, False])
def test_names_that_no_database_can_store_are_not_asked_for(store, usual, asks_once):
    def work(snapshot: Snapshot) -> object:
        snapshot.foresee([("d\0", "t")])
        return snapshot.table("d\0", "t")

    assert store.read(work, asks_once=asks_once) is None
    assert store.read(names, asks_once=True) == (["t", None], ["d"])
    assert usual == []


SMALL_THEN = ("databases", "tables", "partitions", "descriptors")


@pytest.mark.postgres
def test_a_plan_from_when_tables_were_small_does_not_read_all_of_them(migrated_postgres_database):
    """It is kept, and they may grow before they are counted anew."""
    store = open_store(migrated_postgres_database, SystemClock(), Limits())
    store.write(lambda tx: tx.insert_database(Database("d", None, "file:/d", {})))
    add(store, "t")
    store.close()
    with psycopg.connect(migrated_postgres_database.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("ANALYZE")
        before = whole_reads(connection)
        store = open_store(migrated_postgres_database, SystemClock(), Limits())
        for _ in range(10):
            store.read(names, asks_once=True)
            store.read(parts)
        store.close()
        assert whole_reads(connection) == before


def whole_reads(connection: psycopg.Connection) -> Any:
    """Of the tables, when all other connections are closed and have reported them."""
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    until(lambda: connection.execute(others).fetchone() == (0,))
    counted = "SELECT relname, seq_scan FROM pg_stat_user_tables WHERE relname = ANY(%s) ORDER BY relname"
    return connection.execute(counted, [list(SMALL_THEN)]).fetchall()
