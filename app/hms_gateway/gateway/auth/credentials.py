"""Credentials in the Authorization header: read, asked of one login after the other, remembered, and slow to guess.

A `Login` is one kind of them; `LoginStack` has all kinds of a gateway as a list. A password hash takes 20 ms and more,
so what a header proved is remembered under a keyed hash of the header, without the password itself. A connection mostly
sends the same header again, and keeps its hash as long as it is open.

Each failure makes the next attempt of that user from that address wait longer. Other users, and headers that were
verified before, never come there.
"""

import asyncio
import base64
import binascii
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final, Generic, TypeVar

import msgspec

from hms_gateway.gateway.admission.identity import HeaderList, Identity, Refused, RequestHead

BASIC: Final = "basic"
BEARER: Final = "bearer"
ACCEPTED: Final = "user name and password (Basic)"
REMEMBERED_MAX: Final = 10_000
# Of a header with user and password.
HEADER_BYTES_MAX: Final = 8_192
# Wrong tokens count together: unlike passwords they name no user.
_ANY_USER: Final = ""

DELAY_SECONDS_FIRST = 0.25
DELAY_SECONDS_MAX = 8.0
# Attempts that would have to wait longer than this, because others wait already, are refused at once.
WAIT_SECONDS_MAX = 20.0
FREE_FAILURES = 3
FORGOTTEN_AFTER_SECONDS = 900.0
SOURCES_MAX = 10_000

Source = tuple[str, str]
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


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


def bearer_challenge(realm: str) -> tuple[bytes, bytes]:
    """The header of a refusal that asks for a token."""
    return b"www-authenticate", f'Bearer realm="{realm}"'.encode()


def wrong_token_challenges(realm: str, others: HeaderList = ()) -> HeaderList:
    """The headers of a refusal of a token, after those of `others`."""
    wrong = f'Bearer realm="{realm}", error="invalid_token"'.encode()
    return *others, basic_challenge(realm), (b"www-authenticate", wrong)


def sent_token(head: RequestHead) -> bytes:
    """The part of the header after the scheme."""
    return head.headers[b"authorization"].strip().partition(b" ")[2].strip()


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


class Credential(msgspec.Struct, frozen=True):
    """Caller that a header proved. `evidence` is for its login, which says with it if the proof still holds."""

    evidence: Any
    user: str
    groups: frozenset[str] = frozenset()
    by_token: bool = False
    by_others: bool = False

    def identity(self, head: RequestHead) -> Identity:
        return Identity(self.user, head.address, (), self.groups, "", self.by_token, self.by_others)


class CredentialCache:
    """Credentials by header, of one login. Bounded in number, the least recently used goes first.

    Schemes in any case and blanks around a token are the same header: one token has one place.
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[bytes, Credential] = OrderedDict()

    def find(self, header: bytes, digests: dict[bytes, bytes] | None = None) -> Credential | None:
        """The credential of the header, if it is known. `digests` are those of the request's connection."""
        if not self._entries:
            return None
        known = None if digests is None else digests.get(header)
        digest = known or _digest(header)
        entry = self._entries.get(digest)
        if entry is not None:
            self._entries.move_to_end(digest)
            if digests is not None and known is None:
                digests.clear()
                digests[header] = digest
        return entry

    def remember(self, header: bytes, entry: Credential) -> None:
        digest = _digest(header)
        self._entries[digest] = entry
        self._entries.move_to_end(digest)
        if len(self._entries) > REMEMBERED_MAX:
            self._entries.popitem(last=False)

    def forget(self, header: bytes) -> None:
        """It is not right any more."""
        self._entries.pop(_digest(header), None)


_KEY: Final = secrets.token_bytes(32)


def _digest(header: bytes) -> bytes:
    scheme, _, sent = header.strip().partition(b" ")
    return hashlib.blake2b(scheme.lower() + b" " + sent.strip(), key=_KEY, digest_size=16).digest()


class Login:
    """One kind of login, for requests whose Authorization header has its scheme; "" is for those without.

    `cache` is where it remembers what headers proved, if it does: one of its own, so that many tokens push no
    passwords out.
    """

    scheme: ClassVar[str]
    cache: CredentialCache | None = None

    def remembered(self, head: RequestHead) -> Identity | None:
        """The caller of a request without the header, where that takes no time."""
        return None

    def holds(self, credential: Credential) -> bool:
        """True if a credential that it remembered is still right. Runs for every request."""
        return False

    async def authenticate(self, head: RequestHead) -> Identity | None:
        """The caller; None for credentials of another login. Raises Refused."""
        raise NotImplementedError

    def close(self) -> None:
        """Give back threads."""


