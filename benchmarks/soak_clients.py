"""The load of a soak: writers, readers and holders of a lock, each at a door of its own, who check every answer."""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from random import Random
from typing import Any, NamedTuple

from benchmarks.soak_objects import VALUE, Believed, Value
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    CheckLockRequest,
    Database,
    FieldSchema,
    InvalidObjectException,
    InvalidOperationException,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    NoSuchLockException,
    NoSuchObjectException,
    Partition,
    SerDeInfo,
    ShowLocksRequest,
    StorageDescriptor,
    Table,
    UnlockRequest,
)

# Those say what the catalog has. All others, and broken connections, say nothing.
REFUSALS = (
    AlreadyExistsException,
    InvalidObjectException,
    InvalidOperationException,
    NoSuchLockException,
    NoSuchObjectException,
)
NAMES = [f"o{number}" for number in range(6)]
PARTITIONED = "parts"
PAUSE_SECONDS = 0.05
DROPPED_SHARE = 0.25


class Door(NamedTuple):
    """A way into a catalog; `connect` gives a client with `call(method, *arguments)` on a connection of its own.

    A door for Iceberg's tables shows those only that were made at such a door.
    """

    name: str
    connect: Callable[[], AbstractContextManager[Any]]
    is_icebergs: bool = False


class NoAnswer(Exception):
    """Nobody knows whether the call was made."""


class Worker(threading.Thread):
    """Repeats `round` until `stop` is set. Its counts are calls, `no answer`, `changes` and `reads`."""

    def __init__(self, door: Door, stop: threading.Event, wrong: list[str], seed: str) -> None:
        super().__init__(name=f"{type(self).__name__} at {door.name}", daemon=True)
        self.door = door
        self.counts: Counter[str] = Counter()
        self.longest = (0.0, "")
        self.random = Random(seed)
        self._stop_asked = stop
        self._wrong = wrong
        self._client: Any = None
        self._connection = ExitStack()

    def run(self) -> None:
        try:
            while not self._stop_asked.is_set():
                try:
                    self.round()
                except NoAnswer:
                    self.pause()
        except Exception as error:
            self.wrong(f"ended with {error!r}")
        finally:
            self.hang_up()

    def round(self) -> None:
        """Raises NoAnswer."""
        raise NotImplementedError

    def pause(self) -> None:
        self._stop_asked.wait(PAUSE_SECONDS)

    def wrong(self, what: str) -> None:
        self._wrong.append(f"{self.name}: {what}")

    def call(self, method: str, *arguments: Any) -> Any:
        """Raises NoAnswer, and those of REFUSALS."""
        began = time.monotonic()
        self.counts["calls"] += 1
        try:
            if self._client is None:
                self._client = self._connection.enter_context(self.door.connect())
            return self._client.call(method, *arguments)
        except (*REFUSALS, AssertionError):
            raise
        except Exception as error:
            self.counts["no answer"] += 1
            self.hang_up()
            raise NoAnswer(repr(error)) from error
        finally:
            self.longest = max(self.longest, (time.monotonic() - began, method))

    def hang_up(self) -> None:
        self._client = None
        try:
            self._connection.close()
        except Exception:  # it was broken
            self._connection = ExitStack()


class Writer(Worker):
    """Creates, changes and drops tables and partitions of its own database, and reads each before."""

    def __init__(self, door: Door, stop: threading.Event, wrong: list[str], database: str) -> None:
        super().__init__(door, stop, wrong, database)
        self.database = database
        kinds = ("table",) if door.is_icebergs else tuple(KINDS)
        self.objects = {(kind, name): Believed() for kind in kinds for name in NAMES}
        self._value = 0
        self._is_prepared = False

    def round(self) -> None:
        if not self._is_prepared:
            self._prepare()
        kind, name = self.random.choice(list(self.objects))
        calls, place = KINDS[kind], (self, self.database, name)
        thing = calls.read(*place)
        self._check(kind, name, value_of(thing))
        self._value += 1
        if thing is None:
            self._change(kind, name, self._value, partial(calls.create, *place, self._value))
        elif self.random.random() < DROPPED_SHARE:
            self._change(kind, name, None, partial(calls.drop, *place))
        else:
            thing.parameters[VALUE] = str(self._value)
            self._change(kind, name, self._value, partial(calls.alter, *place, thing))

    def _check(self, kind: str, name: str, value: Value) -> None:
        believed = self.objects[kind, name]
        look = believed.look()
        if not believed.may_be(value, look):
            self.wrong(f"{kind} {self.database}.{name} has {value}, not {set(look.possible)}")
        believed.found(value)

    def _change(self, kind: str, name: str, value: Value, make: Callable[[], object]) -> None:
        believed = self.objects[kind, name]
        was_certain = believed.is_certain
        believed.ask_for(value)
        try:
            make()
        except REFUSALS as error:
            # An earlier change without an answer may have been made only now.
            if was_certain:
                self.wrong(f"{kind} {self.database}.{name} to {value}: {error!r}")
        else:
            believed.acknowledge()
            self.counts["changes"] += 1

    def _prepare(self) -> None:
        for method, thing in (
            ("create_database", Database(name=self.database)),
            ("create_table", new_table(self.database, PARTITIONED, 0, keys=[FieldSchema("p", "string")])),
        ):
            # The first try had no answer.
            with contextlib.suppress(AlreadyExistsException):
                self.call(method, thing)
        self._is_prepared = True


