"""The model of locks and transactions, on histories written as text that are known to be right or wrong.

Each line is a call: when it was made and answered, the client, and in `name(arguments) -> answer` what was said. A `!`
after the arrow is a refusal: its name, and its text.
"""

import ast

import pytest

from tests.linearizability.checks import check_locks
from tests.linearizability.history import NEVER, Call, Failure
from tests.linearizability.search import NotLinearizable

X_T = '(0, False, ((("d", "t", None), "EXCLUSIVE", None),))'
S_T = '(0, False, ((("d", "t", None), "SHARED_READ", None),))'
X_P1 = '(0, False, ((("d", "t", "p=1"), "EXCLUSIVE", None),))'
X_BELOW_P1 = '(0, False, ((("d", "t", "p=1/q=1"), "EXCLUSIVE", None),))'
X_P2 = '(0, False, ((("d", "t", "p=2"), "EXCLUSIVE", None),))'

BOTH = '(0, False, ((("d", "t", "p=1"), "EXCLUSIVE", None), (("d", "t", "p=2"), "EXCLUSIVE", None)))'
COLLISION = "Aborting [txnid:1,2] due to a write conflict on d/t committed by [txnid:2,2] u/u"


def of_txn(txn_id: int, table: str | None, kind: str = "EXCLUSIVE", operation: str | None = None) -> str:
    return str((txn_id, False, ((("d", table, None), kind, operation),)))


def history(text: str) -> list[Call]:
    return [_call(line.strip(), number) for number, line in enumerate(text.strip().splitlines())]


def _call(line: str, number: int) -> Call:
    """`3..7 name(arguments) -> answer`; without times, one call after the other."""
    times, _, rest = line.partition(" ") if line[0].isdigit() else ("", "", line)
    first, _, last = times.partition("..")
    invoked = int(first) if first else number * 1000
    returned = NEVER if last == "never" else int(last) if last else invoked + 1
    made, _, told = rest.partition(" -> ")
    name, _, arguments = made.partition("(")
    answer = Failure(*told[1:].split(" ", 1)) if told.startswith("!") else ast.literal_eval(told or "None")
    return Call(0, number, name, _tuple(ast.literal_eval("(" + arguments)), answer, invoked, returned, returned)


def _tuple(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)


def is_right(text: str) -> bool:
    try:
        check_locks(history(text), is_alone=True)
    except NotLinearizable:
        return False
    return True


