"""Few partitions out of many are found by an index, without figures about the data: right after they were added."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event

from hms_gateway.catalog.rights.keeper import RightsRows
from hms_gateway.metastore.checks.selection import matching_filter, matching_partial
from hms_gateway.metastore.ports.store import Selection, StoredTable
from hms_gateway.rpc.structs import FieldSchema
from hms_gateway.runtime.limits import DEFAULT_LIMITS
from hms_gateway.storage.writing.store import SqlStore
from tests.contract.objects import create, database, descriptor, names, table

KEYS = [FieldSchema("ds", "string"), FieldSchema("hr", "int"), FieldSchema("number", "int"), FieldSchema("day", "date")]
COUNT = 5_000
TABLE_ID_BYTES = 8


# LIKE finds it, too: the range that MariaDB makes of a pattern ends before U+10000.
WANTED = "run-00077😀"


def values(number: int) -> list[str]:
    day = date.fromordinal(700_000 + number).isoformat()
    return [WANTED if number == 77 else f"run-{number:05}", str(number % 24), str(number), day]


def name(number: int) -> str:
    return "/".join(f"{key.name}={value}" for key, value in zip(KEYS, values(number), strict=True))


SELECTIONS = {
    "string": f"ds = '{WANTED}'",
    "int": "number = 77",
    "date": f"day = '{values(77)[3]}'",
    "bare date": f"day = {values(77)[3]}",
    "two keys side by side": "hr = 5 and number = 77",
    "narrow beside wide": "ds >= 'run-00077' and ds < 'run-00078' and hr != 6",
    "like": "ds like 'run-00077.*'",
    "in": "(number) in (77, 5077)",
    "between": "number between 77 and 77",
    "one of two keys": f"ds = '{WANTED}' and day >= '0001-01-01' and day < '9999-12-31' and hr = 5",
    "the other of two keys": f"hr = 5 and day = '{values(77)[3]}'",
    "or over several keys": f"ds = '{WANTED}' or day = '{values(77)[3]}' or number = 77",
    "or beside a wide condition": f"(ds = '{WANTED}' or number = 77) and hr >= 0",
    "or of conjunctions": "(hr = 5 and number = 77) or (hr = 6 and number = 77)",
    "rows of constants": "(struct(hr, number)) in (const struct(5, 77), const struct(6, 77))",
}


def selection(of: StoredTable, what: str) -> Selection:
    match what:
        case "names":
            return Selection(names=[name(77), *(f"ds={number}" for number in range(200))], limit=COUNT)
        case "leading value":
            return matching_partial(of, [WANTED])
        case "value in the middle":
            return matching_partial(of, ["", "", "77"])
        case _:
            return matching_filter(of, SELECTIONS[what], DEFAULT_LIMITS)


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.postgres),
        pytest.param("mariadb", marks=pytest.mark.mariadb),
    ]
)
def database_url(request: pytest.FixtureRequest, tmp_path: Path, migrated_sqlite_file: Path) -> str:
    """A database in which nothing ever was: servers keep figures about what other tests have deleted."""
    if request.param == "sqlite":
        return f"sqlite:///{shutil.copy(migrated_sqlite_file, tmp_path / 'catalog.sqlite')}"
    url: str = request.getfixturevalue(f"migrated_{request.param}_database")
    return url


@contextmanager
def statements() -> Iterator[list[tuple[str, Any]]]:
    """What is sent to any database meanwhile."""
    sent: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        sent.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def plan(database_url: str, statement: str, parameters: Any) -> str:
    engine = create_engine(database_url)
    if engine.dialect.name == "mariadb":
        with engine.connect() as connection:
            steps = [mariadb_step(row) for row in connection.exec_driver_sql("EXPLAIN " + statement, parameters)]
        engine.dispose()
        return "\n".join(steps)
    explain = "EXPLAIN QUERY PLAN " if engine.dialect.name == "sqlite" else "EXPLAIN (COSTS OFF) "
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(explain + statement, parameters).fetchall()
    engine.dispose()
    return "\n".join(str(row[-1]) for row in rows)


def mariadb_step(row: Any) -> str:
    """As SQLite says it. Partitions of which only `table_id` is looked up are as good as all."""
    is_whole = row.table == "partitions" and (row.type in ("ALL", "index") or row.key_len == str(TABLE_ID_BYTES))
    return (
        f"{'SCAN' if is_whole else 'SEARCH'} {row.table} ({row.type}, {row.key}, {row.key_len} bytes, {row.rows} rows)"
    )


def assert_indexes_are_used(store: SqlStore, database_url: str, of: StoredTable) -> None:
    for what in [*SELECTIONS, "names", "leading value", "value in the middle"]:
        with statements() as sent:
            assert names(store, of, selection(of, what)) == [name(77)], what
        asked = sent[-1]  # SQLite is asked for figures before
        steps = plan(database_url, *asked)
        assert "SCAN partitions" not in steps, (what, steps)  # SQLite reading everything
        assert "Seq Scan" not in steps, (what, steps)  # PostgreSQL reading everything
        reads = [step for step in steps.splitlines() if "table_id" in step]
        assert all("key_" in step or "part_name" in step or "rowid" in step for step in reads), (what, steps)


@pytest.mark.slow
def test_few_partitions_are_found_by_an_index_of_their_own(store: SqlStore, database_url: str) -> None:
    assert_indexes_are_used(store, database_url, create(store, table(partitionKeys=KEYS), map(values, range(COUNT))))


@pytest.mark.slow
@pytest.mark.parametrize("analyzed", [50, 3 * COUNT])
@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_figures_from_before_the_table_was_filled_mislead_nobody(
    store: SqlStore, database_url: str, analyzed: int
) -> None:
    create(store, table(tableName="analyzed", partitionKeys=KEYS), map(values, range(analyzed)))
    engine = create_engine(database_url)
    with engine.begin() as connection:
        connection.exec_driver_sql("ANALYZE")  # as PostgreSQL does by itself every few minutes
    engine.dispose()
    assert_indexes_are_used(store, database_url, create(store, table(partitionKeys=KEYS), map(values, range(COUNT))))


COARSE = [FieldSchema("day", "string"), FieldSchema("part", "int"), FieldSchema("region", "string")]


@pytest.mark.slow
@pytest.mark.parametrize("keys", [COARSE, COARSE[::-1]], ids=["fine first", "coarse first"])
def test_of_two_keys_the_one_with_fewer_partitions_is_looked_up(
    store: SqlStore, database_url: str, keys: list[FieldSchema]
) -> None:
    rows = [[f"2024-{number:05}", "1", "eu" if number % 3 else "us"] for number in range(COUNT)]
    of = create(store, table(partitionKeys=keys), rows if keys is COARSE else [row[::-1] for row in rows])
    with statements() as sent:
        assert len(names(store, of, matching_filter(of, "region = 'eu' and day = '2024-00077'", DEFAULT_LIMITS))) == 1
    steps = plan(database_url, *sent[-1])
    if "USING INDEX" in steps:
        assert f"partitions_key_{[key.name for key in keys].index('day')}" in steps
    assert "SCAN partitions" not in steps
    assert "Seq Scan" not in steps


@pytest.mark.slow
def test_tables_are_found_by_where_they_lie(store: SqlStore, database_url: str) -> None:
    places = {f"t{number}": f"file:/w/sales.db/t{number}" for number in range(300)}
    places |= {"below": "file:/w/sales.db/t77/ds=1", "beside": "file:/w/sales.db/t77-1", "case": "file:/w/sales.db/T77"}
    places |= {"any": "file:/w/sales.db/t%", "long": f"file:/w/{'x' * 5_000}"}
    made = [(name, descriptor(location)) for name, location in places.items()]
    store.write(lambda tx: tx.insert_database(database()))
    of = store.read(lambda snapshot: snapshot.database("sales"))
    assert of is not None
    store.write(lambda tx: [tx.insert_table(of.database_id, table(name, sd=sd)) for name, sd in made])
    with statements() as sent:
        found = store.read(lambda snapshot: RightsRows(snapshot).tables_placed("file:/w/sales.db/t77"))
    assert {(owner.table, location) for owner, location in found} == {(name, places[name]) for name in ("t77", "below")}
    steps = plan(database_url, *sent[-1])
    assert "tables_location" in steps, steps
