"""Whether the histories that client processes wrote are right."""

from collections.abc import Sequence
from itertools import pairwise

from tests.linearizability.history import Call, answered
from tests.linearizability.lease_model import LeaseModel, in_steps
from tests.linearizability.lock_model import LockModel
from tests.linearizability.numbering import Told, check_dense, check_order
from tests.linearizability.search import STATES_MAX, linearization


def check_locks(
    calls: Sequence[Call], *, is_alone: bool, states_max: Sequence[int] = STATES_MAX, is_thorough: bool = True
) -> list[Call]:
    """The order in which the calls of one world happened. Raises as `linearization`, whose options the last two are."""
    in_order = [
        sorted(answered(calls, "open"), key=lambda call: call.answer[0]),
        sorted(answered(calls, "lock"), key=lambda call: call.answer[0]),
    ]
    earlier = [pair for group in in_order for pair in pairwise(group)]
    return linearization(calls, LockModel(calls, is_alone=is_alone), earlier, states_max, is_thorough=is_thorough)


def check_ids(calls: Sequence[Call], *, is_dense: bool) -> None:
    """Ids of transactions and locks, over all worlds together. Raises NotInOrder."""
    check_order(
        [
            *(
                Told(txn_id, call.invoked, call.returned)
                for call in answered(calls, "open")
                for txn_id in call.answer[-1:]
            ),
            *(Told(call.answer[0], call.invoked, call.returned, is_new=False) for call in answered(calls, "open_txns")),
        ]
    )
    check_order(Told(call.answer[0], call.invoked, call.returned) for call in answered(calls, "lock"))
    opened = [txn_id for call in answered(calls, "open") for txn_id in call.answer]
    if is_dense:
        check_dense(opened, 1)
    for table, given in _write_ids(calls).items():
        by_id = {write_id: txn_id for txn_id, write_id in given}
        assert len(by_id) == len({txn_id for txn_id, _ in given}), f"{table}: a write id was given twice"
        check_dense(by_id, 1)


def _write_ids(calls: Sequence[Call]) -> dict[tuple[int, str], set[tuple[int, int]]]:
    found: dict[tuple[int, str], set[tuple[int, int]]] = {}
    for call in answered(calls, "allocate"):
        found.setdefault((call.world, call.arguments[0]), set()).update(call.answer)
    return found


def check_leases(calls: Sequence[Call]) -> list[Call]:
    """The order in which the calls of one world happened. Raises NotLinearizable."""
    steps, earlier = in_steps(calls)
    granted = [call for call in answered(steps, "grab") if call.answer[0] == "granted"]
    placed = [call for call in answered(steps, "take_place") if not call.arguments[2]]
    for group in (granted, placed):
        earlier += pairwise(sorted(group, key=lambda call: call.answer[1]))
    return linearization(steps, LeaseModel(steps), earlier)


def check_lease_ids(calls: Sequence[Call]) -> None:
    """Ids of leases, tickets and changes, over all worlds together. Raises NotInOrder."""
    grabs = answered(calls, "grab")
    granted = [call for call in grabs if call.answer[0] == "granted"]
    placed = [call for call in grabs if call.answer[0] == "waits" and not call.arguments[2]]
    for group in (granted, placed):
        check_order(Told(call.answer[1], call.invoked, call.returned) for call in group)
    check_dense((call.answer[1] for call in granted), 1)
    check_versions(calls)


def check_versions(calls: Sequence[Call]) -> None:
    """The numbers of changes, and the newest one as readers see it. Raises NotInOrder."""
    written = answered(calls, "write")
    seen = answered(calls, "version")
    check_order(
        [
            *(Told(call.answer, call.invoked, call.returned) for call in written),
            *(Told(call.answer, call.invoked, call.returned, is_new=False) for call in seen),
        ]
    )
    check_dense((call.answer for call in written), 1)
