"""ALTER of databases and tables; partitions, constraints and compactions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

from msgspec.structs import replace

import hms_gateway.rpc.structs as structs
from hms_gateway.cli.hiveql.shell_state import (
    VIEWS,
    CommandRefused,
    PartitionSpec,
    PlaceName,
    PrincipalName,
    QualifiedName,
    ResultRows,
    ShellState,
    keys_of,
    known_values,
    new_partition_values,
    no_such_partition,
    partition_names,
    partition_values,
    place_names,
    statement,
)
from hms_gateway.cli.hiveql.showing import check_database
from hms_gateway.metastore.vocabulary.table_types import FileFormat

_CASCADE: Final = {"CASCADE": "true"}
_PARTITIONS_PER_CALL: Final = 500


@statement
def alter_database(
    state: ShellState,
    database: str,
    parameters: Mapping[str, str] | None = None,
    location: str | None = None,
    managed_location: str | None = None,
    owner: PrincipalName | None = None,
) -> None:
    """Attributes that are None stay."""
    found = check_database(state, database)
    if parameters is not None:
        found.parameters = {**(found.parameters or {}), **parameters}
    if location is not None:
        found.locationUri = location
    if managed_location is not None:
        found.managedLocationUri = managed_location
    if owner is not None:
        found.ownerType, found.ownerName = owner
    state.call("alter_database", database, found)


P = ParamSpec("P")


class Change(NamedTuple):
    """A change by ALTER TABLE: a function of the table's name and the part that it changes, with the words given.

    The part is the table itself, or (`is_of_storage`) the storage descriptor of the table or of the partitions named.
    """

    work: Callable[..., Any]
    given: tuple[Any, ...]
    named: Mapping[str, Any]
    is_of_storage: bool
    is_cascading: bool = False


def _of_table(work: Callable[Concatenate[QualifiedName, structs.Table, P], structs.Table]) -> Callable[P, Change]:
    return lambda *given, **named: Change(work, given, named, False)


def _of_storage(
    work: Callable[Concatenate[QualifiedName, structs.StorageDescriptor, P], structs.StorageDescriptor],
) -> Callable[P, Change]:
    return lambda *given, **named: Change(work, given, named, True)


@_of_table
def rename(name: QualifiedName, table: structs.Table, to: QualifiedName) -> structs.Table:
    return replace(table, dbName=to.db_name, tableName=to.table_name)


@_of_table
def set_properties(name: QualifiedName, table: structs.Table, parameters: Mapping[str, str]) -> structs.Table:
    """EXTERNAL and the type of a table say the same."""
    merged, kind = {**(table.parameters or {}), **parameters}, table.tableType
    if kind in ("MANAGED_TABLE", "EXTERNAL_TABLE"):
        kind = "EXTERNAL_TABLE" if merged.get("EXTERNAL", "").upper() == "TRUE" else "MANAGED_TABLE"
    return replace(table, parameters=merged, tableType=kind)


@_of_table
def unset_properties(
    name: QualifiedName, table: structs.Table, names: Sequence[str], if_exists: bool = False
) -> structs.Table:
    parameters = table.parameters or {}
    missing = next((each for each in names if each not in parameters), None)
    if missing is not None and not if_exists:
        raise CommandRefused(f"table {name} does not have the property {missing}")
    return replace(table, parameters=_without(parameters, names))


@_of_table
def set_owner(name: QualifiedName, table: structs.Table, owner: PrincipalName) -> structs.Table:
    return replace(table, owner=owner.name, ownerType=owner.kind)


@_of_table
def change_partition_column(name: QualifiedName, table: structs.Table, column: structs.FieldSchema) -> structs.Table:
    keys = table.partitionKeys or []
    if column.name not in keys_of(table):
        raise CommandRefused(f"{column.name} is not a partition key of table {name}")
    retyped = [replace(key, type=column.type) if key.name == column.name else key for key in keys]
    return replace(table, partitionKeys=retyped)


@_of_storage
def touch(name: QualifiedName, descriptor: structs.StorageDescriptor) -> structs.StorageDescriptor:
    return descriptor


@_of_storage
def add_columns(
    name: QualifiedName, descriptor: structs.StorageDescriptor, columns: Sequence[structs.FieldSchema]
) -> structs.StorageDescriptor:
    existing = _names(descriptor.cols or [])
    double = next((column.name for column in columns if column.name in existing), None)
    if double is not None:
        raise CommandRefused(f"table {name} has a column {double} already")
    return replace(descriptor, cols=[*(descriptor.cols or []), *columns])


@_of_storage
def replace_columns(
    name: QualifiedName, descriptor: structs.StorageDescriptor, columns: Sequence[structs.FieldSchema]
) -> structs.StorageDescriptor:
    return replace(descriptor, cols=list(columns))


@_of_storage
def change_column(
    name: QualifiedName,
    descriptor: structs.StorageDescriptor,
    old: str,
    column: structs.FieldSchema,
    after: str | None = None,
) -> structs.StorageDescriptor:
    """`after` is the column before it, empty for the first place, None for where it is."""
    columns = list(descriptor.cols or [])
    at = _place_of(name, columns, old)
    before = columns.pop(at)
    changed = replace(column, comment=before.comment if column.comment is None else column.comment)
    if after is not None:
        at = _place_of(name, columns, after) + 1 if after else 0
    columns.insert(at, changed)
    return replace(descriptor, cols=columns)


@_of_storage
def set_serde(
    name: QualifiedName, descriptor: structs.StorageDescriptor, library: str | None, parameters: Mapping[str, str]
) -> structs.StorageDescriptor:
    """`library` is None where only the properties change."""
    serde = _serde(descriptor)
    merged = {**(serde.parameters or {}), **parameters}
    return replace(descriptor, serdeInfo=replace(_with_library(serde, library), parameters=merged))


@_of_storage
def unset_serde_properties(
    name: QualifiedName, descriptor: structs.StorageDescriptor, names: Sequence[str]
) -> structs.StorageDescriptor:
    serde = _serde(descriptor)
    return replace(descriptor, serdeInfo=replace(serde, parameters=_without(serde.parameters or {}, names)))


@_of_storage
def set_format(
    name: QualifiedName, descriptor: structs.StorageDescriptor, chosen: FileFormat
) -> structs.StorageDescriptor:
    """The serde stays where the format names none."""
    serde = _with_library(_serde(descriptor), chosen.serde or None)
    return replace(descriptor, inputFormat=chosen.input_format, outputFormat=chosen.output_format, serdeInfo=serde)


@_of_storage
def set_location(
    name: QualifiedName, descriptor: structs.StorageDescriptor, location: str
) -> structs.StorageDescriptor:
    return replace(descriptor, location=location)


@_of_storage
def set_buckets(
    name: QualifiedName,
    descriptor: structs.StorageDescriptor,
    columns: Sequence[str],
    sorted_by: Sequence[structs.Order],
    number: int,
) -> structs.StorageDescriptor:
    """No columns and a negative number mean not clustered."""
    return replace(descriptor, bucketCols=list(columns), sortCols=list(sorted_by), numBuckets=number)


@statement
def alter_table(
    state: ShellState, name: QualifiedName, change: Change, specs: tuple[PartitionSpec, ...] = (), is_view: bool = False
) -> None:
    table = state.table(name)
    if is_view and table.tableType not in VIEWS:
        raise CommandRefused(f"{name} is a table; ALTER TABLE alters it")
    if not specs:
        changed = (
            _with_storage(name, table, change)
            if change.is_of_storage
            else change.work(name, table, *change.given, **change.named)
        )
        context = structs.EnvironmentContext(properties=dict(_CASCADE) if change.is_cascading else {})
        state.call("alter_table_with_environment_context", *name, changed, context)
        return
    names = [each for spec in specs for each in partition_names(state, name, spec)]
    if not names:
        raise no_such_partition(name)
    for begin in range(0, len(names), _PARTITIONS_PER_CALL):
        found = state.call("get_partitions_by_names", *name, names[begin : begin + _PARTITIONS_PER_CALL])
        if not change.is_of_storage:
            raise CommandRefused("partitions have no TBLPROPERTIES, owner or name of their own; leave PARTITION out")
        partitions = [_with_storage(name, each, change) for each in found]
        state.call("alter_partitions_with_environment_context", *name, partitions, structs.EnvironmentContext())


Part = TypeVar("Part", structs.Table, structs.Partition)


def _with_storage(name: QualifiedName, part: Part, change: Change) -> Part:
    return replace(part, sd=change.work(name, part.sd or structs.StorageDescriptor(), *change.given, **change.named))


@statement
def rename_partition(state: ShellState, name: QualifiedName, old: PartitionSpec, new: PartitionSpec) -> None:
    table = state.table(name)
    values = partition_values(name, keys_of(table), old)
    found: structs.Partition = state.call("get_partition", *name, values)
    renamed = replace(found, values=new_partition_values(name, table, new))
    state.call("rename_partition", *name, values, renamed)


class AddedPartition(NamedTuple):
    spec: PartitionSpec
    location: str | None


@statement
def add_partitions(
    state: ShellState, name: QualifiedName, partitions: Sequence[AddedPartition], if_not_exists: bool = False
) -> None:
    table = state.table(name)
    descriptor = table.sd or structs.StorageDescriptor()
    made = [
        structs.Partition(
            values=new_partition_values(name, table, new.spec),
            dbName=name.db_name,
            tableName=name.table_name,
            sd=replace(descriptor, location=new.location),
            parameters={},
        )
        for new in partitions
    ]
    request = structs.AddPartitionsRequest(*name, made, if_not_exists, needResult=False)
    state.call("add_partitions_req", request)


@statement
def drop_partitions(
    state: ShellState,
    name: QualifiedName,
    specs: Sequence[PartitionSpec],
    if_exists: bool = False,
    is_purging: bool = False,
) -> None:
    found = [each for spec in specs for each in partition_names(state, name, spec)]
    if not found and not if_exists:
        raise no_such_partition(name)
    context = structs.EnvironmentContext(properties={"ifPurge": "true"}) if is_purging else None
    names = list(dict.fromkeys(found))
    for begin in range(0, len(names), _PARTITIONS_PER_CALL):
        some = structs.RequestPartsSpec(names=names[begin : begin + _PARTITIONS_PER_CALL])
        request = structs.DropPartitionsRequest(*name, some, deleteData=True, ifExists=True, needResult=False)
        request.environmentContext = context
        state.call("drop_partitions_req", request)


@statement
def exchange_partition(state: ShellState, name: QualifiedName, spec: PartitionSpec, source: QualifiedName) -> None:
    given = dict(known_values(name, keys_of(state.table(name)), spec))
    state.call("exchange_partitions", given, *source, *name)


@statement
def compact(state: ShellState, name: QualifiedName, spec: PartitionSpec, kind: str) -> ResultRows:
    database, table, partition = place_names(state, PlaceName(*name, spec))
    request = structs.CompactionRequest(database, table, partition, structs.CompactionType[kind], runas=state.user)
    answer = state.call("compact2", request)
    return ResultRows(("compaction_id", "state", "accepted"), [(answer.id, answer.state, answer.accepted)])


@statement
def drop_constraint(state: ShellState, table: QualifiedName, name: str) -> None:
    state.call("drop_constraint", structs.DropConstraintRequest(*table, name))


@statement
def add_key(
    state: ShellState,
    table: QualifiedName,
    name: str | None,
    columns: Sequence[str],
    references: QualifiedName | None = None,
    referenced_columns: Sequence[str] = (),
) -> None:
    """A primary key, or a foreign key where `references` names a table."""
    # It is enforced by nothing.
    states = (False, False, False)
    if references is None:
        keys = [
            structs.SQLPrimaryKey(*table, column, number, name, *states) for number, column in enumerate(columns, 1)
        ]
        state.call("add_primary_key", structs.AddPrimaryKeyRequest(keys))
        return
    if len(columns) != len(referenced_columns):
        raise CommandRefused(f"the foreign key has {len(columns)} columns and references another number of them")
    pairs = zip(referenced_columns, columns, strict=True)
    foreign = [
        structs.SQLForeignKey(*references, parent, *table, child, number, 0, 0, name, None, *states)
        for number, (parent, child) in enumerate(pairs, 1)
    ]
    state.call("add_foreign_key", structs.AddForeignKeyRequest(foreign))


def _names(columns: Sequence[structs.FieldSchema]) -> list[str]:
    return [column.name or "" for column in columns]


def _place_of(name: QualifiedName, columns: Sequence[structs.FieldSchema], column: str) -> int:
    names = _names(columns)
    if column not in names:
        raise CommandRefused(f"table {name} does not have the column {column}; it has {', '.join(names)}")
    return names.index(column)


def _serde(descriptor: structs.StorageDescriptor) -> structs.SerDeInfo:
    return descriptor.serdeInfo or structs.SerDeInfo(parameters={})


def _with_library(serde: structs.SerDeInfo, library: str | None) -> structs.SerDeInfo:
    return serde if library is None else replace(serde, serializationLib=library)


def _without(parameters: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    return {key: value for key, value in parameters.items() if key not in names}
