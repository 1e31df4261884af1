"""The password file as the running server sees it: read again when it changes.

Calls whose password is remembered look once a second at most; who must be checked is checked against the file of now.
"""

import functools
import hashlib
import secrets
from collections.abc import Callable, Collection
from math import inf
from pathlib import Path
from typing import Final

import structlog

from hms_gateway.gateway.auth.users import UserFileError, hash_password, read_users
from hms_gateway.runtime.file_versions import WatchedFile

REMOVED_SECONDS: Final = 60.0

_log = structlog.get_logger("hms_gateway.users")


class UserFile:
    """Hashes by user name. `generation` grows with every change, so what was remembered before can be dropped.

    `shared` are the users whom other logins may name too, "*" is all. Safe to ask from several threads.
    """

    def __init__(self, path: Path, monotonic: Callable[[], float], shared: Collection[str] = ()) -> None:
        self._file = WatchedFile(path, monotonic)
        self._shared = frozenset(shared)
        self._monotonic = monotonic
        self._users: dict[str, str] = {}
        self._removed_at: dict[str, float] = {}
        self._decoy_key = secrets.token_bytes(16)
        self._problem = ""
        self.generation = 0
        self.refresh()

    def refresh(self, *, at_once: bool = False) -> None:
        """Read the file if it changed; without `at_once`, only if the last look is a second ago.

        A broken file, and one that is gone, keep what was read before; an empty one lets no user in.
        """
        if not self._file.has_changed(at_once=at_once):
            return
        path = self._file.path
        try:
            users = read_users(path)
            if not users and self.generation and not path.exists():
                raise UserFileError(f"{path} is gone; put it back, or write an empty one to let no user in")
        except UserFileError as error:
            if str(error) != self._problem:
                _log.error("password file not read; the previous users stay valid", problem=str(error))
            self._problem = str(error)
            self._file.look_again()
            return
        if self._problem:
            _log.info("password file read again", file=str(path))
        now = self._monotonic()
        removed_at = {name: at for name, at in self._removed_at.items() if at + REMOVED_SECONDS > now}
        self._removed_at = removed_at | dict.fromkeys(self._users.keys() - users.keys(), now)
        self._users, self._problem = users, ""
        self.generation += 1

    def check(self) -> None:
        """Raises UserFileError where the users are not those of the file of now."""
        self.refresh()
        if self._problem:
            raise UserFileError(self._problem)

    def has(self, user: str) -> bool:
        """True if the file has the user now."""
        self.refresh(at_once=True)
        return user in self._users

    def is_reserved(self, user: str) -> bool:
        """True for a name that counts by the logins of this file only: a password, or a token that was made for it."""
        self.refresh()
        return user in self._users and self._shared.isdisjoint((user, "*"))

    def entry_of(self, user: str) -> str:
        """Something that differs after each change of the user's line; "" for a user that the file does not have.

        Of one that was just removed it is another each time: a call of that user may still be running.
        """
        self.refresh(at_once=True)
        stored_hash = self._users.get(user)
        if stored_hash is not None:
            return hashlib.blake2b(stored_hash.encode(), digest_size=16).hexdigest()
        is_past = self._removed_at.get(user, -inf) + REMOVED_SECONDS <= self._monotonic()
        return "" if is_past else secrets.token_hex(16)

    def hash_of(self, user: str) -> tuple[str, bool]:
        """The stored hash and True; for an unknown user the hash of some other user, and False.

        Checking that one costs what a wrong password of a known user costs, and always the same for the same name.
        """
        users = self._users
        stored_hash = users.get(user)
        if stored_hash is not None:
            return stored_hash, True
        if not users:
            return _decoy_hash(), False
        digest = hashlib.blake2b(user.encode(), key=self._decoy_key, digest_size=8).digest()
        return list(users.values())[int.from_bytes(digest, "big") % len(users)], False


@functools.cache
def _decoy_hash() -> str:
    """The hash that passwords of unknown users are checked against. Made on first use, since it takes 20 ms."""
    return hash_password(secrets.token_hex(16))
