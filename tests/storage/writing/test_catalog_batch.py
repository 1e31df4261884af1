"""Units of work that are run together leave behind what they leave behind one by one, in few statements."""

import gc
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
from sqlalchemy import Engine, event, select
from sqlalchemy.sql.base import Generative

from hms_gateway.metastore.ports.store import (
    CatalogWork,
    Event,
    NewPartition,
    Selection,
    StoredPartition,
    StoredTable,
    StoreFailure,
    Transaction,
)
from hms_gateway.rpc.structs import Database, FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table
from hms_gateway.runtime.call_keys import AlreadyConcluded, CallKey
from hms_gateway.runtime.suspension import Job, Result
from hms_gateway.storage.catalog.batch import CatalogBatch
from hms_gateway.storage.dialects import dialect_of, parse_url, writing_engine
from hms_gateway.storage.dialects.postgres_pipeline import PostgresPipeline
from hms_gateway.storage.schema.catalog import (
    CATALOG,
    DESCRIPTORS,
    FURTHER_KEYS,
    KEY_COLUMN_COUNT,
    NOTIFICATIONS,
    OUTCOMES,
    PARTITIONS,
    TABLES,
)
from hms_gateway.storage.sql.repository import ReadPool
from hms_gateway.storage.writing import thread_writer
from hms_gateway.storage.writing.store import SqlSnapshot
from hms_gateway.storage.writing.thread_writer import Batch
from hms_gateway.txn.rules.names import Target
from tests.support.catalog import place_empty_database
from tests.support.manual_clock import ManualClock

SEEDS = 24
SEEDS_ON_SERVERS = 4
NAMES = "abc"
# Its partitions have more keys than there are columns for.
WIDE = "w"
KEY_COUNTS = {WIDE: KEY_COLUMN_COUNT + 1}


class Refused(Exception):
    pass


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    postgres = request.param == "postgres"
    url = request.getfixturevalue("migrated_postgres_database") if postgres else f"sqlite:///{tmp_path}/one.db"
    engine = opened(url)
    yield engine
    engine.dispose()


def opened(url: str) -> Engine:
    """An empty catalog with a database `d`."""
    if url.startswith("sqlite"):
        place_empty_database(Path(url.removeprefix("sqlite:///")))
    engine = writing_engine(parse_url(url))
    run(engine, [lambda tx: tx.insert_database(Database("d", None, "file:/d", {}))])
    return engine


def run(engine: Engine, works: Sequence[Any], keys: Sequence[CallKey | None] = ()) -> list[Result]:
    padded = [*keys, *[None] * (len(works) - len(keys))]
    jobs = [Job(work, Future(), key) for work, key in zip(works, padded, strict=True)]
    return Batch(engine, ManualClock(1_000), jobs).run()


def keys_of(name: str) -> list[str]:
    return ["k", *(f"k{number}" for number in range(1, KEY_COUNTS.get(name, 1)))]


def part_name(name: str, value: str) -> str:
    """The name of a partition whose keys all have this value."""
    return "/".join(f"{key}={value}" for key in keys_of(name))


def table(name: str, **parameters: str) -> Table:
    return Table(
        tableName=name, dbName="d", owner="o", createTime=1, lastAccessTime=0, retention=0, parameters=parameters,
        partitionKeys=[FieldSchema(key, "string") for key in keys_of(name)], tableType="MANAGED_TABLE",
    )  # fmt: skip


def creates(name: str, **parameters: str) -> CatalogWork[Any]:
    def work(tx: Transaction) -> str:
        database = tx.database("d")
        assert database is not None
        if tx.table("d", name) is not None:
            raise Refused(name)
        tx.insert_table(database.database_id, table(name, **parameters))
        return f"event {tx.append_event(Event('CREATE_TABLE', 'd', name, '{}'))}"

    return CatalogWork(work, [("d", name)], new_tables=1)


