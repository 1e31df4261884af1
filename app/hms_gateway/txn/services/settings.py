"""The settings of transactions and locks with Hive's defaults (semantics §5.10, §11)."""

import msgspec


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
