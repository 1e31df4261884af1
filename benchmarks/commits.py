"""Commits to Iceberg tables by many writers, while writers and gateways are killed: `python -m benchmarks commits
[--commits 5000] [--writers 16] [--tables 8] [--kills 30] [--sparks 1]`.

Two gateways share PostgreSQL. Half of the tables rebase appends. Writers send prepared appends, properties and commits
over two tables, with idempotency keys or without, or are PyIceberg's REST catalog, or its Hive catalog over Thrift;
further ones are Spark with Java's catalogs of both kinds.
Exits with 1 where a commit that was acknowledged is not in the history of its table exactly once, one that was refused
is, a reader saw a table go back, a file that a table names is missing, or PyIceberg or DuckDB read other rows.
"""

import argparse
import json
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import httpx
from pyiceberg.table import StaticTable

from benchmarks.commit_clients import (
    NAMESPACE,
    SCHEMA,
    LibraryWriter,
    PreparedWriter,
    RestClient,
    World,
    by_rest,
    by_thrift,
    read_on,
    run_spark,
)
from benchmarks.commit_history import History, history_of, missing_files, path_of, wrong_commits
from benchmarks.report import print_table
from hms_gateway.iceberg.appends import REBASE
from hms_gateway.storage.migrations.revisions import migrate
from tests.iceberg.duckdb_program import ENVIRONMENT, rows_of
from tests.iceberg.java_library import PYTHON
from tests.linearizability.history import Call, Journal, read_journals
from tests.support.patience import PATIENCE_SECONDS, until
from tests.support.private_postgres import PrivatePostgres
from tests.support.server import PASSWORD, USER, GatewayServer, free_port
from tests.support.warm_program import COMMAND

