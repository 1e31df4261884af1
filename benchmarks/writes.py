"""Changes of the catalog by many clients: `python -m benchmarks.writes [--clients 1 16 64] [--seconds 2] [--only …]`.

With `--locks-implicit` changes are compared with the locks that others hold, of which there are none.
With `--gateways 2` the clients are spread over so many stores on one database, each with its own writer, in one
process: what they do for each change compares, their rates together do not.

On SQLite and on a private PostgreSQL, by the services themselves, without HTTP in between. Beside the rate it shows
what does not depend on who else uses the machine: CPU of the process and of PostgreSQL for each change, statements
(SQLite), and how often PostgreSQL waited for the next message (about one for each round trip).
"""

import argparse
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final

from sqlalchemy import event

from benchmarks.report import print_table
from benchmarks.storage import descriptor
from hms_gateway.catalog.tables.databases import create_default_database
from hms_gateway.gateway.server import SWITCH_SECONDS
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.rpc.idl import StructType
from hms_gateway.rpc.structs import FieldSchema, Partition, Struct, Table
from hms_gateway.rpc.wire.tjson_codec import encode_value
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.presented import LockCaller, locking
from hms_gateway.storage.files.directories import Directories
from hms_gateway.storage.migrations.revisions import migrate
from hms_gateway.storage.writing.store import SqlStore, open_store
from tests.support.partition_calls import PartitionCalls
from tests.support.private_postgres import PostgresUnavailable, PrivatePostgres
from tests.support.table_calls import AlterationCalls, TableCalls

ALTERED_AT_ONCE: Final = 100
TICKS: Final = os.sysconf("SC_CLK_TCK")


def to_tjson(struct: Struct) -> bytes:
    return encode_value(StructType(type(struct).__name__), struct)


class Changes:
    """What clients do. Each is called with the number of the client and of its call."""

    def __init__(self, store: SqlStore, folder: str) -> None:
        self.root = f"file:{folder}/warehouse"
        parts = (
            store,
            Directories({}, [self.root]),
            SystemClock(),
            MetastoreSettings(warehouse_location=self.root),
        )
        events = EventMaker(parts[2], to_tjson)
        create_default_database(*parts, events)
        self.tables = TableCalls(*parts, events)
        self.alterations = AlterationCalls(*parts, events)
        self.partitions = PartitionCalls(*parts, to_tjson)

    def table(self, name: str, keys: tuple[str, ...] = ()) -> Table:
        return Table(
            tableName=name, dbName="default", owner="bench", tableType="MANAGED_TABLE", parameters={"a": "b"},
            sd=descriptor(f"{self.root}/{name}"), partitionKeys=[FieldSchema(key, "string") for key in keys],
        )  # fmt: skip

    def prepare(self, clients: int) -> None:
        for client in range(clients):
            self.tables.create(self.table(f"own_{clients}_{client}", ("ds",)))
            name = TableName("default", f"own_{clients}_{client}")
            self.partitions.add_to(
                name, [self.partition(name.tbl_name or "", f"p{number}") for number in range(ALTERED_AT_ONCE)]
            )
        self.tables.create(self.table(f"shared_{clients}", ("ds",)))

    def partition(self, table: str, value: str) -> Partition:
        where = descriptor(f"{self.root}/{table}/ds={value}")
        return Partition([value], "default", table, 0, 0, where, {"numFiles": "0", "totalSize": "0"})

    def create_and_drop(self, clients: int, client: int, number: int) -> None:
        name = f"t_{client}_{number}"
        self.tables.create(self.table(name))
        self.tables.drop(TableName("default", name), delete_data=True)

    def add_to_one(self, clients: int, client: int, number: int) -> None:
        self.partitions.add(self.partition(f"shared_{clients}", f"{client}-{number}"))

    def add_to_own(self, clients: int, client: int, number: int) -> None:
        self.partitions.add(self.partition(f"own_{clients}_{client}", f"{client}-{number}"))

    def get_and_alter(self, clients: int, client: int, number: int) -> None:
        name = TableName("default", f"own_{clients}_{client}")
        found = self.tables.get(name)
        found.parameters = {**(found.parameters or {}), "numRows": str(number)}
        self.alterations.alter(name, found)

    def alter_many(self, clients: int, client: int, number: int) -> None:
        name = f"own_{clients}_{client}"
        changed = [self.partition(name, f"p{partition}") for partition in range(ALTERED_AT_ONCE)]
        for partition in changed:
            partition.parameters = {"numRows": str(number), **(partition.parameters or {})}
        self.partitions.alter_all(TableName("default", name), changed)

    def all(self) -> Mapping[str, Callable[[int, int, int], None]]:
        return {
            "create + drop": self.create_and_drop,
            "add_partition, one table": self.add_to_one,
            "add_partition, own tables": self.add_to_own,
            "get + alter": self.get_and_alter,
            f"alter_partitions of {ALTERED_AT_ONCE}": self.alter_many,
        }


