"""The jobs of the pipeline as commands, with their options."""

from functools import partial
from typing import Any, Final

import click

from hms_gateway.cli.calls import targets
from hms_gateway.cli.terminal.commands import FORM, SPAN, Measure, Subject, argument, command, group, option, repeatable

_KINDS: Final = ("databases", "partitions", "statistics", "constraints", "functions", "roles", "grants")
_BYTES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_EXITS: Final = {
    0: "Done, without findings.",
    1: "There were findings or refusals.",
    2: "The job failed, and --resume RUN continues it; or an option is wrong.",
}


_job_option: Final = partial(option, section="Job options")
_STATE: Final = _job_option(
    "--state PLACE",
    "Folder or fsspec URL for plans and results; on a cluster, one that all machines share.",
    variable="HMS_GATEWAY_PIPELINE_STATE",
    default="var/pipeline",
)
_MASTER: Final = _job_option("--master URL", "Spark's master.", default="", show_default="local[*]")
_CONF: Final = repeatable("--conf KEY=VALUE", "Configuration of the Spark session", section="Job options")
_JSON: Final = _job_option("--json as_json", "Print the result as one JSON document.")
_OF_JOBS: Final = (
    *(_STATE, _MASTER, _CONF),
    _job_option("--resume RUN", "Go on with a run, with the arguments that it began with."),
    _job_option("--dry-run", "Make the plan and print it; --resume carries it out."),
    repeatable("--only 'DB.TABLE'", "Tables to work on, * stands for any text", section="Job options"),
    _job_option("--where FILTER", "Partitions to work on, such as \"ds >= '2026-01-01'\".", default=""),
    _job_option("--calls N", "Most calls at a time that change something.", type=click.IntRange(1, 64), default=4),
    _job_option(
        "--patience patience_seconds SECONDS", "How long to wait for a gateway that does not answer.", default=300.0
    ),
    _job_option(
        "--storage FILE", "TOML file with a table for each scheme: options of fsspec, such as endpoint_url and key."
    ),
    repeatable(
        "--root roots PLACE",
        "Folder or URL below which the job may touch files, besides the gateway's roots",
        section="Job options",
    ),
    _job_option("--yes -y", "Do what needs a confirmation, such as many drops."),
    _JSON,
)
_JOB_NAMES: Final = [str(each.name) for each in _OF_JOBS]
_TARGET: Final = (*targets.LOGIN, targets.CATALOG)
_TARGET_NAMES: Final = [str(each.name) for each in _TARGET if each.name != "profile"]


def _job(given: dict[str, Any]) -> Any:
    """Take the options of every job out of the given ones."""
    target = targets.login_words(given, _TARGET_NAMES)
    words = {each: given.pop(each) for each in _JOB_NAMES}
    from hms_gateway.cli.pipeline.jobs import JobCommand

    return JobCommand(target, words)


JOB: Final = Subject((*_OF_JOBS, *_TARGET), _job, _EXITS)

_job_command: Final = partial(command, subject=JOB)

