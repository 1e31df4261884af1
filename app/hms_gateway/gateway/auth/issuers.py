"""Tokens that issuers sign: keys, claims, users."""

import asyncio
import base64
import contextlib
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import structlog

from hms_gateway.gateway.admission.identity import NOT_TRIED, HeaderList, Identity, Refused, RequestHead, is_user_name
from hms_gateway.gateway.auth.credentials import BEARER, Credential, CredentialCache, Login, WrongTokens, sent_token
from hms_gateway.runtime.addresses import is_safe_url, share_of
from hms_gateway.runtime.file_versions import WatchedFile
from hms_gateway.runtime.settings import TokenIssuer

if TYPE_CHECKING:
    from joserfc.jwk import Key


# OAuth2 issuers of signed tokens: the keys that they publish (RFC 7517, 8725), fetched and kept, or read from a file.
#
# Keys are fetched when first wanted, and again before they are old. While the issuer is away the keys before go on for
# a set time. A token that names an unknown key makes one look at the issuer, at most every REFETCH_EVERY_SECONDS,
# however many such tokens come. Which algorithms count is the operator's choice, and which kind of key each needs is
# fixed here: neither the header of a token nor a key set can make a public key a shared secret. joserfc is loaded with
# the first key set.


REFETCH_EVERY_SECONDS: Final = 10.0
# How long a request waits for a fetch; the fetch itself may take longer, where names are not resolved.
WAIT_SECONDS_MAX: Final = 10.0
DOCUMENT_BYTES_MAX: Final = 1024 * 1024
# Of one step of a connection, and of a document as a whole.
STEP_SECONDS_MAX: Final = 4.0
DOCUMENT_SECONDS_MAX: Final = 8.0
KEYS_MAX: Final = 100
RSA_BITS_MIN: Final = 2048
# More keys of one name are not tried: each try costs a signature check.
TRIED_MAX: Final = 3
_DISCOVERY: Final = "/.well-known/openid-configuration"
_PIECE_BYTES: Final = 64 * 1024

_RSA = ("RSA", None)
# Kind of key and curve of each algorithm; shared secrets (HS256) and `none` are not among them.
KEY_KINDS: Final[Mapping[str, tuple[str, str | None]]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), _RSA),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
    "Ed25519": ("OKP", "Ed25519"),
}
_PUBLIC_FIELDS: Final = ("kty", "crv", "x", "y", "n", "e", "kid", "alg")

_log = structlog.get_logger("hms_gateway.issuers")


class IssuerAway(Exception):
    """The issuer's keys cannot be had now; the text says why, or what was asked."""


class Issuer(NamedTuple):
    """The issuers whose tokens are taken, and the claims that have to be in them."""

    settings: TokenIssuer
    keys: "IssuerKeys"


def make_issuer(settings: TokenIssuer, monotonic: Callable[[], float] = time.monotonic) -> Issuer:
    """Asks nothing yet: a gateway starts while an issuer is away."""
    keys: IssuerKeys
    if settings.keys_file is not None:
        keys = FileKeys(settings.issuer, WatchedFile(settings.keys_file, monotonic))
    else:
        keys = FetchedKeys(
            settings.issuer,
            partial(_fetched, settings),
            refresh_seconds=settings.keys_refresh_seconds,
            kept_seconds=settings.keys_kept_seconds,
            monotonic=monotonic,
        )
    return Issuer(settings, keys)


class KeySet(NamedTuple):
    """The keys of an issuer at one time. `version` grows when one of those before does not count any more."""

    keys: "Sequence[Key]"
    version: int


