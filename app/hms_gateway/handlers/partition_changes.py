"""Changing partitions: the IDL's methods in its order, each one call of `catalog.partitions`."""

from hms_gateway.catalog.arguments import in_catalog, table_in, table_named, table_shown, with_fields
from hms_gateway.catalog.partitions.service import PartitionService
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.rpc.call import Call
from hms_gateway.structs import (
    AddPartitionsRequest,
    AddPartitionsResult,
    AlterPartitionsRequest,
    AlterPartitionsResponse,
    AppendPartitionsRequest,
    DropPartitionRequest,
    DropPartitionsRequest,
    DropPartitionsResult,
    EnvironmentContext,
    FieldSchema,
    Partition,
    PartitionSpec,
    RenamePartitionRequest,
    RenamePartitionResponse,
)


class PartitionChanges:
    """Environment contexts may be absent; purging is what every deletion here does."""

    def __init__(self, partitions: PartitionService) -> None:
        self._additions = partitions.additions
        self._drops = partitions.drops
        self._changes = partitions.changes
        self._exchanges = partitions.exchanges

    def add_partition(self, call: Call, new_part: Partition) -> Partition:
        return self.add_partition_with_environment_context(call, new_part, None)

    def add_partition_with_environment_context(
        self, call: Call, new_part: Partition, environment_context: EnvironmentContext | None
    ) -> Partition:
        added = self._additions.add(_within_catalog(new_part), environment_context)
        return _shown(table_shown(call, None, None, new_part.catName), [added])[0]

    def add_partitions(self, call: Call, new_parts: list[Partition]) -> int:
        return self._additions.add_all(new_parts and [_within_catalog(one) for one in new_parts])

    def add_partitions_pspec(self, call: Call, new_parts: list[PartitionSpec]) -> int:
        return self._additions.add_specs(new_parts)

    def add_partitions_req(self, call: Call, request: AddPartitionsRequest) -> AddPartitionsResult:
        request = required(request, "request")
        # Hive leaves the list out when there was nothing to add.
        wants_result = request.needResult is not False and bool(request.parts)
        table = table_shown(call, request.dbName, request.tblName, request.catName)
        added = self._additions.add_to(
            table,
            _with_columns(request.parts or [], request.partitionColSchema),
            skips_existing=bool(request.ifNotExists),
            is_answered=wants_result,
            environment=request.environmentContext,
        )
        return AddPartitionsResult(partitions=_shown(table, added)) if wants_result else AddPartitionsResult()

    def append_partition(self, call: Call, db_name: str, tbl_name: str, part_vals: list[str]) -> Partition:
        return self.append_partition_with_environment_context(call, db_name, tbl_name, part_vals, None)

    def append_partition_with_environment_context(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        part_vals: list[str],
        environment_context: EnvironmentContext | None,
    ) -> Partition:
        table = table_shown(call, db_name, tbl_name)
        return _shown(table, [self._additions.append(table, part_vals, environment_context)])[0]

    def append_partition_req(self, call: Call, appendPartitionsReq: AppendPartitionsRequest) -> Partition:
        appendPartitionsReq = required(appendPartitionsReq, "appendPartitionsReq")
        req = appendPartitionsReq
        table = table_shown(call, req.dbName, req.tableName, req.catalogName)
        if req.partVals is not None:
            added = self._additions.append(table, req.partVals, req.environmentContext)
        else:
            added = self._additions.append_by_name(table, req.name, req.environmentContext)
        return _shown(table, [added])[0]

    def append_partition_by_name(self, call: Call, db_name: str, tbl_name: str, part_name: str) -> Partition:
        return self.append_partition_by_name_with_environment_context(call, db_name, tbl_name, part_name, None)

    def append_partition_by_name_with_environment_context(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        part_name: str,
        environment_context: EnvironmentContext | None,
    ) -> Partition:
        table = table_shown(call, db_name, tbl_name)
        return _shown(table, [self._additions.append_by_name(table, part_name, environment_context)])[0]

    def drop_partition(self, call: Call, db_name: str, tbl_name: str, part_vals: list[str], deleteData: bool) -> bool:
        self._drops.drop(table_named(db_name, tbl_name), part_vals, deletes_data=bool(deleteData))
        return True

    def drop_partition_with_environment_context(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        part_vals: list[str],
        deleteData: bool,
        environment_context: EnvironmentContext | None,
    ) -> bool:
        self._drops.drop(table_named(db_name, tbl_name), part_vals, deletes_data=bool(deleteData))
        return True

    def drop_partition_req(self, call: Call, dropPartitionReq: DropPartitionRequest) -> bool:
        dropPartitionReq = required(dropPartitionReq, "dropPartitionReq")
        req = dropPartitionReq
        table, deletes_data = table_in(req.catName, req.dbName, req.tblName), bool(req.deleteData)
        if req.partVals is not None:
            self._drops.drop(table, req.partVals, deletes_data=deletes_data)
        else:
            self._drops.drop_by_name(table, req.partName, deletes_data=deletes_data)
        return True

    def drop_partition_by_name(self, call: Call, db_name: str, tbl_name: str, part_name: str, deleteData: bool) -> bool:
        self._drops.drop_by_name(table_named(db_name, tbl_name), part_name, deletes_data=bool(deleteData))
        return True

    def drop_partition_by_name_with_environment_context(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        part_name: str,
        deleteData: bool,
        environment_context: EnvironmentContext | None,
    ) -> bool:
        self._drops.drop_by_name(table_named(db_name, tbl_name), part_name, deletes_data=bool(deleteData))
        return True

    def drop_partitions_req(self, call: Call, req: DropPartitionsRequest) -> DropPartitionsResult:
        req = required(req, "req")
        table = table_shown(call, req.dbName, req.tblName, req.catName)
        dropped = self._drops.drop_all(
            table,
            req.parts,
            # Hive asks whether the field was sent, so its default in the IDL never counts (semantics §2.10).
            ignores_missing=req.ifExists is True,
            deletes_data=bool(req.deleteData),
        )
        return DropPartitionsResult(None if req.needResult is False else _shown(table, dropped))

    def alter_partition(self, call: Call, db_name: str, tbl_name: str, new_part: Partition) -> None:
        self._changes.alter(table_named(db_name, tbl_name), new_part)

    def alter_partitions(self, call: Call, db_name: str, tbl_name: str, new_parts: list[Partition]) -> None:
        self._changes.alter_all(table_named(db_name, tbl_name), new_parts)

    def alter_partition_with_environment_context(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        new_part: Partition,
        environment_context: EnvironmentContext | None,
    ) -> None:
        self._changes.alter(table_named(db_name, tbl_name), new_part, environment_context)

    def alter_partitions_with_environment_context(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        new_parts: list[Partition],
        environment_context: EnvironmentContext | None,
    ) -> None:
        self._changes.alter_all(table_named(db_name, tbl_name), new_parts, environment_context)

    def alter_partitions_req(self, call: Call, req: AlterPartitionsRequest) -> AlterPartitionsResponse:
        req = required(req, "req")
        table = table_in(req.catName, req.dbName, req.tableName)
        partitions = _with_columns(req.partitions or [], req.partitionColSchema)
        if req.writeId is not None and req.writeId > 0:
            partitions = [one and with_fields(one, writeId=req.writeId) for one in partitions]
        self._changes.alter_all(table, partitions, req.environmentContext, req.validWriteIdList)
        return AlterPartitionsResponse()

    def rename_partition(
        self, call: Call, db_name: str, tbl_name: str, part_vals: list[str], new_part: Partition
    ) -> None:
        self._changes.rename(table_named(db_name, tbl_name), part_vals, new_part)

    def rename_partition_req(self, call: Call, req: RenamePartitionRequest) -> RenamePartitionResponse:
        req = required(req, "req")
        self._changes.rename(table_in(req.catName, req.dbName, req.tableName), req.partVals, req.newPart)
        return RenamePartitionResponse()

    def exchange_partition(
        self,
        call: Call,
        partitionSpecs: dict[str, str],
        source_db: str,
        source_table_name: str,
        dest_db: str,
        dest_table_name: str,
    ) -> Partition:
        source, target = table_named(source_db, source_table_name), table_named(dest_db, dest_table_name)
        self._exchanges.exchange(partitionSpecs, source, target)
        # Hive answers a partition in which nothing is set but what Java cannot leave unset.
        return Partition(createTime=0, lastAccessTime=0)

    def exchange_partitions(
        self,
        call: Call,
        partitionSpecs: dict[str, str],
        source_db: str,
        source_table_name: str,
        dest_db: str,
        dest_table_name: str,
    ) -> list[Partition]:
        source, target = table_named(source_db, source_table_name), table_shown(call, dest_db, dest_table_name)
        return _shown(target, self._exchanges.exchange(partitionSpecs, source, target))


def _within_catalog(partition: Partition) -> Partition:
    """A partition that a client sent, its database under the name it has within the one catalog."""
    if partition is None or not partition.catName:
        return partition
    return with_fields(partition, dbName=in_catalog(partition.catName, partition.dbName))


def _shown(table: TableName, partitions: list[Partition]) -> list[Partition]:
    """Partitions as they are answered: newer callers see their catalog."""
    if table.shown_catalog is None:
        return partitions
    return [with_fields(partition, catName=table.shown_catalog) for partition in partitions]


def _with_columns(partitions: list[Partition], columns: list[FieldSchema] | None) -> list[Partition]:
    """Newer clients send the columns once, for every partition that comes without its own."""
    if columns is None:
        return partitions
    return [
        with_fields(partition, sd=with_fields(partition.sd, cols=columns))
        if partition is not None and partition.sd is not None and partition.sd.cols is None
        else partition
        for partition in partitions
    ]
