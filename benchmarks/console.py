"""What the console asks for in a large catalog, and its first paint: `python -m benchmarks console [--names N] …`.

Search as one types over N tables in a thousand databases, and one table with a million partitions: its first page, a
range filter over half of them, their number, the map over two keys; on SQLite, and on a PostgreSQL and a MariaDB of its
own, over HTTPS, each call with other arguments. With a Chromium also how long it takes from the address to the first
paint and until nothing is loading any more, with an empty cache.
"""

import argparse
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from sqlalchemy import Connection, create_engine, insert

from benchmarks.million import Caller, Taken, calling, own_mariadb, own_postgres
from benchmarks.report import print_table
from benchmarks.server import descriptor
from hms_gateway.metastore.ports.store import NewPartition
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.rpc.structs import Database, FieldSchema, Partition, Table
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.migrations.revisions import migrate
from hms_gateway.storage.schema.catalog import DATABASES, TABLES
from hms_gateway.storage.writing.store import open_store
from tests.interop.page_server import find_chromium
from tests.support.chromium import Page, chromium
from tests.support.private_mariadb import MariadbUnavailable
from tests.support.private_postgres import PostgresUnavailable
from tests.support.server import GatewayServer, basic

DATABASES_COUNT: Final = 1_000
SUBJECTS: Final = ("orders", "customers", "payments", "shipments", "invoices", "clicks", "sessions", "refunds")
KINDS: Final = ("daily", "raw", "clean", "history", "snapshot", "by_region", "staging")
KEYS: Final = (("ds", "string"), ("region", "string"), ("number", "int"))
REGIONS: Final = 20
NUMBERS: Final = 50
BATCH: Final = 10_000
RUNS: Final = 5
PAGE_NAMES: Final = 101
PAINT_RUNS: Final = 5
KINDS_OF_DATABASES: Final = ("sqlite", "postgres", "mariadb")


class Question(NamedTuple):
    """What is asked; the turn makes each call another one."""

    what: str
    ask: Callable[[Caller, int], Taken]
    goal: str = ""


def table_name(number: int) -> str:
    return f"{SUBJECTS[number % 8]}_{KINDS[number % 7]}_{number:07}"


def fill_names(connection: Connection, count: int) -> None:
    """Tables as rows: of nothing but their names is asked."""
    names = [{"database_id": 1_000 + each, "name": f"team_{each:04}"} for each in range(DATABASES_COUNT)]
    connection.execute(insert(DATABASES), names)
    for begin in range(0, count, BATCH):
        rows = [
            {
                "database_id": 1_000 + number % DATABASES_COUNT,
                "name": table_name(number),
                "table_type": "EXTERNAL_TABLE",
                "create_time": 0,
                "last_access_time": 0,
                "retention": 0,
                "location": f"hdfs://namenode.example:9000/warehouse/{table_name(number)}",
                "columns": '"1":{"str":"a"}' * 20,
                "partition_count": 0,
            }
            for number in range(begin, min(begin + BATCH, count))
        ]
        connection.execute(insert(TABLES), rows)


def partition_values(number: int) -> list[str]:
    """Days, each with as many regions, each with as many numbers."""
    day, rest = divmod(number, REGIONS * NUMBERS)
    region, place = divmod(rest, NUMBERS)
    return [day_of(day), f"region-{region:02}", str(place)]


def day_of(day: int) -> str:
    return f"{2000 + day // 336}-{day // 28 % 12 + 1:02}-{day % 28 + 1:02}"


def fill_partitions(url: str, count: int) -> None:
    store = open_store(url, SystemClock(), Limits())
    where = "hdfs://namenode.example:9000/warehouse/sales.db/parts"
    keys = [FieldSchema(*key) for key in KEYS]
    table = Table("parts", "sales", "bench", 0, 0, 0, descriptor(where), keys, {}, tableType="MANAGED_TABLE")
    database = Database("sales", None, "file:/warehouse/sales.db", {})
    database_id = store.write(lambda tx: tx.insert_database(database))
    store.write(lambda tx: tx.insert_table(database_id, table))
    stored = store.read(lambda snapshot: snapshot.table("sales", "parts"))
    parameters = {"numFiles": "1", "totalSize": "108", "numRows": "10"}
    for begin in range(0, count, BATCH):
        new = []
        for number in range(begin, min(begin + BATCH, count)):
            values = partition_values(number)
            name = make_name([key for key, _ in KEYS], values)
            part = Partition(values, "sales", "parts", 1, 0, descriptor(f"{where}/{name}"), parameters)
            new.append(NewPartition(name, part))
        store.write(lambda tx, new=new: tx.insert_partitions(stored, new))
    store.close()


