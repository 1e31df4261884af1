"""Signed tokens (JWT) of OAuth2 issuers beside personal tokens: `Authorization: Bearer …`.

A token that was verified is remembered until it expires (`KnownHeaders`), so later calls cost what a remembered
password costs; it is forgotten when its issuer withdraws a key.
"""

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from hms_gateway.gateway.admission.identity import Authenticator, HeaderList, Identity, RequestHead
from hms_gateway.gateway.admission.refusals import NOT_TRIED, Refused
from hms_gateway.gateway.auth.authentication import KnownHeaders
from hms_gateway.gateway.auth.issuer_keys import IssuerAway, IssuerKeys
from hms_gateway.gateway.auth.signing_keys import KeySet, verified_payload
from hms_gateway.gateway.auth.token_authenticator import WrongTokens, sent_token, wrong_token_challenges
from hms_gateway.runtime.addresses import share_of

# Claims are bounded by it: groups, nesting, everything.
TOKEN_BYTES_MAX: Final = 16 * 1024
USER_CHARACTERS_MAX: Final = 256
TIME_SECONDS_MAX: Final = 10**12


class NotAccepted(Exception):
    """A token does not let in; the text says why and shows nothing of it."""


class Issuer(msgspec.Struct, frozen=True):
    """Whose tokens are taken, and what has to be in them (`settings.TokenIssuer`)."""

    name: str
    audience: frozenset[str]
    algorithms: frozenset[str]
    keys: IssuerKeys
    user_claim: str = "sub"
    groups_claim: str | None = None
    clock_skew_seconds: float = 60.0


class _Header(msgspec.Struct):
    alg: str
    kid: str | None = None
    crit: msgspec.Raw = msgspec.Raw()
    b64: msgspec.Raw = msgspec.Raw()


class _Unverified(msgspec.Struct):
    iss: str


class _Known(msgspec.Struct, frozen=True):
    user: str
    groups: frozenset[str]
    expires: float
    issuer: Issuer
    version: int


class SignedTokenAuthenticator:
    """Lets in users of issuers' tokens; for requests with the scheme `Bearer` only. Other tokens are `following`'s."""

    def __init__(
        self,
        issuers: Sequence[Issuer],
        following: Authenticator,
        *,
        realm: str,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        share_of: Callable[[str], str | None] = share_of,
    ) -> None:
        self._issuers = {issuer.name: issuer for issuer in issuers}
        self._following = following
        self._challenges: HeaderList = wrong_token_challenges(realm)
        self._now = now
        self._wrong = WrongTokens(monotonic, sleep, share_of)
        self._known: KnownHeaders[_Known] = KnownHeaders()

    def remembered(self, head: RequestHead) -> Identity | None:
        # The whole header, which need not be taken apart: this runs for every call.
        header = head.headers[b"authorization"]
        if not _is_signed(header):
            return self._following.remembered(head)
        known = self._known.find(header, head.last)
        if known is None or known.expires <= self._now():
            return None
        keys = known.issuer.keys
        # Asked first: it looks at a file that may have changed.
        if keys.current() is None or keys.version != known.version:
            return None
        return _identity(known, head)

    async def authenticate(self, head: RequestHead) -> Identity:
        """Raises Refused: 401 for a token that is not right, 503 while its issuer's keys are not known, 429."""
        token = sent_token(head)
        if not _is_signed(token):
            return await self._following.authenticate(head)
        try:
            known = await self._verified(token)
        except IssuerAway as away:
            text = f"The issuer of the token cannot be asked for its keys: {away}; try again"
            raise Refused(503, text, headers=NOT_TRIED, reason="issuer_away") from None
        except NotAccepted as error:
            await self._wrong.wait(head)
            text = f"The token is not accepted: {error}"
            raise Refused(401, text, headers=self._challenges, reason="wrong_token") from None
        self._known.remember(head.headers[b"authorization"], known)
        return _identity(known, head)

    def close(self) -> None:
        self._following.close()

    async def _verified(self, token: bytes) -> _Known:
        """Raises NotAccepted, IssuerAway."""
        if len(token) > TOKEN_BYTES_MAX:
            raise NotAccepted(f"it is longer than {TOKEN_BYTES_MAX} bytes")
        header, issuer = self._header_and_issuer(token)
        if header.alg not in issuer.algorithms:
            raise NotAccepted("its signature algorithm is not in the issuer's setting algorithms")
        keys = await issuer.keys.usable()
        if not keys.find(header.kid, header.alg):
            keys = await issuer.keys.newest()
        # Nothing is awaited from here on: the version is that of these keys.
        version = issuer.keys.version
        return _known(_checked(token, keys, header), issuer, version, self._now())

    def _header_and_issuer(self, token: bytes) -> tuple[_Header, Issuer]:
        parts = token.split(b".")
        try:
            header = msgspec.json.decode(_decoded(parts[0]), type=_Header)
            named = msgspec.json.decode(_decoded(parts[1]), type=_Unverified).iss
        except (ValueError, RecursionError):
            raise NotAccepted("its header or its claims cannot be read") from None
        # Extensions (RFC 7515, 4.1.11) change what is signed, such as RFC 7797 what the payload is.
        if header.crit or header.b64:
            raise NotAccepted("its header asks for an extension (crit, b64); none is known here")
        issuer = self._issuers.get(named)
        if issuer is None:
            raise NotAccepted("token_issuers does not name its issuer")
        return header, issuer


