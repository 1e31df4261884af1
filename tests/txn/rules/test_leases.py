import pytest

from hms_gateway.txn.rules.leases import (
    Claim,
    LeasedObject,
    LeaseId,
    LeaseType,
    Lost,
    Ticket,
    TooLong,
    Waiter,
    conflict,
    conflicts,
    containers,
    covers,
    end_of_grant,
    extension,
    merged,
    refusal,
)
from hms_gateway.txn.rules.names import Target

S, X = LeaseType.SHARED, LeaseType.EXCLUSIVE
DB, TABLE, DAY, HOUR = Target("d"), Target("d", "t"), Target("d", "t", "ds=1"), Target("d", "t", "ds=1/hr=2")
HOUR_MS = 3_600_000
OTHER_DAY, OTHER_TABLE = Target("d", "t", "ds=10"), Target("d", "t2")


def held(target, type=X, lease_id=1, user="ann", start=0, end=100, duration=100):
    return LeasedObject(LeaseId(lease_id), user, Claim(target, type), start, end, duration)


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        (DB, DB, True),
        (DB, TABLE, True),
        (DB, HOUR, True),
        (TABLE, TABLE, True),
        (TABLE, DAY, True),
        (TABLE, OTHER_TABLE, False),
        (DAY, HOUR, True),
        (DAY, OTHER_DAY, False),
        (HOUR, OTHER_DAY, False),
        (DAY, OTHER_TABLE, False),
        (DB, Target("d2"), False),
        (Target("d2", "t"), TABLE, False),
    ],
)
@pytest.mark.parametrize("types", [(S, S), (S, X), (X, S), (X, X)])
def test_objects_conflict_when_one_contains_the_other_and_one_is_exclusive(one, other, overlap, types):
    claims = Claim(one, types[0]), Claim(other, types[1])
    expected = overlap and X in types
    assert conflicts(*claims) is expected
    assert conflicts(*reversed(claims)) is expected
    assert (conflict([claims[0]], [held(*claims[1])], [], 0) is not None) is expected


def test_duplicates_are_merged_and_exclusive_wins_in_either_order():
    claims = [Claim(TABLE, S), Claim(DAY, X), Claim(TABLE, X), Claim(DAY, S), Claim(DB, S)]
    assert merged(claims) == merged(reversed(claims)) == [Claim(DB, S), Claim(TABLE, X), Claim(DAY, X)]


def test_a_lease_is_live_until_its_end_and_not_at_it():
    lease = held(TABLE, end=100)
    assert conflict([Claim(TABLE, S)], [lease], [], 99) is not None
    assert conflict([Claim(TABLE, S)], [lease], [], 100) is None


def test_the_conflict_tells_the_longest_obstacle_and_the_earliest_change():
    short, long = held(DAY, S, 1, end=50), held(TABLE, S, 2, end=90)
    found = conflict([Claim(TABLE, X)], [short, long], [Waiter(Ticket(1), Claim(TABLE, X), 500)], 0)
    assert found is not None
    assert found.obstacle is long
    assert found.free_ms == 50
    assert str(long) == "shared lease 2 of ann on d.t"


def test_a_waiter_in_front_is_in_the_way_as_long_as_somebody_waits_for_it():
    waiter = Waiter(Ticket(1), Claim(TABLE, X), 10)
    assert conflict([Claim(DAY, S)], [], [waiter], 9).obstacle is waiter
    assert conflict([Claim(DAY, S)], [], [waiter], 10) is None


@pytest.mark.slow
def test_ten_thousand_objects_against_ten_thousand_leases():
    leases = [held(Target("d", "t", f"ds={number}"), X, number) for number in range(10_000)]
    claims = [Claim(Target("d", "t", f"ds={number}"), X) for number in range(10_000, 20_000)]
    assert conflict(claims, leases, [], 0) is None
    assert conflict([*claims, Claim(Target("d", "t", "ds=5000"), S)], leases, [], 0).obstacle.lease_id == 5000


def test_a_grant_lasts_as_long_as_asked_for_within_the_longest_time():
    assert end_of_grant(1_000, 5_000, 5_000) == 6_000
    assert end_of_grant(1_001, 5_000, 5_000) == 7_000
    with pytest.raises(TooLong):
        end_of_grant(1_000, 5_001, 5_000)


