"""User and password (Basic) of a directory: names that the password file does not have are asked for at an LDAP server.

A password that was right is remembered for a time, as one of the password file; while the directory is away, longer.
"""

import asyncio
import time
import unicodedata
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import msgspec
import structlog

from hms_gateway.gateway.admission.identity import Authenticator, HeaderList, Identity, RequestHead
from hms_gateway.gateway.admission.refusals import NOT_TRIED, Refused, overloaded
from hms_gateway.gateway.auth.attempts import FailedAttempts
from hms_gateway.gateway.auth.authentication import KnownHeaders
from hms_gateway.gateway.auth.basic_credentials import BasicCredentials, read_basic, scheme_of
from hms_gateway.gateway.auth.directory import DirectoryAway, DirectoryUser
from hms_gateway.runtime.addresses import share_of
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Holder, Ledger

THREADS: Final = 8
HEADER_BYTES_MAX: Final = 8_192
USER_CHARACTERS_MAX: Final = 256
# After a question without an answer, those with an answer in memory are not asked about for so long.
AWAY_SECONDS: Final = 5.0

_log = structlog.get_logger("hms_gateway.directory")


class _Known(msgspec.Struct, frozen=True):
    user: DirectoryUser
    checked_at: float


class DirectoryAuthenticator:
    """Lets in users of a directory; requests with another scheme, and users of the password file, are the next one's.

    `check` is `Directory.check`, `is_local` says whether the password file has a user. `seconds_max` bounds how long a
    request waits for the directory.
    """

    def __init__(
        self,
        following: Authenticator,
        check: Callable[[str, str], DirectoryUser | None],
        *,
        is_local: Callable[[str], bool],
        challenges: HeaderList,
        remembered_seconds: float,
        kept_seconds: float,
        seconds_max: float,
        limits: Limits | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        share_of: Callable[[str], str | None] = share_of,
    ) -> None:
        self._following = following
        self._check = check
        self._is_local = is_local
        self._challenges = challenges
        self._remembered_seconds = remembered_seconds
        self._kept_seconds = kept_seconds
        self._seconds_max = seconds_max
        self._monotonic = monotonic
        self._sleep = sleep
        self._share_of = share_of
        self._attempts = FailedAttempts(monotonic)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="directory")
        self._checks = Ledger(limits or Limits(), "password_checks_max")
        self._known: KnownHeaders[_Known] = KnownHeaders()
        self._away_until = 0.0
        self._asking: dict[bytes, asyncio.Task[DirectoryUser | None]] = {}

    def remembered(self, head: RequestHead) -> Identity | None:
        header = head.headers.get(b"authorization")
        known = None if header is None else self._known.find(header, head.last)
        if known is None:
            return self._following.remembered(head)
        now = self._monotonic()
        seconds = self._kept_seconds if now < self._away_until else self._remembered_seconds
        return _identity(known.user, head) if now < known.checked_at + seconds else None

    async def authenticate(self, head: RequestHead) -> Identity:
        """Raises Refused: 401 for a wrong password, 503 while the directory is away, 429 and 503 for too many."""
        header = head.headers.get(b"authorization", b"")
        credentials = _credentials(header)
        if credentials is None or self._is_local(credentials.user):
            return await self._following.authenticate(head)
        address = self._share_of(head.address)
        # One entry is found under many spellings, and all of them are guesses of its password.
        name = _folded(credentials.user)
        source = (name, address or head.address)
        if self._known.find(header) is None:
            await self._attempts.wait_for_turn(source, self._sleep, limit="wrong_passwords")
        try:
            user = await self._asked(header, credentials, Holder(name, address))
        except DirectoryAway as away:
            return self._kept(header, head, away)
        # The directory finds a name in any case, and so under another spelling that of a user of the file.
        if user is None or not _is_name(user.name) or self._is_local(user.name):
            self._known.forget(header)
            self._attempts.failed(source)
            text, sent = "User name or password is wrong", credentials.user
            raise Refused(401, text, headers=self._challenges, reason="wrong_password", user=sent)
        self._attempts.succeeded(source)
        self._known.remember(header, _Known(user, self._monotonic()))
        return _identity(user, head)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._following.close()

    async def _asked(self, header: bytes, credentials: BasicCredentials, holder: Holder) -> DirectoryUser | None:
        """Ask once, however many connections bring the same header at the same time. Raises DirectoryAway, Refused."""
        asking = self._asking.get(header)
        if asking is None:
            asking = self._asking[header] = asyncio.ensure_future(self._ask(credentials, holder))
            asking.add_done_callback(lambda done: self._answered(header, done))
        return await asyncio.shield(asking)

    def _answered(self, header: bytes, asking: "asyncio.Task[DirectoryUser | None]") -> None:
        del self._asking[header]
        if not asking.cancelled():
            # The clients may have gone, and then the failure is of no interest.
            asking.exception()

    async def _ask(self, credentials: BasicCredentials, holder: Holder) -> DirectoryUser | None:
        bound = self._checks.take(1, holder)
        if bound is not None:
            raise overloaded(f"There are too many passwords to check ({bound.name}); try again", bound.name)
        loop = asyncio.get_running_loop()
        try:
            asked = loop.run_in_executor(self._threads, self._check, credentials.user, credentials.password)
        except RuntimeError:
            # No thread can be started.
            self._checks.give_back(1, holder)
            raise
        # The thread may go on for longer than the request waits, and counts until then.
        asked.add_done_callback(lambda _: self._checks.give_back(1, holder))
        done, _ = await asyncio.wait([asked], timeout=self._seconds_max)
        if not done:
            raise DirectoryAway("it does not answer in time")
        return asked.result()

    def _kept(self, header: bytes, head: RequestHead, away: DirectoryAway) -> Identity:
        """The identity of before, for a time. Raises Refused."""
        now = self._monotonic()
        if now >= self._away_until:
            _log.error("the directory is unreachable", problem=str(away), kept_seconds=self._kept_seconds)
        self._away_until = now + AWAY_SECONDS
        known = self._known.find(header)
        if known is not None and now < known.checked_at + self._kept_seconds:
            return _identity(known.user, head)
        text = "The directory of users cannot be asked now; try again"
        raise Refused(503, text, headers=NOT_TRIED, reason="directory_away")


def _credentials(header: bytes) -> BasicCredentials | None:
    if scheme_of(header) != "basic" or len(header) > HEADER_BYTES_MAX:
        return None
    return read_basic(header)


def _folded(name: str) -> str:
    """The same for all spellings that directories may take for one: only letters and digits, and these without case,
    width and accents.
    """
    letters = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold())
    return "".join(filter(str.isalnum, letters))[:USER_CHARACTERS_MAX]


def _identity(user: DirectoryUser, head: RequestHead) -> Identity:
    return Identity(user.name, head.address, groups=user.groups)


def _is_name(name: str) -> bool:
    return 0 < len(name) <= USER_CHARACTERS_MAX and name.isprintable() and name == name.strip()