class Counters:
    """CPU, statements and waits so far: of this process, and of the server processes below `server_folder`."""

    def __init__(self, stores: Sequence[SqlStore], server_folder: Path | None) -> None:
        self._server_folder = server_folder
        self._statements = 0
        for store in stores if server_folder is None else ():
            store._pool.close_idle()
            for engine in (store._reading, store._writing):
                event.listen(engine, "checkout", self._traced)
                engine.dispose()

    def _traced(self, connection: Any, record: Any, proxy: Any) -> None:
        connection.set_trace_callback(self._count)

    def _count(self, statement: str) -> None:
        self._statements += 1

    def read(self) -> dict[str, float]:
        server, waits = 0.0, 0
        if self._server_folder is not None:
            postmaster = int((self._server_folder / "postmaster.pid").read_text().split()[0])
            for status in Path("/proc").glob("[0-9]*/stat"):
                try:
                    fields = status.read_text().rpartition(")")[2].split()
                    if int(fields[1]) == postmaster:
                        server += (int(fields[11]) + int(fields[12])) / TICKS
                        waits += _voluntary_switches(status.with_name("status"))
                except OSError:
                    continue
        return {"own": process_time(), "server": server, "statements": self._statements + waits}


def _voluntary_switches(status: Path) -> int:
    for line in status.read_text().splitlines():
        if line.startswith("voluntary_ctxt_switches"):
            return int(line.split()[1])
    return 0


def measure(
    changes: Sequence[Callable[[int, int, int], None]],
    clients: int,
    seconds: float,
    counters: Counters,
    caller: LockCaller | None,
) -> list[str]:
    """Changes a second, and for each: CPU of the process and of PostgreSQL, statements or waits."""
    counts = [0] * clients
    failures: list[BaseException] = []
    end = perf_counter() + seconds

    def run(client: int) -> None:
        try:
            with nullcontext() if caller is None else locking(caller):
                while perf_counter() < end:
                    changes[client % len(changes)](clients, client, counts[client])
                    counts[client] += 1
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(client,)) for client in range(clients)]
    before, start = counters.read(), perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took, after = perf_counter() - start, counters.read()
    if failures:
        raise failures[0]
    done = sum(counts)
    spent = {name: (after[name] - before[name]) / done for name in before}
    return [
        f"{done / took:,.0f}",
        f"{spent['own'] * 1e6:,.0f}",
        f"{spent['server'] * 1e6:,.0f}",
        f"{spent['statements']:.1f}",
    ]


@contextmanager
def databases(wanted: list[str]) -> Iterator[dict[str, tuple[str, Path | None]]]:
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, tuple[str, Path | None]] = {"SQLite": (f"sqlite:///{folder}/catalog.sqlite", None)}
        postgres = None
        try:
            if "postgres" in wanted:
                postgres = PrivatePostgres()
                postgres.start()
                found["PostgreSQL"] = (postgres.url(), postgres._data)
        except PostgresUnavailable as reason:
            print(reason, file=sys.stderr)
        try:
            yield {name: each for name, each in found.items() if name.lower().startswith(tuple(wanted))}
        finally:
            if postgres is not None:
                postgres.delete()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--gateways", type=int, default=1)
    parser.add_argument("--only", default="", help="changes whose name contains this")
    parser.add_argument("--locks-implicit", action="store_true")
    parser.add_argument("--databases", nargs="+", default=["sqlite", "postgres"])
    options = parser.parse_args()
    caller = LockCaller("bench", "127.0.0.1", 300_000) if options.locks_implicit else None
    sys.setswitchinterval(SWITCH_SECONDS)
    columns = ("change", "clients", "a second", "CPU µs", "server µs", "statements, waits")
    with databases(options.databases) as found:
        for kind, (url, server_folder) in found.items():
            migrate(url)
            rows = []
            with tempfile.TemporaryDirectory() as folder:
                stores = [open_store(url, SystemClock(), Limits()) for _ in range(options.gateways)]
                changes, counters = [Changes(store, folder) for store in stores], Counters(stores, server_folder)
                for clients in options.clients:
                    changes[0].prepare(clients)
                    for name in changes[0].all():
                        if options.only in name:
                            of_all = [each.all()[name] for each in changes]
                            rows.append((name, clients, *measure(of_all, clients, options.seconds, counters, caller)))
                for store in stores:
                    store.close()
            print_table(f"Changes, {kind}", columns, rows)


if __name__ == "__main__":
    main()
