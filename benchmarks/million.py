"""A table of a million partitions behind the real server: `python -m benchmarks.million [--partitions N] [--only …]`.

On SQLite, and on a PostgreSQL and a MariaDB of its own, over HTTPS, and nothing any call asks for is cached: names, the
whole listing while it is streamed, filters with one hit and with half of all, single reads, 10,000 more, dropping 5,000
by their names and the table. Memory is that of the server process, first byte that of the reply's body.
"""

import argparse
import http.client
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import Final, NamedTuple

import msgspec

from benchmarks.report import print_table
from benchmarks.server import descriptor, peak_resident_bytes, resident_bytes
from hms_gateway.metastore.ports.store import NewPartition
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.rpc.idl import StructType
from hms_gateway.rpc.structs import (
    AddPartitionsRequest,
    Database,
    DropPartitionsRequest,
    FieldSchema,
    Partition,
    RequestPartsSpec,
    Struct,
    Table,
)
from hms_gateway.rpc.wire.tjson_codec import encode_value
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.migrations.revisions import migrate
from hms_gateway.storage.writing.store import open_store
from tests.support.private_mariadb import MariadbUnavailable, PrivateMariadb
from tests.support.private_postgres import PostgresUnavailable, PrivatePostgres
from tests.support.server import API_PATH, GatewayServer, basic

KEYS: Final = (("ds", "string"), ("hr", "int"), ("number", "bigint"), ("day", "date"))
LOCATION: Final = "hdfs://namenode.example:9000/warehouse/sales.db/parts"
PARAMETERS: Final = {
    "transient_lastDdlTime": "1700000000",
    "numFiles": "1",
    "totalSize": "108",
    "numRows": "10",
    "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}',
}
BATCH: Final = 10_000
DROPPED: Final = 5_000
RUNS: Final = 5
MIB: Final = 1 << 20


class Taken(NamedTuple):
    first: float
    whole: float
    size: int


def values(number: int) -> list[str]:
    """All but the hour are of one partition only; there are about as many days as the calendar has."""
    return [f"run-{number:08}", str(number % 24), str(number), date.fromordinal(1_000_000 + number).isoformat()]


def partition(number: int) -> Partition:
    name = make_name([key for key, _ in KEYS], values(number))
    where = descriptor(f"{LOCATION}/{name}")
    return Partition(values(number), "sales", "parts", 1_700_000_000, 0, where, PARAMETERS)


def fill(url: str, count: int) -> float:
    """Seconds it took."""
    migrate(url)
    store = open_store(url, SystemClock(), Limits())
    table = Table(
        tableName="parts", dbName="sales", owner="bench", createTime=0, lastAccessTime=0, retention=0,
        sd=descriptor(LOCATION), partitionKeys=[FieldSchema(*key) for key in KEYS], parameters=PARAMETERS,
        tableType="MANAGED_TABLE",
    )  # fmt: skip
    begin = perf_counter()
    database_id = store.write(lambda tx: tx.insert_database(Database("sales", None, "file:/warehouse/sales.db", {})))
    store.write(lambda tx: tx.insert_table(database_id, table))
    stored = store.read(lambda snapshot: snapshot.table("sales", "parts"))
    for start in range(0, count, BATCH):
        batch = [partition(number) for number in range(start, min(start + BATCH, count))]
        new = [NewPartition(make_name([key for key, _ in KEYS], one.values), one) for one in batch]
        store.write(lambda tx, new=new: tx.insert_partitions(stored, new))
    taken = perf_counter() - begin
    store.close()
    return taken


