"""The compaction queue: what moves to where, and what is kept."""

import pytest

from hms_gateway.rpc.structs import CompactionType, MetaException
from hms_gateway.txn.rules.compaction import (
    HISTORY,
    STATE_TEXTS,
    WORKER_TIMEOUT_MS,
    Compaction,
    CompactionDetails,
    CompactionState,
    is_abandoned,
    moved,
    next_for_worker,
    parse_state,
    pending,
    surplus_history,
)
from hms_gateway.txn.rules.names import target

S = CompactionState

# From each state, what a worker or cleaner may do.
MOVES = """
              ready  succeeded  failed  refused  aborted
    initiated no     no         yes     yes      yes
    working   yes    yes        yes     yes      no
    ready     no     yes        yes     yes      no
    failed    no     no         no      no       no
    succeeded no     no         no      no       no
    refused   no     no         no      no       no
    aborted   no     no         no      no       no
"""


def entry(number: int, state: CompactionState, **details: object) -> Compaction:
    made = CompactionDetails(**details)  # type: ignore[arg-type]
    return Compaction(number, target("d", "t"), CompactionType.MAJOR, state, made)


def moves() -> list[tuple[str, str, bool]]:
    header, *rows = (line.split() for line in MOVES.strip().splitlines())
    return [(row[0], to, cell == "yes") for row in rows for to, cell in zip(header, row[1:], strict=True)]


@pytest.mark.parametrize(("state", "to", "is_allowed"), moves())
def test_every_move(state: str, to: str, is_allowed: bool) -> None:
    given = entry(1, S[state.upper()])
    if is_allowed:
        assert moved(given, 1, S[to.upper()], None).state is S[to.upper()]
    else:
        with pytest.raises(MetaException, match="compaction 1 is"):
            moved(given, 1, S[to.upper()], None)


def test_a_worker_that_lost_its_entry_is_refused() -> None:
    given = entry(1, S.WORKING, worker_id="b")
    assert moved(given, 1, S.READY, "b").state is S.READY
    with pytest.raises(MetaException, match="another worker"):
        moved(given, 1, S.READY, "a")


def test_an_entry_that_is_not_there() -> None:
    with pytest.raises(MetaException, match="compaction 9 does not exist"):
        moved(None, 9, S.READY, None)


def test_one_request_at_a_time() -> None:
    entries = [entry(1, S.SUCCEEDED), entry(2, S.READY), entry(3, S.WORKING), entry(4, S.INITIATED)]
    found = pending(entries)
    assert found is not None
    assert found.compaction_id == 3
    assert pending(entries[:2]) is None


def test_workers_take_the_oldest_of_their_pool() -> None:
    entries = [entry(5, S.INITIATED), entry(3, S.INITIATED, pool_name="p"), entry(4, S.INITIATED), entry(1, S.WORKING)]
    taken = [next_for_worker(entries, pool) for pool in (None, "", "p", "q")]
    assert [one and one.compaction_id for one in taken] == [4, 4, 3, None]


def test_history_is_kept_by_state() -> None:
    entries = [entry(number, state) for number, state in enumerate([*S] * 5, 1)]
    surplus = surplus_history(entries)
    kept = [one for one in entries if one.compaction_id not in surplus]
    for state, count in HISTORY.items():
        numbers = sorted(one.compaction_id for one in entries if one.state is state)
        assert [one.compaction_id for one in kept if one.state is state] == numbers[-count:]
    assert sum(one.state in (S.INITIATED, S.WORKING, S.READY) for one in kept) == 15


def test_a_worker_may_keep_an_entry_for_a_day() -> None:
    given = entry(1, S.WORKING, start_ms=1_000)
    assert not is_abandoned(given, 1_000 + WORKER_TIMEOUT_MS)
    assert is_abandoned(given, 1_001 + WORKER_TIMEOUT_MS)
    assert not is_abandoned(entry(1, S.READY, start_ms=0), 10**15)


def test_states_by_letter_and_by_text() -> None:
    for state, text in STATE_TEXTS.items():
        assert parse_state(state.value) is state
        assert parse_state(text.upper()) is state
    assert parse_state("attempted") is S.ATTEMPTED
    assert parse_state("nonsense") is None
