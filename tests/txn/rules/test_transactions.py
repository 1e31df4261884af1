"""States of a transaction, and whose changes collide."""

from collections.abc import Callable

import pytest

from hms_gateway.rpc.structs import DataOperationType, MetaException, ThriftException, TxnType
from hms_gateway.txn.rules.locks import TxnId
from hms_gateway.txn.rules.names import target
from hms_gateway.txn.rules.transactions import (
    CommittedWrite,
    Txn,
    TxnOperation,
    TxnStatus,
    Write,
    batch_size,
    changes_to_check,
    collision,
    collision_text,
    dynamic_operation,
    may_open,
    needs_abort,
    needs_commit,
    open_txn,
    recorded_operation,
)

# Semantics §5.4, with §13 row 18: a committed transaction is known as such whatever it did.
STATES = """
             open    aborted                                      committed                                           unknown
    use      go on   TxnAborted Transaction txnid:7 already aborted  NoSuchTxn Transaction txnid:7 is already committed.  NoSuchTxn No such transaction txnid:7
    commit   go on   TxnAborted Transaction txnid:7 already aborted  nothing                                             NoSuchTxn No such transaction txnid:7
    abort    go on   nothing                                      NoSuchTxn Transaction txnid:7 is already committed.  NoSuchTxn No such transaction txnid:7
"""  # noqa: E501
CALLS: dict[str, Callable[[int, Txn | None], object]] = {"use": open_txn, "commit": needs_commit, "abort": needs_abort}


def txn(state: TxnStatus, reason: str | None = None) -> Txn:
    return Txn(TxnId(7), state, TxnType.DEFAULT, "u", "h", None, 0, 0, TxnId(7), reason)


def cells() -> list[tuple[str, str, str]]:
    header, *rows = ([part for part in line.strip().split("  ") if part] for line in STATES.strip("\n").splitlines())
    states = [name.strip() for name in header]
    return [(row[0], state, cell.strip()) for row in rows for state, cell in zip(states, row[1:], strict=True)]


@pytest.mark.parametrize(("call", "state", "cell"), cells())
def test_every_cell_of_the_state_table(call: str, state: str, cell: str) -> None:
    known = None if state == "unknown" else txn(TxnStatus[state.upper()])
    if cell in ("go on", "nothing"):
        assert bool(CALLS[call](7, known)) == (cell == "go on")
        return
    with pytest.raises(ThriftException) as raised:
        CALLS[call](7, known)
    assert f"{type(raised.value).__name__.removesuffix('Exception')} {raised.value.message}" == cell


def test_whoever_was_aborted_by_the_server_is_told_why() -> None:
    with pytest.raises(ThriftException, match="already aborted: deadlock with txnid:3"):
        open_txn(7, txn(TxnStatus.ABORTED, "deadlock with txnid:3"))


@pytest.mark.parametrize(("asked", "size"), [(0, 0), (1, 1), (1000, 1000), (2000, 1000)])
def test_a_batch_is_silently_cut(asked: int, size: int) -> None:
    assert batch_size(asked, 1000) == size


def test_a_negative_batch_is_refused() -> None:
    with pytest.raises(MetaException, match="Invalid input for number of txns: -1"):
        batch_size(-1, 1000)


@pytest.mark.parametrize(
    ("count", "is_refusing", "admits"), [(99, False, True), (100, False, False), (90, True, False), (89, True, True)]
)
def test_once_refused_a_tenth_has_to_become_free(count: int, is_refusing: bool, admits: bool) -> None:
    assert may_open(count, 100, is_refusing) is admits


D = DataOperationType


