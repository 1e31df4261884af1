"""Leases, and requests that wait for them, as rows: one for each object."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, and_, bindparam, delete, insert, or_, select, update

from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.schema.txn import LEASE_WAITERS, LEASES
from hms_gateway.storage.sql.filter_sql import is_among
from hms_gateway.storage.sql.repository import check_text
from hms_gateway.storage.txn.state import CountingWrites, object_columns, target_of
from hms_gateway.txn.rules.leases import Claim, LeasedObject, LeaseId, LeaseType, Ticket, Waiter, containers
from hms_gateway.txn.rules.names import Target

# More partitions than this are looked for by their tables.
_PARTITIONS_MAX: Final = 20

_THE_LEASE: Final = LEASES.c.lease_id == bindparam("the_lease")
_IN_ORDER: Final = (LEASES.c.lease_id, LEASES.c.object_number)
_LEASE: Final = select(LEASES).where(_THE_LEASE).order_by(*_IN_ORDER)
_UPDATE: Final = (
    update(LEASES)
    .where(
        _THE_LEASE,
        LEASES.c.db_name == bindparam("the_db"),
        LEASES.c.table_name == bindparam("the_table"),
        LEASES.c.partition_name == bindparam("the_partition"),
    )
    .values(type=bindparam("new_type"), end_ms=bindparam("new_end"))
)
_KEEP_WAITING: Final = (
    update(LEASE_WAITERS).where(LEASE_WAITERS.c.ticket == bindparam("the_ticket")).values(until_ms=bindparam("until"))
)


class SqlLeaseWrites(CountingWrites):
    """`txn.ports.leases.LeaseWrites`."""

    def next_lease_id(self) -> LeaseId:
        return LeaseId(self._next_ids("lease", 1))

    def insert_lease(self, held: Sequence[LeasedObject]) -> None:
        """Raises UnstorableText."""
        rows = []
        for number, one in enumerate(held, 1):
            check_text("user", one.user)
            rows.append(
                {
                    "lease_id": one.lease_id,
                    "object_number": number,
                    **_claim_columns(one.claim, self._dialect),
                    "user_name": one.user,
                    "start_ms": one.start_ms,
                    "end_ms": one.end_ms,
                    "duration_ms": one.duration_ms,
                }
            )
        self._connection.execute(insert(LEASES), rows)

    def lease(self, lease_id: int) -> list[LeasedObject]:
        return _leases(self._connection.execute(_LEASE, {"the_lease": lease_id}))

    def leases_around(self, targets: Sequence[Target]) -> list[LeasedObject]:
        return _leases(self._connection.execute(select(LEASES).where(self._around(LEASES, targets))))

    def leases_inside(self, targets: Sequence[Target] | None) -> list[LeasedObject]:
        if targets is None:
            return _leases(self._connection.execute(select(LEASES).order_by(*_IN_ORDER)))
        wanted = frozenset(targets)
        found = self._connection.execute(select(LEASES).where(self._around(LEASES, targets)).order_by(*_IN_ORDER))
        return [held for held in _leases(found) if not wanted.isdisjoint(containers(held.claim.target))]

    def update_lease(self, held: Sequence[LeasedObject]) -> None:
        rows = [
            {
                "the_lease": one.lease_id,
                "the_db": one.claim.target.db_name,
                "the_table": one.claim.target.table_name or "",
                "the_partition": one.claim.target.partition_name or "",
                "new_type": one.claim.type.value,
                "new_end": one.end_ms,
            }
            for one in held
        ]
        self._connection.execute(_UPDATE, rows)

    def delete_lease(self, lease_id: int, targets: Sequence[Target] | None = None) -> int:
        if targets is None:
            return self._connection.execute(delete(LEASES).where(LEASES.c.lease_id == lease_id)).rowcount
        wanted = frozenset(targets)
        numbers = [
            row.object_number
            for row in self._connection.execute(_LEASE, {"the_lease": lease_id})
            if target_of(row.db_name, row.table_name, row.partition_name) in wanted
        ]
        if numbers:
            gone = and_(LEASES.c.lease_id == lease_id, LEASES.c.object_number == bindparam("number"))
            self._connection.execute(delete(LEASES).where(gone), [{"number": number} for number in numbers])
        return len(numbers)

    def delete_expired(self) -> None:
        self._connection.execute(delete(LEASES).where(LEASES.c.end_ms <= self.now_ms()))
        self._connection.execute(delete(LEASE_WAITERS).where(LEASE_WAITERS.c.until_ms <= self.now_ms()))

    def next_ticket(self) -> Ticket:
        return Ticket(self._next_ids("lease_ticket", 1))

    def waiters_around(self, targets: Sequence[Target], before: Ticket | None) -> list[Waiter]:
        statement = select(LEASE_WAITERS).where(self._around(LEASE_WAITERS, targets))
        if before is not None:
            statement = statement.where(LEASE_WAITERS.c.ticket < before)
        return [Waiter(Ticket(row.ticket), _claim(row), row.until_ms) for row in self._connection.execute(statement)]

    def put_waiter(self, ticket: Ticket, claims: Sequence[Claim], until_ms: int) -> None:
        """Raises UnstorableText."""
        if self._connection.execute(_KEEP_WAITING, {"the_ticket": ticket, "until": until_ms}).rowcount:
            return
        rows = [
            {
                "ticket": ticket,
                "object_number": number,
                **_claim_columns(claim, self._dialect),
                "until_ms": until_ms,
            }
            for number, claim in enumerate(claims, 1)
        ]
        self._connection.execute(insert(LEASE_WAITERS), rows)

    def delete_waiter(self, ticket: Ticket) -> None:
        self._connection.execute(delete(LEASE_WAITERS).where(LEASE_WAITERS.c.ticket == ticket))

    def _around(self, table: Any, targets: Sequence[Target]) -> ColumnElement[bool]:
        conditions = [is_among(table.c.db_name, {target.db_name for target in targets}, self._dialect)]
        if all(target.table_name is not None for target in targets):
            tables = {"", *(target.table_name or "" for target in targets)}
            conditions.append(is_among(table.c.table_name, tables, self._dialect))
            if len(targets) <= _PARTITIONS_MAX and all(target.partition_name is not None for target in targets):
                conditions.append(self._around_partitions(table.c.partition_name, targets))
        return and_(*conditions)

    def _around_partitions(self, column: ColumnElement[str], targets: Sequence[Target]) -> ColumnElement[bool]:
        names = {around.partition_name or "" for target in targets for around in containers(target)}
        # In byte order "0" is what follows "/".
        inside = [
            and_(column > f"{target.partition_name}/", column < f"{target.partition_name}0") for target in targets
        ]
        return or_(is_among(column, names, self._dialect), *inside)


def _claim_columns(claim: Claim, dialect: Dialect) -> dict[str, str]:
    return {**object_columns(claim.target, dialect), "type": claim.type.value}


def _claim(row: Row[Any]) -> Claim:
    return Claim(target_of(row.db_name, row.table_name, row.partition_name), LeaseType(row.type))


def _leases(rows: Iterable[Row[Any]]) -> list[LeasedObject]:
    return [
        LeasedObject(LeaseId(row.lease_id), row.user_name, _claim(row), row.start_ms, row.end_ms, row.duration_ms)
        for row in rows
    ]
