"""Changes under implicit locks: the rows of Hive's table of locks against what others hold, on every database."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from hms_gateway.catalog.tables import truncate
from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.metastore.changes.implicit_locks import held_for_files
from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Call, Dialect, Waiting
from hms_gateway.rpc.structs import (
    CheckLockRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Database,
    DataOperationType,
    EnvironmentContext,
    InvalidOperationException,
    LeaseObject,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    LongColumnStatsData,
    MetaException,
    NoSuchLockException,
    NoSuchObjectException,
    OpenTxnRequest,
    Partition,
    SerDeInfo,
    ShowLocksRequest,
    StorageDescriptor,
    Table,
    UnlockRequest,
)
from hms_gateway.rpc.wire import MessageType
from hms_gateway.runtime.settings import Settings
from hms_gateway.storage.files.directories import Directories
from tests.gateway.serving import post, read_response, running
from tests.support.catalog import columns, new_table
from tests.support.patience import until
from tests.support.sample import sample

# A change by row, what another user holds by column: whether the change is made.
CELLS = """
                        X d   S d   X d.t  S d.t  W d.t  X d.t/p=1  S d.t/p=1  X d.t/p=2  X d.u  X d.v  X e  S e
    rename to e.t       no    ok    no     no     no     no         no         no         ok     ok     no   ok
    add columns         no    ok    no     no     no     no         no         no         ok     ok     ok   ok
    replace columns     no    ok    no     no     no     no         no         no         ok     ok     ok   ok
    change column       no    ok    no     no     no     no         no         no         ok     ok     ok   ok
    set tblproperties   no    ok    no     no     no     no         no         no         ok     ok     ok   ok
    set serdeproperties no    ok    no     ok     ok     no         ok         no         ok     ok     ok   ok
    set serializer      no    ok    no     ok     ok     no         ok         no         ok     ok     ok   ok
    set file format     no    ok    no     ok     ok     no         ok         no         ok     ok     ok   ok
    add partition 3     no    ok    no     no     no     ok         ok         ok         ok     ok     ok   ok
    touch partition 1   no    ok    no     no     no     no         no         ok         ok     ok     ok   ok
    drop partition 1    no    ok    no     no     no     no         no         ok         ok     ok     ok   ok
    rename partition 1  no    ok    no     no     no     no         no         ok         ok     ok     ok   ok
    exchange 1 to d.x   no    ok    no     no     no     no         no         ok         ok     ok     ok   ok
    truncate            no    ok    no     no     no     no         no         no         ok     ok     ok   ok
    truncate 1          no    ok    no     no     no     no         no         ok         ok     ok     ok   ok
    statistics of u     no    ok    ok     ok     ok     ok         ok         ok         no     ok     ok   ok
    drop table          no    ok    no     no     no     no         no         no         ok     ok     ok   ok
    create table v      no    ok    ok     ok     ok     ok         ok         ok         ok     no     ok   ok
    alter database      no    ok    ok     ok     ok     ok         ok         ok         ok     ok     ok   ok
    drop database       no    no    no     no     no     no         no         no         no     no     ok   ok
    drop empty e        ok    ok    ok     ok     ok     ok         ok         ok         ok     ok     no   no
    read                ok    ok    ok     ok     ok     ok         ok         ok         ok     ok     ok   ok
