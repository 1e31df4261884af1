"""Units of work on a database `d`, each with an event of its own, and a way to run several as one batch."""

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from hms_gateway.metastore.ports.store import CatalogWork, Event, NewPartition, Transaction
from hms_gateway.rpc.structs import Database, FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table, TxnType
from hms_gateway.runtime.call_keys import CallKey
from hms_gateway.runtime.suspension import Job
from hms_gateway.storage.writing.thread_writer import ThreadWriter
from hms_gateway.txn.ports.txn import Client, TxnWork

WHO = Client("who", "host", "agent")


def together(writer: ThreadWriter, works: Mapping[str, Any]) -> dict[str, BaseException | None]:
    """One batch of works by their idempotency keys; what each raised."""
    keys = {text: CallKey("ann", text, "a_method", b"hash", keeps_value=True) for text in works}
    jobs = [Job(work, Future(), keys[text]) for text, work in works.items()]
    writer._finish(jobs)
    return {text: job.outcome.exception(0) for text, job in zip(works, jobs, strict=True)}  # type: ignore[union-attr]


def makes_database(tx: Transaction) -> None:
    tx.insert_database(Database("d", None, "file:/d", {}))


def table(name: str, **parameters: str) -> Table:
    return Table(
        tableName=name, dbName="d", owner="o", createTime=1, lastAccessTime=0, retention=0, parameters=parameters,
        partitionKeys=[FieldSchema("k", "string")], tableType="MANAGED_TABLE",
    )  # fmt: skip


def creates(name: str) -> CatalogWork[Any]:
    def work(tx: Transaction) -> None:
        database = tx.database("d")
        assert database is not None
        tx.insert_table(database.database_id, table(name))
        tx.append_event(Event("CREATE_TABLE", "d", name, "{}"))

    return CatalogWork(work, [("d", name)], new_tables=1)


def adds(name: str, *values: str) -> CatalogWork[Any]:
    def work(tx: Transaction) -> None:
        found = tx.table("d", name)
        assert found is not None
        tx.insert_partitions(found, [partition(name, value) for value in values])
        tx.append_event(Event("ADD_PARTITION", "d", values[0], "{}"))

    return CatalogWork(work, [("d", name)])


def partition(name: str, value: str) -> NewPartition:
    descriptor = StorageDescriptor(location=f"file:/d/k={value}", serdeInfo=SerDeInfo())
    return NewPartition(f"k={value}", Partition([value], "d", name, 1, 0, descriptor, {}))


def alters(name: str, value: str) -> CatalogWork[Any]:
    def work(tx: Transaction) -> None:
        found = tx.table("d", name)
        assert found is not None
        tx.update_table(found.table_id, found.database_id, table(name, value=value))
        tx.append_event(Event("ALTER_TABLE", "d", value, "{}"))

    return CatalogWork(work, [("d", name)])


def drops(name: str) -> CatalogWork[Any]:
    def work(tx: Transaction) -> None:
        found = tx.table("d", name)
        assert found is not None
        tx.delete_table(found.table_id)
        tx.append_event(Event("DROP_TABLE", "d", name, "{}"))

    return CatalogWork(work, [("d", name)])


def opens() -> TxnWork[Any]:
    return TxnWork(lambda txns: list(txns.insert_txns(1, TxnType.DEFAULT, WHO)), opens=True)
