"""Reading partitions: by name, value, filter and expression (semantics §2.8, §2.9).

Newer requests name the parts of each partition that they want (semantics §10.3).
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

import msgspec

from hms_gateway.catalog.partitions.specs import grouped_specs, is_grouping, list_spec
from hms_gateway.catalog.statistics.aggregation import partition_for
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
from hms_gateway.metastore.vocabulary.partition_names import values_in_name
from hms_gateway.metastore.vocabulary.patterns import Pattern, parse_sql_like
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.rpc.structs import (
    EncodedList,
    GetPartitionsFilterSpec,
    GetProjectionsSpec,
    MetaException,
    NoSuchObjectException,
    Partition,
    PartitionFilterMode,
    PartitionSpec,
    PartitionValuesRequest,
    Struct,
)
from hms_gateway.rpc.structs.base import EncodedTexts
from hms_gateway.runtime.limits import Limits

AnyStruct = TypeVar("AnyStruct", bound=Struct)

# No field of a partition lies deeper; a name could have millions of parts.
_DEPTH_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class Projection:
    """Parts of a partition to keep.

    fields             dotted names (`values`, `sd.location`); None or empty keeps every field
    include, exclude   patterns with `%` and `_` for the keys of `parameters`; None and "" keep all
    skips_columns      leave out the columns of the storage descriptor
    """

    fields: tuple[str, ...] = ()
    include: str | None = None
    exclude: str | None = None
    skips_columns: bool = False
    _tree: "_Tree" = field(init=False, repr=False, compare=False)
    _included: Pattern | None = field(init=False, repr=False, compare=False)
    _excluded: Pattern | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Once, and not for every partition.
        object.__setattr__(self, "_tree", _tree(self.fields))
        object.__setattr__(self, "_included", parse_sql_like(self.include) if self.include else None)
        object.__setattr__(self, "_excluded", parse_sql_like(self.exclude) if self.exclude else None)

    @staticmethod
    def of(spec: GetProjectionsSpec | None) -> "Projection":
        if spec is None:
            return Projection()
        return Projection(tuple(spec.fieldList or ()), spec.includeParamKeyPattern, spec.excludeParamKeyPattern)

    @property
    def keeps_everything(self) -> bool:
        return not (self.fields or self.include or self.exclude or self.skips_columns)

    @property
    def only_skips_columns(self) -> bool:
        return self.skips_columns and not (self.fields or self.include or self.exclude)

    def apply(self, partition: Partition) -> Partition:
        """A copy of `partition` with only what is asked for."""
        kept = _only(partition, self._tree) if self.fields else copy.copy(partition)
        if kept.parameters:
            kept.parameters = {key: value for key, value in kept.parameters.items() if self._keeps_parameter(key)}
        if self.skips_columns and kept.sd is not None:
            kept.sd = copy.copy(kept.sd)
            kept.sd.cols = None
        return kept

    def _keeps_parameter(self, key: str) -> bool:
        if self._included is not None and not self._included.matches(key):
            return False
        return self._excluded is None or not self._excluded.matches(key)


@runtime_checkable
class ColumnSkipping(Protocol):
    """An EncodedList of partitions that can leave out the columns by itself, without making objects of them."""

    def without_columns(self) -> EncodedList: ...


class ProjectedPartitions:
    """An EncodedList of partitions, each reduced by a projection while it is read."""

    def __init__(self, source: EncodedList, projection: Projection, to_tjson: Callable[[Struct], bytes]) -> None:
        self._source = source
        self._projection = projection
        self._to_tjson = to_tjson

    def __len__(self) -> int:
        return len(self._source)

    def tjson_chunks(self) -> Iterator[bytes]:
        for chunk in self.struct_chunks():
            yield b",".join(map(self._to_tjson, chunk))

    def struct_chunks(self) -> Iterator[list[Struct]]:
        for chunk in self._source.struct_chunks():
            yield [self._projection.apply(cast(Partition, partition)) for partition in chunk]

    def close(self) -> None:
        self._source.close()


class _Tree(dict[str, "_Tree"]):
    """Field names to the names wanted below them; nothing below means all of it."""


def _tree(names: Sequence[str]) -> _Tree:
    root = _Tree()
    for name in names:
        node = root
        for part in name.split(".", _DEPTH_MAX)[:_DEPTH_MAX]:
            node = node.setdefault(part, _Tree())
    return root


def _only(struct: AnyStruct, wanted: _Tree) -> AnyStruct:
    kept = type(struct)()
    for name, below in wanted.items():
        value = getattr(struct, name, None)
        if isinstance(value, Struct) and below:
            value = _only(value, below)
        if name in struct.__struct_fields__:
            setattr(kept, name, value)
    return kept


# Still encoded, or nothing at all.
PartitionList: TypeAlias = EncodedList | list[Partition]
NameList: TypeAlias = EncodedTexts | list[str]

ALL: Final = Projection()


class PartitionReads:
    """Every call that reads partitions.

    Lists come as they are stored and are read while they are sent. A `max_parts` below zero means all; every list is
    ordered by partition name, in byte order. All raise NoSuchObjectException `db.t table not found` and MetaException.
    """

    def __init__(
        self, store: Store, settings: MetastoreSettings, to_tjson: Callable[[Struct], bytes], limits: Limits
    ) -> None:
        self._store = store
        self._settings = settings
        self._to_tjson = to_tjson
        self._limits = limits

    def get(self, table_name: TableName, values: Sequence[str] | None, valid_write_ids: str | None = None) -> Partition:
        """The partition with these values, as a reader with that list is to see it.

        Raises NoSuchObjectException `partition values=[…]`.
        """
        return self._get(table_name, lambda _: values, valid_write_ids)

    def get_by_name(self, table_name: TableName, name: str | None) -> Partition:
        """The partition a client names, with its keys in any order (semantics §2.13)."""
        return self._get(table_name, lambda table: named_values(table, name))

    def list_all(self, table_name: TableName, max_parts: int, projection: Projection = ALL) -> PartitionList:
        """The first partitions of the table."""
        return self._list(table_name, max_parts, lambda _: Selection(), projection)

    def list_by_filter(
        self, table_name: TableName, filter_text: str | None, max_parts: int, projection: Projection = ALL
    ) -> PartitionList:
        """The first partitions that a filter selects (semantics §4.1)."""
        limits = self._limits
        return self._list(table_name, max_parts, lambda table: matching_filter(table, filter_text, limits), projection)

    def list_by_partial_values(
        self,
        table_name: TableName,
        values: Sequence[str] | None,
        max_parts: int,
        projection: Projection = ALL,
        *,
        is_limited: bool = False,
    ) -> PartitionList:
        """The first partitions with these leading values, `""` for any (semantics §4.6).

        The limit of requests does not count before Hive 4, whose calls are `is_limited`.
        """

        def select(table: StoredTable) -> Selection:
            return matching_partial(table, values)

        return self._list(table_name, max_parts, select, projection, is_limited=is_limited)

    def list_by_names(
        self, table_name: TableName, names: Sequence[str] | None, projection: Projection = ALL
    ) -> PartitionList:
        """The partitions with these exact names; unknown names are left out."""
        wanted = required(names, "partition names")
        return self._list(table_name, -1, lambda _: Selection(names=wanted), projection, is_limited=False)

    def list_by_expression(
        self, table_name: TableName, expression: bytes | None, max_parts: int, projection: Projection = ALL
    ) -> tuple[PartitionList, bool]:
        """Partitions an expression may select, and whether some of them might not match (semantics §4.5).

        The text of a filter and what can be read of Hive's own expressions is evaluated. Otherwise all partitions are
        the safe answer, and the flag means that the caller has to look for itself.
        """
        answer = _Unsure(self._limits)
        found = self._list(table_name, max_parts, answer.selecting(expression), projection)
        return found, answer.is_unsure

    def names(self, table_name: TableName, max_parts: int) -> NameList:
        """The names of the first partitions."""
        return self._names(table_name, max_parts, lambda _: Selection())

    def names_by_partial_values(self, table_name: TableName, values: Sequence[str] | None, max_parts: int) -> NameList:
        """The names of the first partitions with these leading values, `""` for any."""
        return self._names(table_name, max_parts, lambda table: matching_partial(table, values))

    def names_by_expression(self, table_name: TableName, expression: bytes | None, max_parts: int) -> NameList:
        """The names of the partitions that `list_by_expression` gives."""
        return self._names(table_name, max_parts, lambda table: matching_expression(table, expression, self._limits)[0])

    def count_by_filter(self, table_name: TableName, filter_text: str | None) -> int:
        """How many partitions a filter selects; the text for a missing table is its own (semantics §4.3)."""

        def work(snapshot: Snapshot) -> int:
            table = table_name.find(snapshot)
            if table is None:
                raise NoSuchObjectException(f"Specified database/table does not exist : {table_name}")
            return snapshot.count_partitions(table, matching_filter(table, filter_text, self._limits))

        return self._store.read(work)

    def values(self, table_name: TableName, request: PartitionValuesRequest) -> list[list[str]]:
        """The values of some keys of all partitions, still escaped as in partition names (semantics §2.9).

        Raises MetaException, also when no key is named.
        """
        if not request.partitionKeys:
            raise MetaException("partitionKeys is empty; name at least one partition key")

        def work(snapshot: Snapshot) -> list[list[str]]:
            table = table_name.find(snapshot)
            if table is None:
                raise MetaException(f"Error retrieving partition values: {table_name} table not found")
            names = snapshot.partition_names(table, matching_filter(table, request.filter, self._limits))
            return _value_rows(table, request, names)

        return self._store.read(work)

    def specs(self, table_name: TableName, max_parts: int) -> list[PartitionSpec]:
        """The first partitions as specs (semantics §4.7)."""
        return self._specs(table_name, max_parts, lambda _: Selection(), ALL)

    def specs_by_filter(self, table_name: TableName, filter_text: str | None, max_parts: int) -> list[PartitionSpec]:
        """The first partitions that a filter selects, as specs."""
        return self._specs(table_name, max_parts, lambda table: matching_filter(table, filter_text, self._limits), ALL)

    def specs_by_expression(
        self, table_name: TableName, expression: bytes | None, max_parts: int, projection: Projection = ALL
    ) -> tuple[list[PartitionSpec], bool]:
        """`list_by_expression` as specs."""
        answer = _Unsure(self._limits)
        specs = self._specs(table_name, max_parts, answer.selecting(expression), projection)
        return specs, answer.is_unsure

    def projected_specs(
        self, table_name: TableName, conditions: GetPartitionsFilterSpec | None, projection: Projection
    ) -> list[PartitionSpec]:
        """Parts of the partitions that meet all conditions, as specs (semantics §10.3)."""
        return self._specs(
            table_name, -1, lambda table: _matching_conditions(table, conditions, self._limits), projection
        )

    def _get(
        self,
        table_name: TableName,
        values_of: Callable[[StoredTable], Sequence[str] | None],
        valid_write_ids: str | None = None,
    ) -> Partition:
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
        select: Callable[[StoredTable], Selection],
        projection: Projection,
        *,
        is_limited: bool = True,
    ) -> PartitionList:
        def work(snapshot: Snapshot) -> PartitionList:
            table = table_name.load_shown(snapshot)
            selection = select(table)
            if is_limited:
                self._check_request_limit(snapshot, table, selection, max_parts)
            return _partitions(snapshot, table, selection, max_parts)

        return self._projected(self._store.read(work), projection)

    def _names(self, table_name: TableName, max_parts: int, select: Callable[[StoredTable], Selection]) -> NameList:
        def work(snapshot: Snapshot) -> NameList:
            table = table_name.load(snapshot)
            selection = select(table)
            return [] if max_parts == 0 else snapshot.partition_name_list(table, _limited(selection, max_parts))

        return self._store.read(work)

    def _specs(
        self,
        table_name: TableName,
        max_parts: int,
        select: Callable[[StoredTable], Selection],
        projection: Projection,
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
        limit = self._settings.limit_partition_request
        if limit < 0:
            return
        requested = max_parts if max_parts >= 0 else snapshot.count_partitions(table, selection)
        if requested > limit:
            raise MetaException(
                f"Number of partitions scanned (={requested}) on table '{table.table.tableName}' exceeds limit"
                f" (={limit}). This is controlled on the metastore server by hive.metastore.limit.partition.request."
            )


class _Unsure:
    """Remembers of a selection by expression whether it may hold too much."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.is_unsure = True

    def selecting(self, expression: bytes | None) -> Callable[[StoredTable], Selection]:
        def select(table: StoredTable) -> Selection:
            selection, is_exact = matching_expression(table, expression, self._limits)
            self.is_unsure = not is_exact
            return selection

        return select


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