"""
TRIES_MAX = 1_000
# On servers and on SQLite: the rules are the same on every database.
EVERY = sample((6, 2), of=(1, 1))
TYPES = {"X": LockType.EXCLUSIVE, "S": LockType.SHARED_READ, "W": LockType.SHARED_WRITE}


class Peer:
    """A client of a metastore in this process."""

    def __init__(self, metastore: Metastore, warehouse: Path, principal: str) -> None:
        self._metastore = metastore
        self._warehouse = warehouse
        self._call = Call(principal, client_address="10.0.0.1")

    def with_call(self, **changed: Any) -> "Peer":
        found = Peer(self._metastore, self._warehouse, "")
        found._call = replace(self._call, **changed)
        return found

    def ask(self, name: str, *values: Any) -> Any:
        """The answer; a declared exception is raised."""
        method, codec = methods_of(Dialect.HIVE_2_3)[name], self._metastore.codecs.binary
        before, after = codec.envelope(name, MessageType.CALL, 1)
        payload = codec.encode(method.arguments(*values))
        assert isinstance(payload, bytes)
        message = codec.read_message(before + payload + after)
        reply = self._metastore.processor.process(codec, message, self._call)
        assert reply.type is MessageType.REPLY, reply
        assert reply.payload is not None
        encoded = reply.payload if isinstance(reply.payload, bytes) else b"".join(reply.payload)
        result: Any = codec.decode(method.result, encoded)
        for field in method.definition.throws:
            raised = getattr(result, field.name)
            if raised is not None:
                raise raised
        return None if method.definition.returns is None else result.success

    def lock(self, text: str, txn_id: int = 0) -> int:
        """`X d.t/p=1`; the lock's id."""
        mode, place = text.split(" ")
        table, _, partition = place.partition("/")
        db_name, _, table_name = table.partition(".")
        component = LockComponent(
            TYPES[mode],
            LockLevel.TABLE,
            db_name,
            table_name or None,
            partition or None,
            operationType=DataOperationType.NO_TXN if not txn_id else DataOperationType.SELECT,
        )
        answer = self.ask("lock", LockRequest([component], txn_id, "ann", "etl-9", "nightly load"))
        assert answer.state == LockState.ACQUIRED
        return int(answer.lockid)

    def is_made(self, change: Callable[["Peer"], Any]) -> bool:
        """Nothing has changed where it is not, neither in the catalog nor on disk."""
        before = self._state()
        try:
            change(self)
        except (InvalidOperationException, MetaException) as error:
            text = error.message or ""
        else:
            return True
        assert "is locked: user ann on etl-9 holds" in text
        assert self._state() == before
        return False

    def _state(self) -> Any:
        locks = self.ask("show_locks", ShowLocksRequest()).locks
        return self.ask("get_current_notificationEventId").eventId, len(locks), sorted(self._warehouse.rglob("*"))


def altered(change: Callable[[Table], None]) -> Callable[[Peer], None]:
    def alter(peer: Peer) -> None:
        table = peer.ask("get_table", "d", "t")
        change(table)
        peer.ask("alter_table", "d", "t", table)

    return alter


def set_columns(*texts: str) -> Callable[[Peer], None]:
    return altered(lambda table: setattr(table.sd, "cols", columns(*texts)))


def altered_partition(change: Callable[[Partition], None], *old: str) -> Callable[[Peer], None]:
    def alter(peer: Peer) -> None:
        partition = peer.ask("get_partition", "d", "t", ["1"])
        change(partition)
        if old:
            peer.ask("rename_partition", "d", "t", list(old), partition)
        else:
            peer.ask("alter_partition", "d", "t", partition)

    return alter


def new_partition(value: str) -> Partition:
    return Partition([value], "d", "t", sd=StorageDescriptor(cols=columns("a int"), serdeInfo=SerDeInfo()))


def read(peer: Peer) -> None:
    peer.ask("get_table", "d", "t")
    peer.ask("get_partitions", "d", "t", -1)


