"""Changes on the condition that nothing happened to their object since an event."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_gateway.metastore.changes import fencing
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.rpc.structs import EnvironmentContext, InvalidOperationException, Partition
from tests.metastore.partition_world import NOW, SALES, World, partition_world
from tests.support.catalog import Catalog, new_table, open_catalog


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with partition_world(tmp_path) as opened:
        opened.add("a", "1")
        opened.add("b", "1")
        yield opened


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with open_catalog(tmp_path) as catalog:
        yield catalog


def since(event: object) -> EnvironmentContext:
    return EnvironmentContext({"hms.unchanged.since": str(event), "DO_NOT_UPDATE_STATS": "true"})


def partition(world: World, *values: str, note: str) -> Partition:
    found = world.calls.get(SALES, values)
    found.parameters = {"note": note}
    return found


def alter(world: World, *values: str, note: str = "new", event: object = None) -> None:
    context = None if event is None else since(event)
    world.calls.alter_all(SALES, [partition(world, *values, note=note)], context)


def note(world: World, *values: str) -> str | None:
    return (world.calls.get(SALES, values).parameters or {}).get("note")


def now(world: World) -> int:
    return world.store.version()


def test_an_untouched_partition_changes_and_a_touched_one_does_not(world: World) -> None:
    seen = now(world)
    alter(world, "b", "1", note="others")
    alter(world, "a", "1", note="mine", event=seen)
    with pytest.raises(InvalidOperationException, match=f"event {seen + 1} has changed shop.sales/ds=b/hr=1"):
        alter(world, "b", "1", note="mine", event=seen)
    assert (note(world, "a", "1"), note(world, "b", "1")) == ("mine", "others")
    alter(world, "b", "1", note="mine", event=now(world))
    assert note(world, "b", "1") == "mine"


def test_one_of_many_is_enough_to_refuse_all(world: World) -> None:
    seen = now(world)
    alter(world, "b", "1", note="others")
    both = [partition(world, "a", "1", note="mine"), partition(world, "b", "1", note="mine")]
    with pytest.raises(InvalidOperationException, match="has changed"):
        world.calls.alter_all(SALES, both, since(seen))
    assert note(world, "a", "1") is None


@pytest.mark.parametrize("text", ["", "x", "-1", "٧", "1e3", str(2**70)])
def test_what_is_not_the_id_of_an_event_is_refused(world: World, text: str) -> None:
    with pytest.raises(InvalidOperationException, match="give the id of an event"):
        alter(world, "a", "1", event=text)
    with pytest.raises(InvalidOperationException, match="give the id of an event"):
        alter(world, "a", "1", event=now(world) + 1)


def test_events_that_are_gone_or_too_many_cannot_be_compared(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = now(world)
    for _ in range(3):
        alter(world, "b", "1")
    with monkeypatch.context() as patch:
        patch.setattr(fencing, "EVENTS_MAX", 2)
        with pytest.raises(InvalidOperationException, match="give a newer event"):
            alter(world, "a", "1", event=seen)
    world.store.write(lambda tx: tx.delete_events_before(NOW + 10**9, 100))
    with pytest.raises(InvalidOperationException, match="give a newer event"):
        alter(world, "a", "1", event=seen)
    assert note(world, "a", "1") is None


def test_a_table_too(catalog: Catalog) -> None:
    name = TableName("default", "t")
    catalog.tables.create(new_table())
    seen = catalog.store.version()
    catalog.alterations.alter(name, new_table(parameters={"by": "others"}), since(seen))
    with pytest.raises(InvalidOperationException, match=rf"event {seen + 1} has changed default\.t after event {seen}"):
        catalog.alterations.alter(name, new_table(parameters={"by": "me"}), since(seen))
    assert (catalog.tables.get(name).parameters or {})["by"] == "others"
