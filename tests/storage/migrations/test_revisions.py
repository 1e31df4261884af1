"""Migrations make exactly the schema the code describes, and a store opens on no other revision."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, text
from sqlalchemy.dialects.mysql import LONGBLOB, LONGTEXT

import tests.storage.migrations.partial_indexes  # noqa: F401 - part of the schema
from hms_gateway.metastore.ports.store import StoreError, StoreUnavailable
from hms_gateway.runtime.call_keys import AlreadyConcluded, CallKey, KeptAnswer, Outcome
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.migrations import revisions
from hms_gateway.storage.migrations.revisions import migrate
from hms_gateway.storage.migrations.steps import STEPS
from hms_gateway.storage.schema.catalog import METADATA, OF_PARTITIONED, REVISION
from hms_gateway.storage.writing.store import open_store
from tests.support.manual_clock import ManualClock
from tests.support.shared_schema import upgrade


@pytest.fixture(autouse=True)
def migrates_by_revisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests copy what the first migration of their process made."""
    monkeypatch.setattr(revisions, "_upgrade", upgrade)


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.postgres),
        pytest.param("mariadb", marks=pytest.mark.mariadb),
    ]
)
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'catalog.sqlite'}"
    url: str = request.getfixturevalue(f"fresh_{request.param}_database")
    return url


def test_the_newest_migration_is_the_revision_we_need() -> None:
    assert list(STEPS) == sorted(STEPS)
    assert list(STEPS)[-1] == REVISION


@pytest.mark.slow
def test_migrations_make_the_schema_of_the_code(empty_database: str) -> None:
    migrate(empty_database)
    migrate(empty_database)
    engine = create_engine(empty_database)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": differs, "include_object": is_compared(connection.dialect.name)}
        )
        assert compare_metadata(context, METADATA) == []
        assert connection.execute(text("SELECT last_event_id FROM catalog")).all() == [(0,)]
    engine.dispose()


def is_compared(dialect_name: str) -> Callable[..., bool]:
    """MariaDB has no references to tables from what stays for a while when these are dropped."""

    def is_one(item: Any, name: str | None, kind: str, reflected: bool, other: Any) -> bool:
        is_reference = kind == "foreign_key_constraint"
        return not (is_reference and dialect_name == "mariadb" and not reflected and item.table in OF_PARTITIONED)

    return is_one


def differs(context: Any, inspected: Any, declared: Any, found: Any, declared_type: Any) -> bool | None:
    """MariaDB makes a LONGTEXT of a text with this length; None leaves it to Alembic."""
    if context.dialect.name != "mariadb" or not isinstance(found, (LONGTEXT, LONGBLOB)):
        return None
    return (
        declared_type.dialect_impl(context.dialect).length,
        getattr(declared_type.dialect_impl(context.dialect), "collation", None),
    ) != (2**32 - 1, getattr(found, "collation", None))


@pytest.mark.parametrize("column", ["part_name", "key_0", "key_7"])
@pytest.mark.postgres
def test_compared_texts_have_binary_collation(migrated_postgres_database: str, column: str) -> None:
    engine = create_engine(migrated_postgres_database)
    with engine.connect() as connection:
        query = "SELECT collation_name FROM information_schema.columns WHERE column_name = :name"
        assert connection.execute(text(query), {"name": column}).scalars().all() == ["C"]
    engine.dispose()


@pytest.mark.slow
def test_a_sqlite_file_is_migrated_when_it_is_opened(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'new.sqlite'}", ManualClock(), Limits())
    assert store.version() == 0
    store.close()


@pytest.mark.postgres
def test_a_server_database_without_schema_is_refused(fresh_postgres_database: str) -> None:
    with pytest.raises(StoreError, match="no schema yet: run `hms-gateway migrate`"):
        open_store(fresh_postgres_database, ManualClock(), Limits())


@pytest.mark.slow
def test_an_unknown_revision_is_refused(empty_database: str) -> None:
    migrate(empty_database)
    engine = create_engine(empty_database)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999', readable_by = NULL"))
    engine.dispose()
    with pytest.raises(StoreError, match="revision 9999"):
        open_store(empty_database, ManualClock(), Limits())
    with pytest.raises(StoreError, match="revision 9999"):
        migrate(empty_database)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite://", "needs a file"),
        ("sqlite:///:memory:", "needs a file"),
        ("oracle://localhost/x", "not supported"),
        ("nonsense", "cannot be read"),
        ("postgresql+nodriver://localhost/x", "not supported"),
    ],
)
def test_other_urls_are_refused_with_a_reason(url: str, words: str) -> None:
    with pytest.raises(StoreError, match=words):
        open_store(url, ManualClock(), Limits())


def test_a_place_where_no_file_can_be_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be used"):
        open_store(f"sqlite:///{tmp_path / 'missing' / 'catalog.sqlite'}", ManualClock(), Limits())


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'catalog.sqlite'}", ManualClock(), Limits())
    store.write(lambda tx: tx.current_event_id())
    assert {path.stat().st_mode & 0o077 for path in tmp_path.iterdir()} == {0}
    store.close()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    path.write_text("This is not a database, but it is long enough to look at. " * 20)
    with pytest.raises(StoreError, match="NOTADB"):
        open_store(f"sqlite:///{path}", ManualClock(), Limits())


# Since the revision that the test goes back to.
LATER_COLUMNS = (
    ("outcomes", "message_hash"),
    ("outcomes", "is_exception"),
    ("locks", "principal"),
    ("locks", "client_address"),
    ("notifications", "principal"),
    ("notifications", "actor"),
    ("txns", "has_write_ids"),
    ("table_statistics", "write_id"),
    ("partition_statistics", "write_id"),
)


@pytest.mark.slow
def test_keys_of_calls_from_before_they_had_hashes_stay_known(empty_database: str) -> None:
    migrate(empty_database)
    engine = create_engine(empty_database)
    with engine.begin() as connection:
        for table, column in LATER_COLUMNS:
            connection.execute(text(f"ALTER TABLE {table} DROP COLUMN {column}"))
        connection.execute(
            text("INSERT INTO outcomes (principal, call_key, method, concluded_at) VALUES ('a','k','m',1)")
        )
        for table in ("changes", "dropped_tables", "gateways", "catalogs"):
            connection.execute(text(f"DROP TABLE {table}"))
        of_table = "" if engine.dialect.name in ("sqlite", "postgresql") else " ON tables"
        connection.execute(text(f"DROP INDEX tables_location{of_table}"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0009'"))
    engine.dispose()
    migrate(empty_database)
    store = open_store(empty_database, ManualClock(), Limits())
    assert store.find("a", "k") == Outcome("m")
    kept = KeptAnswer("binary", b"answer", is_exception=True)
    store.conclude_failed(CallKey("a", "l", "m", b"hash"), kept)
    assert store.find("a", "l") == Outcome("m", b"hash", kept)
    with pytest.raises(AlreadyConcluded):
        store.conclude_failed(CallKey("a", "l", "m", b"hash"), kept)
    store.close()
