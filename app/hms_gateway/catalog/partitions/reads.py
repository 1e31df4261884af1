"""Methods that read partitions: by name, value, filter and expression (semantics §2.8, §2.9).

Newer requests name the parts of each partition that they want (semantics §10.3).
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, cast

import msgspec

from hms_gateway.catalog.access.grants import with_privileges
from hms_gateway.catalog.arguments import table_shown
from hms_gateway.catalog.partitions.specs import (
    ColumnSkipping,
    ProjectedPartitions,
    Projection,
    check_fields,
    grouped_specs,
    is_grouping,
    list_spec,
)
from hms_gateway.catalog.statistics.aggregation import partition_for
from hms_gateway.catalog.statistics.column_statistics import with_statistics
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.checks.selection import (
    TableName,
    java_list,
    matching_expression,
    matching_filter,
    matching_partial,
    named_values,
    values_name,
)
from hms_gateway.metastore.ports.store import Selection, Snapshot, Store, StoredTable
from hms_gateway.metastore.vocabulary.partition_names import name_to_spec, name_to_values, values_in_name
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.rpc.call import Call, Dialect, Uncacheable
from hms_gateway.rpc.structs import (
    EncodedList,
    GetPartitionNamesPsRequest,
    GetPartitionNamesPsResponse,
    GetPartitionRequest,
    GetPartitionResponse,
    GetPartitionsByFilterRequest,
    GetPartitionsByNamesRequest,
    GetPartitionsByNamesResult,
    GetPartitionsFilterSpec,
    GetPartitionsPsWithAuthRequest,
    GetPartitionsPsWithAuthResponse,
    GetPartitionsRequest,
    GetPartitionsResponse,
    MetaException,
    NoSuchObjectException,
    Partition,
    PartitionFilterMode,
    PartitionsByExprRequest,
    PartitionsByExprResult,
    PartitionSpec,
    PartitionsRequest,
    PartitionsResponse,
    PartitionsSpecByExprResult,
    PartitionValuesRequest,
    PartitionValuesResponse,
    PartitionValuesRow,
    Struct,
)
from hms_gateway.rpc.structs.base import EncodedTexts, items_of
from hms_gateway.runtime.limits import Limits

# Still encoded, or nothing at all.
PartitionList: TypeAlias = EncodedList | list[Partition]
NameList: TypeAlias = EncodedTexts | list[str]

_Select: TypeAlias = Callable[[StoredTable], Selection]
_EVERYTHING: Final = Projection()


class Partitions:
    """Methods in the IDL's order. `max_parts` below zero means all.

    Lists come as they are stored and are read while they are sent; every list is ordered by partition name, in byte
    order. All raise NoSuchObjectException `db.t table not found` and MetaException.
    """

    def __init__(
        self,
        store: Store,
        settings: MetastoreSettings,
        to_tjson: Callable[[Struct], bytes],
        limits: Limits,
    ) -> None:
        self._store = store
        self._request_max = settings.limit_partition_request
        self._to_tjson = to_tjson
        self._limits = limits

    def get_partition(self, call: Call, db_name: str, tbl_name: str, part_vals: list[str]) -> Partition:
        return self._get(table_shown(call, db_name, tbl_name), lambda _: part_vals)

    def get_partition_req(self, call: Call, req: GetPartitionRequest) -> GetPartitionResponse:
        """The partition as a reader with the list of write ids is to see it."""
        req = required(req, "req")
        table = table_shown(call, req.dbName, req.tblName, req.catName)
        return GetPartitionResponse(partition=self._get(table, lambda _: req.partVals, req.validWriteIdList))

    def get_partition_with_auth(
        self, call: Call, db_name: str, tbl_name: str, part_vals: list[str], user_name: str, group_names: list[str]
    ) -> Partition | Uncacheable[Partition]:
        table = table_shown(call, db_name, tbl_name)
        found = [self._get(table, lambda _: part_vals)]
        shown = with_privileges(self._store, table, found, user_name, group_names)
        return found[0] if shown is found else Uncacheable(items_of(shown)[0])

    def get_partition_by_name(self, call: Call, db_name: str, tbl_name: str, part_name: str) -> Partition:
        """The partition a client names, with its keys in any order (semantics §2.13)."""
        return self._get(table_shown(call, db_name, tbl_name), lambda table: named_values(table, part_name))

    def get_partitions(self, call: Call, db_name: str, tbl_name: str, max_parts: int) -> PartitionList:
        return self._list(table_shown(call, db_name, tbl_name), max_parts, _all)

    def get_partitions_req(self, call: Call, req: PartitionsRequest) -> PartitionsResponse:
        req = required(req, "req")
        table = table_shown(call, req.dbName, req.tblName, req.catName)
        found = self._list(table, _limit(req.maxParts), _all, _projection(req))
        return PartitionsResponse(partitions=_as_list(found))

    def get_partitions_with_auth(
        self, call: Call, db_name: str, tbl_name: str, max_parts: int, user_name: str, group_names: list[str]
    ) -> PartitionList | Uncacheable[PartitionList]:
        table, limit = table_shown(call, db_name, tbl_name), _limit_of_2_3(call, max_parts)
        found = self._list(table, limit, _all)
        shown = with_privileges(self._store, table, found, user_name, group_names)
        return found if shown is found else Uncacheable(shown)

    def get_partitions_pspec(self, call: Call, db_name: str, tbl_name: str, max_parts: int) -> list[PartitionSpec]:
        """The first partitions as specs (semantics §4.7)."""
        return self._specs(table_shown(call, db_name, tbl_name), max_parts, _all)

    def get_partition_names(self, call: Call, db_name: str, tbl_name: str, max_parts: int) -> NameList:
        return self._names(table_shown(call, db_name, tbl_name), _limit_of_2_3(call, max_parts), _all)

    def fetch_partition_names_req(self, call: Call, partitionReq: PartitionsRequest) -> NameList:
        req = required(partitionReq, "partitionReq")
        return self._names(table_shown(call, req.dbName, req.tblName, req.catName), _limit(req.maxParts), _all)

    def get_partition_values(self, call: Call, request: PartitionValuesRequest) -> PartitionValuesResponse:
        """The values of some keys of all partitions, still escaped as in partition names (semantics §2.9)."""
        request = required(request, "request")
        name = table_shown(call, request.dbName, request.tblName, request.catName)
        if not request.partitionKeys:
            raise MetaException("partitionKeys is empty; name at least one partition key")

        def work(snapshot: Snapshot) -> list[list[str]]:
            table = name.find(snapshot)
            if table is None:
                raise MetaException(f"Error retrieving partition values: {name} table not found")
            names = snapshot.partition_names(table, matching_filter(table, request.filter, self._limits))
            return _value_rows(table, request, names)

        return PartitionValuesResponse(partitionValues=[PartitionValuesRow(row) for row in self._store.read(work)])

    def get_partitions_ps(
        self, call: Call, db_name: str, tbl_name: str, part_vals: list[str], max_parts: int
    ) -> PartitionList:
        """The first partitions with these leading values, `""` for any (semantics §4.6)."""
        table = table_shown(call, db_name, tbl_name)
        return self._list(table, max_parts, _by_partial_values(part_vals), is_limited=False)

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
        found = self._list(table, max_parts, _by_partial_values(part_vals), is_limited=False)
        shown = self._authorized_of_both(table, found, user_name, group_names)
        return found if shown is found else Uncacheable(shown)

    def get_partitions_ps_with_auth_req(
        self, call: Call, req: GetPartitionsPsWithAuthRequest
    ) -> GetPartitionsPsWithAuthResponse | Uncacheable[GetPartitionsPsWithAuthResponse]:
        req = required(req, "req")
        table, limit = table_shown(call, req.dbName, req.tblName, req.catName), _limit(req.maxParts)
        projection = _projection(req)
        if req.partNames is not None:
            found = self._list_named(table, req.partNames, projection)
        else:
            select = _all if req.partVals is None else _by_partial_values(req.partVals)
            found = self._list(table, limit, select, projection)
        shown = self._authorized_of_both(table, found, req.userName, req.groupNames)
        response = GetPartitionsPsWithAuthResponse(partitions=_as_list(shown))
        return response if shown is found else Uncacheable(response)

    def get_partition_names_ps(
        self, call: Call, db_name: str, tbl_name: str, part_vals: list[str], max_parts: int
    ) -> NameList:
        return self._names(table_shown(call, db_name, tbl_name), max_parts, _by_partial_values(part_vals))

    def get_partition_names_ps_req(self, call: Call, req: GetPartitionNamesPsRequest) -> GetPartitionNamesPsResponse:
        req = required(req, "req")
        table = table_shown(call, req.dbName, req.tblName, req.catName)
        select = _all if req.partValues is None else _by_partial_values(req.partValues)
        return GetPartitionNamesPsResponse(names=items_of(self._names(table, _limit(req.maxParts), select)))

    def get_partitions_by_filter(
        self, call: Call, db_name: str, tbl_name: str, filter: str, max_parts: int
    ) -> PartitionList:
        """The first partitions that a filter selects (semantics §4.1)."""
        return self._list(table_shown(call, db_name, tbl_name), max_parts, self._by_filter(filter))

    def get_partitions_by_filter_req(self, call: Call, req: GetPartitionsByFilterRequest) -> PartitionList:
        req = required(req, "req")
        table = table_shown(call, req.dbName, req.tblName, req.catName)
        return self._list(table, _limit(req.maxParts), self._by_filter(req.filter), _projection(req))

    def get_part_specs_by_filter(
        self, call: Call, db_name: str, tbl_name: str, filter: str, max_parts: int
    ) -> list[PartitionSpec]:
        return self._specs(table_shown(call, db_name, tbl_name), max_parts, self._by_filter(filter))

    def get_num_partitions_by_filter(self, call: Call, db_name: str, tbl_name: str, filter: str) -> int:
        """The number of partitions a filter selects; the text for a missing table is its own (semantics §4.3)."""
        name = table_shown(call, db_name, tbl_name)

        def work(snapshot: Snapshot) -> int:
            table = name.find(snapshot)
            if table is None:
                raise NoSuchObjectException(f"Specified database/table does not exist : {name}")
            return snapshot.count_partitions(table, matching_filter(table, filter, self._limits))

        return self._store.read(work)

    def get_partitions_by_expr(self, call: Call, req: PartitionsByExprRequest) -> PartitionsByExprResult:
        req = required(req, "req")
        table, answer = table_shown(call, req.dbName, req.tblName, req.catName), _Unsure(req.expr, self._limits)
        found = self._list(table, _limit(req.maxParts), answer.select, _projection(req))
        return PartitionsByExprResult(partitions=_as_list(found), hasUnknownPartitions=answer.is_unsure)

    def get_partitions_spec_by_expr(self, call: Call, req: PartitionsByExprRequest) -> PartitionsSpecByExprResult:
        req = required(req, "req")
        table, answer = table_shown(call, req.dbName, req.tblName, req.catName), _Unsure(req.expr, self._limits)
        specs = self._specs(table, _limit(req.maxParts), answer.select, _projection(req))
        return PartitionsSpecByExprResult(partitionsSpec=specs, hasUnknownPartitions=answer.is_unsure)

    def get_partition_names_req(self, call: Call, req: PartitionsByExprRequest) -> NameList:
        req = required(req, "req")
        table = table_shown(call, req.dbName, req.tblName, req.catName)
        return self._names(table, _limit(req.maxParts), _Unsure(req.expr, self._limits).select)

    def get_partitions_by_names(self, call: Call, db_name: str, tbl_name: str, names: list[str]) -> PartitionList:
        """The partitions with these exact names; unknown names are left out."""
        return self._list_named(table_shown(call, db_name, tbl_name), names)

    def get_partitions_by_names_req(self, call: Call, req: GetPartitionsByNamesRequest) -> GetPartitionsByNamesResult:
        req = required(req, "req")
        table = table_shown(call, req.db_name, req.tbl_name)
        found = self._list_named(table, req.names, _projection(req))
        if req.get_col_stats:
            found = with_statistics(self._store, table, found, req.engine, req.validWriteIdList)
        return GetPartitionsByNamesResult(partitions=_as_list(found))

    def get_partitions_with_specs(self, call: Call, request: GetPartitionsRequest) -> GetPartitionsResponse:
        """Parts of the partitions that meet all conditions, as specs (semantics §10.3)."""
        request = required(request, "request")
        name = table_shown(call, request.dbName, request.tblName, request.catName)
        check_fields(request.projectionSpec)

        def select(table: StoredTable) -> Selection:
            return _matching_conditions(table, request.filterSpec, self._limits)

        return GetPartitionsResponse(self._specs(name, -1, select, Projection.of(request.projectionSpec)))

    def partition_name_has_valid_characters(self, call: Call, part_vals: list[str], throw_exception: bool) -> bool:
        """Without a whitelist of characters, which Hive has by a setting, every value is valid (semantics §1.1)."""
        return True

    def partition_name_to_vals(self, call: Call, part_name: str) -> list[str]:
        return name_to_values(required(part_name, "partition name"))

    def partition_name_to_spec(self, call: Call, part_name: str) -> dict[str, str]:
        return name_to_spec(required(part_name, "partition name"))

    def _get(
        self,
        table_name: TableName,
        values_of: Callable[[StoredTable], Sequence[str] | None],
        valid_write_ids: str | None = None,
    ) -> Partition:
        """Raises NoSuchObjectException `partition values=[…]`."""

        def work(snapshot: Snapshot) -> Partition:
            table = table_name.load_shown(snapshot)
            values = values_of(table)
            found = snapshot.partition(table, values_name(table, values))
            if found is None:
                raise NoSuchObjectException(f"partition values={java_list(values or ())}")
            return partition_for(table.table, found.partition, valid_write_ids)

        return self._store.read(work)

    def _list(
        self,
        table_name: TableName,
        max_parts: int,
        select: _Select,
        projection: Projection = _EVERYTHING,
        *,
        is_limited: bool = True,
    ) -> PartitionList:
        """By names the limit of requests does not count, nor by partial values before Hive 4."""

        def work(snapshot: Snapshot) -> PartitionList:
            table = table_name.load_shown(snapshot)
            selection = select(table)
            if is_limited:
                self._check_request_limit(snapshot, table, selection, max_parts)
            return _partitions(snapshot, table, selection, max_parts)

        return self._projected(self._store.read(work), projection)

    def _list_named(
        self, table: TableName, names: Sequence[str] | None, projection: Projection = _EVERYTHING
    ) -> PartitionList:
        wanted = required(names, "partition names")
        return self._list(table, -1, lambda _: Selection(names=wanted), projection, is_limited=False)

    def _names(self, table_name: TableName, max_parts: int, select: _Select) -> NameList:
        def work(snapshot: Snapshot) -> NameList:
            table = table_name.load(snapshot)
            selection = select(table)
            return [] if max_parts == 0 else snapshot.partition_name_list(table, _limited(selection, max_parts))

        return self._store.read(work)

    def _specs(
        self, table_name: TableName, max_parts: int, select: _Select, projection: Projection = _EVERYTHING
    ) -> list[PartitionSpec]:
        """One spec with an encoded list, unless the table needs groups, for which all has to be looked at."""

        def work(snapshot: Snapshot) -> tuple[StoredTable, PartitionList]:
            table = table_name.load_shown(snapshot)
            selection = select(table)
            self._check_request_limit(snapshot, table, selection, max_parts)
            if not is_grouping(table.table) or not projection.keeps_everything or max_parts == 0:
                return table, _partitions(snapshot, table, selection, max_parts)
            return table, [one.partition for one in snapshot.partitions(table, _limited(selection, max_parts))]

        table, found = self._store.read(work)
        if is_grouping(table.table) and isinstance(found, list) and projection.keeps_everything:
            return grouped_specs(table.table, found)
        return [list_spec(table.table, self._projected(found, projection))]

    def _by_filter(self, text: str | None) -> _Select:
        return lambda table: matching_filter(table, text, self._limits)

    def _authorized_of_both(
        self, table: TableName, found: PartitionList, user: str | None, groups: list[str] | None
    ) -> PartitionList:
        """By partial values Hive shows privileges only to callers that send a user and groups."""
        if user is None or groups is None:
            return found
        return with_privileges(self._store, table, found, user, groups)

    def _projected(self, partitions: PartitionList, projection: Projection) -> PartitionList:
        if projection.keeps_everything or isinstance(partitions, list):
            return partitions
        if projection.only_skips_columns and isinstance(partitions, ColumnSkipping):
            return partitions.without_columns()
        return ProjectedPartitions(partitions, projection, self._to_tjson)

    def _check_request_limit(
        self, snapshot: Snapshot, table: StoredTable, selection: Selection, max_parts: int
    ) -> None:
        """Raise MetaException when more partitions are asked for than one call may have (semantics §2.9.1).

        As in Hive 4; Hive 2.3 does not look at specs.
        """
        limit = self._request_max
        if limit < 0:
            return
        requested = max_parts if max_parts >= 0 else snapshot.count_partitions(table, selection)
        if requested > limit:
            raise MetaException(
                f"Number of partitions scanned (={requested}) on table '{table.table.tableName}' exceeds limit"
                f" (={limit}). This is controlled on the metastore server by hive.metastore.limit.partition.request."
            )


class _Unsure:
    """A selection by expression, which remembers if it may hold too much.

    The text of a filter and what can be read of Hive's own expressions is evaluated (semantics §4.5). Otherwise all
    partitions are the safe answer, and the caller has to look for itself.
    """

    def __init__(self, expression: bytes | None, limits: Limits) -> None:
        self._expression = expression
        self._limits = limits
        self.is_unsure = True

    def select(self, table: StoredTable) -> Selection:
        selection, is_exact = matching_expression(table, self._expression, self._limits)
        self.is_unsure = not is_exact
        return selection


def _all(_: StoredTable) -> Selection:
    return Selection()


def _by_partial_values(values: Sequence[str] | None) -> _Select:
    return lambda table: matching_partial(table, values)


def _partitions(snapshot: Snapshot, table: StoredTable, selection: Selection, max_parts: int) -> PartitionList:
    return [] if max_parts == 0 else snapshot.partition_list(table, _limited(selection, max_parts))


def _limited(selection: Selection, max_parts: int) -> Selection:
    return selection if max_parts < 0 else msgspec.structs.replace(selection, limit=max_parts)


def _matching_conditions(table: StoredTable, conditions: GetPartitionsFilterSpec | None, limits: Limits) -> Selection:
    if conditions is None or conditions.filterMode is None:
        return Selection()
    if not conditions.filters:
        raise MetaException("Invalid filter expressions in the filter spec")
    given = conditions.filters
    match conditions.filterMode:
        case PartitionFilterMode.BY_NAMES:
            return Selection(names=given)
        case PartitionFilterMode.BY_VALUES:
            return matching_partial(table, given)
        case PartitionFilterMode.BY_EXPR:
            return matching_filter(table, " and ".join(f"({text})" for text in given), limits)
        case _:
            raise MetaException(f"No such partition filter mode: {conditions.filterMode}")


def _value_rows(table: StoredTable, request: PartitionValuesRequest, names: Sequence[str]) -> list[list[str]]:
    """The rows of get_partition_values: distinct, ordered by the keys asked for, at most `maxParts`."""
    wanted = _positions(table, [key.name for key in request.partitionKeys or ()])
    order = _positions(table, [key.name for key in request.partitionOrder or ()])
    rows = [values_in_name(name) for name in names]
    if order:
        rows.sort(key=lambda row: [row[position] for position in order])
    if request.ascending is False:
        rows.reverse()
    chosen = [[row[position] for position in wanted] for row in rows]
    if request.applyDistinct is not False:
        chosen = [list(row) for row in dict.fromkeys(map(tuple, chosen))]
    return chosen if request.maxParts is None or request.maxParts < 0 else chosen[: request.maxParts]


def _positions(table: StoredTable, keys: Sequence[str | None]) -> list[int]:
    known = {key.lower(): position for position, key in enumerate(table.key_names)}
    unknown = next((required(key, "partition key") for key in keys if (key or "").lower() not in known), None)
    if unknown is not None:
        raise MetaException(f"Error retrieving partition values: {unknown} is not a partition key of the table")
    return [known[(key or "").lower()] for key in keys]


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


def _as_list(partitions: PartitionList) -> list[Partition]:
    """A value that the codecs take in place of a list of partitions."""
    return cast(list[Partition], partitions)
