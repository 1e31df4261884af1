"""Adding, dropping and exchanging partitions; constraints and compactions."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace

from hms_gateway.cli.hiveql import statements as say
from hms_gateway.cli.hiveql.running.shell_state import (
    CommandRefused,
    ResultRows,
    ShellState,
    keys_of,
    known_values,
    new_partition_values,
    partition_names,
    place_names,
)
from hms_gateway.cli.hiveql.statements import PlaceName, Statement
from hms_gateway.rpc.structs import (
    AddForeignKeyRequest,
    AddPartitionsRequest,
    AddPrimaryKeyRequest,
    CompactionRequest,
    CompactionType,
    DropConstraintRequest,
    DropPartitionsRequest,
    EnvironmentContext,
    Partition,
    RequestPartsSpec,
    SQLForeignKey,
    SQLPrimaryKey,
    StorageDescriptor,
)

_PARTITIONS_PER_CALL: Final = 500


def _add(statement: say.AddPartitions, state: ShellState) -> None:
    name = statement.table
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
        for new in statement.partitions
    ]
    request = AddPartitionsRequest(*name, partitions, statement.if_not_exists, needResult=False)
    state.call("add_partitions_req", request)


def _drop(statement: say.DropPartitions, state: ShellState) -> None:
    name = statement.table
    found = [each for spec in statement.specs for each in partition_names(state, name, spec)]
    if not found and not statement.if_exists:
        raise CommandRefused(f"table {name} does not have such a partition; SHOW PARTITIONS {name} lists those it has")
    context = EnvironmentContext(properties={"ifPurge": "true"}) if statement.is_purging else None
    names = list(dict.fromkeys(found))
    for begin in range(0, len(names), _PARTITIONS_PER_CALL):
        some = RequestPartsSpec(names=names[begin : begin + _PARTITIONS_PER_CALL])
        request = DropPartitionsRequest(*name, some, deleteData=True, ifExists=True, needResult=False)
        request.environmentContext = context
        state.call("drop_partitions_req", request)


def _exchange(statement: say.ExchangePartition, state: ShellState) -> None:
    name, source = statement.table, statement.source
    given = dict(known_values(name, keys_of(state.table(name)), statement.spec))
    state.call("exchange_partitions", given, *source, *name)


def _compact(statement: say.Compact, state: ShellState) -> ResultRows:
    place = PlaceName(*statement.table, statement.spec)
    database, table, partition = place_names(state, place)
    kind = CompactionType.MAJOR if statement.kind == "MAJOR" else CompactionType.MINOR
    request = CompactionRequest(database, table, partition, kind, runas=state.user)
    answer = state.call("compact2", request)
    return ResultRows(("compaction_id", "state", "accepted"), [(answer.id, answer.state, answer.accepted)])


def _drop_constraint(statement: say.DropConstraint, state: ShellState) -> None:
    state.call("drop_constraint", DropConstraintRequest(*statement.table, statement.name))


def _add_key(statement: say.AddKey, state: ShellState) -> None:
    name, target = statement.table, statement.references
    # It is enforced by nothing.
    states = (False, False, False)
    if target is None:
        keys = [
            SQLPrimaryKey(*name, column, number, statement.name, *states)
            for number, column in enumerate(statement.columns, 1)
        ]
        state.call("add_primary_key", AddPrimaryKeyRequest(keys))
        return
    if len(statement.columns) != len(statement.referenced_columns):
        raise CommandRefused(
            f"the foreign key has {len(statement.columns)} columns and references another number of them"
        )
    pairs = zip(statement.referenced_columns, statement.columns, strict=True)
    foreign = [
        SQLForeignKey(*target, parent, *name, child, number, 0, 0, statement.name, None, *states)
        for number, (parent, child) in enumerate(pairs, 1)
    ]
    state.call("add_foreign_key", AddForeignKeyRequest(foreign))


RUNNERS: Final[Mapping[type[Statement], Callable[[Any, ShellState], ResultRows | None]]] = MappingProxyType(
    {
        say.AddPartitions: _add,
        say.DropPartitions: _drop,
        say.ExchangePartition: _exchange,
        say.Compact: _compact,
        say.DropConstraint: _drop_constraint,
        say.AddKey: _add_key,
    }
)
