"""The statements of the shell as values: what was said, with names in lower case, and nothing about how it is done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from hms_gateway.client.concurrency import Command
from hms_gateway.rpc.structs import Database, FieldSchema, Function, HiveObjectType, PrincipalType, SerDeInfo, Table


class QualifiedName(NamedTuple):
    db_name: str
    table_name: str

    def __str__(self) -> str:
        return f"{self.db_name}.{self.table_name}"


@dataclass(frozen=True)
class KeyValue:
    """One part of a partition specification; `value` is None for a key without one, and begins at `begin`."""

    key: str
    value: str | None
    sign: str = "="
    begin: int = field(default=0, compare=False)


PartitionSpec = tuple[KeyValue, ...]


class PrincipalName(NamedTuple):
    kind: PrincipalType
    name: str


class Statement(msgspec.Struct, frozen=True):
    """What every statement is."""


class Help(Statement, frozen=True):
    pass


class Use(Statement, frozen=True):
    database: str


class SetOption(Statement, frozen=True):
    """`SET`, `SET name`, `SET name=value`."""

    name: str = ""
    value: str | None = None


class ShowDatabases(Statement, frozen=True):
    pattern: str = "*"


class ShowTables(Statement, frozen=True):
    """`kind` is a table type, None for all."""

    database: str
    pattern: str = "*"
    kind: str | None = None


class ShowPartitions(Statement, frozen=True):
    """`condition` is the one of WHERE, which begins at `condition_begin` of the text."""

    table: QualifiedName
    spec: PartitionSpec = ()
    condition: str = ""
    limit: int | None = None
    condition_begin: int = 0


class ShowColumns(Statement, frozen=True):
    table: QualifiedName
    pattern: str = "*"


class ShowFunctions(Statement, frozen=True):
    """`database` is None for all."""

    database: str | None
    pattern: str = "*"


class ShowTableProperties(Statement, frozen=True):
    table: QualifiedName
    key: str | None = None


class ShowCreateTable(Statement, frozen=True):
    table: QualifiedName


class ShowCreateDatabase(Statement, frozen=True):
    database: str


class ShowTransactions(Statement, frozen=True):
    pass


class ShowCompactions(Statement, frozen=True):
    pass


class PlaceName(NamedTuple):
    """What locks, leases and grants are on: a database, a table, or some of its partitions."""

    db_name: str
    table_name: str | None = None
    spec: PartitionSpec = ()


class ShowLocks(Statement, frozen=True):
    place: PlaceName | None = None
    is_extended: bool = False


class ShowLeases(Statement, frozen=True):
    """No places mean every lease."""

    places: tuple[PlaceName, ...] = ()


class DropLeases(Statement, frozen=True):
    places: tuple[PlaceName, ...] = ()


class ShowGrants(Statement, frozen=True):
    principal: PrincipalName | None
    kind: HiveObjectType | None
    place: PlaceName | None = None


class ShowRoles(Statement, frozen=True):
    """All, or those that were granted to one."""

    principal: PrincipalName | None = None


class ShowPrincipals(Statement, frozen=True):
    role: str


class Describe(Statement, frozen=True):
    table: QualifiedName
    spec: PartitionSpec = ()
    column: str | None = None
    is_detailed: bool = False


class DescribeDatabase(Statement, frozen=True):
    database: str
    is_extended: bool = False


class DescribeFunction(Statement, frozen=True):
    database: str
    name: str


class CreateDatabase(Statement, frozen=True):
    database: Database
    if_not_exists: bool = False


class CreateTable(Statement, frozen=True):
    table: Table
    if_not_exists: bool = False


class CreateTableLike(Statement, frozen=True):
    table: QualifiedName
    like: QualifiedName
    if_not_exists: bool = False
    is_external: bool = False
    location: str | None = None
    parameters: Mapping[str, str] = {}


class CreateView(Statement, frozen=True):
    """`columns` are name and comment, empty to take those of the query, which begins at `query_begin` of the text."""

    name: QualifiedName
    query: str
    query_begin: int = 0
    columns: Sequence[tuple[str, str | None]] = ()
    parameters: Mapping[str, str] = {}
    if_not_exists: bool = False
    or_replace: bool = False


class AlterViewQuery(Statement, frozen=True):
    name: QualifiedName
    query: str
    query_begin: int = 0


class CreateFunction(Statement, frozen=True):
    function: Function
    if_not_exists: bool = False


class DropFunction(Statement, frozen=True):
    database: str
    name: str
    if_exists: bool = False


class DropDatabase(Statement, frozen=True):
    database: str
    if_exists: bool = False
    is_cascading: bool = False


class DropTable(Statement, frozen=True):
    table: QualifiedName
    if_exists: bool = False
    is_view: bool = False
    is_purging: bool = False


class Truncate(Statement, frozen=True):
    table: QualifiedName
    spec: PartitionSpec = ()


class AlterDatabase(Statement, frozen=True):
    """What is None stays."""

    database: str
    parameters: Mapping[str, str] | None = None
    location: str | None = None
    managed_location: str | None = None
    owner: PrincipalName | None = None


class Change(msgspec.Struct, frozen=True):
    """What ALTER TABLE does to a table, or to the partitions that it names."""


class Rename(Change, frozen=True):
    to: QualifiedName


class RenamePartition(Change, frozen=True):
    to: PartitionSpec


class AddColumns(Change, frozen=True):
    columns: Sequence[FieldSchema]
    is_cascading: bool = False


class ReplaceColumns(Change, frozen=True):
    columns: Sequence[FieldSchema]
    is_cascading: bool = False


class ChangeColumn(Change, frozen=True):
    """`after` is the column before it, empty for the first place, None for where it is."""

    name: str
    column: FieldSchema
    after: str | None = None
    is_cascading: bool = False


class SetProperties(Change, frozen=True):
    parameters: Mapping[str, str]


class UnsetProperties(Change, frozen=True):
    names: Sequence[str]
    if_exists: bool = False


class SetSerde(Change, frozen=True):
    """`library` is None where only the properties change."""

    library: str | None
    parameters: Mapping[str, str]


class UnsetSerdeProperties(Change, frozen=True):
    names: Sequence[str]


class SetFormat(Change, frozen=True):
    input_format: str
    output_format: str
    serde: SerDeInfo | None


class SetLocation(Change, frozen=True):
    location: str


class SetBuckets(Change, frozen=True):
    """No columns and a negative number mean not clustered."""

    columns: Sequence[str]
    sorted_by: Sequence[tuple[str, int]]
    number: int


class Touch(Change, frozen=True):
    pass


class SetOwner(Change, frozen=True):
    owner: PrincipalName


class ChangePartitionColumn(Change, frozen=True):
    column: FieldSchema


class AlterTable(Statement, frozen=True):
    table: QualifiedName
    change: Change
    specs: tuple[PartitionSpec, ...] = ()
    is_view: bool = False


class AddedPartition(NamedTuple):
    spec: PartitionSpec
    location: str | None


class AddPartitions(Statement, frozen=True):
    table: QualifiedName
    partitions: Sequence[AddedPartition]
    if_not_exists: bool = False


class DropPartitions(Statement, frozen=True):
    table: QualifiedName
    specs: Sequence[PartitionSpec]
    if_exists: bool = False
    is_purging: bool = False


class ExchangePartition(Statement, frozen=True):
    table: QualifiedName
    spec: PartitionSpec
    source: QualifiedName


class Compact(Statement, frozen=True):
    table: QualifiedName
    spec: PartitionSpec
    kind: str


class DropConstraint(Statement, frozen=True):
    table: QualifiedName
    name: str


class AddKey(Statement, frozen=True):
    """A primary key, or a foreign key where `references` names a table."""

    table: QualifiedName
    name: str | None
    columns: Sequence[str]
    references: QualifiedName | None = None
    referenced_columns: Sequence[str] = ()


class LockStatement(Statement, frozen=True):
    command: Command
    text: str


class Unlock(Statement, frozen=True):
    place: PlaceName


class ExplainLocks(Statement, frozen=True):
    command: Command


class AbortTransactions(Statement, frozen=True):
    ids: Sequence[int]


class GrantPrivileges(Statement, frozen=True):
    """`is_option` is WITH GRANT OPTION, or GRANT OPTION FOR where they are revoked."""

    privileges: Sequence[str]
    kind: HiveObjectType
    place: PlaceName
    principals: Sequence[PrincipalName]
    is_revoked: bool = False
    is_option: bool = False


class GrantRoles(Statement, frozen=True):
    roles: Sequence[str]
    principals: Sequence[PrincipalName]
    is_revoked: bool = False
    is_option: bool = False


class CreateRole(Statement, frozen=True):
    role: str


class DropRole(Statement, frozen=True):
    role: str


class Repair(Statement, frozen=True):
    table: QualifiedName
    is_adding: bool = True
    is_dropping: bool = False


class ForEngines(Statement, frozen=True):
    """Something that reads or writes data, which a metastore does not do."""

    verb: str