class IssuerKeys:
    """The keys of one issuer. A thread may replace them at any time, so keys and version are one value."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer
        self._keys: KeySet | None = None

    def current(self) -> KeySet | None:
        """The known valid keys; None if they have to be fetched first. Returns at once."""
        raise NotImplementedError

    async def usable(self) -> KeySet:
        """The keys that may verify a new token. Raises IssuerAway."""
        return self.current() or await self.newest()

    async def newest(self) -> KeySet:
        """The newest keys, for a token whose key is not among the current ones. Raises IssuerAway."""
        raise NotImplementedError

    def _take(self, keys: "Sequence[Key]") -> None:
        before = self._keys
        version = 0 if before is None else before.version
        if before is not None and not _identities(before.keys) <= _identities(keys):
            version += 1
        self._keys = KeySet(keys, version)


class FetchedKeys(IssuerKeys):
    """Keys that the issuer publishes. While it does not answer, those before go on for `kept_seconds`.

    `fetch` blocks and raises IssuerAway.
    """

    def __init__(
        self,
        issuer: str,
        fetch: Callable[[], bytes],
        *,
        refresh_seconds: float,
        kept_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(issuer)
        self._fetch = fetch
        self._refresh_seconds = refresh_seconds
        self._kept_seconds = kept_seconds
        self._monotonic = monotonic
        self._fetched_at = self._next_try = 0.0
        self._problem: str | None = None
        self._fetching: Future[None] | None = None
        self._started_at = 0.0

    def current(self) -> KeySet | None:
        if self._keys is None:
            return None
        now = self._monotonic()
        age = now - self._fetched_at
        if age >= self._refresh_seconds and now >= self._next_try and self._fetching is None:
            self._start()
        return self._keys if age < self._kept_seconds else None

    async def usable(self) -> KeySet:
        keys, fetching = self.current(), self._fetching
        # Without a look for long: what was withdrawn meanwhile must not let a new token in. An issuer that has not
        # answered at the last look is not waited for again.
        is_old = self._monotonic() - self._fetched_at >= 2 * self._refresh_seconds
        if keys is not None and is_old and fetching is not None and self._problem is None:
            with contextlib.suppress(IssuerAway):
                await self._wait(fetching)
            keys = self.current()
        return keys or await self.newest()

    async def newest(self) -> KeySet:
        if self._fetching is None and self._monotonic() >= self._next_try:
            self._start()
        fetching = self._fetching
        if fetching is not None:
            await self._wait(fetching)
        keys = self.current()
        if self._problem is not None or keys is None:
            raise IssuerAway(self._problem or "its keys are being fetched")
        return keys

    async def _wait(self, fetching: "Future[None]") -> None:
        """Not for ever, and together not longer than one would."""
        left = self._started_at + WAIT_SECONDS_MAX - self._monotonic()
        if left > 0:
            await asyncio.wait([asyncio.wrap_future(fetching)], timeout=left)
        if not fetching.done():
            raise IssuerAway("it does not answer")

    def _start(self) -> None:
        self._started_at = self._monotonic()
        fetching: Future[None] = Future()
        self._fetching = fetching
        # A thread that does not keep the process from ending: fetches are rare, and may hang in a resolver.
        threading.Thread(target=self._run, args=(fetching,), name="issuer", daemon=True).start()

    def _run(self, fetching: "Future[None]") -> None:
        try:
            self._take(read_key_set(self._fetch()))
        except IssuerAway as error:
            self._note(str(error))
        except Exception as error:
            _log.exception("keys of an issuer not fetched", issuer=self._issuer)
            self._note(f"unexpected: {type(error).__name__}")
        self._next_try = self._monotonic() + REFETCH_EVERY_SECONDS
        self._fetching = None
        fetching.set_result(None)

    def _take(self, keys: "Sequence[Key]") -> None:
        if self._problem is not None:
            _log.info("the issuer answers again", issuer=self._issuer)
        super()._take(keys)
        self._fetched_at, self._problem = self._monotonic(), None

    def _note(self, problem: str) -> None:
        if problem != self._problem:
            kept = self._kept_seconds if self._keys is not None else 0
            _log.error("keys of an issuer not fetched", issuer=self._issuer, problem=problem, kept_seconds=kept)
        self._problem = problem


class FileKeys(IssuerKeys):
    """Keys in a file, read again when it changes; a broken or missing one leaves those before."""

    def __init__(self, issuer: str, file: WatchedFile) -> None:
        super().__init__(issuer)
        self._file = file
        self._problem = "its file was not read"

    def current(self) -> KeySet | None:
        self._look(at_once=False)
        return self._keys

    async def newest(self) -> KeySet:
        self._look(at_once=True)
        if self._keys is None:
            raise IssuerAway(self._problem)
        return self._keys

    def _look(self, *, at_once: bool) -> None:
        if not self._file.has_changed(at_once=at_once):
            return
        try:
            self._take(read_key_set(self._file.path.read_bytes()))
        except (OSError, IssuerAway) as error:
            self._problem = f"{self._file.path} cannot be used: {error}"
            _log.error("key set not read; the previous keys stay valid", issuer=self._issuer, problem=self._problem)


def read_key_set(document: bytes) -> "Sequence[Key]":
    """Read a JWK set. Keys of other kinds and for other uses are left out. Raises IssuerAway."""
    try:
        decoded = msgspec.json.decode(document)
    except (msgspec.DecodeError, RecursionError) as error:
        raise IssuerAway(f"it is not JSON: {error}") from None
    listed = decoded.get("keys") if isinstance(decoded, dict) else None
    if not isinstance(listed, list) or len(listed) > KEYS_MAX:
        raise IssuerAway(f'it is not a JWK set: it needs a list "keys" of at most {KEYS_MAX} keys')
    keys = [key for one in listed if isinstance(one, dict) and (key := _signing_key(one)) is not None]
    if not keys:
        raise IssuerAway(
            "it has no public key for signatures that can be used (RSA of 2048 bits and more, EC, Ed25519)"
        )
    return keys


def signing_keys(keys: "Sequence[Key]", kid: str | None, algorithm: str) -> "Sequence[Key]":
    """The keys that may have signed; for a token without `kid`, the one key that fits."""
    kind, curve = KEY_KINDS[algorithm]
    fitting = [
        key
        for key in keys
        if key.key_type == kind and curve in (None, key.get("crv")) and key.get("alg") in (None, algorithm)
    ]
    if kid is None:
        return fitting if len(fitting) == 1 else ()
    return [key for key in fitting if key.kid == kid][:TRIED_MAX]


def _signing_key(fields: Mapping[str, object]) -> "Key | None":
    """None for one that is not for signatures, or of a kind that none of the algorithms uses."""
    from joserfc.errors import JoseError
    from joserfc.jwk import JWKRegistry

    kind, curve = fields.get("kty"), fields.get("crv")
    public = {name: value for name in _PUBLIC_FIELDS if isinstance(value := fields.get(name), str)}
    if (kind, None if kind == "RSA" else curve) not in KEY_KINDS.values() or fields.get("use", "sig") != "sig":
        return None
    try:
        # Asked before: the library imports it with a warning.
        if kind == "RSA" and len(public.get("n", "")) * 6 < RSA_BITS_MIN:
            return None
        return JWKRegistry.import_key(dict(public))
    except (JoseError, ValueError, TypeError, KeyError):
        return None


def _identities(keys: "Sequence[Key]") -> set[tuple[str | None, str]]:
    """Name and thumbprint of each key, by which two versions of a set are compared."""
    return {(key.kid, key.thumbprint()) for key in keys}


def _fetched(settings: TokenIssuer) -> bytes:
    """Raises IssuerAway."""
    url = settings.keys_url or discovered_keys_url(settings.issuer, settings.authority)
    return fetch(url, settings.authority)


class _Configuration(msgspec.Struct):
    issuer: str
    jwks_uri: str
    token_endpoint: str = ""


class TokenEndpoint:
    """The place at which an issuer gives tokens, by its own configuration. Safe to use from several threads."""

    def __init__(self, settings: TokenIssuer, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._monotonic = monotonic
        self._looking = threading.Lock()
        self._next_look = 0.0
        self._url: str | None = None

    def __call__(self) -> str | None:
        """The URL, None where the issuer names none that is safe. Blocks while it asks; others get the last answer."""
        if self._monotonic() >= self._next_look and self._looking.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._looking.release()
        return self._url

    def _look(self) -> None:
        issuer, seconds = self._settings.issuer, REFETCH_EVERY_SECONDS
        if is_safe_url(issuer):
            with contextlib.suppress(IssuerAway):
                url = _discovered(issuer, self._settings.authority).token_endpoint
                self._url, seconds = url if is_safe_url(url) else None, self._settings.keys_refresh_seconds
        self._next_look = self._monotonic() + seconds


def discovered_keys_url(issuer: str, authority: Path | None) -> str:
    """URL of the issuer's key set, from its own configuration. Raises IssuerAway."""
    configuration = _discovered(issuer, authority)
    if not is_safe_url(configuration.jwks_uri):
        raise IssuerAway(f"{issuer} names the key set {configuration.jwks_uri!r}, which is not https://")
    return configuration.jwks_uri


