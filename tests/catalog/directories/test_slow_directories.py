"""A file system that does not answer holds up the calls that wait for it, and no others."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.rpc.structs import FieldSchema, Partition, SerDeInfo, StorageDescriptor
from tests.support.catalog import Catalog, new_table, to_tjson
from tests.support.partition_calls import PartitionCalls
from tests.support.patience import PATIENCE_SECONDS

KEYS = [FieldSchema("k", "string")]


class Held:
    """Directories of tables whose names begin with "held_" are neither made nor moved nor deleted before `release`."""

    def __init__(self, catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
        self._waiting = threading.Semaphore(0)
        self._is_released = threading.Event()
        files = catalog.files
        for name in ("make_directory", "move_directory", "delete_directory"):
            monkeypatch.setattr(files, name, self._held(getattr(files, name)))
        directory_maker = files.directory_maker
        monkeypatch.setattr(files, "directory_maker", lambda: self._held(directory_maker()))

    def _held(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def held(location: str, *rest: Any) -> Any:
            if "/held_" in location:
                self._waiting.release()
                assert self._is_released.wait(PATIENCE_SECONDS)
            return method(location, *rest)

        return held

    def wait(self, count: int) -> None:
        """Until so many wait at once."""
        for _ in range(count):
            assert self._waiting.acquire(timeout=PATIENCE_SECONDS)

    def release(self) -> None:
        self._is_released.set()


@pytest.fixture
def held(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    for name in ("held_gone", "held_moving", "held_parts"):
        catalog.tables.create(new_table(name, keys=KEYS))
    held = Held(catalog, monkeypatch)
    yield held
    held.release()


def partitions(catalog: Catalog) -> PartitionCalls:
    return PartitionCalls(catalog.store, catalog.files, catalog.clock, catalog.settings, to_tjson)


def add(catalog: Catalog, table: str) -> None:
    where = StorageDescriptor(
        location=f"{catalog.root}/{table}/k=1", cols=[], serdeInfo=SerDeInfo(serializationLib="s")
    )
    partitions(catalog).add(Partition(["1"], "default", table, 0, 0, where, {}))


def rename(catalog: Catalog, name: str, new_name: str) -> None:
    table = catalog.tables.get(TableName("default", name))
    catalog.alterations.alter(TableName("default", name), msgspec.structs.replace(table, tableName=new_name))


def test_a_slow_directory_holds_neither_the_writer_nor_a_connection(catalog: Catalog, held: Held) -> None:
    slow: list[Callable[[], object]] = [
        lambda: catalog.tables.create(new_table("held_new")),
        lambda: catalog.tables.drop(TableName("default", "held_gone"), delete_data=True),
        lambda: rename(catalog, "held_moving", "held_moved"),
        lambda: add(catalog, "held_parts"),
    ]
    with ThreadPoolExecutor(len(slow) + 1) as pool:
        waiting: list[Future[object]] = [pool.submit(each) for each in slow]
        held.wait(len(slow))
        assert catalog.store.connections_in_use == 0
        assert catalog.store._writing.pool.checkedout() == 0  # type: ignore[attr-defined]

        def others() -> None:
            catalog.tables.create(new_table("quick", keys=KEYS))
            add(catalog, "quick")
            rename(catalog, "quick", "renamed")
            catalog.tables.drop(TableName("default", "renamed"), delete_data=True)

        pool.submit(others).result(timeout=PATIENCE_SECONDS)
        assert not any(each.done() for each in waiting)
        held.release()
        for each in waiting:
            each.result(timeout=PATIENCE_SECONDS)
    assert catalog.tables.names("default", None) == ["held_moved", "held_new", "held_parts"]
