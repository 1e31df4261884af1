"""Moving the locations of a table's partitions when a directory moves: mostly a matter of their descriptors' base."""

from typing import Any

from sqlalchemy import ColumnElement, and_, func, literal, or_, select, update

from hms_gateway.metastore.ports.store import TableId
from hms_gateway.storage.partitions.descriptors import Descriptors
from hms_gateway.storage.partitions.rows import Descriptor
from hms_gateway.storage.schema.catalog import DESCRIPTORS, PARTITIONS
from hms_gateway.storage.sql.repository import Repository
from hms_gateway.storage.sql.texts import check_text


class PartitionLocations(Repository):
    def move(self, table_id: TableId, old_path: str, new_path: str) -> None:
        """Give what lies under `old_path` the same place under `new_path`.

        Changes a row for each descriptor, and rows of partitions only where they lie outside their table's directory
        or under a part of it that moves.
        """
        check_text("location", new_path)
        old_path, new_path = old_path.rstrip("/"), new_path.rstrip("/")
        descriptors = Descriptors(self._connection).of_table(table_id)
        # Absolute locations first: those that become absolute below have arrived already.
        for descriptor in sorted(descriptors, key=lambda one: one.base_location is not None):
            base = descriptor.base_location
            if base is None:
                self._move_absolute(table_id, descriptor, old_path, new_path)
            elif base == old_path or base.startswith(old_path + "/"):
                self._move_base(descriptor, new_path + base[len(old_path) :])
            elif old_path.startswith(base + "/"):
                self._move_part_of_base(table_id, descriptor, old_path[len(base) :], new_path)

    def _move_base(self, descriptor: Descriptor, base: str) -> None:
        moved = update(DESCRIPTORS).where(DESCRIPTORS.c.descriptor_id == descriptor.descriptor_id)
        self._connection.execute(moved.values(base_location=base))

    def _move_absolute(self, table_id: TableId, descriptor: Descriptor, old_path: str, new_path: str) -> None:
        location = PARTITIONS.c.location
        moved = update(PARTITIONS).where(_uses(table_id, descriptor), _is_at_or_below(location, old_path))
        new_location = literal(new_path) + func.substr(location, len(old_path) + 1)
        self._connection.execute(moved.values(location=new_location))

    def _move_part_of_base(self, table_id: TableId, descriptor: Descriptor, old_below: str, new_path: str) -> None:
        """Those partitions leave their base: their locations become absolute."""
        below = func.coalesce(PARTITIONS.c.location, literal("/") + PARTITIONS.c.part_name)
        condition = and_(_uses(table_id, descriptor), _is_at_or_below(below, old_below))
        counted = select(func.count()).select_from(PARTITIONS).where(condition)
        count = self._connection.execute(counted).scalar_one()
        if not count:
            return
        descriptors = Descriptors(self._connection)
        (absolute,) = descriptors.ids_of(table_id, [(descriptor.content, None)]).values()
        location = literal(new_path) + func.substr(below, len(old_below) + 1)
        self._connection.execute(update(PARTITIONS).where(condition).values(descriptor_id=absolute, location=location))
        descriptors.add_to_counts(table_id, {absolute: count, descriptor.descriptor_id: -count})


def _uses(table_id: TableId, descriptor: Descriptor) -> ColumnElement[bool]:
    return and_(PARTITIONS.c.table_id == table_id, PARTITIONS.c.descriptor_id == descriptor.descriptor_id)


def _is_at_or_below(location: ColumnElement[Any], path: str) -> ColumnElement[bool]:
    """`path` itself or something under it, whatever the column's collation."""
    return or_(location == path, func.substr(location, 1, len(path) + 1) == path + "/")
