"""Locks, transactions and write ids under 16 clients at once: there is an order that explains all they were told."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from hms_gateway.storage.migrations.revisions import migrate
from tests.linearizability.checks import check_ids, check_locks
from tests.linearizability.history import Call, by_world
from tests.linearizability.playing import (
    MARIADB_OF_THE_WHOLE,
    OTHERS_OF_THE_WHOLE,
    PROCESSES,
    SCALE,
    SPREAD,
    finish,
    on_each_database,
    play,
    start,
    wait_for_journals,
)
from tests.linearizability.search import GivenUp, NotLinearizable, Undecided
from tests.support.private_mariadb import DURABLE, PrivateMariadb
from tests.support.private_postgres import PrivatePostgres
from tests.support.server import GatewayServer

pytestmark = pytest.mark.slow

KILL_BYTES = 60_000
ATTEMPTS_MAX = 20
# Four of five worlds that are wrong are found to be so within them.
STATES_OF_SURE_MISTAKES = (8_000,)
on_servers = pytest.mark.parametrize(
    "database_server", [pytest.param("postgres", marks=pytest.mark.postgres), MARIADB_OF_THE_WHOLE], indirect=True
)
# Worlds without a verdict that others are played for.
UNDECIDED_MAX = 2


def check(calls: list[Call], *, is_alone: bool = True) -> Counter[str]:
    """How often what was answered; refusals by their names."""
    check_ids(calls, is_dense=is_alone)
    for world in by_world(calls).values():
        check_locks(world, is_alone=is_alone)
    return Counter(call.failure.name if call.failure else call.name for call in calls)


@on_each_database
def test_on_the_database(database_url: str, tmp_path: Path) -> None:
    found = check(play(tmp_path, "locks", [database_url], *SPREAD, "--changes", "--worlds", SCALE))
    assert found.total() > 100 * SCALE
    assert found["lock"] > 15 * SCALE
    assert min(found["change"], found["LockedByAnother"]) >= SCALE


@pytest.mark.whole
@pytest.mark.parametrize("database_url", OTHERS_OF_THE_WHOLE, indirect=True)
def test_with_threads_whose_calls_are_committed_together(database_url: str, tmp_path: Path) -> None:
    options = ("--processes", 2, "--threads", 8, "--changes", "--worlds", SCALE)
    assert check(play(tmp_path, "locks", [database_url], *options)).total() > 100 * SCALE


@pytest.mark.parametrize("database_url", OTHERS_OF_THE_WHOLE, indirect=True)
def test_no_deadlock_lasts(database_url: str, tmp_path: Path) -> None:
    """Transactions that never give up waiting all come to an end, and whoever was sacrificed was told with whom."""
    found = check(play(tmp_path, "patient", [database_url], *SPREAD, "--worlds", SCALE))
    assert found["open"] == PROCESSES * 2 * SCALE
    assert found["TxnAborted"] > 0


@pytest.mark.parametrize("database_url", OTHERS_OF_THE_WHOLE, indirect=True)
def test_processes_that_are_killed_leave_nothing_half_done(database_url: str, tmp_path: Path) -> None:
    calls: list[Call] = []
    wanted, undecided = range(SCALE), 0
    while wanted:
        place = tmp_path / str(wanted.start)
        place.mkdir()
        options = ("--changes", "--lifetime", 0.3, "--first-world", wanted.start, "--worlds", len(wanted))
        played = play(place, "mortal", [database_url], *options)
        calls += played
        left = sum(not is_decided(world) for world in by_world(played).values())
        undecided += left
        assert undecided <= UNDECIDED_MAX * SCALE
        wanted = range(wanted.stop, wanted.stop + left)
    check_ids(calls, is_dense=False)


def is_decided(world: list[Call]) -> bool:
    """Whether an order was found before the search gave up. Raises where there is none."""
    try:
        check_locks(world, is_alone=False)
    except Undecided:
        return False
    return True


@pytest.mark.postgres
def test_a_database_that_crashes_loses_no_commit(own_postgres: PrivatePostgres, tmp_path: Path) -> None:
    with psycopg.connect(own_postgres.url().replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("ALTER DATABASE postgres SET synchronous_commit = on")
    crash_and_check(own_postgres, own_postgres.url(), tmp_path)


@pytest.mark.whole
@pytest.mark.mariadb
@pytest.mark.parametrize("own_mariadb", [DURABLE], indirect=True, ids=["durable"])
def test_a_mariadb_that_crashes_loses_no_commit(own_mariadb: PrivateMariadb, tmp_path: Path) -> None:
    own_mariadb.administer("CREATE DATABASE crashing")
    crash_and_check(own_mariadb, own_mariadb.url("crashing"), tmp_path)


def crash_and_check(server: PrivatePostgres | PrivateMariadb, url: str, folder: Path) -> None:
    """What the store calls unavailable has not happened, and what it calls unknown may have."""
    migrate(url)
    process = start(folder, "locks", [url], *SPREAD, "--worlds", 1, "--calls", 24)
    for crash in (1, 2):
        wait_for_journals(process, folder, crash * KILL_BYTES // 2)
        server.stop()
        server.start()
    check(finish(process, folder), is_alone=False)


@on_servers
def test_a_row_lock_that_is_missing_is_missed(server_databases: Iterator[str], tmp_path: Path) -> None:
    """Without the lock that makes units of work wait for each other there is no order that explains what was answered.

    Or the database refuses an id that two have taken, which ends a client.
    """
    assert_is_missed(AssertionError, server_databases, tmp_path, "--worlds", 2, "--without-row-lock")


@pytest.mark.whole
@on_servers
def test_a_change_whose_locks_are_compared_before_it_is_made_is_missed(
    server_databases: Iterator[str], tmp_path: Path
) -> None:
    """Another client holds what it needs by then, and sees it happen."""
    options = ("--worlds", 5, "--changes", "--looks-too-early")
    assert_is_missed(NotLinearizable, server_databases, tmp_path, *options)


def assert_is_missed(error: type[AssertionError], databases: Iterator[str], folder: Path, *options: object) -> None:
    """What is wrong shows in some schedules only: it is tried again in a new database until it does.

    It shows where no order can explain a world. To look for one in every world until nothing is left takes minutes.
    """
    for attempt in range(ATTEMPTS_MAX):
        database, place = next(databases), folder / str(attempt)
        place.mkdir()
        migrate(database)
        try:
            calls = play(place, "locks", [database], *options)
            check_ids(calls, is_dense=True)
            for world in by_world(calls).values():
                with suppress(GivenUp):
                    check_locks(world, is_alone=True, states_max=STATES_OF_SURE_MISTAKES)
        except error:
            return
    pytest.fail(f"{ATTEMPTS_MAX} attempts gave histories that an order explains")


@on_servers
def test_through_two_gateways(migrated_server_database: str, tmp_path: Path) -> None:
    with two_gateways(migrated_server_database, tmp_path) as addresses:
        found = check(play(tmp_path, "locks", addresses, *SPREAD, "--changes", "--worlds", SCALE))
    assert found.total() > 100 * SCALE
    assert min(found["change"], found["LockedByAnother"]) > SCALE


@pytest.mark.whole
@pytest.mark.parametrize("database", OTHERS_OF_THE_WHOLE)
def test_a_gateway_that_is_killed_loses_nothing_it_answered(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = None
    if database != "sqlite":
        url = request.getfixturevalue(f"migrated_{database}_database")
    with GatewayServer(tmp_path / "gateway", database=url) as server:
        process = start(tmp_path, "locks", [address(server)], "--worlds", 1, "--calls", 24)
        for kill in (1, 2):
            wait_for_journals(process, tmp_path, kill * KILL_BYTES // 2)
            server.kill()
            server.start()
        calls = finish(process, tmp_path)
    assert any(not call.is_answered for call in calls)
    check(calls, is_alone=False)


@contextmanager
def two_gateways(database: str, folder: Path) -> Iterator[list[str]]:
    """The addresses of two replicas over a database."""
    settings = {"locks_implicit": "deny"}
    first, second = (GatewayServer(folder / name, database=database, settings=settings) for name in ("first", "second"))
    with first, second:
        yield [address(first), address(second)]


def address(server: GatewayServer) -> str:
    return f"{server.url} {server.user} {server.password}"
