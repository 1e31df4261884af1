"""The keys of an issuer as the running server has them: fetched when first wanted, and again before they are old.

While the issuer is away the keys before go on for a set time. A token that names an unknown key makes one look at the
issuer, at most every REFETCH_EVERY_SECONDS, however many such tokens come.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, Protocol

import structlog

from hms_gateway.gateway.auth.issuer_documents import NotFetched
from hms_gateway.gateway.auth.signing_keys import KeySet, KeySetError, read_key_set
from hms_gateway.runtime.file_versions import WatchedFile

REFETCH_EVERY_SECONDS: Final = 10.0
# How long a request waits for a fetch; the fetch itself may take longer, where names are not resolved.
WAIT_SECONDS_MAX: Final = 10.0

_log = structlog.get_logger("hms_gateway.issuers")


class IssuerAway(Exception):
    """The issuer's keys cannot be fetched now; the text says why."""


class IssuerKeys(Protocol):
    """Where the keys of one issuer come from. `version` grows when one of them does not count any more."""

    version: int

    def current(self) -> KeySet | None:
        """The known valid keys; None if they have to be fetched first. Returns at once."""

    async def usable(self) -> KeySet:
        """The keys that may verify a new token. Raises IssuerAway."""

    async def newest(self) -> KeySet:
        """The newest keys, for a token whose key is not among the current ones. Raises IssuerAway."""


class FetchedKeys:
    """Keys that the issuer publishes. While it does not answer, those before go on for `kept_seconds`.

    `fetch` blocks and raises NotFetched.
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
        self.version = 0
        self._issuer = issuer
        self._fetch = fetch
        self._refresh_seconds = refresh_seconds
        self._kept_seconds = kept_seconds
        self._monotonic = monotonic
        self._keys: KeySet | None = None
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
        except (NotFetched, KeySetError) as error:
            self._note(str(error))
        except Exception as error:
            _log.exception("keys of an issuer not fetched", issuer=self._issuer)
            self._note(f"unexpected: {type(error).__name__}")
        self._next_try = self._monotonic() + REFETCH_EVERY_SECONDS
        self._fetching = None
        fetching.set_result(None)

    def _take(self, keys: KeySet) -> None:
        if self._problem is not None:
            _log.info("the issuer answers again", issuer=self._issuer)
        if self._keys is not None and not keys.has_all_of(self._keys):
            self.version += 1
        self._keys, self._fetched_at, self._problem = keys, self._monotonic(), None

    def _note(self, problem: str) -> None:
        if problem != self._problem:
            kept = self._kept_seconds if self._keys is not None else 0
            _log.error("keys of an issuer not fetched", issuer=self._issuer, problem=problem, kept_seconds=kept)
        self._problem = problem


class FileKeys:
    """Keys in a file, read again when it changes; a broken or missing one leaves those before."""

    def __init__(self, issuer: str, file: WatchedFile) -> None:
        self.version = 0
        self._issuer = issuer
        self._file = file
        self._keys: KeySet | None = None
        self._problem = "its file was not read"

    def current(self) -> KeySet | None:
        self._look(at_once=False)
        return self._keys

    async def usable(self) -> KeySet:
        return self.current() or await self.newest()

    async def newest(self) -> KeySet:
        self._look(at_once=True)
        if self._keys is None:
            raise IssuerAway(self._problem)
        return self._keys

    def _look(self, *, at_once: bool) -> None:
        if not self._file.has_changed(at_once=at_once):
            return
        try:
            keys = read_key_set(self._file.path.read_bytes())
        except (OSError, KeySetError) as error:
            self._problem = f"{self._file.path} cannot be used: {error}"
            _log.error("key set not read; the previous keys stay valid", issuer=self._issuer, problem=self._problem)
            return
        if self._keys is not None and not keys.has_all_of(self._keys):
            self.version += 1
        self._keys = keys