def _discovered(issuer: str, authority: Path | None) -> _Configuration:
    """Raises IssuerAway."""
    url = issuer.rstrip("/") + _DISCOVERY
    try:
        configuration = msgspec.json.decode(fetch(url, authority), type=_Configuration)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise IssuerAway(f"{url} is not an OpenID configuration: {error}") from None
    if configuration.issuer != issuer:
        raise IssuerAway(f"{url} is of the issuer {configuration.issuer!r}; set issuer to this text")
    return configuration


def fetch(url: str, authority: Path | None, monotonic: Callable[[], float] = time.monotonic) -> bytes:
    """The document at `url`. Raises IssuerAway, after DOCUMENT_SECONDS_MAX and STEP_SECONDS_MAX at the latest."""
    # Loaded here: a start without an issuer does without.
    from http.client import HTTPException

    end = monotonic() + DOCUMENT_SECONDS_MAX
    pieces, size = [], 0
    try:
        with _opener(authority, is_secure=url.startswith("https:")).open(url, timeout=STEP_SECONDS_MAX) as response:
            while piece := response.read1(_PIECE_BYTES):
                pieces.append(piece)
                size += len(piece)
                if size > DOCUMENT_BYTES_MAX:
                    raise IssuerAway(f"{url} is longer than {DOCUMENT_BYTES_MAX} bytes")
                if monotonic() > end:
                    raise IssuerAway(f"{url} takes longer than {DOCUMENT_SECONDS_MAX:g} s")
    except (OSError, HTTPException, ValueError) as error:
        raise IssuerAway(f"{url} cannot be fetched: {error}") from None
    return b"".join(pieces)


