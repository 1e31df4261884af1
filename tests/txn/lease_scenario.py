"""Runs lease scenarios written as text: one call per line, `->` and what it answers.

    grab    1  ann  60        x sales.orders, s sales      -> 1
    grab    2  bob  60 wait=5 s sales.orders/ds=1          -> waits
    again   2                                              -> granted
    after   61

The first word after `grab` names the request; later lines use that name for the lease. Answers: `granted`, `waits`,
`ok`, a number, or an exception, alone or with a part of its text.
"""

import re

from hms_gateway.rpc.structs import LeaseObject, ThriftException
from hms_gateway.txn.services.leases import LeaseService, MustWait
from tests.support.manual_clock import ManualClock

_OBJECT = re.compile(r"(?:(?P<type>[sx]) )?(?P<db>\w+)(?:\.(?P<table>\w+)(?:/(?P<partition>\S+))?)?")


def objects(text: str) -> list[LeaseObject]:
    found = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        match = _OBJECT.fullmatch(part)
        assert match, part
        found.append(LeaseObject(match["db"], match["table"], match["partition"], match["type"]))
    return found


class Scenario:
    def __init__(self, service: LeaseService, clock: ManualClock) -> None:
        self.service = service
        self.clock = clock
        self.leases: dict[str, int] = {}
        self._waiting: dict[str, tuple] = {}
        self._now = 0

    def run(self, text: str) -> None:
        for line in filter(None, (line.partition("#")[0].strip() for line in text.splitlines())):
            action, _, expected = (part.strip() for part in line.partition("->"))
            try:
                answer = self._step(action)
            except ThriftException as error:
                answer = f"{type(error).__name__}: {error.message}"
            if expected:
                name, _, words = expected.partition(":")
                matches = answer == expected or (answer.startswith(f"{name}:") and words.strip() in answer)
                assert matches, f"{line}\nanswered {answer}"
            else:
                assert "Exception" not in answer, f"{line}\nanswered {answer}"

    def _step(self, action: str) -> str:
        word, *rest = action.split(None, 1)
        return str(getattr(self, f"_{word}")(rest[0] if rest else ""))

    def _grab(self, text: str) -> str:
        name, user, seconds, *rest = text.split(None, 3)
        rest_text = rest[0] if rest else ""
        wait = re.match(r"wait=(-?\d+)\s*", rest_text)
        wait_seconds = int(wait[1]) if wait else 0
        wanted = objects(rest_text[wait.end() :] if wait else rest_text)
        return self._try(name, (user, wanted, int(seconds), wait_seconds, self._now), None)

    def _again(self, name: str) -> str:
        request, ticket = self._waiting[name]
        return self._try(name, request, ticket)

    def _try(self, name: str, request: tuple, ticket) -> str:
        user, wanted, seconds, wait_seconds, since = request
        waited = self._now - since
        outcome = self.service.grab(user, wanted, seconds, wait_seconds, waited_seconds=waited, ticket=ticket)
        if isinstance(outcome, MustWait):
            self._waiting[name] = (request, outcome.ticket)
            return "waits"
        self.leases[name] = outcome
        return "granted"

    def _gone(self, name: str) -> str:
        self.service.abandon(self._waiting.pop(name)[1])
        return "ok"

    def _extend(self, text: str) -> str:
        """Answers the seconds the lease has left."""
        name, user, *rest = text.split(None, 2)
        seconds = re.match(r"(-?\d+)\s*", rest[0]) if rest else None
        wanted = objects(rest[0][seconds.end() :] if seconds else (rest[0] if rest else ""))
        lease_id = self.leases.get(name) or int(name)
        end = self.service.extend(user, lease_id, wanted, int(seconds[1]) if seconds else None)
        return str(end - self.clock.seconds())

    def _drop(self, text: str) -> str:
        name, user, *rest = text.split(None, 2)
        self.service.drop(user, self.leases.get(name) or int(name), objects(rest[0] if rest else ""))
        return "ok"

    def _force(self, text: str) -> str:
        user, *rest = text.split(None, 1)
        self.service.force_drop(user, objects(rest[0] if rest else ""))
        return "ok"

    def _list(self, text: str) -> str:
        names = {number: name for name, number in self.leases.items()}
        shown = []
        for lease in self.service.listed(objects(text)):
            place = ".".join(filter(None, (lease.db_name, lease.table_name)))
            place += f"/{lease.partition_name}" if lease.partition_name else ""
            shown.append(f"{names[lease.lease_id]}:{lease.lease_type} {place}")
        return ", ".join(shown) or "nothing"

    def _after(self, seconds: str) -> str:
        self._now += int(seconds)
        self.clock.advance(int(seconds))
        return "ok"