RIGHT = {
    "readers together": f"""
        lock{S_T} -> (1, "ACQUIRED")
        lock{S_T} -> (2, "ACQUIRED")
        show_locks() -> ((1, 1, 0, ("d", "t", None), True), (2, 1, 0, ("d", "t", None), True))
        """,
    "a writer waits and is let in": f"""
        lock{S_T} -> (1, "ACQUIRED")
        lock{X_T} -> (2, "WAITING")
        check_lock(2) -> "WAITING"
        unlock(1)
        check_lock(2) -> "ACQUIRED"
        """,
    "changes beside and under one's own lock, and after it": f"""
        lock{X_P1} -> (1, "ACQUIRED")
        change(("d", "t", "p=2"), ())
        change(("d", "t", None), (1,))
        change(("d", "t", None), ()) -> !LockedByAnother d.t is locked
        unlock(1)
        change(("d", "t", None), ())
        count_changes() -> 3
        """,
    "a change while the lock is asked for": f"""
        0..9 lock{X_T} -> (1, "ACQUIRED")
        1..8 change(("d", "t", None), ())
        """,
    "partitions apart": f"""
        lock{X_P1} -> (1, "ACQUIRED")
        lock{X_P2} -> (2, "ACQUIRED")
        lock{S_T} -> (3, "WAITING")
        """,
    "a prefix and what lies below it": f"""
        lock{X_P1} -> (1, "ACQUIRED")
        lock{X_BELOW_P1} -> (2, "WAITING")
        unlock(1)
        check_lock(2) -> "ACQUIRED"
        lock{X_P1} -> (3, "WAITING")
        lock{X_P2} -> (4, "ACQUIRED")
        """,
    "unlocking overlaps with being let in": f"""
        0..1 lock{X_T} -> (1, "ACQUIRED")
        2..9 unlock(1)
        3..5 lock{X_T} -> (2, "ACQUIRED")
        """,
    "a transaction ends with its locks": f"""
        open(1) -> (1,)
        lock{of_txn(1, "t")} -> (1, "ACQUIRED")
        unlock(1) -> !TxnOpen it is open
        commit(1, True, False)
        commit(1, True, False)
        show_locks() -> ()
        abort(1) -> !NoSuchTxn committed
        """,
    "the first to commit wins": f"""
        open(2) -> (1, 2)
        lock{of_txn(1, "t", "SHARED_READ", "UPDATE")} -> (1, "ACQUIRED")
        lock{of_txn(2, "t", "SHARED_READ", "UPDATE")} -> (2, "ACQUIRED")
        commit(2, True, False)
        commit(1, True, False) -> !TxnAborted {COLLISION}
        open_txns(1) -> (2, ((1, False),))
        """,
    "a deadlock costs the youngest": f"""
        open(2) -> (1, 2)
        lock{of_txn(1, "t")} -> (1, "ACQUIRED")
        lock{of_txn(2, "u")} -> (2, "ACQUIRED")
        lock{of_txn(2, "t")} -> (3, "WAITING")
        lock{of_txn(1, "u")} -> (4, "ACQUIRED")
        check_lock(3) -> !TxnAborted Transaction txnid:2 already aborted: deadlock with txnid:1, closed on d.u
        check_lock(2) -> !NoSuchLock gone
        """,
    "a transaction passes who waits for it": f"""
        open(2) -> (1, 2)
        lock{of_txn(1, "t")} -> (1, "ACQUIRED")
        lock{of_txn(2, None)} -> (2, "WAITING")
        lock{of_txn(1, "u")} -> (3, "ACQUIRED")
        check_lock(2) -> "WAITING"
        commit(1, True, False)
        check_lock(2) -> "ACQUIRED"
        """,
    "a reader that becomes a writer passes a writer": f"""
        open(1) -> (1,)
        lock{of_txn(1, "t", "SHARED_READ")} -> (1, "ACQUIRED")
        lock{X_T} -> (2, "WAITING")
        lock{of_txn(1, "t")} -> (3, "ACQUIRED")
        """,
    "passing who waits for what one is given at the same time": f"""
        0..1 open(2) -> (1, 2)
        2..3 lock{S_T} -> (1, "ACQUIRED")
        4..5 lock{of_txn(1, "t")} -> (2, "WAITING")
        6..7 lock{of_txn(2, None)} -> (3, "WAITING")
        8..9 unlock(1)
        11..20 check_lock(2) -> "ACQUIRED"
        10..21 lock{of_txn(1, "u")} -> (4, "ACQUIRED")
        """,
    "who waits for nobody is not passed": f"""
        open(2) -> (1, 2)
        lock{of_txn(1, "t")} -> (1, "ACQUIRED")
        lock{of_txn(2, "u")} -> (2, "ACQUIRED")
        lock{of_txn(0, None)} -> (3, "WAITING")
        lock{of_txn(2, "v")} -> (4, "ACQUIRED")
        commit(2, True, False)
        lock{of_txn(0, "w")} -> (5, "WAITING")
        """,
    "a lost lock call shows later": f"""
        0..never lock{X_T}
        5..6 lock{S_T} -> (2, "WAITING")
        7..8 show_locks() -> ((1, 1, 0, ("d", "t", None), True), (2, 1, 0, ("d", "t", None), False))
        """,
    "a lost lock call shows later, and was before another that has nothing to do with it": f"""
        0..never lock{of_txn(0, "u")}
        1..2 lock{of_txn(0, "v")} -> (2, "ACQUIRED")
        5..6 lock{of_txn(0, "w")} -> (3, "ACQUIRED")
        7..8 show_locks() -> ((1, 1, 0, ("d", "u", None), True), (2, 1, 0, ("d", "v", None), True), \
(3, 1, 0, ("d", "w", None), True))
        """,
    "a deadlock costs one that is dead": f"""
        0..1 open(2) -> (1, 2)
        2..3 lock{of_txn(1, "t")} -> (1, "ACQUIRED")
        4..5 lock{of_txn(2, "u")} -> (2, "ACQUIRED")
        6..7 lock{of_txn(2, "v")} -> (3, "ACQUIRED")
        8..9 lock{of_txn(0, "v")} -> (4, "WAITING")
        10..11 lock{of_txn(2, "t")} -> (5, "WAITING")
        12..15 lock{of_txn(1, "u")} -> (6, "ACQUIRED")
        13..14 check_lock(4) -> "ACQUIRED"
        16..17 open_txns(1) -> (2, ((1, True), (2, False)))
        """,
    "a lost commit may or may not be one": f"""
        0..1 open(1) -> (1,)
        2..3 lock{of_txn(1, "t")} -> (1, "ACQUIRED")
        4..never commit(1, True, False)
        5..6 lock{X_T} -> (2, "WAITING")
        7..8 check_lock(2) -> "ACQUIRED"
        """,
    "write ids in order": """
        open(2) -> (1, 2)
        allocate("t", (2,)) -> ((2, 1),)
        allocate("t", (1, 2)) -> ((1, 2), (2, 1))
        abort(2)
        valid_write_ids("t") -> (2, (2,), (1,))
        """,
}