def _identity(known: _Known, head: RequestHead) -> Identity:
    return Identity(known.user, head.address, groups=known.groups, by_token=True, by_others=True)


def _is_signed(token: bytes) -> bool:
    """Personal tokens have no dots."""
    return token.count(b".") == 2


def _decoded(part: bytes) -> bytes:
    """Raises ValueError."""
    return base64.b64decode(part + b"=" * (-len(part) % 4), altchars=b"-_", validate=True)


def _checked(token: bytes, keys: KeySet, header: _Header) -> bytes:
    """The claims that the issuer has signed. Raises NotAccepted."""
    candidates = keys.find(header.kid, header.alg)
    if not candidates:
        raise NotAccepted("its key is not in the key set of its issuer, or it names none of several keys")
    payload = verified_payload(token, candidates, header.alg)
    if payload is None:
        raise NotAccepted("its signature is wrong")
    return payload


def _known(payload: bytes, issuer: Issuer, version: int, now: float) -> _Known:
    """Whom the claims name, when they hold now. Raises NotAccepted."""
    claims = msgspec.json.decode(payload)
    if claims.get("iss") != issuer.name:
        raise NotAccepted("it names two issuers")
    expires = _seconds(claims, "exp", issuer)
    if expires is None:
        raise NotAccepted("it does not say when it expires (exp)")
    if expires + issuer.clock_skew_seconds <= now:
        raise NotAccepted("it has expired")
    begins = _seconds(claims, "nbf", issuer)
    if begins is not None and begins - issuer.clock_skew_seconds > now:
        raise NotAccepted("it is not valid yet (nbf)")
    if issuer.audience.isdisjoint(_texts(claims.get("aud"))):
        raise NotAccepted("it is for another audience (aud)")
    user = _claim(claims, issuer.user_claim)
    if not isinstance(user, str) or not _is_name(user):
        raise NotAccepted(f"its claim {issuer.user_claim} is not the name of a user")
    groups: frozenset[str] = (
        frozenset() if issuer.groups_claim is None else _groups(_claim(claims, issuer.groups_claim))
    )
    return _Known(user, groups, expires + issuer.clock_skew_seconds, issuer, version)


def _seconds(claims: Mapping[str, Any], name: str, issuer: Issuer) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > TIME_SECONDS_MAX:
        raise NotAccepted(f"its claim {name} is not a time")
    return value


def _claim(claims: Mapping[str, Any], name: str) -> object:
    """The claim of that name; else, for `realm_access.roles`, the one inside of another."""
    if name in claims:
        return claims[name]
    found: object = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _groups(value: object) -> frozenset[str]:
    """A list of names, or names with blanks between them, as of `scope`."""
    names = value.split() if isinstance(value, str) else _texts(value)
    return frozenset(name for name in names if _is_name(name))


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _is_name(name: str) -> bool:
    return 0 < len(name) <= USER_CHARACTERS_MAX and name.isprintable() and name == name.strip()
