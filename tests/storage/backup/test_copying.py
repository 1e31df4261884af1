"""Backups of real databases: everything comes back, on every kind of database; nobody gets an id a second time."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Boolean, Engine, Integer, LargeBinary, Table, delete, func, insert, select, update

from hms_gateway.metastore.changes.events import RESTORE_CATALOG
from hms_gateway.metastore.ports.store import StoreError, StoreUnavailable
from hms_gateway.rpc.structs import Database
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.backup.archive import BackupFolder, Inventory, Point
from hms_gateway.storage.backup.copying import Made, Restored, back_up, restore
from hms_gateway.storage.dialects import dialect_of, parse_url, writing_engine
from hms_gateway.storage.migrations.revisions import migrate
from hms_gateway.storage.schema.catalog import (
    CATALOG,
    DATABASES,
    DROPPED_TABLES,
    GATEWAYS,
    METADATA,
    NOTIFICATIONS,
    PARTITIONS,
    PENDING_MOVES,
    REVISION,
)
from hms_gateway.storage.schema.txn import COUNTERS, LEASE_WAITERS, LEASES, LOCKS, REBUILDS, TXN_COUNTERS, TXNS
from hms_gateway.storage.writing.store import open_store
from tests.support.catalog import place_empty_database
from tests.support.manual_clock import ManualClock
from tests.support.patience import PATIENCE_SECONDS, until

pytestmark = pytest.mark.slow

NOW_MS = 1_800_000_000_000
OF_A_MOMENT = {LOCKS, LEASES, LEASE_WAITERS, REBUILDS, GATEWAYS, DROPPED_TABLES}
GOING_ON = {CATALOG, NOTIFICATIONS, TXN_COUNTERS, TXNS}


@contextmanager
def opened(url: str) -> Iterator[Engine]:
    engine = writing_engine(parse_url(url))
    try:
        yield engine
    finally:
        engine.dispose()


def rows(url: str) -> dict[str, list[tuple[Any, ...]]]:
    with opened(url) as engine, engine.connect() as connection:
        ordered = [(table.name, select(table).order_by(*table.primary_key)) for table in METADATA.sorted_tables]
        return {name: [tuple(row) for row in connection.execute(statement)] for name, statement in ordered}


def value_of(column: Any, number: int) -> Any:
    kind = column.type
    if isinstance(kind, Boolean):
        return bool(number % 2)
    if isinstance(kind, Integer):
        return number
    return bytes([number, 0, 255]) if isinstance(kind, LargeBinary) else f'é"\\\n\U0001f600{number}'


def fill(url: str, tables: list[Table] = METADATA.sorted_tables) -> None:
    """Three rows in every table, of which one has no values that may be missing."""
    with opened(url) as engine, engine.begin() as connection:
        for table in tables:
            if table is CATALOG:
                connection.execute(update(CATALOG).values(last_event_id=3))
                continue
            for number in (1, 2, 3):
                columns = [column for column in table.columns if number < 3 or not column.nullable]
                connection.execute(insert(table).values({column: value_of(column, number) for column in columns}))
        for number, state in enumerate("oac", 1):
            connection.execute(update(TXNS).where(TXNS.c.txn_id == number).values(state=state))
        connection.execute(DROPPED_TABLES.delete())


@pytest.fixture
def source(tmp_path: Path) -> str:
    place_empty_database(tmp_path / "source.db")
    return f"sqlite:///{tmp_path / 'source.db'}"


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.postgres),
        pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.whole]),
    ]
)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database; of a server, with the tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'restored.db'}"
    url: str = request.getfixturevalue(f"migrated_{request.param}_database")
    return url


def saved(url: str, path: Path, time_ms: int = 1_000, tell: Callable[[str], object] = str) -> Made:
    return back_up(url, path, lambda: time_ms, {}, tell)


def restored(url: str, path: Path, point: Point | None = None, *, replaces: bool = False, at: int = NOW_MS) -> Restored:
    with BackupFolder(path) as folder:
        return restore(url, folder, folder.choose(point or Point()), at, str, replaces=replaces)


def test_every_table_comes_back_but_those_of_a_moment(source: str, target: str, tmp_path: Path) -> None:
    fill(source)
    before = rows(source)
    saved(source, tmp_path / "backups")
    done = restored(target, tmp_path / "backups")
    after = rows(target)
    for table in set(METADATA.sorted_tables) - GOING_ON:
        assert after[table.name] == ([] if table in OF_A_MOMENT else before[table.name]), table.name
    assert after["notifications"][:3] == before["notifications"]
    assert [row[0] for row in after["notifications"]] == [1, 2, 3, done.event_id]
    assert after["notifications"][3][2] == RESTORE_CATALOG
    assert after["catalog"] == [(1, done.event_id)]
    assert done.event_id == NOW_MS
    # Back into the kind that it came from, by another backup: no value changes on the way.
    again = saved(target, tmp_path / "backups", 2_000).backup.inventory
    changed = {name for name in again.tables if again.tables[name] != done.inventory.tables[name]}
    assert changed == {table.name for table in GOING_ON}


def test_open_transactions_are_aborted_and_counters_go_on(source: str, target: str, tmp_path: Path) -> None:
    fill(source)
    saved(source, tmp_path / "backups")
    done = restored(target, tmp_path / "backups")
    assert done.aborted == 1
    after = rows(target)
    states = {row[0]: (row[1], row[8], row[10]) for row in after["txns"]}
    assert states[1] == ("a", NOW_MS, "it was open when the catalog was backed up")
    assert [state for state, *_ in states.values()] == ["a", "a", "c"]
    assert dict(after["txn_counters"]) == dict.fromkeys(COUNTERS, NOW_MS)


def test_no_id_is_given_again(source: str, target: str, tmp_path: Path) -> None:
    """Neither one of the lost state, nor one that an earlier restore began with."""
    saved(source, tmp_path / "backups")
    for number in range(2):
        done = restored(target, tmp_path / "backups", replaces=number > 0)
        assert done.event_id == NOW_MS + 2 * number
        with closing(open_store(target, ManualClock(), Limits())) as store:
            database = Database("sales", None, "file:/w/sales.db", {})
            assert store.write(lambda tx, made=database: tx.insert_database(made)) > done.event_id
            with opened(target) as engine, engine.begin() as connection:
                connection.execute(update(CATALOG).values(last_event_id=done.event_id + 1))


def test_a_catalog_that_is_not_empty_is_kept_unless_it_is_given_up(source: str, target: str, tmp_path: Path) -> None:
    saved(source, tmp_path / "backups")
    restored(target, tmp_path / "backups")
    fill(target, [DATABASES])
    with pytest.raises(StoreError, match=r"not empty: it has rows in databases; .* --replace"):
        restored(target, tmp_path / "backups")
    assert len(rows(target)["databases"]) == 3
    restored(target, tmp_path / "backups", replaces=True)
    assert rows(target)["databases"] == []


@pytest.mark.postgres
def test_a_backup_is_one_state_while_others_write(source: str, migrated_postgres_database: str, tmp_path: Path) -> None:
    for url in (source, migrated_postgres_database):
        path = tmp_path / url.partition(":")[0]
        fill(url)

        def change(name: str, url: str = url) -> None:
            """Of tables that are not read yet, and of one that is half read at most."""
            if name in ("databases", "partitions"):
                with opened(url) as engine, engine.begin() as connection:
                    connection.execute(PARTITIONS.delete())
                    connection.execute(update(CATALOG).values(last_event_id=CATALOG.c.last_event_id + 1))

        made = saved(url, path, tell=change)
        assert made.backup.inventory.event_id == 3
        assert made.backup.inventory.count("partitions") == 3
        later = saved(url, path, 2_000)
        assert later.backup.inventory.event_id == 5
        assert later.backup.inventory.count("partitions") == 0


@pytest.mark.postgres
def test_a_change_that_waits_for_a_restore_is_made_afterwards(migrated_postgres_database: str, tmp_path: Path) -> None:
    url, path = migrated_postgres_database, tmp_path / "backups"
    saved(url, path)
    made = []
    with (
        opened(url) as engine,
        closing(open_store(url, ManualClock(), Limits())) as store,
        ThreadPoolExecutor(1) as pool,
    ):
        database = Database("late", None, "file:/w/late.db", {})

        def waits() -> bool:
            waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            with engine.connect() as connection:
                return connection.exec_driver_sql(waiting).scalar() == 1

        def change(_: str) -> None:
            if not made:
                made.append(pool.submit(store.write, lambda tx: (tx.insert_database(database), tx.current_event_id())))
                until(waits)

        with BackupFolder(path) as folder:
            done = restore(url, folder, folder.choose(Point()), NOW_MS, change, replaces=True)
        database_id, event_id = made[0].result(PATIENCE_SECONDS)
    assert event_id == done.event_id
    assert [row[:2] for row in rows(url)["databases"]] == [(database_id, "late")]


def test_an_increment_has_what_changed_and_each_point_can_be_restored(source: str, tmp_path: Path) -> None:
    path, target = tmp_path / "backups", f"sqlite:///{tmp_path / 'restored.db'}"
    fill(source)
    made = [saved(source, path)]
    with opened(source) as engine, engine.begin() as connection:
        connection.execute(update(DATABASES).where(DATABASES.c.database_id == 2).values(description="new"))
        connection.execute(update(CATALOG).values(last_event_id=9))
    made.append(saved(source, path, 2_000))
    assert [one.is_increment for one in made] == [False, True]
    assert made[1].chunks == 2
    unchanged, base = saved(source, path, 3_000), back_up(source, path, lambda: 4_000, {}, str, is_base=True)
    tables = made[1].backup.inventory.tables
    assert unchanged.chunks == 0
    assert base.chunks == len({chunk.sha256 for table in tables.values() for chunk in table.chunks})
    for point, description in ((Point(3), value_of(DATABASES.c.description, 2)), (Point(9), "new")):
        restored(target, path, point, replaces=True)
        assert rows(target)["databases"][1][2] == description
    # A new base needs none of the files before it.
    for one in made:
        (path / one.backup.name).unlink()
    restored(target, path, replaces=True)


def test_damage_is_found_before_anything_is_written(source: str, tmp_path: Path) -> None:
    fill(source)
    made = saved(source, tmp_path / "backups")
    file = tmp_path / "backups" / made.backup.name
    whole = file.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole.replace(b"chunks/", b"chunkz/")):
        file.write_bytes(damaged)
        with pytest.raises(StoreError, match=f"{file.name} is damaged or cut off"):
            restored(f"sqlite:///{tmp_path / 'restored.db'}", tmp_path / "backups")
    assert not (tmp_path / "restored.db").exists()


def test_moves_under_way_are_still_pending_after_a_restore(source: str, target: str, tmp_path: Path) -> None:
    """A gateway moves a directory, and its commit waits for the restore."""
    fill(source, [PENDING_MOVES])
    saved(source, tmp_path / "backups")
    restored(target, tmp_path / "backups")
    with opened(target) as engine, engine.begin() as connection:
        connection.execute(delete(PENDING_MOVES).where(PENDING_MOVES.c.move_id == 3))
        connection.execute(insert(PENDING_MOVES).values(table_id=7, source="file:/a", target="file:/b"))
    present = rows(target)["pending_moves"]
    saved_moves = rows(source)["pending_moves"]
    restored(target, tmp_path / "backups", replaces=True, at=NOW_MS + 1)
    assert rows(target)["pending_moves"] == [*saved_moves, present[2]]


def test_the_time_of_a_backup_is_not_before_its_changes(source: str, tmp_path: Path) -> None:
    def changing() -> int:
        with opened(source) as engine, engine.begin() as connection:
            connection.execute(update(CATALOG).values(last_event_id=5))
        return 1_000

    assert back_up(source, tmp_path / "backups", changing, {}, str).backup.inventory.event_id == 0
    again = saved(source, tmp_path / "backups").backup
    assert again.inventory.event_id == 5
    with BackupFolder(tmp_path / "backups") as folder:
        assert folder.choose(Point(time_ms=1_000)) == again


@pytest.mark.parametrize("is_gone", [False, True], ids=["row", "event"])
def test_ids_of_the_backup_are_not_given_again_where_the_clock_is_behind(
    source: str, target: str, tmp_path: Path, is_gone: bool
) -> None:
    saved(source, tmp_path / "backups")
    restored(source, tmp_path / "backups", replaces=True)
    fill(source, [PENDING_MOVES])
    with opened(source) as engine, engine.begin() as connection:
        connection.execute(insert(PENDING_MOVES).values(table_id=7, source="file:/a", target="file:/b"))
    newest = rows(source)["pending_moves"][-1][0]
    assert newest > NOW_MS
    if is_gone:
        with opened(source) as engine, engine.begin() as connection:
            connection.execute(delete(PENDING_MOVES))
            connection.execute(update(CATALOG).values(last_event_id=newest))
    saved(source, tmp_path / "backups", 2_000)
    restored(target, tmp_path / "backups", at=5_000)
    with opened(target) as engine, engine.begin() as connection:
        connection.execute(delete(PENDING_MOVES).where(PENDING_MOVES.c.move_id == newest))
        new = insert(PENDING_MOVES).values(table_id=7, source="file:/a", target="file:/b")
        assert connection.execute(new).inserted_primary_key[0] > newest


def test_the_next_id_is_never_lowered(target: str) -> None:
    migrate(target)
    new = insert(PENDING_MOVES).values(table_id=7, source="file:/a", target="file:/b")
    with opened(target) as engine, engine.begin() as connection:
        dialect_of(connection).raise_ids(connection, [PENDING_MOVES], NOW_MS)
        newest = connection.execute(new).inserted_primary_key[0]
        connection.execute(delete(PENDING_MOVES))
        dialect_of(connection).raise_ids(connection, [PENDING_MOVES], NOW_MS - 1_000)
        assert connection.execute(new).inserted_primary_key[0] > newest > NOW_MS


@pytest.mark.postgres
def test_a_deadlock_ends_a_restore_with_a_text(source: str, migrated_postgres_database: str, tmp_path: Path) -> None:
    """Another program holds a row, and asks for the catalog while the restore waits for the row."""
    plain = migrated_postgres_database.replace("+psycopg", "")
    is_waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'DELETE FROM%'"
    saved(source, tmp_path / "backups")
    fill(migrated_postgres_database, [DATABASES])
    with psycopg.connect(plain) as other, psycopg.connect(plain, autocommit=True) as observer:
        other.execute("SET deadlock_timeout = '1h'")
        other.execute("UPDATE databases SET name = name")

        def ask() -> None:
            until(lambda: observer.execute(is_waiting).fetchone())
            other.execute("UPDATE catalog SET catalog_id = catalog_id")

        with ThreadPoolExecutor(1) as threads:
            asked = threads.submit(ask)
            with pytest.raises(StoreUnavailable):
                restored(migrated_postgres_database, tmp_path / "backups", replaces=True)
            asked.result()
    assert len(rows(migrated_postgres_database)["databases"]) == 3


@pytest.mark.mariadb
@pytest.mark.whole
def test_a_restore_waits_for_no_reader_once_it_has_begun(
    source: str, migrated_mariadb_database: str, tmp_path: Path
) -> None:
    """Its counters are raised before: a change of a table waits for all who read it, and ends the transaction."""
    url, path = migrated_mariadb_database, tmp_path / "backups"
    fill(source, [DATABASES])
    saved(source, path)
    with opened(url) as engine, engine.connect() as reader:

        def read(_: str) -> None:
            reader.execute(select(DATABASES)).all()

        with BackupFolder(path) as folder:
            restore(url, folder, folder.choose(Point()), NOW_MS, read, replaces=True)
    assert len(rows(url)["databases"]) == 3


@pytest.mark.mariadb
@pytest.mark.whole
def test_rows_that_a_database_does_not_take_are_named(
    source: str, migrated_mariadb_database: str, tmp_path: Path
) -> None:
    with opened(source) as engine, engine.begin() as connection:
        values = {column: value_of(column, 1) for column in DATABASES.columns}
        connection.execute(insert(DATABASES).values(values | {DATABASES.c.name: "d" * 1_000}))
    saved(source, tmp_path / "backups")
    with pytest.raises(StoreError, match=r"does not take the rows of databases: a text is longer than"):
        restored(migrated_mariadb_database, tmp_path / "backups")


def test_a_restore_that_fails_leaves_what_was_there(source: str, tmp_path: Path) -> None:
    """Rows that the database refuses, that it changes, and events beyond the catalog's version."""
    fill(source)
    made = saved(source, tmp_path / "backups")
    target = f"sqlite:///{tmp_path / 'restored.db'}"
    restored(target, tmp_path / "backups")
    before = rows(target)
    fields = {key: getattr(made.backup.inventory, key) for key in Inventory.__struct_fields__}
    without = {name: kept for name, kept in made.backup.inventory.tables.items() if name != "tables"}
    backup = made.backup._replace(inventory=Inventory(**fields | {"tables": without}))
    with (
        BackupFolder(tmp_path / "backups") as folder,
        pytest.raises(StoreError, match=r"not take the rows of .*: the database refused a statement .*CONSTRAINT"),
    ):
        restore(target, folder, backup, NOW_MS, str, replaces=True)
    assert rows(target) == before
    with opened(source) as engine, engine.begin() as connection:
        connection.execute(update(CATALOG).values(last_event_id=2))
    saved(source, tmp_path / "backups", 2_000)
    with pytest.raises(StoreError, match="has events up to 3, but its catalog is at 2"):
        restored(target, tmp_path / "backups", replaces=True)
    assert rows(target) == before
    with opened(target) as engine, engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER changes AFTER INSERT ON roles BEGIN UPDATE roles SET create_time = 0; END"
        )
    with pytest.raises(StoreError, match="gives back other rows of roles; nothing is restored"):
        restored(target, tmp_path / "backups", Point(time_ms=1_000), replaces=True)
    assert rows(target) == before


