"""Acquires the locks of Hive's concurrency model: a request that is denied is tried again after a pause.

All locks of a command are one request, which the metastore grants as a whole, so nothing is ever held while the rest is
waited for. Hive takes them one by one and gives back what it has when one is denied. That starves writers among
readers; here a denied request keeps its place in the metastore's queue, unless `keeps_place` is off.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

import msgspec

from hms_gateway.client.concurrency import LockPlace, NeededLock, lock_components
from hms_gateway.rpc.structs import (
    CheckLockRequest,
    HeartbeatRequest,
    LockRequest,
    LockResponse,
    LockState,
    NoSuchLockException,
    NoSuchObjectException,
    ShowLocksRequest,
    ThriftException,
    UnlockRequest,
)

_IS_ON: Final = "hive.support.concurrency"
_LOCK_RETRIES: Final = "hive.lock.numretries"
_PAUSE: Final = "hive.lock.sleep.between.retries"
_UNLOCK_RETRIES: Final = "hive.unlock.numretries"
# A place in the queue is lost without a sign of life; the time-out of metastores is 300 s.
_SILENT_SECONDS_MAX: Final = 60.0
SETTING_NAMES: Final = (_IS_ON, _LOCK_RETRIES, _PAUSE, _UNLOCK_RETRIES)

_DURATIONS: Final = {
    "ms": 0.001,
    "msec": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}


class LocksDenied(Exception):
    """Another request held the objects at every attempt."""


def listing_holders(command: str) -> str:
    """What to do about LocksDenied, where this command shows the locks."""
    return f"{command} lists the holders"


class SettingError(ValueError):
    """A setting of Hive has a value it cannot have; the text names it."""


class MetastoreCaller(Protocol):
    """A client of the metastore, such as `client.metastore_client.MetastoreClient`."""

    def call(self, name: str, /, *arguments: Any) -> Any: ...


class ConcurrencySettings(msgspec.Struct, frozen=True):
    """Hive's settings with its defaults (semantics §8.1).

    is_on            hive.support.concurrency, on by default: callers of this function need locks
    lock_retries     hive.lock.numretries: how often a denied request is tried again
    pause_seconds    hive.lock.sleep.between.retries
    unlock_retries   hive.unlock.numretries
    keeps_place      whether a denied request waits in the queue between two tries, where later ones do not overtake it
    """

    is_on: bool = True
    lock_retries: int = 100
    pause_seconds: float = 60.0
    unlock_retries: int = 10
    keeps_place: bool = True

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, str]) -> "ConcurrencySettings":
        """From a Hive configuration; what it does not name keeps its default. Raises SettingError."""
        defaults = cls()
        return cls(
            _boolean(configuration, _IS_ON, defaults.is_on),
            _count(configuration, _LOCK_RETRIES, defaults.lock_retries),
            _seconds(configuration, _PAUSE, defaults.pause_seconds),
            _count(configuration, _UNLOCK_RETRIES, defaults.unlock_retries),
        )


class LockHolder(msgspec.Struct, frozen=True):
    """Who the locks are shown to belong to.

    agent_info  names this request and no other, such as the text of `client.lock_text.LockReason`: when the answer to
                it is lost, the locks with this name are given back
    """

    user: str
    hostname: str
    agent_info: str


class PartitionKeys:
    """The partition keys of tables as a metastore knows them, for `client.concurrency.in_key_order`."""

    def __init__(self, client: MetastoreCaller) -> None:
        self._client = client

    def __call__(self, table: LockPlace) -> dict[str, str] | None:
        """None for a table that is not there, which may be locked all the same. Raises what the client does."""
        try:
            found = self._client.call("get_table", table.db_name, table.table_name)
        except NoSuchObjectException:
            return None
        return {(key.name or "").lower(): (key.type or "").lower() for key in found.partitionKeys or ()}


class LockAcquirer:
    """`pause` waits so many seconds between two tries."""

    def __init__(self, client: MetastoreCaller, settings: ConcurrencySettings, pause: Callable[[float], None]) -> None:
        self._client = client
        self._settings = settings
        self._pause = pause

    def acquire(self, locks: Sequence[NeededLock], holder: LockHolder) -> int | None:
        """Get all of `locks` or none; the id to release them by, None when there is nothing to lock.

        The locks are lost without a heartbeat in time. Raises LocksDenied, and what the client does.
        """
        if not self._settings.is_on or not locks:
            return None
        request = LockRequest(lock_components(locks), 0, holder.user, holder.hostname, holder.agent_info)
        answer = self._asked(request)
        for _ in range(self._settings.lock_retries):
            if answer.state == LockState.ACQUIRED:
                break
            answer = self._waited(request, answer) if self._settings.keeps_place else self._anew(request, answer)
        assert answer.lockid is not None
        if answer.state == LockState.ACQUIRED:
            return answer.lockid
        self.release(answer.lockid)
        tries = self._settings.lock_retries + 1
        names = ", ".join(f"{mode} on {place}" for place, mode in locks)
        raise LocksDenied(f"not granted in {tries} {'try' if tries == 1 else 'tries'}: {names}")

    def _anew(self, request: LockRequest, denied: LockResponse) -> LockResponse:
        """As Hive does: given up, and asked for after a pause behind all that have come meanwhile."""
        assert denied.lockid is not None
        self.release(denied.lockid)
        self._pause(self._settings.pause_seconds)
        return self._asked(request)

    def _waited(self, request: LockRequest, denied: LockResponse) -> LockResponse:
        """What the request in the queue gets after a pause; one that the metastore has forgotten is asked for anew."""
        try:
            answer = denied
            for seconds in _slices(self._settings.pause_seconds):
                self._pause(seconds)
                answer = self._client.call("check_lock", CheckLockRequest(denied.lockid))
                if answer.state == LockState.ACQUIRED:
                    break
            return answer
        except NoSuchLockException:
            return self._asked(request)
        except BaseException:
            # Left behind in the queue it would stop others until the time-out.
            with suppress(Exception):
                self._client.call("unlock", UnlockRequest(denied.lockid))
            raise

    def _asked(self, request: LockRequest) -> LockResponse:
        """The answer to a request; where there is none it may have come through, and is given up."""
        try:
            answer: LockResponse = self._client.call("lock", request)
        except ThriftException:
            raise
        except BaseException:
            with suppress(Exception):
                self._forget(request)
            raise
        return answer

    def _forget(self, request: LockRequest) -> None:
        owner = (request.user, request.hostname, request.agentInfo)
        shown = self._client.call("show_locks", ShowLocksRequest()).locks or ()
        for lock_id in {lock.lockid for lock in shown if (lock.user, lock.hostname, lock.agentInfo) == owner}:
            self._client.call("unlock", UnlockRequest(lock_id))

    def keep(self, lock_id: int) -> None:
        """A heartbeat. Raises NoSuchLockException when the locks are lost, and what the client does."""
        self._client.call("heartbeat", HeartbeatRequest(lockid=lock_id))

    def release(self, lock_id: int) -> None:
        """Give locks back. Raises what the client does, when it still does after the retries."""
        for attempt in range(self._settings.unlock_retries + 1):
            try:
                self._client.call("unlock", UnlockRequest(lock_id))
                return
            except ThriftException:
                # The metastore has answered, and will not answer otherwise.
                raise
            except Exception:
                if attempt == self._settings.unlock_retries:
                    raise
                self._pause(self._settings.pause_seconds)


def _slices(seconds: float) -> Iterator[float]:
    """A pause, with a sign of life often enough."""
    while seconds > _SILENT_SECONDS_MAX:
        yield _SILENT_SECONDS_MAX
        seconds -= _SILENT_SECONDS_MAX
    yield seconds


def _boolean(configuration: Mapping[str, str], name: str, default: bool) -> bool:
    text = configuration.get(name, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise SettingError(f"{name} must be true or false, not {text!r}")
    return text == "true"


def _count(configuration: Mapping[str, str], name: str, default: int) -> int:
    text = configuration.get(name, str(default)).strip()
    if not text.isdecimal():
        raise SettingError(f"{name} must be a number from 0, not {text!r}")
    return int(text)


def _seconds(configuration: Mapping[str, str], name: str, default: float) -> float:
    """`60s`, `500ms`, `1m`, or a number of seconds."""
    text = configuration.get(name)
    if text is None:
        return default
    digits = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = text.strip()[len(digits) :] or "s"
    if not digits.isdecimal() or unit not in _DURATIONS:
        raise SettingError(f"{name} must be a time such as 60s, not {text!r}")
    return int(digits) * _DURATIONS[unit]
