"""The changes of a schema that the steps ask for, as statements of SQLAlchemy."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.schema import CreateColumn

from hms_gateway.storage.schema.column_types import ID


class Operations:
    """Changes the schema of the database at `connection`, in its transaction. Raises SQLAlchemyError.

    With `repeats` what is there already stays: after a downgrade the tables have more than their revision says.
    """

    def __init__(self, connection: sa.Connection, *, repeats: bool = False) -> None:
        self.connection = connection
        self._repeats = repeats
        # MariaDB's dialect takes the options of MySQL's.
        self._dialect_names = {getattr(one, "name", "") for one in type(connection.dialect).__mro__}

    def create_table(self, name: str, *parts: sa.schema.SchemaItem, **options: Any) -> sa.Table:
        """Create a table with its constraints and indexes. A table that it references exists already."""
        metadata = sa.MetaData()
        table = sa.Table(name, metadata, *parts, **options)
        for reference in table.foreign_keys:
            target, _, column = reference.target_fullname.partition(".")
            if target not in metadata.tables:
                sa.Table(target, metadata, sa.Column(column, ID))
        table.create(self.connection, checkfirst=self._repeats)
        return table

    def create_index(self, name: str, table: str, columns: list[str], **options: Any) -> None:
        """Create an index over columns of a table. An option of another database has no effect."""
        indexed = _table(table, *(sa.Column(column) for column in columns))
        # SQLAlchemy would load these databases' dialects, for 5 MiB, to check their options.
        own = {name: value for name, value in options.items() if name.partition("_")[0] in self._dialect_names}
        sa.Index(name, *indexed.columns, **own).create(self.connection, checkfirst=self._repeats)

    def add_column(self, table: str, column: sa.Column[Any]) -> None:
        """Add a column without index or constraint."""
        if self._repeats and column.name in {known["name"] for known in sa.inspect(self.connection).get_columns(table)}:
            return
        altered = _table(table, column)
        preparer = self.connection.dialect.identifier_preparer
        specification = CreateColumn(altered.c[column.name]).compile(dialect=self.connection.dialect)
        self.execute(f"ALTER TABLE {preparer.format_table(altered)} ADD COLUMN {specification}")

    def execute(self, statement: str) -> None:
        """Run a statement without parameters."""
        self.connection.exec_driver_sql(statement)


def _table(name: str, *columns: sa.Column[Any]) -> sa.Table:
    return sa.Table(name, sa.MetaData(), *columns)
