"""Jobs that change or read much in many small batches: what they find, what they are given, what they leave behind."""

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from hms_gateway.pipeline.audit.apply_job import ApplyArguments
from hms_gateway.pipeline.audit.applying import PlanHead, PlannedFix, write_plan
from hms_gateway.pipeline.audit.places import Fix
from hms_gateway.pipeline.compact.job import CleanArguments, CompactArguments, compact
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.crawl.job import CrawlArguments
from hms_gateway.pipeline.crawl.steps import table_of
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.migrate.job import MigrateArguments
from hms_gateway.pipeline.snapshot.job import SnapshotArguments
from hms_gateway.pipeline.stats.job import StatsArguments
from hms_gateway.rpc.structs import AddPartitionsRequest, NotificationEventRequest, Partition
from tests.pipeline.audit.realizing import realize
from tests.pipeline.audit.test_audit import ARGUMENTS as AUDIT_ARGUMENTS
from tests.pipeline.audit.test_audit import found, planted
from tests.pipeline.compact import warehouse
from tests.pipeline.content import Metastore, add_partitions, make_table
from tests.pipeline.crawl.trees import plant
from tests.pipeline.faults.killing import Given
from tests.pipeline.snapshot.catalogs import timeless, whole
from tests.pipeline.snapshot.test_job import content
from tests.support.server import GatewayServer

OLD_SECONDS = 1_700_000_000
# What is to happen once to an object.
ONCE = ("CREATE_DATABASE", "CREATE_TABLE", "ADD_PARTITION", "DROP_PARTITION", "DROP_TABLE")


@dataclass
class Place:
    """An empty gateway, and folders; at the same path for each run of a job."""

    folder: Path
    metastore: Metastore
    source: Metastore

    @property
    def server(self) -> GatewayServer:
        assert self.metastore.server is not None
        return self.metastore.server

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    def options(self, **changed: Any) -> JobOptions:
        values = {"state": str(self.folder / "state"), "calls": 2, "patience_seconds": 120, "yes": True}
        values["roots"] = (str(self.lake),)
        return JobOptions(connection=Connection.of(self.metastore.options), **{**values, **changed})


@contextmanager
def opened(folder: Path, source: Metastore) -> Iterator[Place]:
    shutil.rmtree(folder, ignore_errors=True)
    with GatewayServer(folder / "gateway") as running:
        certificate = str(running.data_dir / "certificate.pem")
        options = {"url": running.url, "user": running.user, "password": running.password, "cafile": certificate}
        yield Place(folder, Metastore(options, running), source)


def catalog(place: Place, run: str) -> Any:
    """Everything in the catalog, what has happened to it, and the files beside, without moments and the run's name."""
    with place.metastore.client() as client:
        objects = timeless(whole(client), place.folder)
        events = client.call("get_next_notification", NotificationEventRequest(lastEvent=0)).events
    happened = Counter(name for event in events if event.eventType in ONCE for name in _names(event))
    text = json.dumps([sorted(map(list, objects.items())), files(place.lake)], sort_keys=True)
    return json.loads(text.replace(run, "RUN")), happened


def _names(event: Any) -> Iterator[tuple[str, ...]]:
    values = json.loads(event.message).get("partitions") or [{}]
    for each in values:
        yield event.eventType, event.dbName, event.tableName or "", *map(str, each.values())


def files(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(path.relative_to(folder)), path.stat().st_size) for path in folder.rglob("*") if path.is_file())


@dataclass(frozen=True)
class Case:
    """`fill` puts something into a place and says what the job is given; `left` is what the job has left behind."""

    job: str
    fill: Callable[[Place], tuple[Any, dict[str, Any]]]
    constants: dict[str, int] = field(default_factory=dict)
    left: Callable[[Place, dict[str, Any]], Any] = lambda place, result: catalog(place, result["run"])

    def given(self, place: Place) -> Given:
        arguments, options = self.fill(place)
        return Given(job=self.job, options=place.options(**options), arguments=arguments, constants=self.constants)


