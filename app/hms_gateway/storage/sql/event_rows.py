"""Events as rows of the notification log."""

import zlib
from typing import Final

import msgspec

from hms_gateway.metastore.ports.store import Event
from hms_gateway.runtime.presented import Actor
from hms_gateway.storage.sql.texts import check_text, is_storable

# PostgreSQL keeps longer values in a table of their own: 100 messages of 4.5 kB take it 3.2 ms, compressed 1.0 ms and
# 0.8 ms here. The message about 10,000 new partitions: 19 MB that are written in 40 ms, or in 25 ms as 0.26 MB.
COMPRESSED_FROM_CHARACTERS: Final = 2_000
_COMPRESSION_LEVEL: Final = 1
# zlib's tables of 256 KiB are memory that the kernel gives anew for each message (`gateway/memory.py`): 60 to 150 µs.
# With tables of a few KiB a message of 2 to 5 kB takes 20 to 40 µs, and becomes as short.
_SHORT_BYTES: Final = 8 * 1024
_SHORT_WINDOW_BITS: Final = 13
_SHORT_MEMORY_LEVEL: Final = 5


def event_row(event: Event, event_id: int, seconds: int, actor: Actor | None = None) -> dict[str, object]:
    """What is stored of an event, and of who made the change. Raises UnstorableText."""
    old_db, old_table = event.renamed_from or (None, None)
    for text in (event.event_type, event.db_name, event.table_name, event.message):
        check_text("notification event", text)
    return {
        "event_id": event_id,
        "event_time": seconds,
        "event_type": event.event_type,
        "db_name": event.db_name,
        "table_name": event.table_name,
        "renamed_from_db": old_db,
        "renamed_from_table": old_table,
        **_message_columns(event.message),
        **_actor_columns(actor),
    }


def _actor_columns(actor: Actor | None) -> dict[str, object]:
    if actor is None or not is_storable(actor.user):
        return {"principal": None, "actor": None}
    text = msgspec.json.encode(actor).decode()
    return {"principal": actor.user, "actor": text if is_storable(text) else None}


def _message_columns(message: str) -> dict[str, object]:
    if len(message) < COMPRESSED_FROM_CHARACTERS:
        return {"message": message, "compressed_message": None}
    return {"message": "", "compressed_message": _compressed(message.encode())}


def _compressed(message: bytes) -> bytes:
    if len(message) > _SHORT_BYTES:
        return zlib.compress(message, _COMPRESSION_LEVEL)
    compressor = zlib.compressobj(_COMPRESSION_LEVEL, zlib.DEFLATED, _SHORT_WINDOW_BITS, _SHORT_MEMORY_LEVEL)
    return compressor.compress(message) + compressor.flush()
