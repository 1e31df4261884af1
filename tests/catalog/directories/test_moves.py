"""Moves that survive a crash: whoever finds a pending move puts the directory back to its source."""

import re
from contextlib import nullcontext
from typing import Any

import pytest

from hms_gateway.catalog.directories.warehouse import DirectoryMoves, MoveTakenBack
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import FileSystemError, OutcomeUnknown, PendingMove, TableId
from hms_gateway.rpc.structs import Database, MetaException
from tests.support.catalog import Catalog, new_table

TABLE = TableId(7)


def places(catalog: Catalog) -> tuple[str, str]:
    (catalog.warehouse / "a").mkdir()
    (catalog.warehouse / "a/file").write_text("x")
    return f"{catalog.root}/a", f"{catalog.root}/b"


def moves_of(catalog: Catalog) -> DirectoryMoves:
    return DirectoryMoves(catalog.store, catalog.files)


def pending(catalog: Catalog) -> list[PendingMove]:
    return catalog.store.read(lambda snapshot: snapshot.pending_moves())


def is_at(catalog: Catalog, name: str) -> bool:
    return (catalog.warehouse / name / "file").exists()


def test_a_move_is_pending_until_it_is_settled(catalog: Catalog) -> None:
    moves = moves_of(catalog)
    with moves.moved(TABLE, *places(catalog)) as move:
        assert is_at(catalog, "b")
        assert pending(catalog) == [move]
        assert catalog.store.read(lambda snapshot: moves.is_being_moved(snapshot, TABLE))
        catalog.store.write(lambda tx: moves.settle(tx, move))
    assert pending(catalog) == []
    assert moves.recover() == 0
    assert is_at(catalog, "b")


@pytest.mark.parametrize("is_settled", [True, False])
def test_what_was_settled_stays_when_the_answer_is_lost(catalog: Catalog, is_settled: bool) -> None:
    moves = moves_of(catalog)

    def change() -> None:
        with moves.moved(TABLE, *places(catalog)) as move:
            if is_settled:
                catalog.store.write(lambda tx: moves.settle(tx, move))
            raise OutcomeUnknown("lost")

    with nullcontext() if is_settled else pytest.raises(OutcomeUnknown):
        change()
    assert is_at(catalog, "b" if is_settled else "a")
    assert pending(catalog) == []


def test_a_move_that_fails_is_not_pending(catalog: Catalog) -> None:
    source, _ = places(catalog)
    (catalog.warehouse / "b").mkdir()
    with pytest.raises(FileSystemError), moves_of(catalog).moved(TABLE, source, f"{catalog.root}/b"):
        pass
    assert pending(catalog) == []
    assert is_at(catalog, "a")


def test_a_unit_of_work_that_fails_after_settling_takes_the_move_back(catalog: Catalog) -> None:
    moves = moves_of(catalog)

    def change() -> None:
        with moves.moved(TABLE, *places(catalog)) as move:

            def work(tx: object) -> None:
                moves.settle(tx, move)
                raise ValueError

            catalog.store.write(work)

    with pytest.raises(ValueError):
        change()
    assert is_at(catalog, "a")
    assert pending(catalog) == []


def test_recovery_puts_the_directory_back_and_stops_its_mover(catalog: Catalog) -> None:
    moves = moves_of(catalog)

    def change() -> None:
        with moves.moved(TABLE, *places(catalog)) as move:
            assert moves_of(catalog).recover() == 1
            assert is_at(catalog, "a")
            catalog.store.write(lambda tx: moves.settle(tx, move))

    with pytest.raises(MoveTakenBack):
        change()
    assert is_at(catalog, "a")


def test_a_move_after_the_change_is_announced_the_other_way_round(catalog: Catalog) -> None:
    """The catalog already says `b`; a crash before the directory followed is mended forwards."""
    old, new = places(catalog)
    catalog.store.write(lambda tx: tx.insert_pending_move(TABLE, new, old))
    assert moves_of(catalog).recover() == 1
    assert is_at(catalog, "b")


def test_what_cannot_be_put_back_stays_pending(catalog: Catalog) -> None:
    moves = moves_of(catalog)
    source, target = places(catalog)
    with moves.moved(TABLE, source, target) as move:
        catalog.store.write(lambda tx: tx.delete_pending_move(move.move_id))
        catalog.store.write(lambda tx: tx.insert_pending_move(TABLE, f"{target}/file/under/a/file", target))
        assert moves.recover() == 1
        assert len(pending(catalog)) == 1
        assert is_at(catalog, "b")


@pytest.mark.parametrize("used_by", ["table", "database"])
def test_a_start_leaves_a_directory_where_another_object_lies_by_now(
    catalog: Catalog, used_by: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Such as a database, made after a rename that was killed: its files would go away with the directory."""
    old, new = places(catalog)
    catalog.store.write(lambda tx: tx.insert_pending_move(TABLE, new, old))
    if used_by == "table":
        catalog.store.write(lambda tx: tx.delete_pending_move(pending(catalog)[0].move_id))
        catalog.tables.create(new_table("other", location=old))
        catalog.store.write(lambda tx: tx.insert_pending_move(TABLE, new, old))
    else:
        catalog.databases.create(Database(name="other", locationUri=old))
    assert moves_of(catalog).recover() == 1
    assert is_at(catalog, "a")
    assert f"Files of {new} stay at {old}, which another object of the catalog uses" in caplog.text
    assert pending(catalog) == []


@pytest.mark.parametrize("name", ["a", "b", "b/below"])
def test_no_table_is_stored_where_a_directory_is_being_moved(catalog: Catalog, name: str) -> None:
    """If the rename is taken back, the directory with the new table's files would go with it."""
    moves = moves_of(catalog)
    location = f"{catalog.root}/{name}"
    text = f"{location} cannot be used while a directory there is being moved; try again later"

    def change() -> None:
        with moves.moved(TABLE, *places(catalog)):
            with pytest.raises(MetaException, match=re.escape(text)):
                catalog.tables.create(new_table("other", location=location))
            catalog.tables.create(new_table("beside", location=f"{catalog.root}/b2"))
            raise ValueError

    with pytest.raises(ValueError):
        change()
    assert is_at(catalog, "a")
    catalog.tables.create(new_table("other", location=location))


def test_a_table_of_the_new_name_does_not_lose_its_directory(catalog: Catalog) -> None:
    """The rename is in the middle when others create a table of its new name."""
    catalog.tables.create(new_table("a"))
    (catalog.warehouse / "a/file").write_text("x")
    write, seen = catalog.store.write, []

    def create_first(work: Any) -> Any:
        seen.append(work)
        if len(seen) == 2:
            with pytest.raises(MetaException, match="is being moved"):
                catalog.tables.create(new_table("b"))
        return write(work)

    renamed = catalog.tables.get(TableName("default", "a"))
    renamed.tableName = "b"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog.store, "write", create_first)
        catalog.alterations.alter(TableName("default", "a"), renamed)
    assert is_at(catalog, "b")
    assert catalog.tables.get(TableName("default", "b")).sd.location == f"{catalog.root}/b"
