"""Basic authentication against the password file, and the memory of headers that were verified.

A hash takes 20 ms and more, so what a header proved is remembered under a keyed hash of it (0.8 µs, of a long token
1.5 µs), without the password itself. A connection mostly sends the same header again, and keeps it in memory as long as
it is open; then nothing is hashed. Passwords are hashed in two threads: a flood of wrong ones keeps no core busy.
"""

import asyncio
import contextlib
import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import msgspec

from hms_gateway.gateway.admission.identity import Authenticator, HeaderList, Identity, LastLogin, RequestHead
from hms_gateway.gateway.admission.refusals import Refused
from hms_gateway.gateway.auth.attempts import FailedAttempts, Source
from hms_gateway.gateway.auth.basic_credentials import BasicCredentials, basic_challenge, read_basic, scheme_of
from hms_gateway.gateway.auth.password_queue import UNKNOWN, Check, PasswordQueue
from hms_gateway.gateway.auth.user_file import UserFile
from hms_gateway.gateway.auth.users import Verifier, verify_password
from hms_gateway.gateway.calls.worker_threads import be_nice
from hms_gateway.runtime.addresses import share_of
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Ledger

T = TypeVar("T")

HASHES_AT_ONCE = 2
HEADER_BYTES_MAX = 8_192
REMEMBERED_MAX = 10_000
ACCEPTED = "user name and password (Basic)"


class KnownHeaders(Generic[T]):
    """What headers proved. Bounded in number, the least recently used goes first; how long it holds is the asker's."""

    def __init__(self, entries_max: int = REMEMBERED_MAX) -> None:
        self._entries_max = entries_max
        self._key = secrets.token_bytes(32)
        self._entries: OrderedDict[bytes, T] = OrderedDict()
        # Another one after each change: what connections know is of one state of one of these.
        self._state = object()

    def find(self, header: bytes, last: LastLogin | None = None) -> T | None:
        """What the header proved, if it is known. `last` is that of the request's connection."""
        if last is not None and last.state is self._state and last.header == header:
            found: T = last.found
            return found
        if not self._entries:
            return None
        digest = self._digest(header)
        entry = self._entries.get(digest)
        if entry is None:
            return None
        self._entries.move_to_end(digest)
        if last is not None:
            last.header, last.found, last.state = header, entry, self._state
        return entry

    def remember(self, header: bytes, entry: T) -> None:
        digest = self._digest(header)
        self._entries[digest] = entry
        self._entries.move_to_end(digest)
        if len(self._entries) > self._entries_max:
            self._entries.popitem(last=False)
        self._state = object()

    def forget(self, header: bytes) -> None:
        """It is not right any more."""
        if self._entries.pop(self._digest(header), None) is not None:
            self._state = object()

    def _digest(self, header: bytes) -> bytes:
        return hashlib.blake2b(header, key=self._key, digest_size=16).digest()


class _Verified(msgspec.Struct, frozen=True):
    user: str
    expires_at: float
    generation: int


