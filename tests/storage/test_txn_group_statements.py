"""What a batch reads is looked up by index, also in tables that the database knows nothing about yet."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Select

from app.storage.engines import parse_url, writing_engine
from app.storage.filter_sql import bound_list, bound_pairs
from app.storage.revisions import migrate_engine
from app.storage.txn_group_statements import GroupStatements
from app.storage.txn_locks import _near_places, _with_ids

IDS = list(range(10))
PAIRS = [(f"first {number}", f"second {number}") for number in IDS]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def connection(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connection]:
    url = f"sqlite:///{tmp_path}/catalog.sqlite"
    if request.param == "postgresql":
        url = request.getfixturevalue("fresh_postgres_database")
    engine = writing_engine(parse_url(url))
    migrate_engine(engine)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def plan(connection: Connection, statement: Select[Any], values: dict[str, object]) -> str:
    compiled = statement.compile(dialect=connection.dialect)
    given = {**compiled.params, **values}
    parameters = given if compiled.positiontup is None else tuple(given[name] for name in compiled.positiontup)
    explain = "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"
    return "\n".join(str(row) for row in connection.exec_driver_sql(f"{explain} {compiled}", parameters))


@pytest.mark.parametrize("name", ["txns", "components", "outcomes", "locks with ids", "locks near"])
def test_no_table_is_read_whole(connection: Connection, name: str) -> None:
    dialect_name = connection.dialect.name
    others = {"locks with ids": _with_ids, "locks near": _near_places}
    statement = others[name](dialect_name) if name in others else getattr(GroupStatements(dialect_name), name)
    values = {"ids": bound_list(IDS, dialect_name), **bound_pairs(PAIRS, dialect_name)}
    values |= {"least_strength": 0, "limit": 100}
    shown = plan(connection, statement, {key: values[key] for key in statement.compile().params if key in values})
    assert re.search(r"SEARCH|Index", shown), shown
    assert not re.search(r"SCAN (?!json_each|anon)|Seq Scan", shown), shown
