"""Who calls, as every door hands it on."""

from typing import NamedTuple


class Caller(NamedTuple):
    """An authenticated user with the groups that the login proved. What a client says of itself is not a group."""

    user: str
    groups: frozenset[str] = frozenset()
