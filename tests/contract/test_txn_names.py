"""What transactions note about objects goes with what is dropped and follows what is renamed; locks stay (semantics
§3.7, §5.11).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import pytest
from sqlalchemy import create_engine, select

from hms_gateway.metastore.ports.store import Selection, StoredPartition
from hms_gateway.rpc.structs import CompactionType, LockType
from hms_gateway.storage.schema.txn import COMPLETED_COMPONENTS, REBUILDS, TXN_COMPONENTS, TXN_WRITE_IDS, WRITE_SETS
from hms_gateway.storage.writing.store import SqlStore
from hms_gateway.txn.ports.txn import Client, LockFilter
from hms_gateway.txn.rules.compaction import CompactionDetails, CompactionFilter
from hms_gateway.txn.rules.locks import TxnId
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.rules.transactions import TxnOperation
from hms_gateway.txn.services.compaction import CompactionService
from hms_gateway.txn.services.locks import ComponentSpec, LockService, LockSpec
from hms_gateway.txn.services.materialized_views import RebuildService
from hms_gateway.txn.services.settings import TxnSettings
from hms_gateway.txn.services.transactions import TransactionService
from hms_gateway.txn.services.write_ids import WriteIdService
from tests.contract.objects import create, database, get, partition, table

CLIENT = Client("tester", "host", "test")
NOTED = {
    "open": TXN_COMPONENTS,
    "completed": COMPLETED_COMPONENTS,
    "write sets": WRITE_SETS,
    "write ids": TXN_WRITE_IDS,
    "rebuilds": REBUILDS,
}
A, B, C = "k0=a/k1=1", "k0=b/k1=2", "k0=c/k1=3"


class World(NamedTuple):
    """A table with three partitions, two of them written to by a committed transaction and by an open one."""

    store: SqlStore
    rows: Callable[[], dict[str, set[str]]]
    open_txn: TxnId

    def objects(self, *names: str) -> dict[str, set[str]]:
        return {name: self.rows()[name] for name in names}


@pytest.fixture
def world(store: SqlStore, database_url: str) -> World:
    create(store, None, [["a", "1"], ["b", "2"], ["c", "3"]])
    create(store, table("other"), [["a", "1"]])
    settings = TxnSettings()
    locks = LockService(store, settings)
    transactions = TransactionService(store, locks, settings)
    write_ids = WriteIdService(store, settings)
    committed, open_txn = transactions.open(2, CLIENT).result()
    for name in ("orders", "other"):
        of_table = Target("sales", name)
        written = [Target("sales", name, part) for part in (A, B)]
        for txn_id in (committed, open_txn):
            transactions.add_writes(txn_id, written, TxnOperation.UPDATE, None)
        write_ids.allocate(of_table, [committed, open_txn])
        locks.lock(
            LockSpec([ComponentSpec(each, LockType.SHARED_READ) for each in (of_table, *written)], CLIENT)
        ).result()
        for each in (of_table, *written):
            CompactionService(store).request(each, CompactionType.MAJOR, CompactionDetails())
        assert RebuildService(store, settings).acquire(of_table, open_txn)
    transactions.commit(committed, checks_writes=True).result()
    return World(store, lambda: rows(database_url), open_txn)


def rows(url: str) -> dict[str, set[str]]:
    """The objects that each of the tables names."""
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            return {
                title: {
                    ".".join((row.db_name, row.table_name, getattr(row, "partition_name", ""))).rstrip(".")
                    for row in connection.execute(select(noted))
                }
                for title, noted in NOTED.items()
            }
    finally:
        engine.dispose()


def compactions(store: SqlStore) -> set[str]:
    return {str(each.target) for each in store.read(lambda tx: tx.txns.compactions(CompactionFilter()))}


def locked(store: SqlStore) -> set[str]:
    return {str(each.lock.target) for each in store.read(lambda tx: tx.txns.shown_locks(LockFilter()))}


def newest_write_id(store: SqlStore, name: str, db_name: str = "sales") -> int | None:
    return store.read(lambda tx: tx.txns.last_write_id(Target(db_name, name)))


OTHER = {f"sales.other.{A}", f"sales.other.{B}"}
ALL_LOCKS = {f"sales.{name}{part}" for name in ("orders", "other") for part in ("", f"/{A}", f"/{B}")}
OTHER_COMPACTIONS = {"sales.other", f"sales.other/{A}", f"sales.other/{B}"}


def renamed(store: SqlStore, new_names: dict[str, list[str]]) -> None:
    """Give partitions new values, by their names."""
    of_table = get(store)

    def work(tx: Any) -> None:
        found = tx.partitions(of_table, Selection(names=list(new_names)))
        changed = []
        for each in found:
            new = partition(table(), new_names[each.name])
            changed.append(StoredPartition(each.partition_id, new.name, new.partition))
        tx.update_partitions(of_table, changed)

    store.write(work)


def test_a_dropped_table_takes_everything_along_but_its_locks(world: World) -> None:
    table_id = get(world.store).table_id
    world.store.write(lambda tx: tx.delete_table(table_id))
    assert world.objects("open", "completed") == {"open": OTHER, "completed": OTHER}
    assert world.rows()["write ids"] == {"sales.other"}
    assert compactions(world.store) == OTHER_COMPACTIONS
    assert locked(world.store) == ALL_LOCKS
    assert (newest_write_id(world.store, "orders"), newest_write_id(world.store, "other")) == (None, 2)
    create(world.store)
    given = WriteIdService(world.store, TxnSettings()).allocate(Target("sales", "orders"), [world.open_txn])
    assert list(given.values()) == [1]


def test_a_dropped_database_takes_everything_along_but_its_locks(world: World) -> None:
    def work(tx: Any) -> None:
        for name in ("orders", "other"):
            tx.delete_table(tx.table("sales", name).table_id)
        tx.delete_database(tx.database("sales").database_id)

    WriteIdService(world.store, TxnSettings()).allocate(Target("sales", "never_made"), [world.open_txn])
    world.store.write(work)
    assert world.objects("open", "completed", "write ids") == {"open": set(), "completed": set(), "write ids": set()}
    assert compactions(world.store) == set()
    assert newest_write_id(world.store, "never_made") is None
    assert locked(world.store) == ALL_LOCKS


def test_dropped_partitions_take_their_own_along(world: World) -> None:
    stored = get(world.store)
    world.store.write(lambda tx: tx.delete_partitions(stored, [A, C]))
    left = {f"sales.orders.{B}", *OTHER}
    assert world.objects("open", "completed") == {"open": left, "completed": left}
    assert compactions(world.store) == {"sales.orders", f"sales.orders/{B}", *OTHER_COMPACTIONS}
    assert locked(world.store) == ALL_LOCKS
    assert newest_write_id(world.store, "orders") == 2


def test_a_renamed_table_keeps_what_it_has_under_its_new_name(world: World) -> None:
    """A write id that was allocated under the new name before is not its own."""
    WriteIdService(world.store, TxnSettings()).allocate(Target("hr", "people"), [world.open_txn])
    hr = world.store.write(lambda tx: tx.insert_database(database("hr")))
    stored = get(world.store)
    after = msgspec.structs.replace(stored.table, dbName="hr", tableName="people")
    world.store.write(lambda tx: tx.update_table(stored.table_id, hr, after))
    moved = {f"hr.people.{A}", f"hr.people.{B}", *OTHER}
    assert world.objects("open", "completed", "write sets") == dict.fromkeys(("open", "completed", "write sets"), moved)
    tables = {"hr.people", "sales.other"}
    assert world.objects("write ids", "rebuilds") == {"write ids": tables, "rebuilds": tables}
    assert compactions(world.store) == {"hr.people", f"hr.people/{A}", f"hr.people/{B}", *OTHER_COMPACTIONS}
    assert (newest_write_id(world.store, "orders"), newest_write_id(world.store, "people", "hr")) == (None, 2)
    assert locked(world.store) == ALL_LOCKS


def test_a_table_that_is_altered_without_a_new_name_keeps_everything(world: World) -> None:
    before = world.rows(), compactions(world.store)
    stored = get(world.store)
    world.store.write(lambda tx: tx.update_table(stored.table_id, stored.database_id, stored.table))
    assert (world.rows(), compactions(world.store)) == before


def test_renamed_partitions_keep_what_they_have(world: World) -> None:
    """Also when one gets the name another one gives up in the same call."""
    renamed(world.store, {A: ["b", "2"], B: ["new/name", "4"]})
    after = {f"sales.orders.{B}", "sales.orders.k0=new%2Fname/k1=4", *OTHER}
    assert world.objects("open", "completed", "write sets") == dict.fromkeys(("open", "completed", "write sets"), after)
    assert compactions(world.store) == {
        "sales.orders", f"sales.orders/{B}", "sales.orders/k0=new%2Fname/k1=4", *OTHER_COMPACTIONS
    }  # fmt: skip
    assert locked(world.store) == ALL_LOCKS


def test_who_wrote_to_a_renamed_object_still_collides(world: World) -> None:
    """First committer wins under the new name too (semantics §5.6)."""
    other_id, stored = get(world.store, "sales", "other").table_id, get(world.store)
    world.store.write(lambda tx: tx.delete_table(other_id))
    after = msgspec.structs.replace(stored.table, tableName="people")
    world.store.write(lambda tx: tx.update_table(stored.table_id, stored.database_id, after))
    settings = TxnSettings()
    transactions = TransactionService(world.store, LockService(world.store, settings), settings)
    with pytest.raises(Exception, match=r"write conflict on sales/people/k0=a/k1=1 committed by \[txnid:1,2\] u/u"):
        transactions.commit(world.open_txn, checks_writes=True).result()