def _opener(authority: Path | None, *, is_secure: bool) -> Any:
    """Follows no redirects: where keys come from is written in the settings, or in the issuer's configuration."""
    from urllib.request import HTTPRedirectHandler, HTTPSHandler, build_opener

    class NoRedirects(HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    if not is_secure:
        return build_opener(NoRedirects)
    context = ssl.create_default_context(cafile=None if authority is None else str(authority))
    return build_opener(NoRedirects, HTTPSHandler(context=context))


# Signed tokens (JWT) of OAuth2 issuers beside personal tokens: `Authorization: Bearer …`.


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
        self._issuers = {issuer.settings.issuer: issuer for issuer in issuers}
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
        settings = issuer.settings
        if header.alg not in settings.algorithms:
            raise NotAccepted("its signature algorithm is not in the issuer's setting algorithms")
        keys, version = await issuer.keys.usable()
        if not signing_keys(keys, header.kid, header.alg):
            keys, version = await issuer.keys.newest()
        claims = _signed_claims(token, signing_keys(keys, header.kid, header.alg), header.alg)
        expires = _checked_expiry(claims, settings, self._now())
        user = _claim(claims, settings.user_claim)
        if not isinstance(user, str) or not is_user_name(user):
            raise NotAccepted(f"its claim {settings.user_claim} is not the name of a user")
        groups = None if settings.groups_claim is None else _claim(claims, settings.groups_claim)
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


def _checked_expiry(claims: Mapping[str, Any], issuer: TokenIssuer, now: float) -> float:
    """The time until which the token holds, if it holds now and for us. Raises NotAccepted."""
    if claims.get("iss") != issuer.issuer:
        raise NotAccepted("it names two issuers")
    expires = _seconds(claims, "exp")
    if expires is None:
        raise NotAccepted("it does not say when it expires (exp)")
    if expires + issuer.clock_skew_seconds <= now:
        raise NotAccepted("it has expired")
    begins = _seconds(claims, "nbf")
    if begins is not None and begins - issuer.clock_skew_seconds > now:
        raise NotAccepted("it is not valid yet (nbf)")
    if set(issuer.audience).isdisjoint(_texts(claims.get("aud"))):
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
