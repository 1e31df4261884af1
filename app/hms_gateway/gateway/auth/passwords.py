"""Whose password is checked next: addresses take turns, and in each of them the users.

A check takes a processor for 20 ms and more, and a flood of them shall hold no others up. Checks of unknown users share
one lane of their address, and those that are likely to fail never have all the threads. Headers that were right before
come first. The checks that wait are shared out: what is too much goes from the longest lane of the address in the way,
or, of a user, from the address that has most checks of that name, so that the right password from elsewhere stays.
"""

import asyncio
import contextlib
import functools
import hashlib
import secrets
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec
import structlog

from hms_gateway.gateway.admission.identity import HeaderList, Identity, Refused, RequestHead
from hms_gateway.gateway.auth.credentials import (
    BASIC,
    HEADER_BYTES_MAX,
    BasicCredentials,
    Credential,
    CredentialCache,
    FailedAttempts,
    Login,
    Shared,
    Source,
    read_basic,
)
from hms_gateway.gateway.auth.users import UserFileError, Verifier, hash_password, read_users, verify_password
from hms_gateway.runtime.addresses import share_of
from hms_gateway.runtime.file_versions import WatchedFile
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Bound, FairQueue, Holder, Ledger

T = TypeVar("T")

# The lane of names that no user has; a user's name is never empty.
UNKNOWN = ""


class Check(msgspec.Struct, Generic[T], frozen=True):
    """A password to be checked. `is_suspect`: the user is unknown, or has failed from there lately.

    `address` is None for one that is not limited, such as a proxy's. `user` is the name that was sent, known or not.
    """

    job: T
    address: str | None
    user: str
    lane: str
    is_suspect: bool = False
    was_right: bool = False

    @property
    def holder(self) -> Holder:
        return Holder(self.user, self.address)


class PasswordQueue(Generic[T]):
    """Pure bookkeeping. Who runs the checks calls `next` as long as there are threads."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._first: deque[Check[T]] = deque()
        self._waiting: FairQueue[Check[T]] = FairQueue()
        # Of each user, how many checks wait from where; the addresses in the order in which they came.
        self._users: dict[str, Counter[str | None]] = {}

    def add(self, check: Check[T]) -> Iterator[tuple[Check[T], Bound]]:
        """Let it wait; the checks that lose their places for it, maybe itself, and the bound that was in the way."""
        if check.was_right:
            self._first.append(check)
            return
        self._waiting.add(check, check.address, check.lane)
        self._users.setdefault(check.user, Counter())[check.address] += 1
        while (bound := self._ledger.take(1, check.holder, parts_first=True)) is not None:
            dropped = self._dropped(bound, check)
            self._waiting.remove(dropped, dropped.address, dropped.lane)
            self._forget(dropped)
            yield dropped, bound
            if dropped is check:
                return
            self._ledger.give_back(1, dropped.holder)

    def next(self, *, suspects_too: bool) -> Check[T] | None:
        """The check whose turn it is; without `suspects_too`, of one that is likely to succeed."""
        if self._first:
            return self._first.popleft()
        check = self._waiting.next(lambda check: suspects_too or not check.is_suspect)
        if check is not None:
            self._ledger.give_back(1, check.holder)
            self._forget(check)
        return check

    def _dropped(self, bound: Bound, check: Check[T]) -> Check[T]:
        """The check that goes because of the bound."""
        if bound == self._ledger.per_address:
            return self._waiting.last(check.address)
        if bound == self._ledger.total:
            return self._waiting.last(self._waiting.longest())
        of_user = self._users[check.user]
        most = max(of_user.values())
        last = [self._last_of(check.user, address) for address, count in of_user.items() if count == most]
        # Suspects go first among equals, then what came from the first address.
        return next((one for one in last if one.is_suspect), last[0])

    def _last_of(self, user: str, address: str | None) -> Check[T]:
        """The last of the user's in the first lane that has one."""
        lanes = {one.lane: one for one in self._waiting if (one.user, one.address) == (user, address)}
        return next(iter(lanes.values()))

    def _forget(self, check: Check[T]) -> None:
        """It has left its lane."""
        of_user = self._users[check.user]
        of_user[check.address] -= 1
        if not of_user[check.address]:
            del of_user[check.address]
        if not of_user:
            del self._users[check.user]


# Basic authentication against the password file, as the running server sees it.
#
# The file is read again when it changes: calls whose password is remembered look once a second at most, others at the
# file of now. Passwords are hashed in two threads: a flood of wrong ones keeps no core busy.


HASHES_AT_ONCE = 2
REMOVED_SECONDS: Final = 60.0


_log = structlog.get_logger("hms_gateway.users")


