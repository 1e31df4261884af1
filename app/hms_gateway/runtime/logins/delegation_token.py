"""Delegation tokens in Hadoop's format, which Hive's clients keep among their credentials.

A token has a name, in which its owner and its end are readable, and a password. A number takes one byte from -112 to
127; else the first byte says how many follow.
"""

import base64
import binascii
from typing import Final, Self

import msgspec

KIND: Final = "HIVE_DELEGATION_TOKEN"
# Of a token as text: three names, numbers and a password.
TEXT_BYTES_MAX: Final = 8 * 1024
NAME_CHARACTERS_MAX: Final = 256
_ONE_BYTE_MIN: Final = -112
_NEGATIVE_FROM: Final = -120
_VERSION: Final = b"\0"


class UnreadableToken(Exception):
    """It is not a token of this format; the text shows nothing of it."""


class TokenRefused(Exception):
    """A token does not let in; the text says why and shows nothing of it."""


class TokensAway(Exception):
    """Tokens cannot be looked up at the moment."""


class TokenName(msgspec.Struct, frozen=True):
    """The readable part of a token. Times are milliseconds since 1970; `number` makes it unique.

    `real_user` is who asked for it, where that is another one than the owner.
    """

    owner: str
    renewer: str
    real_user: str
    issued_ms: int
    ends_ms: int
    number: int

    def encode(self) -> bytes:
        """As it is sent."""
        names = b"".join(_text(name) for name in (self.owner, self.renewer, self.real_user))
        # The last number is that of a master key, of which there is none: passwords are random.
        numbers = b"".join(map(_number, (self.issued_ms, self.ends_ms, self.number, 0)))
        return _VERSION + names + numbers

    @classmethod
    def decode(cls, encoded: bytes) -> Self:
        """Raises UnreadableToken."""
        reader = _Reader(encoded)
        if reader.take(1) != _VERSION:
            raise UnreadableToken("the token's name is of another version")
        owner, renewer, real_user = (reader.text() for _ in range(3))
        issued_ms, ends_ms, number, _ = (reader.number() for _ in range(4))
        reader.end()
        return cls(owner, renewer, real_user, issued_ms, ends_ms, number)


def token_text(name: bytes, password: bytes) -> str:
    """A token as one text, which clients keep. The service it is for is written in by the client."""
    parts = _number(len(name)) + name + _number(len(password)) + password + _text(KIND) + _text("")
    return base64.urlsafe_b64encode(parts).decode().rstrip("=")


def read_token_text(text: str | bytes) -> tuple[bytes, bytes]:
    """Name and password. Raises UnreadableToken."""
    if len(text) > TEXT_BYTES_MAX:
        raise UnreadableToken(f"the token is longer than {TEXT_BYTES_MAX} bytes")
    try:
        encoded = text.encode("ascii") if isinstance(text, str) else text
        decoded = base64.b64decode(encoded + b"=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise UnreadableToken("the token is not base64") from None
    reader = _Reader(decoded)
    name, password = reader.take(reader.number()), reader.take(reader.number())
    if reader.text() != KIND:
        raise UnreadableToken(f"the token is not of the kind {KIND}")
    reader.text()
    reader.end()
    return name, password


class _Reader:
    """Takes an encoded token apart. Raises UnreadableToken."""

    def __init__(self, encoded: bytes) -> None:
        self._rest = encoded

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._rest):
            raise UnreadableToken("the token is not complete")
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def number(self) -> int:
        first = int.from_bytes(self.take(1), "big", signed=True)
        if first >= _ONE_BYTE_MIN:
            return first
        is_negative = first < _NEGATIVE_FROM
        value = int.from_bytes(self.take((_NEGATIVE_FROM if is_negative else _ONE_BYTE_MIN) - first), "big")
        return ~value if is_negative else value

    def text(self) -> str:
        try:
            text = self.take(self.number()).decode()
        except UnicodeDecodeError:
            raise UnreadableToken("a name in the token is not UTF-8") from None
        if len(text) > NAME_CHARACTERS_MAX:
            raise UnreadableToken(f"a name in the token is longer than {NAME_CHARACTERS_MAX} characters")
        return text

    def end(self) -> None:
        if self._rest:
            raise UnreadableToken("the token has more behind its end")


def _number(value: int) -> bytes:
    if _ONE_BYTE_MIN <= value <= 127:
        return value.to_bytes(1, "big", signed=True)
    first, size_of = (_ONE_BYTE_MIN, value) if value >= 0 else (_NEGATIVE_FROM, ~value)
    size = (size_of.bit_length() + 7) // 8
    return (first - size).to_bytes(1, "big", signed=True) + size_of.to_bytes(size, "big")


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _number(len(encoded)) + encoded
