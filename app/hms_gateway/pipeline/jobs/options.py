"""What all jobs are given."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.jobs.only import Only
from hms_gateway.pipeline.storage import StorageOptions

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

    def wants(self, database: str, table: str = "") -> bool:
        """Whether `only` lets the job look at a table, or at any table of the database."""
        return Only(self.only).wants(database, table)
