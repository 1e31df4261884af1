"""`hms-gateway locks …`: the commands and their options; what they do is in `lock_commands`."""

from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.target_options import with_target

if TYPE_CHECKING:
    from app.cli.calling import Target

_EXAMPLES = """\b
Examples:
  hms-gateway locks explain "insert into t2(partition p2) select .. t1 partition p1"
  hms-gateway locks acquire "alter table sales.orders add partition (ds='1')" -- ./load.sh
  hms-gateway locks show --table sales.orders
  hms-gateway locks show --blocking
  hms-gateway locks force-release 42 --reason "its host is gone"
"""
_ACQUIRE_EXAMPLES = """\b
The statement may be HiveQL or one of the short forms of Hive's page about
locking. With --operation the request is structured instead: objects are
database.table, database.table/partition, or database.* for a database.
What follows -- is run while the locks are held; they are kept alive and
released afterwards. Without it the locks stay until they are released or
nobody has sent a heartbeat for the metastore's time-out.

\b
Examples:
  hms-gateway locks acquire "drop table sales.orders"
  hms-gateway locks acquire "insert overwrite table t select * from u" -- ./job.sh
  hms-gateway locks acquire --operation insert --on sales.t/ds=1 --reads sales.u
  hms-gateway locks acquire --hiveconf hive.lock.numretries=0 "drop table t"
"""

locks = typer.Typer(
    help="Locks of Hive's concurrency model: which a command needs, who holds what, and freeing it.",
    epilog=_EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode=None,
)

StatementArgument = Annotated[str | None, typer.Argument(metavar="[STATEMENT]", show_default=False)]
OperationOption = Annotated[
    str | None, typer.Option(help="What is done to the objects, such as 'insert' or 'add partition'.")
]
OnOption = Annotated[list[str] | None, typer.Option(metavar="OBJECT", help="An object that is changed; repeatable.")]
ReadsOption = Annotated[list[str] | None, typer.Option(metavar="OBJECT", help="An object that is read; repeatable.")]
DatabaseOption = Annotated[str, typer.Option(metavar="NAME", help="Database of tables named without one.")]
AsHiveOption = Annotated[
    bool, typer.Option("--as-hive", help="Lock what Hive's code locks, where that is not what Hive's page says.")
]
HiveconfOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="hive.support.concurrency, hive.lock.numretries, hive.lock.sleep.between.retries or "
        "hive.unlock.numretries; repeatable.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON with the IDL's field names.")]


@locks.command()
def explain(
    statement: StatementArgument = None,
    operation: OperationOption = None,
    on: OnOption = None,
    reads: ReadsOption = None,
    database: DatabaseOption = "default",
    as_hive: AsHiveOption = False,
) -> None:
    """Show the locks that a command needs, as EXPLAIN LOCKS does; no metastore is asked."""
    from app.cli import lock_commands

    wanted = lock_commands.WantedLocks(statement, operation, on or (), reads or (), database, as_hive)
    lock_commands.explain(wanted)


@locks.command(epilog=_ACQUIRE_EXAMPLES)
@with_target
def acquire(
    target: "Target",
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[STATEMENT] [-- COMMAND...]", show_default=False)
    ] = None,
    operation: OperationOption = None,
    on: OnOption = None,
    reads: ReadsOption = None,
    database: DatabaseOption = "default",
    as_hive: AsHiveOption = False,
    hiveconf: HiveconfOption = None,
    heartbeat: Annotated[
        float, typer.Option(min=0.01, help="Seconds between heartbeats of a command, well below txn_timeout_seconds.")
    ] = 60.0,
) -> None:
    """Acquire the locks that a command needs, all or none, and print their id.

    A request that would have to wait is denied, given up, and tried again after a pause (hive.lock.numretries,
    hive.lock.sleep.between.retries). Leaves with 1 when it was denied as often as that.
    """
    from app.cli import lock_commands

    statement, command = lock_commands.statement_and_command(words or [], is_structured=operation is not None)
    wanted = lock_commands.WantedLocks(statement, operation, on or (), reads or (), database, as_hive)
    lock_commands.acquire(target, wanted, hiveconf or (), command, heartbeat)


@locks.command()
@with_target
def release(target: "Target", lock_ids: Annotated[list[int], typer.Argument(metavar="LOCK_ID...")]) -> None:
    """Release locks by id. One that is not there any more is no error."""
    from app.cli import lock_commands

    lock_commands.release(target, lock_ids)


@locks.command()
@with_target
def show(
    target: "Target",
    table: Annotated[str | None, typer.Option(metavar="TABLE", help="Only locks on this table and its parts.")] = None,
    partition: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only on this partition: ds=1/hr=2, or ds='1', hr=2.")
    ] = None,
    database: Annotated[str | None, typer.Option(metavar="NAME", help="Only locks in this database.")] = None,
    legacy: Annotated[bool, typer.Option("--legacy", help="The form Hive prints without transactions.")] = False,
    extended: Annotated[
        bool, typer.Option("--extended", help="The form without transactions, with query, time and statement.")
    ] = False,
    blocking: Annotated[
        bool, typer.Option("--blocking", help="Only locks that others wait for: whose, since when, for whom.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show locks as SHOW LOCKS does: one per line, with tabs in between."""
    from app.cli import lock_commands

    filter = lock_commands.filter_of(table, partition, database)
    lock_commands.show(
        target, filter, is_legacy=legacy or extended, is_extended=extended, is_blocking=blocking, as_plain_json=as_json
    )


@locks.command("force-release")
@with_target
def force_release(
    target: "Target",
    lock_ids: Annotated[list[int], typer.Argument(metavar="LOCK_ID...")],
    reason: Annotated[str | None, typer.Option(help="What the holder of a transaction is told.")] = None,
) -> None:
    """Take locks away from whoever has them (administrators only), and show what was taken.

    A transaction that loses a lock is aborted: it would go on writing without protection.
    """
    from app.cli import lock_commands

    lock_commands.force_release(target, lock_ids, reason)
