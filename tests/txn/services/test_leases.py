"""Leases as scenarios; each hole of semantics §7.2 has one that names it."""

import pytest

from hms_gateway.rpc.structs import (
    ExceedsMaxLeaseTimeException,
    InvalidArgumentsException,
    LeaseAlreadyExistsException,
    LeaseObject,
)
from hms_gateway.txn.services.leases import LeaseService, MustWait
from hms_gateway.txn.services.settings import LeaseSettings
from tests.support.manual_clock import ManualClock
from tests.txn.lease_memory import MemoryStore
from tests.txn.lease_scenario import Scenario

SCENARIOS = {
    "1 shared does conflict with exclusive": """
        grab a ann 60 x d.t      -> granted
        grab b bob 60 s d.t      -> LeaseAlreadyExistsException: d.t conflicts with exclusive lease 1 of ann on d.t
    """,
    "2 exclusive is checked against shared": """
        grab a ann 60 s d.t      -> granted
        grab b bob 60 x d.t      -> LeaseAlreadyExistsException: shared lease 1 of ann
        grab c bob 60 s d.t      -> granted
    """,
    "3 type and duration are those asked for": """
        grab a ann 60 x d.t      -> granted
        grab b ann 600 s d.u     -> granted
        list                     -> a:x d.t, b:s d.u
        after 60
        list                     -> b:s d.u
        after 539
        list                     -> b:s d.u
        after 1
        list                     -> nothing
    """,
    "4 all or nothing": """
        grab a ann 60 x d.t      -> granted
        grab b bob 60 x d.a, x d.t, x d.z  -> LeaseAlreadyExistsException
        list                     -> a:x d.t
        grab c cyd 60 x d.a, x d.z  -> granted
    """,
    "5 the order of ends decides nothing": """
        grab a ann 60 s d.t      -> granted
        grab b bob 600 s d.t     -> granted
        grab c cyd 1 s d.t       -> granted
        extend a ann 900         -> 900
        grab d dan 1 x d.t       -> LeaseAlreadyExistsException
        list                     -> a:s d.t, b:s d.t, c:s d.t
    """,
    "6 every object and type of a lease counts": """
        grab a ann 60 s d.t, x d.u  -> granted
        grab b bob 60 s d.t         -> granted
        grab c bob 60 s d.u         -> LeaseAlreadyExistsException: d.u
        grab d bob 60 x d.t         -> LeaseAlreadyExistsException: d.t
    """,
    "7 the end itself is not part of the lease": """
        grab a ann 60 x d.t      -> granted
        after 59
        grab b bob 60 x d.t      -> LeaseAlreadyExistsException
        after 1
        grab b bob 60 x d.t      -> granted
    """,
    "8 databases, tables, partitions and their prefixes": """
        grab a ann 60 x d.t/ds=1       -> granted
        grab b bob 60 x d.t/ds=2       -> granted
        grab c cyd 60 s d.t/ds=1/hr=3  -> LeaseAlreadyExistsException
        grab d cyd 60 s d.t            -> LeaseAlreadyExistsException
        grab e cyd 60 s d              -> LeaseAlreadyExistsException
        grab f cyd 60 x d.t2           -> granted
        grab g cyd 60 x d2             -> granted
        grab h dan 60 s d2.t/ds=1      -> LeaseAlreadyExistsException
        list d.t                       -> a:x d.t/ds=1, b:x d.t/ds=2
        list d2.t                      -> nothing
    """,
    "8 names have one case": """
        grab a ann 60 x D.T/DS=A       -> granted
        grab b bob 60 s d.t/ds=A       -> LeaseAlreadyExistsException
        grab c bob 60 s d.t/ds=a       -> granted
    """,
    "9 a part may be extended or dropped": """
        grab a ann 60 x d.t, x d.u     -> granted
        after 30
        extend a ann 60 d.t            -> 60
        extend a ann 60 d.v            -> InvalidArgumentsException: does not hold d.v
        after 30
        list                           -> a:x d.t
        grab b bob 60 x d.u            -> granted
        extend a ann 60 d.u            -> InvalidArgumentsException: does not hold d.u
        drop a ann d.u                 -> ok
        list                           -> a:x d.t, b:x d.u
        drop a ann d.t                 -> ok
        list                           -> b:x d.u
    """,
    "10 extending answers the new end": """
        grab a ann 60 x d.t            -> granted
        after 10
        extend a ann                   -> 60
        extend a ann 100               -> 100
        extend a ann 5                 -> 100
    """,
    "11 only the owner extends and drops": """
        grab a ann 60 x d.t            -> granted
        extend a bob 60                -> InvalidArgumentsException: lease 1 belongs to ann
        drop a bob                     -> InvalidArgumentsException: lease 1 belongs to ann
        drop a admin                   -> InvalidArgumentsException: lease 1 belongs to ann
        force bob                      -> MetaException: not an administrator
        list                           -> a:x d.t
        force admin d.t                -> ok
        list                           -> nothing
        extend a ann                   -> InvalidArgumentsException: not held any more
        drop a ann                     -> ok
    """,
    "13 a request waits, and gives up in time": """
        grab a ann 60 x d.t            -> granted
        grab b bob 60 wait=5 s d.t     -> waits
        after 4
        again b                        -> waits
        after 1
        again b                        -> LeaseAlreadyExistsException: exclusive lease 1 of ann
        grab c cyd 60 wait=5 s d.t     -> waits
        drop a ann                     -> ok
        again c                        -> granted
    """,
    "13 nobody overtakes": """
        grab a ann 60 s d.t            -> granted
        grab b bob 60 wait=9 x d.t     -> waits
        grab c cyd 60 s d.t            -> LeaseAlreadyExistsException: waits already
        grab d dan 60 wait=9 s d.t     -> waits
        grab e eve 60 s d.u            -> granted
        drop a ann                     -> ok
        again d                        -> waits
        again b                        -> granted
        again d                        -> waits
        drop b bob                     -> ok
        again d                        -> granted
    """,
    "13 who gives up lets the others pass": """
        grab a ann 60 s d.t            -> granted
        grab b bob 60 wait=2 x d.t     -> waits
        grab c cyd 60 wait=9 s d.t     -> waits
        after 2
        again b                        -> LeaseAlreadyExistsException
        again c                        -> granted
        grab d dan 60 wait=9 x d.t     -> waits
        gone d
        grab e eve 60 s d.t            -> granted
    """,
    "13 a request whose server died is forgotten": """
        grab a ann 60 s d.t            -> granted
        grab b bob 60 wait=99 x d.t    -> waits
        after 9
        grab c cyd 60 s d.t            -> LeaseAlreadyExistsException
        after 1
        grab c cyd 60 s d.t            -> granted
        again b                        -> waits
        grab d dan 60 s d.t            -> LeaseAlreadyExistsException
    """,
    "14 the longest time": """
        grab a ann 1001 x d.t          -> ExceedsMaxLeaseTimeException: 1001 s is longer than 1000 s
        grab a ann 315360000 x d.t     -> ExceedsMaxLeaseTimeException
        grab a ann 1000 x d.t          -> granted
        after 600
        extend a ann 400               -> 400
        extend a ann 401               -> ExceedsMaxLeaseTimeException
        extend a ann 315360000         -> ExceedsMaxLeaseTimeException
        extend a ann                   -> ExceedsMaxLeaseTimeException
        list                           -> a:x d.t
    """,
    "15 what has expired is lost for good": """
        grab a ann 60 x d.t            -> granted
        after 60
        extend a ann 60                -> InvalidArgumentsException: not held any more
        grab b bob 60 x d.t            -> granted
        extend a ann 60                -> InvalidArgumentsException: not held any more
        drop a ann                     -> ok
        list                           -> b:x d.t
    """,
    "16 shared becomes exclusive when alone": """
        grab a ann 60 s d.t            -> granted
        grab b bob 60 s d.t/ds=1       -> granted
        extend a ann 60 x d.t          -> InvalidArgumentsException: shared lease 2 of bob
        list d.t                       -> a:s d.t, b:s d.t/ds=1
        drop b bob                     -> ok
        extend a ann 60 x d.t          -> 60
        list                           -> a:x d.t
        grab c cyd 60 s d.t            -> LeaseAlreadyExistsException: exclusive lease 1 of ann
        extend a ann 60 s d.t          -> 60
        list                           -> a:x d.t
    """,
    "16 the same user twice is two holders": """
        grab a ann 60 s d.t            -> granted
        grab b ann 60 x d.t            -> LeaseAlreadyExistsException
    """,
    "17 duplicates and mixed types": """
        grab a ann 60 s d.t, x D.T, s d.t, s d.u  -> granted
        list                           -> a:x d.t, a:s d.u
        grab b bob 60 x d.t, s d, x d.t/ds=1 -> LeaseAlreadyExistsException
    """,
    "objects of one lease do not conflict with each other": """
        grab a ann 60 x d, x d.t, s d.t/ds=1  -> granted
    """,
    "force drop takes what lies inside, or everything": """
        grab a ann 60 x d.t/ds=1, x e.t -> granted
        grab b bob 60 x d.u             -> granted
        force admin d.t                 -> ok
        list                            -> a:x e.t, b:x d.u
        force admin                     -> ok
        list                            -> nothing
    """,
    "bad arguments": """
        grab a ann 60                   -> InvalidArgumentsException: at least one object
        grab a ann 0 x d.t              -> InvalidArgumentsException: above zero
        grab a ann -1 x d.t             -> InvalidArgumentsException: above zero
        grab a ann 60 wait=-1 x d.t     -> InvalidArgumentsException: lease_wait_duration_sec
        grab a ann 60 wait=301 x d.t    -> InvalidArgumentsException: 0 to 300
        extend 5 ann                    -> InvalidArgumentsException: lease 5 is not held
        extend -1 ann                   -> InvalidArgumentsException: lease -1 is not held
        extend 9223372036854775807 ann  -> InvalidArgumentsException: not held
        drop 9223372036854775807 ann    -> ok
        grab a ann 60 x d.t             -> granted
        extend a ann -5                 -> InvalidArgumentsException: negative
    """,
}


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def releases():
    return []


