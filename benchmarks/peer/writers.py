"""Changes by many clients at once, each request one of a scheduler's jobs: what the writing path is measured by."""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from benchmarks.peer.caller import Caller
from benchmarks.peer.content import DATABASE, MADE, descriptor, partition, table
from benchmarks.peer.load import MakeScript, Script, Step, repeating
from benchmarks.peer.measuring import Loaded, Operation
from benchmarks.peer.sides import PORTS, Side
from benchmarks.peer.speech import ID
from benchmarks.peer.txns import lock_and_unlock, open_and_commit
from hms_gateway.rpc.structs import (
    EnvironmentContext,
    FieldSchema,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
    UnlockRequest,
)

# Stands for a number of as many digits, which is another one in each request: all requests and replies are of one size.
MARK: Final = "@@@@@@@@"
TABLES: Final = 16
PARTITIONS: Final = 100
CREATE_DROP: Final = "create_table + drop_table, by many"
ADD_TO_ONE: Final = "add_partition, one table"
ADD_TO_MANY: Final = f"add_partition, {TABLES} tables"
GET_ALTER: Final = "get_table + alter_table"
ALTER_PARTITIONS: Final = f"alter_partitions of {PARTITIONS}"
OPEN_COMMIT: Final = "open_txns + commit_txn, by TCP"
LOCK_UNLOCK: Final = "lock + unlock, by TCP"
ICEBERG: Final = "Iceberg commit"
READING_ALONE: Final = "get_table, 16 readers"
READING_BESIDE: Final = "get_table, 16 readers beside 16 writers"
READERS: Final = 16
# A call of theirs takes seconds where many clients make it.
LONGER: Final = {ALTER_PARTITIONS: 3}

MakeScripts = Callable[[Side, Caller, int], Sequence[MakeScript]]


def writers(clients: Sequence[int]) -> Iterator[Operation]:
    """All over binary TCP."""
    rows: dict[str, MakeScripts] = {
        CREATE_DROP: create_and_drop,
        ADD_TO_ONE: lambda side, caller, count: _add_partitions(side, caller, count, 1),
        ADD_TO_MANY: lambda side, caller, count: _add_partitions(side, caller, count, TABLES),
        GET_ALTER: get_and_alter,
        ALTER_PARTITIONS: _alter_partitions,
        OPEN_COMMIT: open_and_commit,
        LOCK_UNLOCK: lock_and_unlock,
        ICEBERG: _commit_of_iceberg,
    }
    for name, scripts in rows.items():
        for count in clients:
            yield Loaded(name, count, scripts, sides=PORTS, is_warmed=True, factor=LONGER.get(name, 1))
    for name, scripts in ((READING_ALONE, _readers), (READING_BESIDE, _readers_and_writers)):
        yield Loaded(name, READERS, scripts, sides=PORTS, is_warmed=True, label="read", is_rate_of_label=True)


class _Call:
    """A request with `MARK` in it, and the size of its reply once it has been seen."""

    def __init__(self, caller: Caller, method: str, *arguments: Any) -> None:
        self._caller = caller
        self._parts = caller.speech.request(method, *arguments).split(MARK.encode())
        self.reply_bytes: int | None = None

    def sent(self, number: int) -> bytes:
        return (b"%08d" % number).join(self._parts)

    def try_out(self, number: int) -> None:
        self.reply_bytes = self._caller.seen(self.sent(number))[0]

    def step(self, number: int, label: str | None = None) -> Step:
        return Step(self.sent(number), self.reply_bytes, label)