def test_extending_moves_the_end_and_never_back():
    lease = [held(TABLE, start=0, end=100_000, duration=60_000)]
    assert extension(1, "ann", [], lease, [], 90_000, None, HOUR_MS).end_ms == 150_000
    assert extension(1, "ann", [], lease, [], 90_001, None, HOUR_MS).end_ms == 151_000
    assert extension(1, "ann", [], lease, [], 10_000, None, HOUR_MS).end_ms == 100_000
    extended = extension(1, "ann", [], lease, [], 90_000, 300_000, HOUR_MS).changed[0]
    assert extended.end_ms == 390_000
    assert (extended.start_ms, extended.claim, extended.duration_ms) == (0, Claim(TABLE, X), 60_000)


def test_a_part_may_be_extended_and_the_answer_is_when_that_part_ends():
    lease = [held(TABLE, end=100_000, duration=100_000), held(OTHER_TABLE, end=100_000, duration=100_000)]
    changed = extension(1, "ann", [Claim(OTHER_TABLE, S)], lease, [], 50_000, None, HOUR_MS).changed
    assert [(one.claim, one.end_ms) for one in changed] == [(Claim(OTHER_TABLE, X), 150_000)]
    both = [held(TABLE, end=400_000), held(DB, end=80_000)]
    assert extension(1, "ann", [], both, [], 50_000, 100_000, HOUR_MS).end_ms == 150_000


@pytest.mark.parametrize(
    ("user", "wanted", "now", "text"),
    [
        ("bob", [], 0, "lease 1 belongs to ann"),
        ("ann", [], 100, "lease 1 is not held any more"),
        ("ann", [Claim(DB, S)], 0, "lease 1 does not hold d"),
        ("ann", [Claim(DAY, S)], 0, "lease 1 does not hold d.t/ds=1"),
    ],
)
def test_what_is_lost_or_not_yours_is_not_extended(user, wanted, now, text):
    with pytest.raises(Lost, match=f"^{text}$"):
        extension(1, user, wanted, [held(TABLE)], [], now, None, 1_000)


def test_the_longest_time_counts_from_the_start():
    lease = [held(TABLE, start=0, end=100_000)]
    assert extension(1, "ann", [], lease, [], 90_000, 110_000, 200_000).end_ms == 200_000
    with pytest.raises(TooLong):
        extension(1, "ann", [], lease, [], 90_000, 110_001, 200_000)


def test_shared_becomes_exclusive_when_nobody_else_is_there():
    mine, theirs = held(TABLE, S), held(DAY, S, 2, "bob")
    assert extension(1, "ann", [Claim(TABLE, X)], [mine], [theirs], 0, None, 1_000).obstacle is theirs
    upgraded = extension(1, "ann", [Claim(TABLE, X)], [mine], [held(DAY, S, 2, end=0)], 0, None, 1_000)
    assert upgraded.changed[0].claim == Claim(TABLE, X)


@pytest.mark.parametrize(
    ("lease", "changed", "text"),
    [
        ([held(TABLE)], [TABLE, DAY, HOUR], None),
        ([held(DB)], [DB, TABLE, DAY], None),
        ([held(DAY)], [DAY, HOUR], None),
        ([held(TABLE)], [], None),
        ([held(DAY)], [TABLE], "lease 1 does not hold d.t"),
        ([held(DAY)], [DAY, OTHER_DAY], "lease 1 does not hold d.t/ds=10"),
        ([held(TABLE)], [DB], "lease 1 does not hold d"),
        ([held(TABLE, S)], [TABLE], "lease 1 holds d.t for reading only"),
        ([held(TABLE, S), held(DAY, X)], [DAY], None),
        ([held(TABLE, end=0)], [], "lease 1 is not held any more: it ended, was dropped, or never was"),
        ([], [], "lease 1 is not held any more: it ended, was dropped, or never was"),
    ],
)
def test_a_change_is_refused_under_a_lease_that_ended_or_does_not_hold_it(lease, changed, text):
    assert refusal(1, lease, 0, changed) == text


def test_containers_go_from_the_database_down():
    assert containers(HOUR) == [DB, TABLE, DAY, HOUR]
    assert [covers(target, DAY) for target in (DB, TABLE, DAY, HOUR, OTHER_DAY)] == [True, True, True, False, False]
