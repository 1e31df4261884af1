"""The table and the partitions that a call asks for, by the names as the caller gave them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from hms_gateway.metastore.checks.errors import required, table_not_found
from hms_gateway.metastore.filters.binding import bind
from hms_gateway.metastore.filters.expression_filter import expression_filter
from hms_gateway.metastore.filters.grammar import FilterError, parse_filter
from hms_gateway.metastore.filters.hive_expression import read_expression
from hms_gateway.metastore.filters.hiveql_condition import metastore_filter
from hms_gateway.metastore.ports.store import Selection, Snapshot, StoredTable
from hms_gateway.metastore.vocabulary.hiveql_tokens import CommandError
from hms_gateway.metastore.vocabulary.names import display_name, normalize
from hms_gateway.metastore.vocabulary.partition_names import (
    InvalidPartitionName,
    PartitionNameError,
    make_name,
    parse_name,
    partial_spec,
)
from hms_gateway.rpc.structs import MetaException, NoSuchObjectException
from hms_gateway.rpc.structs.catalogs import unfolded
from hms_gateway.runtime.limits import Limits


@dataclass(frozen=True, slots=True)
class TableName:
    """A table as the caller named it; error texts repeat the caller's spelling.

    `shown_catalog` is the catalog that answers about its partitions name, None for callers that know of none.
    """

    db_name: str | None
    tbl_name: str | None
    shown_catalog: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return display_name(self.db_name, self.tbl_name)

    @property
    def foreseen(self) -> list[tuple[str, str]]:
        """Names that `load` will ask for; none for a name that cannot be one."""
        return [(normalize(self.db_name), normalize(self.tbl_name))] if self.db_name and self.tbl_name else []

    def load(self, snapshot: Snapshot) -> StoredTable:
        """The table. Raises NoSuchObjectException `db.t table not found`, MetaException when a name was left out."""
        db_name = normalize(required(self.db_name, "database name"))
        tbl_name = normalize(required(self.tbl_name, "table name"))
        # No table has such a name, and not every database can be asked for it.
        is_possible = "\0" not in db_name and "\0" not in tbl_name
        table = snapshot.table(db_name, tbl_name) if is_possible else None
        if table is None:
            raise table_not_found(self.db_name, self.tbl_name)
        return table

    def find(self, snapshot: Snapshot) -> StoredTable | None:
        """The table, None when it does not exist. Raises MetaException as `load`."""
        try:
            return self.load(snapshot)
        except NoSuchObjectException:
            return None

    def load_shown(self, snapshot: Snapshot) -> StoredTable:
        """The table as its partitions are to show it. Raises as `load`."""
        return self.shown(self.load(snapshot))

    def shown(self, table: StoredTable) -> StoredTable:
        """A found table as its partitions and statistics are to show it."""
        if self.shown_catalog is None:
            return table
        shown = unfolded(msgspec.structs.replace(table.table, catName=self.shown_catalog))
        return msgspec.structs.replace(table, table=shown)


def values_name(table: StoredTable, values: Sequence[str] | None) -> str:
    """The name of the partition with these values. Raises MetaException for a wrong count (semantics §2.8)."""
    given = required(values, "partition values")
    try:
        return make_name(table.key_names, [required(value, "partition value") for value in given])
    except PartitionNameError as error:
        raise MetaException(str(error)) from error


def named_values(table: StoredTable, name: str | None, refused: type[Exception] = NoSuchObjectException) -> list[str]:
    """The values in a name a client gave. Raises MetaException and `refused` (semantics §2.9)."""
    try:
        return parse_name(table.key_names, name)
    except InvalidPartitionName as error:
        raise MetaException(str(error)) from error
    except PartitionNameError as error:
        raise refused(str(error)) from error


def matching_partial(table: StoredTable, values: Sequence[str] | None) -> Selection:
    """The partitions whose leading values are these, `""` meaning any (semantics §4.6). Raises MetaException."""
    given = required(values, "partition values")
    try:
        return Selection(partial_values=partial_spec(len(table.key_names), given))
    except PartitionNameError as error:
        raise MetaException(str(error)) from error


def filter_of_condition(table: StoredTable, condition: str) -> str:
    """The filter that says what a condition of HiveQL says. Raises MetaException with the place that is wrong."""
    try:
        return metastore_filter(condition, _typed_keys(table))
    except CommandError as error:
        raise MetaException(f"{error} at character {error.position}") from error


def matching_filter(table: StoredTable, text: str | None, limits: Limits) -> Selection:
    """The partitions a filter selects; no filter selects all. Raises MetaException (semantics §4.1, §4.2)."""
    try:
        parsed = parse_filter(text, limits)
        return Selection(filter=None if parsed is None else bind(parsed, _typed_keys(table)))
    except FilterError as error:
        raise MetaException(str(error)) from error


def matching_expression(table: StoredTable, expression: bytes | None, limits: Limits) -> tuple[Selection, bool]:
    """The partitions an expression may select, and whether it selects just these.

    Of bytes that are neither all partitions are the safe answer. Raises MetaException for a filter that does not fit.
    """
    text = _filter_text(expression, limits)
    if text is not None:
        return matching_filter(table, text, limits), True
    found = read_expression(expression or b"")
    if found is None:
        return Selection(), False
    keys = _typed_keys(table)
    filter = expression_filter(found, keys)
    if isinstance(filter.selected, bool):
        return (Selection() if filter.selected else Selection(names=[])), filter.is_exact
    try:
        return Selection(filter=bind(filter.selected, keys)), filter.is_exact
    except FilterError as error:
        raise MetaException(str(error)) from error


def _filter_text(expression: bytes | None, limits: Limits) -> str | None:
    """The filter in an expression that is the text of one, as newer clients send it; else None."""
    try:
        text = (expression or b"").decode()
        return text if parse_filter(text, limits) is not None else None
    except (UnicodeDecodeError, FilterError):
        return None


def _typed_keys(table: StoredTable) -> list[tuple[str, str]]:
    return [(key.name or "", key.type or "") for key in table.table.partitionKeys or []]


def java_list(values: Sequence[str]) -> str:
    """A list as Java prints it, which is how Hive's texts show partition values."""
    return f"[{', '.join(values)}]"
