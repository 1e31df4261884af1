"""Servers with reply caches over one database, readers with and without lists of write ids, writers that commit, abort,
rename, drop and create, servers that crash. Every answer is held against what its reader must see.

A call is several steps, and others go on between them. The caches are the real ones; the database is in memory.
"""

import asyncio
import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hms_gateway.cache import ReplyCache
from hms_gateway.metastore.changes.events import CommittedWriteId, committed
from hms_gateway.metastore.ports.store import Event, EventId, EventSelection, StoredEvent
from hms_gateway.rpc.structs import METHODS, TxnType
from hms_gateway.runtime.limits import Limits
from hms_gateway.txn.rules.locks import TxnId
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.rules.transactions import Unfinished
from hms_gateway.txn.rules.write_ids import ValidIds, ValidWriteIds, valid_write_ids_text
from hms_gateway.txn.services.write_ids import write_ids_now
from tests.simulation.violations import Violation

DB = "d"
NAMES = ("a", "b")
SERVERS = 2
CALLS_MAX = 6
LISTS_MAX = 8
TXNS_MAX = 4
METHOD = "get_partition_names"
EVENTS_KEPT = 200

Steps: TypeAlias = Generator[None, None, None]


@dataclass
class FakeTable:
    """A table, and each change with the write id under which it was made, 0 for none."""

    table_id: int
    is_transactional: bool
    changes: list[int] = field(default_factory=list)
    last_write_id: int = 0
    # Write ids of transactions that are not committed: id and transaction.
    hidden: dict[int, int] = field(default_factory=dict)

    @property
    def table(self) -> "FakeTable":
        return self

    @property
    def parameters(self) -> dict[str, str]:
        return {"transactional": "true"} if self.is_transactional else {}


@dataclass(frozen=True)
class Seen:
    """What a read of a name found, and when."""

    at: int
    table_id: int
    changes: tuple[int, ...]


class FakeDatabase:
    """The state of the catalog, `Snapshot` and its `TxnReads` in one, and `ChangeFeed`."""

    def __init__(self) -> None:
        self.clock = 0
        self.tables: dict[str, FakeTable] = {}
        self.changed_at: dict[str, int] = dict.fromkeys(NAMES, 0)
        self.log: list[StoredEvent] = []
        self.newest = 0
        self.txn_states: dict[int, bool] = {}  # open or aborted
        self.next_txn = 1
        self.next_table = 1

    # What a cache follows.

    def data_version(self) -> int:
        return self.newest

    def version_watch(self) -> None:
        return None

    def version(self) -> EventId:
        return EventId(self.newest)

    def changes_since(self, event_id: EventId) -> Sequence[StoredEvent]:
        return [event for event in self.log if event.event_id > event_id]

    # What a tag is read from.

    @property
    def txns(self) -> "FakeDatabase":
        return self

    def read(self, work: Any) -> Any:
        return work(self)

    def events(self, selection: EventSelection) -> list[StoredEvent]:
        names = selection.table_names or ()
        return [one for one in self.changes_since(selection.after) if one.event.table_name in names]

    def current_event_id(self) -> EventId:
        return EventId(self.newest)

    def table(self, db_name: str, tbl_name: str) -> FakeTable | None:
        return self.tables.get(tbl_name)

    def high_water_mark(self) -> TxnId:
        return TxnId(self.next_txn - 1)

    def unfinished(self) -> list[Unfinished]:
        return [
            Unfinished(TxnId(txn_id), is_open, TxnType.DEFAULT) for txn_id, is_open in sorted(self.txn_states.items())
        ]

    def last_write_id(self, table: Target) -> int | None:
        found = self.tables.get(table.table_name or "")
        return None if found is None else found.last_write_id

    def hidden_write_ids(self, table: Target, high_water_mark: int, excepted: Sequence[int]) -> list[tuple[int, int]]:
        found = self.tables.get(table.table_name or "")
        rows = [] if found is None else found.hidden.items()
        return [(txn_id, write_id) for write_id, txn_id in rows if txn_id > high_water_mark or txn_id in excepted]

    # What changes it.

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def change(self, name: str, event_type: str, renamed_from: str | None = None) -> None:
        old = None if renamed_from is None else (DB, renamed_from)
        self.append(Event(event_type, DB, name, "", old))
        for changed in {name, renamed_from or name}:
            self.changed_at[changed] = self.tick()

    def commit(self, txn_id: int, written: CommittedWriteId | None) -> None:
        """What is logged of a commit; None where the client said wrongly that nothing was written."""
        write_ids = None if written is None else {Target(DB, written.table_name): written.write_id}
        self.append(committed(txn_id, write_ids, 0))

    def append(self, event: Event) -> None:
        self.newest += 1
        self.log = [*self.log[-EVENTS_KEPT:], StoredEvent(EventId(self.newest), 0, event)]

    def see(self, name: str) -> Seen | None:
        found = self.tables.get(name)
        return None if found is None else Seen(self.clock, found.table_id, tuple(found.changes))