def lake_of(place: Place, *names: str) -> None:
    """Files with two columns, of the same age in each run."""
    plant(place.lake, *names)
    for path in place.lake.rglob("*"):
        os.utime(path, (OLD_SECONDS, OLD_SECONDS))


def external(place: Place, name: str, *days: str) -> None:
    """A table over a directory of the lake, with partitions."""
    row = {"database": "default", "table": name, "keys": ["d"], "types": ["string"], "format": "parquet"}
    row |= {"columns": ["id", "note"], "column_types": ["bigint", "string"]}
    with place.metastore.client() as client:
        client.call("create_table", table_of(row, f"file:{place.lake}/{name}"))
        table = client.call("get_table", "default", name)
        parts = [
            Partition(
                values=[day],
                dbName="default",
                tableName=name,
                sd=table_of(row, f"file:{place.lake}/{name}/d={day}").sd,
                parameters={},
            )
            for day in days
        ]
        client.call("add_partitions_req", AddPartitionsRequest(table.dbName, name, parts, False, False))


def fill_crawl(place: Place) -> tuple[Any, dict[str, Any]]:
    lake_of(place, *(f"shop.db/t{n % 2}/a={n % 7}/n={n}/f" for n in range(80)))
    return CrawlArguments(location=str(place.lake), partitions_a_call=5), {}


def fill_stats(place: Place) -> tuple[Any, dict[str, Any]]:
    days = [f"{number:02}" for number in range(40)]
    for name in ("t", "u"):
        lake_of(place, *(f"{name}/d={day}/f" for day in days))
        external(place, name, *days)
    return StatsArguments(), {}


def fill_audit(place: Place) -> tuple[Any, dict[str, Any]]:
    world, _ = planted(place.metastore, 1, "audit_", 16)
    with place.metastore.client() as client:
        realize(world, client)
    return AUDIT_ARGUMENTS, {"only": ("audit_*.*",)}


def findings(place: Place, result: dict[str, Any]) -> Any:
    return found(place.options(), AuditRun(result["run"]))


@dataclass(frozen=True)
class AuditRun:
    run: str


def fill_apply(place: Place) -> tuple[Any, dict[str, Any]]:
    """A third each of partitions without directory, directories without partition, and counts that are not right."""
    names = [f"{number:02}" for number in range(60)]
    gone, new, stale = names[::3], names[1::3], names[2::3]
    lake_of(place, *(f"t/d={day}/f" for day in (*new, *stale)), *(f"t/_temporary/{day}/f" for day in names[:10]))
    external(place, "t", *gone, *stale)
    with place.metastore.client() as client:
        event = client.call("get_current_notificationEventId").eventId
    size = (place.lake / f"t/d={new[0]}/f").stat().st_size

    def action(do: Fix, path: str, partition: str | None, amount: int) -> PlannedFix:
        return PlannedFix(
            do=do,
            says="",
            database="default",
            table="t",
            partition=partition,
            location=f"file:{place.lake}/t/{path}",
            files=amount,
            total_bytes=amount * size,
        )

    actions = [action(Fix.DROP_PARTITION, f"d={day}", f"d={day}", 0) for day in gone]
    actions += [action(Fix.ADD_PARTITION, f"d={day}", f"d={day}", 1) for day in new]
    actions += [action(Fix.SET_COUNTS, f"d={day}", f"d={day}", 1) for day in stale]
    actions += [action(Fix.DELETE_LEFTOVER, "_temporary", None, 10)]
    plan = str(place.folder / "plan.jsonl")
    head = PlanHead(url=place.metastore.options["url"], run="", event=event, quiet_seconds=0)
    write_plan(plan, head, actions)
    return ApplyArguments(plan=plan), {}


