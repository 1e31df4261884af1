"""Which revision of the schema a database has, and bringing it to ours."""

from contextlib import nullcontext
from typing import Final

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    delete,
    insert,
    inspect,
    text,
)
from sqlalchemy.exc import SQLAlchemyError

from hms_gateway.metastore.ports.store import StoreError
from hms_gateway.storage.dialects import dialect_of, parse_url, writing_engine
from hms_gateway.storage.dialects.kinds import translated
from hms_gateway.storage.schema.catalog import READABLE_BY, REVISION

# In the form of Alembic, which earlier versions used. A step adds the column `readable_by`.
_VERSION: Final = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def migrate(url: str) -> None:
    """Bring the database's schema to the revision of this program; harmless when it is there already.

    Several processes may do it at once. Raises StoreError when the schema is newer than the program, StoreUnavailable.
    """
    engine = writing_engine(parse_url(url))
    try:
        migrate_engine(engine)
    finally:
        engine.dispose()


def revision_of(url: str) -> str | None:
    """See `current_revision`. Raises StoreError, StoreUnavailable."""
    engine = writing_engine(parse_url(url))
    try:
        with translated(engine), engine.connect() as connection:
            return current_revision(connection)
    finally:
        engine.dispose()


def note_older(url: str, revision: str) -> str | None:
    """Let programs of an older revision use the database, whose tables stay as they are; the revision it had.

    Programs that run on it go on. Raises StoreError where those of `revision` could not use it, StoreUnavailable.
    """
    engine = writing_engine(parse_url(url))
    try:
        with translated(engine), engine.begin() as connection, dialect_of(engine).migrating(connection):
            found, _ = _noted(connection)
            if found is None or not READABLE_BY <= revision <= min(found, REVISION) or found > REVISION:
                raise StoreError(
                    f"the database has revision {found}, and this program can let programs of {READABLE_BY} to {REVISION}"
                    f" use it, not of {revision}: restore a backup of that revision"
                )
            _note(connection, revision)
            return found
    finally:
        engine.dispose()


def migrate_engine(engine: Engine) -> None:
    """The same on an engine that is there already."""
    dialect = dialect_of(engine)
    with translated(engine), engine.begin() as connection, dialect.migrating(connection):
        if current_revision(connection) == REVISION:
            return
        try:
            _upgrade(connection)
        except SQLAlchemyError as error:
            if dialect.undoes_migrations or current_revision(connection) == REVISION:
                raise
            raise StoreError(
                "the migration failed on the way, and this kind of database cannot take a part of it back: restore the"
                f" database, or drop and create it when it was empty ({type(error).__name__})"
            ) from error


def check_revision(engine: Engine, *, is_exact: bool = False) -> None:
    """Raise StoreError unless the database has our revision, or a newer one that programs of ours can use.

    With `is_exact` it has to be ours: whoever copies everything would miss what newer ones have.
    """
    with translated(engine), engine.connect() as connection:
        found = _noted(connection)[0] if is_exact else current_revision(connection)
    if found is None:
        raise StoreError("the database has no schema yet: run `hms-gateway migrate` first")
    if found != REVISION:
        raise StoreError(
            f"the database's schema has revision {found}, this program needs {REVISION}:"
            " run `hms-gateway migrate`, or a program as new as the database"
        )


def current_revision(connection: Connection) -> str | None:
    """The revision noted in the database, ours where that is a newer one that we can use; None without schema."""
    found, readable_by = _noted(connection)
    is_usable = found is not None and readable_by is not None and readable_by <= REVISION <= found
    return REVISION if is_usable else found


def _noted(connection: Connection) -> tuple[str | None, str | None]:
    """The revision, and the lowest one whose programs can use the database."""
    if not inspect(connection).has_table("alembic_version"):
        return None, None
    row = connection.execute(text("SELECT * FROM alembic_version")).mappings().first()
    return (None, None) if row is None else (row["version_num"], row.get("readable_by"))


def _note(connection: Connection, revision: str) -> None:
    connection.execute(delete(_VERSION))
    connection.execute(insert(_VERSION).values(version_num=revision))


def _upgrade(connection: Connection) -> None:
    """Run the steps behind the revision of the database, and note each."""
    # Only here, since a database has the newest revision at nearly every start.
    from hms_gateway.storage.migrations.operations import Operations
    from hms_gateway.storage.migrations.steps import STEPS
    from hms_gateway.storage.views.installing import without_views

    found = current_revision(connection)
    if found is not None and found not in STEPS:
        raise StoreError(
            f"the database's schema has revision {found}, which this program does not know: it belongs to a newer version"
        )
    _VERSION.create(connection, checkfirst=True)
    with nullcontext() if found is None else without_views(connection):
        for revision, step in STEPS.items():
            if revision > (found or ""):
                # A downgrade takes nothing back, and goes no further than this (`note_older`).
                step(Operations(connection, repeats=found is not None and revision > READABLE_BY))
                _note(connection, revision)
    connection.execute(text("UPDATE alembic_version SET readable_by = :lowest"), {"lowest": READABLE_BY})
