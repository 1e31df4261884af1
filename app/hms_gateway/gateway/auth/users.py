"""Users and groups in files of the operator.

The password file has one `name:hash` per line like htpasswd writes, argon2id or bcrypt hashes. Reading is tolerant
(comments, empty lines), writing replaces the file atomically and keeps it private (0600).

The groups file has the form that Apache httpd reads: `group: alice bob` in each line. Its groups count whatever the
login: tickets, certificates, tokens of ours name none. After a change it is read again; a broken one is logged, and the
groups before stay.
"""

import fcntl
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import bcrypt
import structlog
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from hms_gateway.runtime.file_versions import WatchedFile, make_data_folder


@contextmanager
def writing_alone(path: Path) -> Iterator[None]:
    """No other process that asks for it changes the file meanwhile. Raises OSError."""
    make_data_folder(path.parent)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def write_private(path: Path, lines: Iterable[str]) -> None:
    """Replace the file; a first one is readable for its owner alone.

    A later one keeps its owner: root may change what a server under an account of its own has to read. Raises OSError.
    """
    with written_beside(path, lines) as temporary:
        temporary.replace(path)


@contextmanager
def written_beside(path: Path, lines: Iterable[str]) -> Iterator[Path]:
    """A file with the lines that can replace `path`. It is removed at the end if it did not. Raises OSError."""
    make_data_folder(path.parent)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(lines)
            file.flush()
            _keep_access(path, file.fileno())
            os.fsync(file.fileno())
        yield Path(temporary)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _keep_access(path: Path, descriptor: int) -> None:
    """Give a new file the owner of the one it replaces, and what that owner and its group may; others may nothing.

    Root gives a first one the folder's owner.
    """
    is_root = os.geteuid() == 0
    try:
        before = path.stat()
    except FileNotFoundError:
        if is_root:
            folder = path.parent.stat()
            os.fchown(descriptor, folder.st_uid, folder.st_gid)
        return
    if is_root:
        os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, before.st_mode & 0o660)


ARGON2_PREFIX = "$argon2"
BCRYPT_PREFIXES = ("$2a$", "$2b$", "$2y$")
# bcrypt never looks further; its library refuses longer passwords where htpasswd cut them.
BCRYPT_PASSWORD_BYTES_MAX = 72
USER_NAME_CHARACTERS_MAX = 255

# 19 MiB and two passes: about 20 ms, and small enough to run beside a server that idles in 100 MB.
_HASHER = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)

Verifier = Callable[[str, str], bool]


class UserFileError(Exception):
    """The password file or what should go into it is wrong; the text is meant for the operator."""


def hash_password(password: str) -> str:
    """An argon2id hash as it is in the file. Takes about 20 ms."""
    return _HASHER.hash(password)


def verify_password(stored_hash: str, password: str) -> bool:
    """True if the password belongs to the hash; False for a hash of an unknown kind. Takes 20 ms and more."""
    if stored_hash.startswith(ARGON2_PREFIX):
        return _argon2_matches(stored_hash, password)
    if stored_hash.startswith(BCRYPT_PREFIXES):
        return _bcrypt_matches(stored_hash, password)
    return False


def _argon2_matches(stored_hash: str, password: str) -> bool:
    try:
        return _HASHER.verify(stored_hash, password)
    except (VerificationError, InvalidHashError):
        return False


def _bcrypt_matches(stored_hash: str, password: str) -> bool:
    try:
        return bcrypt.checkpw(password.encode()[:BCRYPT_PASSWORD_BYTES_MAX], stored_hash.encode())
    except ValueError:
        return False


def read_users(path: Path) -> dict[str, str]:
    """Names and hashes in the order of the file; empty without a file. Raises UserFileError."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UserFileError(f"{path} cannot be read: {error}") from error
    users = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, stored_hash = line.strip().partition(":")
        if not colon or not name:
            raise UserFileError(f"{path} line {number} is not name:hash")
        if not stored_hash.startswith((ARGON2_PREFIX, *BCRYPT_PREFIXES)):
            raise UserFileError(f"{path} line {number}: the hash of {name} is neither argon2 nor bcrypt")
        users[name] = stored_hash
    return users


def add_user(path: Path, name: str, password: str) -> bool:
    """Add the user or give it a new password; True when it is new. Raises UserFileError."""
    check_name(name)
    if not password:
        raise UserFileError("an empty password is not accepted")
    users = read_users(path)
    is_new = name not in users
    users[name] = hash_password(password)
    _write_users(path, users)
    return is_new


def remove_user(path: Path, name: str) -> bool:
    """Remove the user; False when there is none of the name. Raises UserFileError."""
    users = read_users(path)
    if users.pop(name, None) is None:
        return False
    _write_users(path, users)
    return True


def list_users(path: Path) -> list[str]:
    """Names in the order of the file. Raises UserFileError."""
    return list(read_users(path))


def verify_user(path: Path, name: str, password: str) -> bool:
    """True if the file has the user with this password. Raises UserFileError."""
    stored_hash = read_users(path).get(name)
    return stored_hash is not None and verify_password(stored_hash, password)


def check_name(name: str) -> None:
    """Raises UserFileError for a name that a user cannot have."""
    if not name or len(name) > USER_NAME_CHARACTERS_MAX:
        raise UserFileError(f"a user name has 1 to {USER_NAME_CHARACTERS_MAX} characters")
    if ":" in name or name.startswith("#") or name != name.strip() or not name.isprintable():
        raise UserFileError(f"user name {name!r}: no colon, no leading #, no outer spaces, no control characters")


def _write_users(path: Path, users: Mapping[str, str]) -> None:
    try:
        write_private(path, (f"{name}:{stored_hash}\n" for name, stored_hash in users.items()))
    except OSError as error:
        raise UserFileError(f"{path} cannot be written: {error}") from error


FILE_BYTES_MAX: Final = 16 * 1024 * 1024
# Read in a millisecond. For what takes longer the event loop does not wait.
READ_AT_ONCE_BYTES: Final = 64 * 1024
_NONE: Final[frozenset[str]] = frozenset()

_groups_log = structlog.get_logger("hms_gateway.groups")


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
                _groups_log.error("groups not read; the previous groups stay in force", problem=str(error))


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
