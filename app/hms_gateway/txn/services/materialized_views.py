"""Materialized views: one transaction at a time rebuilds one, with what was inserted since or anew."""

import msgspec

from hms_gateway.rpc.structs import MetaException
from hms_gateway.rpc.structs.catalogs import key_of_qualified
from hms_gateway.txn.ports.txn import Rebuild, TxnReads, TxnStore, TxnWrites
from hms_gateway.txn.rules.compaction import Compaction, compacted
from hms_gateway.txn.rules.locks import TxnId
from hms_gateway.txn.rules.names import Target, target
from hms_gateway.txn.rules.transactions import TxnStatus
from hms_gateway.txn.rules.write_ids import (
    InvalidList,
    ValidIds,
    ValidWriteIds,
    parse_valid_txn_write_ids,
    parse_valid_txns,
    write_ids_seen,
)
from hms_gateway.txn.services.settings import TxnService


class RebuildService(TxnService):
    def acquire(self, view: Target, txn_id: int) -> bool:
        """Take the view for an open transaction, unless another one that is alive has it."""

        def work(txns: TxnWrites) -> bool:
            if not _is_open(txns, txn_id):
                return False
            held = txns.rebuild(view)
            if held is not None and held.txn_id != txn_id and self._is_alive(txns, held):
                return False
            txns.set_rebuild(view, TxnId(txn_id))
            return True

        return self._write(work)

    def heartbeat(self, view: Target, txn_id: int) -> bool:
        """Keep it; False when the transaction does not have it."""

        def work(txns: TxnWrites) -> bool:
            held = txns.rebuild(view)
            if held is None or held.txn_id != txn_id or not _is_open(txns, txn_id):
                return False
            txns.set_rebuild(view, held.txn_id)
            return True

        return self._write(work)

    def _is_alive(self, txns: TxnWrites, held: Rebuild) -> bool:
        is_silent = held.last_heartbeat_ms < txns.now_ms() - self._settings.timeout_ms
        return not is_silent and _is_open(txns, held.txn_id)


def _is_open(txns: TxnWrites, txn_id: int) -> bool:
    return any(txn.state is TxnStatus.OPEN for txn in txns.txns([txn_id]))


class Invalidation(msgspec.Struct, frozen=True):
    """What happened to the tables of a view since it was built, besides insertions."""

    is_changed: bool
    is_compacted: bool


# Nothing better can be said: the view has to be built anew.
UNKNOWN = Invalidation(is_changed=True, is_compacted=True)


class ViewFreshnessService:
    def __init__(self, store: TxnStore) -> None:
        self._store = store

    def invalidation(self, tables: list[str], seen: str | None, valid_txns: str | None) -> Invalidation:
        """What the tables went through after the write ids `seen`, as far as the transactions of `valid_txns` show it.

        UNKNOWN when the lists do not show it (Hive answers null then, which no client over a network can receive): a
        table that `seen` does not name, no table at all, or another oldest open write id. Raises MetaException for
        texts that are not lists.
        """
        try:
            _, lists = parse_valid_txn_write_ids(seen or "")
            valid = parse_valid_txns(valid_txns)
        except InvalidList as error:
            raise MetaException(str(error)) from error
        by_name = {_target(one.table or ""): one for one in lists}
        wanted = [_target(name) for name in tables]
        if not wanted or any(table not in by_name for table in wanted):
            return UNKNOWN
        return self._store.read(
            lambda snapshot: _joined([_of_table(snapshot.txns, table, by_name[table], valid) for table in wanted])
        )


def _of_table(txns: TxnReads, table: Target, seen: ValidWriteIds, valid: ValidIds) -> Invalidation:
    rows = txns.hidden_write_ids(table, valid.high_water_mark, valid.exceptions)
    now = write_ids_seen(str(table), valid, txns.last_write_id(table) or 0, rows)
    if now.ids.oldest_open != seen.ids.oldest_open:
        return UNKNOWN
    is_changed = any(
        valid.is_valid(txn_id) and not seen.ids.is_valid(write_id) for txn_id, write_id in txns.completed_changes(table)
    )
    return Invalidation(is_changed, any(_hides_changes(one, seen) for one in txns.compactions(compacted(table))))


def _hides_changes(compaction: Compaction, seen: ValidWriteIds) -> bool:
    """Whether the compaction took in writes the view has not seen: how they came about is not known any more."""
    highest = compaction.details.highest_write_id
    return highest is None or not seen.ids.is_valid(highest)


def _joined(each: list[Invalidation]) -> Invalidation:
    return Invalidation(any(one.is_changed for one in each), any(one.is_compacted for one in each))


def _target(name: str) -> Target:
    """`db.table`, or `catalog.db.table` as some clients write it."""
    db_name, _, table_name = name.rpartition(".")
    return target(key_of_qualified(db_name), table_name)
