"""Basic authentication against the password file, and the memory of headers that were verified.

A hash takes 20 ms and more, so a header that was verified is remembered under a keyed hash of its bytes (0.6 µs): the
password itself is never kept. Hashing runs in two threads, so that a flood of wrong passwords keeps no core busy.
"""

import asyncio
import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from app.gateway.attempts import FailedAttempts
from app.gateway.basic_credentials import BasicCredentials, read_basic, scheme_of
from app.gateway.identity import HeaderList, Identity, Refused, RequestHead
from app.gateway.user_file import UserFile
from app.gateway.users import Verifier, verify_password

HASHES_AT_ONCE = 2
HASHES_WAITING_MAX = 200
REMEMBERED_MAX = 10_000
HEADER_BYTES_MAX = 8_192
ACCEPTED = "user name and password (Basic)"

Sleep = Callable[[float], "asyncio.Future[None]"]


@dataclass(frozen=True, slots=True)
class _Remembered:
    user: str
    expires_at: float


class VerifiedHeaders:
    """Authorization headers that were right, bounded in number and time; the least recently used goes first."""

    def __init__(self, seconds: float, monotonic: Callable[[], float], entries_max: int = REMEMBERED_MAX) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self._entries_max = entries_max
        self._key = secrets.token_bytes(32)
        self._entries: OrderedDict[bytes, _Remembered] = OrderedDict()

    def user(self, header: bytes) -> str | None:
        digest = hashlib.blake2b(header, key=self._key, digest_size=16).digest()
        entry = self._entries.get(digest)
        if entry is None:
            return None
        if entry.expires_at <= self._monotonic():
            del self._entries[digest]
            return None
        self._entries.move_to_end(digest)
        return entry.user

    def remember(self, header: bytes, user: str) -> None:
        digest = hashlib.blake2b(header, key=self._key, digest_size=16).digest()
        self._entries[digest] = _Remembered(user, self._monotonic() + self._seconds)
        if len(self._entries) > self._entries_max:
            self._entries.popitem(last=False)

    def clear(self) -> None:
        self._entries.clear()


class BasicAuthenticator:
    """Checks user and password. Verifying is handed in, so that tests can count it; so are clock and sleeping.

    `accepted` says to who sends nothing what to send.
    """

    def __init__(
        self,
        users: UserFile,
        *,
        realm: str,
        remembered_seconds: float,
        accepted: str = ACCEPTED,
        verify: Verifier = verify_password,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self._users = users
        self._accepted = accepted
        self._generation = users.generation
        self._challenge: HeaderList = ((b"www-authenticate", f'Basic realm="{realm}", charset="UTF-8"'.encode()),)
        self._verified = VerifiedHeaders(remembered_seconds, monotonic)
        self._verify = verify
        self._attempts = FailedAttempts(monotonic)
        self._sleep = sleep or asyncio.sleep
        self._threads = ThreadPoolExecutor(HASHES_AT_ONCE, thread_name_prefix="password")
        self._running: dict[bytes, asyncio.Task[bool]] = {}

    def remembered(self, head: RequestHead) -> Identity | None:
        header = head.headers.get(b"authorization")
        if header is None:
            return None
        self._look()
        user = self._verified.user(header)
        return None if user is None else Identity(user, head.address)

    async def authenticate(self, head: RequestHead) -> Identity:
        """The user of a right password. Raises Refused: 401, or 429 and 503 when too many attempts wait."""
        header = head.headers.get(b"authorization", b"")
        credentials = self._credentials(header)
        source = (credentials.user, head.address)
        await self._wait_for_turn(source)
        self._look(at_once=True)
        # Somebody may have verified the same header while this attempt waited.
        if self._verified.user(header) is not None:
            return Identity(credentials.user, head.address)
        generation = self._users.generation
        if not await self._matches(header, credentials):
            self._attempts.failed(source)
            raise self._refused("User name or password is wrong", "wrong_password")
        self._attempts.succeeded(source)
        if generation == self._users.generation:
            self._verified.remember(header, credentials.user)
        return Identity(credentials.user, head.address)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _look(self, *, at_once: bool = False) -> None:
        """See changes of the file, and forget what was verified before one."""
        self._users.refresh(at_once=at_once)
        if self._users.generation != self._generation:
            self._generation = self._users.generation
            self._verified.clear()

    def _credentials(self, header: bytes) -> BasicCredentials:
        scheme = scheme_of(header)
        if not scheme:
            raise self._refused(f"Authentication is required: send {self._accepted}", "no_credentials")
        if scheme == "bearer":
            raise self._refused(f"Bearer tokens are not accepted here: send {self._accepted}", "bearer")
        if scheme != "basic":
            text = f"This kind of authentication is not accepted here: send {self._accepted}"
            raise self._refused(text, "other_scheme")
        credentials = read_basic(header) if len(header) <= HEADER_BYTES_MAX else None
        if credentials is None:
            raise self._refused("The Authorization header is not readable as Basic credentials", "unreadable")
        return credentials

    async def _wait_for_turn(self, source: tuple[str, str]) -> None:
        wait = self._attempts.reserve(source)
        if wait is None:
            raise Refused(
                429,
                "Too many failed attempts, try again later",
                headers=((b"retry-after", b"30"),),
                reason="too_many_attempts",
            )
        if wait > 0:
            await self._sleep(wait)  # type: ignore[misc]

    async def _matches(self, header: bytes, credentials: BasicCredentials) -> bool:
        """Hash once, however many connections bring the same header at the same time."""
        task = self._running.get(header)
        if task is None:
            if len(self._running) >= HASHES_WAITING_MAX:
                raise Refused(
                    503,
                    "Too many passwords are being checked, try again",
                    headers=((b"retry-after", b"1"),),
                    reason="overload",
                )
            task = asyncio.create_task(self._hash(credentials))
            self._running[header] = task
            task.add_done_callback(lambda _: self._running.pop(header, None))
        return await asyncio.shield(task)

    async def _hash(self, credentials: BasicCredentials) -> bool:
        stored_hash, is_known = self._users.hash_of(credentials.user)
        loop = asyncio.get_running_loop()
        matches = await loop.run_in_executor(self._threads, self._verify, stored_hash, credentials.password)
        return matches and is_known

    def _refused(self, text: str, reason: str) -> Refused:
        return Refused(401, text, headers=self._challenge, reason=reason)