PIPELINE: Final = group(
    "pipeline",
    """Run jobs over a metastore and its files, on Spark.

    They need Java 17 and PySpark: pip install 'hms-gateway[spark]'; in a checkout pip install -e '.[spark]'.
    """,
    _job_command(
        "crawl",
        """Register the tables and partitions below LOCATION, and report missing ones.

        A directory with partitions (key=value) or with files only is a table; columns of new tables come from the
        footers of Parquet and ORC files. Changes and deletes no file.
        """,
        argument("location", "Folder or URL below which to look."),
        option("--database NAME", "Database of new tables that lie in no folder NAME.db.", default="default"),
        option("--databases-from-folders", "Name the database of a new table after its parent folder: sales/visits."),
        option("--table NAME", "Name of the table, if LOCATION is the directory of one.", default=""),
        option("--prune", "Drop partitions whose directory is gone; above 5 % of a table with --yes."),
        work="pipeline.jobs:run_named",
        examples=[
            "pipeline crawl -k /data/lake",
            "pipeline crawl -k /data/lake --dry-run --json",
            "pipeline crawl -k /data/lake --databases-from-folders",
            "pipeline crawl -k s3://lake/sales.db --only 'sales.o*' --prune",
        ],
    ),
    _job_command(
        "stats",
        """Compute statistics of tables, partitions and columns, and store them in the catalog.

        Rows, nulls, smallest and largest values come from the footers of files; with --full they come from the data,
        with distinct values. Skips tables and partitions without changes since their last statistics.
        """,
        option(
            "--from-footers/--full",
            "Read the footers of Parquet and ORC files only (default), or all data with Spark.",
            default=True,
            show_default=False,
        ),
        option("--all is_all", "Include tables and partitions without changes since their last statistics."),
        option("--report FILE", "File to write a report to, as a page of HTML.", type=targets.NEW_FILE),
        work="pipeline.jobs:stats",
        examples=[
            "pipeline stats --only 'sales.*'",
            "pipeline stats --full --only sales.orders --where \"ds >= '2026-01-01'\"",
            "pipeline stats --report stats.html",
        ],
        exits={1: "Files or locations have problems, or partitions changed meanwhile and are left for the next run."},
    ),
    _job_command(
        "audit",
        """Compare the catalog with directories and files, and report problems.

        Changes nothing. Findings: tables and partitions without a directory; directories without a table or partition;
        shared, misplaced, outside and empty directories; leftovers of engines; small files; mixed formats; wrong
        numFiles and totalSize; files with other columns than the table; corrupt and unreadable files.
        """,
        option("--fix FILE", "File to write a plan to, which `pipeline apply` carries out.", type=str, default=""),
        option("--delete-orphans", "Let the plan delete directories without a table or partition."),
        option("--html FILE", "File to write a report to, as a page of HTML.", type=str, default=""),
        option("--all all_footers", "Read the footers of all directories, not only of changed ones."),
        option("--no-footers", "Read no footers."),
        option(
            "--quiet-hours HOURS",
            "Hours without a change before a leftover or orphan is fixed; a younger one is a note.",
            default=24.0,
        ),
        option(
            "--small-bytes BYTES", "Mean file size in bytes below which files count as small.", default=16 * 1024 * 1024
        ),
        option(
            "--small-files N", "Number of small files that makes a finding.", type=click.IntRange(min=2), default=10
        ),
        option("--fail-on error|warning|note", "Least severity that makes the exit status 1.", default="warning"),
        work="pipeline.jobs:audit",
        examples=[
            "pipeline audit --only 'sales.*' --html audit.html",
            "pipeline audit --fix plan.jsonl",
            "pipeline apply plan.jsonl",
        ],
        exits={1: "There was a finding of the severity --fail-on or worse."},
    ),
    _job_command(
        "apply",
        """Carry out the plan in the file PLAN, written by `pipeline audit --fix`.

        Takes an exclusive lease for each action, and skips it if catalog or directory differ from the plan. Unwanted
        lines can be deleted from the plan. Above 5 % of a table's partitions, 1,000 files or 10 GiB it needs --yes.
        """,
        argument("plan"),
        work="pipeline.jobs:run_named",
        examples=["pipeline apply plan.jsonl --dry-run", "pipeline apply plan.jsonl --yes"],
    ),
    _job_command(
        "compact",
        """Merge the small files of plain Hive tables (Parquet, ORC, text) into large ones.

        New files are written to a new directory and compared with the old ones; then the partition gets the new
        location in one step. The old files stay until --clean. Skips transactional, Iceberg and bucketed tables.
        """,
        option("--target-bytes BYTES", "Largest size of a new file.", type=Measure("BYTES", _BYTES), default="128m"),
        option("--lock locks", "Also take Hive's lock EXCL_WRITE on compacted tables and partitions."),
        option("--clean", "Remove the old files of earlier runs instead of compacting."),
        option(
            "--grace TIME",
            "Time for which old files stay, for running readers.",
            type=SPAN,
            default="7d",
        ),
        work="pipeline.jobs:compact",
        examples=[
            "pipeline compact -k --only 'sales.*' --dry-run",
            "pipeline compact -k --only sales.orders --where \"ds < '2026-01-01'\"",
            "pipeline compact -k --only 'sales.*' --clean --grace 1d",
        ],
    ),
    _job_command(
        "snapshot",
        """Write the whole catalog, in its state at one event, to PATH as Parquet.

        Reads objects that change meanwhile again, until they are stable. The folder appears when it is complete, with
        _manifest.json in it.
        """,
        argument("path"),
        work="pipeline.jobs:run_named",
        examples=[
            "pipeline snapshot var/snapshots/monday",
            "pipeline snapshot s3://lake/snapshots/monday --only 'sales.*'",
        ],
    ),
    command(
        "diff",
        "Compare two snapshots: missing, new and changed objects.",
        argument("before"),
        argument("after"),
        repeatable("--only 'DB.TABLE'", "Tables to compare, * stands for any text"),
        repeatable("--ignore ignored FIELD", "Field that may differ, * stands for any text"),
        option("--output PLACE", "Folder or URL to write all differences to, as Parquet.", default=""),
        option("--shown N", "Number of differences to print.", type=click.IntRange(min=0), default=1_000),
        *(_MASTER, _CONF, _JSON),
        work="pipeline.jobs:diff",
        examples=[
            "pipeline diff var/snapshots/monday var/snapshots/tuesday",
            "pipeline diff A B --ignore 'parameters.transient_*' --output changes",
        ],
        exits={0: "The snapshots are equal.", 1: "They are different.", 2: "They cannot be compared."},
    ),
    _job_command(
        "migrate",
        """Copy the catalog of another metastore into the one of --url, and follow its changes.

        On both sides it is the catalog `hive`; --source-catalog and --catalog name others of Hive 3.1 and later.
        Tables stay where they are: no directory is made, moved or deleted. The user has to be one of the target's
        administrators. With --resume a finished run copies later changes.
        """,
        option("--source URL", "Metastore to read (thrift://HOST:PORT or https://…).", required=True),
        option("--source-user NAME", "User to read as.", default=""),
        option(
            "--source-password-file FILE",
            "File with the source's password in its first line; replaces HMS_GATEWAY_SOURCE_PASSWORD.",
        ),
        option("--source-negotiate", "Log in at the source with a Kerberos ticket."),
        option("--source-certificate FILE", "Client certificate (PEM) to log in at the source with."),
        option(
            "--source-key FILE",
            "Private key (PEM) of --source-certificate; unset means that the certificate's file contains it.",
        ),
        option("--source-insecure", "Accept any certificate of the source."),
        option("--source-cacert FILE", "Certificate (PEM) of the source to trust."),
        option("--source-catalog NAME", "Catalog of the source (Hive 3.1 and later).", default=""),
        option("--source-framed", "Use Thrift's framed transport for the source."),
        option(
            "--on-conflict skip|replace|fail",
            "Treatment of a different object that the target had before.",
            default="skip",
        ),
        option("--verify full|none", "Comparison of both sides, field by field, at the end.", default="full"),
        option("--once", "Read the changes of the source once, instead of until there are none."),
        option("--last", "Finish after the last write to the source: set the write ids of ACID tables, once."),
        repeatable("--without KIND", f"Kind of objects not to copy: {', '.join(_KINDS)}", type=click.Choice(_KINDS)),
        work="pipeline.jobs:migrate",
        examples=[
            "pipeline migrate --source thrift://old-metastore:9083 --dry-run",
            "pipeline migrate --source thrift://old-metastore:9083",
            "pipeline migrate --source thrift://old-metastore:9083 --resume RUN",
            "pipeline migrate --source https://old:30443/gateway/default/hmshttpthrift/api/hms --source-user hive",
            "pipeline migrate --source thrift://hive3:9083 --source-catalog spark --catalog lake",
            "pipeline migrate --url thrift://hive:9083 --source https://hms/gateway/default/hmshttpthrift/api/hms",
        ],
    ),
    _job_command(
        "runs",
        """List the runs of jobs, the newest last, or resume one (--resume).

        A resumed run keeps its original arguments, including --url, --only and --where; --state has to name its folder.
        """,
        option("--of-metastore", "List the runs of all state folders that the metastore knows."),
        FORM,
        work="pipeline.jobs:runs",
        examples=[
            "pipeline runs",
            "pipeline runs --resume crawl-20260101T020000-1a2b3c",
            "pipeline runs --json --of-metastore",
        ],
    ),
    examples=["pipeline crawl /data/lake --dry-run"],
)
