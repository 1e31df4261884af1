"""Calls on partitions by short names, as a client of Hive 2.3 makes them."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from hms_gateway.catalog.partitions.additions import PartitionAdditions
from hms_gateway.catalog.partitions.changes import PartitionChanges
from hms_gateway.catalog.partitions.drops import PartitionDrops
from hms_gateway.catalog.partitions.exchange import PartitionExchange
from hms_gateway.catalog.partitions.reads import NameList, PartitionList, Partitions
from hms_gateway.catalog.statistics.column_statistics import StatisticsRules
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import Store
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import (
    AddPartitionsRequest,
    AlterPartitionsRequest,
    DropPartitionsRequest,
    EnvironmentContext,
    GetPartitionRequest,
    GetPartitionsFilterSpec,
    GetPartitionsPsWithAuthRequest,
    GetPartitionsRequest,
    GetProjectionsSpec,
    Partition,
    PartitionsByExprRequest,
    PartitionSpec,
    PartitionValuesRequest,
    RequestPartsSpec,
    Struct,
)
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.files.directories import Directories

CALL = Call("nobody")
_NEWER = Call("nobody", dialect=Dialect.HIVE_4)


class PartitionCalls:
    """The methods on partitions over one store; tables are named as callers spell them."""

    def __init__(
        self,
        store: Store,
        files: Directories,
        clock: Clock,
        settings: MetastoreSettings,
        to_tjson: Callable[[Struct], bytes],
        limits: Limits | None = None,
    ) -> None:
        limits = limits or Limits()
        events = EventMaker(clock, to_tjson)
        parts = (store, files, clock, events, limits)
        statistics = StatisticsRules(clock, events)
        self.reads = Partitions(store, settings, to_tjson, limits)
        self.additions = PartitionAdditions(*parts, statistics.of_new_partitions)
        self.drops = PartitionDrops(store, files, events, limits)
        self.changes = PartitionChanges(*parts)
        self.exchanges = PartitionExchange(store, files, events)

    @property
    def handlers(self) -> list[object]:
        return [self.reads, self.additions, self.drops, self.changes, self.exchanges]

    def get(self, table: TableName, values: Any, valid_write_ids: str | None = None) -> Any:
        request = GetPartitionRequest(None, table.db_name, table.tbl_name, values, valid_write_ids)
        return self.reads.get_partition_req(CALL, request).partition

    def get_by_name(self, table: TableName, name: str | None) -> Partition:
        return self.reads.get_partition_by_name(CALL, *_names(table), name)

    def list_all(self, table: TableName, max_parts: int) -> PartitionList:
        return self.reads.get_partitions(CALL, *_names(table), max_parts)

    def list_by_filter(self, table: TableName, text: str | None, max_parts: int) -> PartitionList:
        return self.reads.get_partitions_by_filter(CALL, *_names(table), text, max_parts)

    def list_by_partial_values(self, table: TableName, values: Any, max_parts: int) -> PartitionList:
        return self.reads.get_partitions_ps(CALL, *_names(table), values, max_parts)

    def list_by_partial_values_of_newer(self, table: TableName, values: list[str], max_parts: int) -> Any:
        request = GetPartitionsPsWithAuthRequest(None, table.db_name, table.tbl_name, values, max_parts)
        return self.reads.get_partitions_ps_with_auth_req(CALL, request).partitions  # type: ignore[union-attr]

    def list_by_names(self, table: TableName, names: Any) -> PartitionList:
        return self.reads.get_partitions_by_names(CALL, *_names(table), names)

    def list_by_expression(self, table: TableName, expression: bytes | None, max_parts: int) -> tuple[Any, Any]:
        found = self.reads.get_partitions_by_expr(CALL, _by_expression(table, expression, max_parts))
        return found.partitions, found.hasUnknownPartitions

    def names(self, table: TableName, max_parts: int) -> NameList:
        """`max_parts` as Hive 4 has it, where 0 is none."""
        return self.reads.get_partition_names(_NEWER, *_names(table), max_parts)

    def names_by_partial_values(self, table: TableName, values: Any, max_parts: int) -> NameList:
        return self.reads.get_partition_names_ps(CALL, *_names(table), values, max_parts)

    def names_by_expression(self, table: TableName, expression: bytes | None, max_parts: int) -> NameList:
        return self.reads.get_partition_names_req(CALL, _by_expression(table, expression, max_parts))

    def count_by_filter(self, table: TableName, text: str | None) -> int:
        return self.reads.get_num_partitions_by_filter(CALL, *_names(table), text)

    def values(self, table: TableName, request: PartitionValuesRequest) -> list[list[str] | None]:
        named = msgspec.structs.replace(request, dbName=table.db_name, tblName=table.tbl_name)
        return [one.row for one in self.reads.get_partition_values(CALL, named).partitionValues or ()]

    def specs(self, table: TableName, max_parts: int) -> list[PartitionSpec]:
        return self.reads.get_partitions_pspec(CALL, *_names(table), max_parts)

    def specs_by_filter(self, table: TableName, text: str | None, max_parts: int) -> list[PartitionSpec]:
        return self.reads.get_part_specs_by_filter(CALL, *_names(table), text, max_parts)

    def specs_by_expression(self, table: TableName, expression: bytes | None, max_parts: int) -> tuple[Any, Any]:
        found = self.reads.get_partitions_spec_by_expr(CALL, _by_expression(table, expression, max_parts))
        return found.partitionsSpec, found.hasUnknownPartitions

    def projected_specs(self, table: TableName, conditions: GetPartitionsFilterSpec | None, *fields: str) -> Any:
        request = GetPartitionsRequest(
            None, table.db_name, table.tbl_name, projectionSpec=GetProjectionsSpec(list(fields)), filterSpec=conditions
        )
        return self.reads.get_partitions_with_specs(CALL, request).partitionSpec

    def add(self, partition: Partition | None, environment: EnvironmentContext | None = None) -> Partition:
        return self.additions.add_partition_with_environment_context(CALL, partition, environment)

    def add_all(self, partitions: Any) -> int:
        return self.additions.add_partitions(CALL, partitions)

    def add_specs(self, specs: Any) -> int:
        return self.additions.add_partitions_pspec(CALL, specs)

    def add_to(
        self,
        table: TableName,
        partitions: Sequence[Partition],
        *,
        skips_existing: bool = False,
        environment: EnvironmentContext | None = None,
    ) -> list[Partition]:
        request = AddPartitionsRequest(
            table.db_name, table.tbl_name, list(partitions), skips_existing, environmentContext=environment
        )
        return self.additions.add_partitions_req(CALL, request).partitions or []

    def append(self, table: TableName, values: Any, environment: EnvironmentContext | None = None) -> Partition:
        return self.additions.append_partition_with_environment_context(CALL, *_names(table), values, environment)

    def append_by_name(
        self, table: TableName, name: str | None, environment: EnvironmentContext | None = None
    ) -> Partition:
        return self.additions.append_partition_by_name_with_environment_context(CALL, *_names(table), name, environment)

    def drop(self, table: TableName, values: Any, *, deletes_data: bool) -> None:
        assert self.drops.drop_partition(CALL, *_names(table), values, deletes_data)

    def drop_by_name(self, table: TableName, name: str | None, *, deletes_data: bool) -> None:
        assert self.drops.drop_partition_by_name(CALL, *_names(table), name, deletes_data)

    def drop_all(
        self, table: TableName, parts: RequestPartsSpec | None, *, ignores_missing: bool, deletes_data: bool
    ) -> Any:
        request = DropPartitionsRequest(table.db_name, table.tbl_name, parts, deletes_data, ignores_missing)
        return self.drops.drop_partitions_req(CALL, request).partitions

    def alter(
        self, table: TableName, partition: Partition | None, environment: EnvironmentContext | None = None
    ) -> None:
        self.changes.alter_partition_with_environment_context(CALL, *_names(table), partition, environment)

    def alter_all(
        self,
        table: TableName,
        partitions: Any,
        environment: EnvironmentContext | None = None,
        valid_write_ids: str | None = None,
    ) -> None:
        if valid_write_ids is None:
            self.changes.alter_partitions_with_environment_context(CALL, *_names(table), partitions, environment)
            return
        request = AlterPartitionsRequest(
            None,
            table.db_name,
            table.tbl_name,
            list(partitions or ()),
            environmentContext=environment,
            validWriteIdList=valid_write_ids,
        )
        self.changes.alter_partitions_req(CALL, request)

    def rename(self, table: TableName, values: Any, partition: Partition | None) -> None:
        self.changes.rename_partition(CALL, *_names(table), values, partition)

    def exchange(self, spec: Any, source: TableName, target: TableName) -> list[Partition]:
        return self.exchanges.exchange_partitions(CALL, spec, *_names(source), *_names(target))


def _names(table: TableName) -> tuple[Any, Any]:
    return table.db_name, table.tbl_name


def _by_expression(table: TableName, expression: bytes | None, max_parts: int) -> PartitionsByExprRequest:
    return PartitionsByExprRequest(table.db_name, table.tbl_name, expression, maxParts=max_parts)
