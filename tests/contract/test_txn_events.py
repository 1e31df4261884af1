"""What the log says of transactions that have write ids, in Hive's shapes; it says nothing of the others."""

import json
from typing import Any

import pytest

from hms_gateway.metastore.changes.events import CommittedWriteId, committed_write_ids
from hms_gateway.metastore.ports.store import EventId
from hms_gateway.storage.writing.store import SqlStore
from hms_gateway.txn.ports.txn import Client
from hms_gateway.txn.rules.names import target
from hms_gateway.txn.rules.transactions import TxnOperation
from hms_gateway.txn.services.locks import LockService
from hms_gateway.txn.services.settings import TxnSettings
from hms_gateway.txn.services.transactions import TransactionService
from hms_gateway.txn.services.write_ids import WriteIdService

WHO = Client("alice", "here", "test")
ORDERS, LINES = target("sales", "orders"), target("crm", "lines")
NAMES_OF_REPLICATION = ("writeIds", "databases", "tables", "partitions", "tableObjs", "partitionObjs", "files")


class Services:
    def __init__(self, store: SqlStore) -> None:
        settings = TxnSettings()
        self.store = store
        self.txns = TransactionService(store, LockService(store, settings), settings)
        self.write_ids = WriteIdService(store, settings)

    def begin(self, *tables: Any) -> int:
        (txn_id,) = self.txns.open(1, WHO).result()
        for table in tables:
            self.write_ids.allocate(table, [txn_id])
        return txn_id

    def commit(self, txn_id: int, names_write_ids: bool | None = None) -> None:
        self.txns.commit(txn_id, checks_writes=True, names_write_ids=names_write_ids).result()

    def log(self) -> list[tuple[str, str, str | None, dict[str, Any]]]:
        found = self.store.read(lambda snapshot: snapshot.events_after(EventId(0)))
        assert [one.event_id for one in found] == list(range(1, len(found) + 1))
        assert self.store.version() == len(found)
        events = [one.event for one in found]
        return [(one.event_type, one.db_name, one.table_name, json.loads(one.message)) for one in events]

    def types(self) -> list[str]:
        return [event_type for event_type, *_ in self.log()]


@pytest.fixture
def services(store: SqlStore) -> Services:
    return Services(store)


def test_transactions_without_write_ids_leave_no_trace(services: Services) -> None:
    for names_write_ids in (None, True, False):
        services.commit(services.begin(), names_write_ids)
    services.txns.abort(services.begin()).result()
    writer = services.begin()
    services.txns.add_writes(writer, [ORDERS], TxnOperation.INSERT, None)
    services.commit(writer)
    assert services.log() == []


def test_a_commit_names_the_write_ids_of_all_tables(services: Services, store: SqlStore) -> None:
    first, second = services.begin(ORDERS, LINES), services.begin(ORDERS)
    services.write_ids.allocate(ORDERS, [first, second])  # known already
    services.commit(second)
    services.commit(first)
    services.commit(first)  # once more
    opened, of_orders, of_lines, *others = services.log()
    assert opened[:3] == ("OPEN_TXN", "", None)
    assert opened[3]["txnIds"] == [first]
    assert of_orders[:3] == ("ALLOC_WRITE_ID", "sales", "orders")
    expected = {"dbName": "sales", "tableName": "orders", "txnIdList": [first], "writeIdList": [1]}
    assert expected.items() <= of_orders[3].items()
    assert of_lines[1:3] == ("crm", "lines")
    assert [one[0] for one in others] == ["OPEN_TXN", "ALLOC_WRITE_ID", "COMMIT_TXN", "COMMIT_TXN"]
    said = others[-1][3]
    assert said["txnid"] == first
    assert [said[name] for name in NAMES_OF_REPLICATION] == [None] * 7
    commits = [one.event for one in store.changes_since(EventId(0)) if one.event.message]
    assert [sorted(committed_write_ids(one)) for one in commits] == [
        [CommittedWriteId("sales", "orders", 2)],
        [CommittedWriteId("crm", "lines", 1), CommittedWriteId("sales", "orders", 1)],
    ]


@pytest.mark.parametrize(
    ("says", "named"), [(None, [("sales", "orders", 1)]), (True, [("sales", "orders", 1)]), (False, [])]
)
def test_a_client_may_spare_the_look_up(services: Services, store: SqlStore, says: bool | None, named: Any) -> None:
    services.commit(services.begin(ORDERS), says)
    assert services.types() == ["OPEN_TXN", "ALLOC_WRITE_ID", "COMMIT_TXN"]
    assert [committed_write_ids(one.event) for one in store.changes_since(EventId(2))] == [named]


@pytest.mark.slow
def test_a_message_of_many_tables_reaches_the_caches(services: Services, store: SqlStore) -> None:
    tables = [target("sales", f"orders_{number}") for number in range(60)]
    services.commit(services.begin(*tables))
    (commit,) = store.changes_since(EventId(store.version() - 1))
    assert len(committed_write_ids(commit.event)) == 60


def test_every_abort_is_logged(services: Services) -> None:
    services.txns.abort(services.begin(ORDERS, LINES)).result()
    services.txns.abort_all([services.begin(ORDERS), services.begin()])
    aborts = [said for event_type, *_, said in services.log() if event_type == "ABORT_TXN"]
    assert [one["dbsUpdated"] for one in aborts] == [["crm", "sales"], ["sales"]]


def test_replicated_write_ids_end_in_the_log(services: Services) -> None:
    services.write_ids.replicate_state(ORDERS, "sales.orders:7:5:5:6", WHO)
    assert services.types() == ["OPEN_TXN", "ALLOC_WRITE_ID", "ABORT_TXN", "ABORT_TXN"]


def test_a_dropped_table_is_not_named(services: Services, store: SqlStore) -> None:
    txn_id = services.begin(ORDERS)

    def forget(transaction: Any) -> None:
        transaction.txns.delete_write_ids(ORDERS, [txn_id])

    store.write(forget)
    services.commit(txn_id)
    assert services.types()[-1] == "COMMIT_TXN"
    assert committed_write_ids(store.changes_since(EventId(2))[0].event) == []