def _numbers() -> Iterator[int]:
    """Of no other turn: each begins with the present millisecond, and a client makes fewer than one call in each."""
    return itertools.count(time.time_ns() // 1_000_000 % 10 ** len(MARK))


def create_and_drop(side: Side, caller: Caller, clients: int) -> Sequence[MakeScript]:
    def make(client: int) -> MakeScript:
        name = f"short_{client:02}_{MARK}"
        create = _Call(caller, "create_table", table(side.warehouse, DATABASE, name))
        drop = _Call(caller, "drop_table", DATABASE, name, True)
        for call in (create, drop):
            call.try_out(0)

        def script() -> Script:
            for number in _numbers():
                yield create.step(number)
                yield drop.step(number, "call")

        return lambda _: script()

    return [make(client) for client in range(clients)]


def _add_partitions(side: Side, caller: Caller, clients: int, tables: int) -> Sequence[MakeScript]:
    made = _existing(side, caller, [f"added_to_{number:02}" for number in range(tables)], is_partitioned=True)

    def make(client: int) -> MakeScript:
        add = _Call(caller, "add_partition", _partition(made[client % tables], MARK, client))
        add.try_out(next(_numbers()))

        def script() -> Script:
            for number in _numbers():
                yield add.step(number, "call")

        return lambda _: script()

    return [make(client) for client in range(clients)]


def get_and_alter(side: Side, caller: Caller, clients: int) -> Sequence[MakeScript]:
    """As Spark notes the statistics of a table that it has written."""
    made = _existing(side, caller, [f"altered_{client:02}" for client in range(clients)])

    def make(client: int) -> MakeScript:
        of_spark = {f"spark.sql.statistics.{name}": MARK for name in ("numRows", "totalSize")}
        made[client].parameters |= of_spark
        name = made[client].tableName
        alter = _Call(caller, "alter_table", DATABASE, name, made[client])
        get = _Call(caller, "get_table", DATABASE, name)
        for call in (alter, get):
            call.try_out(0)

        def script() -> Script:
            for number in _numbers():
                yield get.step(number)
                yield alter.step(number, "call")

        return lambda _: script()

    return [make(client) for client in range(clients)]


def _readers(side: Side, caller: Caller, clients: int) -> Sequence[MakeScript]:
    """Of tables that do not change."""
    made = _existing(side, caller, [f"read_{client:02}" for client in range(clients)])

    def make(client: int) -> MakeScript:
        get = _Call(caller, "get_table", DATABASE, made[client].tableName)
        get.try_out(0)
        return lambda _: repeating([get.step(0, "read")])

    return [make(client) for client in range(clients)]


def _readers_and_writers(side: Side, caller: Caller, clients: int) -> Sequence[MakeScript]:
    return [*_readers(side, caller, clients), *get_and_alter(side, caller, clients)]


def _alter_partitions(side: Side, caller: Caller, clients: int) -> Sequence[MakeScript]:
    """Two requests in turns, made beforehand: each changes all partitions of a table."""
    names = [f"many_altered_{client:02}" for client in range(clients)]
    made = _existing(side, caller, names, is_partitioned=True, partition_count=PARTITIONS)

    def make(client: int) -> MakeScript:
        calls = []
        for value in ("1", "2"):
            changed = _partitions(made[client], PARTITIONS)
            for each in changed:
                each.parameters["numRows"] = value
            calls.append(_Call(caller, "alter_partitions", DATABASE, made[client].tableName, changed))
            calls[-1].try_out(0)

        def script() -> Script:
            for call in itertools.cycle(calls):
                yield call.step(0, "call")

        return lambda _: script()

    return [make(client) for client in range(clients)]


def _commit_of_iceberg(side: Side, caller: Caller, clients: int) -> Sequence[MakeScript]:
    """What PyIceberg's catalog asks for in a commit, with the expected parameter of Iceberg's Java client."""
    names = [f"iceberg_{client:02}" for client in range(clients)]
    known = set(caller.call("get_tables", DATABASE, "iceberg_*"))
    for name in names:
        if name not in known:
            caller.call("create_table", _iceberg_table(side, name, "00000000", "00000000"))
    return [_iceberg_client(side, caller, name) for name in names]


def _iceberg_client(side: Side, caller: Caller, name: str) -> MakeScript:
    speech = caller.speech
    before, after = "B" * len(MARK), MARK
    component = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, DATABASE, name, isAcid=True)
    lock = _Call(caller, "lock", LockRequest([component], user="bench", hostname="localhost"))
    get = _Call(caller, "get_table", DATABASE, name)
    unlock = speech.request_with_id("unlock", UnlockRequest(ID))
    options = {
        "DO_NOT_UPDATE_STATS": "true",
        "expected_parameter_key": "metadata_location",
        "expected_parameter_value": _metadata(side, name, before),
    }
    new = _iceberg_table(side, name, after, before)
    alter = _Call(caller, "alter_table_with_environment_context", DATABASE, name, new, EnvironmentContext(options))
    # A turn begins with a new table: what an earlier one has committed is not known to it.
    drop, create = _Call(caller, "drop_table", DATABASE, name, False), _Call(caller, "create_table", new)

    def altering(call: _Call, number: int) -> bytes:
        return call.sent(number + 1).replace(before.encode(), b"%08d" % number)

    drop.reply_bytes = caller.seen(drop.sent(0))[0]
    create.reply_bytes = caller.seen(altering(create, 0))[0]
    alter.reply_bytes = caller.seen(altering(alter, 1))[0]
    get.try_out(0)
    lock.reply_bytes, head = caller.seen(lock.sent(0))
    unlock_bytes, _ = caller.seen(unlock(speech.id_in(head)))

    def script() -> Script:
        numbers = _numbers()
        first = next(numbers)
        yield drop.step(0)
        yield Step(altering(create, first - 2), create.reply_bytes, None)
        yield Step(altering(alter, first - 1), alter.reply_bytes, None)
        yield from commits(first, numbers)

    def commits(first: int, numbers: Iterator[int]) -> Script:
        for number in itertools.chain([first], numbers):
            head = yield lock.step(0)
            yield get.step(0)
            yield Step(altering(alter, number), alter.reply_bytes, None)
            yield Step(unlock(speech.id_in(head)), unlock_bytes, "call")

    return lambda _: script()


