"""A store of leases in memory that keeps everything it is given; `tests/contract` runs it beside the real ones."""

from msgspec.structs import replace

from hms_gateway.txn.rules.leases import LeasedObject, LeaseId, Ticket, Waiter, containers
from tests.support.manual_clock import ManualClock


class MemoryLeases:
    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._held: dict[tuple, LeasedObject] = {}
        self._waiting: dict[int, tuple] = {}
        self._ids = {"lease": 0, "ticket": 0}

    def now_ms(self):
        return self._clock.milliseconds()

    def next_lease_id(self):
        return LeaseId(self._next("lease"))

    def next_ticket(self):
        return Ticket(self._next("ticket"))

    def insert_lease(self, held):
        self._held.update({(one.lease_id, one.claim.target): one for one in held})

    def lease(self, lease_id):
        return [one for one in self._held.values() if one.lease_id == lease_id]

    def leases_around(self, targets):
        return list(self._held.values())

    def leases_inside(self, targets):
        return [
            one
            for one in self._held.values()
            if targets is None or any(target in containers(one.claim.target) for target in targets)
        ]

    def update_lease(self, held):
        for one in held:
            key = (one.lease_id, one.claim.target)
            self._held[key] = replace(self._held[key], claim=one.claim, end_ms=one.end_ms)

    def delete_lease(self, lease_id, targets=None):
        gone = [key for key in self._held if key[0] == lease_id and (targets is None or key[1] in targets)]
        for key in gone:
            del self._held[key]
        return len(gone)

    def delete_expired(self):
        self._held = {key: one for key, one in self._held.items() if one.end_ms > self.now_ms()}
        self._waiting = {ticket: one for ticket, one in self._waiting.items() if one[1] > self.now_ms()}

    def waiters_around(self, targets, before):
        return [
            Waiter(Ticket(ticket), claim, until_ms)
            for ticket, (claims, until_ms) in self._waiting.items()
            if before is None or ticket < before
            for claim in claims
        ]

    def put_waiter(self, ticket, claims, until_ms):
        self._waiting[ticket] = (claims, until_ms)

    def delete_waiter(self, ticket):
        self._waiting.pop(ticket, None)

    def _next(self, name):
        self._ids[name] += 1
        return self._ids[name]


class MemoryStore:
    """Units of work one after the other. The service never fails after it has changed something."""

    def __init__(self, clock: ManualClock) -> None:
        self.leases = MemoryLeases(clock)

    def write(self, work):
        return work(self)