CHANGES: dict[str, Callable[[Peer], Any]] = {
    "rename to e.t": altered(lambda table: setattr(table, "dbName", "e")),
    "add columns": set_columns("a int", "b string", "c int"),
    "replace columns": set_columns("z int"),
    "change column": set_columns("a bigint", "b string"),
    "set tblproperties": altered(lambda table: table.parameters.update(a="1")),
    "set serdeproperties": altered(lambda table: setattr(table.sd.serdeInfo, "parameters", {"a": "1"})),
    "set serializer": altered(lambda table: setattr(table.sd.serdeInfo, "serializationLib", "org.example.Other")),
    "set file format": altered(lambda table: setattr(table.sd, "inputFormat", "org.example.OtherIn")),
    "add partition 3": lambda peer: peer.ask("add_partition", new_partition("3")),
    "touch partition 1": altered_partition(lambda partition: None),
    "drop partition 1": lambda peer: peer.ask("drop_partition", "d", "t", ["1"], False),
    "rename partition 1": altered_partition(lambda partition: setattr(partition, "values", ["4"]), "1"),
    "exchange 1 to d.x": lambda peer: peer.ask("exchange_partition", {"p": "1"}, "d", "t", "d", "x"),
    "truncate": lambda peer: peer.ask("truncate_table", "d", "t", None),
    "truncate 1": lambda peer: peer.ask("truncate_table", "d", "t", ["p=1"]),
    "statistics of u": lambda peer: peer.ask("update_table_column_statistics", statistics_of_u()),
    "drop table": lambda peer: peer.ask("drop_table", "d", "t", False),
    "create table v": lambda peer: peer.ask("create_table", new_table("v", "d")),
    "alter database": lambda peer: peer.ask("alter_database", "d", Database("d", "changed")),
    "drop database": lambda peer: peer.ask("drop_database", "d", False, True),
    "drop empty e": lambda peer: peer.ask("drop_database", "e", False, False),
    "read": read,
}


def cells() -> dict[str, dict[str, bool]]:
    header, *rows = CELLS.strip("\n").splitlines()
    held = [each.strip() for each in header.split("  ") if each.strip()]
    found = {}
    for row in rows:
        name, outcomes = row[4:24].strip(), row[24:].split()
        found[name] = {place: cell == "ok" for place, cell in zip(held, outcomes, strict=True)}
    return found


class World(NamedTuple):
    """A metastore that denies, and two of its users."""

    ann: Peer
    bob: Peer
    metastore: Metastore
    warehouse: Path

    def fill(self) -> None:
        for name in ("d", "e"):
            self.bob.ask("create_database", Database(name))
        for name in ("t", "x"):
            self.bob.ask("create_table", managed(name, keys=columns("p string"), parameters={"a": "0"}))
        self.bob.ask("create_table", managed("u"))
        for value in ("1", "2"):
            self.bob.ask("add_partition", new_partition(value))

    def empty(self) -> None:
        for db_name in ("d", "e"):
            with contextlib.suppress(NoSuchObjectException):
                self.bob.ask("drop_database", db_name, True, True)


@contextlib.contextmanager
def opened(url: str, folder: Path, mode: str = "deny", **settings: Any) -> Iterator[World]:
    settings |= {} if mode == "default" else {"locks_implicit": mode}
    metastore = build_metastore(Settings(data_dir=folder, database_url=url, **settings))
    try:
        ann, bob = (Peer(metastore, folder / "warehouse", name) for name in ("ann", "bob"))
        yield World(ann, bob, metastore, folder / "warehouse")
    finally:
        metastore.store.close()


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> Iterator[World]:
    with opened(database_url, tmp_path) as found:
        found.fill()
        yield found


def managed(name: str, **given: Any) -> Table:
    table = new_table(name, "d", **given)
    table.tableType = "MANAGED_TABLE"
    return table


def statistics_of_u() -> ColumnStatistics:
    figures = ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=1, numDVs=2))
    described = ColumnStatisticsDesc(True, "d", "u")
    return ColumnStatistics(described, [ColumnStatisticsObj("a", "int", figures)])


def test_every_row_is_tried() -> None:
    assert cells().keys() == CHANGES.keys()


@pytest.mark.slow
def test_a_change_is_made_only_where_its_locks_could_be_granted(world: World, database_url: str) -> None:
    every = EVERY[database_url.startswith("sqlite")]
    found: dict[str, dict[str, bool]] = {}
    wanted = {
        name: dict(list(row.items())[number % every :: every]) for number, (name, row) in enumerate(cells().items())
    }
    for name, row in wanted.items():
        for place in row:
            lock_id = world.ann.lock(place)
            is_made = world.bob.is_made(CHANGES[name])
            found.setdefault(name, {})[place] = is_made
            world.ann.ask("unlock", UnlockRequest(lock_id))
            if is_made and name != "read":
                world.empty()
                world.fill()
    assert found == wanted