def _metadata(side: Side, name: str, number: str) -> str:
    file = f"{number}-9a1f4a2e-7c0f-4d0b-8a55-0c8fb0a3b1de.metadata.json"
    return f"file:{side.warehouse}/{DATABASE}.db/{name}/metadata/{file}"


def _iceberg_table(side: Side, name: str, number: str, previous: str) -> Table:
    parameters = {
        "EXTERNAL": "TRUE",
        "table_type": "ICEBERG",
        "metadata_location": _metadata(side, name, number),
        "previous_metadata_location": _metadata(side, name, previous),
        "write.parquet.compression-codec": "zstd",
    }
    cols = [FieldSchema(f"column_{at}", "string") for at in range(10)]
    location = f"file:{side.warehouse}/{DATABASE}.db/{name}"
    serde = SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe")
    formats = ("org.apache.hadoop.mapred.FileInputFormat", "org.apache.hadoop.mapred.FileOutputFormat")
    sd = StorageDescriptor(cols, location, *formats, serdeInfo=serde)
    return Table(
        tableName=name, dbName=DATABASE, owner="bench", createTime=MADE, lastAccessTime=MADE, sd=sd,
        partitionKeys=[], parameters=parameters, tableType="EXTERNAL_TABLE",
    )  # fmt: skip


def _partition(of_table: Table, value: str, client: int) -> Partition:
    """Its values are those of no other client."""
    made = partition(of_table, client)
    made.values[0] = f"n{value}"
    made.sd = descriptor(f"{of_table.sd.location}/name=n{value}/number={client}/day={made.values[2]}", of_table.sd.cols)
    return made


def _partitions(of_table: Table, count: int) -> list[Partition]:
    return [partition(of_table, number) for number in range(count)]


def _existing(
    side: Side, caller: Caller, names: Sequence[str], *, is_partitioned: bool = False, partition_count: int = 0
) -> list[Table]:
    """Tables with these names, made where they are not."""
    known = set(caller.call("get_all_tables", DATABASE))
    made = [table(side.warehouse, DATABASE, name, is_partitioned=is_partitioned) for name in names]
    for each in made:
        if each.tableName not in known:
            caller.call("create_table", each)
            if partition_count:
                caller.call("add_partitions", _partitions(each, partition_count))
    return made
