"""PartitionSpec: partitions as one list, or grouped by the storage descriptor they share (semantics §4.7)."""

import copy
from collections.abc import Iterator, Sequence
from typing import Final, cast

from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.vocabulary.locations import LocationError, join, parse_location, relative_part
from hms_gateway.rpc.structs import (
    EncodedList,
    MetaException,
    Partition,
    PartitionListComposingSpec,
    PartitionSpec,
    PartitionSpecWithSharedSD,
    PartitionWithoutSD,
    StorageDescriptor,
    Table,
)

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