def drops(name: str) -> CatalogWork[Any]:
    def work(tx: Transaction) -> str:
        found = tx.table("d", name)
        if found is None:
            raise Refused(name)
        tx.delete_table(found.table_id)
        return f"event {tx.append_event(Event('DROP_TABLE', 'd', name, '{}'))}"

    return CatalogWork(work, [("d", name)])


def alters(name: str, value: str, *, fails: bool = False) -> CatalogWork[Any]:
    def work(tx: Transaction) -> object:
        found = tx.table("d", name)
        if found is None:
            raise Refused(name)
        before = dict(found.table.parameters or {})
        tx.update_table(found.table_id, found.database_id, table(name, value=value))
        tx.append_event(Event("ALTER_TABLE", "d", name, "{}"))
        if fails:
            raise Refused("after all")
        seen = tx.table("d", name)
        assert seen is not None
        return before, seen.table.parameters

    return CatalogWork(work, [("d", name)])


def renames(name: str, new_name: str) -> CatalogWork[Any]:
    def work(tx: Transaction) -> object:
        found = tx.table("d", name)
        if found is None or tx.table("d", new_name) is not None:
            raise Refused(name)
        tx.update_table(found.table_id, found.database_id, table(new_name, renamed="yes"))
        return tx.append_event(Event("ALTER_TABLE", "d", new_name, "{}"))

    return CatalogWork(work, [("d", name)])


def adds(name: str, *values: str, serde: str = "s", lists: bool = False) -> CatalogWork[Any]:
    """Partitions of a table as it is in the batch: `new_partitions` is about one that is known before.

    With `lists` it asks by a statement afterwards.
    """

    def work(tx: Transaction) -> object:
        found = tx.table("d", name)
        if found is None:
            raise Refused(name)
        tx.insert_partitions(found, [new_partition(value, serde, name) for value in values])
        tx.append_event(Event("ADD_PARTITION", "d", name, "{}"))
        seen = tx.table("d", name)
        assert seen is not None
        return seen.partition_count, tx.table_names("d") if lists else None

    return CatalogWork(work, [("d", name)])


def changes(
    name: str,
    *values: str,
    note: str,
    serde: str = "s",
    fails: bool = False,
    lists: bool = False,
    foreseen: Engine | None = None,
) -> Any:
    """Partitions that are there; what the work says that it will ask for is as it was before the batch."""
    names = [part_name(name, value) for value in values]
    known = None if foreseen is None else stored(foreseen, name, names)
    after = None if known is None else [changed(one, note, serde) for one in known[1]]

    def work(tx: Transaction) -> object:
        found = tx.table("d", name)
        if found is None:
            raise Refused(name)
        before = tx.partitions(found, Selection(names=names))
        if known is not None and found.table_id == known[0].table_id and found.table == known[0].table:
            is_foreseen = tx.are_unchanged(found, known[1]) and len(before) == len(known[1])
        else:
            is_foreseen = False
        if before:
            wanted = after if is_foreseen and after else [changed(one, note, serde) for one in before]
            tx.update_partitions(found, wanted)
            tx.append_event(Event("ALTER_PARTITION", "d", name, "{}"))
        if fails:
            raise Refused("after all")
        if lists:
            tx.table_names("d")
        seen = tx.partitions(found, Selection(names=names))
        return [(one.name, one.partition.parameters) for one in before], [one.partition.parameters for one in seen]

    if known is None or after is None:
        return CatalogWork(work, [("d", name)])
    return CatalogWork(work, [("d", name)], changed_partitions=(known[0], after), partitions=(known[0], names))


def stored(engine: Engine, name: str, names: Sequence[str]) -> tuple[StoredTable, list[StoredPartition]] | None:
    pool = ReadPool(engine, 1)
    shared = pool.take(asks_once=False)
    snapshot = SqlSnapshot(shared)
    found = snapshot.table("d", name)
    partitions = [] if found is None else snapshot.partitions(found, Selection(names=names))
    shared.release()
    pool.close()
    return None if found is None else (found, partitions)


