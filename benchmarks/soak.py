"""Memory of a gateway that is written to for a while: `python -m benchmarks soak [--seconds 180] [--clients 16]`.

Tables are created, changed and dropped over the Thrift port, on SQLite or a private PostgreSQL. The growth is that of
the second half of the time: caches, plans and pools are filled in the first.
"""

import argparse
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from benchmarks.peer.caller import Address, Caller
from benchmarks.peer.content import DATABASE, database
from benchmarks.peer.load import LoadProcess, MakeScript
from benchmarks.peer.sides import PORT, Side
from benchmarks.peer.speech import Binary
from benchmarks.peer.usage import resident_bytes
from benchmarks.peer.writers import create_and_drop, get_and_alter
from benchmarks.report import print_table
from hms_gateway.storage.migrations.revisions import migrate
from tests.support.private_postgres import PrivatePostgres
from tests.support.server import GatewayServer, free_port

KIB = 1 << 10
MIB = 1 << 20
SAMPLES = 20

Sample = tuple[int, int]
"""The number of changes so far, and the bytes that are resident then."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=180, help="3600 for the hour")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--databases", nargs="+", default=["sqlite", "postgres"])
    options = parser.parse_args()
    rows: list[list[str]] = []
    for kind in options.databases:
        postgres = PrivatePostgres() if kind == "postgres" else None
        try:
            url = None
            if postgres is not None:
                postgres.start()
                url = postgres.url()
                migrate(url)
            with tempfile.TemporaryDirectory() as folder:
                samples = soaked(Path(folder), url, options.clients, options.seconds)
        finally:
            if postgres is not None:
                postgres.delete()
        print_table(f"{kind}: MiB after so many changes", ("changes", "MiB"), [_shown(*sample) for sample in samples])
        rows.append([kind, *_summary(samples)])
    titles = ("database", "changes", "MiB at a quarter", "at half", "at the end", "KiB for 1,000 changes, second half")
    print_table(f"Memory under {options.clients} writers for {options.seconds:.0f} s", titles, rows)


def soaked(folder: Path, url: str | None, clients: int, seconds: float) -> list[Sample]:
    port = free_port()
    with GatewayServer(folder, database=url, settings={"thrift_port": port}) as gateway:
        warehouse = str(gateway.data_dir / "warehouse")
        side = Side(PORT, (Address(port, False),), Binary(), (gateway.pid,), (), warehouse, PORT)
        with side.caller() as caller:
            caller.call("create_database", database(warehouse, DATABASE))
            load = LoadProcess(side.addresses, side.speech, _scripts(side, caller, clients), seconds, 0.1)
            samples: list[Sample] = []
            with load:
                running = threading.Thread(target=load.run)
                running.start()
                end = monotonic() + seconds
                while running.is_alive():
                    running.join(max(0.1, min(seconds / SAMPLES, end - monotonic())))
                    samples.append((_changes(caller), resident_bytes([gateway.pid])))
    return samples


def _summary(samples: Sequence[Sample]) -> list[str]:
    quarter, half, last = (samples[int((len(samples) - 1) * share)] for share in (0.25, 0.5, 1))
    growth = (last[1] - half[1]) / max(1, last[0] - half[0]) * 1000
    return [f"{last[0]:,}", *(_shown(*sample)[1] for sample in (quarter, half, last)), f"{growth / KIB:.1f}"]


def _shown(changes: int, resident: int) -> tuple[str, str]:
    return f"{changes:,}", f"{resident / MIB:.1f}"


def _scripts(side: Side, caller: Caller, clients: int) -> Sequence[MakeScript]:
    half = clients // 2
    return [*create_and_drop(side, caller, clients - half), *get_and_alter(side, caller, half)]


def _changes(caller: Caller) -> int:
    number: int = caller.call("get_current_notificationEventId").eventId
    return number


if __name__ == "__main__":
    main()
