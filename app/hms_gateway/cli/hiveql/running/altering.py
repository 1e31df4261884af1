"""ALTER of databases and tables: what is there is read, changed and written back."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace

from hms_gateway.cli.hiveql import statements as say
from hms_gateway.cli.hiveql.running.shell_state import (
    CommandRefused,
    ShellState,
    keys_of,
    new_partition_values,
    partition_names,
    partition_values,
)
from hms_gateway.cli.hiveql.running.showing import check_database
from hms_gateway.cli.hiveql.statements import PartitionSpec, QualifiedName, Statement
from hms_gateway.rpc.structs import (
    EnvironmentContext,
    FieldSchema,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from hms_gateway.rpc.structs import Order as SortOrder

_VIEWS: Final = ("VIRTUAL_VIEW", "MATERIALIZED_VIEW")
_CASCADE: Final = {"CASCADE": "true"}
_PARTITIONS_PER_CALL: Final = 500


def _alter_database(statement: say.AlterDatabase, state: ShellState) -> None:
    found = check_database(state, statement.database)
    if statement.parameters is not None:
        found.parameters = {**(found.parameters or {}), **statement.parameters}
    if statement.location is not None:
        found.locationUri = statement.location
    if statement.managed_location is not None:
        found.managedLocationUri = statement.managed_location
    if statement.owner is not None:
        found.ownerType, found.ownerName = statement.owner
    state.call("alter_database", statement.database, found)


def _alter_table(statement: say.AlterTable, state: ShellState) -> None:
    name, change = statement.table, statement.change
    table = state.table(name)
    if statement.is_view and table.tableType not in _VIEWS:
        raise CommandRefused(f"{name} is a table; ALTER TABLE alters it")
    if statement.specs:
        _alter_partitions(statement, state, table)
        return
    changed = _changed_table(name, table, change)
    properties = _CASCADE if getattr(change, "is_cascading", False) else {}
    context = EnvironmentContext(properties=dict(properties))
    state.call("alter_table_with_environment_context", name.db_name, name.table_name, changed, context)


def _changed_table(name: QualifiedName, table: Table, change: say.Change) -> Table:
    descriptor = table.sd or StorageDescriptor()
    match change:
        case say.Rename(to):
            return replace(table, dbName=to.db_name, tableName=to.table_name)
        case say.SetProperties(parameters):
            return _with_parameters(table, {**(table.parameters or {}), **parameters})
        case say.UnsetProperties(names, if_exists):
            return replace(table, parameters=_without(name, table.parameters or {}, names, if_exists=if_exists))
        case say.SetOwner((kind, owner)):
            return replace(table, owner=owner, ownerType=kind)
        case say.Touch():
            return table
        case say.ChangePartitionColumn(column):
            return replace(table, partitionKeys=_retyped(name, table.partitionKeys or [], column))
        case _:
            return replace(table, sd=_changed_descriptor(name, descriptor, change))


def _with_parameters(table: Table, parameters: dict[str, str]) -> Table:
    """EXTERNAL and the type of a table say the same."""
    kind = table.tableType
    if kind in ("MANAGED_TABLE", "EXTERNAL_TABLE"):
        kind = "EXTERNAL_TABLE" if parameters.get("EXTERNAL", "").upper() == "TRUE" else "MANAGED_TABLE"
    return replace(table, parameters=parameters, tableType=kind)


def _changed_descriptor(name: QualifiedName, descriptor: StorageDescriptor, change: say.Change) -> StorageDescriptor:
    serde = descriptor.serdeInfo or SerDeInfo(parameters={})
    match change:
        case say.AddColumns(columns):
            return replace(descriptor, cols=_added(name, descriptor.cols or [], columns))
        case say.ReplaceColumns(columns):
            return replace(descriptor, cols=list(columns))
        case say.ChangeColumn():
            return replace(descriptor, cols=_changed_columns(name, descriptor.cols or [], change))
        case say.SetSerde(library, parameters):
            named = serde if library is None else replace(serde, serializationLib=library)
            return replace(descriptor, serdeInfo=replace(named, parameters={**(serde.parameters or {}), **parameters}))
        case say.UnsetSerdeProperties(names):
            kept = {key: value for key, value in (serde.parameters or {}).items() if key not in names}
            return replace(descriptor, serdeInfo=replace(serde, parameters=kept))
        case say.SetFormat(input_format, output_format, chosen):
            named = serde if chosen is None else replace(serde, serializationLib=chosen.serializationLib)
            return replace(descriptor, inputFormat=input_format, outputFormat=output_format, serdeInfo=named)
        case say.SetLocation(location):
            return replace(descriptor, location=location)
        case say.SetBuckets(columns, sorted_by, number):
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


def _changed_columns(name: QualifiedName, columns: list[FieldSchema], change: say.ChangeColumn) -> list[FieldSchema]:
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


def _alter_partitions(statement: say.AlterTable, state: ShellState, table: Table) -> None:
    name, change = statement.table, statement.change
    if isinstance(change, say.RenamePartition):
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


def _changed_partition(name: QualifiedName, partition: Partition, change: say.Change) -> Partition:
    if isinstance(change, say.SetProperties | say.UnsetProperties | say.SetOwner | say.Rename):
        raise CommandRefused("partitions have no TBLPROPERTIES, owner or name of their own; leave PARTITION out")
    if isinstance(change, say.Touch):
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


RUNNERS: Final[Mapping[type[Statement], Callable[[Any, ShellState], None]]] = MappingProxyType(
    {say.AlterDatabase: _alter_database, say.AlterTable: _alter_table}
)