def changed(one: StoredPartition, note: str, serde: str) -> StoredPartition:
    partition = new_partition(value_of(one), serde, one.partition.tableName or "").partition
    partition.parameters = {"note": note}
    return StoredPartition(one.partition_id, one.name, partition, one.as_stored)


def removes(name: str, *values: str, only: bool = False) -> CatalogWork[Any]:
    """Unless that is `only` what it does, some come back with another descriptor."""

    def work(tx: Transaction) -> object:
        found = tx.table("d", name)
        if found is None:
            raise Refused(name)
        gone = tx.partitions(found, Selection(names=[part_name(name, value) for value in values]))
        tx.delete_partitions(found, [one.name for one in gone])
        if not only and sum(len(one.name) for one in gone) % 2:
            tx.insert_partitions(found, [new_partition(value_of(one), "again", name) for one in gone])
        tx.append_event(Event("DROP_PARTITION", "d", name, "{}"))
        seen = tx.table("d", name)
        assert seen is not None
        return [one.name for one in gone], seen.partition_count, only or tx.outside_locations(seen)

    return CatalogWork(work, [("d", name)])


def removes_foreseen(engine: Engine, name: str, *values: str) -> CatalogWork[Any]:
    known = stored(engine, name, [f"k={value}" for value in values])
    assert known is not None
    return CatalogWork(
        removes(name, *values, only=True), [("d", name)], partitions=(known[0], [one.name for one in known[1]])
    )


def value_of(one: StoredPartition) -> str:
    assert one.partition.values is not None
    return one.partition.values[0]


def new_partition(value: str, serde: str = "s", name: str = "t") -> NewPartition:
    """Of the table with this name."""
    descriptor = StorageDescriptor(location=f"file:/d/k={value}", serdeInfo=SerDeInfo(serializationLib=serde))
    values = [value] * len(keys_of(name))
    return NewPartition(part_name(name, value), Partition(values, "d", "t", 1, 0, descriptor, {"a": "b"}))


def lists(*, fails: bool = False) -> Any:
    """By statements of its own."""

    def work(tx: Transaction) -> list[str]:
        tx.append_event(Event("X", "d", None, "{}"))
        names = tx.table_names("d")
        if fails:
            raise Refused("list")
        return names

    return work


def asks_for_locks(name: str) -> CatalogWork[Any]:
    return CatalogWork(lambda tx: tx.held_locks([Target("d", name)]), [("d", name)], reads_locks=True)


def drops_then_lists(name: str) -> Any:
    def work(tx: Transaction) -> list[str]:
        drops(name).work(tx)
        return tx.table_names("d")

    return work


def mixes(name: str, value: str) -> Any:
    """Changes between reads that only the database answers."""

    def work(tx: Transaction) -> object:
        found = tx.table("d", name)
        if found is None:
            raise Refused(name)
        tx.delete_partitions(found, [f"k={value}"])
        before = tx.partition_names(found, Selection())
        tx.insert_partitions(found, [new_partition(value, "mixed")])
        tx.update_table(found.table_id, found.database_id, table(name, value=value))
        among = [one.name for one in tx.partitions(found, Selection(partial_values=[None]))]
        tx.append_event(Event("X", "d", name, "{}"))
        (one,) = tx.partitions(found, Selection(names=[f"k={value}"]))
        tx.update_partitions(found, [changed(one, "mixed", "other")])
        tx.delete_partitions(found, before[:1])
        seen = tx.table("d", name)
        assert seen is not None
        return before, among, tx.table_names("d"), seen.partition_count, seen.table.parameters

    return work


def swaps(name: str, *values: str) -> Any:
    """Two partitions change their names and places."""

    def work(tx: Transaction) -> object:
        found = tx.table("d", name)
        if found is None:
            raise Refused(name)
        before = tx.partitions(found, Selection(names=[f"k={value}" for value in values]))
        swapped = [
            StoredPartition(one.partition_id, other.name, other.partition)
            for one, other in zip(before, reversed(before), strict=True)
        ]
        tx.update_partitions(found, swapped)
        seen = tx.partitions(found, Selection(names=[one.name for one in before]))
        return [one.name for one in seen], [one.partition for one in seen] == [one.partition for one in before]

    return work


