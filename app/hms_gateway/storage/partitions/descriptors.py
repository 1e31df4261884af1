"""Storage descriptors that partitions share: found by content, counted, gone with their last partition (design D6)."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cache
from typing import Any, Final, TypeAlias

from sqlalchemy import Select, and_, bindparam, delete, func, insert, select, update

from hms_gateway.metastore.ports.store import TableId
from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.dialects.statements import Statement
from hms_gateway.storage.partitions.rows import Descriptor
from hms_gateway.storage.schema.catalog import DESCRIPTORS
from hms_gateway.storage.sql.fragments import DescriptorContent, encode_columns, encode_descriptor
from hms_gateway.storage.sql.repository import Repository
from hms_gateway.structs import FieldSchema, StorageDescriptor

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
        return self._found(select(*DESCRIPTOR_COLUMNS).where(DESCRIPTORS.c.table_id == table_id))

    def ids_of(self, table_id: TableId, wanted: Iterable[DescriptorKey]) -> dict[DescriptorKey, int]:
        """The ids of these descriptors; those that are new are stored, with no partition counted yet."""
        keys = list(wanted)
        known = self._known(table_id, {content.content_hash for content, _ in keys})
        ids = {key: known.get((key[0].content_hash, key[1])) for key in keys}
        new = [key for key, found in ids.items() if found is None]
        if new:
            # One unit of work runs at a time, so no other one can take these ids.
            first = (self._connection.execute(LAST_DESCRIPTOR).scalar() or 0) + 1
            ids.update(zip(new, range(first, first + len(new)), strict=True))
            self._connection.execute(insert(DESCRIPTORS), [descriptor_row(table_id, ids[key], *key) for key in new])
        return {key: found for key, found in ids.items() if found is not None}

    def add_to_counts(self, table_id: TableId, differences: Mapping[int | None, int]) -> None:
        """So many partitions more or fewer use these descriptors; unused ones are deleted."""
        changes = [
            {"the_descriptor": descriptor_id, "difference": difference}
            for descriptor_id, difference in differences.items()
            if descriptor_id is not None and difference
        ]
        if not changes:
            return
        self._connection.execute(ADD_TO_DESCRIPTOR, changes)
        if any(difference < 0 for difference in differences.values()):
            unused = and_(DESCRIPTORS.c.table_id == table_id, DESCRIPTORS.c.partition_count == 0)
            self._connection.execute(delete(DESCRIPTORS).where(unused))

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

    def _found(self, statement: Any) -> list[Descriptor]:
        return found_descriptors(self._connection.execute(statement))

    def _known(self, table_id: TableId, hashes: Iterable[str]) -> dict[tuple[str, str | None], int]:
        statement = known_descriptors(table_id, hashes, self._dialect)
        return {(content_hash, base): found for content_hash, base, found in self._connection.execute(*statement)}


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
