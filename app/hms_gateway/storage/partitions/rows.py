"""Partitions as rows: the fragments of a row joined by its descriptor's template to TJSON and structs (design D5); the
storage descriptors that partitions share, found by content, counted, gone with their last partition (design D6).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec
from sqlalchemy import Select, and_, bindparam, func, select, update

from hms_gateway.metastore.ports.store import PartitionId, StoredPartition, StoredTable, TableId
from hms_gateway.rpc.structs import FieldSchema, Partition, StorageDescriptor, Table
from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.dialects.statements import Statement
from hms_gateway.storage.schema.catalog import DESCRIPTORS, PARTITIONS
from hms_gateway.storage.sql.fragments import (
    DescriptorContent,
    decode_descriptor,
    decode_map,
    decode_partition_extra,
    decode_texts,
    encode_columns,
    encode_descriptor,
)
from hms_gateway.storage.sql.repository import Repository, is_storable

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


# Content, and the location that partitions' own ones are relative to.
DescriptorKey: TypeAlias = tuple[DescriptorContent, str | None]

DESCRIPTOR_COLUMNS: Final = (
    DESCRIPTORS.c.descriptor_id,
    DESCRIPTORS.c.columns,
    DESCRIPTORS.c.rest,
    DESCRIPTORS.c.skew_locations,
    DESCRIPTORS.c.base_location,
)
LAST_DESCRIPTOR: Final = select(func.max(DESCRIPTORS.c.descriptor_id))
_BY_ID: Final = update(DESCRIPTORS).where(DESCRIPTORS.c.descriptor_id == bindparam("the_descriptor"))
ADD_TO_DESCRIPTOR: Final = _BY_ID.values(partition_count=DESCRIPTORS.c.partition_count + bindparam("difference"))
_REPLACE_COLUMNS: Final = _BY_ID.values(columns=bindparam("new_columns"), content_hash=bindparam("new_hash"))


class Descriptors(Repository):
    def load(self, ids: Iterable[int]) -> list[Descriptor]:
        return found_descriptors(self._run_together([descriptors_by_ids(ids, self._dialect)])[0])

    def of_table(self, table_id: TableId) -> list[Descriptor]:
        statement = select(*DESCRIPTOR_COLUMNS).where(DESCRIPTORS.c.table_id == table_id)
        return found_descriptors(self._connection.execute(statement))

    def replace_columns(self, table_id: TableId, columns: Sequence[FieldSchema]) -> None:
        """Give every descriptor of the table these columns."""
        fragment = encode_columns(columns)
        changes = [
            {
                "the_descriptor": descriptor.descriptor_id,
                "new_columns": fragment,
                "new_hash": descriptor.content.with_columns(fragment).content_hash,
            }
            for descriptor in self.of_table(table_id)
        ]
        if changes:
            self._connection.execute(_REPLACE_COLUMNS, changes)


def descriptors_by_ids(ids: Iterable[int], dialect: Dialect) -> Statement:
    """Rows of DESCRIPTOR_COLUMNS."""
    return Statement(_with_ids(dialect), {"ids": dialect.bound_list(ids)})


@cache
def _with_ids(dialect: Dialect) -> Select[Any]:
    return select(*DESCRIPTOR_COLUMNS).where(dialect.is_in_list(DESCRIPTORS.c.descriptor_id, "ids"))


def known_descriptors(table_id: int, hashes: Iterable[str], dialect: Dialect) -> Statement:
    """Content hash, base and id of those of a table that have one of the hashes."""
    values = {"the_table": table_id, "hashes": dialect.bound_list(hashes)}
    return Statement(_with_hashes(dialect), values)


@cache
def _with_hashes(dialect: Dialect) -> Select[Any]:
    columns = DESCRIPTORS.c.content_hash, DESCRIPTORS.c.base_location, DESCRIPTORS.c.descriptor_id
    return select(*columns).where(
        DESCRIPTORS.c.table_id == bindparam("the_table"),
        dialect.is_in_list(DESCRIPTORS.c.content_hash, "hashes"),
    )


def found_descriptors(rows: Iterable[Any]) -> list[Descriptor]:
    """From rows of DESCRIPTOR_COLUMNS."""
    return [Descriptor(descriptor_id, DescriptorContent(*content), base) for descriptor_id, *content, base in rows]


def by_id(descriptors: Iterable[Descriptor]) -> dict[int, Descriptor]:
    return {one.descriptor_id: one for one in descriptors}


def descriptor_of_row(row: Mapping[str, Any]) -> Descriptor:
    """From what `descriptor_row` gives."""
    return found_descriptors([[row[column.name] for column in DESCRIPTOR_COLUMNS]])[0]


class ContentEncoder:
    """Encodes the storage descriptors of one request, which are mostly equal but for the location."""

    def __init__(self) -> None:
        self._last = StorageDescriptor()
        self._content = encode_descriptor(self._last)

    def encode(self, descriptor: StorageDescriptor) -> DescriptorContent:
        placeless = copy(descriptor)
        placeless.location = None
        if placeless != self._last:
            self._last, self._content = placeless, encode_descriptor(placeless)
        return self._content


def descriptor_row(
    table_id: TableId, descriptor_id: int | None, content: DescriptorContent, base: str | None
) -> dict[str, Any]:
    return {
        "descriptor_id": descriptor_id,
        "table_id": table_id,
        "content_hash": content.content_hash,
        "columns": content.columns,
        "rest": content.rest,
        "skew_locations": content.skew_locations,
        "base_location": base,
        "partition_count": 0,
    }


NamedRow: TypeAlias = Sequence[Any]
"""The id of a partition, then ROW_COLUMNS."""


# To find the descriptors, the database looks each name up once more. Above this it takes longer than one more message.
TOGETHER_MAX: Final = 100


def rows_by_names(table_id: int, names: Iterable[str], dialect: Dialect) -> list[Statement]:
    """A statement for the rows, in no order, and where `reads_descriptors` one for their descriptors."""
    wanted = [name for name in dict.fromkeys(names) if is_storable(name)]
    if len(wanted) == 1:
        return [Statement(sql, {"the_table": table_id, "the_name": wanted[0]}) for sql in _OF_ONE]
    values = {"the_table": table_id, "names": dialect.bound_list(wanted)}
    return [Statement(sql, values) for sql in _of_many(dialect)[: 2 if reads_descriptors(wanted) else 1]]


def reads_descriptors(names: Collection[str]) -> bool:
    """Tell whether descriptors are read together with the rows of these names, each of which is another one."""
    return len(names) <= TOGETHER_MAX


_OF_TABLE: Final = PARTITIONS.c.table_id == bindparam("the_table")
_ROWS: Final = select(PARTITIONS.c.partition_id, *ROW_COLUMNS)
_USED: Final = select(PARTITIONS.c.descriptor_id)
_IS_ONE: Final = and_(_OF_TABLE, PARTITIONS.c.part_name == bindparam("the_name"))
# PostgreSQL plans statements with lists each time.
_OF_ONE: Final = [
    _ROWS.where(_IS_ONE),
    select(*DESCRIPTOR_COLUMNS).where(DESCRIPTORS.c.descriptor_id == _USED.where(_IS_ONE).scalar_subquery()),
]


@cache
def _of_many(dialect: Dialect) -> list[Any]:
    are_wanted = dialect.has_name(PARTITIONS.c.partition_id, PARTITIONS.c.part_name, "names", _OF_TABLE)
    descriptors = select(*DESCRIPTOR_COLUMNS)
    return [
        _ROWS.where(are_wanted),
        descriptors.where(dialect.is_among_rows(DESCRIPTORS.c.descriptor_id, _USED.where(are_wanted))),
    ]


def stored_partitions(
    table: StoredTable, rows: Sequence[NamedRow], descriptors: Mapping[int, Descriptor]
) -> list[StoredPartition]:
    """Make objects of rows. They remember their rows, by which storage sees whether they have changed."""
    builder = StructRows(table.table)
    builder.learn(descriptors[used] for used in {row[2] for row in rows if row[2] is not None})
    built = builder.build([row[1:] for row in rows])  # type: ignore[misc]
    return [
        StoredPartition(PartitionId(row[0]), row[1], partition, as_stored(row, descriptors))
        for row, partition in zip(rows, built, strict=True)
    ]


def as_stored(row: NamedRow, descriptors: Mapping[int, Descriptor]) -> object:
    """All that is stored of a partition. Of two that are equal the partitions are equal."""
    return tuple(row), None if row[2] is None else descriptors[row[2]]
