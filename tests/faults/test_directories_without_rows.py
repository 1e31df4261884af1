"""A gateway killed between making directories and storing rows: a check removes what it left, and nothing else."""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from hms_gateway.catalog.directories.known_places import KnownPlaces
from hms_gateway.catalog.directories.unknown import DirectoryRemoval, UnknownDirectories, UnknownDirectory
from hms_gateway.client.metastore_client import ClientError, MetastoreClient
from hms_gateway.rpc.structs import Database, Partition
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.files.directories import Directories
from hms_gateway.storage.writing.store import SqlStore, open_store
from tests.support.catalog import columns, new_table
from tests.support.patience import PATIENCE_SECONDS, until
from tests.support.server import GatewayServer, trusting

CREATORS = 2
ROUNDS = 40
HOUR = 3_600


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayServer]:
    with GatewayServer(tmp_path / "gateway") as running:
        with client_of(running) as client:
            client.call("create_database", Database(name="sales"))
            client.call("create_table", new_table("orders", "sales", keys=columns("y string", "m string")))
            client.call("append_partition_by_name", "sales", "orders", "y=1/m=1")
        yield running


@pytest.fixture
def warehouse(gateway: GatewayServer) -> Path:
    return gateway.data_dir / "warehouse"


def client_of(gateway: GatewayServer) -> MetastoreClient:
    return MetastoreClient(gateway.url, (gateway.user, gateway.password), trusting())


class Checker:
    """What `hms-gateway check --remove` does, without a process for each time."""

    def __init__(self, store: SqlStore, warehouse: Path, older_than_seconds: float) -> None:
        self._store = store
        self._root = f"file:{warehouse}"
        self._older_than_seconds = older_than_seconds
        self.problems: list[str] = []

    def found(self, *, removes: bool) -> list[str]:
        """What has no row, and is old enough; removed if asked for."""
        files = Directories(roots=[self._root])
        known = KnownPlaces(self._store, files)
        removal = DirectoryRemoval(self._store, files, known, self._is_old, with_files=False)
        unknown = UnknownDirectories(self._store, files, self._root, self._problem, puts_back=removes)
        found = []
        for group in unknown.find(known):
            measured = [UnknownDirectory(one, tree) for one in group if (tree := files.measure(one.location))]
            old = [one for one in measured if self._is_old(one.tree)]
            if removes:
                old = [one for one in removal.remove(old) if one.is_removed]
            found += [one.candidate.location.removeprefix(f"{self._root}/") for one in old]
        return sorted(found)

    def _is_old(self, tree: object) -> bool:
        return time.time() - tree.newest_seconds >= self._older_than_seconds  # type: ignore[attr-defined, no-any-return]

    def _problem(self, location: str, reason: str) -> None:
        self.problems.append(f"{location}: {reason}")


@pytest.fixture
def store(gateway: GatewayServer) -> Iterator[SqlStore]:
    with closing(open_store(f"sqlite:///{gateway.data_dir}/metastore.db", SystemClock(), Limits())) as opened:
        yield opened


def test_what_a_killed_gateway_left_is_found_and_removed_and_nothing_else(
    gateway: GatewayServer, warehouse: Path, store: SqlStore
) -> None:
    before = directories(warehouse)
    added = new_partitions(gateway)
    # No more than a busy gateway lets one user make at a time.
    calls: list[Callable[[MetastoreClient], object]] = [
        lambda client: client.call("create_table", new_table("t", "sales")),
        lambda client: client.call("add_partitions", added),
    ]
    left = {"sales.db/t", "sales.db/orders/y=1/m=2"}
    left |= {"sales.db/orders/y=2", *(f"sales.db/orders/y=2/m={number}" for number in range(3))}
    # The rows wait for the lock of the database, the directories do not.
    with closing(sqlite3.connect(gateway.data_dir / "metastore.db", isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        threads = [threading.Thread(target=quietly, args=(gateway, call)) for call in calls]
        for thread in threads:
            thread.start()
        until(lambda: directories(warehouse) == before | left, f"left: {left}")
        gateway.kill()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
        holder.execute("ROLLBACK")
    gateway.start()
    checker = Checker(store, warehouse, 0)
    wanted = ["sales.db/orders/y=1/m=2", "sales.db/orders/y=2", "sales.db/t"]
    assert Checker(store, warehouse, HOUR).found(removes=True) == []
    assert checker.found(removes=False) == wanted
    assert checker.found(removes=True) == wanted
    assert directories(warehouse) == before
    assert checker.problems == []


def test_no_directory_of_a_table_is_removed_while_tables_are_made(
    gateway: GatewayServer, warehouse: Path, store: SqlStore
) -> None:
    """Each finds a directory that was left an hour ago, while checks look for just these."""
    failures: list[str] = []
    removed: list[str] = []
    creators = [
        threading.Thread(target=create, args=(gateway, warehouse, number, failures)) for number in range(CREATORS)
    ]
    for creator in creators:
        creator.start()
    checker = Checker(store, warehouse, HOUR / 2)
    while any(creator.is_alive() for creator in creators):
        removed += checker.found(removes=True)
    for creator in creators:
        creator.join(PATIENCE_SECONDS)
    assert failures == []
    assert checker.problems == []
    with client_of(gateway) as client:
        assert len(client.call("get_all_tables", "sales")) == 1 + CREATORS * ROUNDS
        for name in client.call("get_all_tables", "sales"):
            assert (warehouse / "sales.db" / name).is_dir(), name
        for name in client.call("get_partition_names", "sales", "orders", -1):
            assert (warehouse / "sales.db" / "orders" / name).is_dir(), name
    assert not [path for path in directories(warehouse) if "/." in path]


def create(gateway: GatewayServer, warehouse: Path, number: int, failures: list[str]) -> None:
    database = warehouse / "sales.db"
    try:
        with client_of(gateway) as client:
            for count in range(ROUNDS):
                name = f"t_{number}_{count}"
                leave(database / name)
                client.call("create_table", new_table(name, "sales"))
                expect(database / name, failures)
                leave(database / "orders" / f"y={number + 10}" / f"m={count}")
                client.call("append_partition_by_name", "sales", "orders", f"y={number + 10}/m={count}")
                expect(database / "orders" / f"y={number + 10}" / f"m={count}", failures)
    except Exception as error:
        failures.append(repr(error))


def leave(path: Path) -> None:
    """A directory as a gateway left it that was killed an hour ago."""
    path.mkdir(parents=True, exist_ok=True)
    for one in (path, path.parent):
        with suppress(FileNotFoundError):  # a check was here already
            os.utime(one, (time.time() - HOUR, time.time() - HOUR))


def expect(path: Path, failures: list[str]) -> None:
    if not path.is_dir():
        failures.append(str(path))


def new_partitions(gateway: GatewayServer) -> list[Partition]:
    with client_of(gateway) as client:
        descriptor = client.call("get_table", "sales", "orders").sd
    descriptor.location = None
    values = [["1", "2"], *(["2", str(number)] for number in range(3))]
    return [Partition(dbName="sales", tableName="orders", values=one, sd=descriptor) for one in values]


def quietly(gateway: GatewayServer, call: Callable[[MetastoreClient], object]) -> None:
    with suppress(ClientError), client_of(gateway) as client:
        call(client)


def directories(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_dir()}