def test_off_is_the_default_and_passes_every_lock(database_url: str, tmp_path: Path) -> None:
    with opened(database_url, tmp_path, "default") as world:
        world.fill()
        world.ann.lock("X d.t")
        assert world.bob.is_made(CHANGES["drop table"])


@pytest.mark.slow
def test_a_caller_passes_its_own_locks(world: World) -> None:
    """As Iceberg's clients do, which name no lock in alter_table."""
    ann = world.ann
    lock_id = ann.lock("X d.t")
    assert ann.is_made(CHANGES["set tblproperties"])
    assert ann.is_made(CHANGES["truncate"])
    assert not ann.with_call(client_address="10.0.0.2").is_made(CHANGES["add columns"])
    assert not world.bob.is_made(CHANGES["add columns"])
    assert world.bob.with_call(lock_id=str(lock_id)).is_made(CHANGES["add columns"])
    assert world.bob.with_call(lock_id=f"{lock_id + 1}, {lock_id}").is_made(CHANGES["truncate"])
    assert not ann.with_call(lock_id=str(lock_id + 1)).is_made(CHANGES["replace columns"])
    assert not world.bob.with_call(txn_id="0").is_made(CHANGES["replace columns"])


def test_a_lock_is_named_in_the_environment_context_and_a_transaction_as_well(world: World) -> None:
    bob = world.bob
    (txn_id,) = world.ann.ask("open_txns", OpenTxnRequest(1, "ann", "etl-9")).txn_ids
    world.ann.lock("X d.t", txn_id)
    table = bob.ask("get_table", "d", "t")

    def altering(number: int) -> Callable[[Peer], None]:
        context = EnvironmentContext({"hms.txn.id": str(number)})
        return lambda peer: peer.ask("alter_table_with_environment_context", "d", "t", table, context)

    assert bob.is_made(altering(txn_id))
    assert not bob.is_made(altering(txn_id + 1))
    assert bob.with_call(txn_id=str(txn_id)).is_made(CHANGES["add columns"])
    with pytest.raises((InvalidOperationException, MetaException), match=r"hms\.lock\.id is 'x'"):
        bob.with_call(lock_id="x").ask("drop_table", "d", "t", False)


def test_a_lease_does_not_open_a_lock_nor_a_lock_a_lease(world: World) -> None:
    """Both are checked, in the unit of work of the change."""
    lease_id = world.bob.ask("grab_lease", [LeaseObject("d", "t", None, "x")], 60, 0)
    fenced = world.bob.with_call(lease=str(lease_id))
    lock_id = world.ann.lock("X d.t")
    assert not fenced.is_made(CHANGES["add columns"])
    world.ann.ask("unlock", UnlockRequest(lock_id))
    assert fenced.is_made(CHANGES["add columns"])
    with pytest.raises((InvalidOperationException, MetaException), match="Refused: lease"):
        CHANGES["create table v"](fenced)


def test_a_lock_past_its_time_is_taken_away(database_url: str, tmp_path: Path) -> None:
    with opened(database_url, tmp_path, txn_timeout_seconds=0.001) as world:
        world.fill()
        lock_id = world.ann.lock("X d.t")
        for _ in range(TRIES_MAX):
            with contextlib.suppress(InvalidOperationException):
                CHANGES["set tblproperties"](world.bob)
                break
        assert world.bob.ask("get_table", "d", "t").parameters["a"] == "1"
        with pytest.raises(NoSuchLockException):
            world.ann.ask("check_lock", CheckLockRequest(lock_id))


