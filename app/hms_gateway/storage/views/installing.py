"""Installs the views of Hive's schema, removes them, and takes them away while a migration changes the tables.

The comment of a schema says that its views are ours, and of whose tables.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError

from hms_gateway.metastore.ports.store import StoreError
from hms_gateway.storage.dialects import dialect_of, dialect_of_url, parse_url, writing_engine
from hms_gateway.storage.dialects.kinds import translated
from hms_gateway.storage.dialects.view_sql import ViewSql
from hms_gateway.storage.schema.catalog import REVISION
from hms_gateway.storage.views.hive_schema import hive_views

_NAME: Final = re.compile("[A-Za-z_][A-Za-z0-9_]{0,62}")
_REFUSAL: Final = "views of Hive's schema need PostgreSQL or MariaDB"


def install(url: str, schema: str) -> int:
    """Makes the views of the database at `url` in a schema of their own; existing ones anew. Returns their number.

    Raises StoreError for a database that cannot have them and for a schema that holds something else;
    StoreUnavailable.
    """
    if not _NAME.fullmatch(schema):
        raise StoreError(f"schema {schema!r} is not a name of ASCII letters, digits and _, of 63 at most")
    with _changing(url) as installer:
        return installer.install(schema)


def remove(url: str, schema: str) -> None:
    """Removes the views and their schema. Raises StoreError where they are not; StoreUnavailable."""
    with _changing(url) as installer:
        installer.remove(schema)


@contextmanager
def without_views(connection: Connection) -> Iterator[None]:
    """Takes the installed views away, and makes them again of the tables as they are at the end."""
    sql = dialect_of(connection).view_sql(connection)
    if sql is None:
        yield
        return
    installer = _Installer(connection, sql)
    grants = {schema: installer.drop(schema) for schema in installer.installed()}
    yield
    for schema, again in grants.items():
        installer.create(schema, again)


@contextmanager
def _changing(url: str) -> Iterator["_Installer"]:
    """No migration runs meanwhile."""
    parsed = parse_url(url)
    dialect = dialect_of_url(parsed)
    if dialect.file(parsed) is not None:
        raise StoreError(_REFUSAL)
    engine = writing_engine(parsed)
    try:
        with translated(engine), engine.begin() as connection, dialect.migrating(connection):
            sql = dialect.view_sql(connection)
            if sql is None:
                raise StoreError(_REFUSAL)
            yield _Installer(connection, sql)
    finally:
        engine.dispose()


class _Installer:
    def __init__(self, connection: Connection, sql: ViewSql) -> None:
        self._connection, self._sql, self._names = connection, sql, list(hive_views(sql))
        home = connection.exec_driver_sql(f"SELECT {sql.home}").scalar()
        self._comment = f"hms-gateway hive-views of {home}"

    def installed(self) -> list[str]:
        """The schemas with our views."""
        return [name for name, comment in self._schemas().items() if comment == self._comment]

    def install(self, schema: str) -> int:
        has_revision = inspect(self._connection).has_table("alembic_version")
        query = text("SELECT version_num FROM alembic_version")
        if not has_revision or self._connection.execute(query).scalar() != REVISION:
            raise StoreError("the database's schema is not that of this program: run `hms-gateway migrate` first")
        schemas = self._schemas()
        if schema not in schemas:
            self._run(*self._sql.create_schema(schema, self._comment.replace("'", "''")))
        elif schemas[schema] != self._comment:
            raise StoreError(f"schema {schema} is there and has no views of this database; choose another --schema")
        self.create(schema, self.drop(schema))
        return len(self._names)

    def remove(self, schema: str) -> None:
        if schema not in self.installed():
            raise StoreError(f"schema {schema} has no views of this database")
        self.drop(schema)
        found = inspect(self._connection)
        if left := [*found.get_table_names(schema), *found.get_view_names(schema)]:
            raise StoreError(f"schema {schema} also has {', '.join(sorted(left))}; remove what others made first")
        self._run(f'DROP SCHEMA "{schema}"')

    def drop(self, schema: str) -> Sequence[str]:
        """Drops the views. Returns the statements that grant again what went with them."""
        grants, values = self._sql.grants, {"name": schema, "names": self._names}
        found = self._connection.execute(text(grants), values).scalars().all() if grants else ()
        try:
            self._run("DROP VIEW IF EXISTS " + ", ".join(f'"{schema}"."{name}"' for name in self._names))
        except DBAPIError as error:
            raise StoreError(
                f"views in schema {schema} cannot be dropped; drop what others made of them first"
            ) from error
        return found

    def create(self, schema: str, grants: Sequence[str]) -> None:
        self._run(*(f'CREATE VIEW "{schema}"."{name}" AS {each}' for name, each in hive_views(self._sql).items()))
        self._run(*grants)

    def _schemas(self) -> dict[str, str]:
        return {row[0]: row[1] for row in self._connection.exec_driver_sql(self._sql.schemas)}

    def _run(self, *statements: str) -> None:
        for statement in (*self._sql.before, *statements, *self._sql.after):
            # Without parameters a driver takes no % for one: names of accounts may have it.
            self._connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
