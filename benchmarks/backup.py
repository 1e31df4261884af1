"""Backups of a table of many partitions: `python -m benchmarks.backup [--partitions N]`.

A base and an increment of one more partition from SQLite, and the restore of both into SQLite and into a PostgreSQL of
its own. Memory is the peak of this process by then.
"""

import argparse
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

from benchmarks.million import KEYS, fill, own_postgres, partition, values
from benchmarks.report import print_table
from hms_gateway.metastore.ports.store import NewPartition
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.backup.archive import BackupFolder, Point
from hms_gateway.storage.backup.copying import back_up, restore
from hms_gateway.storage.writing.store import open_store


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backup")
    parser.add_argument("--partitions", type=int, default=1_000_000)
    count = parser.parse_args().partitions
    clock = SystemClock()
    rows: list[list[str]] = []

    def timed(what: str, work: Callable[[], str]) -> None:
        began, busy = perf_counter(), process_time()
        text = work()
        seconds, cpu = perf_counter() - began, process_time() - busy
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append([what, f"{seconds:.1f} s", f"{cpu:.1f} s", f"{peak:.0f} MiB", text])

    with tempfile.TemporaryDirectory() as temporary, own_postgres() as server:
        folder = Path(temporary)
        source = f"sqlite:///{folder / 'source.db'}"

        def save() -> str:
            made = back_up(source, folder / "backups", clock.milliseconds, {}, str)
            return f"{made.file_bytes:,} bytes, {made.chunks:,} chunks"

        def bring_back(url: str) -> str:
            with BackupFolder(folder / "backups") as backups:
                restored = restore(url, backups, backups.choose(Point()), clock.milliseconds(), str, replaces=False)
            return f"{restored.inventory.count('partitions'):,} partitions"

        timed("fill", lambda: str(fill(source, count)))
        timed("base", save)
        add_one(source, count)
        timed("increment", save)
        timed("restore, SQLite", lambda: bring_back(f"sqlite:///{folder / 'restored.db'}"))
        timed("restore, PostgreSQL", lambda: bring_back(server))
    print_table(f"Backups of {count:,} partitions", ["step", "time", "CPU here", "peak", "result"], rows)


def add_one(url: str, number: int) -> None:
    store = open_store(url, SystemClock(), Limits())
    table = store.read(lambda snapshot: snapshot.table("sales", "parts"))
    assert table is not None
    new = NewPartition(make_name([key for key, _ in KEYS], values(number)), partition(number))
    store.write(lambda tx: tx.insert_partitions(table, [new]))
    store.close()


if __name__ == "__main__":
    main()