class Reader(Worker):
    """Reads at another door what writers of the same catalog have; no read may be older than the last answer."""

    def __init__(self, door: Door, stop: threading.Event, wrong: list[str], writers: Sequence[Writer]) -> None:
        super().__init__(door, stop, wrong, door.name)
        self._writers = [writer for writer in writers if writer.door.is_icebergs or not door.is_icebergs]

    def check_all(self) -> None:
        """Raises NoAnswer."""
        for writer in self._writers:
            self.check_list(writer)
            for kind, name in writer.objects:
                self.check_one(writer, kind, name)

    def round(self) -> None:
        writer = self.random.choice(self._writers)
        if self.random.random() < 0.2:
            self.check_list(writer)
        else:
            self.check_one(writer, *self.random.choice(list(writer.objects)))

    def check_one(self, writer: Writer, kind: str, name: str) -> None:
        believed = writer.objects[kind, name]
        look = believed.look()
        value = value_of(KINDS[kind].read(self, writer.database, name))
        if not believed.may_be(value, look):
            self.wrong(f"{kind} {writer.database}.{name} has {value}, not {set(look.possible)}")

    def check_list(self, writer: Writer) -> None:
        looks = {name: believed.look() for (kind, name), believed in writer.objects.items() if kind == "table"}
        names = set(self.call("get_all_tables", writer.database))
        self.counts["reads"] += 1
        for name, look in looks.items():
            if not writer.objects["table", name].may_exist(name in names, look):
                self.wrong(f"{writer.database} lists {sorted(names)}, but {name} is {set(look.possible)}")


class Kind(NamedTuple):
    """The calls about objects of a kind; `read` gives None for a missing one."""

    read: Callable[[Worker, str, str], Any]
    create: Callable[[Worker, str, str, int], object]
    alter: Callable[[Worker, str, str, Any], object]
    drop: Callable[[Worker, str, str], object]


def new_table(database: str, name: str, value: int, keys: list[FieldSchema] | None = None) -> Table:
    return Table(
        tableName=name,
        dbName=database,
        sd=StorageDescriptor(cols=[FieldSchema("a", "int")], serdeInfo=SerDeInfo()),
        partitionKeys=keys or [],
        parameters={VALUE: str(value)},
        tableType="MANAGED_TABLE",
    )


def value_of(thing: Any) -> Value:
    return None if thing is None else int(thing.parameters[VALUE])


def _read(worker: Worker, method: str, *names: Any) -> Any:
    try:
        found = worker.call(method, *names)
    except NoSuchObjectException:
        found = None
    worker.counts["reads"] += 1
    return found


def _new_partition(database: str, name: str, value: int) -> Partition:
    descriptor = new_table(database, PARTITIONED, 0).sd
    return Partition([name], database, PARTITIONED, sd=descriptor, parameters={VALUE: str(value)})


KINDS = {
    "table": Kind(
        lambda worker, database, name: _read(worker, "get_table", database, name),
        lambda worker, database, name, value: worker.call("create_table", new_table(database, name, value)),
        lambda worker, database, name, table: worker.call("alter_table", database, name, table),
        lambda worker, database, name: worker.call("drop_table", database, name, True),
    ),
    "partition": Kind(
        lambda worker, database, name: _read(worker, "get_partition", database, PARTITIONED, [name]),
        lambda worker, database, name, value: worker.call("add_partition", _new_partition(database, name, value)),
        lambda worker, database, _, partition: worker.call("alter_partition", database, PARTITIONED, partition),
        lambda worker, database, name: worker.call("drop_partition", database, PARTITIONED, [name], True),
    ),
}


class Holders:
    """Who holds the one lock. `sure_seconds`: no lock ends by itself before."""

    def __init__(self, sure_seconds: float) -> None:
        self._lock = threading.Lock()
        self._sure_seconds = sure_seconds
        self._holder: tuple[str, float] | None = None

    def take(self, name: str) -> str | None:
        """The other one that holds it too, None where all is well."""
        with self._lock:
            other, self._holder = self._holder, (name, time.monotonic())
            if other is None or time.monotonic() - other[1] > self._sure_seconds:
                return None
            return other[0]

    def leave(self) -> None:
        with self._lock:
            self._holder = None


class LockHolder(Worker):
    """Takes an exclusive lock, makes a call and gives it back."""

    def __init__(self, door: Door, stop: threading.Event, wrong: list[str], holders: Holders) -> None:
        super().__init__(door, stop, wrong, door.name)
        self._holders = holders
        self._has_lost_one = False

    def round(self) -> None:
        if self._has_lost_one:
            self._find_lost()
        self._has_lost_one = True
        wanted = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, "default", "soaked")
        answer = self.call("lock", LockRequest([wanted], None, "soak", self.name))
        # One that has waited for so long that it ended is asked for anew.
        with contextlib.suppress(NoSuchLockException):
            while answer.state == LockState.WAITING and not self._stop_asked.is_set():
                self.pause()
                answer = self.call("check_lock", CheckLockRequest(answer.lockid))
            if answer.state == LockState.ACQUIRED:
                self._work()
            self.call("unlock", UnlockRequest(answer.lockid))
            self.counts["changes"] += 1
        self._has_lost_one = False

    def _work(self) -> None:
        if other := self._holders.take(self.name):
            self.wrong(f"has the exclusive lock of {other}")
        try:
            self.call("get_all_databases")
        finally:
            self._holders.leave()

    def _find_lost(self) -> None:
        """Give back what was granted without an answer."""
        for lock in self.call("show_locks", ShowLocksRequest()).locks:
            if lock.hostname == self.name:
                with contextlib.suppress(NoSuchLockException):
                    self.call("unlock", UnlockRequest(lock.lockid))