@pytest.fixture
def service(clock, releases):
    settings = LeaseSettings(duration_seconds_max=1_000, objects_max=5)
    return LeaseService(MemoryStore(clock), settings, lambda: releases.append(1))


@pytest.mark.parametrize("text", SCENARIOS.values(), ids=SCENARIOS)
def test_scenario(text, service, clock):
    Scenario(service, clock).run(text)


@pytest.mark.parametrize(
    "wanted",
    [
        LeaseObject(None),
        LeaseObject(" "),
        LeaseObject("d", None, "ds=1"),
        LeaseObject("d", "t", None, "w"),
        LeaseObject("d", "t", None, "sx"),
        LeaseObject("d\0d"),
        LeaseObject("d", "\ud800"),
        LeaseObject("d" * 257),
        LeaseObject("d", "t", "p=" + "ä" * 1_000),
    ],
    ids=repr,
)
def test_objects_that_are_none_are_refused_by_every_method(service, wanted):
    for call in (
        lambda: service.grab("ann", [wanted], 60, 0),
        lambda: service.listed([wanted]),
        lambda: service.extend("ann", 1, [wanted]),
        lambda: service.drop("ann", 1, [wanted]),
        lambda: service.force_drop("admin", [wanted]),
    ):
        with pytest.raises(InvalidArgumentsException):
            call()


