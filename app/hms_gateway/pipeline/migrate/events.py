"""Reads out of a notification log which objects have to be read again; what cannot be read means the whole table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from hms_gateway.pipeline.event_messages import OF_PARTITIONS, alteration, partition_names
from hms_gateway.rpc.structs import NotificationEvent
from hms_gateway.rpc.structs.catalogs import DEFAULT_CATALOG, catalog_of, plain_name

# A table of which more partitions have changed is looked through as a whole.
PARTITIONS_MAX: Final = 100_000


@dataclass
class Changes:
    """Objects that events have touched.

    tables     by database and table: names of partitions, None where it may be anything
    databases  of which anything else has changed: the database, its functions
    catalog    the one whose events count
    """

    catalog: str = DEFAULT_CATALOG
    tables: dict[tuple[str, str], set[str] | None] = field(default_factory=dict)
    databases: set[str] = field(default_factory=set)

    def note(self, events: Iterable[NotificationEvent]) -> None:
        for event in events:
            self._note(event)

    def _note(self, event: NotificationEvent) -> None:
        name, table, kind = event.dbName or "", event.tableName, event.eventType or ""
        # Metastores before 3.1 know no catalogs; here clients of 2.3 are told of them in the database's name.
        if not name or (event.catName or catalog_of(name)) != self.catalog:
            return
        database = plain_name(name)
        if not database:
            return
        if not table:
            self.databases.add(database)
            return
        key = (database.lower(), table.lower())
        if kind in OF_PARTITIONS or kind == "INSERT":
            self._note_partitions(key, partition_names(event))
            return
        self.tables[key] = None
        if kind == "ALTER_TABLE" and (found := alteration(event)) is not None:
            before = found[0]
            self.tables[plain_name(before.dbName or "").lower(), (before.tableName or "").lower()] = None

    def _note_partitions(self, key: tuple[str, str], names: Sequence[str] | None) -> None:
        known = self.tables.get(key, set())
        if known is None or names is None:
            self.tables[key] = None
            return
        known.update(names)
        self.tables[key] = known if len(known) <= PARTITIONS_MAX else None

    def __bool__(self) -> bool:
        return bool(self.tables or self.databases)
