"""A table as storage keeps it; part of `ports`."""

import msgspec

from hms_gateway.metastore.vocabulary.names import DatabaseId, TableId
from hms_gateway.structs import Table


class StoredTable(msgspec.Struct, frozen=True):
    """A table as get_table returns it, its ids, the exact number of its partitions, and whether it has indexes.

    `as_stored` is storage's own, by which it sees whether the table has changed since.
    """

    table_id: TableId
    database_id: DatabaseId
    table: Table
    partition_count: int
    has_indexes: bool
    as_stored: object = None

    @property
    def key_names(self) -> list[str]:
        return [key.name or "" for key in self.table.partitionKeys or []]
