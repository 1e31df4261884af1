"""Secrets as they lie in the database: sealed with a key that is kept in a file elsewhere (AES-256-GCM).

A sealed text names its key. The file holds one key in each line, base64: the first one seals, each of them opens.
"""

import base64
import binascii
import contextlib
import hashlib
import os
import secrets
import tempfile
from pathlib import Path
from typing import Final

from hms_gateway.runtime.file_versions import make_data_folder

KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_ID_CHARACTERS: Final = 16
_HOW_TO_MAKE: Final = "make one with `openssl rand -base64 32`"
# Texts from before there were keys do not begin with it: they were chosen by Hive's token managers, in base64.
_SEALED: Final = "sealed-1:"


class SealingError(Exception):
    """A secret cannot be sealed or opened; the text names the key file and is meant for operators."""


class Seal:
    """Seals and opens texts with the keys in a file, which is made when it is first needed."""

    def __init__(self, key_file: Path) -> None:
        self._file = key_file
        self._keys: dict[str, bytes] = {}

    @property
    def has_key(self) -> bool:
        """True if there is a key."""
        return bool(self._keys) or self._file.exists()

    def seal(self, text: str, purpose: str, *, may_make_key: bool = True) -> str:
        """The text, sealed for a purpose: for another one it cannot be opened. Raises SealingError."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key_id, key = next(iter(self._all_keys(may_make=may_make_key).items()))
        nonce = secrets.token_bytes(_NONCE_BYTES)
        box = AESGCM(key).encrypt(nonce, _bytes(text), _bytes(purpose))
        return f"{_SEALED}{key_id}:{base64.b64encode(nonce + box).decode()}"

    def open(self, sealed: str, purpose: str) -> str:
        """The plain text of a sealed one; a text that is not sealed is returned unchanged. Raises SealingError."""
        if not is_sealed(sealed):
            return sealed
        # Only here, since most gateways keep no secrets, and the library costs a tenth of the server's memory.
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key_id, _, encoded = sealed.removeprefix(_SEALED).partition(":")
        key = self._all_keys().get(key_id)
        if key is None:
            raise SealingError(
                f"secrets_key_file {self._file} has another key than the secret was sealed with; "
                "all gateways of one database need the same file"
            )
        try:
            box = base64.b64decode(encoded, validate=True)
            return (
                AESGCM(key)
                .decrypt(box[:_NONCE_BYTES], box[_NONCE_BYTES:], _bytes(purpose))
                .decode(errors="surrogatepass")
            )
        except (InvalidTag, ValueError) as error:
            raise SealingError("the secret was changed in the database; store it again") from error

    def is_current(self, stored: str) -> bool:
        """True if the text is sealed with the current key. Raises SealingError."""
        return stored.startswith(f"{_SEALED}{next(iter(self._all_keys()))}:")

    def _all_keys(self, *, may_make: bool = False) -> dict[str, bytes]:
        """By their ids. Read once: a restart takes a changed file."""
        if not self._keys:
            try:
                if may_make and not self._file.exists():
                    self._make()
                lines = self._file.read_text("ascii").split()
            except FileNotFoundError as error:
                raise SealingError(
                    f"secrets_key_file {self._file} not found, and secrets in the database are sealed with it; "
                    "put it back, or copy it from another gateway of this database"
                ) from error
            except (OSError, UnicodeDecodeError) as error:
                raise SealingError(f"secrets_key_file {self._file} cannot be used: {error}") from error
            self._keys = {_id(key): key for key in map(self._key, lines)}
            if not self._keys:
                raise SealingError(f"secrets_key_file {self._file} is empty; {_HOW_TO_MAKE}")
        return self._keys

    def _key(self, line: str) -> bytes:
        with contextlib.suppress(binascii.Error):
            key = base64.b64decode(line, validate=True)
            if len(key) == KEY_BYTES:
                return key
        raise SealingError(f"secrets_key_file {self._file} does not hold keys of {KEY_BYTES} bytes; {_HOW_TO_MAKE}")

    def _make(self) -> None:
        """A file appears whole or not at all, and never replaces one that another process made."""
        make_data_folder(self._file.parent)
        descriptor, temporary = tempfile.mkstemp(dir=self._file.parent, prefix=f".{self._file.name}-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(base64.b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(temporary, self._file)
        finally:
            os.unlink(temporary)


def is_sealed(stored: str) -> bool:
    return stored.startswith(_SEALED)


def _id(key: bytes) -> str:
    return hashlib.sha256(b"hms-gateway secrets key\0" + key).hexdigest()[:_ID_CHARACTERS]


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
