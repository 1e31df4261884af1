"""Where things lie: pages by key, and what lies elsewhere without what cannot."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from hms_gateway.catalog.directories.known_places import Candidate, KnownPlaces
from hms_gateway.catalog.directories.places import PartitionsBelow, PlaceRows
from hms_gateway.catalog.rights.keeper import RightsRows
from hms_gateway.metastore.ports.store import StoredTable, Transaction
from hms_gateway.rpc.structs import Database
from hms_gateway.storage.files.directories import Directories
from hms_gateway.storage.writing.store import SqlStore
from tests.contract.objects import TABLE_LOCATION, create, database, descriptor, partition, table

T = TypeVar("T")

ROOT = "file:/warehouse/"
VALUES = [["a", "1"], ["a", "2"], ["ab", "1"]]


def read(store: SqlStore, work: Callable[[PlaceRows], T]) -> T:
    return store.read(lambda snapshot: work(PlaceRows(snapshot)))


def _insert(new: Database, tx: Transaction) -> None:
    tx.insert_database(new)


def create_at(
    store: SqlStore, name: str, location: str | None, values: Sequence[Sequence[str]] = (), **fields: Any
) -> StoredTable:
    return create(store, table(name, sd=descriptor(location), **fields), values)


def test_databases_come_with_both_locations_in_pages(store: SqlStore) -> None:
    for number in range(3):
        new = database(f"d{number}", managedLocationUri=f"file:/managed/{number}" if number else None)
        store.write(partial(_insert, new))
    first = read(store, lambda places: places.databases("", 2))
    assert [(one.name, one.locations) for one in first] == [
        ("d0", ("file:/warehouse/d0.db",)),
        ("d1", ("file:/warehouse/d1.db", "file:/managed/1")),
    ]
    assert [one.name for one in read(store, lambda places: places.databases("d1", 2))] == ["d2"]


def test_tables_come_in_pages_with_whose_the_data_are(store: SqlStore) -> None:
    managed = create_at(store, "t", TABLE_LOCATION, VALUES)
    external = create_at(store, "e", "file:/x/e", parameters={"EXTERNAL": "true"})
    view = create_at(store, "v", "file:/x/v", tableType="VIRTUAL_VIEW")
    found = read(store, lambda places: places.tables(0, 10))
    assert [(one.table_id, str(one), one.location, one.owns_data) for one in found] == [
        (managed.table_id, "sales.t", TABLE_LOCATION, True),
        (external.table_id, "sales.e", "file:/x/e", False),
        (view.table_id, "sales.v", "file:/x/v", False),
    ]
    assert (found[0].partition_keys, found[0].partition_count) == (("k0", "k1"), 3)
    assert read(store, lambda places: places.tables(managed.table_id, 1)) == [found[1]]
    assert read(store, lambda places: places.tables_with_ids([view.table_id, 99])) == [found[2]]


def test_partitions_come_with_whole_locations(store: SqlStore) -> None:
    stored = create(store, values=VALUES)
    odd = partition(stored.table, ["z", "1"], sd=descriptor("hdfs://elsewhere/z"))
    placeless = partition(stored.table, ["z", "2"], sd=None)
    store.write(lambda tx: tx.insert_partitions(stored, [odd, placeless]))
    found = read(store, lambda places: places.partitions(0, 10))
    assert [(one.name, one.location) for one in found] == [
        ("k0=a/k1=1", f"{TABLE_LOCATION}/k0=a/k1=1"),
        ("k0=a/k1=2", f"{TABLE_LOCATION}/k0=a/k1=2"),
        ("k0=ab/k1=1", f"{TABLE_LOCATION}/k0=ab/k1=1"),
        ("k0=z/k1=1", "hdfs://elsewhere/z"),
        ("k0=z/k1=2", None),
    ]
    assert read(store, lambda places: places.partitions(found[0].partition_id, 2)) == found[1:3]
    names = ["k0=ab/k1=1", "k0=no/k1=1"]
    assert read(store, lambda places: places.partitions_named(stored.table_id, names)) == [found[2]]


def test_parts_of_names_are_whole(store: SqlStore) -> None:
    stored = create(store, values=[["ab", "1"]])

    def has(path: str) -> bool:
        return read(store, lambda places: places.has_partitions_below(stored.table_id, path))

    assert has("k0=ab")
    assert not has("k0=a")
    assert not has("k0=ab/k1=1")
    assert not has("k0=\udcff")


def test_what_lies_elsewhere(store: SqlStore) -> None:
    create_at(store, "inside", TABLE_LOCATION, VALUES)
    out = create_at(store, "out", "file:/old/out", VALUES)
    create_at(store, "near", "file:/warehouses/near")
    create_at(store, "nowhere", None)
    create_at(store, "shy", "file:/old/shy", VALUES, parameters={"EXTERNAL": "true"})
    create_at(store, "ext", "file:/old/ext", VALUES, tableType="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"})
    mixed = create_at(store, "mixed", f"{ROOT}mixed", VALUES)
    new = [
        partition(mixed.table, ["x", str(number)], sd=descriptor(place))
        for number, place in enumerate(["file:/old/1", "file:/old/2", f"{ROOT}other"])
    ]
    store.write(lambda tx: tx.insert_partitions(mixed, new))

    tables = read(store, lambda places: places.owned_tables_elsewhere([ROOT], 0, 10))
    assert [one.name for one in tables if one.owns_data] == ["out", "near"]
    assert [one.name for one in read(store, lambda places: places.owned_tables_elsewhere([ROOT], out.table_id, 1))] == [
        "near"
    ]
    assert sorted(read(store, lambda places: places.owned_partitions_elsewhere([ROOT])), key=str) == [
        PartitionsBelow("sales.mixed", "file:/old/1", 2),
        PartitionsBelow("sales.out", "file:/old/out", 3),
    ]
    assert read(store, lambda places: places.owned_tables_elsewhere(["file:/"], 0, 10)) == []


def test_a_unit_of_work_sees_what_came_since_a_pass(store: SqlStore, tmp_path: Path) -> None:
    root = f"file:{tmp_path}"
    known = KnownPlaces(store, Directories(roots=[root]))
    create_at(store, "t", f"{root}/t", VALUES)
    candidates = [Candidate("table", f"{root}/{name}") for name in ("t", "new", "lost")]
    found = known.unknown(candidates)
    assert found == candidates[1:]
    create_at(store, "new", f"{root}/new")
    assert store.write(lambda tx: known.still_unknown(found, tx)) == candidates[2:]
    assert known.unknown_again(found) == candidates[2:]


def test_tables_are_found_by_a_part_of_their_location(store: SqlStore) -> None:
    for name, location in (("a", "file:/w/x_%/a-1"), ("b", "file:/w/x_%/a-1/b"), ("c", "file:/w/xyz/a-1"), ("d", None)):
        create_at(store, name, location)

    def placed(directory: str) -> list[tuple[str, str]]:
        found = store.read(lambda snapshot: RightsRows(snapshot).tables_placed(directory))
        return sorted((owner.table, location) for owner, location in found)

    assert placed("file:/w/x_%/a-1") == [("a", "file:/w/x_%/a-1"), ("b", "file:/w/x_%/a-1/b")]
    assert placed("file:/w/\udcff") == placed("file:/w/x_%/a") == placed("s3:/w/x_%/a-1") == []