class BasicAuthenticator:
    """Checks user and password. Verifying is handed in, so that tests can count it; so are clock and sleeping.

    `others` take requests with other schemes, by scheme in lower case; each has a challenge in `challenges`.
    `accepted` says to who sends nothing what to send, `share_of` is `Proxies.share_of`.
    """

    def __init__(
        self,
        users: UserFile,
        *,
        realm: str,
        remembered_seconds: float,
        others: Mapping[str, Authenticator] | None = None,
        challenges: HeaderList = (),
        accepted: str = ACCEPTED,
        verify: Verifier = verify_password,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        limits: Limits | None = None,
        share_of: Callable[[str], str | None] = share_of,
    ) -> None:
        self._share_of = share_of
        self._users = users
        self._accepted = accepted
        self._others = dict(others or {})
        self._bearer = self._others.get("bearer")
        self._challenges: HeaderList = (basic_challenge(realm), *challenges)
        self._remembered_seconds = remembered_seconds
        self._monotonic = monotonic
        self._verified: KnownHeaders[_Verified] = KnownHeaders()
        self._verify = verify
        self._attempts = FailedAttempts(monotonic)
        self._sleep = sleep
        self._threads = ThreadPoolExecutor(HASHES_AT_ONCE, "password", initializer=be_nice)
        self._queue: PasswordQueue[_Job] = PasswordQueue(Ledger(limits or Limits(), "password_checks_max"))
        self._checking = self._suspects_checking = 0
        self._results: dict[bytes, asyncio.Future[bool]] = {}
        # By address, the attempt that came last and has not been answered.
        self._last_attempts: dict[str, asyncio.Future[None]] = {}

    def remembered(self, head: RequestHead) -> Identity | None:
        header = head.headers.get(b"authorization")
        if header is None:
            return None
        # Most are one of these two, and a long token is not hashed here.
        other = self._bearer if header[:7] == b"Bearer " else None
        if other is None:
            self._users.refresh()
            verified = self._verified.find(header, head.last)
            if verified is not None and self._holds(verified):
                return Identity(verified.user, head.address)
            other = self._others.get(scheme_of(header))
        return None if other is None else other.remembered(head)

    async def authenticate(self, head: RequestHead) -> Identity:
        """The user of a right password. Raises Refused: 401, or 429 and 503 when too many attempts wait."""
        header = head.headers.get(b"authorization", b"")
        other = self._others.get(scheme_of(header))
        if other is not None:
            return await other.authenticate(head)
        credentials = self._credentials(header)
        share_address = self._share_of(head.address)
        source = (credentials.user, share_address or head.address)
        # One that was right once has to be checked again, and need not wait for those that never were.
        if self._verified.find(header) is None:
            await self._attempts.wait_for_turn(source, self._sleep, limit="wrong_passwords")
        self._users.refresh(at_once=True)
        # Another request may have brought the same header while this attempt waited.
        verified = self._verified.find(header)
        if verified is not None and self._holds(verified):
            return Identity(credentials.user, head.address)
        generation = self._users.generation
        with self._in_order(source[1]) as answered_before:
            if not await self._matches(header, credentials, source, share_address):
                self._attempts.failed(source)
                self._verified.forget(header)
                # An answer out of turn would say whether the name is one of ours, which has a lane of its own.
                await asyncio.wait(answered_before)
                raise self._refused("User name or password is wrong", "wrong_password", credentials.user)
        self._attempts.succeeded(source)
        expires_at = self._monotonic() + self._remembered_seconds
        self._verified.remember(header, _Verified(credentials.user, expires_at, generation))
        return Identity(credentials.user, head.address)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        for other in self._others.values():
            other.close()

    def _holds(self, verified: _Verified) -> bool:
        """Not for too long, and against the users of now."""
        return verified.generation == self._users.generation and verified.expires_at > self._monotonic()

    def _credentials(self, header: bytes) -> BasicCredentials:
        scheme = scheme_of(header)
        if not scheme:
            raise self._refused(f"Authentication is required: send {self._accepted}", "no_credentials")
        if scheme != "basic":
            text = f"This kind of authentication is not accepted here: send {self._accepted}"
            raise self._refused(text, "other_scheme")
        credentials = read_basic(header) if len(header) <= HEADER_BYTES_MAX else None
        if credentials is None:
            raise self._refused("The Authorization header is not readable as Basic credentials", "unreadable")
        return credentials

    @contextlib.contextmanager
    def _in_order(self, address: str) -> Iterator[list[asyncio.Future[None]]]:
        """Gives what is done when every earlier attempt of the address has been answered."""
        loop = asyncio.get_running_loop()
        before = self._last_attempts.get(address)
        if before is None:
            before = loop.create_future()
            before.set_result(None)
        mine = self._last_attempts[address] = loop.create_future()
        try:
            yield [before]
        finally:
            before.add_done_callback(lambda _: self._answered(address, mine))

    def _answered(self, address: str, attempt: "asyncio.Future[None]") -> None:
        attempt.set_result(None)
        if self._last_attempts.get(address) is attempt:
            del self._last_attempts[address]

    async def _matches(
        self, header: bytes, credentials: BasicCredentials, source: Source, share_address: str | None
    ) -> bool:
        """Hash once, however many connections bring the same header at the same time."""
        result = self._results.get(header)
        if result is None:
            result = self._results[header] = asyncio.get_running_loop().create_future()
            result.add_done_callback(partial(self._forget_result, header))
            is_suspect = self._attempts.has_failed(source)
            was_right = self._verified.find(header) is not None
            self._enqueue(_Job(credentials, result), share_address, is_suspect=is_suspect, was_right=was_right)
        return await asyncio.shield(result)

    def _forget_result(self, header: bytes, result: "asyncio.Future[bool]") -> None:
        del self._results[header]
        if not result.cancelled():
            # The client may have gone, and then the failure is of no interest.
            result.exception()

    def _enqueue(self, job: "_Job", share_address: str | None, *, is_suspect: bool, was_right: bool) -> None:
        user = job.credentials.user
        is_known = self._users.hash_of(user)[1]
        lane = user if is_known else UNKNOWN
        check = Check(job, share_address, user, lane, is_suspect or not is_known, was_right)
        for dropped, bound in self._queue.add(check):
            text = f"There are too many passwords to check ({bound.name}); try again"
            retry: HeaderList = ((b"retry-after", b"1"),)
            dropped.job.result.set_exception(Refused(503, text, headers=retry, reason="overload", limit=bound.name))
        self._check_next()

    def _check_next(self) -> None:
        while self._checking < HASHES_AT_ONCE:
            check = self._queue.next(suspects_too=self._suspects_checking < HASHES_AT_ONCE - 1)
            if check is None:
                return
            self._checking += 1
            self._suspects_checking += check.is_suspect
            credentials = check.job.credentials
            stored_hash, is_known = self._users.hash_of(credentials.user)
            loop = asyncio.get_running_loop()
            try:
                checking = loop.run_in_executor(self._threads, self._verify, stored_hash, credentials.password)
            except RuntimeError as error:
                # No thread can be started; the checks that follow have their turn all the same.
                checking = loop.create_future()
                checking.set_exception(error)
            checking.add_done_callback(partial(self._checked, check, is_known))

    def _checked(self, check: "Check[_Job]", is_known: bool, checking: "asyncio.Future[bool]") -> None:
        self._checking -= 1
        self._suspects_checking -= check.is_suspect
        result = check.job.result
        if checking.cancelled():
            result.cancel()
        elif (error := checking.exception()) is not None:
            result.set_exception(error)
        else:
            result.set_result(checking.result() and is_known)
        self._check_next()

    def _refused(self, text: str, reason: str, user: str = "") -> Refused:
        return Refused(401, text, headers=self._challenges, reason=reason, user=user)


@dataclass(frozen=True, slots=True, repr=False)
class _Job:
    credentials: BasicCredentials
    result: "asyncio.Future[bool]"
