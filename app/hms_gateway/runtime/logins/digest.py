"""The server's side of SASL DIGEST-MD5 (RFC 2831) as Hadoop uses it: realm, service and quality are fixed, and user and
password are the name and the password of a delegation token, in base64.
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
        """As a bridge sends it."""
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
        """Of the token whose password it is. Raises DigestError."""
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
