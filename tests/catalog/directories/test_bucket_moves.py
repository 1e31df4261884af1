"""Renames of tables in a bucket: the catalog always names a place that has all objects, whatever fails or crashes."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_gateway.catalog.directories.warehouse import DirectoryMoves, MoveTakenBack
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import FileSystemError, PendingMove, TableId
from hms_gateway.rpc.structs import Database, FieldSchema, InvalidOperationException
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


def lasting_originals(lake: Catalog, bucket: PrivateBucket, top: str) -> None:
    """The table `a` is now `b`, and its originals are still at the old place."""
    lake.tables.create(new_table("a"))
    bucket.put(f"{top}/a/f")
    bucket.let_pass(seconds=5)
    bucket.fail("POST", code="AccessDenied", status=403)
    rename(lake, "a", "b")
    bucket.fail()
    assert bucket.keys(f"{top}/") == ["", "a/", "a/f", "b/", "b/f"]


def test_a_drop_leaves_the_old_place_of_a_rename_alone(
    lake: Catalog, bucket: PrivateBucket, top: str, caplog: pytest.LogCaptureFixture
) -> None:
    lasting_originals(lake, bucket, top)
    lake.tables.create(new_table("a"))
    bucket.put(f"{top}/a/new")
    lake.tables.drop(TableName("default", "b"), delete_data=True)
    assert bucket.keys(f"{top}/") == ["", "a/", "a/f", "a/new"]
    assert f"may stay at s3a://{BUCKET}/{top}/a; see whose they are" in caplog.text
    assert pending(lake) == []


@pytest.mark.parametrize(
    ("used_by", "scheme"), [("table", "s3a"), ("table", "s3"), ("table below", "s3a"), ("database", "s3a")]
)
def test_a_start_deletes_nothing_where_the_catalog_has_another_object(
    lake: Catalog, bucket: PrivateBucket, top: str, used_by: str, scheme: str, caplog: pytest.LogCaptureFixture
) -> None:
    lasting_originals(lake, bucket, top)
    old_place = f"{scheme}://{BUCKET}/{top}/a"
    if used_by == "database":
        lake.databases.create(Database(name="other", locationUri=old_place))
    else:
        below = "/below" if used_by == "table below" else ""
        lake.tables.create(new_table("other", location=f"{old_place}{below}"))
    bucket.put(f"{top}/a/f", b"N")
    bucket.let_pass(seconds=20)
    bucket.put(f"{top}/b/f", b"M")
    assert moves_of(lake).recover() == 1
    assert "a/f" in bucket.keys(f"{top}/")
    assert f"stay at s3a://{BUCKET}/{top}/a, which another object of the catalog uses" in caplog.text
    assert pending(lake) == []


def test_a_start_deletes_originals_of_a_partition_in_its_table(lake: Catalog, bucket: PrivateBucket, top: str) -> None:
    keys = [FieldSchema("p", "int", None)]
    lake.tables.create(new_table("t", keys=keys))
    table_id = lake.store.read(TableName("default", "t").load).table_id
    for place in ("p=1", "p=2"):
        bucket.put(f"{top}/t/{place}/f")
        bucket.let_pass(seconds=5)
    new, old = (f"s3a://{BUCKET}/{top}/t/{name}" for name in ("p=2", "p=1"))
    lake.store.write(lambda tx: tx.insert_pending_move(table_id, new, old))
    assert moves_of(lake).recover() == 1
    assert bucket.keys(f"{top}/t/") == ["", "p=2/f"]


def test_an_object_that_the_bucket_keeps_does_not_block_later_renames(
    lake: Catalog, bucket: PrivateBucket, top: str, caplog: pytest.LogCaptureFixture
) -> None:
    lake.tables.create(new_table("a"))
    for name in ("f", "locked"):
        bucket.put(f"{top}/a/{name}")
    bucket.keep(f"{top}/a/locked")
    rename(lake, "a", "b")
    assert f"stay at s3a://{BUCKET}/{top}/a; delete them: bucket lake keeps 1 objects" in caplog.text
    rename(lake, "b", "c")
    assert bucket.keys(f"{top}/") == ["", "a/locked", "c/", "c/f", "c/locked"]
    assert pending(lake) == []


def test_a_start_forgets_a_move_whose_objects_the_bucket_keeps(
    lake: Catalog, bucket: PrivateBucket, top: str, caplog: pytest.LogCaptureFixture
) -> None:
    lasting_originals(lake, bucket, top)
    bucket.let_pass(seconds=20)
    bucket.put(f"{top}/b/f")
    bucket.keep(f"{top}/a/f")
    assert moves_of(lake).recover() == 1
    assert f"stay at s3a://{BUCKET}/{top}/a; delete them: bucket lake keeps 1 objects" in caplog.text
    assert "a/f" in bucket.keys(f"{top}/")
    assert pending(lake) == []


def test_a_database_is_not_deleted_with_a_table_that_spells_its_place_otherwise(
    lake: Catalog, bucket: PrivateBucket, top: str
) -> None:
    lake.databases.create(Database(name="sales"))
    lake.tables.create(new_table("orders", "sales"))
    bucket.put(f"{top}/sales.db/orders/f")
    lake.tables.create(new_table("flat", "sales", location=f"s3://{BUCKET}/{top}/sales.db"))
    lake.tables.drop(TableName("sales", "flat"), delete_data=True)
    assert "orders/f" in bucket.keys(f"{top}/sales.db/")
