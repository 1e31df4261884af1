"""Two ways in which the real metastore gives one table to a writer and a reader at once, and we none (semantics §5.8).

The differences in docs/differences.md called "locks granted too early" are these.
"""

from collections.abc import Callable, Iterator

import pytest

from tests.comparison.ids import lock
from tests.comparison.lock_history import ACQUIRED, EXCLUSIVE, SHARED_READ, WAITING
from tests.comparison.scripts.locking import component, request
from tests.comparison.scripts.locks import check, unlock
from tests.comparison.servers import Metastore, call

pytestmark = pytest.mark.slow
Scenario = Callable[[Metastore], tuple[int, int]]


def reader_passes_waiting_writer(metastore: Metastore) -> tuple[int, int]:
    """The writer's state and the reader's, both asked at the end, when the first reader has gone."""
    read, write = component(SHARED_READ, "shared", "t"), component(EXCLUSIVE, "shared", "t")
    assert asked(metastore, request(read, user="ann")) == ACQUIRED
    assert asked(metastore, request(write, user="ben")) == WAITING
    asked(metastore, request(read, user="cid"))
    metastore.ask(unlock(lock(1)))
    return state(metastore, 2), state(metastore, 3)


def writer_sees_only_the_database_being_read(metastore: Metastore) -> tuple[int, int]:
    """The writer's state and that of the table's reader, who came first. The database's reader hides him from Hive."""
    assert asked(metastore, request(component(SHARED_READ, "shared", "t"), user="ann")) == ACQUIRED
    assert asked(metastore, request(component(SHARED_READ, "shared"), user="ben")) == ACQUIRED
    asked(metastore, request(component(EXCLUSIVE, "shared", "t"), user="cid"))
    return state(metastore, 3), state(metastore, 1)


def asked(metastore: Metastore, wanted: object) -> int:
    return int(metastore.ask(call("lock", wanted))["success"]["state"])


def state(metastore: Metastore, number: int) -> int:
    return int(metastore.ask(check(lock(number)))["success"]["state"])


both_ways = pytest.mark.parametrize(
    "scenario", [reader_passes_waiting_writer, writer_sees_only_the_database_being_read]
)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.whole)])
def each_of_ours(request: pytest.FixtureRequest) -> Iterator[Metastore]:
    fixture = {"sqlite": "gateway", "postgres": "gateway_on_postgres"}[request.param]
    metastore = Metastore.ours(request.getfixturevalue(fixture))
    metastore.clean()
    yield metastore
    metastore.clean()
    metastore.close()


@both_ways
def test_ours_gives_the_table_to_one_of_them(each_of_ours: Metastore, scenario: Scenario) -> None:
    assert sorted(scenario(each_of_ours)) == [ACQUIRED, WAITING]


def test_ours_gives_it_to_the_reader_next(each_of_ours: Metastore) -> None:
    reader_passes_waiting_writer(each_of_ours)
    each_of_ours.ask(unlock(lock(2)))
    assert state(each_of_ours, 3) == ACQUIRED


@pytest.mark.java
@pytest.mark.whole
@both_ways
def test_the_real_one_gives_it_to_both(theirs: Metastore, scenario: Scenario) -> None:
    assert scenario(theirs) == (ACQUIRED, ACQUIRED)