@pytest.mark.parametrize("revision", ["0016", "9999"])
def test_a_revision_that_cannot_be_taken_is_named(source: str, tmp_path: Path, revision: str) -> None:
    made = saved(source, tmp_path / "backups")
    fields = {key: getattr(made.backup.inventory, key) for key in Inventory.__struct_fields__}
    backup = made.backup._replace(inventory=Inventory(**fields | {"revision": revision}))
    text = rf"revision {revision} of the tables, this program takes 0017 to {REVISION}: restore with version [\d.]+ of"
    with BackupFolder(tmp_path / "backups") as folder, pytest.raises(StoreError, match=text):
        restore(source, folder, backup, NOW_MS, str, replaces=True)


def test_a_database_with_newer_tables_is_not_copied_in_part(source: str, tmp_path: Path) -> None:
    """A gateway of ours may use it, but a copy of ours would lack what newer programs keep there."""
    saved(source, tmp_path / "backups")
    with opened(source) as engine, engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    open_store(source, ManualClock(), Limits()).close()
    for use in (
        lambda: saved(source, tmp_path / "more"),
        lambda: restored(source, tmp_path / "backups", replaces=True),
    ):
        with pytest.raises(StoreError, match="revision 9999, this program needs"):
            use()


def test_a_database_that_is_missing_or_damaged_gives_no_backup(source: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"none\.db not found"):
        saved(f"sqlite:///{tmp_path / 'none.db'}", tmp_path / "backups")
    file = tmp_path / "source.db"
    content = bytearray(file.read_bytes())
    content[20 * 4096 : 40 * 4096] = b"\xa5" * 20 * 4096
    file.write_bytes(content)
    with pytest.raises(StoreError, match=re.escape(f"{file} is damaged")):
        saved(source, tmp_path / "backups")
    assert not (tmp_path / "backups").exists()


@pytest.mark.mariadb
@pytest.mark.whole
def test_partitions_of_tables_that_are_dropped_already_stay_behind(
    migrated_mariadb_database: str, tmp_path: Path
) -> None:
    fill(migrated_mariadb_database)
    with opened(migrated_mariadb_database) as engine, engine.begin() as connection:
        connection.execute(insert(DROPPED_TABLES).values(table_id=2))
    made = saved(migrated_mariadb_database, tmp_path / "backups")
    assert made.backup.inventory.count("partitions") == 2
    with opened(migrated_mariadb_database) as engine, engine.connect() as connection:
        assert connection.execute(select(func.count()).select_from(PARTITIONS)).scalar() == 3
