"""Learns by a query whether anything was committed, where a database shows it in no other way.

One question serves every lookup that was waiting when it was put; a lookup that arrives while it runs waits for the
next one, because the running one may have looked before a change that the lookup must see. The question is put on a
connection of its own and its answer is awaited by the event loop: a thread for each would cost more than the question.
When something happened the changes are asked for in the same way; where they are many, or the connection cannot, a
thread reads them.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol, TypeAlias

import structlog

from hms_gateway.metastore.ports.store import EventId, StoredEvent, VersionWatch
from hms_gateway.runtime.tracebacks import forget_frames

ANSWER_SECONDS_MAX: Final = 5.0
# So many are applied by the event loop at once.
ASKED_CHANGES_MAX: Final = 500

Done: TypeAlias = Callable[[Exception | None], None]
"""Called once: with None when every change committed before the question is applied, else with what went wrong."""

_log = structlog.get_logger("hms_gateway.cache")


class QueriedFeed(Protocol):
    def version_watch(self) -> VersionWatch | None:
        """A new watch, None where the database has none. Connects, so it takes time. Raises StoreUnavailable."""

    def version(self) -> EventId:
        """The id of the newest committed event."""

    def changes_since(self, event_id: EventId) -> Sequence[StoredEvent]:
        """Events after `event_id` in order; their messages may be empty, but for commits.

        Old events are forgotten, the newest never is: the first is not `event_id + 1` when some are missing.
        """


class Freshness:
    """`version` is the newest event that was applied, `apply` takes the ones after it. For the event loop's thread.

    `restart` is called with the newest event where those that were applied may be lost, and `in_doubt` as soon as they
    may be.
    """

    def __init__(
        self,
        feed: QueriedFeed,
        version: Callable[[], EventId],
        apply: Callable[[Sequence[StoredEvent]], None],
        restart: Callable[[EventId], None],
        in_doubt: Callable[[], None] = lambda: None,
    ) -> None:
        self._feed = feed
        self._version = version
        self._apply = apply
        self._restart = restart
        self._in_doubt = in_doubt
        self._is_in_doubt = False
        self._is_closed = False
        self._watch: VersionWatch | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._has_no_watch = False
        self._asked_changes = False
        # Who waits for the question that was put, and who for the next one.
        self._asked: list[Done] = []
        self._next: list[Done] = []
        self._timer: asyncio.TimerHandle | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def notices_losses(self) -> bool:
        """Whether it would be known if the database lost what it has shown."""
        return self._watch is not None or self._has_no_watch

    def refresh(self, done: Done) -> None:
        """Apply every event that was committed before this was called, then call `done`; never at once."""
        self._next.append(done)
        if not self._asked and not self._is_closed:
            self._ask()

    def close(self) -> None:
        """Give the connection back; no call may be waiting any more."""
        self._is_closed = True
        self._drop_watch()

    def _ask(self) -> None:
        self._asked, self._next = self._next, []
        watch = self._watch
        if watch is None or not self._is_put(watch.ask):
            self._read_in_thread()

    def _ask_changes(self, newest: EventId) -> None:
        watch, version = self._watch, self._version()
        is_asked = watch is not None and watch.knows_changes and 0 < newest - version <= ASKED_CHANGES_MAX
        if watch is not None and is_asked and self._is_put(partial(watch.ask_changes, version)):
            self._asked_changes = True
        else:
            self._read_in_thread()

    def _is_put(self, ask: Callable[[], None]) -> bool:
        """Whether the question is on its way."""
        try:
            ask()
        except Exception as error:
            self._lose_watch(error)
            return False
        self._timer = asyncio.get_running_loop().call_later(ANSWER_SECONDS_MAX, self._answer_is_late)
        return True

    def _readable(self) -> None:
        if self._watch is None:
            return
        try:
            answer = self._watch.changes() if self._asked_changes else self._watch.answer()
        except Exception as error:
            self._lose_watch(error)
            if self._timer is not None:
                self._stop_timer()
                self._read_in_thread()
            return
        if answer is None or self._timer is None:
            return
        self._stop_timer()
        if not isinstance(answer, int):
            self._asked_changes = False
            self._apply(answer)
            self._finish(None)
        elif answer == self._version():
            self._finish(None)
        else:
            self._ask_changes(answer)

    def _answer_is_late(self) -> None:
        self._timer = None
        self._lose_watch(TimeoutError(f"no answer within {ANSWER_SECONDS_MAX:g} seconds"))
        self._read_in_thread()

    def _read_in_thread(self) -> None:
        # The loop itself keeps only weak references to its tasks.
        self._reading = asyncio.get_running_loop().create_task(self._read_changes())

    async def _read_changes(self) -> None:
        try:
            if self._watch is None and not self._has_no_watch:
                self._keep_watch(await asyncio.to_thread(self._feed.version_watch))
            if self._is_in_doubt:
                self._restart(await asyncio.to_thread(self._feed.version))
                self._is_in_doubt = False
            self._apply(await asyncio.to_thread(self._feed.changes_since, self._version()))
        except Exception as error:
            self._finish(error)
        else:
            self._finish(None)

    def _finish(self, error: Exception | None) -> None:
        if error is not None:
            forget_frames(error)
        asked, self._asked = self._asked, []
        for done in asked:
            done(error)
        # One of those may have begun the next question.
        if self._next and not self._asked:
            self._ask()

    def _keep_watch(self, watch: VersionWatch | None) -> None:
        self._has_no_watch = watch is None
        if watch is not None and self._is_closed:
            # Nothing waited for it.
            watch.close()
        elif watch is not None:
            self._watch = watch
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(watch.fileno(), self._readable)

    def _lose_watch(self, error: Exception) -> None:
        _log.debug("the connection that watches for changes is lost", problem=repr(error))
        forget_frames(error)
        self._drop_watch()

    def _drop_watch(self) -> None:
        watch, self._watch, self._asked_changes = self._watch, None, False
        if watch is not None and self._loop is not None:
            if not watch.sees_lasting_only:
                self._is_in_doubt = True
                self._in_doubt()
            self._loop.remove_reader(watch.fileno())
            watch.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