def random_work(source: random.Random, engine: Engine) -> Any:
    name = source.choice(NAMES)
    values = source.sample("pqrstu", source.randint(1, 4))
    # Few partitions, so that a descriptor often loses its last one.
    listed, value, serde = source.choice([name, WIDE]), source.choice("pq"), source.choice("xyz")
    return source.choice(
        [
            lambda: creates(name, made=str(source.random())),
            lambda: creates(name),
            lambda: drops(name),
            lambda: alters(name, str(source.random())),
            lambda: alters(name, "lost", fails=True),
            lambda: renames(name, source.choice(NAMES)),
            lambda: adds(name, *source.sample("pqrstu", source.randint(1, 3)), serde=source.choice("xyz")),
            lambda: adds(name, source.choice("pqrstu")),
            lambda: adds(listed, value, serde=serde, lists=True),
            lambda: adds(WIDE, value, serde=serde),
            lambda: changes(listed, value, note="x", serde=serde, lists=True),
            lambda: changes(WIDE, value, note="x", serde=serde),
            lambda: removes(listed, *"pq", only=True),
            lambda: source.choice([creates, creates, creates, drops])(WIDE),
            lambda: drops_then_lists(listed),
            lambda: changes(name, *values, note=str(source.random()), serde=source.choice("xyz")),
            lambda: changes(name, *values, note=str(source.random()), serde=source.choice("xyz"), foreseen=engine),
            lambda: changes(name, *values, note="lost", fails=True),
            lambda: removes(name, *values),
            lambda: mixes(name, values[0]),
            lambda: swaps(name, *values[:2]),
            lambda: lists(),
            lambda: lists(fails=True),
        ]
    )()


def shown(outcomes: Sequence[Result]) -> list[str]:
    return [repr(each.value if each.failure is None else each.failure) for each in outcomes]


