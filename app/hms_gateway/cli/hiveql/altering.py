"""ALTER of databases and tables; partitions, constraints and compactions."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from hms_gateway.cli.hiveql.shell_state import (
    CommandRefused,
    PartitionSpec,
    PlaceName,
    PrincipalName,
    QualifiedName,
    ResultRows,
    ShellState,
    Statement,
    keys_of,
    known_values,
    new_partition_values,
    partition_names,
    partition_values,
    place_names,
)
from hms_gateway.cli.hiveql.showing import check_database
from hms_gateway.rpc.structs import (
    AddForeignKeyRequest,
    AddPartitionsRequest,
    AddPrimaryKeyRequest,
    CompactionRequest,
    CompactionType,
    DropConstraintRequest,
    DropPartitionsRequest,
    EnvironmentContext,
    FieldSchema,
    Partition,
    RequestPartsSpec,
    SerDeInfo,
    SQLForeignKey,
    SQLPrimaryKey,
    StorageDescriptor,
    Table,
)
from hms_gateway.rpc.structs import Order as SortOrder

_VIEWS: Final = ("VIRTUAL_VIEW", "MATERIALIZED_VIEW")
_CASCADE: Final = {"CASCADE": "true"}
_PARTITIONS_PER_CALL: Final = 500


class AlterDatabase(Statement, frozen=True):
    """Attributes that are None stay."""

    database: str
    parameters: Mapping[str, str] | None = None
    location: str | None = None
    managed_location: str | None = None
    owner: PrincipalName | None = None

    def run(self, state: ShellState) -> None:
        found = check_database(state, self.database)
        if self.parameters is not None:
            found.parameters = {**(found.parameters or {}), **self.parameters}
        if self.location is not None:
            found.locationUri = self.location
        if self.managed_location is not None:
            found.managedLocationUri = self.managed_location
        if self.owner is not None:
            found.ownerType, found.ownerName = self.owner
        state.call("alter_database", self.database, found)


class Change(msgspec.Struct, frozen=True):
    """A change by ALTER TABLE of a table, or of the partitions that it names."""


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

    def run(self, state: ShellState) -> None:
        name, change = self.table, self.change
        table = state.table(name)
        if self.is_view and table.tableType not in _VIEWS:
            raise CommandRefused(f"{name} is a table; ALTER TABLE alters it")
        if self.specs:
            _alter_partitions(self, state, table)
            return
        changed = _changed_table(name, table, change)
        properties = _CASCADE if getattr(change, "is_cascading", False) else {}
        context = EnvironmentContext(properties=dict(properties))
        state.call("alter_table_with_environment_context", name.db_name, name.table_name, changed, context)


class AddedPartition(NamedTuple):
    spec: PartitionSpec
    location: str | None


class AddPartitions(Statement, frozen=True):
    table: QualifiedName
    partitions: Sequence[AddedPartition]
    if_not_exists: bool = False

    def run(self, state: ShellState) -> None:
        name = self.table
        table = state.table(name)
        descriptor = table.sd or StorageDescriptor()
        partitions = [
            Partition(
                values=new_partition_values(name, table, new.spec),
                dbName=name.db_name,
                tableName=name.table_name,
                sd=replace(descriptor, location=new.location),
                parameters={},
            )
            for new in self.partitions
        ]
        request = AddPartitionsRequest(*name, partitions, self.if_not_exists, needResult=False)
        state.call("add_partitions_req", request)


class DropPartitions(Statement, frozen=True):
    table: QualifiedName
    specs: Sequence[PartitionSpec]
    if_exists: bool = False
    is_purging: bool = False

    def run(self, state: ShellState) -> None:
        name = self.table
        found = [each for spec in self.specs for each in partition_names(state, name, spec)]
        if not found and not self.if_exists:
            raise CommandRefused(
                f"table {name} does not have such a partition; SHOW PARTITIONS {name} lists those it has"
            )
        context = EnvironmentContext(properties={"ifPurge": "true"}) if self.is_purging else None
        names = list(dict.fromkeys(found))
        for begin in range(0, len(names), _PARTITIONS_PER_CALL):
            some = RequestPartsSpec(names=names[begin : begin + _PARTITIONS_PER_CALL])
            request = DropPartitionsRequest(*name, some, deleteData=True, ifExists=True, needResult=False)
            request.environmentContext = context
            state.call("drop_partitions_req", request)


class ExchangePartition(Statement, frozen=True):
    table: QualifiedName
    spec: PartitionSpec
    source: QualifiedName

    def run(self, state: ShellState) -> None:
        name, source = self.table, self.source
        given = dict(known_values(name, keys_of(state.table(name)), self.spec))
        state.call("exchange_partitions", given, *source, *name)


class Compact(Statement, frozen=True):
    table: QualifiedName
    spec: PartitionSpec
    kind: str

    def run(self, state: ShellState) -> ResultRows:
        place = PlaceName(*self.table, self.spec)
        database, table, partition = place_names(state, place)
        kind = CompactionType.MAJOR if self.kind == "MAJOR" else CompactionType.MINOR
        request = CompactionRequest(database, table, partition, kind, runas=state.user)
        answer = state.call("compact2", request)
        return ResultRows(("compaction_id", "state", "accepted"), [(answer.id, answer.state, answer.accepted)])


class DropConstraint(Statement, frozen=True):
    table: QualifiedName
    name: str

    def run(self, state: ShellState) -> None:
        state.call("drop_constraint", DropConstraintRequest(*self.table, self.name))


class AddKey(Statement, frozen=True):
    """A primary key, or a foreign key where `references` names a table."""

    table: QualifiedName
    name: str | None
    columns: Sequence[str]
    references: QualifiedName | None = None
    referenced_columns: Sequence[str] = ()

    def run(self, state: ShellState) -> None:
        name, target = self.table, self.references
        # It is enforced by nothing.
        states = (False, False, False)
        if target is None:
            keys = [
                SQLPrimaryKey(*name, column, number, self.name, *states)
                for number, column in enumerate(self.columns, 1)
            ]
            state.call("add_primary_key", AddPrimaryKeyRequest(keys))
            return
        if len(self.columns) != len(self.referenced_columns):
            raise CommandRefused(
                f"the foreign key has {len(self.columns)} columns and references another number of them"
            )
        pairs = zip(self.referenced_columns, self.columns, strict=True)
        foreign = [
            SQLForeignKey(*target, parent, *name, child, number, 0, 0, self.name, None, *states)
            for number, (parent, child) in enumerate(pairs, 1)
        ]
        state.call("add_foreign_key", AddForeignKeyRequest(foreign))


def _changed_table(name: QualifiedName, table: Table, change: Change) -> Table:
    descriptor = table.sd or StorageDescriptor()
    match change:
        case Rename(to):
            return replace(table, dbName=to.db_name, tableName=to.table_name)
        case SetProperties(parameters):
            return _with_parameters(table, {**(table.parameters or {}), **parameters})
        case UnsetProperties(names, if_exists):
            return replace(table, parameters=_without(name, table.parameters or {}, names, if_exists=if_exists))
        case SetOwner((kind, owner)):
            return replace(table, owner=owner, ownerType=kind)
        case Touch():
            return table
        case ChangePartitionColumn(column):
            return replace(table, partitionKeys=_retyped(name, table.partitionKeys or [], column))
        case _:
            return replace(table, sd=_changed_descriptor(name, descriptor, change))


def _with_parameters(table: Table, parameters: dict[str, str]) -> Table:
    """EXTERNAL and the type of a table say the same."""
    kind = table.tableType
    if kind in ("MANAGED_TABLE", "EXTERNAL_TABLE"):
        kind = "EXTERNAL_TABLE" if parameters.get("EXTERNAL", "").upper() == "TRUE" else "MANAGED_TABLE"
    return replace(table, parameters=parameters, tableType=kind)


def _changed_descriptor(name: QualifiedName, descriptor: StorageDescriptor, change: Change) -> StorageDescriptor:
    serde = descriptor.serdeInfo or SerDeInfo(parameters={})
    match change:
        case AddColumns(columns):
            return replace(descriptor, cols=_added(name, descriptor.cols or [], columns))
        case ReplaceColumns(columns):
            return replace(descriptor, cols=list(columns))
        case ChangeColumn():
            return replace(descriptor, cols=_changed_columns(name, descriptor.cols or [], change))
        case SetSerde(library, parameters):
            named = serde if library is None else replace(serde, serializationLib=library)
            return replace(descriptor, serdeInfo=replace(named, parameters={**(serde.parameters or {}), **parameters}))
        case UnsetSerdeProperties(names):
            kept = {key: value for key, value in (serde.parameters or {}).items() if key not in names}
            return replace(descriptor, serdeInfo=replace(serde, parameters=kept))
        case SetFormat(input_format, output_format, chosen):
            named = serde if chosen is None else replace(serde, serializationLib=chosen.serializationLib)
            return replace(descriptor, inputFormat=input_format, outputFormat=output_format, serdeInfo=named)
        case SetLocation(location):
            return replace(descriptor, location=location)
        case SetBuckets(columns, sorted_by, number):
            orders = [SortOrder(col=column, order=order) for column, order in sorted_by]
            return replace(descriptor, bucketCols=list(columns), sortCols=orders, numBuckets=number)
        case _:
            raise AssertionError(f"unknown change {change}")


def _added(name: QualifiedName, columns: list[FieldSchema], added: Sequence[FieldSchema]) -> list[FieldSchema]:
    existing = {column.name for column in columns}
    double = next((column.name for column in added if column.name in existing), None)
    if double is not None:
        raise CommandRefused(f"table {name} has a column {double} already")
    return [*columns, *added]


def _changed_columns(name: QualifiedName, columns: list[FieldSchema], change: ChangeColumn) -> list[FieldSchema]:
    names = [column.name for column in columns]
    if change.name not in names:
        raise CommandRefused(
            f"table {name} does not have the column {change.name}; it has {', '.join(map(str, names))}"
        )
    at = names.index(change.name)
    comment = columns[at].comment if change.column.comment is None else change.column.comment
    changed = replace(change.column, comment=comment)
    if change.after is None:
        return [*columns[:at], changed, *columns[at + 1 :]]
    rest = [*columns[:at], *columns[at + 1 :]]
    others = [column.name for column in rest]
    if change.after and change.after not in others:
        raise CommandRefused(
            f"table {name} does not have the column {change.after}; it has {', '.join(map(str, others))}"
        )
    place = others.index(change.after) + 1 if change.after else 0
    return [*rest[:place], changed, *rest[place:]]


def _retyped(name: QualifiedName, keys: list[FieldSchema], column: FieldSchema) -> list[FieldSchema]:
    if column.name not in [key.name for key in keys]:
        raise CommandRefused(f"{column.name} is not a partition key of table {name}")
    return [replace(key, type=column.type) if key.name == column.name else key for key in keys]


def _without(
    name: QualifiedName, parameters: Mapping[str, str], names: Sequence[str], *, if_exists: bool
) -> dict[str, str]:
    missing = next((each for each in names if each not in parameters), None)
    if missing is not None and not if_exists:
        raise CommandRefused(f"table {name} does not have the property {missing}")
    return {key: value for key, value in parameters.items() if key not in names}


def _alter_partitions(statement: AlterTable, state: ShellState, table: Table) -> None:
    name, change = statement.table, statement.change
    if isinstance(change, RenamePartition):
        _rename_partition(state, table, name, statement.specs[0], change.to)
        return
    names = [each for spec in statement.specs for each in partition_names(state, name, spec)]
    if not names:
        raise CommandRefused(f"table {name} does not have such a partition; SHOW PARTITIONS {name} lists those it has")
    for begin in range(0, len(names), _PARTITIONS_PER_CALL):
        some = names[begin : begin + _PARTITIONS_PER_CALL]
        found = state.call("get_partitions_by_names", name.db_name, name.table_name, some)
        changed = [_changed_partition(name, each, change) for each in found]
        state.call(
            "alter_partitions_with_environment_context", name.db_name, name.table_name, changed, EnvironmentContext()
        )


def _changed_partition(name: QualifiedName, partition: Partition, change: Change) -> Partition:
    if isinstance(change, SetProperties | UnsetProperties | SetOwner | Rename):
        raise CommandRefused("partitions have no TBLPROPERTIES, owner or name of their own; leave PARTITION out")
    if isinstance(change, Touch):
        return partition
    return replace(partition, sd=_changed_descriptor(name, partition.sd or StorageDescriptor(), change))


def _rename_partition(
    state: ShellState, table: Table, name: QualifiedName, old: PartitionSpec, new: PartitionSpec
) -> None:
    keys = keys_of(table)
    values = partition_values(name, keys, old)
    found: Partition = state.call("get_partition", name.db_name, name.table_name, values)
    renamed = replace(found, values=new_partition_values(name, table, new))
    state.call("rename_partition", name.db_name, name.table_name, values, renamed)