WRONG = {
    "a lost lock call had an id that was given before": f"""
        0..1 lock{of_txn(0, "v")} -> (2, "ACQUIRED")
        2..never lock{of_txn(0, "u")}
        3..4 lock{of_txn(0, "w")} -> (3, "ACQUIRED")
        5..6 show_locks() -> ((1, 1, 0, ("d", "u", None), True), (2, 1, 0, ("d", "v", None), True), \
(3, 1, 0, ("d", "w", None), True))
        """,
    "a lost lock call had another's place": f"""
        0..never lock{of_txn(0, "u")}
        1..2 lock{of_txn(0, "v")} -> (2, "ACQUIRED")
        3..4 show_locks() -> ((1, 1, 0, ("d", "w", None), True), (2, 1, 0, ("d", "v", None), True))
        """,
    "two writers": f"""
        lock{X_T} -> (1, "ACQUIRED")
        lock{X_T} -> (2, "ACQUIRED")
        """,
    "a part beside the whole": f"""
        lock{X_T} -> (1, "ACQUIRED")
        lock{X_P1} -> (2, "ACQUIRED")
        """,
    "a reader overtakes a waiting writer": f"""
        lock{S_T} -> (1, "ACQUIRED")
        lock{X_T} -> (2, "WAITING")
        lock{S_T} -> (3, "ACQUIRED")
        """,
    "a reader that holds something passes a waiting writer": f"""
        open(1) -> (1,)
        lock{of_txn(1, "u")} -> (1, "ACQUIRED")
        lock{S_T} -> (2, "ACQUIRED")
        lock{X_T} -> (3, "WAITING")
        lock{of_txn(1, "t", "SHARED_READ")} -> (4, "ACQUIRED")
        """,
    "queueing behind who waits for oneself": f"""
        open(2) -> (1, 2)
        lock{of_txn(1, "t")} -> (1, "ACQUIRED")
        lock{of_txn(2, None)} -> (2, "WAITING")
        lock{of_txn(1, "u")} -> (3, "WAITING")
        """,
    "a deadlock with who could be passed": f"""
        open(2) -> (1, 2)
        lock{of_txn(1, "t")} -> (1, "ACQUIRED")
        lock{of_txn(2, None)} -> (2, "WAITING")
        lock{of_txn(1, "u")} -> (3, "ACQUIRED")
        check_lock(2) -> !TxnAborted Transaction txnid:2 already aborted: deadlock with txnid:1, closed on d.u
        """,
    "one without a transaction passes who waits for its client": f"""
        lock{X_P1} -> (1, "ACQUIRED")
        lock{X_T} -> (2, "WAITING")
        lock{X_P2} -> (3, "ACQUIRED")
        """,
    "who was passed is let in too early": f"""
        open(2) -> (1, 2)
        lock{of_txn(1, "t")} -> (1, "ACQUIRED")
        lock{of_txn(2, None)} -> (2, "WAITING")
        lock{of_txn(1, "u")} -> (3, "ACQUIRED")
        check_lock(2) -> "ACQUIRED"
        """,
    "waiting for nothing": f"""
        lock{X_T} -> (1, "ACQUIRED")
        unlock(1)
        lock{X_T} -> (2, "WAITING")
        """,
    "let in while another holds it": f"""
        lock{S_T} -> (1, "ACQUIRED")
        lock{X_T} -> (2, "WAITING")
        check_lock(2) -> "ACQUIRED"
        """,
    "half of a request": f"""
        lock{X_P1} -> (1, "ACQUIRED")
        lock{BOTH} -> (2, "WAITING")
        show_locks() -> ((1, 1, 0, ("d", "t", "p=1"), True), (2, 1, 0, ("d", "t", "p=1"), False), \
(2, 2, 0, ("d", "t", "p=2"), True))
        """,
    "a prefix beside what lies below it": f"""
        lock{X_BELOW_P1} -> (1, "ACQUIRED")
        lock{X_P1} -> (2, "ACQUIRED")
        """,
    "an id of the past": f"""
        lock{S_T} -> (5, "ACQUIRED")
        lock{S_T} -> (4, "ACQUIRED")
        """,
    "a lock is forgotten": f"""
        lock{X_T} -> (1, "ACQUIRED")
        show_locks() -> ()
        """,
    "a lock stays behind its transaction": f"""
        open(1) -> (1,)
        lock{of_txn(1, "t")} -> (1, "ACQUIRED")
        commit(1, True, False)
        show_locks() -> ((1, 1, 1, ("d", "t", None), True),)
        """,
    "a commit is lost": """
        open(1) -> (1,)
        commit(1, True, False)
        open_txns(1) -> (1, ((1, True),))
        """,
    "a commit is undone": """
        open(1) -> (1,)
        commit(1, True, False)
        open_txns(1) -> (1, ((1, False),))
        """,
    "an abort is undone": """
        open(1) -> (1,)
        abort(1)
        commit(1, True, False)
        """,
    "both committers win": f"""
        open(2) -> (1, 2)
        lock{of_txn(1, "t", "SHARED_READ", "UPDATE")} -> (1, "ACQUIRED")
        lock{of_txn(2, "t", "SHARED_READ", "UPDATE")} -> (2, "ACQUIRED")
        commit(2, True, False)
        commit(1, True, False)
        """,
    "a collision with nobody": f"""
        open(2) -> (1, 2)
        lock{of_txn(1, "t", "SHARED_READ", "UPDATE")} -> (1, "ACQUIRED")
        commit(1, True, False) -> !TxnAborted {COLLISION}
        """,
    "a deadlock costs the eldest": f"""
        open(2) -> (1, 2)
        lock{of_txn(1, "t")} -> (1, "ACQUIRED")
        lock{of_txn(2, "u")} -> (2, "ACQUIRED")
        lock{of_txn(2, "t")} -> (3, "WAITING")
        lock{of_txn(1, "u")} -> !TxnAborted Transaction txnid:1 already aborted: deadlock with txnid:2, closed on d.u
        """,
    "a deadlock lasts": f"""
        open(2) -> (1, 2)
        lock{of_txn(1, "t")} -> (1, "ACQUIRED")
        lock{of_txn(2, "u")} -> (2, "ACQUIRED")
        lock{of_txn(1, "u")} -> (3, "WAITING")
        lock{of_txn(2, "t")} -> (4, "WAITING")
        """,
    "the wrong one is blamed for a deadlock": f"""
        open(3) -> (1, 2, 3)
        lock{of_txn(1, "t")} -> (1, "ACQUIRED")
        lock{of_txn(2, "u")} -> (2, "ACQUIRED")
        lock{of_txn(1, "u")} -> (3, "WAITING")
        lock{of_txn(2, "t")} -> !TxnAborted Transaction txnid:2 already aborted: deadlock with txnid:3, closed on d.t
        """,
    "a change under another's lock": f"""
        lock{X_BELOW_P1} -> (1, "ACQUIRED")
        change(("d", "t", "p=1"), ())
        """,
    "a change is refused for nothing": f"""
        lock{X_P1} -> (1, "ACQUIRED")
        unlock(1)
        change(("d", "t", "p=1"), ()) -> !LockedByAnother d.t/p=1 is locked
        """,
    "a change that is seen late": f"""
        0..9 change(("d", "t", None), ())
        1..2 count_changes() -> 0
        3..4 lock{X_T} -> (1, "ACQUIRED")
        5..6 count_changes() -> 0
        """,
    "an abort without a reason": f"""
        open(2) -> (1, 2)
        lock{of_txn(1, "t")} -> (1, "ACQUIRED")
        lock{of_txn(2, "u")} -> !TxnAborted Transaction txnid:2 already aborted: deadlock with txnid:1, closed on d.t
        """,
    "a transaction id is skipped": """
        open(1) -> (1,)
        open(1) -> (3,)
        """,
    "a lost call takes effect and is taken back": f"""
        0..never lock{X_T}
        5..6 lock{S_T} -> (2, "WAITING")
        7..8 show_locks() -> ((1, 1, 0, ("d", "t", None), True), (2, 1, 0, ("d", "t", None), False))
        9..10 show_locks() -> ((2, 1, 0, ("d", "t", None), False),)
        """,
    "a write id is given twice": """
        open(2) -> (1, 2)
        allocate("t", (1,)) -> ((1, 1),)
        allocate("t", (2,)) -> ((2, 1),)
        """,
    "a write id changes": """
        open(1) -> (1,)
        allocate("t", (1,)) -> ((1, 1),)
        allocate("t", (1,)) -> ((1, 2),)
        """,
    "an open write is visible": """
        open(1) -> (1,)
        allocate("t", (1,)) -> ((1, 1),)
        valid_write_ids("t") -> (1, (), ())
        """,
    "an aborted write is visible": """
        open(1) -> (1,)
        allocate("t", (1,)) -> ((1, 1),)
        abort(1)
        valid_write_ids("t") -> (1, (), ())
        """,
}


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    """Without the search that takes no shortcut: it comes to no end where a history is long."""
    check_locks(history(RIGHT[name]), is_alone=True, is_thorough=False)


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    assert not is_right(WRONG[name])


@pytest.mark.parametrize("name", WRONG)
def test_wrong_only_in_its_last_call(name: str) -> None:
    """So that each is wrong for the reason it says."""
    lines = WRONG[name].strip().splitlines()
    assert is_right("\n".join(lines[:-1]))