@pytest.mark.parametrize(
    ("operation", "is_transactional", "is_dynamic", "recorded"),
    [
        (D.INSERT, None, False, "i"),
        (D.UPDATE, True, False, "u"),
        (D.DELETE, None, False, "d"),
        (D.UPDATE, None, True, None),
        (D.UPDATE, False, False, None),
        (D.UNSET, False, False, None),
        (D.SELECT, None, False, None),
        (D.NO_TXN, None, False, None),
    ],
)
def test_what_a_lock_records(
    operation: int, is_transactional: bool | None, is_dynamic: bool, recorded: str | None
) -> None:
    assert recorded_operation(operation, is_transactional, is_dynamic) == recorded


@pytest.mark.parametrize("operation", [None, D.UNSET, 99])
def test_a_transaction_has_to_say_what_it_does(operation: int | None) -> None:
    with pytest.raises(MetaException):
        recorded_operation(operation, None, False)


@pytest.mark.parametrize(("operation", "recorded"), [(None, "u"), (D.UNSET, "u"), (D.SELECT, "s"), (D.DELETE, "d")])
def test_what_dynamic_partitions_record(operation: int | None, recorded: str) -> None:
    assert dynamic_operation(operation) == recorded


@pytest.mark.parametrize("operation", [D.NO_TXN, 77])
def test_dynamic_partitions_of_no_transaction(operation: int) -> None:
    with pytest.raises(MetaException):
        dynamic_operation(operation)


# Mine, theirs, whether they collide for 2.3, and for Hive 4 with exclWriteEnabled=false (semantics §5.6).
COLLISIONS = """
    u t      u t      yes  yes
    u t      d t      yes  yes
    d t      u t      yes  yes
    d t      d t      no   yes
    u t/p=1  u t/p=1  yes  yes
    u t/p=1  u t/p=2  no   no
    u t      u t/p=1  no   no
    u t/p=1  u t      no   no
    u t      u v      no   no
"""


def write(operation: str, name: str) -> Write:
    table, _, partition = name.partition("/")
    return Write(target("d", table, partition), TxnOperation(operation))


@pytest.mark.parametrize("line", COLLISIONS.strip().splitlines())
@pytest.mark.parametrize("is_strict", [False, True])
def test_whose_changes_collide(line: str, is_strict: bool) -> None:
    my_operation, my_name, operation, name, loose, strict = line.split()
    theirs = write(operation, name)
    committed = [CommittedWrite(TxnId(5), TxnId(12), theirs.target, theirs.operation)]
    found = collision(TxnId(10), [write(my_operation, my_name)], committed, is_strict=is_strict)
    assert (found is not None) == ((strict if is_strict else loose) == "yes")


@pytest.mark.parametrize(("commit_id", "collides"), [(9, False), (10, True), (11, True)])
def test_only_who_committed_after_my_start_counts(commit_id: int, collides: bool) -> None:
    mine = write("u", "t")
    committed = [CommittedWrite(TxnId(5), TxnId(commit_id), mine.target, mine.operation)]
    assert (collision(TxnId(10), [mine], committed, is_strict=False) is not None) is collides


def test_my_own_changes_do_not_collide_with_me() -> None:
    mine = write("u", "t")
    assert collision(TxnId(10), [mine], [CommittedWrite(TxnId(10), TxnId(12), *_(mine))], is_strict=True) is None


def _(write: Write) -> tuple:  # type: ignore[type-arg]
    return write.target, write.operation


def test_inserts_are_not_checked_and_nothing_twice() -> None:
    writes = [write("i", "t"), write("u", "t"), write("u", "t"), write("s", "t"), write("d", "t")]
    assert changes_to_check(writes) == [write("u", "t"), write("d", "t")]


@pytest.mark.parametrize(("name", "place"), [("t", "d/t"), ("t/p=1", "d/t/p=1")])
def test_a_collision_in_words(name: str, place: str) -> None:
    mine = write("u", name)
    other = CommittedWrite(TxnId(5), TxnId(11), mine.target, TxnOperation.DELETE)
    assert collision_text(TxnId(10), TxnId(12), mine, other) == (
        f"Aborting [txnid:10,12] due to a write conflict on {place} committed by [txnid:5,11] u/d"
    )
