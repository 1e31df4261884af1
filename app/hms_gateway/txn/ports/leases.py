"""What the rules of leases need from storage. A unit of work is alone while it runs."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from hms_gateway.txn.rules.leases import Claim, LeasedObject, LeaseId, Ticket, Waiter
from hms_gateway.txn.rules.names import Target

T = TypeVar("T")


class LeaseWrites(Protocol):
    """Leases within a unit of work."""

    def now_ms(self) -> int:
        """The database's clock, milliseconds since the epoch; one time for the whole unit of work."""

    def next_lease_id(self) -> LeaseId:
        """Larger than any that was given before."""

    def insert_lease(self, held: Sequence[LeasedObject]) -> None: ...

    def lease(self, lease_id: int) -> list[LeasedObject]:
        """The objects of a lease, also those past their end as long as they are stored."""

    def leases_around(self, targets: Sequence[Target]) -> list[LeasedObject]:
        """Leases on anything that contains one of `targets` or lies in it; it may return more, none for no targets."""

    def leases_inside(self, targets: Sequence[Target] | None) -> list[LeasedObject]:
        """Leases on `targets` and all that lies in them, None for all; by id, then in order of the objects."""

    def update_lease(self, held: Sequence[LeasedObject]) -> None:
        """Store type and end of objects that the lease has already."""

    def delete_lease(self, lease_id: int, targets: Sequence[Target] | None = None) -> int:
        """Forget a lease, or some of its objects; how many objects went."""

    def delete_expired(self) -> None:
        """Forget what is past its end, leases and waiting requests."""

    # Requests that wait.

    def next_ticket(self) -> Ticket:
        """Larger than any that was given before."""

    def waiters_around(self, targets: Sequence[Target], before: Ticket | None) -> list[Waiter]:
        """Waiting requests with an earlier ticket, as `leases_around`; `before` None is any ticket."""

    def put_waiter(self, ticket: Ticket, claims: Sequence[Claim], until_ms: int) -> None:
        """Note that a request waits, or that it still does."""

    def delete_waiter(self, ticket: Ticket) -> None: ...


class LeaseUnit(Protocol):
    @property
    def leases(self) -> LeaseWrites: ...


class LeaseStore(Protocol):
    """The units of work of `metastore.ports.store`, as far as they are used here."""

    def write(self, work: Callable[[LeaseUnit], T]) -> T: ...
