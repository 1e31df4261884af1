"""Transactions and locks: pairs a second at 64 clients, and what many held locks cost. No HTTP in between."""

import argparse
import statistics
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

from benchmarks.report import median_seconds, print_table
from hms_gateway.rpc.structs import LockState, LockType
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.migrations.revisions import migrate
from hms_gateway.storage.writing.store import SqlStore, open_store
from hms_gateway.txn.ports.txn import Client, LockFilter
from hms_gateway.txn.rules.names import target
from hms_gateway.txn.services.locks import ComponentSpec, LockService, LockSpec
from hms_gateway.txn.services.settings import TxnSettings
from hms_gateway.txn.services.transactions import TransactionService

CLIENTS = 64
PAIRS = 6_400
HELD = 10_000
WHO = Client("bench", "host", "bench")


class Services:
    def __init__(self, store: SqlStore) -> None:
        self.locks = LockService(store, TxnSettings())
        self.transactions = TransactionService(store, self.locks, TxnSettings())

    def lock(self, table: str, type: LockType = LockType.EXCLUSIVE) -> int:
        answer = self.locks.lock(LockSpec([ComponentSpec(target("d", table), type)], WHO)).result()
        assert answer.state is LockState.ACQUIRED
        return answer.lock_id

    def lock_pair(self, number: int) -> None:
        self.locks.unlock(self.lock(f"t{number % CLIENTS}x{number}")).result()

    def txn_pair(self, number: int) -> None:
        self.transactions.commit(self.transactions.open(1, WHO).result()[0], checks_writes=True).result()


def measure(pair: Callable[[int], None]) -> tuple[float, float, float]:
    """Pairs a second, median and 99th percentile in milliseconds."""
    times: list[float] = []

    def timed(number: int) -> None:
        start = perf_counter()
        pair(number)
        times.append(perf_counter() - start)

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(pair, range(CLIENTS)))
        start = perf_counter()
        list(pool.map(timed, range(PAIRS)))
        seconds = perf_counter() - start
    return PAIRS / seconds, statistics.median(times) * 1000, statistics.quantiles(times, n=100)[98] * 1000


def run(url: str) -> None:
    migrate(url)
    store = open_store(url, SystemClock(), Limits())
    services = Services(store)
    rows = [
        (name, *(f"{figure:,.1f}" for figure in measure(pair)))
        for name, pair in (("open + commit", services.txn_pair), ("lock + unlock", services.lock_pair))
    ]
    kind = url.partition(":")[0]
    print_table(f"{CLIENTS} clients, {kind}", ("pair", "a second", "median ms", "p99 ms"), rows)
    alone = median_seconds(lambda: services.lock_pair(0), 200)
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda number: services.lock(f"held{number}", LockType.SHARED_READ), range(HELD // 2)))
        list(pool.map(lambda number: services.lock("busy", LockType.SHARED_READ), range(HELD - HELD // 2)))
    rows = [("lock + unlock, none held", f"{alone * 1000:.2f}")]
    for name, table, type in (
        ("another table", "other", LockType.EXCLUSIVE),
        ("the same table, beside 5,000 readers", "busy", LockType.SHARED_READ),
    ):
        seconds = median_seconds(lambda t=table, k=type: services.locks.unlock(services.lock(t, k)).result(), 200)  # type: ignore[misc]
        rows.append((f"{HELD:,} held, {name}", f"{seconds * 1000:.2f}"))
    shown = median_seconds(lambda: services.locks.show(LockFilter()), 5)
    rows.append((f"show_locks of {HELD:,}", f"{shown * 1000:.0f}"))
    print_table(f"Many locks, {kind}", ("call", "median ms"), rows)
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", help="URL of an empty PostgreSQL database to measure as well")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(f"sqlite:///{folder}/catalog.sqlite")
    if options.postgres:
        run(options.postgres)


if __name__ == "__main__":
    main()
