"""`hms-gateway locks …`: the commands and their options; what they do is in `lock_commands`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

from hms_gateway.cli.calls.target_options import with_target
from hms_gateway.cli.terminal.format_options import format_option, rows_form
from hms_gateway.cli.terminal.groups import Group, examples

if TYPE_CHECKING:
    from hms_gateway.cli.calls.targets import CallTarget

_EXAMPLES = """\b
Examples:
  hms-gateway locks acquire "alter table sales.orders add partition (ds='1')" -- ./load.sh
  hms-gateway locks show --blocking
"""
_EXPLAIN_EXAMPLES = """\b
Examples:
  hms-gateway locks explain "insert into t2(partition p2) select .. t1 partition p1"
  hms-gateway locks explain --operation insert --on sales.t/ds=1 --reads sales.u
"""
_SHOW_EXAMPLES = """\b
Examples:
  hms-gateway locks show --table sales.orders
  hms-gateway locks show --blocking
"""
_ACQUIRE_EXAMPLES = """\b
The statement may be HiveQL or one of the short forms of Hive's page about
locking. With --operation the request is structured instead: objects are
database.table, database.table/partition, or database.* for a database.
COMMAND runs while the locks are held; this command sends their heartbeats
and releases them afterwards. Without COMMAND the locks last until their
release, or the metastore's time-out without a heartbeat.

\b
Examples:
  hms-gateway locks acquire "drop table sales.orders"
  hms-gateway locks acquire "insert overwrite table t select * from u" -- ./job.sh
  hms-gateway locks acquire --operation insert --on sales.t/ds=1 --reads sales.u
  hms-gateway locks acquire --hiveconf hive.lock.numretries=0 "drop table t"
"""

_WANTED: Final = (
    click.option("--operation", help="Operation on the objects, such as 'insert' or 'add partition'."),
    click.option("--on", multiple=True, metavar="OBJECT", help="Object that the operation changes; repeatable."),
    click.option("--reads", multiple=True, metavar="OBJECT", help="Object that the operation reads; repeatable."),
    click.option(
        "--database", default="default", metavar="NAME", help="Database of tables that are named without one."
    ),
    click.option(
        "--as-hive",
        "is_as_hive",
        is_flag=True,
        help="Follow Hive's code where it differs from Hive's page about locking.",
    ),
)
lock_ids_argument = click.argument("lock_ids", nargs=-1, type=int, required=True, metavar="LOCK_ID...")


def wanted_options(command: Callable[..., None]) -> Callable[..., None]:
    """`command` with the options that are fields of `lock_commands.WantedLocks`."""
    for option in reversed(_WANTED):
        command = option(command)
    return command


@click.group(cls=Group, epilog=_EXAMPLES)
def locks() -> None:
    """Show, acquire and release locks of Hive's concurrency model."""


@locks.command(epilog=_EXPLAIN_EXAMPLES)
@click.argument("statement", required=False)
@wanted_options
def explain(**wanted: Any) -> None:
    """Show the locks that a statement needs, as EXPLAIN LOCKS does.

    Does not call a metastore.
    """
    from hms_gateway.cli.coordination import lock_commands

    lock_commands.explain(lock_commands.WantedLocks(**wanted))


@locks.command(epilog=_ACQUIRE_EXAMPLES)
@click.argument("words", nargs=-1, metavar="[STATEMENT] [-- COMMAND...]")
@wanted_options
@click.option(
    "--hiveconf",
    multiple=True,
    metavar="NAME=VALUE",
    help="Value of hive.support.concurrency, hive.lock.numretries, hive.lock.sleep.between.retries or "
    "hive.unlock.numretries; repeatable.",
)
@click.option(
    "--keep-place/--no-keep-place",
    "keeps_place",
    default=True,
    help="Keep the place in the queue between two tries, so that later requests do not overtake; --no-keep-place "
    "withdraws the request before each pause, as Hive does.",
)
@click.option(
    "--heartbeat",
    type=click.FloatRange(min=0.01),
    default=60.0,
    help="Seconds between heartbeats while COMMAND runs, well below txn_timeout_seconds.",
)
@with_target
def acquire(
    target: "CallTarget",
    words: tuple[str, ...],
    hiveconf: tuple[str, ...],
    keeps_place: bool,
    heartbeat: float,
    **wanted: Any,
) -> None:
    """Acquire the locks that a statement needs, all or none, and print their id.

    A request that has to wait is tried again after a pause (hive.lock.numretries, hive.lock.sleep.between.retries).
    The exit status is 1 when no try succeeded.
    """
    from hms_gateway.cli.coordination import lock_commands

    is_structured = wanted["operation"] is not None
    statement, command = lock_commands.statement_and_command(words, is_structured=is_structured)
    settings = lock_commands.concurrency_settings(hiveconf, keeps_place=keeps_place)
    lock_commands.acquire(target, lock_commands.WantedLocks(statement, **wanted), settings, command, heartbeat)


@locks.command(epilog=examples("hms-gateway locks release 42 43"))
@lock_ids_argument
@with_target
def release(target: "CallTarget", lock_ids: tuple[int, ...]) -> None:
    """Release locks by id.

    Releasing an unknown id succeeds.
    """
    from hms_gateway.cli.coordination import lock_commands

    lock_commands.release(target, lock_ids)


@locks.command(epilog=_SHOW_EXAMPLES)
@click.option("--table", metavar="TABLE", help="Show only locks on this table and its partitions.")
@click.option("--partition", metavar="NAME", help="Show only locks on this partition: ds=1/hr=2, or ds='1', hr=2.")
@click.option("--database", metavar="NAME", help="Show only locks in this database.")
@click.option("--legacy", is_flag=True, help="Print the form of Hive without transactions.")
@click.option("--extended", is_flag=True, help="Like --legacy, with query, time and statement of each lock.")
@click.option(
    "--blocking", is_flag=True, help="Show only locks that block requests, with owner, age and the waiting requests."
)
@format_option
@click.option("--json", "as_json", is_flag=True, help="Print the structs as JSON, with the IDL's field names.")
@with_target
def show(
    target: "CallTarget",
    table: str | None,
    partition: str | None,
    database: str | None,
    legacy: bool,
    extended: bool,
    blocking: bool,
    form: str | None,
    as_json: bool,
) -> None:
    """List the locks, as SHOW LOCKS of Hive does."""
    from hms_gateway.cli.coordination import lock_commands

    filter = lock_commands.filter_of(table, partition, database)
    lock_commands.show(
        target,
        filter,
        rows_form(form),
        is_legacy=legacy or extended,
        is_extended=extended,
        is_blocking=blocking,
        as_plain_json=as_json,
    )


@locks.command("force-release", epilog=examples('hms-gateway locks force-release 42 --reason "its host is gone"'))
@lock_ids_argument
@click.option("--reason", help="Reason to put into the error text of the transaction.")
@with_target
def force_release(target: "CallTarget", lock_ids: tuple[int, ...], reason: str | None) -> None:
    """Release locks of other users, and show them.

    For administrators. A transaction that loses a lock is aborted, since it would otherwise write without protection.
    """
    from hms_gateway.cli.coordination import lock_commands

    lock_commands.force_release(target, lock_ids, reason)
