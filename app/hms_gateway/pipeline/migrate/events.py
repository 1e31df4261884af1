"""Reads out of a notification log which objects have to be read again.

Messages are not applied: formats differ between versions, and what has changed is read from the source anyway. They are
read for the names of partitions and for the old name of a table; what cannot be read means the whole table.
"""

import base64
import binascii
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.pipeline.catalog import is_elsewhere
from hms_gateway.rpc.structs import NotificationEvent
from hms_gateway.rpc.structs.catalogs import DEFAULT_CATALOG, plain_name

_OF_PARTITIONS: Final = frozenset(("ADD_PARTITION", "ALTER_PARTITION", "DROP_PARTITION", "INSERT"))
_OF_PARTITION_STATISTICS: Final = frozenset(("UPDATE_PARTITION_COLUMN_STAT", "DELETE_PARTITION_COLUMN_STAT"))
# A table of which more partitions have changed is looked through as a whole.
PARTITIONS_MAX: Final = 100_000


@dataclass
class Changes:
    """Objects that events have touched.

    tables     by database and table: names of partitions, None where it may be anything
    partly     whether only those partitions, and not the table itself
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
        if kind in _OF_PARTITIONS or kind in _OF_PARTITION_STATISTICS:
            self._note_partitions(key, partition_names(kind, event.message or ""))
            return
        self.tables[key] = None
        if kind == "ALTER_TABLE" and (before := _name_before(event.message or "")) is not None:
            self.tables[before] = None

    def _note_partitions(self, key: tuple[str, str], names: Sequence[str] | None) -> None:
        known = self.tables.get(key, set())
        if known is None or names is None:
            self.tables[key] = None
            return
        known.update(names)
        self.tables[key] = known if len(known) <= PARTITIONS_MAX else None

    def __bool__(self) -> bool:
        return bool(self.tables or self.databases)


def partition_names(kind: str, message: str) -> list[str] | None:
    """The partitions that a message names, in all spellings of 2.3 to 4; None where it names none."""
    said = _read(message)
    if said is None:
        return None
    if "partName" in said:
        return [str(said["partName"])]
    listed = [said["keyValues"]] if said.get("keyValues") else said.get("partitions") or said.get("partKeyVals") or []
    names = _named(listed)
    if kind == "ALTER_PARTITION" and names is not None:
        before, after = (_values(said.get(f"partitionObj{when}Json")) for when in ("Before", "After"))
        return names if before == after else None  # a rename
    return names


def _named(listed: Any) -> list[str] | None:
    listed = [listed] if isinstance(listed, dict) else listed
    if not isinstance(listed, list) or not listed:
        return None
    names = []
    for each in listed:
        if not isinstance(each, dict) or not each:
            return None
        names.append(make_name([str(key) for key in each], [str(value) for value in each.values()]))
    return names


def _values(partition: Any) -> Any:
    """The values of a partition in Thrift's JSON: its first field."""
    try:
        return json.loads(partition)["1"] if isinstance(partition, str) else None
    except (ValueError, KeyError, TypeError):
        return None


def _name_before(message: str) -> tuple[str, str] | None:
    """The name of a table before an alter: the first two fields of it in Thrift's JSON."""
    said = _read(message)
    try:
        before = json.loads((said or {})["tableObjBeforeJson"])
        return plain_name(before["2"]["str"]).lower(), before["1"]["str"].lower()
    except (ValueError, KeyError, TypeError):
        return None


def _read(message: str) -> dict[str, Any] | None:
    """JSON; from Hive 4 on it may be compressed with gzip, as base64."""
    for text in (message, _unpacked(message)):
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(said, dict):
            return said
    return None


def _unpacked(message: str) -> str:
    try:
        return zlib.decompress(base64.b64decode(message, validate=True), zlib.MAX_WBITS | 16).decode()
    except (binascii.Error, zlib.error, ValueError):
        return ""
