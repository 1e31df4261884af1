"""Iceberg's REST catalog: `python -m benchmarks iceberg-rest [--rows loads commits …] [--rounds 5] [--seconds 5]`.

loads     a table with 100 snapshots from memory, whole and as 304, beside get_table from memory, over TLS
commits   to 64 tables by 64 connections, requests made beforehand, on PostgreSQL
appends   by 32 PyIceberg writers without retries to one table, 20 each
prepared  the same appends with their manifests and requests made beforehand; each PUT to the bucket takes 50 ms

In commits and appends Iceberg's own REST adapter takes turns with ours, over HiveCatalog (on the real metastore) and
over JdbcCatalog, with the same PostgreSQL server. ICEBERG_REFERENCE names a folder with two scripts: `peer-start.sh
PORT sqlite|hive [HOST:PORT] [name=value …]` starts the adapter on loopback and prints its pid, `peer-stop.sh PORT`
stops it. Without them, or without Java, these sides are left out, which the output says.
"""

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import httpx
import psycopg

from benchmarks.peer.caller import Address
from benchmarks.peer.load import LoadProcess, MakeScript, Step, repeating
from benchmarks.peer.speech import Binary, CallFailed, HttpReply
from benchmarks.peer.usage import Used, cpu_seconds
from benchmarks.report import print_table
from benchmarks.slow_bucket import BUCKET, options, slow_bucket
from hms_gateway.storage.migrations.revisions import migrate
from tests.iceberg_rest.test_appends import manifest, written_manifests
from tests.oracle.peer import PeerUnavailable, RealMetastore
from tests.support.private_postgres import PrivatePostgres
from tests.support.server import API_PATH, PASSWORD, USER, GatewayServer, free_port

OURS: Final = "gateway"
NAMESPACE: Final = "bench"
AUTHORIZATION: Final = "Basic " + b64encode(f"{USER}:{PASSWORD}".encode()).decode()
_OVER: Final = ["HiveCatalog", "JdbcCatalog"]
TABLES: Final = 64
WRITERS: Final = 32
APPENDS: Final = 20
# Threads of writers in each process.
WRITER_PROCESSES: Final = 4
PUT_SECONDS: Final = 0.05
SCHEMA: Final = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}


class Side(NamedTuple):
    """A catalog that answers. `servers` are its processes, `databases` those of its database server."""

    name: str
    port: int
    path: str
    servers: tuple[int, ...]
    databases: tuple[int, ...] = ()
    is_tls: bool = False

    @property
    def url(self) -> str:
        return f"http{'s' * self.is_tls}://127.0.0.1:{self.port}{self.path}"

    def client(self) -> httpx.Client:
        headers = {"authorization": AUTHORIZATION}
        return httpx.Client(base_url=f"{self.url}/v1", headers=headers, timeout=120, verify=False)

    def request(self, method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
        """As it goes over the wire."""
        named = {"host": "localhost", "authorization": AUTHORIZATION, "content-type": "application/json", **headers}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name.replace('_', '-')}: {value}" for name, value in named.items())]
        lines.append(f"content-length: {len(body)}")
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    def used(self) -> Used:
        return Used(cpu_seconds(self.servers), cpu_seconds(self.databases))


class Rest(Binary):
    """How the load generator knows where an answer ends. Raises CallFailed for one that is neither 200 nor 304."""

    def reply(self, size: int | None = None, *, keeps: bool = False) -> Any:
        return _RestReply(keeps)


