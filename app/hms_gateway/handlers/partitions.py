"""Reading partitions: the IDL's methods in its order, each one call of `catalog.partitions`."""

from typing import Final, cast

from hms_gateway.catalog.access.grants import PrivilegeService
from hms_gateway.catalog.arguments import in_catalog, table_in, table_named, table_shown, with_fields
from hms_gateway.catalog.partitions.reads import NameList, PartitionList, Projection
from hms_gateway.catalog.partitions.service import PartitionService
from hms_gateway.catalog.statistics.column_statistics import ColumnStatisticsService
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.checks.selection import TableName, names_of, partitions_of
from hms_gateway.metastore.vocabulary.partition_names import name_to_spec, name_to_values
from hms_gateway.rpc.call import Call, Dialect, Uncacheable
from hms_gateway.rpc.idl import ListType, StructType, Type
from hms_gateway.rpc.structs import (
    STRUCTS,
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
    GetPartitionNamesPsRequest,
    GetPartitionNamesPsResponse,
    GetPartitionRequest,
    GetPartitionResponse,
    GetPartitionsByFilterRequest,
    GetPartitionsByNamesRequest,
    GetPartitionsByNamesResult,
    GetPartitionsPsWithAuthRequest,
    GetPartitionsPsWithAuthResponse,
    GetPartitionsRequest,
    GetPartitionsResponse,
    GetProjectionsSpec,
    MetaException,
    Partition,
    PartitionsByExprRequest,
    PartitionsByExprResult,
    PartitionSpec,
    PartitionsRequest,
    PartitionsResponse,
    PartitionsSpecByExprResult,
    PartitionValuesRequest,
    PartitionValuesResponse,
    PartitionValuesRow,
    RenamePartitionRequest,
    RenamePartitionResponse,
)

# No field of a partition lies deeper; a name could have millions of parts.
_FIELD_DEPTH_MAX: Final = 8


