"""User name and password of an Authorization header, read as leniently as clients write it (clients §4.4)."""

import base64
import binascii
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class BasicCredentials:
    user: str
    password: str


def scheme_of(authorization: bytes) -> str:
    """The scheme in lower case, "" for an empty header."""
    return authorization.strip().partition(b" ")[0].decode("latin-1").lower()


def basic_challenge(realm: str) -> tuple[bytes, bytes]:
    """The header of a refusal that asks for user and password."""
    return b"www-authenticate", f'Basic realm="{realm}", charset="UTF-8"'.encode()


def read_basic(authorization: bytes) -> BasicCredentials | None:
    """Decode `Basic …`; None when it is none.

    Missing padding is added: Hive 4 clients cut configured headers at every `=`. Text that is not UTF-8 is Latin-1,
    which older browsers and Java send. A password may contain colons.
    """
    encoded = authorization.strip().partition(b" ")[2].strip().rstrip(b"=")
    try:
        decoded = base64.b64decode(encoded + b"=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    user, colon, password = _text(decoded).partition(":")
    if not colon or not user or not user.isprintable():
        return None
    return BasicCredentials(user, password)


def _text(decoded: bytes) -> str:
    try:
        return decoded.decode("utf-8")
    except UnicodeDecodeError:
        return decoded.decode("latin-1")
