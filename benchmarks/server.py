"""The real server as a process: start, memory, and long lists of partitions from SQLite that nothing has cached."""

import argparse
import statistics
import tempfile
from pathlib import Path
from time import perf_counter

from benchmarks.report import print_table
from hms_gateway.metastore.ports.store import NewPartition, StoredTable
from hms_gateway.rpc.structs import Database, FieldSchema, Partition, SerDeInfo, SkewedInfo, StorageDescriptor, Table
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.writing.store import open_store
from tests.support.server import GatewayServer, basic

COLUMNS = 20
BATCH = 5_000
MIB = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder)
        starts = [start_seconds(data_dir / f"start-{run}") for run in range(arguments.runs)]
        later_starts = [start_seconds(data_dir / f"start-{run}") for run in range(arguments.runs)]
        fill(data_dir / "lists" / "metastore.db", {"ten_thousand": 10_000, "hundred_thousand": 100_000})
        with GatewayServer(data_dir / "lists") as server:
            idle = resident_bytes(server.pid)
            ten = [stream(server, "ten_thousand") for _ in range(arguments.runs)]
            before = resident_bytes(server.pid)
            hundred = [stream(server, "hundred_thousand") for _ in range(arguments.runs)]
            growth = peak_resident_bytes(server.pid) - before
    print_table(
        "The server as a process",
        ["what", "median", "goal"],
        [
            ["start to first answer (first start: certificate, password, schema)", ms(starts), "< 1500 ms"],
            ["start to first answer, later starts", ms(later_starts), "< 500 ms"],
            ["resident memory, idle", f"{idle / MIB:.0f} MiB", "< 120 MB"],
            ["get_partitions 10,000, uncached: first byte", ms([first for first, _, _ in ten]), "< 50 ms"],
            ["get_partitions 10,000, uncached: whole", ms([whole for _, whole, _ in ten]), ""],
            ["get_partitions 100,000: first byte", ms([first for first, _, _ in hundred]), ""],
            ["get_partitions 100,000: whole", ms([whole for _, whole, _ in hundred]), ""],
            ["get_partitions 100,000: bytes", f"{hundred[0][2] / MIB:.0f} MiB", ""],
            ["resident memory, growth while 100,000 are sent", f"{growth / MIB:.0f} MiB", "< 64 MiB"],
        ],
    )


def ms(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1000:.0f} ms"


def start_seconds(data_dir: Path) -> float:
    """From the start of the process to the answer of a call."""
    begin = perf_counter()
    with GatewayServer(data_dir) as server:
        status, _ = server.post(b'[1,"get_all_databases",1,1,{}]')
        assert status == 200
        return perf_counter() - begin


def stream(server: GatewayServer, table: str) -> tuple[float, float, int]:
    """Seconds to the first byte of the body, to the last, and the body's bytes."""
    body = b'[1,"get_partitions",1,1,{"1":{"str":"sales"},"2":{"str":"%s"},"3":{"i16":-1}}]' % table.encode()
    with server.connection() as connection:
        connection.connect()
        begin = perf_counter()
        connection.request("POST", server.url.split(str(server.port))[1], body, basic(server.user, server.password))
        answer = connection.getresponse()
        size = len(answer.read(1))
        first = perf_counter() - begin
        while chunk := answer.read(1 << 16):
            size += len(chunk)
        return first, perf_counter() - begin, size


def fill(database: Path, partitions: dict[str, int]) -> None:
    """Tables in `sales` with so many partitions each."""
    database.parent.mkdir(parents=True, exist_ok=True)
    store = open_store(f"sqlite:///{database}", SystemClock(), Limits())
    store.write(lambda tx: tx.insert_database(Database("sales", None, "file:/warehouse/sales.db", {})))
    for name, count in partitions.items():
        table = store.write(lambda tx, name=name: add_table(tx, name))
        for start in range(0, count, BATCH):
            batch = [partition(table, number) for number in range(start, min(start + BATCH, count))]
            store.write(lambda tx, table=table, batch=batch: tx.insert_partitions(table, batch))
    store.close()


def add_table(tx, name: str) -> StoredTable:
    database = tx.database("sales")
    location = f"file:/warehouse/sales.db/{name}"
    keys = [FieldSchema("ds", "string"), FieldSchema("number", "int")]
    table = Table(
        tableName=name, dbName="sales", owner="bench", createTime=0, lastAccessTime=0, retention=0,
        sd=descriptor(location), partitionKeys=keys, parameters={}, tableType="MANAGED_TABLE",
    )  # fmt: skip
    tx.insert_table(database.database_id, table)
    return tx.table("sales", name)


def partition(table: StoredTable, number: int) -> NewPartition:
    values = [f"2026-01-{number % 28 + 1:02}", str(number)]
    name = f"ds={values[0]}/number={values[1]}"
    location = f"{table.table.sd.location}/{name}"
    parameters = {"transient_lastDdlTime": "1700000000", "numFiles": "1", "totalSize": "108", "numRows": "0"}
    struct = Partition(
        values, "sales", table.table.tableName, 1_700_000_000, 0, descriptor(location), parameters
    )  # fmt: skip
    return NewPartition(name, struct)


def descriptor(location: str) -> StorageDescriptor:
    columns = [
        FieldSchema(f"column_{number}", "decimal(18,2)", f"what column {number} says") for number in range(COLUMNS)
    ]
    return StorageDescriptor(
        cols=columns,
        location=location,
        inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=SerDeInfo(None, "org.apache.hadoop.hive.ql.io.orc.OrcSerde", {"serialization.format": "1"}),
        bucketCols=[],
        sortCols=[],
        parameters={},
        skewedInfo=SkewedInfo([], [], {}),
        storedAsSubDirectories=False,
    )


def resident_bytes(pid: int) -> int:
    return _status(pid, "VmRSS")


def peak_resident_bytes(pid: int) -> int:
    return _status(pid, "VmHWM")


def _status(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


if __name__ == "__main__":
    main()