def searches(count: int) -> Iterator[Question]:
    def search(text: Callable[[int], str], most: int = 20) -> Callable[[Caller, int], Taken]:
        return lambda caller, turn: caller.call("search_names", {"1": {"str": text(turn)}, "2": {"i32": most}})

    yield Question("search, one letter", search(lambda turn: "osrpi"[turn]), "50 ms")
    yield Question("search, one letter of nearly all names", search(lambda turn: "ea_s0"[turn]), "50 ms")
    yield Question("search, begin of many names", search(lambda turn: SUBJECTS[turn]), "50 ms")
    yield Question("search, middle of many names", search(lambda turn: KINDS[turn]), "50 ms")
    yield Question("search, end of one name", search(lambda turn: f"{count // 2 + turn:07}"), "50 ms")
    yield Question("search, a whole name", search(lambda turn: table_name(count // 2 + turn)), "50 ms")
    yield Question("search, no name", search(lambda turn: f"nothing{turn}"), "50 ms")
    yield Question("search, two runs", search(lambda turn: f"{SUBJECTS[turn][:4]}*{count // 2 + turn:07}"), "50 ms")
    yield Question("search in a database", search(lambda turn: f"team_000{turn}.order"), "50 ms")
    yield Question("tables of a database, 1,000", search(lambda turn: f"team_000{turn}.", 1_000), "50 ms")


def of_partitions(count: int) -> Iterator[Question]:
    of_table: dict[str, object] = {"1": {"str": "sales"}, "2": {"str": "parts"}}
    middle = count // 2 // (REGIONS * NUMBERS)

    def half(turn: int) -> dict[str, object]:
        return {"3": {"str": f"ds >= '{day_of(middle + turn)}'"}}

    def some(turn: int) -> dict[str, object]:
        return {"3": {"str": f"number >= {NUMBERS - 3 - turn} and region = 'region-{turn:02}'"}}

    page: dict[str, object] = {"4": {"str": ""}, "5": {"tf": 1}, "6": {"i32": PAGE_NAMES}}
    wanted = {"": lambda turn: {"3": {"str": ""}}, ", half of all": half, ", by the second and third key": some}
    for what, filter_of in wanted.items():
        for method, more, goal in (
            ("list_partition_names", page, "500 ms"),
            ("get_num_partitions_by_filter", {}, ""),
            ("count_partition_groups", {"4": {"i32": 2}, "5": {"i32": 5_000}}, ""),
        ):
            yield Question(
                f"{method}{what}",
                lambda caller, turn, method=method, more=more, filter_of=filter_of: caller.call(
                    method, {**of_table, **filter_of(turn), **more}
                ),
                goal,
            )


def asked(server: GatewayServer, questions: Iterator[Question]) -> Iterator[tuple[str, str, str, str]]:
    with calling(server) as caller:
        for question in questions:
            taken = [question.ask(caller, turn).whole * 1_000 for turn in range(RUNS)]
            yield question.what, f"{statistics.median(taken):.1f}", f"{max(taken):.1f}", question.goal


def paints(server: GatewayServer, folder: Path) -> Iterator[tuple[str, str, str, str, str]]:
    pages = {"start page": ("", "300 ms"), "a table's partitions": ("t/sales/parts/partitions", "500 ms")}
    with chromium(folder) as browser:
        page = browser.page()
        header = basic(server.user, server.password)["Authorization"]
        kept = f'sessionStorage.setItem("hms-gateway", JSON.stringify({{user: "admin", header: "{header}"}}))'
        page.send("Page.addScriptToEvaluateOnNewDocument", source=kept)
        page.size(1280, 800)
        for what, (address, goal) in pages.items():
            found = [
                _painted(page, f"https://127.0.0.1:{server.port}/ui/?{turn}#/{address}") for turn in range(PAINT_RUNS)
            ]
            painted, done, requests = (statistics.median(each) for each in zip(*found, strict=True))
            yield what, f"{painted:.0f}", f"{done:.0f}", f"{requests:.0f}", goal


def _painted(page: Page, url: str) -> tuple[float, float, int]:
    """Milliseconds from the address to the first paint, and to the last change of what is shown; requests."""
    page.open("about:blank")
    page.wait("location.href === 'about:blank'")
    page.send("Network.clearBrowserCache")
    page.requests.clear()
    page.open(url)
    page.wait("document.querySelector('h1') && !document.querySelector('.loading')")
    painted = page.wait("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    # What was asked for last has come then.
    done = page.run("Math.max(...performance.getEntriesByType('resource').map(({ responseEnd }) => responseEnd))")
    return painted, done, len(page.requests)


def report(url: str, folder: Path, names: int, partitions: int) -> None:
    migrate(url)
    fill_partitions(url, partitions)
    engine = create_engine(url)
    with engine.begin() as connection:
        fill_names(connection, names)
    engine.dispose()
    kind = url.partition(":")[0].partition("+")[0]
    with GatewayServer(folder / "server", database=url) as server:
        rows = [*asked(server, searches(names)), *asked(server, of_partitions(partitions))]
        title = f"{names:,} names, {partitions:,} partitions, {kind}"
        print_table(title, ("what", "median, ms", "longest, ms", "goal"), rows)
        if find_chromium() is not None:
            columns = ("page, cold cache", "first paint, ms", "all there, ms", "requests", "goal")
            print_table(f"First paint, {kind}", columns, list(paints(server, folder / "chromium")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="+", choices=KINDS_OF_DATABASES, default=KINDS_OF_DATABASES)
    options = parser.parse_args()
    if "sqlite" in options.only:
        with tempfile.TemporaryDirectory() as folder:
            report(f"sqlite:///{folder}/metastore.db", Path(folder), options.names, options.partitions)
    for kind, own in (("postgres", own_postgres), ("mariadb", own_mariadb)):
        if kind in options.only:
            try:
                with own() as url, tempfile.TemporaryDirectory() as folder:
                    report(url, Path(folder), options.names, options.partitions)
            except (PostgresUnavailable, MariadbUnavailable) as reason:
                print(f"no {kind}: {reason}")


if __name__ == "__main__":
    main()
