"""The compaction queue: states, who may move an entry on, and how much history is kept (semantics §5.12)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from hms_gateway.rpc.structs import CompactionType, MetaException
from hms_gateway.txn.rules.names import Target

WORKER_TIMEOUT_MS: Final = 86_400_000


class CompactionState(StrEnum):
    """As stored. INITIATED, WORKING and READY are in the queue, the others are history."""

    INITIATED = "i"
    WORKING = "w"
    READY = "r"
    FAILED = "f"
    SUCCEEDED = "s"
    ATTEMPTED = "a"
    REFUSED = "c"
    ABORTED = "x"


# As clients get them; 2.3 called ATTEMPTED "attempted".
STATE_TEXTS: Final = {
    CompactionState.INITIATED: "initiated",
    CompactionState.WORKING: "working",
    CompactionState.READY: "ready for cleaning",
    CompactionState.FAILED: "failed",
    CompactionState.SUCCEEDED: "succeeded",
    CompactionState.ATTEMPTED: "did not initiate",
    CompactionState.REFUSED: "refused",
    CompactionState.ABORTED: "aborted",
}

# How many of each are kept for a target.
HISTORY: Final = {
    CompactionState.SUCCEEDED: 3,
    CompactionState.FAILED: 3,
    CompactionState.ATTEMPTED: 2,
    CompactionState.REFUSED: 2,
    CompactionState.ABORTED: 3,
}

# From which states each call of a worker or cleaner moves an entry on.
_FROM: Final[Mapping[CompactionState, frozenset[CompactionState]]] = {
    CompactionState.READY: frozenset({CompactionState.WORKING}),
    CompactionState.SUCCEEDED: frozenset({CompactionState.READY, CompactionState.WORKING}),
    CompactionState.FAILED: frozenset({CompactionState.INITIATED, CompactionState.WORKING, CompactionState.READY}),
    CompactionState.REFUSED: frozenset({CompactionState.INITIATED, CompactionState.WORKING, CompactionState.READY}),
    CompactionState.ABORTED: frozenset({CompactionState.INITIATED}),
}


class CompactionDetails(msgspec.Struct, frozen=True):
    """What is only handed on. Times in milliseconds; `end_ms` is set for history."""

    run_as: str | None = None
    properties: Mapping[str, str] | None = None
    worker_id: str | None = None
    worker_version: str | None = None
    initiator_id: str | None = None
    initiator_version: str | None = None
    pool_name: str | None = None
    bucket_count: int | None = None
    order_by: str | None = None
    enqueued_ms: int | None = None
    start_ms: int | None = None
    end_ms: int | None = None
    committed_ms: int | None = None
    highest_write_id: int | None = None
    txn_id: int | None = None
    next_txn_id: int | None = None
    error_message: str | None = None
    hadoop_job_id: str | None = None
    has_too_many_aborts: bool = False
    has_old_abort: bool = False
    retry_retention_ms: int = 0


class Compaction(msgspec.Struct, frozen=True):
    compaction_id: int
    target: Target
    type: CompactionType
    state: CompactionState
    details: CompactionDetails = msgspec.field(default_factory=CompactionDetails)

    def with_details(self, **changed: object) -> "Compaction":
        return msgspec.structs.replace(self, details=msgspec.structs.replace(self.details, **changed))


class CompactionFilter(msgspec.Struct, frozen=True):
    """All that are set must be equal."""

    compaction_id: int | None = None
    db_name: str | None = None
    table_name: str | None = None
    partition_name: str | None = None
    type: CompactionType | None = None
    states: frozenset[CompactionState] | None = None
    target: Target | None = None


def compacted(table: Target) -> CompactionFilter:
    """The entries of a table and its partitions whose compaction is done."""
    states = frozenset({CompactionState.READY, CompactionState.SUCCEEDED})
    return CompactionFilter(db_name=table.db_name, table_name=table.table_name, states=states)


def pending(entries: Iterable[Compaction]) -> Compaction | None:
    """The entry of a target that is queued or being worked on: another request changes nothing then."""
    waiting = (CompactionState.INITIATED, CompactionState.WORKING)
    fitting = (entry for entry in entries if entry.state in waiting)
    return min(fitting, key=lambda entry: entry.compaction_id, default=None)


def next_for_worker(entries: Iterable[Compaction], pool_name: str | None) -> Compaction | None:
    """The oldest queued entry of the worker's pool; a worker without a pool takes those without one."""
    fitting = (
        entry
        for entry in entries
        if entry.state is CompactionState.INITIATED and (entry.details.pool_name or None) == (pool_name or None)
    )
    return min(fitting, key=lambda entry: entry.compaction_id, default=None)


def moved(entry: Compaction | None, compaction_id: int, state: CompactionState, worker_id: str | None) -> Compaction:
    """The entry in its next state. Raises MetaException when it is not there, not in a state before that, or has been
    given to another worker since.
    """
    if entry is None:
        raise MetaException(f"compaction {compaction_id} does not exist")
    if entry.state not in _FROM[state]:
        raise MetaException(
            f"compaction {compaction_id} is {STATE_TEXTS[entry.state]} and cannot become {STATE_TEXTS[state]}"
        )
    holder = entry.details.worker_id
    if entry.state is CompactionState.WORKING and worker_id and holder and worker_id != holder:
        raise MetaException(f"compaction {compaction_id} has been given to another worker")
    return msgspec.structs.replace(entry, state=state)


def is_abandoned(entry: Compaction, now_ms: int) -> bool:
    """Whether its worker has had it for so long that another one should."""
    return entry.state is CompactionState.WORKING and (entry.details.start_ms or 0) < now_ms - WORKER_TIMEOUT_MS


def surplus_history(entries: Iterable[Compaction]) -> list[int]:
    """Ids of the entries of one target that are older than the history kept of their state."""
    by_state: dict[CompactionState, list[int]] = defaultdict(list)
    for entry in entries:
        if entry.state in HISTORY:
            by_state[entry.state].append(entry.compaction_id)
    return [
        compaction_id
        for state, ids in by_state.items()
        for compaction_id in sorted(ids, reverse=True)[HISTORY[state] :]
    ]


def parse_state(text: str) -> CompactionState | None:
    """A state by its letter or its text; None for neither."""
    wanted = text.strip().lower()
    if wanted == "attempted":
        return CompactionState.ATTEMPTED
    return next((state for state, shown in STATE_TEXTS.items() if wanted in (shown, state.value)), None)