def rows(engine: Engine) -> list[Any]:
    columns = [column for column in TABLES.c if column.name != "table_id"]
    columns_of_partitions = PARTITIONS.c.part_name, PARTITIONS.c.location, PARTITIONS.c.parameters, PARTITIONS.c.key_0
    partitions = select(TABLES.c.name, *columns_of_partitions, DESCRIPTORS.c.rest)
    partitions = partitions.join(TABLES, TABLES.c.table_id == PARTITIONS.c.table_id).join(
        DESCRIPTORS, DESCRIPTORS.c.descriptor_id == PARTITIONS.c.descriptor_id
    )
    counts = DESCRIPTORS.c.content_hash, DESCRIPTORS.c.base_location, DESCRIPTORS.c.partition_count
    descriptors = select(TABLES.c.name, *counts).join(TABLES, TABLES.c.table_id == DESCRIPTORS.c.table_id)
    further = select(PARTITIONS.c.part_name, FURTHER_KEYS.c.position, FURTHER_KEYS.c.sort_key).join(
        FURTHER_KEYS, FURTHER_KEYS.c.partition_id == PARTITIONS.c.partition_id
    )
    with engine.connect() as connection:
        return [
            connection.execute(select(*columns).order_by(TABLES.c.name)).all(),
            connection.execute(select(NOTIFICATIONS).order_by(NOTIFICATIONS.c.event_id)).all(),
            connection.execute(select(CATALOG)).all(),
            connection.execute(partitions.order_by(TABLES.c.name, PARTITIONS.c.part_name)).all(),
            connection.execute(descriptors.order_by(TABLES.c.name, DESCRIPTORS.c.content_hash)).all(),
            connection.execute(further.order_by(PARTITIONS.c.part_name, FURTHER_KEYS.c.position)).all(),
        ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_together_is_as_one_by_one(tmp_path: Path, seed: int) -> None:
    assert_alike(f"sqlite:///{tmp_path}/together.db", f"sqlite:///{tmp_path}/single.db", seed)


@pytest.mark.parametrize("seed", range(SEEDS, SEEDS + SEEDS_ON_SERVERS))
def test_together_on_a_server_is_as_one_by_one_on_sqlite(
    migrated_server_database: str, tmp_path: Path, seed: int
) -> None:
    assert_alike(migrated_server_database, f"sqlite:///{tmp_path}/single.db", seed)


def assert_alike(together_url: str, single_url: str, seed: int) -> None:
    counts, order = random.Random(seed), [random.Random(seed) for _ in range(2)]
    sides = [opened(url) for url in (together_url, single_url)]
    for engine in sides:
        run(engine, [creates(WIDE)])
    for _ in range(10):
        count = counts.randint(1, 12)
        together = run(sides[0], [random_work(order[0], sides[0]) for _ in range(count)])
        single = [outcome for _ in range(count) for outcome in run(sides[1], [random_work(order[1], sides[1])])]
        assert shown(together) == shown(single)
        assert rows(sides[0]) == rows(sides[1])
    for engine in sides:
        engine.dispose()


def test_of_a_batch_only_what_raises_fails(engine: Engine) -> None:
    works = [
        creates("a"),
        creates("a"),
        alters("a", "x", fails=True),
        alters("a", "y"),
        drops("b"),
        drops("a"),
        creates("a"),
    ]
    outcomes = run(engine, works)
    assert [outcome.failure is None for outcome in outcomes] == [True, False, False, True, False, True, True]
    tables, events, version, *_ = rows(engine)
    assert [row.event_type for row in events] == ["CREATE_TABLE", "ALTER_TABLE", "DROP_TABLE", "CREATE_TABLE"]
    assert [row.event_id for row in events] == [1, 2, 3, 4]
    assert (len(tables), version[0].last_event_id) == (1, 4)


def test_many_new_partitions_are_added_with_other_changes(engine: Engine) -> None:
    many, others = [str(number) for number in range(60)], ["59", "60"]
    run(engine, [creates("a"), creates("b")])
    outcomes = run(engine, [adds("a", *many), adds("a", *others), adds("b", *many), alters("b", "x"), adds("b", "60")])
    assert [outcome.failure is None for outcome in outcomes] == [True, False, True, True, True]
    _, events, _, partitions, descriptors, _ = rows(engine)
    assert len(events) == 6
    assert [sum(row[0] == name for row in partitions) for name in "ab"] == [60, 61]
    assert [row.partition_count for row in descriptors] == [60, 61]


@pytest.mark.parametrize("name", ["a", WIDE])
@pytest.mark.parametrize("before", [removes, changes])
@pytest.mark.parametrize("lists", [False, True])
def test_a_descriptor_that_a_batch_left_unused_is_used_again(
    engine: Engine, name: str, before: Any, lists: bool
) -> None:
    run(engine, [creates(name), adds(name, "p")])
    leaves = removes(name, "p", only=True) if before is removes else changes(name, "p", note="x", serde="other")
    outcomes = run(engine, [leaves, adds(name, "q", lists=lists)])
    assert [outcome.failure is None for outcome in outcomes] == [True, True]
    kept = [] if before is removes else [part_name(name, "p")]
    known = stored(engine, name, [part_name(name, value) for value in "pq"])
    assert known is not None
    assert [one.name for one in known[1]] == [*kept, part_name(name, "q")]
    descriptors = rows(engine)[4]
    assert [row.partition_count for row in descriptors] == [1] * (len(kept) + 1)


def test_a_table_is_dropped_with_the_descriptors_that_its_batch_left_unused(engine: Engine) -> None:
    run(engine, [creates("a"), adds("a", "p"), creates("b")])
    lists_and_drops = [removes("a", "p", only=True), lists(), drops("a"), lists()]
    drops_and_lists = [creates("a"), adds("a", "p"), removes("a", "p", only=True), drops_then_lists("a")]
    for works in (lists_and_drops, drops_and_lists):
        assert [outcome.failure is None for outcome in run(engine, works)] == [True] * 4
        tables, _, _, _, descriptors, _ = rows(engine)
        assert [row.name for row in tables] == ["b"]
        assert descriptors == []


def test_a_call_with_a_key_is_done_once_in_a_batch_and_after_it(engine: Engine) -> None:
    key = CallKey("ann", "k", "create_table", b"hash", keeps_value=True)
    first, second = run(engine, [creates("a"), creates("b")], [key, key])
    (third,) = run(engine, [creates("c")], [key])
    assert first.failure is None
    for refused in (second, third):
        assert isinstance(refused.failure, AlreadyConcluded)
    with engine.connect() as connection:
        assert len(connection.execute(select(OUTCOMES)).all()) == 1


def test_what_the_database_refuses_ends_a_batch_that_has_no_savepoint(engine: Engine) -> None:
    def reads_nonsense(tx: Any) -> None:
        tx._dialect.run_on_driver(tx._batch.connection, "SELECT nonsense")

    with pytest.raises(StoreFailure):
        run(engine, [creates("a"), reads_nonsense])
    assert rows(engine)[0] == []


def test_a_batch_is_a_message_to_read_and_one_to_write(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    run(engine, [creates("old"), creates("gone"), adds("old", "1", "2", "3")])
    more = [changes("old", "1", note="x", foreseen=engine), removes_foreseen(engine, "old", "2")]
    messages: list[int] = []
    kind = type(dialect_of(engine))
    for name in ("run_together", "commit_with"):
        monkeypatch.setattr(kind, name, counted(getattr(kind, name), messages))
    sent: list[int] = []
    monkeypatch.setattr(PostgresPipeline, "send", counted(PostgresPipeline.send, sent))
    savepoints: list[str] = []
    monkeypatch.setattr(kind, "run_on_driver", lambda self, connection, text: savepoints.append(text))
    event.listen(engine, "before_cursor_execute", lambda *arguments: savepoints.append(arguments[2]))
    run(engine, [*(creates(f"t{number}") for number in range(20)), *more, alters("old", "new"), drops("gone")])
    # SQLite's commit runs its statements by the same method.
    assert len(messages) == (2 if dialect_of(engine).has_pipeline else 3)
    assert len(sent) == (2 if dialect_of(engine).has_pipeline else 0)
    assert [text for text in savepoints if "SAVEPOINT" in text or "SELECT" in text] == []


def counted(method: Any, messages: list[int]) -> Any:
    def run_counted(*arguments: Any) -> Any:
        messages.append(len(arguments[-1]))
        return method(*arguments)

    return run_counted


def test_nothing_of_a_batch_waits_for_the_garbage_collector(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[ref[CatalogBatch]] = []

    def noted(*arguments: Any) -> CatalogBatch:
        batch = CatalogBatch(*arguments)
        made.append(ref(batch))
        return batch

    monkeypatch.setattr(thread_writer, "CatalogBatch", noted)
    run(engine, [creates("old"), adds("old", "1")])
    gc.disable()
    try:
        run(engine, [creates("a"), adds("a", "1"), adds("a", "2"), changes("old", "1", note="x"), asks_for_locks("a")])
        assert [batch() for batch in made] == [None, None]
    finally:
        gc.enable()


def test_no_statement_is_made_for_a_call(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def works() -> list[Any]:
        return [
            *(creates("a"), alters("a", "x"), adds("a", "1"), adds("a", "2", "22"), renames("a", "b")),
            *(changes("b", "1", note="x"), changes("b", "2", note="y", serde="t"), removes("b", "1", "22", only=True)),
            *(renames("b", "a"), drops("a")),
        ]

    for work in works():
        run(engine, [work])
    made: list[object] = []
    generate = Generative._generate

    def counting(self: Any) -> Any:
        made.append(type(self))
        return generate(self)

    monkeypatch.setattr(Generative, "_generate", counting)
    for work in works():
        run(engine, [work])
    assert made == []
