"""Programs of earlier revisions go on beside a migration: steps only add, or say that they do more (`READABLE_BY`)."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import BigInteger, Column, ForeignKey, create_engine, text

from hms_gateway.metastore.ports.store import StoreError
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.migrations import revisions
from hms_gateway.storage.migrations.operations import Operations
from hms_gateway.storage.migrations.revisions import migrate, note_older, revision_of
from hms_gateway.storage.migrations.steps import STEPS
from hms_gateway.storage.schema.catalog import READABLE_BY, REVISION
from hms_gateway.storage.writing.store import open_store
from tests.support.catalog import place_empty_database
from tests.support.manual_clock import ManualClock

ADDING = {revision: step for revision, step in STEPS.items() if revision > READABLE_BY}


class OnlyAdding:
    """What a step may ask for that older programs do not notice: they insert rows without new columns and delete rows
    that new tables reference. Whatever else it asks for, such as a kind of database, is an AttributeError.
    """

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    def create_table(self, name: str, *parts: Any, **options: Any) -> None:
        columns = [part for part in parts if isinstance(part, Column)]
        references = [key for column in columns for key in column.foreign_keys]
        assert all(key.ondelete == "CASCADE" for key in references), f"{name} holds rows that older programs delete"
        self._operations.create_table(name, *parts, **options)

    def create_index(self, name: str, table: str, columns: list[str], **options: Any) -> None:
        assert not options.get("unique"), f"{name} refuses rows that older programs insert"
        self._operations.create_index(name, table, columns, **options)

    def add_column(self, table: str, column: Column[Any]) -> None:
        is_optional = column.nullable or column.server_default is not None
        assert is_optional, f"{table}.{column.name} is missing in rows that older programs insert"
        self._operations.add_column(table, column)


@pytest.fixture
def database(tmp_path: Path) -> str:
    place_empty_database(tmp_path / "catalog.db")
    return f"sqlite:///{tmp_path / 'catalog.db'}"


def run(url: str, step: Callable[[Any], None]) -> None:
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            step(OnlyAdding(Operations(connection, repeats=True)))
    finally:
        engine.dispose()


def test_steps_only_add_unless_they_exclude_older_programs(database: str) -> None:
    """A step that does more needs `READABLE_BY` of its own revision."""
    assert READABLE_BY in STEPS
    for step in ADDING.values():
        run(database, step)
        run(database, step)  # what is there already stays


@pytest.mark.parametrize(
    "step",
    [
        lambda op: op.execute("DROP TABLE roles"),
        lambda op: op.connection.dialect.name,
        lambda op: op.add_column("roles", Column("more", BigInteger, nullable=False)),
        lambda op: op.create_index("roles_owner", "roles", ["owner_name"], unique=True),
        lambda op: op.create_table("more", Column("role_id", BigInteger, ForeignKey("roles.role_id"))),
    ],
    ids=["statement", "kind of database", "required column", "unique index", "reference"],
)
def test_a_step_that_does_more_is_found(database: str, step: Callable[[Any], None]) -> None:
    with pytest.raises((AssertionError, AttributeError)):
        run(database, step)


def note(url: str, revision: str, readable_by: str | None) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        values = {"revision": revision, "lowest": readable_by}
        connection.execute(text("UPDATE alembic_version SET version_num = :revision, readable_by = :lowest"), values)
    engine.dispose()


@pytest.mark.parametrize("readable_by", [READABLE_BY, REVISION])
def test_a_newer_revision_is_used_where_it_says_that_ours_may(database: str, readable_by: str) -> None:
    note(database, "9999", readable_by)
    assert revision_of(database) == REVISION
    migrate(database)
    with closing(open_store(database, ManualClock(), Limits())) as store:
        assert store.version() == 0
    engine = create_engine(database)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all() == ["9999"]
    engine.dispose()


@pytest.mark.parametrize("readable_by", [None, "9998"])
def test_another_newer_revision_is_refused(database: str, readable_by: str | None) -> None:
    note(database, "9999", readable_by)
    for use in (migrate, lambda url: open_store(url, ManualClock(), Limits())):
        with pytest.raises(StoreError, match="revision 9999"):
            use(database)


def test_a_downgrade_leaves_the_tables_and_an_upgrade_goes_on_from_there(database: str) -> None:
    engine = create_engine(database)
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO catalogs (name, location) VALUES ('spark', 'file:/w')"))
    assert note_older(database, READABLE_BY) == REVISION
    with engine.connect() as connection:
        assert revisions.current_revision(connection) == READABLE_BY
    migrate(database)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT name FROM catalogs")).scalars().all() == ["spark"]
        noted = connection.execute(text("SELECT version_num, readable_by FROM alembic_version")).all()
        assert noted == [(REVISION, READABLE_BY)]
    engine.dispose()


@pytest.mark.parametrize("revision", ["0016", "9999", "x"])
def test_a_downgrade_to_a_revision_that_cannot_use_the_tables_is_refused(database: str, revision: str) -> None:
    text = f"has revision {REVISION}, and this program can let programs of {READABLE_BY} to {REVISION} use it, not of"
    with pytest.raises(StoreError, match=f"{text} {revision}: restore a backup"):
        note_older(database, revision)
    assert revision_of(database) == REVISION