class Partitions:
    """`max_parts` below zero means all."""

    def __init__(
        self,
        partitions: PartitionService,
        privileges: PrivilegeService | None = None,
        statistics: ColumnStatisticsService | None = None,
    ) -> None:
        """`privileges` and `statistics` go out with the partitions where a call asks for them."""
        self._reads = partitions.reads
        self._values = partitions.values
        self._privileges = privileges
        self._statistics = statistics

    def get_partition(self, call: Call, db_name: str, tbl_name: str, part_vals: list[str]) -> Partition:
        return self._reads.get(table_shown(call, db_name, tbl_name), part_vals)

    def get_partition_req(self, call: Call, req: GetPartitionRequest) -> GetPartitionResponse:
        req = required(req, "req")
        table = table_shown(call, req.dbName, req.tblName, req.catName)
        return GetPartitionResponse(partition=self._reads.get(table, req.partVals, req.validWriteIdList))

    def get_partition_with_auth(
        self, call: Call, db_name: str, tbl_name: str, part_vals: list[str], user_name: str, group_names: list[str]
    ) -> Partition | Uncacheable[Partition]:
        table = table_shown(call, db_name, tbl_name)
        found = [self._reads.get(table, part_vals)]
        shown = self._authorized(table, found, user_name, group_names)
        return found[0] if shown is found else Uncacheable(partitions_of(shown)[0])

    def get_partition_by_name(self, call: Call, db_name: str, tbl_name: str, part_name: str) -> Partition:
        return self._reads.get_by_name(table_shown(call, db_name, tbl_name), part_name)

    def get_partitions(self, call: Call, db_name: str, tbl_name: str, max_parts: int) -> PartitionList:
        return self._reads.list_all(table_shown(call, db_name, tbl_name), max_parts)

    def get_partitions_req(self, call: Call, req: PartitionsRequest) -> PartitionsResponse:
        req = required(req, "req")
        found = self._reads.list_all(
            table_shown(call, req.dbName, req.tblName, req.catName), _limit(req.maxParts), _projection(req)
        )
        return PartitionsResponse(partitions=_as_list(found))

    def get_partitions_with_auth(
        self, call: Call, db_name: str, tbl_name: str, max_parts: int, user_name: str, group_names: list[str]
    ) -> PartitionList | Uncacheable[PartitionList]:
        table, limit = table_shown(call, db_name, tbl_name), _limit_of_2_3(call, max_parts)
        found = self._reads.list_all(table, limit)
        shown = self._authorized(table, found, user_name, group_names)
        return found if shown is found else Uncacheable(shown)

    def get_partitions_pspec(self, call: Call, db_name: str, tbl_name: str, max_parts: int) -> list[PartitionSpec]:
        return self._reads.specs(table_shown(call, db_name, tbl_name), max_parts)

    def get_partition_names(self, call: Call, db_name: str, tbl_name: str, max_parts: int) -> NameList:
        return self._reads.names(table_shown(call, db_name, tbl_name), _limit_of_2_3(call, max_parts))

    def fetch_partition_names_req(self, call: Call, partitionReq: PartitionsRequest) -> NameList:
        partitionReq = required(partitionReq, "partitionReq")
        req = partitionReq
        return self._reads.names(table_shown(call, req.dbName, req.tblName, req.catName), _limit(req.maxParts))

    def get_partition_values(self, call: Call, request: PartitionValuesRequest) -> PartitionValuesResponse:
        request = required(request, "request")
        rows = self._reads.values(table_shown(call, request.dbName, request.tblName, request.catName), request)
        return PartitionValuesResponse(partitionValues=[PartitionValuesRow(row=row) for row in rows])

    def get_partitions_ps(
        self, call: Call, db_name: str, tbl_name: str, part_vals: list[str], max_parts: int
    ) -> PartitionList:
        return self._reads.list_by_partial_values(table_shown(call, db_name, tbl_name), part_vals, max_parts)

    def get_partitions_ps_with_auth(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        part_vals: list[str],
        max_parts: int,
        user_name: str,
        group_names: list[str],
    ) -> PartitionList | Uncacheable[PartitionList]:
        table = table_shown(call, db_name, tbl_name)
        found = self._reads.list_by_partial_values(table, part_vals, max_parts)
        shown = self._authorized_of_both(table, found, user_name, group_names)
        return found if shown is found else Uncacheable(shown)

    def get_partitions_ps_with_auth_req(
        self, call: Call, req: GetPartitionsPsWithAuthRequest
    ) -> GetPartitionsPsWithAuthResponse | Uncacheable[GetPartitionsPsWithAuthResponse]:
        req = required(req, "req")
        table, limit = table_shown(call, req.dbName, req.tblName, req.catName), _limit(req.maxParts)
        projection = _projection(req)
        if req.partNames is not None:
            found = self._reads.list_by_names(table, req.partNames, projection)
        elif req.partVals is not None:
            found = self._reads.list_by_partial_values(table, req.partVals, limit, projection, is_limited=True)
        else:
            found = self._reads.list_all(table, limit, projection)
        shown = self._authorized_of_both(table, found, req.userName, req.groupNames)
        response = GetPartitionsPsWithAuthResponse(partitions=_as_list(shown))
        return response if shown is found else Uncacheable(response)

    def get_partition_names_ps(
        self, call: Call, db_name: str, tbl_name: str, part_vals: list[str], max_parts: int
    ) -> NameList:
        return self._reads.names_by_partial_values(table_shown(call, db_name, tbl_name), part_vals, max_parts)

    def get_partition_names_ps_req(self, call: Call, req: GetPartitionNamesPsRequest) -> GetPartitionNamesPsResponse:
        req = required(req, "req")
        table, limit = table_shown(call, req.dbName, req.tblName, req.catName), _limit(req.maxParts)
        if req.partValues is None:
            return GetPartitionNamesPsResponse(names=names_of(self._reads.names(table, limit)))
        found = self._reads.names_by_partial_values(table, req.partValues, limit)
        return GetPartitionNamesPsResponse(names=names_of(found))

    def get_partitions_by_filter(
        self, call: Call, db_name: str, tbl_name: str, filter: str, max_parts: int
    ) -> PartitionList:
        return self._reads.list_by_filter(table_shown(call, db_name, tbl_name), filter, max_parts)

    def get_partitions_by_filter_req(self, call: Call, req: GetPartitionsByFilterRequest) -> PartitionList:
        req = required(req, "req")
        table = table_shown(call, req.dbName, req.tblName, req.catName)
        return self._reads.list_by_filter(table, req.filter, _limit(req.maxParts), _projection(req))

    def get_part_specs_by_filter(
        self, call: Call, db_name: str, tbl_name: str, filter: str, max_parts: int
    ) -> list[PartitionSpec]:
        return self._reads.specs_by_filter(table_shown(call, db_name, tbl_name), filter, max_parts)

    def get_num_partitions_by_filter(self, call: Call, db_name: str, tbl_name: str, filter: str) -> int:
        return self._reads.count_by_filter(table_shown(call, db_name, tbl_name), filter)

    def get_partitions_by_expr(self, call: Call, req: PartitionsByExprRequest) -> PartitionsByExprResult:
        req = required(req, "req")
        table = table_shown(call, req.dbName, req.tblName, req.catName)
        found, is_unsure = self._reads.list_by_expression(table, req.expr, _limit(req.maxParts), _projection(req))
        return PartitionsByExprResult(partitions=_as_list(found), hasUnknownPartitions=is_unsure)

    def get_partitions_spec_by_expr(self, call: Call, req: PartitionsByExprRequest) -> PartitionsSpecByExprResult:
        req = required(req, "req")
        table = table_shown(call, req.dbName, req.tblName, req.catName)
        specs, is_unsure = self._reads.specs_by_expression(table, req.expr, _limit(req.maxParts), _projection(req))
        return PartitionsSpecByExprResult(partitionsSpec=specs, hasUnknownPartitions=is_unsure)

    def get_partition_names_req(self, call: Call, req: PartitionsByExprRequest) -> NameList:
        req = required(req, "req")
        table = table_shown(call, req.dbName, req.tblName, req.catName)
        return self._reads.names_by_expression(table, req.expr, _limit(req.maxParts))

    def get_partitions_by_names(self, call: Call, db_name: str, tbl_name: str, names: list[str]) -> PartitionList:
        return self._reads.list_by_names(table_shown(call, db_name, tbl_name), names)

    def get_partitions_by_names_req(self, call: Call, req: GetPartitionsByNamesRequest) -> GetPartitionsByNamesResult:
        req = required(req, "req")
        table = table_shown(call, req.db_name, req.tbl_name)
        found = self._reads.list_by_names(table, req.names, _projection(req))
        if req.get_col_stats and self._statistics is not None:
            found = self._statistics.with_statistics(table, found, req.engine, req.validWriteIdList)
        return GetPartitionsByNamesResult(partitions=_as_list(found))

    def get_partitions_with_specs(self, call: Call, request: GetPartitionsRequest) -> GetPartitionsResponse:
        request = required(request, "request")
        table = table_shown(call, request.dbName, request.tblName, request.catName)
        _check_fields(request.projectionSpec)
        projection = Projection.of(request.projectionSpec)
        return GetPartitionsResponse(partitionSpec=self._reads.projected_specs(table, request.filterSpec, projection))

    def partition_name_has_valid_characters(self, call: Call, part_vals: list[str], throw_exception: bool) -> bool:
        values = part_vals or []
        if throw_exception:
            self._values.check(values)
        return self._values.are_valid(values)

    def partition_name_to_vals(self, call: Call, part_name: str) -> list[str]:
        return name_to_values(required(part_name, "partition name"))

    def partition_name_to_spec(self, call: Call, part_name: str) -> dict[str, str]:
        return name_to_spec(required(part_name, "partition name"))

    def _authorized_of_both(
        self, table: TableName, found: PartitionList, user: str | None, groups: list[str] | None
    ) -> PartitionList:
        """By partial values Hive shows privileges only to callers that send a user and groups."""
        return found if user is None or groups is None else self._authorized(table, found, user, groups)

    def _authorized(
        self, table: TableName, found: PartitionList, user: str | None, groups: list[str] | None
    ) -> PartitionList:
        """The same list where the table does not ask for privileges. Replies with them are not kept: no event says
        that they changed.
        """
        return found if self._privileges is None else self._privileges.with_privileges(table, found, user, groups)


