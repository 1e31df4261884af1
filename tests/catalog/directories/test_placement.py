"""What the catalog takes outside the roots: nothing that it owns; of what it does not own nothing is touched there."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.rpc.structs import Database, MetaException, Partition, Table, ThriftException
from tests.metastore.partition_world import SALES, World, partition_world, to_tjson
from tests.support.catalog import Catalog, new_table, open_catalog
from tests.support.table_calls import AlterationCalls

EXTERNAL = {"EXTERNAL": "TRUE"}


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The location of a folder with a file, which has to be as it was at the end."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "kept").write_text("kept")
    yield f"file:{folder}"
    assert [path.name for path in folder.rglob("*")] == ["kept"]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with open_catalog(tmp_path) as catalog:
        yield catalog


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with partition_world(tmp_path) as world:
        yield world


def refused(action: Callable[[], object]) -> None:
    with pytest.raises(ThriftException) as raised:
        action()
    assert isinstance(raised.value, MetaException)
    assert "file_roots" in (raised.value.message or "")


def stored(catalog: Catalog, name: str = "t") -> Table:
    return catalog.tables.get(TableName("default", name))


def external(location: str, **more: str) -> Table:
    return new_table(location=location, parameters={**EXTERNAL, **more}, table_type="EXTERNAL_TABLE")


def test_what_is_owned_is_refused_outside_and_what_is_not_is_recorded(catalog: Catalog, outside: str) -> None:
    refused(lambda: catalog.tables.create(new_table(location=f"{outside}/t")))
    refused(lambda: catalog.tables.preview(new_table(location=f"{outside}/t")))
    catalog.tables.create(external(f"{outside}/t"))
    assert stored(catalog).sd.location == f"{outside}/t"  # type: ignore[union-attr]
    assert not {"numFiles", "totalSize"} & set(stored(catalog).parameters or {})
    catalog.tables.drop(TableName("default", "t"), delete_data=True)


def test_purging_an_external_table_outside_deletes_nothing(catalog: Catalog, outside: str) -> None:
    catalog.tables.create(external(outside, **{"external.table.purge": "true"}))
    catalog.tables.drop(TableName("default", "t"), delete_data=True)


def test_altering_follows_the_same_rule(catalog: Catalog, outside: str) -> None:
    name = TableName("default", "t")
    catalog.tables.create(new_table())
    refused(lambda: catalog.alterations.alter(name, new_table(location=outside)))
    catalog.alterations.alter(name, external(outside))
    assert stored(catalog).sd.location == outside  # type: ignore[union-attr]
    assert not {"numFiles", "totalSize"} & set(stored(catalog).parameters or {})
    refused(lambda: catalog.alterations.alter(name, new_table(location=outside)))
    refused(lambda: catalog.alterations.alter(name, new_table("u", location=f"{outside}/u")))
    catalog.alterations.alter(name, new_table(location=f"{catalog.root}/t"))


def test_databases_follow_it_too(catalog: Catalog, outside: str) -> None:
    refused(lambda: catalog.databases.create(Database(name="d", locationUri=f"{outside}/d")))
    refused(lambda: catalog.databases.create(Database(name="d", managedLocationUri=f"{outside}/d")))
    catalog.databases.create(Database(name="d"))
    refused(lambda: catalog.databases.alter("d", Database(locationUri=outside), changes_place=True))
    assert catalog.databases.get("d").locationUri == f"{catalog.root}/d.db"


def test_what_lay_outside_before_can_be_altered_and_dropped_and_stays(catalog: Catalog, outside: str) -> None:
    """Catalogs of versions that managed every directory."""
    name = TableName("default", "t")
    catalog.tables.create(new_table())
    before = catalog.store.read(name.load)
    moved = msgspec.structs.replace(
        before.table,
        sd=msgspec.structs.replace(before.table.sd, location=outside),  # type: ignore[type-var]
    )
    catalog.store.write(lambda tx: tx.update_table(before.table_id, before.database_id, moved))
    catalog.alterations.alter(name, new_table(location=outside, parameters={"comment": "new"}))
    catalog.alterations.alter(name, new_table("renamed", location=outside))
    refused(lambda: catalog.truncations.truncate(TableName("default", "renamed"), None))
    catalog.tables.drop(TableName("default", "renamed"), delete_data=True)


def test_a_move_a_crash_left_outside_waits_for_its_roots(
    catalog: Catalog, outside: str, caplog: pytest.LogCaptureFixture
) -> None:
    catalog.tables.create(new_table())
    table_id = catalog.store.read(TableName("default", "t").load).table_id
    catalog.store.write(lambda tx: tx.insert_pending_move(table_id, f"{catalog.root}/back", outside))
    catalog.alterations.recover_pending_moves()
    assert "name both in file_roots" in caplog.text
    assert len(catalog.store.read(lambda snapshot: snapshot.pending_moves())) == 1
    assert not (catalog.warehouse / "back").exists()


def located(world: World, location: str, *values: str) -> Partition:
    return world.partition(*values, sd=world.descriptor(location))


def test_partitions_go_by_their_table(world: World, outside: str) -> None:
    world.make_table("theirs", parameters=EXTERNAL, tableType="EXTERNAL_TABLE")
    additions, changes = world.calls, world.calls
    refused(lambda: additions.add(located(world, f"{outside}/p", "a", "1")))
    refused(lambda: additions.add_all([world.partition("b", "1"), located(world, f"{outside}/p", "a", "1")]))
    world.add("a", "1")
    refused(lambda: changes.alter(SALES, located(world, outside, "a", "1")))
    changes.rename(SALES, ["a", "1"], located(world, outside, "a", "2"))
    renamed = world.calls.get(SALES, ["a", "2"])
    assert renamed.sd is not None
    assert renamed.sd.location == world.location("shop.db/sales/ds=a/hr=2")
    assert world.names() == ["ds=a/hr=2"]
    assert not world.path("shop.db/sales/ds=b").exists()
    added = world.add("a", "1", table="theirs", sd=world.descriptor(f"{outside}/p"))
    assert added.sd is not None
    assert added.sd.location == f"{outside}/p"
    assert not {"numFiles", "totalSize"} & set(added.parameters or {})


def test_exchange_brings_nothing_from_outside_under_a_table_that_owns_its_data(world: World, outside: str) -> None:
    world.make_table("theirs", parameters=EXTERNAL, tableType="EXTERNAL_TABLE", sd=world.descriptor(outside))
    world.add("a", "1", table="theirs", sd=world.descriptor(f"{outside}/ds=a/hr=1"))
    theirs = TableName("shop", "theirs")
    refused(lambda: world.calls.exchange({"ds": "a", "hr": "1"}, theirs, SALES))
    world.add("b", "1")
    refused(lambda: world.calls.exchange({"ds": "b", "hr": "1"}, SALES, theirs))


def test_a_table_does_not_become_the_owner_of_partitions_outside(world: World, outside: str) -> None:
    table = world.make_table("theirs", parameters=EXTERNAL, tableType="EXTERNAL_TABLE")
    world.add("a", "1", table="theirs", sd=world.descriptor(f"{outside}/p"))
    alterations = AlterationCalls(
        world.store, world.files, world.clock, world.settings, EventMaker(world.clock, to_tjson)
    )
    owned = msgspec.structs.replace(table, parameters={}, tableType="MANAGED_TABLE")
    refused(lambda: alterations.alter(TableName("shop", "theirs"), owned))
    world.calls.drop(TableName("shop", "theirs"), ["a", "1"], deletes_data=True)
    alterations.alter(TableName("shop", "theirs"), owned)