@dataclass
class Txn:
    txn_id: int
    name: str
    table_id: int
    write_id: int
    changed_at: int = 0


@dataclass
class List:
    """A reader's list, and what it must see: the database of `taken_at`, as far as these write ids are concerned."""

    name: str
    table_id: int
    text: str
    is_transactional: bool
    valid: ValidIds
    taken_at: int
    own: Txn | None


class Server:
    def __init__(self, simulation: "Simulation") -> None:
        self.simulation = simulation
        self.start()

    def start(self) -> None:
        self.calls: list[Steps] = []
        database = self.simulation.database
        self.cache = ReplyCache(
            database,
            Limits(cache_bytes_max=20_000),
            database.read,
            monotonic=lambda: self.simulation.database.clock / 100,
        )

    def call(self, name: str, listed: List | None) -> Steps:
        """One read as the endpoint makes it."""
        simulation, database, cache = self.simulation, self.simulation.database, self.cache
        begun = simulation.required(name, listed)
        key = ("tjson", "2.3", METHOD, name.encode())
        reading = (
            None
            if listed is None
            else cache.reading(key, simulation.codec, f"{listed.text};id={listed.table_id}".encode())
        )
        found = cache.lookup(key) if reading is None else cache.lookup_for(reading)
        if found is not None:
            assert isinstance(found, bytes)
            begun(simulation.states[int(found)])
            return
        tagged = None if reading is None else cache.tag_reading(reading)
        ticket = cache.ticket()
        yield
        if tagged is not None:
            tagged()
            yield
        seen = database.see(name)
        if seen is None:
            return
        begun(seen)
        simulation.states.append(seen)
        payload = str(len(simulation.states) - 1).encode()
        yield
        if tagged is not None:
            tagged.confirm()
            yield
        cache.remember(key, METHODS[METHOD].arguments(DB, name, -1), payload, ticket, tagged)


