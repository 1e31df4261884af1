"""Changes under implicit locks: the rows of Hive's table of locks against what others hold, on every database."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.rpc import Call
from hms_gateway.rpc.call import Dialect, Waiting
from hms_gateway.rpc.dialects import methods_of
from hms_gateway.runtime.settings import Settings
from hms_gateway.structs import (
    Database,
    DataOperationType,
    EnvironmentContext,
    InvalidOperationException,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    MetaException,
    OpenTxnRequest,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
    UnlockRequest,
)
from hms_gateway.wire import MessageType
from tests.support.catalog import columns, new_table

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
    drop table          no    ok    no     no     no     no         no         no         ok     ok     ok   ok
    create table v      no    ok    ok     ok     ok     ok         ok         ok         ok     no     ok   ok
    alter database      no    ok    ok     ok     ok     ok         ok         ok         ok     ok     ok   ok
    drop database       no    no    no     no     no     no         no         no         no     no     ok   ok
    drop empty e        ok    ok    ok     ok     ok     ok         ok         ok         ok     ok     no   no
    read                ok    ok    ok     ok     ok     ok         ok         ok         ok     ok     ok   ok
"""
TYPES = {"X": LockType.EXCLUSIVE, "S": LockType.SHARED_READ, "W": LockType.SHARED_WRITE}


class Peer:
    """A client of a metastore in this process."""

    def __init__(self, metastore: Metastore, principal: str, address: str = "10.0.0.1", **call: Any) -> None:
        self._metastore = metastore
        self._call = Call(principal, client_address=address, **call)

    def with_call(self, **changed: Any) -> "Peer":
        found = Peer(self._metastore, "")
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
        """Nothing has changed where it is not."""
        before = self.ask("get_current_notificationEventId").eventId
        try:
            change(self)
        except (InvalidOperationException, MetaException) as error:
            text = error.message or ""
        else:
            return True
        assert "is locked: user ann on etl-9 holds" in text
        assert self.ask("get_current_notificationEventId").eventId == before
        return False


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
    "drop table": lambda peer: peer.ask("drop_table", "d", "t", False),
    "create table v": lambda peer: peer.ask("create_table", new_table("v", "d")),
    "alter database": lambda peer: peer.ask("alter_database", "d", Database("d", "changed", "file:/d")),
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


@pytest.fixture
def metastore(database_url: str, tmp_path: Path) -> Iterator[Metastore]:
    opened = open_metastore(database_url, tmp_path, locks_implicit="deny")
    yield opened
    opened.store.close()


def open_metastore(url: str, folder: Path, **settings: Any) -> Metastore:
    return build_metastore(Settings(data_dir=folder, database_url=url, file_systems={"file": "ignore"}, **settings))


def fill(peer: Peer) -> None:
    for name in ("d", "e"):
        peer.ask("create_database", Database(name, None, f"file:/{name}"))
    peer.ask("create_table", new_table("t", "d", keys=columns("p string"), parameters={"a": "0"}))
    peer.ask("create_table", new_table("u", "d"))
    for value in ("1", "2"):
        peer.ask("add_partition", new_partition(value))


def test_every_row_is_tried() -> None:
    assert cells().keys() == CHANGES.keys()


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_made_only_where_its_locks_could_be_granted(metastore: Metastore, name: str) -> None:
    ann, bob = Peer(metastore, "ann"), Peer(metastore, "bob")
    found = {}
    for place in cells()[name]:
        fill(bob)
        lock_id = ann.lock(place)
        found[place] = bob.is_made(CHANGES[name])
        ann.ask("unlock", UnlockRequest(lock_id))
        for db_name in bob.ask("get_all_databases"):
            if db_name != "default":
                bob.ask("drop_database", db_name, False, True)
    assert found == cells()[name]


def test_off_is_the_default_and_passes_every_lock(database_url: str, tmp_path: Path) -> None:
    metastore = open_metastore(database_url, tmp_path)
    ann, bob = Peer(metastore, "ann"), Peer(metastore, "bob")
    fill(bob)
    ann.lock("X d.t")
    assert bob.is_made(CHANGES["drop table"])
    metastore.store.close()


def test_a_caller_passes_its_own_locks(metastore: Metastore) -> None:
    """As Iceberg's clients do, which name no lock in alter_table."""
    ann = Peer(metastore, "ann")
    fill(ann)
    lock_id = ann.lock("X d.t")
    assert ann.is_made(CHANGES["set tblproperties"])
    assert not ann.with_call(client_address="10.0.0.2").is_made(CHANGES["add columns"])
    assert not ann.with_call(principal="bob").is_made(CHANGES["add columns"])
    assert ann.with_call(principal="bob", lock_id=str(lock_id)).is_made(CHANGES["add columns"])
    assert not ann.with_call(lock_id=str(lock_id + 1)).is_made(CHANGES["replace columns"])


def test_a_lock_is_named_in_the_environment_context_and_a_transaction_as_well(metastore: Metastore) -> None:
    ann, bob = Peer(metastore, "ann"), Peer(metastore, "bob")
    fill(ann)
    (txn_id,) = ann.ask("open_txns", OpenTxnRequest(1, "ann", "etl-9")).txn_ids
    ann.lock("X d.t", txn_id)
    table = bob.ask("get_table", "d", "t")

    def altering(number: int) -> Callable[[Peer], None]:
        context = EnvironmentContext({"hms.txn.id": str(number)})
        return lambda peer: peer.ask("alter_table_with_environment_context", "d", "t", table, context)

    assert bob.is_made(altering(txn_id))
    assert not bob.is_made(altering(txn_id + 1))
    assert bob.with_call(txn_id=str(txn_id)).is_made(CHANGES["add columns"])
    with pytest.raises((InvalidOperationException, MetaException), match=r"hms\.lock\.id is 'x'"):
        bob.with_call(lock_id="x").ask("drop_table", "d", "t", False)


def test_a_change_waits_as_often_as_configured(database_url: str, tmp_path: Path) -> None:
    metastore = open_metastore(
        database_url, tmp_path, locks_implicit="wait", locks_implicit_retries=2, locks_implicit_pause_seconds=7.0
    )
    ann, bob = Peer(metastore, "ann"), Peer(metastore, "bob")
    fill(bob)
    lock_id = ann.lock("X d.t")
    for _ in range(2):
        with pytest.raises(Waiting) as waiting:
            CHANGES["drop table"](bob)
        assert waiting.value.seconds == 7
        bob = bob.with_call(resume=waiting.value.resume)
    assert not bob.is_made(CHANGES["drop table"])
    ann.ask("unlock", UnlockRequest(lock_id))
    assert bob.is_made(CHANGES["drop table"])
    metastore.store.close()
