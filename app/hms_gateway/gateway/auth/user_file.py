"""The password file as the running server sees it: read again when it changes.

Calls whose password is remembered look once a second at most; who must be checked is checked against the file of now.
"""

import functools
import hashlib
import secrets
from collections.abc import Callable
from pathlib import Path

import structlog

from hms_gateway.gateway.auth.users import UserFileError, hash_password, read_users
from hms_gateway.runtime.file_versions import WatchedFile

_log = structlog.get_logger("hms_gateway.users")


class UserFile:
    """Hashes by user name. `generation` grows with every change, so what was remembered before can be dropped."""

    def __init__(self, path: Path, monotonic: Callable[[], float]) -> None:
        self._file = WatchedFile(path, monotonic)
        self._users: dict[str, str] = {}
        self._names: list[str] = []
        self._decoy_key = secrets.token_bytes(16)
        self.generation = 0
        self.refresh()

    def refresh(self, *, at_once: bool = False) -> None:
        """Read the file if it changed; without `at_once`, only if the last look is a second ago.

        A file that is gone lets no user in; a broken one keeps what was read before.
        """
        if not self._file.has_changed(at_once=at_once):
            return
        try:
            self._users = read_users(self._file.path)
        except UserFileError as error:
            _log.error("password file not read, the users known before stay", problem=str(error))
        self._names = list(self._users)
        self.generation += 1

    def has(self, user: str) -> bool:
        """Whether the file has the user now."""
        self.refresh(at_once=True)
        return user in self._users

    def hash_of(self, user: str) -> tuple[str, bool]:
        """The stored hash and True; for an unknown user the hash of some other user, and False.

        Checking that one costs what a wrong password of a known user costs, and always the same for the same name.
        """
        stored_hash = self._users.get(user)
        if stored_hash is not None:
            return stored_hash, True
        if not self._names:
            return _decoy_hash(), False
        digest = hashlib.blake2b(user.encode(), key=self._decoy_key, digest_size=8).digest()
        return self._users[self._names[int.from_bytes(digest, "big") % len(self._names)]], False


@functools.cache
def _decoy_hash() -> str:
    """What passwords of unknown users are checked against. Made when first wanted, since it takes 20 ms."""
    return hash_password(secrets.token_hex(16))
