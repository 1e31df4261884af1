"""Delegation tokens in Hadoop's format, which Hive's clients keep among their credentials, and the login with one.

A token has a name, in which its owner and its end are readable, and a password. A number takes one byte from -112 to
127; else the first byte says how many follow. The login is SASL DIGEST-MD5 (RFC 2831), the server's side, as Hadoop
uses it: realm, service and quality are fixed, and user and password are the token's name and password, in base64.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from typing import Annotated, Final, Self

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


REALM: Final = "default"
# What Hive's clients call, for want of a service: Java's null and the realm.
DIGEST_URI: Final = "null/default"
QUALITY: Final = "auth"
RESPONSE_BYTES_MAX: Final = 16 * 1024
# Clients choose their nonce, and logins are remembered for a while: of some 40 characters each.
PART_CHARACTERS_MAX: Final = 256
# Of a bridge's request, with what its client has shown, and of the answer to it.
PROOF_HEADER: Final = b"x-hms-token-proof"
ANSWER_HEADER: Final = b"x-hms-token-answer"
_COUNT: Final = "00000001"
_NONCE_BYTES: Final = 24
_FIELD: Final = re.compile(r'[ \t]*([a-z-]{1,40})[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s",]*))[ \t]*(?:,|\Z)')
_NEEDED: Final = ("username", "nonce", "cnonce", "nc", "digest-uri", "response")


_Part = Annotated[str, msgspec.Meta(max_length=PART_CHARACTERS_MAX)]


class DigestError(Exception):
    """A response is not accepted; the text says what is wrong with it."""


class Proof(msgspec.Struct, frozen=True):
    """A client's response to a challenge: that it has the password of the user. What is fixed is left out."""

    user: str
    nonce: _Part
    client_nonce: _Part
    response: _Part

    def matches(self, password: bytes) -> bool:
        """True if the response was made with the password."""
        return hmac.compare_digest(self._digest(password, "AUTHENTICATE:").encode(), self.response.encode())

    def answer(self, password: bytes) -> str:
        """The proof for the client that the server has the password too."""
        return self._digest(password, ":")

    @property
    def header(self) -> bytes:
        """Header that a bridge sends."""
        return base64.b64encode(msgspec.json.encode(self))

    @classmethod
    def from_header(cls, header: bytes) -> Self:
        """Raises DigestError."""
        try:
            return msgspec.json.decode(base64.b64decode(header, validate=True), type=cls)
        except (binascii.Error, ValueError):
            raise DigestError(f"the header {PROOF_HEADER.decode()} cannot be read") from None

    @property
    def token_name(self) -> bytes:
        """Name of the token whose password it is. Raises DigestError."""
        try:
            return base64.b64decode(self.user, validate=True)
        except (binascii.Error, ValueError):
            raise DigestError("the user is not the name of a delegation token in base64") from None

    def _digest(self, password: bytes, begin: str) -> str:
        secret = base64.b64encode(password).decode()
        login = f":{self.nonce}:{self.client_nonce}".encode()
        session = _md5(_md5(f"{self.user}:{REALM}:{secret}".encode()).digest() + login).hexdigest()
        asked = _md5(f"{begin}{DIGEST_URI}".encode()).hexdigest()
        said = f"{session}:{self.nonce}:{_COUNT}:{self.client_nonce}:{QUALITY}:{asked}"
        return _md5(said.encode()).hexdigest()


def new_nonce() -> str:
    """A random nonce for one login."""
    return secrets.token_urlsafe(_NONCE_BYTES)


def challenge(nonce: str) -> bytes:
    """The first message of a login."""
    return f'realm="{REALM}",nonce="{nonce}",qop="{QUALITY}",charset=utf-8,algorithm=md5-sess'.encode()


def read_response(response: bytes, nonce: str) -> Proof:
    """The client's response to the challenge with this nonce. Raises DigestError."""
    if len(response) > RESPONSE_BYTES_MAX:
        raise DigestError(f"the response is longer than {RESPONSE_BYTES_MAX} bytes")
    fields = _fields(response)
    for name in _NEEDED:
        if not fields.get(name):
            raise DigestError(f"the response has no {name}")
    for name in ("cnonce", "response"):
        if len(fields[name]) > PART_CHARACTERS_MAX:
            raise DigestError(f"its {name} is longer than {PART_CHARACTERS_MAX} characters")
    fixed = {"realm": REALM, "qop": QUALITY, "digest-uri": DIGEST_URI, "nc": _COUNT}
    for name, wanted in fixed.items():
        # Without a quality it is this one.
        if (sent := fields.get(name, QUALITY if name == "qop" else "")) != wanted:
            raise DigestError(f"its {name} is {sent[:40]!r} and has to be {wanted!r}")
    if not hmac.compare_digest(fields["nonce"].encode(), nonce.encode()):
        raise DigestError("its nonce is not the one of this login: a response counts once")
    if fields.get("authzid", fields["username"]) != fields["username"]:
        raise DigestError("it asks to act for another user")
    if "authzid" in fields:
        raise DigestError("it has an authzid; send none")
    return Proof(fields["username"], nonce, fields["cnonce"], fields["response"])


def last_answer(proven: str) -> bytes:
    """The last message of a login."""
    return f"rspauth={proven}".encode()


def _fields(response: bytes) -> Mapping[str, str]:
    try:
        text = response.decode()
    except UnicodeDecodeError:
        raise DigestError("the response is not UTF-8") from None
    found: dict[str, str] = {}
    position = 0
    while position < len(text):
        field = _FIELD.match(text, position)
        if field is None or field[1] in found:
            raise DigestError("the response cannot be read")
        found[field[1]] = field[3] if field[2] is None else re.sub(r"\\(.)", r"\1", field[2])
        position = field.end()
    return found


def _md5(content: bytes) -> "hashlib._Hash":
    # The mechanism's own; what it protects is a random password of 32 bytes, which cannot be guessed.
    return hashlib.md5(content, usedforsecurity=False)
