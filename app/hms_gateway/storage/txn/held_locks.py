"""The locks that are held, with their holders: what implicit locks are compared with."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from sqlalchemy import BigInteger, Select, bindparam, literal, or_

from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.dialects.database_clock import DATABASE_NOW
from hms_gateway.storage.dialects.statements import Rows, Statement
from hms_gateway.storage.schema.txn import LOCKS
from hms_gateway.storage.sql.texts import is_storable
from hms_gateway.storage.txn.locks import LOCK_ROWS, locks_of
from hms_gateway.txn.rules.implicit_locks import AcquiredLock
from hms_gateway.txn.rules.names import Target

_Place: TypeAlias = tuple[str, str | None]  # database and table; "" for the database itself, None for all in it
_LOCK_COLUMNS: Final = len(LOCK_ROWS.selected_columns)


class HeldLockStatements:
    """For one kind of database."""

    def __init__(self, dialect: Dialect) -> None:
        now: Any = DATABASE_NOW.scalar_subquery() if dialect.has_clock else literal(0, BigInteger)
        holders = (LOCKS.c.user_name, LOCKS.c.host_name, LOCKS.c.agent_info, LOCKS.c.principal, LOCKS.c.client_address)
        rows: Select[Any] = LOCK_ROWS.add_columns(*holders, now).where(LOCKS.c.is_acquired.is_(True))
        self.on_tables = dialect.with_pairs(rows, LOCKS.c.db_name, LOCKS.c.table_name)
        is_near = or_(LOCKS.c.table_name == "", LOCKS.c.table_name == bindparam("the_table"))
        self.on_table = rows.where(LOCKS.c.db_name == bindparam("the_db"), is_near)
        self.in_database = rows.where(LOCKS.c.db_name == bindparam("the_db"))


_statements: Final = cache(HeldLockStatements)


class KnownLocks:
    """What a batch knows of them: complete for the places it has asked for."""

    def __init__(self, dialect: Dialect, clock: Clock, read: Callable[[Sequence[Statement]], Sequence[Rows]]) -> None:
        self._dialect = dialect
        self._clock = clock
        self._read = read
        self._held: dict[_Place, list[AcquiredLock]] = {}
        self._now_ms = 0

    def statements(self, tables: Iterable[tuple[str, str]]) -> list[Statement]:
        """What reads the locks on these tables by database and name, and on their databases."""
        return self._reading(_around(tables))

    def learn(self, tables: Iterable[tuple[str, str]], answers: Sequence[Rows]) -> None:
        """What those statements have given: nothing most often."""
        if any(answers):
            self._learn(_around(tables), answers)
        else:
            for db_name, name in tables:
                self._held[db_name, name] = self._held[db_name, ""] = []

    def on(self, targets: Sequence[Target]) -> tuple[list[AcquiredLock], int]:
        """See `ports.HeldLocks`."""
        if all(self._are_free(each) for each in targets):
            return [], self._now_ms
        whole = {each.db_name for each in targets if each.table_name is None}
        tables = [(each.db_name, each.table_name) for each in targets if each.table_name and each.db_name not in whole]
        places: dict[_Place, None] = dict.fromkeys([*((db_name, None) for db_name in whole), *_around(tables)])
        if unknown := [place for place in places if place not in self._held]:
            self._learn(unknown, self._read(self._reading(unknown)))
        found = {(one.lock.lock_id, one.lock.number): one for place in places for one in self._held[place]}
        return list(found.values()), self._now_ms

    def _are_free(self, target: Target) -> bool:
        """Whether a table and its database are known not to be locked."""
        db_name, table_name, _ = target
        return table_name is not None and self._held.get((db_name, table_name)) == [] == self._held.get((db_name, ""))

    def forget(self) -> None:
        """Locks were changed by other statements."""
        self._held = {}

    def _reading(self, places: Iterable[_Place]) -> list[Statement]:
        made = _statements(self._dialect)
        pairs = [(db_name, name) for db_name, name in places if name is not None]
        storable = [pair for pair in pairs if all(map(is_storable, pair))]
        databases = [db_name for db_name, name in places if name is None]
        return [
            *([self._on_tables(made, storable)] if pairs else []),
            *(Statement(made.in_database, {"the_db": one if is_storable(one) else ""}) for one in databases),
        ]

    def _on_tables(self, made: HeldLockStatements, pairs: Sequence[tuple[str, str]]) -> Statement:
        """Of one table, as most often, without lists: those take longer to read than the locks."""
        if len(pairs) == 2 and pairs[0] == (pairs[1][0], ""):
            return Statement(made.on_table, {"the_db": pairs[1][0], "the_table": pairs[1][1]})
        return Statement(made.on_tables, self._dialect.bound_pairs(pairs))

    def _learn(self, places: Iterable[_Place], answers: Sequence[Rows]) -> None:
        found: dict[_Place, dict[tuple[int, int], AcquiredLock]] = {place: {} for place in places}
        for rows in answers:
            if not self._dialect.has_clock:
                self._now_ms = self._clock.milliseconds()
            elif rows:
                self._now_ms = rows[0][-1]
            for one in _held_of(rows):
                db_name, table_name, _ = one.lock.target
                for place in ((db_name, table_name or ""), (db_name, None)):
                    if place in found:
                        found[place][one.lock.lock_id, one.lock.number] = one
        self._held |= {place: list(locks.values()) for place, locks in found.items()}


def _around(tables: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return list(dict.fromkeys(place for db_name, name in tables for place in ((db_name, ""), (db_name, name))))


def _held_of(rows: Rows) -> list[AcquiredLock]:
    locks = locks_of(row[:_LOCK_COLUMNS] for row in rows)
    return [AcquiredLock(lock, *row[_LOCK_COLUMNS:-1]) for lock, row in zip(locks, rows, strict=True)]
