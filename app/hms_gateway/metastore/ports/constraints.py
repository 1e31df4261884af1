"""What the rules of constraints need from storage."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Protocol

import msgspec

from hms_gateway.metastore.vocabulary.names import TableId
from hms_gateway.structs import Struct


class ConstraintKind(IntEnum):
    """As Hive numbers them (semantics §2.15)."""

    PRIMARY_KEY = 0
    FOREIGN_KEY = 1
    UNIQUE = 2
    NOT_NULL = 3
    DEFAULT = 4
    CHECK = 5


class ConstraintColumn(msgspec.Struct, frozen=True):
    """One column of a constraint.

    `extra` is the IDL's struct (SQLPrimaryKey, …); what the other fields say counts where it says something else.
    """

    kind: ConstraintKind
    name: str
    table_id: TableId
    column: str
    position: int
    extra: Struct
    parent_table_id: TableId | None = None
    parent_column: str | None = None


class ConstraintReads(Protocol):
    def of_table(self, table_id: TableId, kind: ConstraintKind) -> list[Struct]:
        """The columns of a kind of constraints as the IDL's structs, in order of their constraints' creation."""

    def foreign_keys(self, table_id: TableId | None, parent_table_id: TableId | None) -> list[Struct]:
        """Those of a table, those that refer to one, or both."""

    def names(self, table_id: TableId) -> set[str]:
        """Of all constraints the table has."""


class ConstraintWrites(ConstraintReads, Protocol):
    def insert(self, columns: Sequence[ConstraintColumn]) -> None: ...

    def delete(self, table_id: TableId, name: str) -> int:
        """Of the table, or of another one that refers to it by a foreign key; the number of its columns."""

    def keep_columns(self, table_id: TableId, columns: Sequence[str]) -> None:
        """Delete every constraint that has another column of the table."""
