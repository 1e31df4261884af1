"""The statements of batches (`storage.txn.batch`), made once: making one costs as much as running it.

Those about some rows take their ids as one parameter, `ids`.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    select,
    update,
)

from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.dialects.database_clock import DATABASE_NOW
from hms_gateway.storage.dialects.statements import Statement
from hms_gateway.storage.schema.catalog import CATALOG, NOTIFICATIONS, OUTCOMES
from hms_gateway.storage.schema.txn import (
    COMPLETED_COMPONENTS,
    LOCKS,
    TXN_COMPONENTS,
    TXN_COUNTERS,
    TXN_WRITE_IDS,
    TXNS,
    WRITE_SETS,
)
from hms_gateway.storage.sql.texts import is_storable
from hms_gateway.storage.txn.locks import LOCK_ROWS
from hms_gateway.storage.txn.state import COMPONENT_COLUMNS, WRITE_SET_COLUMNS
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.rules.transactions import TxnStatus

# Where SQLite does not see to it, this lets one writer change the catalog at a time.
LOCK_CATALOG: Final = select(CATALOG.c.last_event_id).with_for_update()
COUNTERS: Final = select(TXN_COUNTERS.c.name, TXN_COUNTERS.c.last_id)
COUNTERS_AND_NOW: Final = COUNTERS.add_columns(DATABASE_NOW.scalar_subquery())
OPEN_IDS: Final = (
    select(TXNS.c.txn_id).where(TXNS.c.state == TxnStatus.OPEN.value).order_by(TXNS.c.txn_id).limit(bindparam("limit"))
)
COUNT_OPEN: Final = select(func.count()).select_from(TXNS).where(TXNS.c.state == TxnStatus.OPEN.value)
TXN_OF_REFUSED_LOCK: Final = select(TXNS).where(TXNS.c.refused_lock == bindparam("the_lock"))
NEW_COUNTER: Final = insert(TXN_COUNTERS)
NEW_TXN: Final = insert(TXNS)
NEW_WRITE: Final = insert(TXN_COMPONENTS)
NEW_WRITE_SET: Final = insert(WRITE_SETS)
NEW_LOCK: Final = insert(LOCKS)
NEW_OUTCOME: Final = insert(OUTCOMES)
NEW_EVENT: Final = insert(NOTIFICATIONS)
SET_VERSION: Final = update(CATALOG).values(last_event_id=bindparam("newest"))
SET_COUNTER: Final = (
    update(TXN_COUNTERS).where(TXN_COUNTERS.c.name == bindparam("the_name")).values(last_id=bindparam("last_id"))
)
SET_BLOCKER: Final = (
    update(LOCKS)
    .where(LOCKS.c.lock_id == bindparam("the_lock"), LOCKS.c.is_acquired.is_(False))
    .values(blocked_by_lock=bindparam("blocker"), blocked_by_component=bindparam("number"))
)

# Locks that may be in the way of a request on a database, and below a partition's name.
_STRONG_ENOUGH: Final = and_(LOCKS.c.strength >= bindparam("least_strength"), LOCKS.c.db_name == bindparam("the_db"))
IN_DATABASE: Final = LOCK_ROWS.where(_STRONG_ENOUGH).limit(bindparam("limit"))
_ON_TABLE: Final = and_(_STRONG_ENOUGH, LOCKS.c.table_name.in_(["", bindparam("the_table")]))
BELOW_PARTITION: Final = LOCK_ROWS.where(
    _ON_TABLE, func.substr(LOCKS.c.partition_name, 1, bindparam("characters")) == bindparam("below")
)


class BatchStatements:
    """For one kind of database."""

    def __init__(self, dialect: Dialect) -> None:
        def among(column: ColumnElement[Any]) -> ColumnElement[bool]:
            return dialect.is_in_list(column, "ids")

        now_ms: ColumnElement[Any] = bindparam("now_ms")
        open_txns = update(TXNS).where(among(TXNS.c.txn_id), TXNS.c.state == TxnStatus.OPEN.value)
        components = select(*(TXN_COMPONENTS.c[name] for name in COMPONENT_COLUMNS))
        of_txns = among(TXN_COMPONENTS.c.txn_id)
        self.txns = dialect.with_ids(select(TXNS), TXNS.c.txn_id)
        self.components = dialect.with_ids(components, TXN_COMPONENTS.c.txn_id)
        write_ids = select(*(TXN_WRITE_IDS.c[name] for name in ("txn_id", "db_name", "table_name", "write_id")))
        self.write_ids = dialect.with_ids(write_ids, TXN_WRITE_IDS.c.txn_id)
        self.requests = dialect.with_ids(LOCK_ROWS, LOCKS.c.lock_id)
        self.commit = open_txns.values(state=TxnStatus.COMMITTED.value, ended_ms=now_ms)
        self.abort = open_txns.values(
            state=TxnStatus.ABORTED.value,
            ended_ms=now_ms,
            reason=bindparam("the_reason"),
            refused_lock=bindparam("the_refused_lock"),
        )
        self.refresh_txns = open_txns.values(last_heartbeat_ms=now_ms)
        self.complete = insert(COMPLETED_COMPONENTS).from_select(list(COMPONENT_COLUMNS), components.where(of_txns))
        self.delete_components = delete(TXN_COMPONENTS).where(of_txns)
        # Not as a parameter, so that the index over locks with a transaction is known to have them all.
        has_txn = LOCKS.c.txn_id > literal_column("0")
        self.locks_of_txns = dialect.with_ids(LOCK_ROWS.where(has_txn), LOCKS.c.txn_id)
        self.delete_locks_of_txns = delete(LOCKS).where(among(LOCKS.c.txn_id), has_txn)
        # On tables; the parameters are those of `Dialect.with_pairs`, `least_strength` and `limit`.
        strong_enough = LOCK_ROWS.where(LOCKS.c.strength >= bindparam("least_strength"))
        in_places = dialect.with_pairs(strong_enough, LOCKS.c.db_name, LOCKS.c.table_name)
        self.candidates = in_places.limit(bindparam("limit"))
        self.delete_locks = delete(LOCKS).where(among(LOCKS.c.lock_id))
        self.refresh_locks = (
            update(LOCKS).where(among(LOCKS.c.lock_id), LOCKS.c.txn_id == 0).values(last_heartbeat_ms=now_ms)
        )
        outcomes = select(OUTCOMES.c.principal, OUTCOMES.c.call_key)
        self.outcomes = dialect.with_pairs(outcomes, OUTCOMES.c.principal, OUTCOMES.c.call_key)
        self.grant = (
            update(LOCKS)
            .where(among(LOCKS.c.lock_id))
            .values(is_acquired=True, acquired_ms=now_ms, blocked_by_lock=None, blocked_by_component=None)
        )


batch_statements: Final = cache(BatchStatements)


@cache
def over_partition(dialect: Dialect) -> Select[Any]:
    """Locks that contain a partition; `names` has its name, the prefixes of that, and "" for table and database."""
    return LOCK_ROWS.where(_ON_TABLE, dialect.is_in_list(LOCKS.c.partition_name, "names"))


def committed_since(txn_id: int, targets: Iterable[Target], dialect: Dialect) -> Statement:
    """Rows of WRITE_SET_COLUMNS; as two lists, so some of what it finds lies in other databases' tables."""
    targets = [target for target in targets if is_storable(target.db_name) and is_storable(target.table_name or "")]
    values = {
        "the_txn": txn_id,
        "db_names": dialect.bound_list({target.db_name for target in targets}),
        "table_names": dialect.bound_list({target.table_name or "" for target in targets}),
    }
    return Statement(_committed_since(dialect), values)


@cache
def _committed_since(dialect: Dialect) -> Select[Any]:
    return select(*(WRITE_SETS.c[name] for name in WRITE_SET_COLUMNS)).where(
        dialect.is_in_list(WRITE_SETS.c.db_name, "db_names"),
        dialect.is_in_list(WRITE_SETS.c.table_name, "table_names"),
        WRITE_SETS.c.commit_id >= bindparam("the_txn"),
    )
