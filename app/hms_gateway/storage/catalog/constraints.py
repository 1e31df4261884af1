"""Constraints as rows, one for each of their columns (semantics §2.15)."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import delete, insert, or_, select
from sqlalchemy.sql import Select

from hms_gateway.metastore.ports.values import ConstraintColumn, ConstraintKind
from hms_gateway.metastore.vocabulary.names import TableId
from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.schema.catalog import CONSTRAINTS, DATABASES, TABLES
from hms_gateway.storage.sql.filter_sql import is_among
from hms_gateway.storage.sql.fragments import decode_extra, encode_extra, names_except
from hms_gateway.storage.sql.repository import AggregateRows
from hms_gateway.storage.sql.texts import check_name, is_storable
from hms_gateway.structs import (
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
    Struct,
)

_CLASSES: Final[dict[ConstraintKind, type[Struct]]] = {
    ConstraintKind.PRIMARY_KEY: SQLPrimaryKey,
    ConstraintKind.FOREIGN_KEY: SQLForeignKey,
    ConstraintKind.UNIQUE: SQLUniqueConstraint,
    ConstraintKind.NOT_NULL: SQLNotNullConstraint,
    ConstraintKind.DEFAULT: SQLDefaultConstraint,
    ConstraintKind.CHECK: SQLCheckConstraint,
}
_NAME_FIELDS: Final = {
    ConstraintKind.PRIMARY_KEY: "pk_name",
    ConstraintKind.FOREIGN_KEY: "fk_name",
    ConstraintKind.UNIQUE: "uk_name",
    ConstraintKind.NOT_NULL: "nn_name",
    ConstraintKind.DEFAULT: "dc_name",
    ConstraintKind.CHECK: "dc_name",
}
# What has a column of its own; where the constraint is may change by a rename.
_IN_COLUMNS: Final = (
    "table_db", "table_name", "column_name", "fktable_db", "fktable_name", "fkcolumn_name",
    "pktable_db", "pktable_name", "pkcolumn_name", "key_seq", "catName",
)  # fmt: skip
_PARENTS: Final = TABLES.alias("parents")
_PARENT_DATABASES: Final = DATABASES.alias("parent_databases")


class ConstraintRows(AggregateRows):
    """`statistics_ports.ConstraintWrites`."""

    def of_table(self, table_id: TableId, kind: ConstraintKind) -> list[Struct]:
        """The columns of a kind of constraints as the IDL's structs, in order of their constraints' creation."""
        rows = self._connection.execute(
            _rows().where(CONSTRAINTS.c.table_id == table_id, CONSTRAINTS.c.kind == int(kind))
        )
        return [_constraint(row) for row in rows]

    def foreign_keys(self, table_id: TableId | None, parent_table_id: TableId | None) -> list[Struct]:
        """Those of a table, those that refer to one, or both."""
        statement = _rows().where(CONSTRAINTS.c.kind == int(ConstraintKind.FOREIGN_KEY))
        if table_id is not None:
            statement = statement.where(CONSTRAINTS.c.table_id == table_id)
        if parent_table_id is not None:
            statement = statement.where(CONSTRAINTS.c.parent_table_id == parent_table_id)
        return [_constraint(row) for row in self._connection.execute(statement)]

    def names(self, table_id: TableId) -> set[str]:
        """Of all constraints the table has."""
        statement = select(CONSTRAINTS.c.name).where(CONSTRAINTS.c.table_id == table_id)
        return set(self._connection.execute(statement).scalars())

    def insert(self, columns: Sequence[ConstraintColumn]) -> None:
        if columns:
            self._connection.execute(insert(CONSTRAINTS), [_row(column, self._dialect) for column in columns])

    def delete(self, table_id: TableId, name: str) -> int:
        """Of the table, or of another one that refers to it by a foreign key; the number of its columns."""
        if not is_storable(name):
            return 0
        concerned = or_(CONSTRAINTS.c.table_id == table_id, CONSTRAINTS.c.parent_table_id == table_id)
        return self._connection.execute(delete(CONSTRAINTS).where(concerned, CONSTRAINTS.c.name == name)).rowcount

    def keep_columns(self, table_id: TableId, columns: Sequence[str]) -> None:
        """Delete every constraint that has another column of the table."""
        sides = (
            (CONSTRAINTS.c.table_id, CONSTRAINTS.c.column_name),
            (CONSTRAINTS.c.parent_table_id, CONSTRAINTS.c.parent_column_name),
        )
        for owner, column in sides:
            # Of a key of several columns none must stay alone.
            broken = select(CONSTRAINTS.c.table_id, CONSTRAINTS.c.name).where(
                owner == table_id, column != "", ~is_among(column, columns, self._dialect)
            )
            for broken_id, name in self._connection.execute(broken.distinct()).all():
                self._connection.execute(
                    delete(CONSTRAINTS).where(CONSTRAINTS.c.table_id == broken_id, CONSTRAINTS.c.name == name)
                )


def _rows() -> Select[Any]:
    return (
        select(
            CONSTRAINTS,
            TABLES.c.name.label("table_name"),
            DATABASES.c.name.label("db_name"),
            _PARENTS.c.name.label("parent_table_name"),
            _PARENT_DATABASES.c.name.label("parent_db_name"),
        )
        .join(TABLES, TABLES.c.table_id == CONSTRAINTS.c.table_id)
        .join(DATABASES, DATABASES.c.database_id == TABLES.c.database_id)
        .outerjoin(_PARENTS, _PARENTS.c.table_id == CONSTRAINTS.c.parent_table_id)
        .outerjoin(_PARENT_DATABASES, _PARENT_DATABASES.c.database_id == _PARENTS.c.database_id)
        .order_by(CONSTRAINTS.c.constraint_id)
    )


def _row(column: ConstraintColumn, dialect: Dialect) -> dict[str, Any]:
    for what, name in (("constraint", column.name), ("column", column.column), ("column", column.parent_column or "")):
        check_name(what, name, dialect)
    struct_class = _CLASSES[column.kind]
    # A name is found in one spelling and shown in another.
    shown_name = getattr(column.extra, _NAME_FIELDS[column.kind])
    own = (*_IN_COLUMNS, _NAME_FIELDS[column.kind]) if shown_name == column.name else _IN_COLUMNS
    return {
        "table_id": column.table_id,
        "parent_table_id": column.parent_table_id,
        "kind": int(column.kind),
        "name": column.name,
        "position": column.position,
        "column_name": column.column,
        "parent_column_name": column.parent_column,
        "extra": encode_extra(column.extra, names_except(struct_class, *own)),
    }


def _constraint(row: Any) -> Struct:
    kind = ConstraintKind(row.kind)
    constraint: Any = decode_extra(_CLASSES[kind], row.extra)
    if getattr(constraint, _NAME_FIELDS[kind]) is None:
        setattr(constraint, _NAME_FIELDS[kind], row.name)
    if kind is ConstraintKind.FOREIGN_KEY:
        constraint.fktable_db, constraint.fktable_name = row.db_name, row.table_name
        constraint.fkcolumn_name = row.column_name
        constraint.pktable_db, constraint.pktable_name = row.parent_db_name, row.parent_table_name
        constraint.pkcolumn_name = row.parent_column_name
    else:
        constraint.table_db, constraint.table_name = row.db_name, row.table_name
        # Without one it is a check on the table as a whole.
        constraint.column_name = row.column_name or None
    if kind in (ConstraintKind.PRIMARY_KEY, ConstraintKind.FOREIGN_KEY, ConstraintKind.UNIQUE):
        constraint.key_seq = row.position
    found: Struct = constraint
    return found