class LoginStack:
    """The logins of a gateway, asked in their order.

    `challenges` are those of a refusal: `accepted` says to who sends nothing what to send.
    """

    def __init__(self, logins: Sequence[Login], *, challenges: HeaderList, accepted: str = ACCEPTED) -> None:
        self._logins = logins
        self._challenges = challenges
        self._accepted = accepted
        self._unasked = tuple(login for login in logins if not login.scheme)
        self._remembering: dict[bytes, list[tuple[CredentialCache, Login]]] = {}
        for login in logins:
            if login.cache is not None:
                self._remembering.setdefault(login.scheme.encode(), []).append((login.cache, login))

    def remembered(self, head: RequestHead) -> Identity | None:
        header = head.headers.get(b"authorization")
        if header is None:
            return next((identity for login in self._unasked if (identity := login.remembered(head))), None)
        scheme = header.strip().partition(b" ")[0].lower()
        for cache, login in self._remembering.get(scheme, ()):
            credential = cache.find(header, head.digests)
            if credential is not None and login.holds(credential):
                # `credential.identity`, without one more call for each request.
                groups, by_token, by_others = credential.groups, credential.by_token, credential.by_others
                return Identity(credential.user, head.address, (), groups, "", by_token, by_others)
        return None

    async def authenticate(self, head: RequestHead) -> Identity:
        """Raises Refused: 401, and what the logins raise."""
        scheme = scheme_of(head.headers.get(b"authorization", b""))
        for login in self._logins:
            if login.scheme == scheme:
                identity = await login.authenticate(head)
                if identity is not None:
                    return identity
        if scheme:
            text = f"This kind of authentication is not accepted here: send {self._accepted}"
            raise Refused(401, text, headers=self._challenges, reason="other_scheme")
        text = f"Authentication is required: send {self._accepted}"
        raise Refused(401, text, headers=self._challenges, reason="no_credentials")

    def close(self) -> None:
        for login in self._logins:
            login.close()


class _Record(msgspec.Struct):
    failures: int
    next_attempt_at: float
    last_failure_at: float


class FailedAttempts:
    """Failures by (user, address). The first few are free: people mistype."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._records: OrderedDict[Source, _Record] = OrderedDict()

    def reserve(self, source: Source) -> float | None:
        """Seconds this attempt has to wait before it is looked at; None when too many wait already."""
        record = self._records.get(source)
        now = self._monotonic()
        if record is None or now - record.last_failure_at > FORGOTTEN_AFTER_SECONDS:
            return 0.0
        wait = max(0.0, record.next_attempt_at - now)
        if wait > WAIT_SECONDS_MAX:
            return None
        # Parallel attempts queue behind each other instead of all being looked at when the delay is over.
        record.next_attempt_at = max(now, record.next_attempt_at) + _delay(record.failures)
        return wait

    async def wait_for_turn(self, source: Source, sleep: Callable[[float], Awaitable[object]], *, limit: str) -> None:
        """Returns when this attempt may be looked at. Raises Refused with the name of the limit: too many wait."""
        wait = self.reserve(source)
        if wait is None:
            raise Refused(
                429,
                "Too many failed attempts, try again later",
                headers=((b"retry-after", b"30"),),
                reason="too_many_attempts",
                limit=limit,
                user=source[0],
            )
        if wait > 0:
            await sleep(wait)

    def failed(self, source: Source) -> None:
        now = self._monotonic()
        record = self._records.pop(source, None)
        if record is None or now - record.last_failure_at > FORGOTTEN_AFTER_SECONDS:
            record = _Record(0, now, now)
        record.failures += 1
        record.last_failure_at = now
        record.next_attempt_at = max(record.next_attempt_at, now + _delay(record.failures))
        self._records[source] = record
        if len(self._records) > SOURCES_MAX:
            self._records.popitem(last=False)

    def has_failed(self, source: Source) -> bool:
        """True if the last attempt was a recent failure."""
        return source in self._records

    def succeeded(self, source: Source) -> None:
        self._records.pop(source, None)


def _delay(failures: int) -> float:
    beyond = failures - FREE_FAILURES
    if beyond <= 0:
        return 0.0
    return min(DELAY_SECONDS_MAX, DELAY_SECONDS_FIRST * 2.0 ** min(beyond - 1, 30))


class Shared(Generic[K, T]):
    """Checks of credentials that many requests bring at the same time: each of them is made once."""

    def __init__(self) -> None:
        self._running: dict[K, asyncio.Task[T]] = {}

    async def result(self, key: K, check: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the check with this key that runs already, else of `check`. Raises as the check does."""
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = asyncio.ensure_future(check())
            running.add_done_callback(partial(self._has_ended, key))
        return await asyncio.shield(running)

    def _has_ended(self, key: K, running: "asyncio.Task[T]") -> None:
        del self._running[key]
        if not running.cancelled():
            # The clients may have gone, and then the failure is of no interest.
            running.exception()


class WrongTokens:
    """Makes wrong tokens of an address wait as wrong passwords do."""

    def __init__(
        self,
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]],
        share_of: Callable[[str], str | None],
    ) -> None:
        self._attempts = FailedAttempts(monotonic)
        self._sleep = sleep
        self._share_of = share_of

    async def wait(self, head: RequestHead) -> None:
        """Returns when the caller may know that the token is wrong. Raises Refused (429): too many wait."""
        source = (_ANY_USER, self._share_of(head.address) or head.address)
        await self._attempts.wait_for_turn(source, self._sleep, limit="wrong_tokens")
        self._attempts.failed(source)
