"""Objects that events of a notification log have touched: partitions, and tables before and after a change.

Formats differ between versions, so messages are not applied: what has changed is read from the metastore.
"""

import base64
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.pipeline.catalog import is_elsewhere
from hms_gateway.rpc.structs import NotificationEvent, Partition, Table
from hms_gateway.rpc.structs.catalogs import DEFAULT_CATALOG, plain_name
from hms_gateway.rpc.wire import ProtocolError, make_codecs
from hms_gateway.runtime.limits import Limits

OF_PARTITIONS: Final = frozenset(
    (
        *("ADD_PARTITION", "ALTER_PARTITION", "DROP_PARTITION"),
        *("UPDATE_PART_COL_STAT_EVENT", "DELETE_PART_COL_STAT_EVENT"),
        *("UPDATE_PARTITION_COLUMN_STAT", "DELETE_PARTITION_COLUMN_STAT"),
    )
)
# A table of which more partitions have changed is looked through as a whole.
PARTITIONS_MAX: Final = 100_000
_UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError, ProtocolError, RecursionError, zlib.error)
_decode: Final = make_codecs(Limits()).tjson.decode


@dataclass
class Changes:
    """Objects that events have touched.

    tables     by database and table: names of partitions, None where it may be anything
    databases  of which anything else has changed: the database, its functions

    Events of other catalogs than the client's do not count.
    """

    tables: dict[tuple[str, str], set[str] | None] = field(default_factory=dict)
    databases: set[str] = field(default_factory=set)

    def note(self, events: Iterable[NotificationEvent]) -> None:
        for event in events:
            self._note(event)

    def _note(self, event: NotificationEvent) -> None:
        name, table, kind = event.dbName or "", event.tableName, event.eventType or ""
        # Metastores before 3.1 know no catalogs; gateways name them to clients of 2.3 before the database.
        if not name or is_elsewhere(name) or event.catName not in (None, DEFAULT_CATALOG):
            return
        database = name
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


def partition_names(event: NotificationEvent) -> list[str] | None:
    """The partitions that a message names, in all spellings of 2.3 to 4, both names of a renamed one.

    None where it names none, or cannot be read.
    """
    try:
        said = _said(event)
        if "partName" in said:
            return [str(said["partName"])]
        listed = said.get("keyValues") or said.get("partitions") or said.get("partKeyVals") or []
        listed = [listed] if isinstance(listed, dict) else listed
        names = [make_name(list(each), list(map(str, each.values()))) if each else "" for each in listed]
        if event.eventType == "ALTER_PARTITION" and "partitionObjBeforeJson" in said:
            states = (said[f"partitionObj{when}Json"].encode() for when in ("Before", "After"))
            names = [make_name(list(listed[0]), _decode(Partition, state).values or []) for state in states]
        return list(dict.fromkeys(names)) if names and all(names) else None
    except _UNREADABLE:
        return None


def alteration(event: NotificationEvent) -> tuple[Table, Table, bool] | None:
    """A table before and after it was altered, and whether it was truncated; None where the message cannot be read."""
    try:
        said = _said(event)
        states = (said[f"tableObj{when}Json"].encode() for when in ("Before", "After"))
        before, after = (_decode(Table, state) for state in states)
        return before, after, bool(said.get("isTruncateOp"))
    except _UNREADABLE:
        return None


def _said(event: NotificationEvent) -> Any:
    """JSON; from Hive 4 on it may be compressed with gzip, as base64."""
    message = event.message or ""
    try:
        return json.loads(message)
    except ValueError:
        return json.loads(zlib.decompress(base64.b64decode(message, validate=True), zlib.MAX_WBITS | 16))
