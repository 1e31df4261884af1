"""Statements are made once: how many SQLAlchemy expressions each call makes anew that the benchmarks time."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.sql.base import Generative
from sqlalchemy.sql.compiler import SQLCompiler

from hms_gateway.composition.main import build_metastore
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import (
    CommitTxnRequest,
    Database,
    DropPartitionsRequest,
    EnvironmentContext,
    FieldSchema,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    OpenTxnRequest,
    Partition,
    RequestPartsSpec,
    SerDeInfo,
    StorageDescriptor,
    Table,
    UnlockRequest,
)
from hms_gateway.rpc.wire import make_codecs
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Settings
from hms_gateway.storage.migrations.revisions import migrate
from tests.handlers.peers import Peer


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    postgres = request.param == "postgres"
    database = request.getfixturevalue("fresh_postgres_database") if postgres else None
    if database:
        migrate(database)
    metastore = build_metastore(Settings(data_dir=tmp_path, file_systems={"file": "ignore"}, database_url=database))
    yield Peer(metastore, make_codecs(Limits()).binary, Dialect.HIVE_2_3).ask
    metastore.store.close()


def descriptor(place: str) -> StorageDescriptor:
    return StorageDescriptor([FieldSchema("c", "int")], f"file:/w/{place}", serdeInfo=SerDeInfo())


def table(name: str, **parameters: str) -> Table:
    where = descriptor(name)
    keys = [FieldSchema("k", "string")]
    return Table(name, "d", "o", 1, 1, 0, where, keys, {"EXTERNAL": "TRUE", **parameters}, tableType="EXTERNAL_TABLE")


def partition(name: str, value: str, **parameters: str) -> Partition:
    where = descriptor(f"{name}/k={value}")
    return Partition([value], "d", name, 1, 1, where, parameters)


def lock() -> LockRequest:
    component = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, "d", "t", isAcid=True)
    return LockRequest([component], user="u", hostname="h")


def commit(ask: Callable[..., Any], number: str) -> None:
    """As Iceberg's clients."""
    held = ask("lock", lock()).lockid
    assert ask("get_table", "d", "t").parameters["at"]
    expected = {"expected_parameter_key": "at", "expected_parameter_value": ask("get_table", "d", "t").parameters["at"]}
    ask("alter_table_with_environment_context", "d", "t", table("t", at=number), EnvironmentContext(expected))
    ask("unlock", UnlockRequest(held))


def txn(ask: Callable[..., Any]) -> None:
    ask("commit_txn", CommitTxnRequest(ask("open_txns", OpenTxnRequest(1, "u", "h")).txn_ids[0]))


Calls = Callable[[Callable[..., Any], str], object]
# None of them makes any.
CALLS: dict[str, Calls] = {
    "create_table": lambda ask, n: ask("create_table", table(f"new{n}")),
    "drop_table": lambda ask, n: ask("drop_table", "d", f"new{n}", False),
    "get_table": lambda ask, n: ask("get_table", "d", "t"),
    "get_database": lambda ask, n: ask("get_database", "d"),
    "alter_table": lambda ask, n: ask("alter_table", "d", "t", table("t", at=n)),
    "rename": lambda ask, n: [ask("alter_table", "d", one, table(other, at=n)) for one, other in ("tu", "ut")],
    "add_partition": lambda ask, n: ask("add_partition", partition("t", n)),
    "alter_partitions": lambda ask, n: ask("alter_partitions", "d", "t", [partition("t", v, at=n) for v in "ab"]),
    "drop_partition": lambda ask, n: ask("drop_partition", "d", "t", [n], False),
    "open_txns, commit_txn": lambda ask, n: txn(ask),
    "lock, unlock": lambda ask, n: ask("unlock", UnlockRequest(ask("lock", lock()).lockid)),
    "Iceberg's commit": lambda ask, n: commit(ask, n),
}
# These take milliseconds, of which making statements is a small part. The numbers are not to grow.
LONG_CALLS: dict[str, tuple[Calls, int]] = {
    "get_all_tables": (lambda ask, n: ask("get_all_tables", "d"), 4),
    "get_partitions": (lambda ask, n: ask("get_partitions", "d", "t", -1), 5),
    "get_partition_names": (lambda ask, n: ask("get_partition_names", "d", "t", -1), 2),
    "filter": (lambda ask, n: ask("get_partitions_by_filter", "d", "t", 'k = "a"', -1), 5),
    "add_partitions of 30": (
        lambda ask, n: ask("add_partitions", [partition("t", f"{n}-{at}") for at in range(30)]),
        27,
    ),
    "drop_partitions of 30": (
        lambda ask, n: ask(
            "drop_partitions_req",
            DropPartitionsRequest("d", "t", RequestPartsSpec(names=[f"k={n}-{at}" for at in range(30)]), False),
        ),
        0,
    ),
}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is made anew, and what is compiled."""
    made: list[object] = []

    def counting(kind: Any, name: str) -> None:
        original = getattr(kind, name)

        def counted(self: Any, *arguments: Any, **named: Any) -> Any:
            made.append(type(self))
            return original(self, *arguments, **named)

        monkeypatch.setattr(kind, name, counted)

    counting(Generative, "_generate")
    counting(SQLCompiler, "__init__")
    return made


@pytest.mark.slow
def test_no_statement_is_made_for_a_call(ask: Callable[..., Any], made: list[object]) -> None:
    ask("create_database", Database("d", None, "file:/w", {}))
    ask("create_table", table("t", at="0"))
    ask("add_partitions", [partition("t", value) for value in "ab"])
    seen: dict[str, int] = {}
    for number in ("1", "2", "3"):
        for name, call in [*CALLS.items(), *((name, call) for name, (call, _) in LONG_CALLS.items())]:
            made.clear()
            call(ask, number)
            seen[name] = len(made)
    assert {name: seen[name] for name in CALLS} == dict.fromkeys(CALLS, 0)
    assert {name: seen[name] for name, (_, most) in LONG_CALLS.items() if seen[name] > most} == {}