_ProjectingRequest = (
    PartitionsRequest
    | GetPartitionsPsWithAuthRequest
    | GetPartitionsByFilterRequest
    | PartitionsByExprRequest
    | GetPartitionsByNamesRequest
)


def _limit(max_parts: int | None) -> int:
    return -1 if max_parts is None else max_parts


def _limit_of_2_3(call: Call, max_parts: int) -> int:
    """In 2.3 zero means all, but only where this is asked (semantics §3.9)."""
    return -1 if max_parts == 0 and call.dialect is Dialect.HIVE_2_3 else max_parts


def _projection(request: _ProjectingRequest) -> Projection:
    return Projection(
        include=request.includeParamKeyPattern,
        exclude=request.excludeParamKeyPattern,
        skips_columns=bool(request.skipColumnSchemaForPartition),
    )


def _check_fields(spec: GetProjectionsSpec | None) -> None:
    """Raise MetaException for a field that no partition has."""
    unknown = [name for name in (spec and spec.fieldList) or () if not _is_field(name)]
    if unknown:
        raise MetaException(f"Invalid partition fields in the projection spec[{', '.join(unknown)}]")


def _is_field(name: str) -> bool:
    """True if a dotted name leads through structs, and lists of structs, to a field of a partition."""
    type: Type | None = StructType("Partition")
    for part in name.split(".", _FIELD_DEPTH_MAX):
        type = type.element if isinstance(type, ListType) else type
        fields = STRUCTS[type.name].definition.fields if isinstance(type, StructType) else ()
        type = next((field.type for field in fields if field.name == part), None)
        if type is None:
            return False
    return True


def _as_list(partitions: PartitionList) -> list[Partition]:
    """What the codecs take in place of a list of partitions."""
    return cast(list[Partition], partitions)


# Changing partitions: the IDL's methods in its order, each one call of `catalog.partitions`.


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
