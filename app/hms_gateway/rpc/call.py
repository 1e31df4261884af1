"""A call as handlers see it besides its arguments: who calls and how; how it can wait, and how it can fail."""

import threading
from collections.abc import Callable
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

import msgspec

from hms_gateway.runtime.call_record import TraceSpans
from hms_gateway.runtime.shares import NO_HOLDER, Holder

T = TypeVar("T")


class Dialect(StrEnum):
    """Which generation's shapes the caller expects where they differ (design D2, semantics §10.1)."""

    HIVE_2_3 = "2.3"
    HIVE_4 = "4"


class Caller(NamedTuple):
    """An authenticated user with the groups that the login proved. What a client says of itself is not a group.

    `may_get_token`, `may_administer` and `real_user` are as in `Call`.
    """

    user: str
    groups: frozenset[str] = frozenset()
    may_get_token: bool = False
    real_user: str = ""
    may_administer: bool = True


class Call(msgspec.Struct, frozen=True):
    """One call. `principal` is the authenticated user, `groups` are those that its login proved.
    `lease` is the id of a lease that the caller presents, as it was sent; `lock_id` and `txn_id` are those of a lock
    and a transaction that it names as its own (`handlers.steps`). `key` is what the caller marks a call with
    that it may repeat; the change is made once for each key (design D11). `recorded_at` is when it happened in another
    metastore of which the call records what it knows, as it was sent (`handlers.steps`).
    `holder` is who holds what the call takes of the gateway.
    `valid_write_ids` is the list of write ids that came beside the arguments, as it was sent (docs/caching.md).
    `capabilities` are names of ClientCapability that came so, for calls without that argument (docs/transactions.md).
    `first` is called in the call's thread before anything is read for it, `last` when all was.
    `real_user` is who logged in, where that is another one than the principal. `may_get_token` says that the login was
    one of the user's own, and not a name that a client gave or a token. Without `may_administer` the role admin and
    rules that give `admin` do not count: the name is one that a client gave. `notes` is of a call that is traced.
    A call that is answered again after Waiting has waited so long by now, and is resumed with what that carried.
    """

    principal: str
    groups: frozenset[str] = frozenset()
    dialect: Dialect = Dialect.HIVE_2_3
    request_id: str = ""
    client_address: str = ""
    lease: str | None = None
    lock_id: str | None = None
    txn_id: str | None = None
    key: str | None = None
    recorded_at: str | None = None
    waited_seconds: float = 0.0
    resume: object = None
    holder: Holder = NO_HOLDER
    valid_write_ids: str | None = None
    capabilities: str | None = None
    first: Callable[[], None] | None = None
    last: Callable[[], None] | None = None
    real_user: str = ""
    may_get_token: bool = False
    may_administer: bool = True
    notes: TraceSpans | None = None


class Uncacheable(msgspec.Struct, Generic[T], frozen=True):
    """What a handler returns for an answer that must not be kept: more can change it than its arguments name."""

    answer: T


class Waiting(Exception):
    """Raised by a handler that cannot answer yet: the edge calls it again, and no thread waits meanwhile (design D14).

    seconds  after which it is called again, or earlier when something was released in this process
    resume   what the call carries then
    abandon  to be called, in a thread, when the answer is not wanted any more
    """

    def __init__(self, seconds: float, resume: object = None, abandon: Callable[[], None] = lambda: None) -> None:
        super().__init__(f"not yet, again in {seconds:g} s")
        self.seconds = seconds
        self.resume = resume
        self.abandon = abandon


class Releases:
    """Notifies waiting calls of this process that something they may wait for was released.

    Safe to use from any thread. Listeners are called in the thread that announces, and must not wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], None]] = []
        # How many there were, for callers that look before and after.
        self.count = 0

    def subscribe(self, listener: Callable[[], None]) -> None:
        with self._lock:
            self._listeners.append(listener)

    def announce(self) -> None:
        """Whatever it was is released and committed."""
        with self._lock:
            self.count += 1
            listeners = list(self._listeners)
        for listener in listeners:
            listener()


class Unavailable(Exception):
    """The call could not be tried, nothing has happened, and it may be tried again; the text is safe to show.

    `detail` is for the operator's log alone; `limit` is the name of the limit that is in the way, if one is.
    """

    def __init__(self, text: str, detail: str = "", limit: str = "") -> None:
        super().__init__(text)
        self.detail = detail
        self.limit = limit


class Failed(Exception):
    """The server could not do what a caller may well ask for; the text is safe to show."""
