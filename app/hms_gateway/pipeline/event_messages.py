"""Names in the messages of a notification log: partitions, and tables before and after a change.

Formats differ between versions, so messages are not applied: what has changed is read from the metastore.
"""

import base64
import json
import zlib
from typing import Any, Final

from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.rpc.structs import NotificationEvent, Partition, Table
from hms_gateway.rpc.wire import ProtocolError, make_codecs
from hms_gateway.runtime.limits import Limits

OF_PARTITIONS: Final = frozenset(
    (
        *("ADD_PARTITION", "ALTER_PARTITION", "DROP_PARTITION"),
        *("UPDATE_PART_COL_STAT_EVENT", "DELETE_PART_COL_STAT_EVENT"),
        *("UPDATE_PARTITION_COLUMN_STAT", "DELETE_PARTITION_COLUMN_STAT"),
    )
)
_UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError, ProtocolError, RecursionError, zlib.error)
_decode: Final = make_codecs(Limits()).tjson.decode


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