def fill_compact(place: Place) -> tuple[Any, dict[str, Any]]:
    with place.metastore.client() as client:
        table = warehouse.make_table(client, "small")
        warehouse.add_partitions(client, table, *map(str, range(24)))
        for number, one in enumerate(warehouse.partitions(client, table).values()):
            warehouse.fill(one.sd.location, seed=number)
    return CompactArguments(target_bytes=1 << 20), {}


def fill_clean(place: Place) -> tuple[Any, dict[str, Any]]:
    """What a run in another state folder has compacted."""
    arguments, _ = fill_compact(place)
    options = place.options(state=str(place.folder / "compacted"))
    assert compact(options, arguments, spark=SparkSession.getActiveSession()).counts["compacted"] == 24
    return CleanArguments(grace_seconds=0), {}


def compacted(place: Place, result: dict[str, Any]) -> Any:
    """Rows and files of the partitions, where they lie, what is beside; sizes differ by the name of the run."""

    def nameless(text: str) -> str:
        return re.sub(r"compact-\d{8}T\d{6}-[0-9a-f]{6}", "RUN", text)

    with place.metastore.client() as client:
        table = client.call("get_table", "lake", "small")
        parts = warehouse.partitions(client, table)
    seen = {
        value: (
            nameless(one.sd.location),
            warehouse.rows(one.sd.location),
            [nameless(path.name) for path in warehouse.data_files(one.sd.location)],
            {name: one.parameters[name] for name in ("numFiles", "numRows", "n")},
        )
        for value, one in parts.items()
    }
    base = Path(table.sd.location.removeprefix("file:"))
    return seen, [nameless(name) for name, _ in files(base)]


def fill_migrate(place: Place) -> tuple[Any, dict[str, Any]]:
    return MigrateArguments(source=Connection.of(place.source.options)), {}


def fill_source(source: Metastore) -> None:
    """More tables, for many batches."""
    with source.client() as client:
        for number in range(20):
            make_table(client, "stock", f"more{number}", ("n", "int"))
            add_partitions(client, "stock", f"more{number}", [[str(each)] for each in range(5)])


def fill_snapshot(place: Place) -> tuple[Any, dict[str, Any]]:
    with place.metastore.client() as client:
        for number in range(12):
            make_table(client, "default", f"t{number}", ("n", "int"))
            add_partitions(client, "default", f"t{number}", [[str(each)] for each in range(5)])
    return SnapshotArguments(path=str(place.folder / "snapshot")), {}


def taken(place: Place, result: dict[str, Any]) -> Any:
    """The snapshot, which has to be the catalog; nothing else lies beside it."""
    path = place.folder / "snapshot"
    with place.metastore.client() as client:
        assert content(path) == whole(client)
    beside = {one.name for one in place.folder.iterdir()} - {"gateway", "state", "state.pickle"}
    return result["counts"], beside


CASES = {
    "crawl": Case("crawl.job.crawl", fill_crawl),
    "stats": Case("stats.job.stats", fill_stats, {"stats.job.PARTITIONS_A_BATCH": 4, "stats.job._TABLES_A_BATCH": 1}),
    "audit": Case(
        "audit.job.audit",
        fill_audit,
        {
            "audit.walking._DIRECTORIES_A_BATCH": 20,
            "audit.job._PLACES_A_BATCH": 10,
            "audit.catalog._TABLES_A_BATCH": 4,
        },
        findings,
    ),
    "apply": Case("audit.fixing.job.apply", fill_apply, {"audit.fixing.job._ACTIONS_A_BATCH": 3}),
    "compact": Case("compact.job.compact", fill_compact, {"compact.job._PARTITIONS_A_BATCH": 1}, compacted),
    "clean": Case("compact.job.clean", fill_clean, {"compact.job._PARTITIONS_A_BATCH": 1}, compacted),
    "migrate": Case("migrate.job.migrate", fill_migrate, {"migrate.job.TABLES_A_BATCH": 1}),
    "snapshot": Case("snapshot.job.snapshot", fill_snapshot, {}, taken),
}
