"""Rows of partitions to TJSON and to structs: the row's fragments, joined by its descriptor's template (design D5)."""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from typing import Final, TypeAlias

import msgspec

from hms_gateway.storage.schema.catalog import PARTITIONS
from hms_gateway.storage.sql.fragments import (
    DescriptorContent,
    decode_descriptor,
    decode_map,
    decode_partition_extra,
    decode_texts,
)
from hms_gateway.structs import Partition, StorageDescriptor, Table

# Plain tuples from the driver: no row objects where there may be a million.
PartitionRow: TypeAlias = tuple[str, int | None, str, int, int, str, str | None, str | None]
ROW_COLUMNS: Final = (
    PARTITIONS.c.part_name,
    PARTITIONS.c.descriptor_id,
    PARTITIONS.c.part_values,
    PARTITIONS.c.create_time,
    PARTITIONS.c.last_access_time,
    PARTITIONS.c.parameters,
    PARTITIONS.c.location,
    PARTITIONS.c.extra,
)


class Descriptor(msgspec.Struct, frozen=True):
    """A storage descriptor as partitions share it."""

    descriptor_id: int
    content: DescriptorContent
    base_location: str | None

    def without_columns(self) -> "Descriptor":
        return msgspec.structs.replace(self, content=replace(self.content, columns=None))


def placement(location: str | None, table_location: str | None, name: str) -> tuple[str | None, str | None]:
    """A partition's location as base and what is stored beside the base; `full_location` undoes it."""
    if location is None:
        return None, None
    base = None if table_location is None else table_location.rstrip("/")
    if not base or not (location == base or location.startswith(base + "/")):
        return None, location
    below = location[len(base) :]
    if below == "/" + name and _is_plain_json(name):
        return base, None
    return base, below


def full_location(base: str | None, below: str | None, name: str) -> str | None:
    """Where a partition lies."""
    if base is None:
        return below
    return f"{base}/{name}" if below is None else base + below


class TjsonRows:
    """Encodes rows of one table. The name needs no escaping: `placement` escapes it where it is part of a location."""

    def __init__(self, table: Table) -> None:
        names = f'"2":{{"str":{_json(table.dbName or "")}}},"3":{{"str":{_json(table.tableName or "")}}}'
        catalog = f',"9":{{"str":{_json(table.catName)}}}' if table.catName else ""
        self._after_values = f'}},{names}{catalog},"4":{{"i32":'
        self._templates: dict[int | None, _Template] = {None: _Template("", "", "", "")}

    def learn(self, descriptors: Iterable[Descriptor]) -> None:
        """Make templates of the descriptors that the next rows use."""
        for descriptor in descriptors:
            self._templates[descriptor.descriptor_id] = _template(descriptor)

    def forget(self) -> None:
        self._templates = {None: self._templates[None]}

    def encode(self, rows: Sequence[PartitionRow]) -> bytes:
        """The partitions as compact TJSON joined by commas."""
        after_values, templates = self._after_values, self._templates
        pieces = []
        for name, descriptor_id, values, create_time, last_access_time, parameters, location, extra in rows:
            template = templates[descriptor_id]
            if location is None:
                descriptor = (
                    f'{template.before_name}{name}"{template.after}' if template.before_name else template.whole
                )
            else:
                descriptor = f"{template.before_location}{_json(location)[1:]}{template.after}"
            pieces.append(
                f'{{"1":{{"lst":{values}{after_values}{create_time}}},"5":{{"i32":{last_access_time}}}{descriptor}'
                f',"7":{{"map":{parameters}}}{extra or ""}}}'
            )
        return ",".join(pieces).encode()


class StructRows:
    """Builds structs from rows of one table. Partitions share the columns and the serde of their descriptor."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._descriptors: dict[int | None, tuple[StorageDescriptor, str | None]] = {}

    def learn(self, descriptors: Iterable[Descriptor]) -> None:
        for descriptor in descriptors:
            decoded = decode_descriptor(descriptor.content, None)
            self._descriptors[descriptor.descriptor_id] = decoded, descriptor.base_location

    def forget(self) -> None:
        self._descriptors = {}

    def build(self, rows: Sequence[PartitionRow]) -> list[Partition]:
        return [self._partition(*row) for row in rows]

    def _partition(
        self,
        name: str,
        descriptor_id: int | None,
        values: str,
        create_time: int,
        last_access_time: int,
        parameters: str,
        location: str | None,
        extra: str | None,
    ) -> Partition:
        partition = decode_partition_extra(extra)
        partition.values = decode_texts(values)
        partition.dbName = self._table.dbName
        partition.tableName = self._table.tableName
        partition.catName = self._table.catName
        partition.createTime = create_time
        partition.lastAccessTime = last_access_time
        partition.parameters = decode_map(parameters)
        if descriptor_id is not None:
            shared, base = self._descriptors[descriptor_id]
            partition.sd = copy(shared)
            partition.sd.location = full_location(base, location, name)
        return partition


class _Template(msgspec.Struct, frozen=True):
    """Field 6 in pieces.

    before_name      up to where a name completes the location, inside the quotes; empty when no name does
    before_location  up to and including what a stored location follows, inside the quotes
    after            from the closing quote on
    whole            the field without location
    """

    before_name: str
    before_location: str
    after: str
    whole: str


def _template(descriptor: Descriptor) -> _Template:
    content, base = descriptor.content, descriptor.base_location
    columns = "" if content.columns is None else f'"1":{{"lst":{content.columns}}}'
    rest = "," + content.rest if content.rest else ""
    before = f',"6":{{"rec":{{{columns}{"," if columns else ""}"2":{{"str":"'
    after = f"}}{rest}}}}}"
    whole = f',"6":{{"rec":{{{columns}{rest if columns else rest[1:]}}}}}'
    if base is None:
        return _Template("", before, after, whole)
    escaped = _json(base)[1:-1]
    return _Template(f"{before}{escaped}/", before + escaped, after, whole)


def _json(text: str) -> str:
    return _encoder.encode(text).decode()


def _is_plain_json(text: str) -> bool:
    return len(_json(text)) == len(text) + 2


_encoder = msgspec.json.Encoder()
