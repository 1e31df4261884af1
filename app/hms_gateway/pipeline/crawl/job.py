"""The job `crawl`: walk, compare, register."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from hms_gateway.pipeline.catalog import PARTITIONS_A_CALL, databases_everywhere, is_elsewhere, table_names
from hms_gateway.pipeline.crawl.steps import (
    DATA,
    GONE,
    KNOWN,
    LEVEL,
    NAMES,
    REFUSED,
    REGISTERED,
    TO_LIST,
    CreateTables,
    Gone,
    NamesOf,
    Prune,
    Register,
    TablesBelow,
    Walk,
    create_database,
    is_within,
    to_list,
)
from hms_gateway.pipeline.crawl.tables import (
    CANONICAL,
    DESIGNS,
    NEW_TABLES,
    NO_PARTITION,
    OTHER,
    PARTITIONS,
    SHAPES,
    CrawledTable,
    Designs,
    Names,
    PartitionsOf,
    ShapesOf,
    joined,
    merged,
)
from hms_gateway.pipeline.errors import OptionError, UsageRefused
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.options import JobOptions, JobResult, storage_of
from hms_gateway.pipeline.jobs.progress import Progress
from hms_gateway.pipeline.jobs.run import Run
from hms_gateway.pipeline.jobs.stored import Stored, piece, texts
from hms_gateway.pipeline.storage import ListingProblem, Storage, absolute, files_of

_TABLE: Final = ("database", "table")
_DIRECTORIES_A_BATCH: Final = 5_000
_NAMES_A_BATCH: Final = 20_000
_REFUSALS_SHOWN: Final = 100
_PRUNE_PERCENT_MAX: Final = 5
_REFUSALS: Final = pyarrow.schema(texts("item", "reason"))


@dataclass(frozen=True, kw_only=True)
class CrawlArguments:
    """Arguments of `crawl` besides the options of every job.

    location           where to look; below the roots where only the catalog names it (`is_vouched_for`)
    database           for new tables that lie in no directory `name.db`
    databases_from_folders  the directory around a new table's names its database, where it is below the location
    table              the name of the table, where `location` is one
    prune              drop the partitions whose directory is gone
    partitions_a_call  how many are registered at once
    """

    location: str
    database: str = "default"
    databases_from_folders: bool = False
    table: str = ""
    prune: bool = False
    partitions_a_call: int = PARTITIONS_A_CALL
    is_vouched_for: bool = True


@dataclass(frozen=True, kw_only=True)
class CrawlResult(JobResult):
    """`counts`: directories, tables (created), partitions (registered), files, bytes, gone, dropped.

    new_tables  the tables that were created, or are to be
    renamed     those of them whose directories have other names: location and name; at most 100
    refusals    the first paths that could not be taken, with reasons; all are in `refused.parquet` of the folder
    unpruned    tables of which too much is gone to drop it without `yes`
    """

    new_tables: list[str] = field(default_factory=list)
    renamed: list[dict[str, str]] = field(default_factory=list)
    refusals: list[dict[str, str]] = field(default_factory=list)
    unpruned: list[str] = field(default_factory=list)


def crawl(
    options: JobOptions,
    arguments: CrawlArguments,
    *,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
) -> CrawlResult:
    """Find tables and partitions below a location, register what is new, report what is gone. Raises JobFailed."""
    if options.where:
        raise UsageRefused("crawl looks at whole tables and takes no filter of partitions", "leave out --where")
    vouched_for = (arguments.location,) if arguments.is_vouched_for else ()
    with PatientClient(options.connection, 0) as client:
        storage = storage_of(client, options, *vouched_for)
    arguments = replace(arguments, location=_location(storage, arguments.location))
    with Run.begin("crawl", options, arguments, spark=spark, progress=progress) as run:
        return _Crawl(run, arguments, storage).done()


def _location(storage: Storage, given: str) -> str:
    """In full, and of a directory: with one that is misspelled, all partitions would be gone. Raises UsageRefused."""
    given = absolute(given)
    try:
        files = files_of(given, storage)
        path = files.root(given)
        is_directory = files.is_directory(path)
    except OptionError as error:
        raise UsageRefused(f"location {given} {error}") from error
    except ListingProblem:
        # The report says why.
        return files.location(path)
    if not is_directory:
        raise UsageRefused(f"location {given} is not a directory", "give the folder or URL below which tables lie")
    return files.location(path)


class _Crawl:
    def __init__(self, run: Run, arguments: CrawlArguments, storage: Storage) -> None:
        self._run, self._arguments, self._options = run, arguments, run.options
        self._storage = storage
        self._files = files_of(arguments.location, self._storage)
        self._root = self._files.root(arguments.location)
        given = arguments.database, arguments.table, arguments.databases_from_folders
        self._names = Names(self._root, *given)

    def done(self) -> CrawlResult:
        known = self._known_tables()
        self._listed = Stored.joined(self._walked(known))
        self._directories = self._listed.where(lambda of: of[0] == DATA)
        self._designs = self._design_tables(known)
        self._partitions = self._run.derive(
            "partitions",
            self._directories,
            PartitionsOf(self._targets(known)),
            PARTITIONS,
            rows_a_batch=self._arguments.partitions_a_call,
            together=("state", *_TABLE),
            unit="batches of directories",
        )
        self._found = self._partitions.where(lambda of: of[0] in (CANONICAL, OTHER))
        self._registered = self._read_registered(known)
        self._twins = self._find_twins()
        self._new = self._find_new()
        self._gone = self._find_gone()
        if not self._options.dry_run:
            self._do()
        return self._result()

    def _known_tables(self) -> list[dict[str, Any]]:
        """Tables of the catalog at, below and above the location."""
        run, options = self._run, self._options
        own = options.connection.catalog
        with run.client() as client:
            names = run.store(
                "names",
                # Tables that are to be left alone are recognized by their places, too.
                lambda: [
                    {"database": database, "table": table}
                    for database, table in table_names(client, databases=databases_everywhere(client, own))
                ],
                schema=NAMES,
                rows_a_batch=100,
                together=("database",),
            )
        below = TablesBelow(options.client, self._arguments.location, self._storage)
        return list(run.derive("tables", names, below, KNOWN))

    def _wanted(self, table: Mapping[str, Any]) -> bool:
        """Tables of other catalogs are left alone."""
        return not is_elsewhere(table["database"]) and self._options.wants(table["database"], table["table"])

    def _walked(self, known: list[dict[str, Any]]) -> list[Stored]:
        """The levels of the tree, the root first."""
        keys = {table["path"]: len(table["keys"]) if self._wanted(table) else None for table in known}
        walk = Walk(self._arguments.location, self._storage, keys)
        start = to_list(*self._start(known))
        level = self._run.store("level-0", pyarrow.Table.from_batches([piece([start], LEVEL)]), together=("kind",))
        return self._run.levels(level, walk, LEVEL, pending=TO_LIST, rows_a_batch=_DIRECTORIES_A_BATCH)

    def _start(self, known: list[dict[str, Any]]) -> tuple[str, str]:
        """Table and the rest of the path that the walk begins at; without a table where it begins above all.

        A table around the location may have been recorded by any user, to hide what lies in it: one outside of the
        roots counts only where the location is named for its keys.
        """
        inside = [
            table["path"]
            for table in known
            if is_within(self._root, table["path"])
            and (not self._storage.refusal(table["location"]) or _is_named_for(self._root, table))
        ]
        path = max(inside, key=len, default="")
        return path, self._root.removeprefix(path).lstrip("/") if path else self._root

    def _design_tables(self, known: list[dict[str, Any]]) -> Stored:
        """The tables to create, with their columns or the reason why they cannot be."""
        shapes = self._run.derive(
            "shapes", self._directories, ShapesOf(frozenset(table["path"] for table in known)), SHAPES
        )
        plan = self._run.store("new tables", lambda: self._new_tables(shapes), schema=NEW_TABLES, rows_a_batch=4)
        return self._run.derive("designs", plan, Designs(self._arguments.location, self._storage), DESIGNS)

    def _new_tables(self, shapes: Stored) -> Iterator[dict[str, Any]]:
        taken = {
            (row["database"], row["table"]): "exists and lies elsewhere" for row in self._run.stored("names") or ()
        }
        for root, found in sorted(merged(shapes).items()):
            database, table = self._names.of(root)
            if self._options.wants(database, table):
                usual, problem = found.usual(), taken.get((database, table), "")
                taken.setdefault((database, table), f"is to be that of {self._files.location(root)}")
                yield {
                    "database": database,
                    "table": table,
                    "root": root,
                    "keys": usual.keys,
                    "types": usual.types(),
                    "samples": found.samples.get(usual.keys, []),
                    "reason": f"is not registered: table {database}.{table} {problem}" if problem else "",
                }

    def _targets(self, known: list[dict[str, Any]]) -> dict[str, CrawledTable]:
        """The tables that partitions can belong to, by path."""
        targets = {
            table["path"]: _target(table, table["location"]) for table in known if table["keys"] and self._wanted(table)
        }
        for design in self._designs:
            if not design["reason"]:
                targets[design["root"]] = _target(design, self._files.location(design["root"]))
        return targets

    def _read_registered(self, known: list[dict[str, Any]]) -> Stored:
        """The names of the partitions of known tables."""
        keyed = [table for table in known if table["keys"] and self._wanted(table)]
        plan = self._run.store("known tables", keyed, schema=KNOWN, rows_a_batch=1)
        names = NamesOf(self._options.client)
        return self._run.derive(
            "registered",
            plan,
            names,
            REGISTERED,
            rows_a_batch=_NAMES_A_BATCH,
            together=("is_other", *_TABLE),
            unit="tables",
        )

    def _find_twins(self) -> Stored | None:
        """Directories with the value of another one. Only where something is spelled in its own way."""
        if not any(of[0] for of in (batch.of for batch in (*self._found.batches, *self._registered.batches))):
            return None
        spark = self._run.spark
        return self._run.store(
            "twins", lambda: ordered(twins_of(self._found.frame(spark), self._registered.frame(spark)))
        )

    def _find_new(self) -> Stored:
        if not self._registered.rows and (self._twins is None or not self._twins.rows):
            return self._found
        spark = self._run.spark

        def frame() -> Any:
            new = new_of(self._found.frame(spark), self._registered.frame(spark))
            if self._twins is not None:
                new = new.join(self._twins.frame(spark), KEY, "left_anti")
            return ordered(new.select(*PARTITIONS.names))

        return self._run.store(
            "new", frame, rows_a_batch=self._arguments.partitions_a_call, together=("state", *_TABLE)
        )

    def _find_gone(self) -> Stored | None:
        """Registered partitions without a directory; those of which that cannot be known have a reason."""
        if not self._registered.rows:
            return None
        spark, options = self._run.spark, self._options
        missing = self._run.store(
            "missing",
            lambda: ordered(missing_of(self._found.frame(spark), self._registered.frame(spark))),
            rows_a_batch=self._arguments.partitions_a_call,
            together=_TABLE,
        )
        look = Gone(options.client, self._arguments.location, self._storage)
        return self._run.derive(
            "gone",
            missing,
            look,
            GONE,
            rows_a_batch=self._arguments.partitions_a_call,
            together=("reason", *_TABLE),
        )

    def _do(self) -> None:
        """The calls."""
        wanted = [design for design in self._designs if not design["reason"]]
        dropping = self._prunable()
        # A lease on tables does not cover the making of databases.
        with self._run.client() as client:
            for database in sorted({design["database"] for design in wanted}):
                create_database(client, database, client.connection.owner)
        held = {f"{design['database']}.{design['table']}" for design in wanted}
        held |= {f"{batch.of[-2]}.{batch.of[-1]}" for batch in self._new.batches}
        held |= {f"{batch.of[-2]}.{batch.of[-1]}" for batch in dropping.batches} if dropping else set()
        self._run.hold(sorted(held))
        location, storage = self._arguments.location, self._storage
        plan = self._run.store("creations", wanted, schema=DESIGNS, rows_a_batch=20)
        self._run.batches(plan, CreateTables(location, storage), name="create")
        self._run.batches(self._new, Register(location, storage), name="register", unit="batches of partitions")
        if dropping:
            self._run.batches(dropping, Prune(location, storage), name="prune")

    def _prunable(self) -> Stored | None:
        if self._gone is None or not self._arguments.prune:
            return None
        too_many = set(self._unpruned())
        return self._gone.where(lambda of: not of[0] and of[1:] not in too_many)

    def _unpruned(self) -> list[tuple[str, str]]:
        """The tables of which too much is gone to drop it without `yes`."""
        if self._gone is None or not self._arguments.prune or self._options.yes:
            return []
        return _too_many(self._gone, self._registered)

    def _result(self) -> CrawlResult:
        run = self._run
        refused = 0
        shown: list[dict[str, str]] = []

        def rows() -> Iterator[dict[str, str]]:
            nonlocal refused
            for row in self._refused():
                refused += 1
                if len(shown) < _REFUSALS_SHOWN:
                    shown.append(row)
                yield row

        run.report("refused", rows(), _REFUSALS)
        lost = 0 if self._gone is None else self._gone.where(lambda of: not of[0]).rows
        done = {name: run.counted(name) for name in ("create", "register", "prune")}
        counts = {
            "directories": self._directories.rows,
            "tables": done["create"]["tables"],
            "partitions": done["register"]["partitions"],
            "files": done["register"]["files"],
            "bytes": done["register"]["bytes"],
            "gone": lost,
            "dropped": done["prune"]["dropped"],
        }
        if self._options.dry_run:
            counts |= {"tables": sum(not design["reason"] for design in self._designs), "partitions": self._new.rows}
        new_tables = [(row["root"], f"{row['database']}.{row['table']}") for row in self._designs if not row["reason"]]
        other = [(root, name) for root, name in new_tables if self._names.is_changed(root)]
        return run.finish(
            CrawlResult,
            counts=counts,
            findings=lost - counts["dropped"] + len(other),
            refused=refused,
            new_tables=[name for _, name in new_tables],
            renamed=[{"item": self._files.location(root), "name": name} for root, name in other[:_REFUSALS_SHOWN]],
            refusals=shown,
            unpruned=[".".join(table) for table in self._unpruned()],
        )

    def _refused(self) -> Iterator[dict[str, str]]:
        for row in self._listed.where(lambda of: of[0] == REFUSED):
            yield {"item": self._files.location(joined(row["root"], row["relative"])), "reason": row["reason"]}
        for row in self._designs:
            if row["reason"]:
                yield {"item": self._files.location(row["root"]), "reason": row["reason"]}
        for row in self._partitions.where(lambda of: of[0] == NO_PARTITION):
            yield {"item": row["location"], "reason": row["reason"]}
        for row in self._twins or ():
            reason = f"has the values of {row['database']}.{row['table']} {row['winner']} in another spelling"
            yield {"item": row["location"], "reason": reason}
        for row in self._gone.where(lambda of: bool(of[0])) if self._gone else ():
            yield {"item": row["location"], "reason": row["reason"]}
        for name in ("create", "register", "prune"):
            for refusal in self._run.refusals(name):
                yield {"item": refusal.item, "reason": refusal.reason}


def _target(table: Mapping[str, Any], location: str) -> CrawledTable:
    keys = tuple(zip(table["keys"], table["types"], strict=True))
    return CrawledTable(table["database"], table["table"], location, keys)


def _is_named_for(path: str, table: Mapping[str, Any]) -> bool:
    """True for the directory of a table, and for `key=value` below it."""
    names = path.removeprefix(table["path"]).strip("/").split("/")
    return names == [""] or [name.partition("=")[0].lower() for name in names] == table["keys"][: len(names)]


def _too_many(gone: Stored, registered: Stored) -> list[tuple[str, str]]:
    """The tables of which more than a few per cent are gone."""
    lost, all_of = _by_table(gone.where(lambda of: not of[0])), _by_table(registered)
    return sorted(table for table, rows in lost.items() if 100 * rows > _PRUNE_PERCENT_MAX * all_of[table])


def _by_table(stored: Stored) -> Counter[tuple[str, str]]:
    rows = Counter[tuple[str, str]]()
    for batch in stored.batches:
        rows[batch.of[-2], batch.of[-1]] += batch.rows
    return rows


# Joins in Spark: new partitions, partitions that may be gone, directories with the same value.


KEY: Final = ["database", "table", "name"]
_SAME: Final = ["database", "table", "same"]
_REGISTERED, _CANONICAL, _OTHER = 0, 1, 2


def new_of(found: DataFrame, registered: DataFrame) -> DataFrame:
    """The partitions found that are not registered."""
    return found.join(registered.select(KEY), KEY, "left_anti")


def missing_of(found: DataFrame, registered: DataFrame) -> DataFrame:
    """The names of registered partitions that were not found."""
    return registered.select(KEY).join(found.select(KEY), KEY, "left_anti")


def twins_of(found: DataFrame, registered: DataFrame) -> DataFrame:
    """Partitions found whose values another one has in another spelling, with its name as `winner`.

    What is registered wins, then what is spelled as the type spells it, then the first by name.
    """
    rank = F.when(F.col("state") == 0, _CANONICAL).otherwise(_OTHER)
    both = found.select(*_SAME, "name", "location", rank.alias("rank")).unionByName(
        registered.select(*_SAME, "name", F.lit(None).alias("location"), F.lit(_REGISTERED).alias("rank"))
    )
    doubted = both.where(F.col("same") != F.col("name")).select(_SAME).distinct()
    order = Window.partitionBy(_SAME).orderBy("rank", "name")
    ranked = both.join(doubted, _SAME, "left_semi").withColumn("winner", F.first("name").over(order))
    lost = ranked.where((F.col("name") != F.col("winner")) & (F.col("rank") != _REGISTERED))
    return lost.join(registered.select(KEY), KEY, "left_anti").select(*KEY, "location", "winner")


def ordered(frame: DataFrame, *more: str) -> Any:
    """In the order of batches: those of one table are together."""
    return frame.orderBy(*KEY[:2], *more, "name")
