"""Storage descriptors of the partitions of one request, which are mostly equal but for their location."""

import copy
from collections.abc import Callable
from typing import Any, Final

import msgspec

from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.checks.table_shape import check_serde, stored_descriptor
from hms_gateway.structs import Partition, StorageDescriptor, Struct

# Takes the place of a location while the text around it is made.
_HOLE: Final = "\0location\0"
_HOLE_JSON: Final = msgspec.json.encode(_HOLE)


class StoredDescriptors:
    """Descriptors as they are stored. Equal ones share everything but the location, so they must not be changed."""

    def __init__(self) -> None:
        self._given: StorageDescriptor | None = None
        self._stored = StorageDescriptor()

    def of(self, given: StorageDescriptor) -> StorageDescriptor:
        """With every field that reads return (semantics §3.3); columns that were not sent stay absent (§2.8).

        Raises MetaException for a column without name or type, and without a serde, as for tables.
        """
        placeless = _elsewhere(given, None)
        if placeless != self._given:
            _check(given)
            self._given, self._stored = placeless, stored_descriptor(placeless)
            if given.cols is None:
                self._stored.cols = None
        return _elsewhere(self._stored, given.location)


class PartitionTexts:
    """Partitions as TJSON, for which a descriptor like the one before is not encoded again."""

    def __init__(self, to_tjson: Callable[[Struct], bytes]) -> None:
        self._to_tjson = to_tjson
        self._with_hole: StorageDescriptor | None = None
        self._around: tuple[bytes, bytes] | None = None

    def of(self, partition: Partition) -> str:
        around = self._around_location(partition.sd)
        if around is None or partition.sd is None:
            return self._to_tjson(partition).decode()
        spliced: Any = copy.copy(partition)
        spliced.sd = _Encoded(msgspec.json.encode(partition.sd.location).join(around), partition.sd)
        return self._to_tjson(spliced).decode()

    def _around_location(self, descriptor: StorageDescriptor | None) -> tuple[bytes, bytes] | None:
        """The descriptor's text before and after its location; None when it cannot be found."""
        if descriptor is None or descriptor.location is None:
            return None
        with_hole = _elsewhere(descriptor, _HOLE)
        if with_hole != self._with_hole:
            self._with_hole = with_hole
            parts = self._to_tjson(with_hole).split(_HOLE_JSON)
            self._around = (parts[0], parts[1]) if len(parts) == 2 else None
        return self._around


class _Encoded:
    """A descriptor that is encoded already (`structs.Encoded`)."""

    def __init__(self, text: bytes, descriptor: StorageDescriptor) -> None:
        self._text = text
        self._descriptor = descriptor

    def tjson(self) -> bytes:
        return self._text

    def struct(self) -> StorageDescriptor:
        return self._descriptor


def _check(descriptor: StorageDescriptor) -> None:
    for column in descriptor.cols or ():
        required(column.name, "column name")
        required(column.type, "column type")
    check_serde(descriptor)


def _elsewhere(descriptor: StorageDescriptor, location: str | None) -> StorageDescriptor:
    moved = copy.copy(descriptor)
    moved.location = location
    return moved
