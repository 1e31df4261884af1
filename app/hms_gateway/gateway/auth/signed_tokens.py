"""Signed tokens (JWT) of OAuth2 issuers beside personal tokens: `Authorization: Bearer …`."""

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from hms_gateway.gateway.admission.identity import HeaderList, Identity, RequestHead, is_user_name
from hms_gateway.gateway.admission.refusals import NOT_TRIED, Refused
from hms_gateway.gateway.auth.credentials import BEARER, Credential, CredentialCache, Login, WrongTokens, sent_token
from hms_gateway.gateway.auth.issuers import Issuer, IssuerAway, signing_keys
from hms_gateway.runtime.addresses import share_of

if TYPE_CHECKING:
    from joserfc.jwk import Key

# Claims are bounded by it: groups, nesting, everything.
TOKEN_BYTES_MAX: Final = 16 * 1024
TIME_SECONDS_MAX: Final = 10**12


class NotAccepted(Exception):
    """A token does not let in; the text says why and shows nothing of it."""


class _Header(msgspec.Struct):
    alg: str
    kid: str | None = None
    crit: msgspec.Raw = msgspec.Raw()
    b64: msgspec.Raw = msgspec.Raw()


class _Unverified(msgspec.Struct):
    iss: str


class SignedTokenLogin(Login):
    """Lets in users of issuers' tokens; others are the next one's.

    A token that was verified is remembered until it expires; it is forgotten when its issuer withdraws a key.
    """

    scheme = BEARER

    def __init__(
        self,
        issuers: Sequence[Issuer],
        *,
        challenges: HeaderList,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        share_of: Callable[[str], str | None] = share_of,
    ) -> None:
        self._issuers = {issuer.name: issuer for issuer in issuers}
        self.cache: CredentialCache = CredentialCache()
        self._challenges = challenges
        self._now = now
        self._wrong = WrongTokens(monotonic, sleep, share_of)

    def holds(self, credential: Credential) -> bool:
        expires, issuer, version = credential.evidence
        keys = issuer.keys.current()
        return bool(expires > self._now() and keys is not None and keys.version == version)

    async def authenticate(self, head: RequestHead) -> Identity | None:
        """Raises Refused: 401 for a token that is not right, 503 while its issuer's keys are not known, 429."""
        token = sent_token(head)
        # Personal tokens have no dots.
        if token.count(b".") != 2:
            return None
        try:
            found = await self._verified(token)
        except IssuerAway as away:
            text = f"The issuer of the token cannot be asked for its keys: {away}; try again"
            raise Refused(503, text, headers=NOT_TRIED, reason="issuer_away") from None
        except NotAccepted as error:
            await self._wrong.wait(head)
            text = f"The token is not accepted: {error}"
            raise Refused(401, text, headers=self._challenges, reason="wrong_token") from None
        self.cache.remember(head.headers[b"authorization"], found)
        return found.identity(head)

    async def _verified(self, token: bytes) -> Credential:
        """Raises NotAccepted, IssuerAway."""
        if len(token) > TOKEN_BYTES_MAX:
            raise NotAccepted(f"it is longer than {TOKEN_BYTES_MAX} bytes")
        header, issuer = self._header_and_issuer(token)
        if header.alg not in issuer.algorithms:
            raise NotAccepted("its signature algorithm is not in the issuer's setting algorithms")
        keys, version = await issuer.keys.usable()
        if not signing_keys(keys, header.kid, header.alg):
            keys, version = await issuer.keys.newest()
        claims = _signed_claims(token, signing_keys(keys, header.kid, header.alg), header.alg)
        expires = _checked_expiry(claims, issuer, self._now())
        user = _claim(claims, issuer.user_claim)
        if not isinstance(user, str) or not is_user_name(user):
            raise NotAccepted(f"its claim {issuer.user_claim} is not the name of a user")
        groups = None if issuer.groups_claim is None else _claim(claims, issuer.groups_claim)
        evidence = expires, issuer, version
        return Credential(evidence, user, _groups(groups), by_token=True, by_others=True)

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


def _decoded(part: bytes) -> bytes:
    """Raises ValueError."""
    return base64.b64decode(part + b"=" * (-len(part) % 4), altchars=b"-_", validate=True)


def _signed_claims(token: bytes, keys: "Sequence[Key]", algorithm: str) -> Mapping[str, Any]:
    """The claims that the issuer has signed with one of the keys. Raises NotAccepted."""
    from joserfc.errors import JoseError
    from joserfc.jws import JWSRegistry
    from joserfc.jwt import decode

    class Registry(JWSRegistry):
        """The library's own bounds are narrower than that of TOKEN_BYTES_MAX, and its check of names refuses some."""

        max_header_length = max_payload_length = TOKEN_BYTES_MAX

        def get_alg(self, name: str) -> Any:
            # The caller has decided which are allowed; the library warns of EdDSA's name.
            return self.algorithms[name]

    if not keys:
        raise NotAccepted("its key is not in the key set of its issuer, or it names none of several keys")
    for key in keys:
        try:
            return decode(token, key, [algorithm], Registry(strict_check_header=False)).claims
        # Whatever of its bytes cannot be read is the sender's: the library lets errors of base64 and JSON through.
        except (JoseError, ValueError, TypeError, KeyError, RecursionError):
            continue
    raise NotAccepted("its signature is wrong")


def _checked_expiry(claims: Mapping[str, Any], issuer: Issuer, now: float) -> float:
    """The time until which the token holds, if it holds now and for us. Raises NotAccepted."""
    if claims.get("iss") != issuer.name:
        raise NotAccepted("it names two issuers")
    expires = _seconds(claims, "exp")
    if expires is None:
        raise NotAccepted("it does not say when it expires (exp)")
    if expires + issuer.clock_skew_seconds <= now:
        raise NotAccepted("it has expired")
    begins = _seconds(claims, "nbf")
    if begins is not None and begins - issuer.clock_skew_seconds > now:
        raise NotAccepted("it is not valid yet (nbf)")
    if issuer.audience.isdisjoint(_texts(claims.get("aud"))):
        raise NotAccepted("it is for another audience (aud)")
    return expires + issuer.clock_skew_seconds


def _seconds(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= TIME_SECONDS_MAX:
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
    return frozenset(name for name in names if is_user_name(name))


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
