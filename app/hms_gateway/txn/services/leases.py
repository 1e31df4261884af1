"""The lease methods: load, decide, apply in one unit of work (semantics §7.3)."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from hms_gateway.rpc.structs import (
    ExceedsMaxLeaseTimeException,
    InvalidArgumentsException,
    LeaseAlreadyExistsException,
    LeaseObject,
    MetaException,
)
from hms_gateway.runtime.call_keys import answering
from hms_gateway.txn.ports.leases import LeaseStore, LeaseWrites
from hms_gateway.txn.rules.leases import (
    Claim,
    Extension,
    LeaseConflict,
    LeasedObject,
    LeaseId,
    LeaseType,
    Lost,
    Ticket,
    TooLong,
    conflict,
    end_of_grant,
    extension,
    merged,
    owned,
)
from hms_gateway.txn.rules.names import Target, target
from hms_gateway.txn.services.settings import LeaseSettings

_MILLISECONDS: Final = 1000
_SHORTEST_PAUSE_SECONDS: Final = 0.01


class MustWait(msgspec.Struct, frozen=True):
    """A request that is not granted yet: ask again with `ticket`, which keeps its place, after so many seconds."""

    ticket: Ticket
    seconds: float


class _Request(msgspec.Struct, frozen=True):
    user: str
    claims: Sequence[Claim]
    duration_seconds: int
    seconds_left: float
    ticket: Ticket | None


class _Blocked(Exception):
    """Ends the unit of work of a request that is not granted, so that it leaves nothing behind."""

    def __init__(self, conflict: LeaseConflict) -> None:
        super().__init__(str(conflict.obstacle))
        self.conflict = conflict


class LeaseService:
    """`on_release` is called after every commit that may let a waiting request through, in any thread."""

    def __init__(
        self, store: LeaseStore, settings: LeaseSettings, on_release: Callable[[], None] = lambda: None
    ) -> None:
        self._store = store
        self._settings = settings
        self._on_release = on_release

    def grab(
        self,
        user: str,
        objects: Sequence[LeaseObject],
        duration_seconds: int,
        wait_seconds: int,
        *,
        waited_seconds: float = 0.0,
        ticket: Ticket | None = None,
    ) -> LeaseId | MustWait:
        """Grant all objects to `user` or none; MustWait as long as it may wait and something is in the way.

        `waited_seconds` and `ticket` say how long the request has waited, and under which ticket. Raises
        LeaseAlreadyExistsException, InvalidArgumentsException and ExceedsMaxLeaseTimeException.
        """
        claims = self._claims(objects)
        if not claims:
            raise InvalidArgumentsException("a lease needs at least one object")
        if duration_seconds <= 0:
            raise InvalidArgumentsException(f"lease_duration_sec must be above zero, not {duration_seconds}")
        if not 0 <= wait_seconds <= self._settings.wait_seconds_max:
            bounds = f"0 to {self._settings.wait_seconds_max}"
            raise InvalidArgumentsException(
                f"lease_wait_duration_sec must be in {bounds} (lease_wait_seconds_max), not {wait_seconds}"
            )
        self._check_duration(duration_seconds)
        request = _Request(user, claims, duration_seconds, wait_seconds - waited_seconds, ticket)
        try:
            return self._store.write(lambda transaction: self._grab(transaction.leases, request))
        except _Blocked as blocked:
            found = blocked.conflict
        if request.seconds_left > 0:
            return self._wait(request, found)
        if ticket is not None:
            self.abandon(ticket)
        raise LeaseAlreadyExistsException(f"{found.claim.target} conflicts with {found.obstacle}")

    def abandon(self, ticket: Ticket) -> None:
        """The request with this ticket is not waited for any more; those behind it may go on."""
        with answering(None):
            self._store.write(lambda transaction: transaction.leases.delete_waiter(ticket))
        self._on_release()

    def listed(self, objects: Sequence[LeaseObject]) -> list[LeaseObject]:
        """Live leases on the objects and all that lies in them, by id; no objects means all.

        Raises InvalidArgumentsException.
        """
        targets = self._targets(objects)

        def work(leases: LeaseWrites) -> list[LeasedObject]:
            return [held for held in leases.leases_inside(targets) if held.is_live(leases.now_ms())]

        return [_answered(held) for held in self._store.write(lambda transaction: work(transaction.leases))]

    def extend(
        self, user: str, lease_id: int, objects: Sequence[LeaseObject], duration_seconds: int | None = None
    ) -> int:
        """Let the lease, or some of its objects, last longer from now; the new end in seconds since the epoch.

        Objects that are named as exclusive become so. None or 0 is the duration it was granted for. Raises
        InvalidArgumentsException, also for a lease that is lost and for what cannot become exclusive, and
        ExceedsMaxLeaseTimeException.
        """
        claims = self._claims(objects)
        if duration_seconds is not None and duration_seconds < 0:
            raise InvalidArgumentsException(f"lease_duration_sec must not be negative: {duration_seconds}")
        if duration_seconds:
            self._check_duration(duration_seconds)
        duration_ms = duration_seconds * _MILLISECONDS if duration_seconds else None
        try:
            outcome = self._store.write(
                lambda transaction: self._extend(transaction.leases, user, lease_id, claims, duration_ms)
            )
        except Lost as error:
            raise InvalidArgumentsException(str(error)) from error
        except TooLong as error:
            raise ExceedsMaxLeaseTimeException(str(error)) from error
        if isinstance(outcome, LeaseConflict):
            text = f"{outcome.claim.target} cannot become exclusive: it conflicts with {outcome.obstacle}"
            raise InvalidArgumentsException(text)
        return outcome.end_ms // _MILLISECONDS

    def drop(self, user: str, lease_id: int, objects: Sequence[LeaseObject]) -> None:
        """Give the lease up, or some of its objects. What is gone already is ignored.

        Raises InvalidArgumentsException for another user's lease.
        """
        targets = self._targets(objects)

        def work(leases: LeaseWrites) -> int:
            owned(lease_id, user, leases.lease(lease_id))
            return leases.delete_lease(lease_id, targets)

        try:
            gone = self._store.write(lambda transaction: work(transaction.leases))
        except Lost as error:
            raise InvalidArgumentsException(str(error)) from error
        if gone:
            self._on_release()

    def force_drop(self, user: str, objects: Sequence[LeaseObject]) -> None:
        """Take the objects, and all that lies in them, away from their holders; no objects means everything.

        Raises InvalidArgumentsException, and MetaException for a user who is not an administrator.
        """
        if user not in self._settings.administrators:
            raise MetaException(f"user {user} is not an administrator and may not drop other users' leases")
        targets = self._targets(objects)

        def work(leases: LeaseWrites) -> None:
            by_lease: dict[LeaseId, list[Target]] = {}
            for held in leases.leases_inside(targets):
                by_lease.setdefault(held.lease_id, []).append(held.claim.target)
            for lease_id, its_targets in by_lease.items():
                leases.delete_lease(lease_id, its_targets)

        self._store.write(lambda transaction: work(transaction.leases))
        self._on_release()

    def _grab(self, leases: LeaseWrites, request: _Request) -> LeaseId:
        leases.delete_expired()
        now_ms = leases.now_ms()
        targets = [claim.target for claim in request.claims]
        earlier = leases.waiters_around(targets, request.ticket)
        found = conflict(request.claims, leases.leases_around(targets), earlier, now_ms)
        if found is not None:
            raise _Blocked(found)
        if request.ticket is not None:
            leases.delete_waiter(request.ticket)
        return self._grant(leases, request, now_ms)

    def _grant(self, leases: LeaseWrites, request: _Request, now_ms: int) -> LeaseId:
        duration_ms = request.duration_seconds * _MILLISECONDS
        end_ms = end_of_grant(now_ms, duration_ms, self._longest_ms)
        lease_id = leases.next_lease_id()
        leases.insert_lease(
            [LeasedObject(lease_id, request.user, claim, now_ms, end_ms, duration_ms) for claim in request.claims]
        )
        return lease_id

    def _wait(self, request: _Request, found: LeaseConflict) -> MustWait:
        """In a unit of work of its own, which is not part of what the call does: a call has one that counts."""

        def work(leases: LeaseWrites) -> MustWait:
            ticket = leases.next_ticket() if request.ticket is None else request.ticket
            until_ms = leases.now_ms() + int(self._settings.forgotten_seconds * _MILLISECONDS)
            leases.put_waiter(ticket, request.claims, until_ms)
            free_seconds = (found.free_ms - leases.now_ms()) / _MILLISECONDS
            seconds = min(self._settings.poll_seconds, request.seconds_left, free_seconds)
            return MustWait(ticket, max(seconds, _SHORTEST_PAUSE_SECONDS))

        with answering(None):
            return self._store.write(lambda transaction: work(transaction.leases))

    def _extend(
        self, leases: LeaseWrites, user: str, lease_id: int, claims: Sequence[Claim], duration_ms: int | None
    ) -> Extension | LeaseConflict:
        # What has ended stays so, even when the clock is set back after another lease became exclusive.
        leases.delete_expired()
        upgrades = [claim.target for claim in claims if claim.type is LeaseType.EXCLUSIVE]
        around = leases.leases_around(upgrades) if upgrades else []
        others = [held for held in around if held.lease_id != lease_id]
        held = leases.lease(lease_id)
        outcome = extension(lease_id, user, claims, held, others, leases.now_ms(), duration_ms, self._longest_ms)
        if isinstance(outcome, Extension):
            leases.update_lease(outcome.changed)
        return outcome

    @property
    def _longest_ms(self) -> int:
        return self._settings.duration_seconds_max * _MILLISECONDS

    def _check_duration(self, seconds: int) -> None:
        try:
            end_of_grant(0, seconds * _MILLISECONDS, self._longest_ms)
        except TooLong as error:
            raise ExceedsMaxLeaseTimeException(str(error)) from error

    def _targets(self, objects: Sequence[LeaseObject]) -> list[Target] | None:
        return [claim.target for claim in self._claims(objects)] or None

    def _claims(self, objects: Sequence[LeaseObject]) -> list[Claim]:
        if len(objects) > self._settings.objects_max:
            text = f"{len(objects)} objects are more than {self._settings.objects_max} (objects_max)"
            raise InvalidArgumentsException(text)
        return merged(self._claim(each) for each in objects)

    def _claim(self, wanted: LeaseObject) -> Claim:
        wanted_target = target(wanted.db_name, wanted.table_name, wanted.partition_name)
        if not wanted_target.db_name:
            raise InvalidArgumentsException("an object of a lease needs a db_name")
        if wanted.partition_name and wanted_target.table_name is None:
            raise InvalidArgumentsException(f"partition {wanted.partition_name} needs a table_name")
        name_bytes_max, partition_bytes_max = self._settings.name_bytes_max
        for name, bytes_max in zip(wanted_target, (name_bytes_max, name_bytes_max, partition_bytes_max), strict=True):
            _check_name(name or "", bytes_max)
        return Claim(wanted_target, _type(wanted.lease_type))


def _check_name(name: str, bytes_max: int) -> None:
    try:
        encoded = name.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentsException("a name contains half of a surrogate pair") from error
    if b"\0" in encoded:
        raise InvalidArgumentsException("a name contains a NUL character")
    if len(encoded) > bytes_max:
        raise InvalidArgumentsException(f"the name {name[:80]}… is longer than {bytes_max} bytes")


def _type(given: str | None) -> LeaseType:
    """Shared unless said otherwise."""
    try:
        return LeaseType((given or LeaseType.SHARED).lower())
    except ValueError:
        raise InvalidArgumentsException(f"lease_type must be s or x, not {given}") from None


def _answered(held: LeasedObject) -> LeaseObject:
    place = held.claim.target
    return LeaseObject(
        db_name=place.db_name,
        table_name=place.table_name,
        partition_name=place.partition_name or "",
        lease_type=held.claim.type.value,
        user=held.user,
        lease_id=held.lease_id,
        start_utc=held.start_ms // _MILLISECONDS,
        end_utc=held.end_ms // _MILLISECONDS,
    )
