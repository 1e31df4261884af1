"""Starts client processes and lets them play worlds; a program of its own, so that it can fork before it has threads.

    python -m tests.linearizability.processes FOLDER KIND --address sqlite:///… --processes 16 --worlds 100 --calls 14

Every process writes FOLDER/client-N.journal. In a world that is `mortal` half of the processes kill themselves at some
moment, with whatever they are doing, and a witness looks at what they left. Exits with 1 when a process failed.
"""

import argparse
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any, Final

from sqlalchemy import create_engine, select

from hms_gateway.storage.dialects import base, sqlite
from hms_gateway.storage.schema.catalog import CATALOG
from hms_gateway.storage.writing import thread_writer
from tests.linearizability import services as clients_services
from tests.linearizability.history import Journal
from tests.linearizability.lease_clients import LeaseClient, TenureClient
from tests.linearizability.lease_services import GatewayLeases, StoreLeases, open_leases
from tests.linearizability.lock_clients import LockClient, play_patiently
from tests.linearizability.services import GatewayServices, StoreServices, open_services

# Nothing ends by itself on a busy machine, and nothing is left of a run that was killed.
WAIT_SECONDS_MAX: Final = 3_600

_fork = get_context("fork")


def main() -> int:
    options = _options()
    if options.without_row_lock:
        thread_writer.LOCK_CATALOG = select(CATALOG.c.last_event_id)  # type: ignore[misc,attr-defined]
    clients_services.LOOKS_TOO_EARLY = options.looks_too_early
    # Dialects that are imported later take it from the first one.
    for module in (base, sqlite):
        setattr(module, "BUSY_SECONDS_MAX", WAIT_SECONDS_MAX)  # noqa: B010
    for address in options.address:
        if not address.startswith("http"):
            # Imports its driver, once for all that are forked: it takes longer than a world.
            create_engine(address)
    if options.kind == "mortal":
        return sum(_mortal_world(options, options.first_world + number) for number in range(options.worlds))
    barrier = _fork.Barrier(options.processes * options.threads)
    numbers = range(options.processes)
    works = [lambda number=number: _play_worlds(options, number, barrier) for number in numbers]  # type: ignore[misc]
    # Nobody has to wait for one that is gone.
    return _run(works, lambda number: barrier.abort())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("kind", choices=["locks", "patient", "mortal", "leases", "tenures"])
    parser.add_argument("--address", action="append", required=True)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1, help="clients of each process, but for mortal ones")
    parser.add_argument("--worlds", type=int, default=10)
    parser.add_argument("--first-world", type=int, default=0, help="for mortal ones only")
    parser.add_argument("--calls", type=int, default=14)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lifetime", type=float, default=0.2, help="seconds within which mortal ones die")
    parser.add_argument("--changes", action="store_true", help="of tables, under implicit locks")
    parser.add_argument("--looks-too-early", action="store_true", help="locks are compared before the change is made")
    parser.add_argument("--without-row-lock", action="store_true", help="to show that it is missed")
    return parser.parse_args()


def _run(works: Sequence[Callable[[], None]], on_death: Callable[[int], None] = lambda number: None) -> int:
    """Each in a process of its own; how many failed by themselves. `on_death` is told who was killed."""
    children = {_start(work): number for number, work in enumerate(works)}
    failed = 0
    while children:
        child, status = os.waitpid(-1, 0)
        number = children.pop(child)
        if os.WIFSIGNALED(status):
            on_death(number)
        failed += os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0
    return failed


def _start(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work()
    except threading.BrokenBarrierError:
        # Whoever broke it says why.
        os._exit(1)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


@contextmanager
def _waited_for(barrier: Any) -> Iterator[None]:
    """Nobody has to wait for one that failed."""
    try:
        yield
    except threading.BrokenBarrierError:
        raise
    except BaseException:
        traceback.print_exc()
        barrier.abort()
        raise


def _play_worlds(options: argparse.Namespace, number: int, barrier: Any) -> None:
    """The worlds begin and end together, so that nothing of one overlaps with another."""
    is_of_leases = options.kind in ("leases", "tenures")
    opened: Any = open_leases if is_of_leases else open_services
    play: Any = _play_with_leases if is_of_leases else _play_with_locks

    def play_one(client: int) -> None:
        with _waited_for(barrier):
            play(options, client, services.twin(), barrier)

    with _waited_for(barrier):
        services = opened(options.address[number % len(options.address)])
    with ThreadPoolExecutor(options.threads) as pool:
        list(pool.map(play_one, [number * options.threads + thread for thread in range(options.threads)]))
    services.close()


def _play_with_locks(
    options: argparse.Namespace, number: int, services: StoreServices | GatewayServices, barrier: Any
) -> None:
    journal = Journal(options.folder / f"client-{number}.journal", number)
    client = LockClient(number, services, journal, Random(f"{options.seed} {number}"), changes=options.changes)
    for world in range(options.worlds):
        client.enter(world)
        if number == 0 and options.changes:
            services.prepare(services.db_name)
        barrier.wait(WAIT_SECONDS_MAX)
        if options.kind == "patient":
            play_patiently(client, options.calls, lambda: barrier.wait(WAIT_SECONDS_MAX))
        else:
            client.play(options.calls)
        barrier.wait(WAIT_SECONDS_MAX)
        if number == 0:
            services.tidy_up()


def _play_with_leases(
    options: argparse.Namespace, number: int, leases: StoreLeases | GatewayLeases, barrier: Any
) -> None:
    journal = Journal(options.folder / f"client-{number}.journal", number)
    random = Random(f"{options.seed} {number}")
    if options.kind == "tenures":
        client: Any = TenureClient(number, leases, journal, random)
    else:
        assert isinstance(leases, StoreLeases)
        client = LeaseClient(number, leases, journal, random)
    for world in range(options.worlds):
        if number == 0:
            client.prepare(world)
        barrier.wait(WAIT_SECONDS_MAX)
        client.enter(world)
        client.play(options.calls)
        barrier.wait(WAIT_SECONDS_MAX)


def _mortal_world(options: argparse.Namespace, world: int) -> int:
    def journal_of(number: int) -> Journal:
        return Journal(options.folder / f"client-{world}-{number}.journal", number)

    def live(number: int) -> None:
        services = open_services(options.address[number % len(options.address)])
        random = Random(f"{options.seed} {world} {number}")
        client = LockClient(number, services, journal_of(number), random, changes=options.changes)
        client.enter(world)
        if number % 2:
            _die_within(random.random() * options.lifetime)
        client.play(options.calls)
        services.close()

    def look() -> None:
        services = open_services(options.address[0])
        witness = LockClient(0, services, journal_of(options.processes), Random())
        witness.enter(world)
        witness.look()
        services.close()

    works = [lambda number=number: live(number) for number in range(options.processes)]
    failed = _run(works, lambda number: journal_of(number).died())
    return failed + _run([look])


def _die_within(seconds: float) -> None:
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL))
    timer.daemon = True
    timer.start()


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
