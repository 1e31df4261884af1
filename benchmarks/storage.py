"""What the store costs: `python -m benchmarks.storage [--postgres URL] [--large N]`.

A table of 20 columns with two keys, in a database that holds other partitions besides (`--large N` of them; a million
takes a few minutes to make). The reference is the store's own plain path: every partition as an object. Memory and
first byte are those of the streamed list.
"""

import argparse
import os
import statistics
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import perf_counter

from benchmarks.report import median_seconds, print_table
from hms_gateway.metastore.filters.binding import bind
from hms_gateway.metastore.filters.grammar import parse_filter
from hms_gateway.metastore.ports.store import Event, NewPartition, Selection, StoredTable, Transaction
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.rpc.structs import Database, FieldSchema, Partition, SerDeInfo, SkewedInfo, StorageDescriptor, Table
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.migrations.revisions import migrate
from hms_gateway.storage.writing.store import SqlStore, open_store

COUNTS = (10, 100, 1_000, 10_000)
KEYS = [("day", "string"), ("hour", "int")]
LOCATION = "hdfs://namenode.example:9000/warehouse/sales.db"
PARAMETERS = {
    "transient_lastDdlTime": "1700000000",
    "numFiles": "3",
    "totalSize": "123456",
    "numRows": "1000",
    "rawDataSize": "99999",
    "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}',
}


def descriptor(location: str) -> StorageDescriptor:
    return StorageDescriptor(
        cols=[
            FieldSchema(f"column_{number:02}", "decimal(10,2)", f"what column {number} means") for number in range(20)
        ],
        location=location,
        inputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=SerDeInfo(serializationLib="a.ParquetSerDe", parameters={"serialization.format": "1"}),
        bucketCols=[],
        sortCols=[],
        parameters={},
        skewedInfo=SkewedInfo([], [], {}),
        storedAsSubDirectories=False,
    )


def partitions(table: str, start: int, count: int) -> list[NewPartition]:
    found = []
    for number in range(start, start + count):
        values = [f"2024-{number // 24:06}", str(number % 24)]
        name = make_name([key for key, _ in KEYS], values)
        location = f"{LOCATION}/{table}/{name}"
        stored = Partition(values, "sales", table, 1_700_000_000, 0, descriptor(location), PARAMETERS)
        found.append(NewPartition(name, stored))
    return found


def create_table(store: SqlStore, name: str, count: int) -> StoredTable:
    table = Table(
        tableName=name,
        dbName="sales",
        createTime=0,
        sd=descriptor(f"{LOCATION}/{name}"),
        partitionKeys=[FieldSchema(*key) for key in KEYS],
        parameters=PARAMETERS,
        tableType="MANAGED_TABLE",
    )

    def create(transaction: Transaction) -> None:
        found = transaction.database("sales")
        made = found.database_id if found else transaction.insert_database(Database(name="sales"))
        transaction.insert_table(made, table)

    store.write(create)
    for start in range(0, count, 10_000):
        add(store, stored_table(store, name), partitions(name, start, min(10_000, count - start)))
    return stored_table(store, name)


def stored_table(store: SqlStore, name: str) -> StoredTable:
    found = store.read(lambda snapshot: snapshot.table("sales", name))
    assert found is not None
    return found


def add(store: SqlStore, table: StoredTable, new: list[NewPartition]) -> None:
    store.write(lambda transaction: transaction.insert_partitions(table, new))


def read_list(store: SqlStore, table: StoredTable, selection: Selection) -> tuple[float, int]:
    """Seconds to the first chunk, and bytes."""
    start = perf_counter()
    found = store.read(lambda snapshot: snapshot.partition_list(table, selection))
    chunks = found.tjson_chunks()
    size = len(next(chunks, b""))
    first = perf_counter() - start
    return first, size + sum(map(len, chunks))


def milliseconds(work: Callable[[], object], runs: int = 7) -> str:
    return f"{median_seconds(work, runs) * 1000:.2f}"


def report_lists(store: SqlStore, tables: dict[int, StoredTable]) -> None:
    rows = []
    for count, table in tables.items():
        runs = 7 if count <= 10_000 else 3
        firsts = [read_list(store, table, Selection())[0] for _ in range(runs)]
        objects = (
            milliseconds(lambda one=table: store.read(lambda snapshot: snapshot.partitions(one, Selection())), 3)
            if count <= 10_000
            else "–"
        )
        whole = milliseconds(lambda one=table: read_list(store, one, Selection()), runs)
        rows.append((f"{count:,}", whole, f"{statistics.median(firsts) * 1000:.2f}", objects))
    print_table("Listing, ms", ("partitions", "as TJSON", "first chunk", "as objects"), rows)


def report_inserts(store: SqlStore) -> None:
    rows = []
    for count in COUNTS:
        times = []
        for run in range(3):
            table = create_table(store, f"insert_{count}_{run}", 0)
            new = partitions(table.table.tableName or "", 0, count)
            start = perf_counter()
            add(store, table, new)
            times.append(perf_counter() - start)
        rows.append((f"{count:,}", f"{statistics.median(times) * 1000:.2f}"))
    print_table("Adding, ms", ("partitions", "one call"), rows)