class _RestReply(HttpReply):
    def _read_headers(self, headers: bytes) -> None:
        if headers.startswith(b"http/1.1 304"):
            self._missing = 0
        else:
            super()._read_headers(headers)

    def _body(self, data: bytes) -> None:
        """Whatever it is."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", default=list(_ROWS), choices=list(_ROWS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each side in a round")
    parser.add_argument("--over", nargs="*", default=_OVER, choices=_OVER, help="catalogs of the reference")
    given = parser.parse_args()
    for name in given.rows:
        with tempfile.TemporaryDirectory(prefix="hms-bench-") as folder:
            Path(folder).chmod(0o755)  # the account PostgreSQL runs as has to get through
            _ROWS[name](Path(folder), given)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# Loads.


def loads(folder: Path, given: argparse.Namespace) -> None:
    rows = []
    with GatewayServer(folder / "gateway") as gateway:
        side = Side(OURS, gateway.port, "/iceberg", (gateway.pid,), is_tls=True)
        path = f"{side.path}/v1{_TABLE.format(0)}"
        with side.client() as client:
            table = _tables(client, 1)[0]
            for number in range(1, 101):
                file = f"{table['metadata']['location']}/metadata/snap-{number}-0-{'0' * 32}.avro"
                client.post(_TABLE.format(0), content=append_body(table, number, file, number)).raise_for_status()
            tag = client.get(_TABLE.format(0)).headers["etag"]
        message = f'[1,"get_table",1,1,{{"1":{{"str":"{NAMESPACE}"}},"2":{{"str":"table_0"}}}}]'.encode()
        requests = {
            "get_table": side.request("POST", API_PATH, message),
            "loadTable": side.request("GET", path, accept_encoding="gzip"),
            "loadTable, not compressed": side.request("GET", path),
            "loadTable, 304": side.request("GET", path, if_none_match=tag),
        }
        turns: dict[str, list[_Turn]] = {name: [] for name in requests}
        for number in range(given.rounds + 1):
            for name, sent in requests.items():
                turn = _turn(side, [lambda _, sent=sent: repeating([Step(sent, None, "call")])] * 16, given.seconds)
                if number:
                    turns[name].append(turn)
    medians = {name: _medians(taken) for name, taken in turns.items()}
    for name, one in medians.items():
        ratio = f"{one.per_second / medians['get_table'].per_second:.0%}"
        rows.append([name, f"{one.per_second:,.0f}", ratio, f"{one.p50_ms:.2f}", f"{one.p99_ms:.2f}",
                     f"{one.server_ms * 1000:.1f}"])  # fmt: skip
    titles = ("", "calls a second", "of get_table", "p50, ms", "p99, ms", "server CPU, µs")
    print_table("Cached loads of a table with 100 snapshots, 16 clients, TLS, SQLite", titles, rows)


# Commits.


def commits(folder: Path, given: argparse.Namespace) -> None:
    with _sides(folder, given.over) as sides:
        scripts = {side.name: _commit_scripts(side) for side in sides}
        turns: dict[str, list[_Turn]] = {side.name: [] for side in sides}
        for number in range(given.rounds + 1):
            for side in sides if number % 2 else reversed(sides):
                turn = _turn(side, scripts[side.name], given.seconds)
                if number:
                    turns[side.name].append(turn)
    medians = {name: _medians(taken) for name, taken in turns.items()}
    ours = medians[OURS]
    rows = [
        [
            name,
            f"{one.per_second:.0f}",
            f"{ours.per_second / one.per_second:.1f} ×",
            f"{one.server_ms:.2f} + {one.database_ms:.2f}",
            f"{(ours.server_ms + ours.database_ms) / (one.server_ms + one.database_ms):.2f}",
            f"{one.p50_ms:.0f}",
            f"{one.p99_ms:.0f}",
        ]
        for name, one in medians.items()
    ]
    titles = ("", "commits a second", "ours to it", "CPU for a commit, ms", "ours to it", "p50, ms", "p99, ms")
    print_table(f"Commits to {TABLES} tables by as many connections", titles, rows)


def _commit_scripts(side: Side) -> list[MakeScript]:
    """Each client sets a property of its table to one value and to another."""
    with side.client() as client:
        tables = _tables(client, TABLES, {"write.metadata.previous-versions-max": "2"})
    scripts: list[MakeScript] = []
    for number, table in enumerate(tables):
        path = f"{side.path}/v1{_TABLE.format(number)}"
        steps = [Step(side.request("POST", path, property_body(table, value)), None, "call") for value in ("a", "b")]
        scripts.append(lambda _, steps=steps: repeating(steps))
    return scripts


# Appends.


def appends(folder: Path, given: argparse.Namespace) -> None:
    rows = []
    with _sides(folder, given.over) as sides:
        for side in sides:
            with side.client() as client:
                _tables(client, 1, {"hms.append-rebase": "true", "commit.retry.num-retries": "0"})
            rows.append(_appended(side))
    titles = ("", "succeed", "appends a second", "p50, ms", "p95, ms", "CPU for an append, ms", "rows in the table")
    print_table(f"Appends to one table by {WRITERS} PyIceberg writers without retries, {APPENDS} each", titles, rows)


def _appended(side: Side) -> list[str]:
    context = get_context("spawn")
    pipes, processes = [], []
    for number in range(WRITER_PROCESSES):
        here, there = context.Pipe()
        processes.append(context.Process(target=_append_when_asked, args=(there, side.url, number), daemon=True))
        pipes.append(here)
    for process in processes:
        process.start()
    for pipe in pipes:
        pipe.recv()
    before, begin = side.used(), time.monotonic()
    for pipe in pipes:
        pipe.send("go")
    times = [one for pipe in pipes for one in pipe.recv()]
    seconds, used = time.monotonic() - begin, side.used().since(before)
    for process in processes:
        process.join()
    good = [took for took, is_good in times if is_good]
    with side.client() as client:
        found = client.get(f"/namespaces/{NAMESPACE}/tables/table_0").json()["metadata"]
    return [
        side.name,
        f"{len(good) / len(times):.1%}",
        f"{len(good) / seconds:.1f}",
        f"{statistics.median(took for took, _ in times) * 1000:.0f}",
        f"{statistics.quantiles((took for took, _ in times), n=20)[-1] * 1000:.0f}",
        f"{used.cpu_seconds * 1000 / max(1, len(good)):.1f}",
        str(found["snapshots"][-1]["summary"]["total-records"]),
    ]


def _append_when_asked(pipe: Any, url: str, process: int) -> None:
    """Some writers, each with a catalog of its own; the time of each attempt, and whether it succeeded."""
    import pyarrow
    from pyiceberg.catalog.rest import RestCatalog
    from pyiceberg.exceptions import CommitFailedException

    times: list[tuple[float, bool]] = []
    auth: Any = {"type": "basic", "basic": {"username": USER, "password": PASSWORD}}
    tables = [
        RestCatalog("benchmark", uri=url, auth=auth).load_table(f"{NAMESPACE}.table_0")
        for _ in range(WRITERS // WRITER_PROCESSES)
    ]
    pipe.send("ready")
    pipe.recv()

    def write(writer: int) -> None:
        table = tables[writer]
        for number in range(APPENDS):
            rows = pyarrow.table({"id": [process * 1_000_000 + writer * 1_000 + number]})
            begin, is_good = time.monotonic(), True
            try:
                table.append(rows)
            except CommitFailedException:
                is_good = False
            times.append((time.monotonic() - begin, is_good))
            if not is_good:
                table.refresh()

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(len(tables))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pipe.send(times)


def prepared(folder: Path, given: argparse.Namespace) -> None:
    rows = []
    database = PrivatePostgres()
    try:
        database.start()
        for number in range(given.rounds):
            with slow_bucket(PUT_SECONDS) as port:
                rows.append(_prepared(folder / f"gateway{number}", _migrated(database, number), port))
    finally:
        database.delete()
    titles = ("appends", "appends a second", "p50, ms", "p99, ms", "server CPU for an append, ms")
    medians = [f"{statistics.median(column):.1f}" for column in zip(*rows, strict=True)]
    print_table(f"Prepared appends by {WRITERS} writers; a PUT takes {PUT_SECONDS * 1000:.0f} ms", titles, [medians])


def _migrated(server: PrivatePostgres, number: int) -> str:
    with psycopg.connect(server.url().replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE gateway{number}")
    url = server.url(f"gateway{number}")
    migrate(url)
    return url


def _prepared(folder: Path, database: str, bucket_port: int) -> Sequence[float]:
    folder.mkdir()
    storage = folder / "storage.toml"
    storage.write_text(options(bucket_port))
    warehouse = f"s3a://{BUCKET}/warehouse"
    settings = {"tls": False, "warehouse_dir": warehouse, "file_systems.s3a": "manage", "storage_file": str(storage)}
    with GatewayServer(folder, database=database, settings=settings) as gateway, ThreadPoolExecutor(WRITERS) as threads:
        side = Side(OURS, gateway.port, "/iceberg", (gateway.pid,))
        with side.client() as client:
            table = _tables(client, 1, {"hms.append-rebase": "true"})[0]
        place = f"{table['metadata']['location']}/metadata"
        numbers = range(1, WRITERS * APPENDS + 1)
        with httpx.Client(base_url=f"http://127.0.0.1:{bucket_port}", timeout=60) as bucket:

            def put(number: int) -> None:
                about = {"snapshot-id": number, "sequence-number": 1}
                content = written_manifests([manifest(f"{place}/manifest-{number}", number)], 2, about)
                bucket.put(f"{place.removeprefix('s3a:/')}/{number}.avro", content=content).raise_for_status()

            list(threads.map(put, numbers))
        bodies = [
            [append_body(table, number, f"{place}/{number}.avro") for number in numbers[writer::WRITERS]]
            for writer in range(WRITERS)
        ]
        used, begin = side.used(), time.monotonic()
        times = [one for of_writer in threads.map(partial(_posted, side), bodies) for one in of_writer]
        seconds, used = time.monotonic() - begin, side.used().since(used)
        with side.client() as client:
            snapshots = client.get(_TABLE.format(0)).json()["metadata"]["snapshots"]
        assert [one["sequence-number"] for one in snapshots] == [*numbers], "an append is lost"
    spread = statistics.quantiles(times, n=100)
    cpu = used.server_seconds / len(times)
    return len(times), len(times) / seconds, spread[49] * 1000, spread[98] * 1000, cpu * 1000


def _posted(side: Side, bodies: Sequence[bytes]) -> list[float]:
    """Send appends one after the other; the time of each."""
    times = []
    connection = http.client.HTTPConnection("127.0.0.1", side.port, timeout=120)
    for body in bodies:
        begin = time.monotonic()
        connection.request("POST", f"{side.path}/v1{_TABLE.format(0)}", body, {"authorization": AUTHORIZATION})
        answer = connection.getresponse()
        text = answer.read()
        times.append(time.monotonic() - begin)
        if answer.status != 200:
            raise CallFailed(text[:500].decode())
    connection.close()
    return times


# What the rows share.


class _Turn(NamedTuple):
    """Of one side in one round; CPU for a call."""

    per_second: float
    p50_ms: float
    p99_ms: float
    server_ms: float
    database_ms: float


def _turn(side: Side, scripts: Sequence[MakeScript], seconds: float) -> _Turn:
    before = side.used()
    with LoadProcess([Address(side.port, side.is_tls)], Rest(), scripts, seconds, 0.5) as load:
        loaded = load.run()
    used = side.used().since(before)
    if not loaded.latencies:
        sys.exit(f"{side.name} has answered nothing within {seconds:g} seconds (--seconds)")
    times = sorted(loaded.latencies["call"])
    each = 1000 / loaded.units
    return _Turn(
        len(times) / loaded.seconds,
        times[len(times) // 2] * 1000,
        times[len(times) * 99 // 100] * 1000,
        used.server_seconds * each,
        used.database_seconds * each,
    )


def _medians(taken: Sequence[_Turn]) -> _Turn:
    return _Turn(*map(statistics.median, zip(*taken, strict=True)))


@contextmanager
def _sides(folder: Path, over: Sequence[str]) -> Iterator[list[Side]]:
    """Ours, and the reference over both of its catalogs where it can be had, with one PostgreSQL server."""
    databases: tuple[int, ...] = ()
    with ExitStack() as stack:
        try:
            port = free_port()
            theirs = stack.enter_context(
                RealMetastore(folder / "theirs", notifies=False, postgres_port=port, measured=True)
            )
            address, user = f"127.0.0.1:{port}", "hive"
            databases = (int((theirs.folder / "pg/data/postmaster.pid").read_text().split()[0]),)
        except PeerUnavailable as error:
            _say(f"no HiveCatalog, no JdbcCatalog: the real metastore cannot run here: {error}")
            theirs = None
            server = PrivatePostgres(port)
            stack.callback(server.delete)
            server.start()
            address, user = f"127.0.0.1:{port}", "postgres"
        with psycopg.connect(f"postgresql://{user}@{address}/postgres", autocommit=True) as connection:
            for name in ("gateway", "ice"):
                connection.execute(f"CREATE DATABASE {name}")
        url = f"postgresql+psycopg://{user}@{address}/gateway"
        migrate(url)
        gateway = stack.enter_context(GatewayServer(folder / "gateway", database=url, settings={"tls": False}))
        sides = [Side(OURS, gateway.port, "/iceberg", (gateway.pid,), databases)]
        scripts = os.environ.get("ICEBERG_REFERENCE")
        if theirs is not None and scripts is None:
            _say("no HiveCatalog, no JdbcCatalog: ICEBERG_REFERENCE names no folder")
        elif theirs is not None and scripts is not None:
            metastore = int((theirs.folder / "pid").read_text())
            jdbc = (f"uri=jdbc:postgresql://{address}/ice", f"jdbc.user={user}", "jdbc.password=any", "clients=16")
            for name, servers, backend in (
                ("HiveCatalog", (metastore,), ("hive", f"127.0.0.1:{theirs.port}")),
                ("JdbcCatalog", (), ("sqlite", *jdbc)),
            ):
                if name in over:
                    sides.append(stack.enter_context(_reference(name, Path(scripts), servers, databases, *backend)))
        yield sides


@contextmanager
def _reference(
    name: str, scripts: Path, servers: Sequence[int], databases: tuple[int, ...], *backend: str
) -> Iterator[Side]:
    port = free_port()
    _say(f"starting the reference over {name}")
    started = subprocess.run(
        ["sh", scripts / "peer-start.sh", str(port), *backend], stdout=subprocess.PIPE, text=True, check=True
    )
    try:
        yield Side(name, port, "", (int(started.stdout.split()[-1]), *servers), databases)
    finally:
        subprocess.run(["sh", scripts / "peer-stop.sh", str(port)], check=True)


_TABLE: Final = f"/namespaces/{NAMESPACE}/tables/table_{{}}"


def _tables(client: httpx.Client, count: int, properties: Mapping[str, str] = MappingProxyType({})) -> list[Any]:
    """The answers to the creation of tables."""
    client.post("/namespaces", json={"namespace": [NAMESPACE]}).raise_for_status()
    made = []
    for number in range(count):
        body = {"name": f"table_{number}", "schema": SCHEMA, "properties": dict(properties)}
        answer = client.post(f"/namespaces/{NAMESPACE}/tables", json=body)
        if answer.status_code != 200:
            raise CallFailed(answer.text)
        made.append(answer.json())
    return made


def _same(table: Any) -> Any:
    return {"type": "assert-table-uuid", "uuid": table["metadata"]["table-uuid"]}


def property_body(table: Any, value: str) -> bytes:
    update = {"action": "set-properties", "updates": {"written": value}}
    return json.dumps({"requirements": [_same(table)], "updates": [update]}).encode()


def append_body(table: Any, number: int, manifest_list: str, sequence: int = 1) -> bytes:
    """A commit of the file that a manifest list names, from the state of a table without snapshots."""
    summary = {"operation": "append", "added-data-files": "1", "added-records": "10", "added-files-size": "1000"}
    totals = {"total-data-files": "1", "total-records": "10", "total-files-size": "1000"}
    snapshot = {
        "snapshot-id": number,
        "sequence-number": sequence,
        "timestamp-ms": table["metadata"]["last-updated-ms"] + number,
        "manifest-list": manifest_list,
        "schema-id": 0,
        "summary": summary | totals,
    }
    reference = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number}
    updates = [{"action": "add-snapshot", "snapshot": snapshot}, reference]
    requirements = [_same(table)]
    if sequence == 1:
        requirements.append({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None})
    return json.dumps({"requirements": requirements, "updates": updates}).encode()


_ROWS: Final[dict[str, Callable[[Path, argparse.Namespace], None]]] = {
    "loads": loads,
    "commits": commits,
    "appends": appends,
    "prepared": prepared,
}

if __name__ == "__main__":
    main()