class Caller:
    """One kept connection."""

    def __init__(self, server: GatewayServer, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self._headers = basic(server.user, server.password)
        connection.connect()

    def call(self, method: str, arguments: dict[str, object] | Struct) -> Taken:
        """With a request struct, or with all arguments. Raises AssertionError for a reply that is an exception."""
        if isinstance(arguments, Struct):
            arguments = {"1": {"rec": msgspec.Raw(encode_value(StructType(type(arguments).__name__), arguments))}}
        body = msgspec.json.encode([1, method, 1, 1, arguments])
        begin = perf_counter()
        self._connection.request("POST", API_PATH, body, self._headers)
        answer = self._connection.getresponse()
        start = answer.read(200)
        first, size = perf_counter() - begin, len(start)
        while chunk := answer.read(1 << 18):
            size += len(chunk)
        taken = Taken(first, perf_counter() - begin, size)
        assert answer.status == 200, start
        assert b'{"1":{"rec"' not in start[:60], start
        return taken


@contextmanager
def calling(server: GatewayServer) -> Iterator[Caller]:
    with server.connection(timeout_seconds=600) as connection:
        yield Caller(server, connection)


def of_table(**more: object) -> dict[str, object]:
    """Arguments 1 and 2 of every call about the table, then others."""
    return {"1": {"str": "sales"}, "2": {"str": "parts"}, **{name[1:]: value for name, value in more.items()}}


def filtered(text: str, method: str = "get_partitions_by_filter") -> Callable[[Caller], Taken]:
    more = {} if method == "get_num_partitions_by_filter" else {"_4": {"i16": -1}}
    return lambda caller: caller.call(method, of_table(_3={"str": text}, **more))


def row(what: str, taken: list[Taken], goal: str, memory: str = "") -> tuple[str, str, str, str, str, str]:
    """Medians."""
    first, whole = (statistics.median(one[field] for one in taken) * 1000 for field in (0, 1))
    return what, f"{first:.1f}", f"{whole:,.1f}", f"{taken[0].size / 1e6:.3f}", memory, goal


def measure(server: GatewayServer, count: int) -> list[tuple[str, str, str, str, str, str]]:
    rows = [("idle", "", "", "", f"{resident_bytes(server.pid) / MIB:.0f}", "")]
    with calling(server) as caller:
        rows += small(caller, count)
        for what, method, goal in (
            ("get_partition_names, all", "get_partition_names", "300 MB"),
            ("get_partitions, all, streamed", "get_partitions", "first 100 ms, 300 MB"),
        ):
            forget_peak(server.pid)
            taken = [caller.call(method, of_table(_3={"i16": -1})) for _ in range(2)]
            rows.append(row(what, taken, goal, f"{peak_resident_bytes(server.pid) / MIB:.0f}"))
        rows += half(server, caller, count)
        forget_peak(server.pid)
        rows.append(row("add_partitions_req, 10,000 more", [add(caller, count)], "2,000 ms"))
        dropped = [drop(caller, names(turn * DROPPED, DROPPED)) for turn in range(RUNS)]
        rows.append(row(f"drop_partitions_req, {DROPPED:,} names", dropped, ""))
        gone = caller.call("drop_table", of_table(_3={"tf": 1}))
        rows.append(row("drop_table", [gone], "", f"{peak_resident_bytes(server.pid) / MIB:.0f}"))
    return rows


def small(caller: Caller, count: int) -> list[tuple[str, str, str, str, str, str]]:
    """Calls with small answers, each run about another partition, so that no reply is cached."""
    about: dict[str, Callable[[int], Callable[[Caller], Taken]]] = {
        "filter, string, one hit": lambda n: filtered(f"ds = '{values(n)[0]}'"),
        "filter, bigint, one hit": lambda n: filtered(f"number = {n}"),
        "filter, date, one hit": lambda n: filtered(f"day = '{values(n)[3]}'"),
        "filter, hour and number, one hit": lambda n: filtered(f"hr = {n % 24} and number = {n}"),
        "filter, number and hour range, one hit": lambda n: filtered(f"number > {n - 1} and number <= {n} and hr >= 0"),
        "filter, string or date, two hits": lambda n: filtered(f"ds = '{values(n)[0]}' or day = '{values(n + 1)[3]}'"),
        "filter, no hit": lambda n: filtered(f"number = {n + 100_000_000}"),
        "filter, string in (100)": lambda n: filtered(f"(number) in ({', '.join(str(n + i) for i in range(100))})"),
        "filter, like prefix, 10 hits": lambda n: filtered(f"ds like '{values(n)[0][:-1]}.*'"),
        "number of hits, one hour": lambda n: filtered(f"hr = {n % 24}", "get_num_partitions_by_filter"),
        "get_partition": lambda n: lambda c: c.call("get_partition", of_table(_3=texts(values(n)))),
        "get_partitions_by_names, 1,000": lambda n: (
            lambda c: c.call("get_partitions_by_names", of_table(_3=texts(names(n, 1_000))))
        ),
        "get_partitions_ps, leading value": lambda n: (
            lambda c: c.call("get_partitions_ps", of_table(_3=texts(values(n)[:1]), _4={"i16": -1}))
        ),
        "get_partitions_ps, third value": lambda n: (
            lambda c: c.call("get_partitions_ps", of_table(_3=texts(["", "", str(n)]), _4={"i16": -1}))
        ),
        "get_partitions, first 100": lambda n: lambda c: c.call("get_partitions", of_table(_3={"i16": 100 + n % 10})),
    }
    rows = []
    for what, call in about.items():
        taken = [call(count // 2 + 1_001 * turn)(caller) for turn in range(RUNS)]
        rows.append(row(what, taken, "20 ms" if what.startswith("filter") else ""))
    return rows


def half(server: GatewayServer, caller: Caller, count: int) -> list[tuple[str, str, str, str, str, str]]:
    rows = []
    for what, text in (
        ("filter, string, half of all", f"ds >= '{values(count // 2)[0]}'"),
        ("filter, bigint, half of all", f"number < {count // 2}"),
        ("filter, date, half of all", f"day > '{values(count // 2)[3]}'"),
        ("filter, hour, half of all", "hr >= 12"),
    ):
        forget_peak(server.pid)
        taken = [filtered(text)(caller)]
        rows.append(row(what, taken, "", f"{peak_resident_bytes(server.pid) / MIB:.0f}"))
    return rows


def add(caller: Caller, count: int) -> Taken:
    new = [partition(number) for number in range(count, count + BATCH)]
    request = AddPartitionsRequest("sales", "parts", new, False, False)
    return caller.call("add_partitions_req", request)


def drop(caller: Caller, listed: list[str]) -> Taken:
    parts = RequestPartsSpec(names=listed)
    return caller.call("drop_partitions_req", DropPartitionsRequest("sales", "parts", parts, False, needResult=False))


def names(number: int, count: int) -> list[str]:
    return [make_name([key for key, _ in KEYS], values(one)) for one in range(number, number + count)]


def texts(listed: list[str]) -> dict[str, object]:
    return {"lst": ["str", len(listed), *listed]}


def forget_peak(pid: int) -> None:
    """From here on the peak of the process's memory is counted anew."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def report(url: str, folder: Path, count: int) -> None:
    seconds = fill(url, count)
    with GatewayServer(folder / "server", database=url) as server:
        rows = measure(server, count)
    title = f"{count:,} partitions, {url.partition(':')[0].partition('+')[0]} (made in {seconds:.0f} s)"
    columns = ("what", "first byte, ms", "whole, ms", "MB sent", "memory, MiB", "goal")
    print_table(title, columns, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--only", choices=("sqlite", "postgres", "mariadb"))
    options = parser.parse_args()
    if options.only in (None, "sqlite"):
        with tempfile.TemporaryDirectory() as folder:
            report(f"sqlite:///{folder}/metastore.db", Path(folder), options.partitions)
    for kind, own in (("postgres", own_postgres), ("mariadb", own_mariadb)):
        if options.only in (None, kind):
            try:
                with own() as url, tempfile.TemporaryDirectory() as folder:
                    report(url, Path(folder), options.partitions)
            except (PostgresUnavailable, MariadbUnavailable) as reason:
                print(f"no {kind}: {reason}")


@contextmanager
def own_postgres() -> Iterator[str]:
    server = PrivatePostgres()
    try:
        server.start()
        yield server.url()
    finally:
        server.delete()


@contextmanager
def own_mariadb() -> Iterator[str]:
    server = PrivateMariadb("--innodb-buffer-pool-size=256M", "--max-allowed-packet=64M")
    try:
        server.start()
        server.administer("CREATE DATABASE hms")
        yield server.url("hms")
    finally:
        server.delete()


if __name__ == "__main__":
    main()
