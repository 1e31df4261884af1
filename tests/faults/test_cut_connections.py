"""The connection to the database is cut between any two messages of a batch: what was acknowledged is there, what was
not is made by a repetition, and nothing is made twice.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Engine, func, make_url, select

from hms_gateway.metastore.ports.store import OutcomeUnknown
from hms_gateway.runtime.call_keys import AlreadyConcluded
from hms_gateway.storage.dialects import writing_engine
from hms_gateway.storage.dialects.postgres_pipeline import FEW_ROWS
from hms_gateway.storage.schema.catalog import CATALOG, NOTIFICATIONS, PARTITIONS, TABLES
from hms_gateway.storage.schema.txn import TXNS
from hms_gateway.storage.writing.thread_writer import ThreadWriter
from tests.faults.catalog_works import adds, alters, creates, drops, makes_database, opens, together
from tests.faults.message_proxy import MessageProxy, Way
from tests.support.manual_clock import ManualClock
from tests.support.private_mariadb import PrivateMariadb
from tests.support.private_postgres import PrivatePostgres
from tests.support.sample import sample

pytestmark = pytest.mark.slow

# Far above what a batch has.
MESSAGES_MAX = 2_000
# Before the commit is sent one message is like the other: a sample has every third.
STRIDE = sample(3, of=1)
LAST_MESSAGES = 9
# A sample has each database with one way.
SOME_WAYS = {("postgres", Way.TO_GATEWAY), ("mariadb", Way.TO_DATABASE)}
WAYS = [
    pytest.param(
        kind, way, marks=[getattr(pytest.mark, kind)] + ([] if (kind, way) in SOME_WAYS else [pytest.mark.whole])
    )
    for kind in ("postgres", "mariadb")
    for way in Way
]


class Behind(NamedTuple):
    """A writer behind the proxy, and an engine that goes past it."""

    proxy: MessageProxy
    writer: ThreadWriter
    direct: Engine


@pytest.fixture
def behind(
    database_server: PrivatePostgres | PrivateMariadb, migrated_server_database: str, tmp_path: Path
) -> Iterator[Behind]:
    url = make_url(migrated_server_database)
    is_postgres = isinstance(database_server, PrivatePostgres)
    name, option = (".s.PGSQL.5432", "host") if is_postgres else ("socket", "unix_socket")
    place = str(url.query[option])
    listens = tmp_path / name
    with MessageProxy(listens, Path(place, name) if is_postgres else Path(place), is_postgres=is_postgres) as proxy:
        proxied = url.update_query_dict({option: str(tmp_path if is_postgres else listens)})
        engine, direct = writing_engine(proxied), writing_engine(url)
        writer = ThreadWriter(engine, ManualClock(1_000), 100)
        yield Behind(proxy, writer, direct)
        writer.close()
        engine.dispose()
        direct.dispose()


def works(round: str) -> dict[str, Any]:
    """One of each, by keys; those of a round change things of their own."""
    return {
        f"create {round}": creates(f"new_{round}"),
        f"add {round}": adds("kept", round),
        f"alter {round}": alters("kept", round),
        f"drop {round}": drops(f"gone_{round}"),
        f"open {round}": opens(),
    }


@pytest.mark.parametrize(("database_server", "way"), WAYS, indirect=["database_server"])
def test_a_batch_is_cut_before_each_message(behind: Behind, way: Way) -> None:
    assert set(together(behind.writer, {"database": makes_database, "kept": creates("kept")}).values()) == {None}
    rounds, ends = 0, Counter[str]()

    def is_cut_before(count: int) -> bool:
        nonlocal rounds
        round = f"{rounds:04}"
        assert set(together(behind.writer, {f"before {round}": creates(f"gone_{round}")}).values()) == {None}
        cuts = behind.proxy.cuts
        behind.proxy.cut(way, count)
        outcomes = together(behind.writer, works(round))
        behind.proxy.cut(None)
        rounds += 1
        ends[repeated(behind, round, outcomes)] += 1
        return behind.proxy.cuts > cuts

    end = next(count for count in range(0, MESSAGES_MAX, STRIDE) if not is_cut_before(count))
    for count in range(end - LAST_MESSAGES, end):
        if count % STRIDE:
            is_cut_before(count)
    assert rounds > 10
    assert ends["answered"] > 0
    # The commit, or only its answer, is lost.
    assert ends["made again" if way is Way.TO_DATABASE else "made already"] > 0
    everything_happened_once(behind.direct, rounds)


@pytest.mark.postgres
@pytest.mark.parametrize("database_server", ["postgres"], indirect=True)
def test_many_partitions_are_added_though_the_connection_is_cut(behind: Behind) -> None:
    """They go by COPY."""
    assert set(together(behind.writer, {"database": makes_database, "kept": creates("kept")}).values()) == {None}
    outcomes: dict[int, BaseException | None] = {}

    def is_cut_before(count: int) -> bool:
        cuts = behind.proxy.cuts
        values = [f"{count}-{number}" for number in range(FEW_ROWS + 1)]
        behind.proxy.cut(Way.TO_DATABASE, count)
        (outcomes[count],) = together(behind.writer, {f"add {count}": adds("kept", *values)}).values()
        behind.proxy.cut(None)
        return behind.proxy.cuts > cuts

    end = next(count for count in range(MESSAGES_MAX) if not is_cut_before(count))
    unknown = {count for count, outcome in outcomes.items() if outcome is not None}
    assert len(unknown) < end
    assert {type(outcomes[count]) for count in unknown} == {OutcomeUnknown}
    with behind.direct.connect() as connection:
        names = [name.removeprefix("k=").split("-") for name in connection.scalars(select(PARTITIONS.c.part_name))]
    made = Counter(int(count) for count, _ in names)
    assert set(made.values()) == {FEW_ROWS + 1}
    assert outcomes.keys() - unknown <= made.keys()


def repeated(behind: Behind, round: str, outcomes: dict[str, BaseException | None]) -> str:
    """How it ends. Where that was not known, a repetition under the same keys makes all of the works or none."""
    if set(outcomes.values()) == {None}:
        return "answered"
    assert {type(reason) for reason in outcomes.values()} == {OutcomeUnknown}
    again = {type(reason) for reason in together(behind.writer, works(round)).values()}
    assert again in ({type(None)}, {AlreadyConcluded})
    return "made already" if again == {AlreadyConcluded} else "made again"


def everything_happened_once(direct: Engine, rounds: int) -> None:
    numbers = {f"{number:04}" for number in range(rounds)}
    with direct.connect() as connection:
        names = set(connection.scalars(select(TABLES.c.name)))
        partitions = list(connection.scalars(select(PARTITIONS.c.part_name)))
        events = list(connection.execute(select(NOTIFICATIONS.c.event_id, NOTIFICATIONS.c.event_type)))
        newest = connection.scalar(select(CATALOG.c.last_event_id))
        txns = list(connection.scalars(select(TXNS.c.txn_id)))
        partition_count = connection.scalar(select(TABLES.c.partition_count).where(TABLES.c.name == "kept"))
        assert connection.scalar(select(func.count()).select_from(TABLES)) == len(names)
    assert names == {"kept", *(f"new_{number}" for number in numbers)}
    assert sorted(partitions) == sorted(f"k={number}" for number in numbers)
    assert partition_count == rounds
    # `kept` and the tables that each round drops were created, too.
    kinds = {"CREATE_TABLE": 2 * rounds + 1, "ADD_PARTITION": rounds, "ALTER_TABLE": rounds, "DROP_TABLE": rounds}
    assert {kind: sum(each == kind for _, each in events) for kind in kinds} == kinds
    assert sorted(number for number, _ in events) == list(range(1, len(events) + 1))
    assert newest == len(events) == sum(kinds.values())
    assert sorted(txns) == list(range(1, rounds + 1))
