"""Which gateways share a database that is a server, and how far each has followed the log of events.

One row for each process. It is written every few seconds, by the database's clock.
"""

from typing import Final

import msgspec
from sqlalchemy import Connection, bindparam, delete, insert, select, update

from hms_gateway.storage.dialects.statements import DATABASE_NOW
from hms_gateway.storage.schema.catalog import CATALOG, GATEWAYS, NOTIFICATIONS

# Who was not seen for so long is not shown, and is removed when another one starts.
SHOWN_MS: Final = 60_000
KEPT_MS: Final = 3_600_000


class GatewayRow(msgspec.Struct, frozen=True):
    """A process of a gateway; `newest_event_id` and `behind_since_seconds` are as of when it was seen."""

    gateway_id: str
    name: str
    pid: int
    version: str
    event_id: int
    started_ms: int = 0
    seen_ms: int = 0
    newest_event_id: int = 0
    behind_since_seconds: int | None = None
    now_ms: int = 0


_NOW: Final = DATABASE_NOW.scalar_subquery()
_SEEN: Final = {
    "seen_ms": _NOW,
    "event_id": bindparam("event_id"),
    "newest_event_id": select(CATALOG.c.last_event_id).scalar_subquery(),
    "behind_since": select(NOTIFICATIONS.c.event_time)
    .where(NOTIFICATIONS.c.event_id > bindparam("event_id"))
    .order_by(NOTIFICATIONS.c.event_id)
    .limit(1)
    .scalar_subquery(),
}
_IS_IT: Final = GATEWAYS.c.gateway_id == bindparam("id")
_UPDATE: Final = update(GATEWAYS).where(_IS_IT).values(_SEEN)
_INSERT: Final = insert(GATEWAYS).values(
    gateway_id=bindparam("id"),
    name=bindparam("name"),
    pid=bindparam("pid"),
    version=bindparam("version"),
    started_ms=_NOW,
    **_SEEN,
)
_FORGET_OLD: Final = delete(GATEWAYS).where(GATEWAYS.c.seen_ms < _NOW - KEPT_MS)
_FORGET: Final = delete(GATEWAYS).where(_IS_IT)
_SHOWN: Final = (
    select(
        *(column for column in GATEWAYS.c if column is not GATEWAYS.c.behind_since),
        GATEWAYS.c.behind_since.label("behind_since_seconds"),
        _NOW.label("now_ms"),
    )
    .where(GATEWAYS.c.seen_ms > _NOW - SHOWN_MS)
    .order_by(GATEWAYS.c.name, GATEWAYS.c.pid)
)


def note_gateway(connection: Connection, row: GatewayRow) -> list[GatewayRow]:
    """Say that this process is there; all that are. Two statements after the first time."""
    seen = {"id": row.gateway_id, "event_id": row.event_id}
    if not connection.execute(_UPDATE, seen).rowcount:
        connection.execute(_FORGET_OLD)
        connection.execute(_INSERT, {**seen, "name": row.name, "pid": row.pid, "version": row.version})
    return known_gateways(connection)


def known_gateways(connection: Connection) -> list[GatewayRow]:
    """Those that were seen in the last minute."""
    return [GatewayRow(**found._asdict()) for found in connection.execute(_SHOWN)]


def forget_gateway(connection: Connection, gateway_id: str) -> None:
    connection.execute(_FORGET, {"id": gateway_id})
