"""What a footer says, and what is wrong with one."""

from collections.abc import Collection, Mapping

import msgspec

from hms_gateway.pipeline.footers.figures import FooterFigures


class FooterProblem(Exception):
    """A footer cannot be used; `path` and `reason` are apart for reports."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} {reason}")
        self.path = path
        self.reason = reason

    def __reduce__(self) -> tuple[type["FooterProblem"], tuple[str, str]]:
        return type(self), (self.path, self.reason)


class Column(msgspec.Struct, frozen=True):
    """A column as Hive names it: lower case, `type` in Hive's spelling."""

    name: str
    type: str


class Footer(msgspec.Struct, frozen=True):
    """One file. `figures` are by column; those of nested ones say little.

    `unread` are columns that Spark does not read, with the reason; `columns` lacks those that Hive cannot have either.
    Columns without names in the file (ORC files of old Hive versions) are `_col0`, `_col1` and so on.
    """

    format: str
    rows: int
    columns: tuple[Column, ...]
    figures: Mapping[str, FooterFigures]
    unread: tuple[tuple[str, str], ...] = ()

    def unread_without(self, keys: Collection[str]) -> tuple[tuple[str, str], ...]:
        """The ones of `unread` that are not partition keys, whose values come from names of directories."""
        return tuple((name, reason) for name, reason in self.unread if name.lower() not in keys)

    def columns_without(self, keys: Collection[str]) -> tuple[Column, ...]:
        """Those that are not partition keys (`keys` in lower case): some writers put these into the files too."""
        return tuple(column for column in self.columns if column.name not in keys)
