"""Statements of calls that are traced: all of them, with their text and without values."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_gateway.catalog.functions import FunctionRows
from hms_gateway.metastore.ports.store import CatalogWork
from hms_gateway.rpc.structs import Database, StorageDescriptor, Table
from hms_gateway.runtime.call_record import TraceSpan, TraceSpans, set_notes
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.writing.store import SqlStore, open_store


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlStore]:
    postgres = request.param == "postgres"
    url = request.getfixturevalue("migrated_postgres_database") if postgres else f"sqlite:///{tmp_path}/one.db"
    store = open_store(url, SystemClock(), Limits())
    store.note_statements()
    yield store
    set_notes(None)
    store.close()


def noted() -> TraceSpans:
    notes = TraceSpans()
    set_notes(notes)
    return notes


def statements(notes: TraceSpans) -> list[TraceSpan]:
    return [note for note in notes.parts if note.name == "sql"]


def add_table(tx) -> None:
    table = Table("planted_name", "d", "o", 0, 0, 0, StorageDescriptor(location="file:/planted_place"))
    tx.insert_table(tx.database("d").database_id, table)


def test_reads_and_changes_note_what_they_run(store):
    change = noted()
    store.write(lambda tx: tx.insert_database(Database("d", None, "file:/planted_place", {})))
    batched = noted()
    store.write(CatalogWork(add_table, [("d", "planted_name")], new_tables=1))
    usual = noted()
    assert store.read(lambda snapshot: FunctionRows(snapshot).find("d", "planted_name")) is None
    short = noted()
    store.read(lambda snapshot: snapshot.table("d", "planted_name"), asks_once=True)
    set_notes(None)
    store.read(lambda snapshot: snapshot.current_event_id())
    for notes in (change, batched, usual, short):
        assert statements(notes)
        assert not [note for note in notes.parts if "planted" in note.text]
    for notes in (change, batched):
        assert notes.parts[-1].name == "commit"
        assert "INSERT INTO" in "".join(note.text for note in statements(notes))
    for notes in (usual, short):
        assert all("SELECT" in note.text for note in notes.parts)
