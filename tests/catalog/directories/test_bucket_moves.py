"""Renames of tables in a bucket: the catalog always names a place that has all objects, whatever fails or crashes."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_gateway.catalog.directories.warehouse import DirectoryMoves, MoveTakenBack
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import FileSystemError, PendingMove, TableId
from hms_gateway.rpc.structs import InvalidOperationException
from tests.support.bucket_server import BUCKET
from tests.support.catalog import Catalog, new_table
from tests.support.kept_store import empty_store
from tests.support.private_bucket import PrivateBucket

pytestmark = pytest.mark.s3
TABLE = TableId(7)
OBJECTS = ["", "p=1/f", "p=2/f"]


@pytest.fixture
def top() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def lake(bucket: PrivateBucket, top: str, tmp_path: Path) -> Iterator[Catalog]:
    """A catalog whose warehouse is in the bucket."""
    with empty_store() as (store, _):
        yield Catalog(store, tmp_path, {"s3": bucket.options}, warehouse_location=f"s3a://{BUCKET}/{top}")


@pytest.fixture
def places(bucket: PrivateBucket, top: str) -> tuple[str, str]:
    """The old place, with objects, and the new one."""
    for name in OBJECTS:
        bucket.put(f"{top}/a/{name}")
    return f"s3a://{BUCKET}/{top}/a", f"s3a://{BUCKET}/{top}/b"


def moves_of(lake: Catalog) -> DirectoryMoves:
    return DirectoryMoves(lake.store, lake.files)


def pending(lake: Catalog) -> list[PendingMove]:
    return lake.store.read(lambda snapshot: snapshot.pending_moves())


def settle(lake: Catalog, moves: DirectoryMoves, move: PendingMove) -> None:
    lake.store.write(lambda tx: moves.settle(tx, move))


def rename(lake: Catalog, old: str, new: str) -> None:
    table = lake.tables.get(TableName("default", old))
    table.tableName = new
    lake.alterations.alter(TableName("default", old), table)


def test_a_table_is_renamed_with_its_objects(lake: Catalog, bucket: PrivateBucket, top: str) -> None:
    lake.tables.create(new_table("a"))
    for name in OBJECTS[1:]:
        bucket.put(f"{top}/a/{name}")
    rename(lake, "a", "b")
    assert lake.tables.get(TableName("default", "b")).sd.location == f"s3a://{BUCKET}/{top}/b"
    assert bucket.keys(f"{top}/") == ["", *(f"b/{name}" for name in OBJECTS)]
    assert pending(lake) == []


def test_a_rename_whose_copies_fail_changes_nothing(lake: Catalog, bucket: PrivateBucket, top: str) -> None:
    lake.tables.create(new_table("a"))
    bucket.put(f"{top}/a/f")
    bucket.fail(" from ", code="AccessDenied", status=403, after=1)
    with pytest.raises(InvalidOperationException) as refused:
        rename(lake, "a", "b")
    assert "bucket lake refuses the gateway: AccessDenied" in refused.value.message
    assert lake.tables.get(TableName("default", "a")).sd.location == f"s3a://{BUCKET}/{top}/a"
    assert bucket.keys(f"{top}/") == ["", "a/", "a/f"]
    assert pending(lake) == []


def test_both_places_are_whole_until_the_change_is_committed(
    lake: Catalog, bucket: PrivateBucket, top: str, places: tuple[str, str]
) -> None:
    moves = moves_of(lake)
    with moves.moved(TABLE, *places) as move:
        assert bucket.keys(f"{top}/a/") == bucket.keys(f"{top}/b/") == OBJECTS
        settle(lake, moves, move)
        assert bucket.keys(f"{top}/a/") == OBJECTS
    assert (bucket.keys(f"{top}/a/"), bucket.keys(f"{top}/b/")) == ([], OBJECTS)
    assert pending(lake) == []


def test_copies_go_when_the_change_fails(
    lake: Catalog, bucket: PrivateBucket, top: str, places: tuple[str, str]
) -> None:
    with pytest.raises(ValueError), moves_of(lake).moved(TABLE, *places):
        raise ValueError
    assert (bucket.keys(f"{top}/a/"), bucket.keys(f"{top}/b/")) == (OBJECTS, [])
    assert pending(lake) == []


def test_originals_that_could_not_be_deleted_go_at_the_next_start_and_later_objects_stay(
    lake: Catalog, bucket: PrivateBucket, top: str, places: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    moves = moves_of(lake)
    bucket.let_pass(seconds=5)
    with moves.moved(TABLE, *places) as move:
        settle(lake, moves, move)
        bucket.fail("POST", code="AccessDenied", status=403)
    assert f"Originals of {places[1]} stay at {places[0]} until the next start: bucket lake refuses" in caplog.text
    bucket.let_pass(seconds=10)
    bucket.put(f"{top}/a/p=1/f")
    assert moves.recover() == 1
    assert (bucket.keys(f"{top}/a/"), bucket.keys(f"{top}/b/")) == (["p=1/f"], OBJECTS)
    assert pending(lake) == []


def test_after_a_crash_among_the_copies_the_old_place_is_whole(
    lake: Catalog, bucket: PrivateBucket, top: str, places: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    moves = moves_of(lake)
    bucket.let_pass(seconds=5)
    lake.store.write(lambda tx: tx.insert_pending_move(TABLE, *places))
    bucket.put(f"{top}/b/p=1/f")
    assert moves.recover() == 1
    assert (bucket.keys(f"{top}/a/"), bucket.keys(f"{top}/b/")) == (OBJECTS, ["p=1/f"])
    assert f"Objects stay at {places[1]}" in caplog.text
    assert pending(lake) == []
    with pytest.raises(FileSystemError, match="exists already"), moves.moved(TABLE, *places):
        pass


def test_a_move_that_another_start_takes_back_deletes_its_copies(
    lake: Catalog, bucket: PrivateBucket, top: str, places: tuple[str, str]
) -> None:
    moves = moves_of(lake)

    def change() -> None:
        with moves.moved(TABLE, *places) as move:
            moves_of(lake).recover()
            settle(lake, moves, move)

    with pytest.raises(MoveTakenBack):
        change()
    assert (bucket.keys(f"{top}/a/"), bucket.keys(f"{top}/b/")) == (OBJECTS, [])
    assert pending(lake) == []


def test_one_move_at_a_time_has_copies_at_a_place(
    lake: Catalog, bucket: PrivateBucket, top: str, places: tuple[str, str]
) -> None:
    lake.store.write(lambda tx: tx.insert_pending_move(TABLE, f"s3a://{BUCKET}/{top}/c", places[0]))
    with pytest.raises(FileSystemError, match="are being moved by another call; try again later"):
        moves_of(lake).moved(TABLE, *places).__enter__()
    assert bucket.keys(f"{top}/b/") == []
