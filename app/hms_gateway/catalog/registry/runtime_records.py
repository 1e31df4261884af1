"""What query engines note in the metastore: runtime statistics, replication metrics, and what transactions wrote."""

from collections.abc import Sequence
from typing import Final

import msgspec

from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.ports.store import Store, Transaction
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.runtime.clock import Clock
from hms_gateway.structs import ReplicationMetrics, RuntimeStat, WriteEventInfo

# hive.metastore.runtime.stats.max.age
_STATISTICS_SECONDS_MAX: Final = 3 * 86_400
# hive.metastore.replication.metrics.maxage
_METRICS_SECONDS_MAX: Final = 7 * 86_400


class RuntimeRecordService:
    """Notes are not part of the catalog: they have no events, and go by themselves when they are old."""

    def __init__(self, store: Store, clock: Clock, settings: MetastoreSettings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings

    def add_runtime_statistic(self, statistic: RuntimeStat | None) -> None:
        """Raises MetaException."""
        given = required(statistic, "runtime statistics")
        weight, payload = required(given.weight, "weight"), required(given.payload, "payload")
        now = self._clock.seconds()
        self._store.write(lambda tx: tx.runtime_records.insert_runtime_statistic(now, weight, payload))

    def runtime_statistics(self, weight_max: int | None, create_time_max: int | None) -> list[RuntimeStat]:
        """The newest first, as many as weigh `weight_max` together; numbers that are not positive set no bound."""
        weight = weight_max if weight_max is not None and weight_max > 0 else None
        up_to = create_time_max if create_time_max is not None and create_time_max > 0 else None
        return self._store.read(lambda snapshot: snapshot.runtime_records.runtime_statistics(up_to, weight))

    def put_metrics(self, metrics: Sequence[ReplicationMetrics] | None) -> None:
        """Note the state of executions; what a later note leaves out stays as it was. Raises MetaException."""
        given = [required(one, "replication metrics") for one in required(metrics, "list of replication metrics")]
        now = self._clock.seconds()

        def work(tx: Transaction) -> None:
            for one in given:
                before = tx.runtime_records.metrics(required(one.scheduledExecutionId, "id of the execution"))
                tx.runtime_records.put_metrics(_updated(before, one), now)

        self._store.write(work)

    def metrics(self, execution_id: int | None, policy: str | None, dump_id: int | None) -> list[ReplicationMetrics]:
        """Those of a policy, or of one of its dumps; without a policy those of one execution. Raises MetaException."""
        if policy is not None:
            return self._store.read(lambda snapshot: snapshot.runtime_records.metrics_of_policy(policy, dump_id))
        wanted = required(execution_id, "policy and id of the execution")
        found = self._store.read(lambda snapshot: snapshot.runtime_records.metrics(wanted))
        return [] if found is None else [found]

    def write_events(self, txn_id: int | None, db_name: str | None, tbl_name: str | None) -> list[WriteEventInfo]:
        """What a transaction noted to have written, in a database or table if one is named. Raises MetaException."""
        wanted = required(txn_id, "transaction")
        database = None if db_name is None else normalize(db_name)
        table = None if tbl_name is None else normalize(tbl_name)
        found = self._store.read(lambda snapshot: snapshot.runtime_records.write_events(wanted))
        return [
            one
            for one in found
            if (database is None or one.database == database) and (table is None or one.table == table)
        ]

    def expire(self) -> int:
        """Forget what is old; how many. Any replica may do it at any time."""
        now = self._clock.seconds()
        return self._store.write(
            lambda tx: tx.runtime_records.delete_notes_before(
                now - _STATISTICS_SECONDS_MAX, now - _METRICS_SECONDS_MAX, now - self._settings.event_seconds_max
            )
        )


def _updated(before: ReplicationMetrics | None, given: ReplicationMetrics) -> ReplicationMetrics:
    if before is None:
        required(given.policy, "policy")
        required(given.dumpExecutionId, "id of the dump")
        return given
    reported = {
        field.name: value for field in given.definition.fields if (value := getattr(given, field.name)) is not None
    }
    return msgspec.structs.replace(before, **reported)