class Simulation:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.step = 0
        self.database = FakeDatabase()
        # No method that is called here has its list in the arguments.
        self.codec: Any = None
        self.states: list[Seen] = []
        self.servers = [Server(self) for _ in range(SERVERS)]
        self.txns: list[Txn] = []
        self.lists: list[List] = []
        self.taking: tuple[str, int] | None = None
        self.hits = 0

    def run(self, steps: int) -> None:
        """Raises Violation."""
        asyncio.run(self._run(steps))

    async def _run(self, steps: int) -> None:
        kinds = (
            *((self._advance, 40), (self._read, 30), (self._take_list, 10), (self._begin, 6), (self._write, 8)),
            *((self._end, 5), (self._create, 2), (self._drop, 1), (self._rename, 1), (self._crash, 1)),
            *((self._write_without_id, 1),),
        )
        works, weights = [work for work, _ in kinds], [weight for _, weight in kinds]
        for step, work in enumerate(self.random.choices(works, weights, k=steps)):
            self.step = step
            work()
            # What follows the log in the background runs late.
            if self.random.randrange(50) == 0:
                await asyncio.sleep(0)

    def required(self, name: str, listed: List | None) -> Any:
        """Takes what was answered, and raises Violation unless it has all that it must have by what holds now."""
        database = self.database
        current_at = database.changed_at[name]
        if listed is None or not listed.is_transactional:

            def linear(seen: Seen) -> None:
                if seen.at < current_at:
                    self._violated(f"{name} as of {seen.at} was answered, it had changed at {current_at}")

            return linear

        found = database.tables.get(name)
        own_at = 0 if listed.own is None else listed.own.changed_at
        needed: tuple[int, ...] = ()
        if found is not None and found.table_id == listed.table_id:
            needed = tuple(write_id for write_id in found.changes if write_id and listed.valid.is_valid(write_id))

        def snapshot(seen: Seen) -> None:
            self.hits += 1
            if seen.at >= max(listed.taken_at, own_at):
                return
            is_whole = seen.table_id == listed.table_id and all(
                seen.changes.count(write_id) >= needed.count(write_id) for write_id in set(needed)
            )
            if not is_whole:
                self._violated(f"{listed.text} of table {listed.table_id} was answered with {seen}")

        return snapshot

    def _violated(self, text: str) -> None:
        raise Violation(f"seed {self.seed}, step {self.step}: {text}")

    # Servers.

    def _advance(self) -> None:
        server = self.random.choice(self.servers)
        if server.calls:
            call = self.random.choice(server.calls)
            if next(call, self) is self:
                server.calls.remove(call)

    def _read(self) -> None:
        server = self.random.choice(self.servers)
        if len(server.calls) < CALLS_MAX:
            listed = self.random.choice(self.lists) if self.lists and self.random.random() < 0.7 else None
            name = self.random.choice(NAMES) if listed is None else listed.name
            call = server.call(name, listed)
            if next(call, self) is not self:
                server.calls.append(call)

    def _crash(self) -> None:
        self.random.choice(self.servers).start()

    # Readers.

    def _take_list(self) -> None:
        """List and id of one moment."""
        name = self.random.choice(NAMES)
        found = self.database.tables.get(name)
        if found is not None:
            self._keep_list(name, found, found.table_id)

    def _keep_list(self, name: str, found: FakeTable, table_id: int) -> None:
        own = self.random.choice(self.txns) if self.txns and self.random.random() < 0.3 else None
        if own is not None and (own.name, own.table_id) != (name, table_id):
            own = None
        valid = write_ids_now(self.database, f"{DB}.{name}", Target(DB, name)).ids  # type: ignore[arg-type]
        if own is not None:
            valid = valid.with_own(own.write_id)
        text = valid_write_ids_text(ValidWriteIds(f"{DB}.{name}", valid))
        taken = List(name, table_id, text, found.is_transactional, valid, self.database.tick(), own)
        self.lists = [*self.lists[-LISTS_MAX + 1 :], taken]

    # Writers.

    def _begin(self) -> None:
        name = self.random.choice(NAMES)
        found = self.database.tables.get(name)
        if found is None or not found.is_transactional or len(self.txns) >= TXNS_MAX:
            return
        txn_id, self.database.next_txn = self.database.next_txn, self.database.next_txn + 1
        self.database.txn_states[txn_id] = True
        found.last_write_id += 1
        found.hidden[found.last_write_id] = txn_id
        self.txns.append(Txn(txn_id, name, found.table_id, found.last_write_id))

    def _write(self) -> None:
        if not self.txns:
            return
        txn = self.random.choice(self.txns)
        found = self._table_of(txn)
        if found is not None:
            found.changes.append(txn.write_id)
            self.database.change(txn.name, "ADD_PARTITION")
            txn.changed_at = self.database.clock

    def _write_without_id(self) -> None:
        name = self.random.choice(NAMES)
        found = self.database.tables.get(name)
        if found is not None:
            found.changes.append(0)
            self.database.change(name, "ALTER_PARTITION")

    def _end(self) -> None:
        if not self.txns:
            return
        txn = self.txns.pop(self.random.randrange(len(self.txns)))
        self.database.tick()
        if self.random.random() < 0.2:
            self.database.txn_states[txn.txn_id] = False
            return
        del self.database.txn_states[txn.txn_id]
        found = self._table_of(txn)
        if found is not None:
            found.hidden.pop(txn.write_id, None)
        self.database.commit(txn.txn_id, self._committed(txn))

    def _committed(self, txn: Txn) -> CommittedWriteId | None:
        """What the metastore looks up at a commit: nothing of a table that is gone."""
        is_said = self._table_of(txn) is not None and self.random.random() < 0.8
        return CommittedWriteId(DB, txn.name, txn.write_id) if is_said else None

    def _table_of(self, txn: Txn) -> FakeTable | None:
        found = self.database.tables.get(txn.name)
        return found if found is not None and found.table_id == txn.table_id else None

    # Tables.

    def _create(self) -> None:
        name = self.random.choice(NAMES)
        if name not in self.database.tables:
            table_id, self.database.next_table = self.database.next_table, self.database.next_table + 1
            self.database.tables[name] = FakeTable(table_id, self.random.random() < 0.8)
            self.database.change(name, "CREATE_TABLE")

    def _drop(self) -> None:
        name = self.random.choice(NAMES)
        if self.database.tables.pop(name, None) is not None:
            self.database.change(name, "DROP_TABLE")

    def _rename(self) -> None:
        old, new = self.random.sample(NAMES, 2)
        if old in self.database.tables and new not in self.database.tables:
            self.database.tables[new] = self.database.tables.pop(old)
            self.database.change(new, "ALTER_TABLE", old)
            for txn in self.txns:
                if txn.table_id == self.database.tables[new].table_id:
                    txn.name = new
