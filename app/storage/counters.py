"""What units of work on transactions, locks and leases share: the database's clock, and ids that only grow."""

from typing import Final

from sqlalchemy import BigInteger, Connection, bindparam, cast, func, insert, literal, select, update

from app.clock import Clock
from app.storage.repository import Repository
from app.storage.txn_schema import TXN_COUNTERS

_NEXT_IDS: Final = (
    update(TXN_COUNTERS)
    .where(TXN_COUNTERS.c.name == bindparam("the_name"))
    .values(last_id=TXN_COUNTERS.c.last_id + bindparam("count"))
    .returning(TXN_COUNTERS.c.last_id)
)
_POSTGRES_NOW: Final = select(cast(func.extract("epoch", func.clock_timestamp()) * literal(1000), BigInteger))


class CountingWrites(Repository):
    def __init__(self, connection: Connection, clock: Clock) -> None:
        super().__init__(connection)
        self._clock = clock
        self._now_ms: int | None = None

    def now_ms(self) -> int:
        """One time for the whole unit of work. The process that writes a SQLite file is its server."""
        if self._now_ms is None:
            if self._dialect_name == "sqlite":
                self._now_ms = self._clock.milliseconds()
            else:
                self._now_ms = self._connection.execute(_POSTGRES_NOW).scalar_one()
        return self._now_ms

    def _next_ids(self, name: str, count: int) -> int:
        """Take so many ids; the last one of them."""
        last = self._connection.execute(_NEXT_IDS, {"the_name": name, "count": count}).scalar()
        if last is None:
            last = count
            self._connection.execute(insert(TXN_COUNTERS).values(name=name, last_id=last))
        return int(last)
