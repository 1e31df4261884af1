"""Clients of leases: what they call is drawn, what they are told goes into a journal."""

import time
from collections.abc import Callable
from random import Random
from typing import Any, Final

from hms_gateway.rpc.structs import ThriftException
from tests.linearizability.history import Failure, Journal
from tests.linearizability.lease_services import ADMIN, Leases, StoreLeases

_PLACES: Final = (
    (None, None),
    ("t", None),
    ("u", None),
    ("t", "ds=1"),
    ("t", "ds=1/hr=1"),
    ("t", "ds=1/hr=2"),
    ("t", "ds=2"),
)


class _Client:
    def __init__(self, number: int, leases: Leases, journal: Journal, random: Random) -> None:
        self._leases: Any = leases
        self._journal = journal
        self._random = random
        self._user = ADMIN if number == 0 else f"user{number}"
        self._db_name = ""

    def prepare(self, world: int) -> None:
        """To be called by one client before all enter the world."""

    def enter(self, world: int) -> None:
        self._journal.world = world
        self._db_name = f"w{world}"

    def _call(self, name: str, *arguments: Any) -> Any:
        method = getattr(self._leases, name)
        return self._journal.record(name, arguments, lambda: method(*arguments), ThriftException)


class LeaseClient(_Client):
    """Plays with leases that do not end by themselves."""

    def __init__(self, number: int, leases: StoreLeases, journal: Journal, random: Random) -> None:
        super().__init__(number, leases, journal, random)
        self._held: dict[int, list[Any]] = {}
        self._lost: list[int] = []
        self._waiting: dict[int, list[Any]] = {}

    def play(self, calls: int) -> None:
        """Make that many calls, more or less, and leave nothing behind."""
        actions = [action for action, weight in self._actions() for _ in range(weight)]
        end = self._journal.count + calls
        while self._journal.count < end:
            self._random.choice(actions)()
        for ticket, claims in list(self._waiting.items()):
            self._abandon(ticket, claims)
        for lease_id in list(self._held):
            self._drop(lease_id, [])
        self._lost.clear()

    def _actions(self) -> list[tuple[Callable[[], None], int]]:
        return [
            (self._grab_something, 12),
            (self._ask_again, 10),
            (self._give_something_up, 6),
            (self._extend_something, 3),
            (self._write_something, 8),
            (self._look, 2),
            (self._take_away, 1),
        ]

    def _grab_something(self) -> None:
        if len(self._held) + len(self._waiting) < 3:
            places = self._random.choices(_PLACES, k=self._random.choice([1, 1, 1, 2, 3]))
            claims = [((self._db_name, *place), self._random.choice("ssx")) for place in places]
            self._grab(claims, 0, self._random.choice([0, 300]))

    def _ask_again(self) -> None:
        if self._waiting:
            ticket = self._random.choice(list(self._waiting))
            self._grab(self._waiting.pop(ticket), ticket, 300)

    def _grab(self, claims: list[Any], ticket: int, wait_seconds: int) -> None:
        name, user = "grab", self._user
        answer = self._journal.record(
            name,
            (user, claims, ticket),
            lambda: self._leases.grab(user, claims, ticket, wait_seconds),
            ThriftException,
        )
        if not isinstance(answer, Failure):
            (self._held if answer[0] == "granted" else self._waiting)[answer[1]] = claims

    def _give_something_up(self) -> None:
        if self._waiting and self._random.random() < 0.3:
            ticket = self._random.choice(list(self._waiting))
            self._abandon(ticket, self._waiting[ticket])
        elif self._held:
            lease_id = self._random.choice(list(self._held))
            is_partial = self._random.random() < 0.3
            self._drop(lease_id, [self._held[lease_id][0][0]] if is_partial else [])

    def _abandon(self, ticket: int, claims: list[Any]) -> None:
        self._call("abandon", ticket, claims)
        del self._waiting[ticket]

    def _drop(self, lease_id: int, places: list[Any]) -> None:
        self._call("drop", self._user, lease_id, places)
        if not places:
            del self._held[lease_id]
            self._lost.append(lease_id)

    def _extend_something(self) -> None:
        if self._held:
            lease_id = self._random.choice(list(self._held))
            claims = [] if self._random.random() < 0.2 else [(self._held[lease_id][0][0], self._random.choice("sx"))]
            self._call("extend", self._user, lease_id, claims)

    def _write_something(self) -> None:
        if self._held or self._lost:
            place = (self._db_name, *self._random.choice([(None, None), ("t", None), ("u", None)]))
            self._call("write", self._random.choice([*self._held, *self._lost]), place)

    def _look(self) -> None:
        self._call("listed", self._db_name)
        self._call("version")

    def _take_away(self) -> None:
        if self._user == ADMIN:
            self._call("force_drop", [(self._db_name, *self._random.choice(_PLACES[1:]))])


class TenureClient(_Client):
    """Takes leases of a second and holds them for as long as it likes, also for longer than it may."""

    _DATABASES: Final = 3

    def prepare(self, world: int) -> None:
        for db_name in self._databases(world):
            self._leases.enter(db_name)

    def enter(self, world: int) -> None:
        super().enter(world)
        self._names = list(self._databases(world))

    def play(self, calls: int) -> None:
        end = self._journal.count + calls
        while self._journal.count < end:
            self._hold_once()

    def _databases(self, world: int) -> list[str]:
        return [f"w{world}_{number}" for number in range(self._DATABASES)]

    def _hold_once(self) -> None:
        names = self._random.sample(self._names, self._random.choice([1, 1, 2]))
        claims = [((name, None, None), self._random.choice("sxx")) for name in names]
        lease_id = self._call("take", self._user, claims, 1, self._random.choice([0, 1, 2, 3]))
        if isinstance(lease_id, Failure):
            return
        if self._random.random() < 0.6:
            # Who has waited knows only now how long the lease lasts at least.
            self._call("extend", self._user, lease_id, [], 1)
        for _ in range(self._random.randint(1, 3)):
            self._call("write", lease_id, claims[0][0])
            if self._random.random() < 0.25:
                self._doze()
        if self._random.random() < 0.2:
            self._call("extend", self._user, lease_id, [], 1)
        if self._random.random() < 0.75:
            self._call("drop", self._user, lease_id, [])
        self._call("write", lease_id, claims[0][0])

    def _doze(self) -> None:
        """Around the end of the lease."""
        time.sleep(self._random.choice([0.5, 0.95, 1.0, 1.2]))
