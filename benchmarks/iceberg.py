"""Commits by PyIceberg's own catalog, one table for each client, to the real metastore and to ours in turns:
`python -m benchmarks iceberg [--clients 1 4] [--rounds 5] [--seconds 5]`.

Each client is a process. A commit sets a property of the table: PyIceberg writes a metadata file, takes the lock, reads
the table, alters it and gives the lock back. Both metastores are on one PostgreSQL, asked over binary TCP. Wants Java,
PostgreSQL with its JDBC driver, and PyIceberg.
"""

import argparse
import multiprocessing
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic, process_time
from typing import Final, NamedTuple

from benchmarks.peer.content import FOR_WRITERS, database
from benchmarks.peer.sides import PORT, THEIRS, Side, running
from benchmarks.report import print_table
from tests.oracle.peer import PeerUnavailable

SIDES: Final = (THEIRS, PORT)
NAMESPACE: Final = "pyiceberg"


class Turn(NamedTuple):
    """Of all clients of one side in one round; CPU for a commit."""

    commits_per_second: float
    client_ms: float
    server_ms: float
    database_ms: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each side in a round")
    options = parser.parse_args()
    say = partial(print, file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="hms-bench-") as folder:
        try:
            with running(Path(folder), FOR_WRITERS, say) as bench:
                sides = [bench.sides[name] for name in SIDES]
                for side in sides:
                    with side.caller() as caller:
                        caller.call("create_database", database(side.warehouse, NAMESPACE))
                rows = [row for count in options.clients for row in _rows(sides, count, options)]
        except PeerUnavailable as error:
            sys.exit(f"the real metastore cannot run here: {error}")
    titles = ("clients", "", "commits a second", "ratio", "CPU for a commit, ms: client", "server", "PostgreSQL")
    print_table("Commits by PyIceberg, medians", titles, rows)


def _rows(sides: Sequence[Side], clients: int, options: argparse.Namespace) -> list[list[str]]:
    turns: dict[str, list[Turn]] = {side.name: [] for side in sides}
    with ExitStack() as stack:
        groups = {side.name: [stack.enter_context(Client(side, number)) for number in range(clients)] for side in sides}
        for number in range(options.rounds + 1):
            for side in sides if number % 2 else reversed(sides):
                turn = _turn(side, groups[side.name], options.seconds)
                # The first one fills caches and pools.
                if number:
                    turns[side.name].append(turn)
    medians = {name: Turn(*map(statistics.median, zip(*taken, strict=True))) for name, taken in turns.items()}
    theirs = medians[THEIRS].commits_per_second
    return [
        [
            str(clients),
            name,
            f"{one.commits_per_second:.1f}",
            f"{one.commits_per_second / theirs:.2f} ×",
            f"{one.client_ms:.1f}",
            f"{one.server_ms:.2f}",
            f"{one.database_ms:.2f}",
        ]
        for name, one in medians.items()
    ]


def _turn(side: Side, clients: Sequence["Client"], seconds: float) -> Turn:
    before, begin = side.used(), monotonic()
    for client in clients:
        client.begin(seconds)
    done = [client.end() for client in clients]
    taken, used = monotonic() - begin, side.used().since(before)
    commits = sum(number for number, _ in done)
    each = 1000 / commits
    client_ms = sum(cpu for _, cpu in done) * each
    return Turn(commits / taken, client_ms, used.server_seconds * each, used.database_seconds * each)


class Client:
    """A process with a catalog and a table of its own."""

    def __init__(self, side: Side, number: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        location = f"file:{side.warehouse}/{NAMESPACE}.db"
        arguments = (other, f"thrift://127.0.0.1:{side.addresses[0].port}", location, f"committed_{number}")
        self._process = context.Process(target=commit_when_asked, args=arguments, daemon=True)

    def __enter__(self) -> "Client":
        self._process.start()
        self._pipe.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.send(None)
        self._process.join()

    def begin(self, seconds: float) -> None:
        self._pipe.send(seconds)

    def end(self) -> tuple[int, float]:
        """How many commits there were, and the CPU seconds of the client."""
        found: tuple[int, float] = self._pipe.recv()
        return found


def commit_when_asked(pipe: Connection, uri: str, location: str, name: str) -> None:
    """For so many seconds at a time, until None is asked for."""
    from pyiceberg.catalog.hive import HiveCatalog
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    catalog = HiveCatalog("benchmark", uri=uri)
    schema = Schema(NestedField(1, "id", LongType()))
    full_name = (NAMESPACE, name)
    if not catalog.table_exists(full_name):
        properties = {"write.metadata.previous-versions-max": "2"}
        catalog.create_table(full_name, schema, f"{location}/{name}", properties=properties)
    table = catalog.load_table(full_name)
    pipe.send("ready")
    while (seconds := pipe.recv()) is not None:
        end, cpu, commits = monotonic() + seconds, process_time(), 0
        while monotonic() < end:
            with table.transaction() as transaction:
                transaction.set_properties(commits=str(commits))
            commits += 1
        pipe.send((commits, process_time() - cpu))


if __name__ == "__main__":
    main()
