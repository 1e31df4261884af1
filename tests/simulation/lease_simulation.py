"""Clients, servers and one database of leases, played under a seed, with everything checked after each step.

As in `txn_simulation`: the clock is the database's and jumps, also backwards; connections are lost; clients die and
leave leases and places in the queue behind; those who were stopped write late. What must hold (semantics §7.2) is
checked by plain code that shares nothing with the rules under test.
"""

import contextlib
from collections.abc import Callable
from random import Random
from typing import Any

from hms_gateway.metastore.changes.fencing import fenced
from hms_gateway.metastore.ports.store import Event, OutcomeUnknown, StoreUnavailable
from hms_gateway.rpc.structs import InvalidOperationException, LeaseAlreadyExistsException, LeaseObject, ThriftException
from hms_gateway.runtime.presented import presenting
from hms_gateway.txn.services.leases import LeaseService, MustWait
from hms_gateway.txn.services.settings import LeaseSettings
from tests.linearizability.lease_model import Claim, Place, clash, contains
from tests.simulation.faulty_store import FaultyStore
from tests.simulation.lease_database import LeaseDatabase
from tests.simulation.violations import Violation as Violation

CLIENTS = 5
LONGEST_SECONDS = 100
PLACES: list[Place] = [
    ("d", None, None),
    ("d", "t", None),
    ("d", "u", None),
    ("d", "t", "ds=1"),
    ("d", "t", "ds=1/hr=1"),
    ("d", "t", "ds=1/hr=2"),
    ("d", "t", "ds=2"),
]
WRITABLE = PLACES[:3]
JUMPS_MS = [
    1,
    10,
    100,
    100,
    500,
    500,
    1_000,
    1_000,
    2_000,
    3_000,
    5_000,
    9_999,
    10_001,
    40_000,
    101_000,
    -1,
    -700,
    -3_000,
]

Shown = dict[int, tuple[str, dict[Place, tuple[str, int, int]]]]
"""By lease: its user, and for each object its type, start and end."""


class FencedStore(FaultyStore):
    def write(self, work: Callable[[Any], Any]) -> Any:
        return super().write(fenced(work))


class _Holder:
    """A client: its leases as it knows them, and what it waits for."""

    def __init__(self, number: int) -> None:
        self.user = f"user{number}"
        self.leases: list[int] = []
        self.waiting: tuple[int | None, list[Claim], int] | None = None


