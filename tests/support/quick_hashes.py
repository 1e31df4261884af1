"""Hashes of passwords that take no time: a gateway makes one at its first start, and checks it at its first call."""

from typing import Final

from argon2 import PasswordHasher

from hms_gateway.gateway.auth import users

QUICK: Final = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


def hash_quickly() -> None:
    """From now on, in this process; of the same kind as those of a gateway."""
    setattr(users, "_HASHER", QUICK)  # noqa: B010
