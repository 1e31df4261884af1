"""The kinds of objects of a snapshot, and an object as a row: its key, all of it as JSON, and its columns."""

import base64
import json
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec
from pyspark.sql.types import StructField, StructType

from hms_gateway.pipeline.source.objects import COLUMNS, TEXT, Column
from hms_gateway.rpc.structs import (
    ENUMS,
    Database,
    Function,
    HiveObjectPrivilege,
    HiveObjectRef,
    PrivilegeGrantInfo,
    Role,
    RolePrincipalGrant,
    Struct,
    Table,
)

KINDS: Final = (
    *("databases", "tables", "columns", "partitions", "statistics", "constraints"),
    *("functions", "privileges", "roles", "role_grants"),
)
# Of these not every change writes an event: they are read whole in every round, until two readings are the same.
LISTED: Final = ("functions", "privileges", "roles", "role_grants")
KEYS: Final = ("kind", "database", "table", "partition", "item")
_DIGEST_BITS: Final = 128

_encode = msgspec.json.Encoder(order="sorted").encode


class ObjectRow(NamedTuple):
    """`partition` and `item` (a column, constraint, function, role or grant) are empty where they do not apply.

    `said` is what the metastore said, of which `object` is all as JSON.
    """

    kind: str
    database: str
    table: str
    partition: str
    item: str
    object: str
    said: Any = None


class ColumnOf(msgspec.Struct, frozen=True):
    """A column as an object of its own."""

    name: str
    type: str
    comment: str | None
    position: int
    is_partition_key: bool


def plain(value: Any) -> Any:
    """A struct as values of JSON, without fields that are not set."""
    if isinstance(value, Struct):
        return {name: plain(found) for name in value.__struct_fields__ if (found := getattr(value, name)) is not None}
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return value if isinstance(value, str | bool | float) or value is None else int(value)


def as_text(value: Any) -> str:
    """The same text for the same value."""
    found = msgspec.to_builtins(value) if isinstance(value, ColumnOf) else plain(value)
    try:
        return _encode(found).decode()
    except UnicodeEncodeError:
        # Half of a surrogate pair, which Parquet cannot hold as such.
        return json.dumps(found, sort_keys=True, separators=(",", ":"))


def database_row(said: Database) -> ObjectRow:
    return ObjectRow("databases", said.name or "", "", "", "", as_text(said), said)


def table_row(said: Table) -> ObjectRow:
    return ObjectRow("tables", said.dbName or "", said.tableName or "", "", "", as_text(said), said)


def column_row(said: Any) -> ObjectRow:
    """The object of a `ColumnRow` of the data source."""
    field, table = said.field, said.table
    one = ColumnOf(field.name or "", field.type or "", field.comment, said.position, said.is_partition_key)
    return ObjectRow("columns", table.dbName or "", table.tableName or "", "", field.name or "", as_text(one), said)


def partition_row(said: Any) -> ObjectRow:
    """The object of a `PartitionRow` of the data source."""
    return ObjectRow("partitions", said.database, said.table, said.name, "", as_text(said.partition), said)


def statistics_row(said: Any) -> ObjectRow:
    """The object of a `StatisticsRow` of the data source."""
    column = said.statistics.colName or ""
    text = as_text(said.statistics)
    return ObjectRow("statistics", said.database, said.table, said.partition or "", column, text, said)


def constraint_rows(database: str, table: str, columns: Iterable[Struct]) -> list[ObjectRow]:
    """One for each constraint, out of its columns."""
    of_name: dict[str, list[Struct]] = {}
    for column in columns:
        kind = type(column).definition.name.removeprefix("SQL")
        name = next(filter(None, (getattr(column, field, None) for field in _CONSTRAINT_NAMES)), "")
        of_name.setdefault(f"{kind} {name}", []).append(column)
    return [
        ObjectRow("constraints", database, table, "", name, as_text(sorted(found, key=_place)), found)
        for name, found in of_name.items()
    ]


_CONSTRAINT_NAMES: Final = ("fk_name", "pk_name", "uk_name", "nn_name", "dc_name")


def _place(column: Struct) -> int:
    return getattr(column, "key_seq", None) or 0


def parents(row: ObjectRow) -> set[tuple[str, str]]:
    """The tables that a constraint of another table refers to."""
    found = {(getattr(one, "pktable_db", None), getattr(one, "pktable_name", None)) for one in row.said}
    return {(database, table) for database, table in found if database and table}


def function_row(said: Function) -> ObjectRow:
    return ObjectRow("functions", said.dbName or "", "", "", said.functionName or "", as_text(said), said)


def privilege_row(said: HiveObjectPrivilege) -> ObjectRow:
    on, grant = said.hiveObject or HiveObjectRef(), said.grantInfo or PrivilegeGrantInfo()
    kind = _name("PrincipalType", said.principalType)
    words = (grant.privilege, f"{kind} {said.principalName}", f"by {grant.grantor}", on.columnName, said.authorizer)
    item, values = ", ".join(word for word in words if word), "/".join(on.partValues or ())
    return ObjectRow("privileges", on.dbName or "", on.objectName or "", values, item, as_text(said), said)


def role_row(said: Role) -> ObjectRow:
    return ObjectRow("roles", "", "", "", said.roleName or "", as_text(said), said)


def role_grant_row(said: RolePrincipalGrant) -> ObjectRow:
    kind = _name("PrincipalType", said.principalType)
    item = f"{said.roleName}, {kind} {said.principalName}, by {said.grantorName}"
    return ObjectRow("role_grants", "", "", "", item, as_text(said), said)


def _name(enum: str, value: int | None) -> str:
    return next((member.name for member in ENUMS[enum] if int(member) == value), str(value))


def digest_of(rows: Iterable[tuple[str, ...]]) -> int:
    """A sum over (kind, …, object): the same for the same rows in any order and any pieces. Add with `added`."""
    total = 0
    for row in rows:
        total += int.from_bytes(sha256("\0".join(row).encode("utf-8", "surrogatepass")).digest()[:16], "big")
    return total % (1 << _DIGEST_BITS)


def added(digests: Iterable[int]) -> int:
    return sum(digests) % (1 << _DIGEST_BITS)


def as_hex(digest: int) -> str:
    return f"{digest:032x}"


# Columns of the files: the key of an object, all of it as JSON, and what the data source shows of its kind.


# `kind` is the name of the folder.
_OWN: Final = (*KEYS[1:], "object")


@cache
def columns_of(kind: str) -> Mapping[str, Column]:
    """Columns of a kind of objects; its rows are `ObjectRow`s."""
    own = {name: Column(TEXT, attrgetter(name)) for name in _OWN}
    shown = {name: _of_said(column) for name, column in COLUMNS.get(kind, {}).items() if name not in own}
    return {**own, **shown}


def schema_of(kind: str) -> StructType:
    return StructType([StructField(name, column.type) for name, column in columns_of(kind).items()])


def _of_said(column: Column) -> Column:
    get = column.get

    def of_said(row: Any) -> Any:
        return get(row.said)

    return Column(column.type, of_said)
