"""The password file: one `name:hash` per line like htpasswd writes, argon2id or bcrypt hashes.

Reading is tolerant (comments, empty lines), writing replaces the file atomically and keeps it private (0600).
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import bcrypt
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from hms_gateway.gateway.auth.private_file import write_private

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
