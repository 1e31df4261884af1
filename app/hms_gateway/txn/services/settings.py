"""The settings of transactions, locks and leases, with Hive's defaults (semantics §5.10, §11)."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from hms_gateway.txn.ports.txn import TxnStore, TxnWrites
from hms_gateway.txn.rules.names import too_many

T = TypeVar("T")


class TxnSettings(msgspec.Struct, frozen=True):
    """Times in milliseconds.

    timeout_ms          a transaction or lock without heartbeat for longer is lost (hive.txn.timeout)
    open_txns_max       more are refused (hive.max.open.txns)
    batch_max           transactions one request opens at most (hive.txn.max.open.batch)
    components_max      components of one lock request (the limit lock_components_max)
    txns_per_call_max   transactions one call may name, or one heartbeat range may span (the limit of that name)
    remembered_ms       how long committed transactions are known as such
    victims_remembered_ms  how long those are shown that a deadlock has cost
    victims_max         of these only the newest
    expiry_batch        how many are expired in one unit of work
    administrators      who may take locks away from others
    """

    timeout_ms: int = 300_000
    open_txns_max: int = 100_000
    batch_max: int = 1_000
    components_max: int = 10_000
    txns_per_call_max: int = 1_000_000
    remembered_ms: int = 3_600_000
    victims_remembered_ms: int = 86_400_000
    victims_max: int = 1_000
    expiry_batch: int = 5_000
    administrators: frozenset[str] = frozenset({"admin"})


class TxnService:
    """Calls on a store: load, decide, apply in one unit of work."""

    def __init__(self, store: TxnStore, settings: TxnSettings) -> None:
        self._store = store
        self._settings = settings

    def _write(self, work: Callable[[TxnWrites], T]) -> T:
        return self._store.write(lambda transaction: work(transaction.txns))

    def _check_count(self, count: int) -> None:
        limit = self._settings.txns_per_call_max
        if count > limit:
            raise too_many("transactions", count, limit, "txns_per_call_max")


class LeaseSettings(msgspec.Struct, frozen=True):
    """administrators      who may take leases away from others
    duration_seconds_max   the longest time a lease may last, extensions included
    wait_seconds_max       the longest time a request may wait
    objects_max            objects of one request
    name_bytes_max         of a database's or table's name, and of a partition's; they share an index entry
    poll_seconds           how often a waiting request looks, since it does not learn what other servers do
    forgotten_seconds      a waiting request whose server does not look for so long no longer counts
    """

    administrators: frozenset[str] = frozenset({"admin"})
    duration_seconds_max: int = 86_400
    wait_seconds_max: int = 300
    objects_max: int = 10_000
    name_bytes_max: tuple[int, int] = (256, 2_000)
    poll_seconds: float = 1.0
    forgotten_seconds: float = 10.0
