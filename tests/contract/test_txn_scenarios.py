"""Transactions and locks as scenarios, on every database (semantics §5)."""

from collections.abc import Callable

import pytest
from sqlalchemy import create_engine, text

from hms_gateway.storage.writing.store import SqlStore
from tests.support.manual_clock import ManualClock
from tests.txn.scenario import World


@pytest.fixture
def sleep(database_url: str, clock: ManualClock) -> Callable[[int], None]:
    """Time passes: on SQLite the clock moves on, on a server that has its own everything becomes older."""

    def sleep(seconds: int) -> None:
        if database_url.startswith("sqlite"):
            clock.advance(seconds)
            return
        engine = create_engine(database_url)
        with engine.begin() as connection:
            for statement in (
                "UPDATE txns SET last_heartbeat_ms = last_heartbeat_ms - :ms, ended_ms = ended_ms - :ms",
                "UPDATE locks SET last_heartbeat_ms = last_heartbeat_ms - :ms WHERE txn_id = 0",
            ):
                connection.execute(text(statement), {"ms": seconds * 1000})
        engine.dispose()

    return sleep


@pytest.fixture
def world(store: SqlStore, sleep: Callable[[int], None]) -> World:
    return World(store, sleep)


SCENARIOS = {
    "a transaction's locks go with it": """
        open    t1
        lock    L1 t1 EXCLUSIVE    sales.orders/ds=1   -> ACQUIRED
        lock    L2 -  SHARED_READ  sales.orders        -> WAITING by L1
        commit  t1
        check   L2                                     -> ACQUIRED
        shown                                          -> L2
        open    t2
        lock    L3 t2 EXCLUSIVE    sales.orders        -> WAITING by L2
        abort   t2
        shown                                          -> L2
    """,
    "iceberg: one table, no transaction": """
        lock    L1 -  EXCLUSIVE  db.t  -> ACQUIRED
        lock    L2 -  EXCLUSIVE  db.t  -> WAITING by L1
        lock    L3 -  EXCLUSIVE  db.t  -> WAITING by L1
        check   L3                     -> WAITING by L1
        unlock  L1                     -> OK
        check   L3                     -> WAITING by L2
        check   L2                     -> ACQUIRED
        check   L2                     -> ACQUIRED
        unlock  L2
        unlock  L2                     -> OK
        check   L3                     -> ACQUIRED
        check   L2                     -> NoSuchLock No such lock L2
        beat    L2                     -> NoSuchLock No such lock: L2
        unlock  999999                 -> OK
    """,
    "a writer between readers: nobody overtakes, and no hole": """
        lock    L1 -  SHARED_READ  db.t  -> ACQUIRED
        lock    L2 -  EXCLUSIVE    db.t  -> WAITING by L1
        lock    L3 -  SHARED_READ  db.t  -> WAITING by L2
        unlock  L1
        check   L3                       -> WAITING by L2
        check   L2                       -> ACQUIRED
        check   L3                       -> WAITING by L2
    """,
    "a waiting request that is given up lets others pass": """
        lock    L1 -  SHARED_READ  db.t  -> ACQUIRED
        lock    L2 -  EXCLUSIVE    db.t  -> WAITING by L1
        lock    L3 -  SHARED_READ  db.t  -> WAITING by L2
        unlock  L2
        check   L3                       -> ACQUIRED
    """,
    "all components or none": """
        lock    L1 -  EXCLUSIVE  db.b                       -> ACQUIRED
        lock    L2 -  EXCLUSIVE  db.a + SHARED_READ db.b    -> WAITING by L1
        lock    L3 -  SHARED_READ  db.a                     -> WAITING by L2
        unlock  L1
        check   L2                                          -> ACQUIRED
    """,
    "many components at once": """
        lock    L1 -  EXCLUSIVE  db.b/p=2                                                      -> ACQUIRED
        lock    L2 -  EXCLUSIVE  db.a/p=1 + EXCLUSIVE db.b/p=1 + EXCLUSIVE db.c + SHARED_READ e -> ACQUIRED
        lock    L3 -  EXCLUSIVE  db.a/p=2 + EXCLUSIVE db.b/p=2                                  -> WAITING by L1
        lock    L4 -  SHARED_READ  x + EXCLUSIVE  db                                           -> WAITING by L1
        shown   db.b                                                                           -> L1 L2 L3?
    """,
    "names are one, however they are spelled": """
        lock    L1 -  EXCLUSIVE  DB.T/DS=a  -> ACQUIRED
        lock    L2 -  EXCLUSIVE  db.t/ds=a  -> WAITING by L1
        lock    L3 -  EXCLUSIVE  db.t/ds=A  -> ACQUIRED
        shown   Db.T/Ds=a                   -> L1 L2?
    """,
    "X on a prefix excludes what lies below it, in both directions": """
        lock    L1 -  EXCLUSIVE    db.t/ds=1            -> ACQUIRED
        lock    L2 -  SHARED_READ  db.t/ds=1/hr=2       -> WAITING by L1
        lock    L3 -  EXCLUSIVE    db.t/ds=2/hr=2       -> ACQUIRED
        lock    L4 -  EXCLUSIVE    db.t/ds=10/hr=2      -> ACQUIRED
        unlock  L1
        check   L2                                      -> ACQUIRED
        lock    L5 -  EXCLUSIVE    db.t/ds=1            -> WAITING by L2
        lock    L6 -  SHARED_READ  db.t/ds=1/hr=3       -> WAITING by L5
        lock    L7 -  EXCLUSIVE    db.t/ds=2            -> WAITING by L3
        unlock  L2
        check   L5                                      -> ACQUIRED
        blocking db.t                                   -> L3[L7] L5[L6]
    """,
    "S on a prefix is beside those who change below it": """
        lock    L1 -  SHARED_READ  db.t/ds=1 + EXCLUSIVE db.t/ds=1/hr=1  -> ACQUIRED
        lock    L2 -  SHARED_READ  db.t/ds=1 + EXCLUSIVE db.t/ds=1/hr=2  -> ACQUIRED
        lock    L3 -  SHARED_READ  db.t/ds=1 + EXCLUSIVE db.t/ds=1/hr=1  -> WAITING by L1
        lock    L4 -  EXCLUSIVE    db.t/ds=1                             -> WAITING by L1
    """,
    "a deadlock through a prefix": """
        open    t1
        open    t2
        lock    L1 t1 EXCLUSIVE d.t/a -> ACQUIRED
        lock    L2 t2 EXCLUSIVE d.t/b/c -> ACQUIRED
        lock    L3 t1 EXCLUSIVE d.t/b -> WAITING by L2
        lock L4 t2 EXCLUSIVE d.t/a/c -> TxnAborted Transaction t2 already aborted: deadlock with t1, closed on d.t/a/c
        check   L3 -> ACQUIRED
    """,
    "creating tables while another one is changed": """
        lock    L1 -  EXCLUSIVE    db.t  -> ACQUIRED
        lock    L2 -  SHARED_READ  db    -> ACQUIRED
        lock    L3 -  EXCLUSIVE    db    -> WAITING by L1
        lock    L4 -  EXCLUSIVE    db.u  -> WAITING by L3
        unlock  L3
        check   L4                       -> ACQUIRED
    """,
    "writers of different generations": """
        lock    L1 -  SHARED_WRITE db.t hive4  -> ACQUIRED
        lock    L2 -  SHARED_WRITE db.t hive4  -> ACQUIRED
        lock    L3 -  SHARED_WRITE db.t        -> WAITING by L1
        lock    L4 -  SHARED_WRITE db.t hive4  -> WAITING by L3
        lock    L5 -  EXCL_WRITE   db.u hive4  -> ACQUIRED
        lock    L6 -  SHARED_READ  db.u        -> ACQUIRED
        lock    L7 -  SHARED_WRITE db.u hive4  -> WAITING by L5
    """,
    "a lock that becomes stronger": """
        open    t1
        lock    L1 t1 SHARED_READ db.t  -> ACQUIRED
        lock    L2 t1 EXCLUSIVE   db.t  -> ACQUIRED
        lock    L3 -  SHARED_READ db.t  -> WAITING by L2
    """,
    "unlock of a transaction's lock": """
        open    t1
        lock    L1 t1 SHARED_READ db.t/p=1  -> ACQUIRED
        unlock  L1  -> TxnOpen Unlocking locks associated with transaction not permitted.  L1 intLockId:1 t1 db:db table:t partition:p=1 state:ACQUIRED type:SHARED_READ
        lock    L2 -  EXCLUSIVE   db.u      -> ACQUIRED
        lock    L3 t1 SHARED_READ db.u      -> WAITING by L2
        unlock  L3                          -> OK
        shown                               -> L1 L2
    """,  # noqa: E501
    "not waiting": """
        open    t1
        open    t2
        lock    L1 t1 EXCLUSIVE    db.t  -> ACQUIRED
        lock    L2 t2 SHARED_READ  db.t zero-wait  -> NOT_ACQUIRED Unable to acquire read lock due to an existing exclusive lock {L1 intLockId:1 t1 db:db table:t partition:null state:ACQUIRED type:EXCLUSIVE}
        shown                            -> L1
        lock    L3 t2 EXCL_WRITE   db.t zero-wait  -> WAITING by L1
        lock    L4 t2 EXCL_WRITE   db.t ctas       -> NOT_ACQUIRED Failed to initiate a concurrent CTAS operation with the same table name, lockInfo : {L1 intLockId:1 t1 db:db table:t partition:null state:ACQUIRED type:EXCLUSIVE}
        lock    L5 -  SHARED_READ  db.t zero-wait  -> WAITING by L1
    """,  # noqa: E501
    "two transactions want each other's table": """
        open    t1
        open    t2
        lock    L1 t1 EXCLUSIVE db.a  -> ACQUIRED
        lock    L2 t2 EXCLUSIVE db.b  -> ACQUIRED
        lock    L3 t1 EXCLUSIVE db.b  -> WAITING by L2
        lock    L4 t2 EXCLUSIVE db.a  -> TxnAborted Transaction t2 already aborted: deadlock with t1, closed on db.a
        check   L3                    -> ACQUIRED
        beat    t2                    -> TxnAborted Transaction t2 already aborted: deadlock with t1, closed on db.a
        listed                        -> t1 t2!
    """,
    "the youngest is the victim, also when it only waits": """
        open    t1
        open    t2
        lock    L1 t1 EXCLUSIVE db.a  -> ACQUIRED
        lock    L2 t2 EXCLUSIVE db.b  -> ACQUIRED
        lock    L3 t2 EXCLUSIVE db.a  -> WAITING by L1
        lock    L4 t1 EXCLUSIVE db.b  -> ACQUIRED
        check   L3                    -> TxnAborted Transaction t2 already aborted: deadlock with t1, closed on db.b
        commit  t1
    """,
    "a cycle of three, one link being that nobody overtakes": """
        open    t1
        open    t2
        open    t3
        lock    L1 t1 SHARED_READ  db.a  -> ACQUIRED
        lock    L2 t2 EXCLUSIVE    db.b  -> ACQUIRED
        lock    L3 t3 EXCLUSIVE    db.a  -> WAITING by L1
        lock    L4 t2 SHARED_READ  db.a  -> WAITING by L3
        lock    L5 t1 SHARED_READ  db.b  -> WAITING by L2
        listed                           -> t1 t2 t3!
        check   L4                       -> ACQUIRED
        check   L3                       -> TxnAborted Transaction t3 already aborted: deadlock with t1, t2, closed on db.b
        commit  t2
        check   L5                       -> ACQUIRED
    """,  # noqa: E501
    "a transaction passes whoever waits for it": """
        open    t1
        open    t2
        lock    L1 t1 EXCLUSIVE    db.t      -> ACQUIRED
        lock    L2 t2 EXCLUSIVE    db        -> WAITING by L1
        lock    L3 t1 EXCLUSIVE    db.u      -> ACQUIRED
        lock    L4 t1 SHARED_READ  db.t/p=1  -> ACQUIRED
        lock    L5 -  SHARED_READ  db.v      -> WAITING by L2
        blocking                             -> L4[L2] L1[L2] L3[L2] L2[L5]
        commit  t1
        check   L5                           -> WAITING by L2
        check   L2                           -> ACQUIRED
        listed                               -> t2
    """,
    "a lock that becomes stronger before somebody who waits for it": """
        open    t1
        lock    L1 t1 SHARED_READ  db.t  -> ACQUIRED
        lock    L2 -  EXCLUSIVE    db.t  -> WAITING by L1
        lock    L3 t1 EXCLUSIVE    db.t  -> ACQUIRED
        check   L2                       -> WAITING by L1
        commit  t1
        check   L2                       -> ACQUIRED
    """,
    "passing one that waits, through what it wants elsewhere": """
        open    t1
        open    t2
        lock    L1 t1 EXCLUSIVE  a.t                    -> ACQUIRED
        lock    L2 t2 EXCLUSIVE  b.t + SHARED_READ a.t  -> WAITING by L1
        lock    L3 t1 EXCLUSIVE  b.t                    -> ACQUIRED
        check   L2                                      -> WAITING by L3
        blocking                                        -> L1[L2] L3[L2]
    """,
    "passing one that waits, but not a holder": """
        open    t1
        open    t2
        open    t3
        lock    L1 t1 SHARED_READ  db.t           -> ACQUIRED
        lock    L2 -  SHARED_READ  db.u           -> ACQUIRED
        lock    L3 t2 EXCLUSIVE    db             -> WAITING by L1
        lock    L4 t1 EXCLUSIVE    db.u           -> WAITING by L2
        lock    L5 t1 SHARED_READ  db.u zero-wait -> ACQUIRED
        check   L4                                -> WAITING by L2
        blocking                                  -> L1[L3] L2[L3 L4] L5[L3]
        unlock  L2
        check   L4                                -> ACQUIRED
        listed                                    -> t1 t2 t3
    """,
    "not passing one that waits for others": """
        open    t1
        open    t2
        lock    L1 t1 EXCLUSIVE    db.t  -> ACQUIRED
        lock    L2 -  SHARED_READ  db.u  -> ACQUIRED
        lock    L3 t2 EXCLUSIVE    db.u  -> WAITING by L2
        lock    L4 t1 SHARED_READ  db.u  -> WAITING by L3
        check   L4                       -> WAITING by L3
        unlock  L2
        check   L4                       -> WAITING by L3
        check   L3                       -> ACQUIRED
    """,
    "behind who waits behind the one that is passed": """
        open    t1
        open    t2
        lock    L1 t1 EXCLUSIVE    db.t  -> ACQUIRED
        lock    L2 t2 EXCLUSIVE    db    -> WAITING by L1
        lock    L3 -  SHARED_READ  db.u  -> WAITING by L2
        lock    L4 t1 SHARED_READ  db.u  -> ACQUIRED
        lock    L5 t1 EXCLUSIVE    db.u  -> WAITING by L3
        check   L2                       -> TxnAborted Transaction t2 already aborted: deadlock with t1, L3, closed on db.u
        check   L3                       -> ACQUIRED
        unlock  L3
        check   L5                       -> ACQUIRED
    """,  # noqa: E501
    "through a request without a transaction": """
        open    t1
        open    t2
        lock    L1 t1 SHARED_READ  db.a  -> ACQUIRED
        lock    L2 -  EXCLUSIVE    db.a  -> WAITING by L1
        lock    L3 t2 EXCLUSIVE    db.b  -> ACQUIRED
        lock    L4 t2 SHARED_READ  db.a  -> WAITING by L2
        lock    L5 t1 EXCLUSIVE    db.b  -> ACQUIRED
        listed                           -> t1 t2!
    """,
    "a holder that fell silent": """
        lock    L1 -  EXCLUSIVE  db.t  -> ACQUIRED
        after   200
        lock    L2 -  EXCLUSIVE  db.t  -> WAITING by L1
        after   99
        check   L2                     -> WAITING by L1
        after   2
        check   L2                     -> ACQUIRED
        check   L1                     -> NoSuchLock No such lock L1
    """,
    "a heartbeat that comes in time, and one that comes late but first": """
        lock    L1 -  EXCLUSIVE  db.t  -> ACQUIRED
        after   299
        beat    L1
        after   299
        lock    L2 -  EXCLUSIVE  db.t  -> WAITING by L1
        after   200
        beat    L1                     -> OK
        check   L2                     -> WAITING by L1
    """,
    "a waiting request whose client is gone": """
        lock    L1 -  SHARED_READ  db.t  -> ACQUIRED
        lock    L2 -  EXCLUSIVE    db.t  -> WAITING by L1
        after   200
        beat    L1
        after   101
        lock    L3 -  SHARED_READ  db.t  -> ACQUIRED
        check   L2                       -> NoSuchLock No such lock L2
    """,
    "a transaction that fell silent": """
        open    t1
        open    t2
        lock    L1 t1 EXCLUSIVE  db.t  -> ACQUIRED
        after   200
        beat    t2
        after   101
        lock    L2 t2 EXCLUSIVE  db.t  -> ACQUIRED
        beat    t1  -> TxnAborted Transaction t1 already aborted: no heartbeat within the time-out
        commit  t1  -> TxnAborted Transaction t1 already aborted: no heartbeat within the time-out
        listed      -> t1! t2
    """,
    "asking for a lock is a heartbeat of its transaction": """
        open    t1
        lock    L1 -  EXCLUSIVE  db.t  -> ACQUIRED
        lock    L2 t1 EXCLUSIVE  db.t  -> WAITING by L1
        after   200
        beat    L1
        check   L2                     -> WAITING by L1
        after   200
        expire
        beat    t1                     -> OK
    """,
    "expiry": """
        open    t1
        open    t2
        lock    L1 -  EXCLUSIVE  db.a  -> ACQUIRED
        lock    L2 t1 EXCLUSIVE  db.b  -> ACQUIRED
        lock    L3 -  SHARED_READ  db.c + SHARED_READ db.d  -> ACQUIRED
        after   200
        beat    t2
        beat    L3
        after   150
        expire
        listed                         -> t1! t2
        shown                          -> L3 L3
        beat    L1                     -> NoSuchLock No such lock: L1
    """,
    "every state and every call": """
        name    t9 9
        open    t1
        open    t2
        open    t3
        abort   t2
        commit  t3
        beat    t1   -> OK
        beat    t2   -> TxnAborted Transaction t2 already aborted
        beat    t3   -> NoSuchTxn Transaction t3 is already committed.
        beat    t9   -> NoSuchTxn No such transaction t9
        lock    L2 t2 EXCLUSIVE db.t  -> TxnAborted Transaction t2 already aborted
        lock    L3 t3 EXCLUSIVE db.t  -> NoSuchTxn Transaction t3 is already committed.
        lock    L4 t9 EXCLUSIVE db.t  -> NoSuchTxn No such transaction t9
        lock    L5 -1 EXCLUSIVE db.t  -> NoSuchTxn No such transaction txnid:-1
        add     t2 UPDATE db.t/p=1    -> TxnAborted Transaction t2 already aborted
        add     t3 UPDATE db.t/p=1    -> NoSuchTxn Transaction t3 is already committed.
        commit  t2   -> TxnAborted Transaction t2 already aborted
        commit  t3   -> OK
        commit  t9   -> NoSuchTxn No such transaction t9
        commit  0    -> NoSuchTxn No such transaction txnid:0
        commit  -5   -> NoSuchTxn No such transaction txnid:-5
        commit  9223372036854775807  -> NoSuchTxn No such transaction txnid:9223372036854775807
        abort   t2   -> OK
        abort   t3   -> NoSuchTxn Transaction t3 is already committed.
        abort   t9   -> NoSuchTxn No such transaction t9
        range   t1 5 -> aborted [t2] nosuch [t3 4 5]
        range   5 t1 -> Meta the range of transactions ends before it begins: 5 to 1
        check   0    -> NoSuchLock No such lock lockid:0
        check   -1   -> NoSuchLock No such lock lockid:-1
        check   9223372036854775807  -> NoSuchLock No such lock lockid:9223372036854775807
        shown        ->
    """,
    "the first committer wins": """
        open    t1
        open    t2
        lock    L1 t1 SHARED_WRITE db.t UPDATE hive4  -> ACQUIRED
        lock    L2 t2 SHARED_WRITE db.t UPDATE hive4  -> ACQUIRED
        commit  t1  -> OK
        commit  t2  -> TxnAborted Aborting [t2,2] due to a write conflict on db/t committed by [t1,2] u/u
        shown       ->
        open    t3
        lock    L3 t3 SHARED_WRITE db.t UPDATE  -> ACQUIRED
        commit  t3  -> OK
    """,
    "deletes, inserts, partitions": """
        open    t1
        open    t2
        open    t3
        open    t4
        add     t1 DELETE db.t/p=1
        add     t2 DELETE db.t/p=1
        add     t3 INSERT db.t/p=1
        add     t4 UPDATE db.t/p=1 db.t/p=2
        commit  t1  -> OK
        commit  t2  -> OK
        commit  t3  -> OK
        commit  t4  -> TxnAborted Aborting [t4,4] due to a write conflict on db/t/p=1 committed by [t1,4] u/d
        open    t5
        open    t6
        add     t5 DELETE db.t
        add     t6 DELETE db.t
        commit  t5 strict  -> OK
        commit  t6 strict  -> TxnAborted Aborting [t6,6] due to a write conflict on db/t committed by [t5,6] d/d
        open    t7
        open    t8
        add     t7 UPDATE db.t
        add     t8 UPDATE db.t
        commit  t7 hive4   -> OK
        commit  t8 hive4   -> OK
    """,
    "write ids": """
        open    t1
        open    t2
        open    t3
        allocate db.t t2 t1    -> t1=1 t2=2
        allocate db.t t2 t3    -> t2=2 t3=3
        allocate DB.U t1       -> t1=1
        seen    db.t           -> 3:1:1,2,3:
        commit  t1
        abort   t2
        seen    db.t           -> 3:3:3:2
        seen    db.t 2:-:      -> Meta '2:-:' is not a list of ids: '-' is not an id
        seen    db.t 2:1:1:    -> 2:1:1:
        seen    db.none        -> 0:-::
        allocate db.t t1       -> Meta Write ID allocation failed on db.t as not all input txns in open state or read-only: t1
        open    t4 READ_ONLY
        allocate db.t t4       -> Meta Write ID allocation failed on db.t as not all input txns in open state or read-only: t4
        commit  t3
        after   4000
        expire
        seen    db.t           -> 3:-::2
        open    t5
        allocate db.t t5       -> t5=4
    """,  # noqa: E501
    "what an open transaction must not see stays hidden from it": """
        open    t1
        open    t2
        allocate db.t t1       -> t1=1
        commit  t1
        after   250
        beat    t2
        after   3800
        beat    t2
        expire
        seen    db.t 2:1:1,2:  -> 1:1:1:
        commit  t2
        expire
        seen    db.t           -> 1:-::
    """,
    "committed transactions are remembered for an hour": """
        open    t1
        commit  t1
        after   3599
        expire
        commit  t1             -> OK
        after   2
        expire
        commit  t1             -> NoSuchTxn No such transaction t1
        open    t2
        listed                 -> t2
    """,
    "victims of deadlocks are remembered for a day": """
        open    t1
        open    t2
        open    t3
        abort   t3
        lock    L1 t1 EXCLUSIVE  db.a  -> ACQUIRED
        lock    L2 t2 EXCLUSIVE  db.b  -> ACQUIRED
        lock    L3 t1 EXCLUSIVE  db.b  -> WAITING by L2
        lock    L4 t2 EXCLUSIVE  db.a  -> TxnAborted Transaction t2 already aborted: deadlock with t1, closed on db.a
        commit  t1
        after   86399
        expire
        listed                 -> t2!
        beat    t2             -> TxnAborted Transaction t2 already aborted: deadlock with t1, closed on db.a
        after   2
        expire
        listed                 ->
        beat    t2             -> NoSuchTxn No such transaction t2
    """,
    "an administrator takes a lock away": """
        open    t1
        lock    L1 -  EXCLUSIVE  db.a  -> ACQUIRED
        lock    L2 t1 EXCLUSIVE  db.b  -> ACQUIRED
        lock    L3 t1 SHARED_READ db.c -> ACQUIRED
        release L1                     -> L1
        release L2                     -> L3 L2
        beat    t1                     -> TxnAborted Transaction t1 already aborted: released by an administrator
        release L1                     -> NoSuchLock No such lock L1
        shown                          ->
    """,
    "only an administrator takes a lock away": """
        lock    L1 -  EXCLUSIVE  db.a  -> ACQUIRED
        lock    L2 -  EXCLUSIVE  db.a  -> WAITING by L1
        force   ann L1                 -> Meta user ann is not an administrator and may not release other users' locks
        force   Admin L1               -> Meta user Admin is not an administrator and may not release other users' locks
        check   L2                     -> WAITING by L1
        force   admin L1               -> L1
        check   L2                     -> ACQUIRED
        lock    L3 -  EXCLUSIVE  db.a  -> WAITING by L2
        force   admin L3               -> L3
        blocking                       ->
        force   admin 0                -> NoSuchLock No such lock lockid:0
        force   admin 9223372036854775807 -> NoSuchLock No such lock lockid:9223372036854775807
        open    t1
        lock    L4 t1 EXCLUSIVE  db.b  -> ACQUIRED
        force   admin L4               -> L4
        commit  t1                     -> TxnAborted Transaction t1 already aborted: its locks were released by administrator admin
    """,  # noqa: E501
    "what a lock holds up": """
        open    t1
        lock    L1 t1 SHARED_READ  db.a + EXCLUSIVE db.b  -> ACQUIRED
        lock    L2 -  EXCLUSIVE    db.a                   -> WAITING by L1
        lock    L3 -  SHARED_READ  db.a                   -> WAITING by L2
        lock    L4 -  SHARED_READ  db.b/p=1               -> WAITING by L1
        lock    L6 -  SHARED_READ  other.a                -> ACQUIRED
        blocking                                          -> L1[L2] L1[L4] L2[L3]
        blocking db.b                                     -> L1[L4]
        unlock  L6
        check   L4                                        -> WAITING by L1
    """,
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(world: World, name: str) -> None:
    world.play(SCENARIOS[name])


def test_only_the_newest_victims_of_deadlocks_are_remembered_for_long(
    store: SqlStore, sleep: Callable[[int], None]
) -> None:
    world = World(store, sleep, victims_max=1)
    deadlock = """
        open    t{0}
        open    t{1}
        lock    L{0} t{0} EXCLUSIVE  db.a  -> ACQUIRED
        lock    L{1} t{1} EXCLUSIVE  db.b  -> ACQUIRED
        lock    L5 t{0} EXCLUSIVE  db.b  -> WAITING by L{1}
        lock    L6 t{1} EXCLUSIVE  db.a  -> TxnAborted Transaction t{1} already aborted: deadlock with t{0}, closed on db.a
        commit  t{0}
    """  # noqa: E501
    world.play(deadlock.format(1, 2))
    world.play(deadlock.format(3, 4))
    world.play("""
        listed      -> t2! t4!
        after   3601
        expire
        listed      -> t4!
    """)


@pytest.mark.parametrize("name", [name for name in SCENARIOS if "prefix" in name])
def test_prefixes_among_more_locks_than_are_read_at_first(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What contains a partition, and what lies below it, is then looked up by name."""
    monkeypatch.setattr("hms_gateway.storage.txn.batch.CANDIDATES_MAX", 3)
    monkeypatch.setattr("hms_gateway.txn.services.locks._CANDIDATES_AT_FIRST", 3)
    # Also in the tables of the scenarios.
    for number in range(5):
        for table in ("db.t", "d.t"):
            world.lock(f"{table}/other={number}")
    world.play(SCENARIOS[name])
