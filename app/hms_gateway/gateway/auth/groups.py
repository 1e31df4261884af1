"""Groups of users from a file of the operator, whatever their login: tickets, certificates, tokens of ours name none.

The file is in the form that Apache httpd reads: `group: alice bob` in each line. It is read again when it changes; a
broken one is logged, and the groups before stay.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from hms_gateway.gateway.admission.identity import Authenticator, Identity, RequestHead
from hms_gateway.runtime.file_versions import WatchedFile

FILE_BYTES_MAX: Final = 16 * 1024 * 1024
# Read in a millisecond. For what takes longer the event loop does not wait.
READ_AT_ONCE_BYTES: Final = 64 * 1024
_NONE: Final[frozenset[str]] = frozenset()

_log = structlog.get_logger("hms_gateway.groups")


class GroupsFileError(Exception):
    """The file cannot be used; the text names it and the line, and is meant for the operator."""


class GroupsFile:
    """The groups of now. Making it raises GroupsFileError."""

    def __init__(self, path: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._file = WatchedFile(path, monotonic)
        self._file.has_changed(at_once=True)
        self._groups = read_groups(path)
        self._reading = threading.Lock()

    def of(self, user: str) -> frozenset[str]:
        """The groups of a user; the file may have changed a second and the time to read it ago."""
        if self._file.has_changed(at_once=False):
            if self._file.size > READ_AT_ONCE_BYTES:
                threading.Thread(target=self._read, name="groups", daemon=True).start()
            else:
                self._read()
        return self._groups.get(user, _NONE)

    def _read(self) -> None:
        # One after the other, so that what is read last is kept.
        with self._reading:
            try:
                self._groups = read_groups(self._file.path)
            except GroupsFileError as error:
                _log.error("groups not read; the previous groups stay in force", problem=str(error))


def read_groups(path: Path) -> dict[str, frozenset[str]]:
    """The groups of each user. Raises GroupsFileError."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise GroupsFileError(f"{path} is larger than {FILE_BYTES_MAX} bytes; name fewer users")
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise GroupsFileError(f"{path} cannot be read: {error}") from error
    found: dict[str, set[str]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        group, colon, users = line.partition(":")
        if not colon or not group.strip():
            raise GroupsFileError(f"{path}, line {number} names no group; write `group: alice bob`")
        for user in users.split():
            found.setdefault(user, set()).add(group.strip())
    return {user: frozenset(groups) for user, groups in found.items()}


class GroupsAuthenticator:
    """Adds the groups of the file to those that the login proved; also for a user that another one acts for."""

    def __init__(self, following: Authenticator, groups_of: Callable[[str], frozenset[str]]) -> None:
        self._following = following
        self.groups_of = groups_of

    def remembered(self, head: RequestHead) -> Identity | None:
        identity = self._following.remembered(head)
        return None if identity is None else self._with_groups(identity)

    async def authenticate(self, head: RequestHead) -> Identity:
        """Raises what the next authenticator raises."""
        return self._with_groups(await self._following.authenticate(head))

    def close(self) -> None:
        self._following.close()

    def _with_groups(self, identity: Identity) -> Identity:
        groups = self.groups_of(identity.user)
        return identity._replace(groups=identity.groups | groups) if groups else identity
