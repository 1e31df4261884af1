"""Write ids of tables: who gets which, and which of them a reader sees (semantics §5.11)."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from hms_gateway.rpc.structs import MetaException, TxnType
from hms_gateway.txn.ports.txn import Client, TxnReads, TxnWork, TxnWrites
from hms_gateway.txn.rules.locks import TxnId
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.rules.transactions import TxnStatus, open_txn
from hms_gateway.txn.rules.write_ids import (
    ID_MAX,
    InvalidList,
    ValidIds,
    ValidWriteIds,
    allocate,
    parse_valid_txns,
    parse_valid_write_ids,
    write_ids_seen,
)
from hms_gateway.txn.services.settings import TxnService
from hms_gateway.txn.services.transactions import read_open_txns

T = TypeVar("T")

# No table uses up so many, and sums stay within what a database holds.
_SEED_MAX: Final = ID_MAX // 2


class Replicated(msgspec.Struct, frozen=True):
    """Write ids as a replication's source gave them: its policy, and write ids by the transactions' ids there."""

    policy: str
    write_ids: Mapping[int, int]


class WriteIdService(TxnService):
    def allocate(self, table: Target, txn_ids: Sequence[int], *, again: bool = False) -> dict[int, int]:
        """A write id of the table for each transaction, ascending with them; the same one when asked twice.

        `again` gives new ones (a statement that is executed once more). Raises MetaException unless all transactions
        are open and not read-only.
        """
        self._check_count(len(txn_ids))
        return self._write(lambda txns: _allocate(txns, table, txn_ids, again=again))

    def allocate_replicated(self, table: Target, replicated: Replicated) -> dict[int, int]:
        """The source's write ids for the transactions opened here for its own; nothing when some are finished."""
        self._check_count(len(replicated.write_ids))

        def work(txns: TxnWrites) -> dict[int, int]:
            local = txns.replicated(replicated.policy, list(replicated.write_ids))
            if len(local) != len(replicated.write_ids) or not local:
                return {}
            first = min(replicated.write_ids.values())
            if first < 1 or first > _SEED_MAX:
                raise MetaException(f"{first} is not a write id")
            if (txns.last_write_id(table) or 0) < first - 1:
                txns.set_last_write_id(table, first - 1)
            return _allocate(txns, table, list(local.values()), again=False)

        return self._write(work)

    def newest(self, table: Target) -> int:
        """The newest write id the table has given, 0 for none."""
        return self._store.read(lambda snapshot: snapshot.txns.last_write_id(table)) or 0

    def seed(self, table: Target, seed_id: int) -> None:
        """Let the table's next write id be the one behind `seed_id`. Raises MetaException once it has given any."""

        def work(txns: TxnWrites) -> None:
            if txns.last_write_id(table) is not None:
                raise MetaException(f"The initial WriteId of {table} is set already")
            if not 0 <= seed_id <= _SEED_MAX:
                raise MetaException(f"{seed_id} is not a write id to begin with")
            txns.set_last_write_id(table, seed_id)

        self._write(work)

    def valid_write_ids(
        self, tables: Sequence[tuple[str, Target]], valid_txns: str | None, *, identifies: bool = False
    ) -> list[tuple[ValidWriteIds, int | None]]:
        """What a reader sees of each table, which come with the name they are answered under.

        If it `identifies`, each with the id of the table that had the name then; None for a table that was not there.
        Without `valid_txns` the reader sees what is committed now. Raises MetaException for a text that is not a list.
        """
        try:
            given = parse_valid_txns(valid_txns) if valid_txns and valid_txns.strip() else None
        except InvalidList as error:
            raise MetaException(str(error)) from error

        def work(txns: TxnReads) -> list[tuple[ValidWriteIds, int | None]]:
            valid = _valid_now(txns) if given is None else given
            return [
                (_seen(txns, name, table, valid), txns.table_id(table) if identifies else None)
                for name, table in tables
            ]

        return self._store.read(lambda snapshot: work(snapshot.txns))

    def replicate_state(self, table: Target, valid_write_ids: str, client: Client) -> None:
        """Bring a table without write ids to the state of its copy elsewhere: what was open there is aborted here.

        Raises MetaException for a text that is not a list.
        """
        try:
            wanted = parse_valid_write_ids(valid_write_ids).ids
        except InvalidList as error:
            raise MetaException(str(error)) from error
        exceptions = [number for number in wanted.exceptions if number <= wanted.high_water_mark]
        self._check_count(len(exceptions))
        if wanted.high_water_mark > _SEED_MAX:
            raise MetaException(f"{wanted.high_water_mark} is not a write id to begin with")

        def work(txns: TxnWrites) -> None:
            if txns.last_write_id(table) is not None:
                return
            txn_ids = txns.batched(lambda batch: batch.insert_txns(len(exceptions), TxnType.REPL_CREATED, client))
            txns.insert_write_ids(table, dict(zip(txn_ids, exceptions, strict=True)))
            txns.batched(lambda batch: batch.abort_txns(txn_ids, "aborted where the table was replicated from"))
            txns.set_last_write_id(table, wanted.high_water_mark)

        self._write(work)

    def check_open(self, txn_id: int) -> None:
        """Raises NoSuchTxnException, TxnAbortedException."""
        self._store.write(TxnWork(lambda txns: open_txn(txn_id, txns.txn(txn_id)), txn_ids=[txn_id]))


def write_ids_now(txns: TxnReads, name: str, table: Target) -> ValidWriteIds:
    """The write ids of a table that are committed; within the caller's unit of work."""
    return _seen(txns, name, table, _valid_now(txns))


def _allocate(txns: TxnWrites, table: Target, txn_ids: Sequence[int], *, again: bool) -> dict[int, int]:
    wanted = set(txn_ids)
    usable = {
        txn.txn_id
        for txn in txns.txns(sorted(wanted))
        if txn.state is TxnStatus.OPEN and txn.type is not TxnType.READ_ONLY
    }
    if usable != wanted:
        names = ", ".join(f"txnid:{txn_id}" for txn_id in sorted(wanted - usable)[:100])
        raise MetaException(
            f"Write ID allocation failed on {table} as not all input txns in open state or read-only: {names}"
        )
    known = {} if again else txns.write_ids_of(table, sorted(usable))
    last = txns.last_write_id(table) or 0
    given, new_last = allocate(usable, known, last)
    if new_last != last:
        if again:
            txns.delete_write_ids(table, sorted(usable))
        txns.insert_write_ids(table, {TxnId(txn_id): given[txn_id] for txn_id in given if txn_id not in known})
        txns.set_last_write_id(table, new_last)
    return given


def _valid_now(txns: TxnReads) -> ValidIds:
    now = read_open_txns(txns)
    return ValidIds(
        now.high_water_mark,
        tuple(txn.txn_id for txn in now.unfinished if txn.is_open),
        tuple(txn.txn_id for txn in now.unfinished if not txn.is_open),
    )


def _seen(txns: TxnReads, name: str, table: Target, valid: ValidIds) -> ValidWriteIds:
    hidden = txns.hidden_write_ids(table, valid.high_water_mark, valid.exceptions)
    return write_ids_seen(name, valid, txns.last_write_id(table) or 0, hidden)
