"""Shapes in which partitions are answered: specs (semantics §4.7), and only the parts asked for (semantics §10.3).

A PartitionSpec is one list of partitions, or a group of those that share a storage descriptor.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar, cast, runtime_checkable

from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.vocabulary.locations import LocationError, join, parse_location, relative_part
from hms_gateway.metastore.vocabulary.patterns import Pattern, parse_sql_like
from hms_gateway.rpc.idl import ListType, StructType, Type
from hms_gateway.rpc.structs import (
    STRUCTS,
    EncodedList,
    GetProjectionsSpec,
    MetaException,
    Partition,
    PartitionListComposingSpec,
    PartitionSpec,
    PartitionSpecWithSharedSD,
    PartitionWithoutSD,
    StorageDescriptor,
    Struct,
    Table,
)

AnyStruct = TypeVar("AnyStruct", bound=Struct)

_GROUPING: Final = "hive.hcatalog.partition.spec.grouping.enabled"


def is_grouping(table: Table) -> bool:
    """Whether the table asks for its partitions to be grouped by storage descriptor."""
    return (table.parameters or {}).get(_GROUPING, "").lower() == "true"


def list_spec(table: Table, partitions: EncodedList | Sequence[Partition]) -> PartitionSpec:
    """One spec with all of `partitions`, which may still be encoded."""
    return _spec_of_list(table, _root(table), partitions)


def grouped_specs(table: Table, partitions: Sequence[Partition]) -> list[PartitionSpec]:
    """One spec for each descriptor shared by partitions below the table's directory, one list for all the others."""
    root = _root(table)
    groups: dict[object, list[Partition]] = {}
    outside: list[Partition] = []
    for partition in partitions:
        if root is not None and partition.sd is not None and _relative(root, partition.sd) is not None:
            groups.setdefault(_descriptor_key(partition.sd), []).append(partition)
        else:
            outside.append(partition)
    specs = [_shared_spec(table, root or "", group) for group in groups.values()]
    if outside or not specs:
        specs.append(_spec_of_list(table, None, outside))
    return specs


def partitions_of(specs: Sequence[PartitionSpec] | None) -> list[Partition]:
    """The partitions that specs sent by a client describe, ready to be added.

    Only the first spec's names count, as in Hive. Raises MetaException for specs that lack what they need.
    """
    given = required(specs, "partition specs")
    if not given:
        return []
    first = required(given[0], "partition spec")
    return [
        partition
        for spec in given
        for partition in _spec_partitions(required(spec, "partition spec"), first.dbName, first.tableName)
    ]


def _spec_of_list(table: Table, root: str | None, partitions: EncodedList | Sequence[Partition]) -> PartitionSpec:
    composing = PartitionListComposingSpec(partitions=cast(list[Partition], partitions))
    return PartitionSpec(
        dbName=table.dbName, tableName=table.tableName, rootPath=root, catName=table.catName, partitionList=composing
    )


def _root(table: Table) -> str | None:
    return None if table.sd is None else table.sd.location


def _relative(root: str, descriptor: StorageDescriptor) -> str | None:
    return None if descriptor.location is None else relative_part(root, descriptor.location)


def _descriptor_key(descriptor: StorageDescriptor) -> object:
    columns = tuple((column.name, column.type, column.comment) for column in descriptor.cols or ())
    serde = descriptor.serdeInfo.serializationLib if descriptor.serdeInfo else None
    return descriptor.inputFormat, descriptor.outputFormat, serde, columns


def _shared_spec(table: Table, root: str, partitions: Sequence[Partition]) -> PartitionSpec:
    descriptor = copy.copy(required(partitions[0].sd, "storage descriptor"))
    descriptor.location = root
    shared = PartitionSpecWithSharedSD(
        partitions=[
            PartitionWithoutSD(
                values=partition.values,
                createTime=partition.createTime,
                lastAccessTime=partition.lastAccessTime,
                relativePath=_relative(root, partition.sd) if partition.sd else None,
                parameters=partition.parameters,
            )
            for partition in partitions
        ],
        sd=descriptor,
    )
    return PartitionSpec(
        dbName=table.dbName,
        tableName=table.tableName,
        rootPath=root,
        catName=table.catName,
        sharedSDPartitionSpec=shared,
    )


def _spec_partitions(spec: PartitionSpec, db_name: str | None, tbl_name: str | None) -> Iterator[Partition]:
    # A client may set both, although the IDL has them as alternatives: the list counts, as in Hive.
    if spec.partitionList is not None:
        yield from required(spec.partitionList.partitions, "partitions of the partition spec")
    elif spec.sharedSDPartitionSpec is not None:
        yield from _with_shared_descriptor(spec.sharedSDPartitionSpec, db_name, tbl_name)
    else:
        raise MetaException("A partition spec must hold a partition list or a shared storage descriptor")


def _with_shared_descriptor(
    shared: PartitionSpecWithSharedSD, db_name: str | None, tbl_name: str | None
) -> Iterator[Partition]:
    for bare in required(shared.partitions, "partitions of the partition spec"):
        descriptor = copy.copy(required(shared.sd, "storage descriptor"))
        descriptor.location = _location(descriptor.location, bare.relativePath)
        yield Partition(
            values=bare.values,
            dbName=db_name,
            tableName=tbl_name,
            createTime=bare.createTime,
            lastAccessTime=bare.lastAccessTime,
            sd=descriptor,
            parameters=bare.parameters,
            privileges=bare.privileges,
        )


def _location(shared: str | None, relative_path: str | None) -> str | None:
    """None is the default location. A path is relative to the root of the disk only where `shared` names it."""
    location = required(shared, "location of the shared storage descriptor")
    path = None if relative_path is None else relative_path.lstrip("/")
    if not path:
        return None if path is None else location
    if not _names_a_place(location):
        raise MetaException(
            f"Partition spec with relativePath {relative_path} has no location that it is relative to;"
            " set the location of the shared storage descriptor"
        )
    return join(location, path)


def _names_a_place(location: str) -> bool:
    try:
        parsed = parse_location(location)
    except LocationError as error:
        raise MetaException(str(error)) from error
    return bool(parsed.authority or parsed.path)


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


def check_fields(spec: GetProjectionsSpec | None) -> None:
    """Raise MetaException for a field that no partition has."""
    unknown = [name for name in (spec and spec.fieldList) or () if not _is_field(name)]
    if unknown:
        raise MetaException(f"Invalid partition fields in the projection spec[{', '.join(unknown)}]")


def _is_field(name: str) -> bool:
    """True if a dotted name leads through structs, and lists of structs, to a field of a partition."""
    type: Type | None = StructType("Partition")
    for part in name.split(".", _DEPTH_MAX):
        type = type.element if isinstance(type, ListType) else type
        fields = STRUCTS[type.name].definition.fields if isinstance(type, StructType) else ()
        type = next((field.type for field in fields if field.name == part), None)
        if type is None:
            return False
    return True
