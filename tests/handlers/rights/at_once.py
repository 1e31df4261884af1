"""Rights that are given and taken while others call: what was seen when, and whether one order explains it.

Each register is one right that one thread gives and takes again and again. Readers ask through every door of every
replica. A read may see what held at any moment between its start and its end, and not less than a read that ended
before it began: then a change that was answered is in force for each call that starts later, everywhere.
"""

import itertools
import random
import threading
from bisect import bisect
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from hms_gateway.rpc.call import Caller
from hms_gateway.rpc.structs import Database, PrincipalType, Role
from tests.handlers.rights.histories import located_table
from tests.handlers.rights.oracle import GROUP, ROLE, USER
from tests.handlers.rights.privileges import bag
from tests.handlers.rights.replicas import ADMINISTRATOR, Asker, Replica

DB, LENT, ROLE_NAME = "shared", "lent", "shared_readers"
READERS = 4
_ROOT = Caller(ADMINISTRATOR)


class Step(NamedTuple):
    """When a write or a read began and ended, in one order of all such moments, and what it set or saw."""

    start: int
    end: int
    value: bool


def violation(writes: Sequence[Step], reads: Sequence[Step]) -> Step | None:
    """A read that no order explains; None where one explains all. Writes are of one writer, the value before is False.

    A read is put after as few writes as it can be: those that had ended before it, and those that were seen before it.
    """
    values = [False, *(write.value for write in writes)]
    starts = [-1, *(write.start for write in writes)]
    write_ends = [write.end for write in writes]
    # Of the reads so far: when each ended, and after how many writes the latest of them is.
    read_ends, latest = [-1], [0]
    for read in sorted(reads, key=lambda read: read.end):
        number = max(bisect(write_ends, read.start), latest[bisect(read_ends, read.start) - 1])
        while number < len(values) and values[number] != read.value:
            number += 1
        if number == len(values) or starts[number] > read.end:
            return read
        read_ends.append(read.end)
        latest.append(max(latest[-1], number))
    return None


class Register(NamedTuple):
    """A right to see something: how it is given and taken (a method and its arguments), who has it, how it is seen."""

    name: str
    give: tuple[Any, ...]
    take: tuple[Any, ...]
    caller: Caller
    look: tuple[Any, ...]


def registers() -> list[Register]:
    def granted(kind: int, name: str, on: str) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        privileges = bag("select", on, name, kind)
        return ("grant_privileges", privileges), ("revoke_privileges", privileges)

    def owned(name: str) -> tuple[Any, ...]:
        return "alter_table", DB, "owned", located_table(DB, "owned", name)

    def lent(name: str) -> tuple[Any, ...]:
        return "alter_database", LENT, Database(name=LENT, ownerName=name, ownerType=USER)

    member = ROLE_NAME, "by_role", PrincipalType.USER
    return [
        Register(
            "a grant", *granted(USER, "by_grant", f"{DB}.granted"), Caller("by_grant"), ("get_table", DB, "granted")
        ),
        Register(
            "a grant to a group",
            *granted(GROUP, "readers", f"{DB}.grouped"),
            Caller("by_group", frozenset({"readers"})),
            ("get_table", DB, "grouped"),
        ),
        Register(
            "a role",
            ("grant_role", *member, ADMINISTRATOR, USER, False),
            ("revoke_role", *member),
            Caller("by_role"),
            ("get_table", DB, "of_role"),
        ),
        Register("an owner", owned("by_owner"), owned(ADMINISTRATOR), Caller("by_owner"), ("get_table", DB, "owned")),
        Register(
            "an owner of the database", lent("lender"), lent(ADMINISTRATOR), Caller("lender"), ("get_table", LENT, "t")
        ),
        Register(
            "a name",
            ("alter_table", DB, "away", located_table(DB, "here", "namer")),
            ("alter_table", DB, "here", located_table(DB, "away", "namer")),
            Caller("namer"),
            ("get_table", DB, "here"),
        ),
    ]


class AtOnce:
    """Plays all registers at once on these replicas."""

    def __init__(self, made: list[Replica], seed: int) -> None:
        self._made, self._random = made, random.Random(seed)
        self._moments = itertools.count()
        self._registers = registers()
        self.writes: dict[str, list[Step]] = {one.name: [] for one in self._registers}
        self.reads: dict[str, list[Step]] = {one.name: [] for one in self._registers}

    def play(self, changes: int) -> None:
        """Give and take each right so many times."""
        self._prepare()
        ended = threading.Event()
        askers = [
            Asker(self._made, random.Random(self._random.random())) for _ in range(len(self._registers) + READERS)
        ]
        with ThreadPoolExecutor(len(askers)) as pool:
            reading = [pool.submit(self._read, asker, ended) for asker in askers[len(self._registers) :]]
            writing = [pool.submit(self._write, *pair, changes) for pair in zip(askers, self._registers, strict=False)]
            try:
                for one in writing:
                    one.result()
            finally:
                ended.set()
            for one in reading:
                one.result()
        for asker in askers:
            asker.close()

    def violations(self) -> list[tuple[str, Step]]:
        found = ((name, violation(self.writes[name], self.reads[name])) for name in self.writes)
        return [(name, read) for name, read in found if read is not None]

    def _prepare(self) -> None:
        asker = Asker(self._made, self._random)
        for db in (DB, LENT):
            asker.ask(_ROOT, "drop_database", db, False, True)
            assert asker.ask(_ROOT, "create_database", Database(name=db, ownerName=ADMINISTRATOR)) is None
        for name in ("granted", "grouped", "of_role", "owned"):
            assert asker.ask(_ROOT, "create_table", located_table(DB, name, ADMINISTRATOR)) is None
        assert asker.ask(_ROOT, "create_table", located_table(DB, "away", "namer")) is None
        assert asker.ask(_ROOT, "create_table", located_table(LENT, "t", ADMINISTRATOR)) is None
        asker.ask(_ROOT, "drop_role", ROLE_NAME)
        assert asker.ask(_ROOT, "create_role", Role(ROLE_NAME, 0, ADMINISTRATOR)) is True
        of_role = bag("select", f"{DB}.of_role", ROLE_NAME, ROLE)
        assert asker.ask(_ROOT, "grant_privileges", of_role) is True
        asker.close()

    def _timed(self, call: Callable[[], bool]) -> Step:
        start = next(self._moments)
        value = call()
        return Step(start, next(self._moments), value)

    def _write(self, asker: Asker, register: Register, changes: int) -> None:
        for number in range(2 * changes):
            value = number % 2 == 0

            def change(value: bool = value) -> bool:
                answer = asker.ask(_ROOT, *(register.give if value else register.take))
                assert answer in (True, None), answer
                return value

            self.writes[register.name].append(self._timed(change))
            self._look(asker, register)

    def _read(self, asker: Asker, ended: threading.Event) -> None:
        choices = random.Random(self._random.random())
        while not ended.is_set():
            self._look(asker, choices.choice(self._registers))

    def _look(self, asker: Asker, register: Register) -> None:
        def sees() -> bool:
            answer = asker.ask(register.caller, *register.look)
            assert not isinstance(answer, str) or answer.startswith("NoSuchObjectException"), answer
            return not isinstance(answer, str)

        self.reads[register.name].append(self._timed(sees))
