"""Options of all jobs: tables and partitions that they name in a metastore, roots of files, the result."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

import msgspec
import pyarrow

from hms_gateway.metastore.vocabulary.partition_names import escape
from hms_gateway.pipeline.catalog import cut, partition_values, table_names
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.errors import OptionError, UsageRefused
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.storage import Storage, StorageOptions, absolute, place_of
from hms_gateway.rpc.structs import MetaException, NoSuchObjectException, Table

# The choice of objects by patterns of `database.table`.


@dataclass(frozen=True, slots=True)
class Only:
    """Without patterns everything is wanted; with patterns nothing that belongs to no database."""

    patterns: tuple[str, ...]

    def wants(self, database: str, table: str = "") -> bool:
        """A table; without one the database, which is wanted with one of its tables."""
        if not self.patterns:
            return True
        if table:
            name = f"{database}.{table}".lower()
            return any(fnmatchcase(name, pattern.lower()) for pattern in self.patterns)
        databases = (pattern.lower().partition(".")[0] for pattern in self.patterns)
        return bool(database) and any(fnmatchcase(database.lower(), pattern) for pattern in databases)


_NAMES_A_PIECE: Final = 10_000
PATIENCE_SECONDS: Final = 300.0
CALLS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """Options of every job.

    connection        the metastore
    master            Spark's master; empty is that of `spark-submit`, or all processors of this machine
    conf              configuration of the Spark session
    state             folder or fsspec URL where runs keep what they know; driver and executors have to share it
    resume            id of a run to go on with
    dry_run           make the plan and end
    only              patterns of `database.table`; empty is everything
    where             filter of partitions, in the metastore's grammar (docs/filters.md)
    calls             changing calls at the same time
    yes               do what would be asked about
    patience_seconds  how long a gateway may be away
    storage           by scheme, options of fsspec (endpoint, credentials)
    roots             locations below which files may be touched, besides the gateway's roots
    """

    connection: Connection
    state: str
    master: str = ""
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    resume: str | None = None
    dry_run: bool = False
    only: tuple[str, ...] = ()
    where: str = ""
    calls: int = CALLS
    yes: bool = False
    patience_seconds: float = PATIENCE_SECONDS
    storage: StorageOptions = field(default_factory=dict, repr=False)
    roots: tuple[str, ...] = ()

    def client(self) -> PatientClient:
        """A client for reading; steps that read are pickled with this method."""
        return PatientClient(self.connection, self.patience_seconds)

    def wants(self, database: str, table: str = "") -> bool:
        """True if `only` lets the job look at a table, or at any table of the database."""
        return Only(self.only).wants(database, table)


# Tables and partitions that the options `only` and `where` name in a metastore.


def check_only(options: JobOptions, metastore: Connection | None = None) -> None:
    """Refuse patterns of `only` that match no table of the metastore (the job's own, unless another one is given).

    A resumed run is not asked: its tables may be gone since. Raises UsageRefused, and what PatientClient raises.
    """
    if options.resume or not options.only:
        return
    with PatientClient(metastore or options.connection, options.patience_seconds) as client:
        tables = list(table_names(client, options.wants))
    for pattern in options.only:
        alone = Only((pattern,))
        if not any(alone.wants(database, table) for database, table in tables):
            raise UsageRefused(f"--only {pattern!r} matches no table", "write DB.TABLE, with * for any text")


def partition_names(client: PatientClient, table: Table, where: str) -> list[str]:
    """The partitions that satisfy a filter (docs/filters.md); all of them without one.

    Raises UsageRefused when the text is not a filter of the table, NoSuchObjectException when the table is gone.
    """
    if not where:
        names: list[str] = client.call("get_partition_names", table.dbName, table.tableName, -1)
        return names
    try:
        found = partition_values(client, table, where)
    except MetaException as refused:
        text = f"--where {where!r} is not a filter of {table.dbName}.{table.tableName}"
        raise UsageRefused(f"{text}: {refused.message}", "name the tables it is for with --only") from refused
    keys = [escape(key.name or "") for key in table.partitionKeys or ()]
    return ["/".join(f"{key}={value}" for key, value in zip(keys, row, strict=True)) for row in found]


@dataclass(frozen=True)
class PartitionNames:
    """For `Run.derive`: rows of `schema` for the partitions of tables, with an empty name for a table without keys.

    `left_alone` gives a reason for which a table's partitions are not looked at. A table that was dropped has no rows.
    """

    client: Callable[[], PatientClient]
    schema: pyarrow.Schema
    where: str = ""
    left_alone: Callable[[Table], str] | None = None

    def __call__(self, tables: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        with self.client() as client:
            for row in tables.to_pylist():
                try:
                    table = client.call("get_table", row["database"], row["table"])
                    reason = self.left_alone(table) if self.left_alone else ""
                    names = [""] if reason or not table.partitionKeys else partition_names(client, table, self.where)
                except NoSuchObjectException:
                    continue
                for some in cut(names, _NAMES_A_PIECE):
                    rows = [row | {"partition": name, "name": name, "reason": reason} for name in sorted(some)]
                    # Columns that the schema lacks are left out.
                    yield pyarrow.RecordBatch.from_pylist(rows, self.schema)


# Roots below which a job touches files: those of the gateway, and those that its user names (`--root`).
#
# A gateway's roots hold the directories of all databases that it manages. The location of a table, partition or other
# database may have been recorded by any user, so that it is no reason to act there with the rights of who runs the job.


# A gateway's answer has all of its roots; other metastores answer with their warehouse.
_ROOTS: Final = "hive.metastore.file.roots"
_WAREHOUSE: Final = "hive.metastore.warehouse.dir"


def storage_of(client: PatientClient, options: JobOptions, *named: str) -> Storage:
    """Raises UsageRefused for a place that is not a location, and what PatientClient raises."""
    given = [absolute(location) for location in (*options.roots, *named)]
    for location in given:
        try:
            place_of(location)
        except OptionError as error:
            raise UsageRefused(f"location {location} cannot be used: {error}", "give a folder or URL") from error
    text = client.call("get_config_value", _ROOTS, "")
    found = msgspec.json.decode(text, type=list[str]) if text else [client.call("get_config_value", _WAREHOUSE, "")]
    return Storage(options.storage, (*filter(None, found), *given))


# The result of a job: one JSON document, and an exit status.


EXIT_DONE: Final = 0
EXIT_FOUND: Final = 1


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """Jobs add fields of their own.

    run        id of the run
    kind       which job
    status     "done", or "planned" after a dry run
    findings   what the job found that a person should look at
    refused    items that could not be done, each with a reason in `refusals` of the result folder
    counts     what was done
    passed_over  tables and partitions that were not looked at: outside of the roots, or without a library
    folder     where the run keeps plan and result
    """

    run: str
    kind: str
    status: str
    findings: int = 0
    refused: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    passed_over: int = 0
    folder: str = ""
    seconds: float = 0.0

    @property
    def exit_status(self) -> int:
        """0: done, and nothing was found. 1: done, with findings or refusals."""
        return EXIT_FOUND if self.findings or self.refused else EXIT_DONE

    def as_json(self) -> str:
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()