def report_selections(store: SqlStore, tables: dict[int, StoredTable]) -> None:
    count, table = max(tables.items())
    middle = count // 48
    selections = {
        "one by name": Selection(names=[make_name(["day", "hour"], [f"2024-{middle:06}", "7"])]),
        "1,000 by name": Selection(names=[new.name for new in partitions("", 0, 1_000)]),
        "first 10": Selection(limit=10),
        "partial values, leading key": Selection(partial_values=[f"2024-{middle:06}"]),
        "partial values, second key": Selection(partial_values=[None, "7"], limit=100),
    }
    for text in (
        f"day = '2024-{middle:06}' and hour = 7",
        f"day = '2024-{middle:06}'",
        f"day >= '2024-{middle:06}' and day < '2024-{middle + 2:06}' and hour > 20",
        f"day like '2024-{middle:06}.*'",
        "hour = 99",
        "hour = 7",
    ):
        parsed = parse_filter(text)
        assert parsed is not None
        selections[f"`{text}`"] = Selection(filter=bind(parsed, KEYS))
    rows = []
    for what, selection in selections.items():
        found = store.read(lambda snapshot, one=selection: snapshot.count_partitions(table, one))
        rows.append((what, f"{found:,}", milliseconds(lambda one=selection: read_list(store, table, one))))
    print_table(f"Selecting from {count:,} partitions, ms", ("what", "found", "as TJSON"), rows)


def report_changes(store: SqlStore, tables: dict[int, StoredTable]) -> None:
    count, table = max(tables.items())
    places = [f"{LOCATION}/{table.table.tableName}", f"{LOCATION}/elsewhere"]

    def move() -> None:
        store.write(lambda transaction: transaction.move_partition_locations(table.table_id, *places))
        places.reverse()

    columns = descriptor("").cols or []
    cascade = milliseconds(
        lambda: store.write(lambda transaction: transaction.replace_partition_columns(table.table_id, columns))
    )
    rows = [("move all locations", milliseconds(move)), ("replace all columns", cascade)]
    thousand = store.read(lambda snapshot: snapshot.partitions(table, Selection(limit=1_000)))
    update = milliseconds(lambda: store.write(lambda transaction: transaction.update_partitions(table, thousand)), 3)
    rows.append(("update 1,000 partitions", update))
    print_table(f"Changing a table of {count:,} partitions, ms", ("what", "one call"), rows)


def report_small_calls(store: SqlStore) -> None:
    event = Event("X", "sales", None, "{}")
    rows = [
        ("version", f"{median_seconds(store.version, 2_000) * 1e6:.0f}"),
        ("read nothing", f"{median_seconds(lambda: store.read(lambda snapshot: None), 500) * 1e6:.0f}"),
        ("get a database", f"{median_seconds(lambda: store.read(lambda one: one.database('sales')), 500) * 1e6:.0f}"),
        ("get a table", f"{median_seconds(lambda: stored_table(store, 'list_10'), 500) * 1e6:.0f}"),
        (
            "append an event, durable",
            f"{median_seconds(lambda: store.write(lambda one: one.append_event(event)), 100) * 1e6:.0f}",
        ),
    ]
    if store.data_version() is not None:
        rows.insert(0, ("data_version", f"{median_seconds(store.data_version, 2_000) * 1e6:.1f}"))
    threads = 64
    with ThreadPoolExecutor(threads) as pool:
        start = perf_counter()
        list(pool.map(lambda _: store.write(lambda one: one.append_event(event)), range(4_000)))
        each = (perf_counter() - start) / 4_000
    rows.append((f"the same, {threads} threads, each", f"{each * 1e6:.0f}"))
    print_table("Small calls, µs", ("what", "time"), rows)


@contextmanager
def peak_memory() -> Iterator[list[int]]:
    """Bytes by which resident memory grew at most."""
    result: list[int] = []
    done = threading.Event()
    before = resident_bytes()
    peak = [before]

    def watch() -> None:
        while not done.wait(0.005):
            peak[0] = max(peak[0], resident_bytes())

    thread = threading.Thread(target=watch)
    thread.start()
    yield result
    done.set()
    thread.join()
    result.append(max(peak[0], resident_bytes()) - before)


def resident_bytes() -> int:
    with open("/proc/self/statm") as figures:
        return int(figures.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def report_memory(store: SqlStore, table: StoredTable) -> None:
    with peak_memory() as grown:
        _, size = read_list(store, table, Selection())
    count = table.partition_count
    rows = [(f"{count:,}", f"{size / 1e6:.0f}", f"{grown[0] / 2**20:.1f}")]
    print_table("Memory of a streamed list", ("partitions", "MB sent", "MiB grown"), rows)


def run(url: str, large: int) -> None:
    migrate(url)
    store = open_store(url, SystemClock(), Limits())
    start = perf_counter()
    counts = [*COUNTS, large] if large else list(COUNTS)
    tables = {count: create_table(store, f"list_{count}", count) for count in counts}
    print(f"\n# Storage, {url.partition(':')[0]}, {sum(counts):,} partitions made in {perf_counter() - start:.1f} s")
    report_memory(store, tables[max(tables)])
    report_lists(store, tables)
    report_selections(store, tables)
    report_changes(store, tables)
    report_inserts(store)
    report_small_calls(store)
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", help="URL of an empty PostgreSQL database to measure as well")
    parser.add_argument("--large", type=int, default=0, help="partitions of one more, larger table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(f"sqlite:///{folder}/catalog.sqlite", options.large)
    if options.postgres:
        run(options.postgres, options.large)


if __name__ == "__main__":
    main()