READERS: Final = 2
FIRST_SPARK: Final = 500
POLL_SECONDS: Final = 0.2
# Locks of killed writers end by themselves.
LOCK_SECONDS: Final = 5
SETTINGS: Final = {
    "tls": False, "log_level": "warning", "locks_implicit": "deny", "txn_timeout_seconds": LOCK_SECONDS,
}  # fmt: skip
_fork = multiprocessing.get_context("fork")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=5_000, help="acknowledged ones")
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--tables", type=int, default=8)
    parser.add_argument("--kills", type=int, default=30, help="one in three is of a gateway")
    parser.add_argument("--sparks", type=int, default=int(PYTHON.exists()), help="writers of Spark, where it is there")
    options = parser.parse_args()
    # They log each retry, and each connection that they do not get.
    for name in ("pyiceberg", "thrift", "tenacity"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hms-commits-")))
        servers = stack.enter_context(_running(folder))
        world = _world(folder, servers, options.tables)
        began = time.monotonic()
        kills = _play(world, servers.gateways, options)
        seconds = time.monotonic() - began
        wrong = [*_lines(world.folder / "wrong"), *Checks(world, servers, seconds, kills).found()]
        for text in wrong:
            print(f"WRONG: {text}")
        if wrong:
            for gateway in servers.gateways:
                print(f"\nThe log of {gateway.url}:\n{gateway.log_text()[-20_000:]}")
    sys.exit(bool(wrong))


class Servers(NamedTuple):
    gateways: Sequence[GatewayServer]
    thrift_ports: Sequence[int]
    database: str


@contextmanager
def _running(folder: Path) -> Iterator[Servers]:
    with ExitStack() as stack:
        postgres = PrivatePostgres()
        stack.callback(postgres.delete)
        postgres.start()
        migrate(postgres.url())
        ports = [free_port(), free_port()]
        settings = {**SETTINGS, "warehouse_dir": str(folder / "warehouse")}
        gateways = [
            GatewayServer(folder / str(port), database=postgres.url(), settings={**settings, "thrift_port": port})
            for port in ports
        ]
        yield Servers([stack.enter_context(gateway) for gateway in gateways], ports, postgres.url())


def _world(folder: Path, servers: Servers, tables: int) -> World:
    """Makes the tables."""
    urls = [f"http://127.0.0.1:{gateway.port}/iceberg/v1" for gateway in servers.gateways]
    names = [f"{'rebased' if number % 2 else 'plain'}_{number}" for number in range(tables)]
    (folder / "journals").mkdir()
    with httpx.Client(base_url=urls[0], auth=(USER, PASSWORD), timeout=60) as client:
        client.post("/namespaces", json={"namespace": [NAMESPACE]}).raise_for_status()
        for name in names:
            body = {
                "name": name,
                "schema": json.loads(SCHEMA.model_dump_json()),
                "properties": {REBASE: str(name.startswith("rebased")).lower(), "format-version": "2"},
            }
            client.post(f"/namespaces/{NAMESPACE}/tables", json=body).raise_for_status()
    return World(folder / "journals", urls, servers.thrift_ports, names)


# The run


def _work(world: World, number: int) -> None:
    """The writer of a number: of eight, four send prepared commits, two with keys; two are of each catalog."""
    if number >= FIRST_SPARK:
        run_spark(world, number)
        return
    match number % 8:
        case 0 | 1 | 2 | 3:
            PreparedWriter(world, number, has_keys=bool(number % 2)).run()
        case 4 | 5:
            LibraryWriter(world, number, by_rest).run()
        case _:
            LibraryWriter(world, number, by_thrift).run()


def _lead(work: Callable[[World, int], None], world: World, number: int) -> None:
    """Work in a group of processes, which can be killed as one."""
    os.setpgrp()
    work(world, number)


class Clients:
    """The processes of the writers and readers."""

    def __init__(self, world: World, numbers: Iterable[int]) -> None:
        """The writers are those of the numbers."""
        self._world = world
        self.writers = {number: self._started(_work, number) for number in numbers}
        self.readers = [self._started(read_on, 1_000 + number) for number in range(READERS)]

    def _started(self, work: Callable[[World, int], None], number: int) -> Any:
        process = _fork.Process(target=_lead, args=(work, self._world, number), daemon=True)
        process.start()
        return process

    def kill(self, number: int) -> None:
        """Kill a writer with its processes and start it again."""
        process = self.writers[number]
        # It has begun by then: it leads its processes.
        until(lambda: os.getpgid(process.pid) == process.pid)
        os.killpg(process.pid, signal.SIGKILL)
        process.join()
        Journal(self._world.journal(number), number).died()
        self.writers[number] = self._started(_work, number)

    def check(self) -> None:
        for number, process in self.writers.items():
            if process.exitcode is not None:
                raise AssertionError(f"writer {number} ended by itself, with {process.exitcode}")

    def stop(self) -> None:
        self._world.stop.touch()
        for process in (*self.writers.values(), *self.readers):
            process.join(PATIENCE_SECONDS)
            if process.exitcode != 0:
                self._world.report(f"{process.name} ended with {process.exitcode}")
                process.kill()


def _play(world: World, gateways: Sequence[GatewayServer], options: argparse.Namespace) -> Counter[str]:
    """Let clients work until so many commits are acknowledged, and kill one after the other; how many of each."""
    random, counts = Random(0), Counter[str]()
    clients = Clients(world, [*range(options.writers), *range(FIRST_SPARK, FIRST_SPARK + options.sparks)])
    try:
        for number in range(1, options.kills + 1):
            _wait_for(clients, world, options.commits * number // (options.kills + 1))
            if number % 3 == 0:
                gateway = gateways[number // 3 % 2]
                gateway.kill()
                gateway.start()
                counts["gateways"] += 1
            else:
                clients.kill(random.choice([*clients.writers]))
                counts["writers"] += 1
        _wait_for(clients, world, options.commits)
    finally:
        clients.stop()
    return counts


def _wait_for(clients: Clients, world: World, commits: int) -> None:
    while _acknowledged(world) < commits:
        clients.check()
        time.sleep(POLL_SECONDS)


def _acknowledged(world: World) -> int:
    return sum(path.read_bytes().count(b'[["ok"') for path in world.folder.glob("*.journal"))


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


# The end


class Checks:
    def __init__(self, world: World, servers: Servers, seconds: float, kills: Counter[str]) -> None:
        self._world = world
        self._servers = servers
        self._seconds = seconds
        self._kills = kills
        self._calls = read_journals(sorted(world.folder.glob("*.journal")))

    def found(self) -> list[str]:
        """Print the report, and give what is wrong."""
        histories = self._histories()
        wrong = [*wrong_commits(self._calls, {table: history.commits for table, history in histories.items()})]
        left = self._left(histories)
        checked = self._check_removes_them()
        for table, history in histories.items():
            wrong += [f"{table}: {one}" for one in (*missing_files(history), *_wrong_rows(history))]
            wrong += [f"{table}: {one} was removed" for one in history.files if not path_of(one).exists()]
        self._report(histories, left, checked, self._left(histories))
        return wrong

    def _histories(self) -> dict[str, History]:
        client = RestClient(self._world.rest_urls, 0)
        return {table: history_of(client.load(table)) for table in self._world.tables}

    def _left(self, histories: dict[str, History]) -> Counter[str]:
        """Files in the metadata folders that nothing names, by kind."""
        counts: Counter[str] = Counter()
        for history in histories.values():
            named = {*history.files, *(one["manifest-list"] for one in history.metadata["snapshots"])}
            for path in path_of(history.location).parent.iterdir():
                if f"file:{path}" not in named and path.name.endswith(".metadata.json"):
                    counts["metadata files"] += 1
                elif f"file:{path}" not in named and path.name.startswith("snap-"):
                    # Those of clients have the number of an attempt.
                    counts["lists of clients" if "-0-" in path.name else "lists of gateways"] += 1
        return counts

    def _check_removes_them(self) -> Counter[str]:
        """What `hms-gateway check` has found, and removed."""
        folder, database = self._servers.gateways[0].data_dir, self._servers.database
        command = [COMMAND, "check", "--config", str(folder / "settings.toml"), "--data-dir", str(folder)]
        command += ["--database", database, "--older-than", "0", "--remove-with-files", "--format", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        return Counter(json.loads(line)["what"] for line in done.stdout.splitlines())

    def _report(
        self, histories: dict[str, History], left: Counter[str], checked: Counter[str], after: Counter[str]
    ) -> None:
        kinds: dict[str, list[Call]] = {}
        for call in self._calls:
            kinds.setdefault(f"{call.name}, {_writer_kind(call.client)}", []).append(call)
        commits = {table: history.commits for table, history in histories.items()}
        rows = [_counted(name, calls, commits) for name, calls in [*sorted(kinds.items()), ("all", self._calls)]]
        title = f"{self._seconds:.0f} s, {self._kills['writers']} writers and {self._kills['gateways']} gateways killed"
        print_table(title, ("commits", "sent", "acknowledged", "refused", "without an answer", "of these made"), rows)
        loads = sum(int(path.read_text()) for path in self._world.folder.glob("*.loads"))
        print(f"\n{loads:,} loads by readers, {sum(len(one.files) for one in histories.values()):,} metadata files")
        print(f"files that nothing names: {dict(left)}; after a check that found {dict(checked)}: {dict(after)}")


def _counted(name: str, calls: Sequence[Call], commits: dict[str, Counter[str]]) -> list[str]:
    unknown = [call for call in calls if not call.is_answered]
    refused = sum(call.failure is not None for call in calls)
    made = sum(commits[call.arguments[1]][str(call.arguments[0])] for call in unknown)
    counts = len(calls), len(calls) - len(unknown) - refused, refused, len(unknown), made
    return [name, *(f"{count:,}" for count in counts)]


def _writer_kind(number: int) -> str:
    if number >= FIRST_SPARK:
        return "Spark"
    return ("prepared", "prepared with a key")[number % 2] if number % 8 < 4 else ("REST", "Hive")[number % 8 > 5]


def _wrong_rows(history: History) -> Iterator[str]:
    """The rows as DuckDB reads them, or PyIceberg where there is none."""
    wanted = sorted(map(int, history.appends))
    if ENVIRONMENT.exists():
        statement = f"SELECT id FROM iceberg_scan('{path_of(history.location)}') ORDER BY id"
        found = [row[0] for row in rows_of(statement)]
    else:
        found = sorted(StaticTable.from_metadata(history.location).scan().to_arrow()["id"].to_pylist())
    if found != wanted:
        yield f"{len(found)} rows are read, and {len(wanted)} were written"


if __name__ == "__main__":
    main()