class LeaseSimulation:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.step_number = 0
        self.random = Random(seed)
        self.database = LeaseDatabase()
        settings = LeaseSettings(frozenset({"user0"}), duration_seconds_max=LONGEST_SECONDS)
        self._connections = [FencedStore(self.database, self.random, skew_ms) for skew_ms in (0, 40_000)]
        self._servers = [LeaseService(connection, settings) for connection in self._connections]
        self._clients = [_Holder(number) for number in range(CLIENTS)]
        self._shown: Shown = {}
        self._waited: dict[int, tuple[list[Claim], int]] = {}
        self._newest = {"lease": 0, "ticket": 0}
        self._event_count = 0
        self._may_go: set[tuple[int, Place]] = set()
        self._may_change: dict[int, list[Claim]] = {}
        self._tickets_that_may_go: set[int] = set()
        self._asked: tuple[str, list[Claim], int, int | None] | None = None
        self._written: tuple[int, Place] | None = None

    def run(self, steps: int) -> None:
        """Raises Violation."""
        actions = [action for action, weight in self._actions() for _ in range(weight)]
        for _ in range(steps):
            self.step_number += 1
            faults = 0.02 if self.random.random() < 0.5 else 0.0
            for connection in self._connections:
                connection.faults = faults
            self._asked = self._written = None
            self._may_go, self._may_change, self._tickets_that_may_go = set(), {}, set()
            with contextlib.suppress(ThriftException, StoreUnavailable, OutcomeUnknown):
                self.random.choice(actions)()
            self._check()

    def fail(self, text: str) -> None:
        raise Violation(f"seed {self.seed}, step {self.step_number}: {text}")

    def _actions(self) -> list[tuple[Callable[[], None], int]]:
        return [
            (self._grab, 12),
            (self._ask_again, 10),
            (self._give_up_waiting, 2),
            (self._drop, 6),
            (self._extend, 6),
            (self._write, 12),
            (self._force_drop, 1),
            (self._list, 2),
            (self._die, 1),
            (self._pass_time, 5),
        ]

    # What clients do.

    @property
    def _server(self) -> LeaseService:
        return self.random.choice(self._servers)

    @property
    def _client(self) -> _Holder:
        return self.random.choice(self._clients)

    @property
    def _now_ms(self) -> int:
        return self.database.clock.now_ms

    def _grab(self) -> None:
        client = self._client
        if client.waiting is None and len(client.leases) < 4:
            places = self.random.choices(PLACES, k=self.random.choice([1, 1, 2, 3]))
            claims = [(place, self.random.choice("ssx")) for place in places]
            self._ask(client, None, claims, self.random.choice([0, 50]))

    def _ask_again(self) -> None:
        client = self._client
        if client.waiting is not None:
            ticket, claims, wait_seconds = client.waiting
            self._ask(client, ticket, claims, wait_seconds)

    def _ask(self, client: _Holder, ticket: int | None, claims: list[Claim], wait_seconds: int) -> None:
        duration_seconds = self.random.choice([1, 10, 50, LONGEST_SECONDS])
        waited_seconds = self.random.choice([0, 0, 0, 51]) if ticket is not None else 0
        self._asked = (client.user, claims, duration_seconds, ticket)
        if ticket is not None:
            self._tickets_that_may_go.add(ticket)
        try:
            outcome = self._server.grab(
                client.user,
                _objects(claims),
                duration_seconds,
                wait_seconds,
                waited_seconds=waited_seconds,
                ticket=ticket,  # type: ignore[arg-type]
            )
        except LeaseAlreadyExistsException:
            client.waiting = None
            self._check_refusal(claims, ticket)
            raise
        if isinstance(outcome, MustWait):
            client.waiting = (outcome.ticket, claims, wait_seconds)
            self._check_refusal(claims, ticket)
            if outcome.ticket not in self.database.waiting:
                self.fail(f"ticket {outcome.ticket} has no place among those who wait")
            return
        client.waiting = None
        client.leases.append(outcome)
        if all(lease_id != outcome for lease_id, _ in self.database.held):
            self.fail(f"lease {outcome} was granted and is not there")

    def _give_up_waiting(self) -> None:
        client = self._client
        if client.waiting is not None and client.waiting[0] is not None:
            ticket = client.waiting[0]
            client.waiting = None
            self._tickets_that_may_go.add(ticket)
            self._server.abandon(ticket)  # type: ignore[arg-type]
            if ticket in self.database.waiting:
                self.fail(f"ticket {ticket} was given up and still waits")

    def _drop(self) -> None:
        client, lease_id = self._client, self._some_lease()
        if lease_id is None:
            return
        user, held = self._shown.get(lease_id, (client.user, {}))
        places = [self.random.choice(list(held))] if held and self.random.random() < 0.3 else []
        if user == client.user:
            self._may_go |= {(lease_id, place) for place in places or held}
        self._server.drop(client.user, lease_id, _objects([(place, "s") for place in places]))
        if user != client.user:
            self.fail(f"{client.user} dropped lease {lease_id} of {user}")
        if any(one == lease_id and (not places or target in places) for one, target in self.database.held):
            self.fail(f"lease {lease_id} was dropped and is there")

    def _extend(self) -> None:
        client, lease_id = self._client, self._some_lease()
        if lease_id is None:
            return
        user, held = self._shown.get(lease_id, ("", {}))
        chosen = self.random.sample(list(held), min(len(held), self.random.choice([0, 1, 1])))
        claims = [(place, self.random.choice("sx")) for place in chosen]
        seconds = self.random.choice([0, 1, 50, LONGEST_SECONDS])
        is_live = any(self._now_ms < end_ms for _, _, end_ms in held.values())
        if user == client.user and is_live:
            self._may_change[lease_id] = claims or [(place, "s") for place in held]
        self._server.extend(client.user, lease_id, _objects(claims), seconds)
        if user != client.user or not is_live:
            self.fail(f"lease {lease_id} of {user} was extended for {client.user}, live: {is_live}")

    def _write(self) -> None:
        """A change under a lease, perhaps long after its end."""
        lease_id = self._some_lease()
        if lease_id is None:
            return
        held = [place for place in self._shown.get(lease_id, ("", {}))[1] if place in WRITABLE]
        place = self.random.choice(held if held and self.random.random() < 0.7 else WRITABLE)
        db_name, table_name, _ = place
        event = Event("ALTER_TABLE" if table_name else "ALTER_DATABASE", db_name, table_name, "{}")
        self._written = (lease_id, place)
        with presenting(lease_id):
            try:
                self.random.choice(self._connections).write(lambda tx: tx.append_event(event))
            except InvalidOperationException:
                if self._lets_write(lease_id, place):
                    self.fail(f"a change of {place} under lease {lease_id} was refused")
                raise

    def _force_drop(self) -> None:
        place = self.random.choice(PLACES)
        self._may_go |= {
            (lease_id, target)
            for lease_id, target in self.database.held
            if contains(place, tuple(target))  # type: ignore[arg-type]
        }
        self._server.force_drop("user0", _objects([(place, "s")]))
        if any(contains(place, tuple(target)) for _, target in self.database.held):  # type: ignore[arg-type]
            self.fail(f"{place} was taken away from all, and somebody has it")

    def _list(self) -> None:
        found = {
            (one.lease_id, one.db_name, one.table_name, one.partition_name or None) for one in self._server.listed([])
        }
        live = {
            (lease_id, *place)
            for lease_id, (_, held) in self._shown.items()
            for place, (_, _, end_ms) in held.items()
            if self._now_ms < end_ms
        }
        if found != live:
            self.fail(f"{found} are listed, {live} are live")

    def _die(self) -> None:
        number = self.random.randrange(CLIENTS)
        self._clients[number] = _Holder(number)

    def _pass_time(self) -> None:
        self.database.clock.now_ms += self.random.choice(JUMPS_MS)

    def _some_lease(self) -> int | None:
        """Mostly one that is somebody's, else one of the past."""
        if self._newest["lease"] and self.random.random() < 0.2:
            return self.random.randint(max(1, self._newest["lease"] - 10), self._newest["lease"])
        known = [lease_id for client in self._clients for lease_id in client.leases]
        return self.random.choice(known) if known else None

    # What must hold.

    def _check(self) -> None:
        shown = self._read()
        self._check_new(shown)
        self._check_gone(shown)
        self._check_changed(shown)
        self._check_exclusion(shown)
        self._check_waiting()
        self._check_events(shown)
        for client in self._clients:
            # One that is lost is remembered for a while: its holder does not know.
            lost = [lease_id for lease_id in client.leases if lease_id not in shown][:-1]
            client.leases = [lease_id for lease_id in client.leases if lease_id not in lost]
        self._shown = shown
        self._waited = {
            ticket: ([_claim(one) for one in claims], until_ms)
            for ticket, (claims, until_ms) in self.database.waiting.items()
        }

    def _read(self) -> Shown:
        shown: Shown = {}
        for (lease_id, target), held in self.database.held.items():
            user, places = shown.setdefault(lease_id, (held.user, {}))
            places[tuple(target)] = (held.claim.type.value, held.start_ms, held.end_ms)  # type: ignore[index]
            if user != held.user:
                self.fail(f"lease {lease_id} belongs to {user} and to {held.user}")
        return shown

    def _check_new(self, shown: Shown) -> None:
        new = [lease_id for lease_id in shown if lease_id not in self._shown]
        if not new:
            return
        if len(new) > 1 or self._asked is None:
            self.fail(f"leases {new} came from nowhere")
        lease_id = new[0]
        if lease_id <= self._newest["lease"]:
            self.fail(f"lease {lease_id} was granted after {self._newest['lease']}")
        self._newest["lease"] = lease_id
        assert self._asked is not None
        user, claims, duration_seconds, ticket = self._asked
        wanted = {place: max(kind for other, kind in claims if other == place) for place, _ in claims}
        got = {place: kind for place, (kind, _, _) in shown[lease_id][1].items()}
        if shown[lease_id][0] != user or got != wanted:
            self.fail(f"lease {lease_id} is {shown[lease_id]}, asked for was {wanted} for {user}")
        for place, (_, start_ms, end_ms) in shown[lease_id][1].items():
            if (start_ms, end_ms) != (self._now_ms, _whole_second(self._now_ms + duration_seconds * 1000)):
                self.fail(f"lease {lease_id} has {place} from {start_ms} to {end_ms} at {self._now_ms}")
        if self._obstacles(claims, ticket):
            self.fail(f"lease {lease_id} was granted before {self._obstacles(claims, ticket)}")

    def _check_refusal(self, claims: list[Claim], ticket: int | None) -> None:
        if not self._obstacles(claims, ticket):
            self.fail(f"{claims} had to wait for nothing")

    def _obstacles(self, claims: list[Claim], ticket: int | None) -> list[object]:
        """What was in the way before this step."""
        leases = [
            lease_id
            for lease_id, (_, held) in self._shown.items()
            for place, (kind, _, end_ms) in held.items()
            if self._now_ms < end_ms and any(clash((place, kind), claim) for claim in claims)
        ]
        waiting = [
            f"ticket {other}"
            for other, (theirs, until_ms) in self._waited.items()
            if self._now_ms < until_ms and (ticket is None or other < ticket)
            if any(clash(claim, their) for claim in claims for their in theirs)
        ]
        return [*leases, *waiting]

    def _check_gone(self, shown: Shown) -> None:
        for lease_id, (_, held) in self._shown.items():
            left = shown[lease_id][1] if lease_id in shown else {}
            for place, (_, _, end_ms) in held.items():
                if place not in left and self._now_ms < end_ms and (lease_id, place) not in self._may_go:
                    self.fail(f"lease {lease_id} has lost {place}, {end_ms - self._now_ms} ms before its end")

    def _check_changed(self, shown: Shown) -> None:
        for lease_id, (user, held) in shown.items():
            if lease_id not in self._shown:
                continue
            before = self._shown[lease_id][1]
            for place, now in held.items():
                was = before.get(place)
                if was == now:
                    continue
                if was is None or lease_id not in self._may_change:
                    self.fail(f"lease {lease_id} of {user} has become {place}: {now}, it was {was}")
                    continue
                self._check_extension(lease_id, place, was, now)

    def _check_extension(
        self, lease_id: int, place: Place, was: tuple[str, int, int], now: tuple[str, int, int]
    ) -> None:
        (old_kind, start_ms, old_end_ms), (kind, new_start_ms, end_ms) = was, now
        wanted = dict(self._may_change[lease_id])
        if self._now_ms >= old_end_ms:
            self.fail(f"lease {lease_id} on {place} had ended and lasts till {end_ms}")
        if place not in wanted or start_ms != new_start_ms or end_ms < old_end_ms:
            self.fail(f"lease {lease_id} on {place} was {was} and is {now}")
        if end_ms > _whole_second(start_ms + LONGEST_SECONDS * 1000):
            self.fail(f"lease {lease_id} on {place} lasts for {end_ms - start_ms} ms")
        if kind != old_kind and (kind, wanted[place]) != ("x", "x"):
            self.fail(f"lease {lease_id} on {place} was {old_kind} and is {kind}")

    def _check_exclusion(self, shown: Shown) -> None:
        live = [
            (lease_id, (place, kind))
            for lease_id, (_, held) in shown.items()
            for place, (kind, _, end_ms) in held.items()
            if self._now_ms < end_ms
        ]
        exclusive = [one for one in live if one[1][1] == "x"]
        for lease_id, claim in exclusive:
            for other, theirs in live:
                if other != lease_id and clash(claim, theirs):
                    self.fail(f"lease {lease_id} has {claim} beside lease {other} with {theirs}")

    def _check_waiting(self) -> None:
        for ticket in self.database.waiting:
            if ticket not in self._waited:
                if ticket <= self._newest["ticket"] and ticket not in self._tickets_that_may_go:
                    self.fail(f"ticket {ticket} was given after {self._newest['ticket']}")
                self._newest["ticket"] = max(ticket, self._newest["ticket"])
        for ticket, (_, until_ms) in self._waited.items():
            is_gone = ticket not in self.database.waiting
            if is_gone and self._now_ms < until_ms and ticket not in self._tickets_that_may_go:
                self.fail(f"ticket {ticket} has lost its place")

    def _check_events(self, shown: Shown) -> None:
        made = self.database.events[self._event_count :]
        self._event_count = len(self.database.events)
        if not made:
            return
        if len(made) > 1 or self._written is None:
            self.fail(f"{made} were changed by nobody")
        assert self._written is not None
        if not self._lets_write(*self._written):
            self.fail(
                f"{self._written[1]} was changed under lease {self._written[0]}, which is {shown.get(self._written[0])}"
            )

    def _lets_write(self, lease_id: int, place: Place) -> bool:
        held = self._shown[lease_id][1] if lease_id in self._shown else {}
        return any(
            kind == "x" and self._now_ms < end_ms and contains(mine, place) for mine, (kind, _, end_ms) in held.items()
        )


def _claim(claim: Any) -> Claim:
    return tuple(claim.target), claim.type.value  # type: ignore[return-value]


def _objects(claims: list[Claim]) -> list[LeaseObject]:
    return [LeaseObject(*place, kind) for place, kind in claims]


def _whole_second(end_ms: int) -> int:
    return (end_ms + 999) // 1000 * 1000
