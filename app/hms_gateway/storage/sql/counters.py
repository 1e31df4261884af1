"""What units of work on transactions, locks and leases share: the database's clock, and ids that only grow."""

from typing import Final

from sqlalchemy import Connection, bindparam, insert, select, update

from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.dialects.database_clock import DATABASE_NOW
from hms_gateway.storage.schema.txn import TXN_COUNTERS
from hms_gateway.storage.sql.repository import Repository

_ADD: Final = (
    update(TXN_COUNTERS)
    .where(TXN_COUNTERS.c.name == bindparam("the_name"))
    .values(last_id=TXN_COUNTERS.c.last_id + bindparam("count"))
)
_ADD_AND_TELL: Final = _ADD.returning(TXN_COUNTERS.c.last_id)
_LAST_ID: Final = select(TXN_COUNTERS.c.last_id).where(TXN_COUNTERS.c.name == bindparam("the_name"))


def next_ids(connection: Connection, name: str, count: int) -> int:
    """Take so many ids of a kind and return the last one. The caller holds the lock on the catalog."""
    values = {"the_name": name, "count": count}
    if connection.dialect.update_returning:
        last = connection.execute(_ADD_AND_TELL, values).scalar()
    else:
        connection.execute(_ADD, values)
        last = connection.execute(_LAST_ID, {"the_name": name}).scalar()
    if last is None:
        last = count
        connection.execute(insert(TXN_COUNTERS).values(name=name, last_id=last))
    return int(last)


class CountingWrites(Repository):
    def __init__(self, connection: Connection, clock: Clock) -> None:
        super().__init__(connection)
        self._clock = clock
        self._now_ms: int | None = None

    def now_ms(self) -> int:
        """One time for the whole unit of work. The process that writes a SQLite file is its server."""
        if self._now_ms is None:
            if self._dialect.has_clock:
                self._now_ms = self._connection.execute(DATABASE_NOW).scalar_one()
            else:
                self._now_ms = self._clock.milliseconds()
        return self._now_ms

    def _next_ids(self, name: str, count: int) -> int:
        """Take so many ids; the last one of them."""
        return next_ids(self._connection, name, count)