def test_files_are_moved_and_deleted_under_a_lock_that_others_see(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is held from before they are touched until the change is made, and refuses changes in between."""
    seen = []

    def watched(self: Directories, *places: str) -> None:
        monkeypatch.undo()
        locks = world.ann.ask("show_locks", ShowLocksRequest("d", "t")).locks
        seen.append({(LockType(one.type).name, one.partname, one.user) for one in locks})
        with pytest.raises(InvalidOperationException, match=r"user bob on .* holds EXCLUSIVE"):
            CHANGES["set tblproperties"](world.ann)

    for name, touched in (("truncate 1", "delete_directory"), ("rename partition 1", "move_directory")):
        monkeypatch.setattr(Directories, touched, watched)
        CHANGES[name](world.bob)
    monkeypatch.setattr(Directories, "move_directory", watched)
    CHANGES["rename to e.t"](world.bob)
    one, four = ("EXCLUSIVE", "p=1", "bob"), ("EXCLUSIVE", "p=4", "bob")
    assert seen == [{one}, {one, four}, {("EXCLUSIVE", None, "bob")}]
    assert not world.ann.ask("show_locks", ShowLocksRequest()).locks


def test_files_are_deleted_where_they_are_when_the_lock_is_held(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = world.warehouse / "d.db/t/elsewhere"

    @contextlib.contextmanager
    def held_late(*given: Any) -> Iterator[None]:
        monkeypatch.undo()
        elsewhere.mkdir()
        (elsewhere / "data").write_bytes(b"7")
        altered_partition(lambda partition: setattr(partition.sd, "location", f"file:{elsewhere}"))(world.ann)
        with held_for_files(*given):
            yield

    monkeypatch.setattr(truncate, "held_for_files", held_late)
    CHANGES["truncate 1"](world.bob)
    assert list(elsewhere.iterdir()) == []


def test_a_change_that_lost_the_lock_of_its_files_is_not_made(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another did meanwhile, as after a pause that was longer than the time-out, is not undone."""
    move = Directories.move_directory

    def paused(self: Directories, source: str, target: str) -> None:
        monkeypatch.undo()
        move(self, source, target)
        (lock,) = {one.lockid for one in world.ann.ask("show_locks", ShowLocksRequest()).locks}
        world.ann.ask("unlock", UnlockRequest(lock))

    monkeypatch.setattr(Directories, "move_directory", paused)
    with pytest.raises(InvalidOperationException, match="are lost; call again"):
        CHANGES["rename to e.t"](world.bob)
    assert world.bob.ask("get_table", "d", "t")
    assert world.bob.is_made(CHANGES["rename to e.t"])


def test_a_change_waits_as_long_as_configured(database_url: str, tmp_path: Path) -> None:
    settings = {"locks_implicit_retries": 2, "locks_implicit_pause_seconds": 7.0}
    with opened(database_url, tmp_path, "wait", **settings) as world:
        world.fill()
        lock_id = world.ann.lock("X d.t")
        for waited, pause in ((0, 7), (7, 7), (10, 4)):
            with pytest.raises(Waiting) as waiting:
                CHANGES["drop table"](world.bob.with_call(waited_seconds=waited))
            assert waiting.value.seconds == pause
        assert not world.bob.with_call(waited_seconds=14).is_made(CHANGES["drop table"])
        world.ann.ask("unlock", UnlockRequest(lock_id))
        assert world.bob.is_made(CHANGES["drop table"])


def test_a_change_that_waits_holds_no_thread(database_url: str, tmp_path: Path) -> None:
    """Over HTTP, with one thread, which goes on answering others."""
    drop = b'[1,"drop_table",1,1,{"1":{"str":"d"},"2":{"str":"t"},"3":{"tf":0}}]'
    with opened(database_url, tmp_path, "wait", locks_implicit_pause_seconds=0.02) as world:
        world.fill()
        lock_id = world.ann.lock("X d.t")
        with running(world.metastore.processor, threads=1) as server, server.connect() as changing:
            changing.sendall(post(drop))
            until(lambda: server.metrics.calls_waiting == 1 and server.metrics.calls_in_flight == 0)
            with server.connect() as other:
                other.sendall(post(b'[1,"get_all_databases",1,1,{}]'))
                assert read_response(other)[0] == 200
            world.ann.ask("unlock", UnlockRequest(lock_id))
            assert read_response(changing)[2] == b'[1,"drop_table",2,1,{}]'
        with pytest.raises(NoSuchObjectException):
            world.bob.ask("get_table", "d", "t")