class UserFile:
    """Hashes by user name. `generation` grows with every change, so what was remembered before can be dropped.

    `shared` are the users whom other logins may name too, "*" is all. Safe to ask from several threads.
    """

    def __init__(self, path: Path, monotonic: Callable[[], float], shared: Collection[str] = ()) -> None:
        self._file = WatchedFile(path, monotonic)
        self._shared = frozenset(shared)
        self._monotonic = monotonic
        self._users: dict[str, str] = {}
        self._removed_at: dict[str, float] = {}
        self._decoy_key = secrets.token_bytes(16)
        self._problem = ""
        self.generation = 0
        self.refresh()

    def refresh(self, *, at_once: bool = False) -> None:
        """Read the file if it changed; without `at_once`, only if the last look is a second ago.

        A broken file, and one that is gone, keep what was read before; an empty one lets no user in.
        """
        if not self._file.has_changed(at_once=at_once):
            return
        path = self._file.path
        try:
            users = read_users(path)
            if not users and self.generation and not path.exists():
                raise UserFileError(f"{path} is gone; put it back, or write an empty one to let no user in")
        except UserFileError as error:
            if str(error) != self._problem:
                _log.error("password file not read; the previous users stay valid", problem=str(error))
            self._problem = str(error)
            self._file.look_again()
            return
        if self._problem:
            _log.info("password file read again", file=str(path))
        now = self._monotonic()
        removed_at = {name: at for name, at in self._removed_at.items() if at + REMOVED_SECONDS > now}
        self._removed_at = removed_at | dict.fromkeys(self._users.keys() - users.keys(), now)
        self._users, self._problem = users, ""
        self.generation += 1

    def has(self, user: str) -> bool:
        """True if the file has the user now."""
        self.refresh(at_once=True)
        return user in self._users

    def is_reserved(self, user: str) -> bool:
        """True for a name that counts by the logins of this file only: a password, or a token that was made for it."""
        self.refresh()
        return user in self._users and self._shared.isdisjoint((user, "*"))

    def entry_of(self, user: str) -> str:
        """Something that differs after each change of the user's line; "" for a user that the file does not have.

        Of one that was just removed it is another each time: a call of that user may still be running.
        """
        self.refresh(at_once=True)
        stored_hash = self._users.get(user)
        if stored_hash is not None:
            return hashlib.blake2b(stored_hash.encode(), digest_size=16).hexdigest()
        is_past = self._removed_at.get(user, -inf) + REMOVED_SECONDS <= self._monotonic()
        return "" if is_past else secrets.token_hex(16)

    def hash_of(self, user: str) -> tuple[str, bool]:
        """The stored hash and True; for an unknown user the hash of some other user, and False.

        Checking that one costs what a wrong password of a known user costs, and always the same for the same name.
        """
        users = self._users
        stored_hash = users.get(user)
        if stored_hash is not None:
            return stored_hash, True
        if not users:
            return _decoy_hash(), False
        digest = hashlib.blake2b(user.encode(), key=self._decoy_key, digest_size=8).digest()
        return list(users.values())[int.from_bytes(digest, "big") % len(users)], False


class PasswordLogin(Login):
    """Checks user and password. Verifying is handed in, so that tests can count it; so are clock and sleeping.

    `share_of` is `Proxies.share_of`.
    """

    scheme = BASIC

    def __init__(
        self,
        users: UserFile,
        *,
        challenges: HeaderList,
        remembered_seconds: float,
        verify: Verifier = verify_password,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        limits: Limits | None = None,
        share_of: Callable[[str], str | None] = share_of,
    ) -> None:
        self._share_of = share_of
        self._users = users
        self.cache: CredentialCache = CredentialCache()
        self._challenges = challenges
        self._remembered_seconds = remembered_seconds
        self._monotonic = monotonic
        self._verify = verify
        self._attempts = FailedAttempts(monotonic)
        self._sleep = sleep
        self._threads = ThreadPoolExecutor(HASHES_AT_ONCE, "password")
        self._queue: PasswordQueue[_Job] = PasswordQueue(Ledger(limits or Limits(), "password_checks_max"))
        self._checking = self._suspects_checking = 0
        self._results: Shared[bytes, bool] = Shared()
        # By address, the attempt that came last and has not been answered.
        self._last_attempts: dict[str, asyncio.Future[None]] = {}

    def holds(self, credential: Credential) -> bool:
        """Not for too long, and against the users of now."""
        self._users.refresh()
        generation, expires_at = credential.evidence
        return bool(generation == self._users.generation and expires_at > self._monotonic())

    async def authenticate(self, head: RequestHead) -> Identity:
        """The user of a right password. Raises Refused: 401, or 429 and 503 when too many attempts wait."""
        header = head.headers.get(b"authorization", b"")
        credentials = self._credentials(header)
        share_address = self._share_of(head.address)
        source = (credentials.user, share_address or head.address)
        # One that was right once has to be checked again, and need not wait for those that never were.
        if self.cache.find(header) is None:
            await self._attempts.wait_for_turn(source, self._sleep, limit="wrong_passwords")
        self._users.refresh(at_once=True)
        # Another request may have brought the same header while this attempt waited.
        verified = self.cache.find(header)
        if verified is not None and self.holds(verified):
            return verified.identity(head)
        generation = self._users.generation
        with self._in_order(source[1]) as answered_before:
            matches = partial(self._matches, header, credentials, source, share_address)
            # Hashed once, however many connections bring the same header at the same time.
            if not await self._results.result(header, matches):
                self._attempts.failed(source)
                self.cache.forget(header)
                # An answer out of turn would say whether the name is one of ours, which has a lane of its own.
                await asyncio.wait(answered_before)
                raise self._refused("User name or password is wrong", "wrong_password", credentials.user)
        self._attempts.succeeded(source)
        expires_at = self._monotonic() + self._remembered_seconds
        verified = Credential((generation, expires_at), credentials.user)
        self.cache.remember(header, verified)
        return verified.identity(head)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _credentials(self, header: bytes) -> BasicCredentials:
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
        result: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        is_suspect = self._attempts.has_failed(source)
        was_right = self.cache.find(header) is not None
        self._enqueue(_Job(credentials, result), share_address, is_suspect=is_suspect, was_right=was_right)
        return await result

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


@functools.cache
def _decoy_hash() -> str:
    """The hash that passwords of unknown users are checked against. Made on first use, since it takes 20 ms."""
    return hash_password(secrets.token_hex(16))