def test_types_are_read_in_either_case_and_empty_names_are_absent(service):
    service.grab("ann", [LeaseObject("d", "", "", "X"), LeaseObject("e", "t", "", "")], 60, 0)
    shown = [(lease.db_name, lease.table_name, lease.partition_name, lease.lease_type) for lease in service.listed([])]
    assert shown == [("d", None, "", "x"), ("e", "t", "", "s")]


def test_too_many_objects_are_refused(service):
    with pytest.raises(InvalidArgumentsException, match="objects_max"):
        service.grab("ann", [LeaseObject(f"d{number}") for number in range(6)], 60, 0)


def test_ten_years_are_refused_before_anything_waits(service):
    with pytest.raises(ExceedsMaxLeaseTimeException):
        service.grab("ann", [LeaseObject("d")], 10 * 365 * 86_400, 300)


def test_ids_only_grow(service):
    ids = []
    for _ in range(3):
        ids.append(service.grab("ann", [LeaseObject("d", None, None, "x")], 60, 0))
        service.drop("ann", ids[-1], [])
    assert ids == sorted(set(ids))


def test_a_waiting_request_looks_again_when_the_obstacle_ends_or_after_the_poll(service, clock):
    service.grab("ann", [LeaseObject("d", None, None, "x")], 60, 0)
    first = service.grab("bob", [LeaseObject("d")], 60, 300)
    assert isinstance(first, MustWait)
    assert first.seconds == 1.0
    assert service.grab("bob", [LeaseObject("d")], 60, 300, waited_seconds=299.75, ticket=first.ticket).seconds == 0.25


def test_who_may_be_let_through_is_told(service, releases):
    lease_id = service.grab("ann", [LeaseObject("d", None, None, "x")], 60, 0)
    service.grab("bob", [LeaseObject("d")], 60, 10)
    assert not releases
    service.drop("ann", lease_id, [])
    assert len(releases) == 1
    service.drop("ann", lease_id, [])
    assert len(releases) == 1
    service.force_drop("admin", [])
    assert len(releases) == 2


class MillisecondsClock(ManualClock):
    """One that does not begin with a whole second."""

    def __init__(self, milliseconds: int) -> None:
        super().__init__(0)
        self.now_ms = milliseconds

    def milliseconds(self) -> int:
        return self.now_ms


@pytest.mark.slow
def test_the_end_that_is_told_is_the_end_that_counts(releases):
    clock = MillisecondsClock(10_930)
    service = LeaseService(MemoryStore(clock), LeaseSettings(duration_seconds_max=1_000), lambda: releases.append(1))
    lease_id = service.grab("ann", [LeaseObject("d", None, None, "x")], 60, 0)
    [lease] = service.listed([])
    assert (lease.start_utc, lease.end_utc) == (10, 71)
    clock.now_ms = 70_999
    assert len(service.listed([])) == 1
    assert service.extend("ann", lease_id, [], 1) == 72
    with pytest.raises(LeaseAlreadyExistsException):
        service.grab("bob", [LeaseObject("d")], 60, 0)
    clock.now_ms = 72_000
    assert service.listed([]) == []
    with pytest.raises(InvalidArgumentsException):
        service.extend("ann", lease_id, [], 1)
    service.grab("bob", [LeaseObject("d")], 60, 0)
