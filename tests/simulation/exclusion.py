"""Which locks exclude each other (semantics §5.8), written down again, so that a mistake in the rules cannot hide in a
check that is made with the same rules.
"""

from functools import cache
from typing import Final, TypeAlias

from hms_gateway.rpc.structs import LockType

Place: TypeAlias = tuple[str, str | None, str | None]
"""Database, table, partition."""

Claim: TypeAlias = tuple[Place, LockType, bool]
"""What is locked, how, and whether by a client of Hive 4."""

# What does not go together, whoever was first.
_PAIRS: Final = {
    frozenset({LockType.SHARED_READ, LockType.EXCLUSIVE}),
    frozenset({LockType.SHARED_WRITE}),
    frozenset({LockType.SHARED_WRITE, LockType.EXCL_WRITE}),
    frozenset({LockType.SHARED_WRITE, LockType.EXCLUSIVE}),
    frozenset({LockType.EXCL_WRITE}),
    frozenset({LockType.EXCL_WRITE, LockType.EXCLUSIVE}),
    frozenset({LockType.EXCLUSIVE}),
}


@cache
def exclude(one: Claim, other: Claim) -> bool:
    """Whether two locks of different owners cannot be held at once."""
    (here, mine, shares), (there, theirs, also_shares) = one, other
    if frozenset({mine, theirs}) not in _PAIRS or not (
        _touch(here, there) or _covers(one, other) or _covers(other, one)
    ):
        return False
    if mine is theirs is LockType.SHARED_WRITE and shares and also_shares:
        return False
    return not (_lets_pass(one, other) or _lets_pass(other, one))


def _touch(here: Place, there: Place) -> bool:
    if here[0] != there[0]:
        return False
    return all(a is None or b is None or a == b for a, b in zip(here[1:], there[1:], strict=True))


def _covers(whole: Claim, part: Claim) -> bool:
    """Who has some values of partitions exclusively has all partitions with these values."""
    (above, kind, _), (below, _, _) = whole, part
    if kind is not LockType.EXCLUSIVE or above[:2] != below[:2] or above[2] is None or below[2] is None:
        return False
    values = above[2].split("/")
    return below[2].split("/")[: len(values)] == values


def _lets_pass(whole: Claim, part: Claim) -> bool:
    """Reading a database as such does not mind that one of its tables is changed."""
    reads_database = whole[0][1] is None and whole[1] is LockType.SHARED_READ
    return reads_database and part[0][1] is not None and part[1] is LockType.EXCLUSIVE
