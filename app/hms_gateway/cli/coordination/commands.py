"""The commands about locks, leases and changes, with their options."""

from typing import Final

import click

from hms_gateway.cli.calls.targets import call_command
from hms_gateway.cli.terminal.commands import FORM, STRUCTS_AS_JSON, argument, command, group, option, repeatable

_DATABASE: Final = option("--database NAME", "Database of tables that are named without one.", default="default")
_WANTED: Final = (
    option("--operation OPERATION", "Operation on the objects, such as 'insert' or 'add partition'."),
    repeatable("--on OBJECT", "Object that the operation changes"),
    repeatable("--reads OBJECT", "Object that the operation reads"),
    _DATABASE,
    option("--as-hive is_as_hive", "Follow Hive's code where it differs from Hive's page about locking."),
)
_LOCK_IDS: Final = argument("lock_ids", nargs=-1, type=int, required=True, metavar="LOCK_ID...")

LOCKS: Final = group(
    "locks",
    "Show, acquire and release locks of Hive's concurrency model.",
    command(
        "explain",
        """Show the locks that a statement needs, as EXPLAIN LOCKS does.

        Does not call a metastore.
        """,
        argument("statement", required=False),
        *_WANTED,
        work="coordination.locks:explain",
        examples=[
            'locks explain "insert into t2(partition p2) select .. t1 partition p1"',
            "locks explain --operation insert --on sales.t/ds=1 --reads sales.u",
        ],
    ),
    call_command(
        "acquire",
        """Acquire the locks that a statement needs, all or none, and print their id.

        A request that has to wait is tried again after a pause (hive.lock.numretries,
        hive.lock.sleep.between.retries).

        The statement may be HiveQL or one of the short forms of Hive's page about locking. With --operation the request
        is structured instead: objects are database.table, database.table/partition, or database.* for a database.
        COMMAND runs while the locks are held; this command sends their heartbeats and releases them afterwards. Without
        COMMAND the locks last until their release, or the metastore's time-out without a heartbeat.
        """,
        argument("words", nargs=-1, metavar="[STATEMENT] [-- COMMAND...]"),
        *_WANTED,
        repeatable(
            "--hiveconf NAME=VALUE",
            "Value of hive.support.concurrency, hive.lock.numretries, hive.lock.sleep.between.retries or "
            "hive.unlock.numretries",
        ),
        option(
            "--keep-place/--no-keep-place keeps_place",
            "Keep the place in the queue between two tries, so that later requests do not overtake; --no-keep-place "
            "withdraws the request before each pause, as Hive does.",
            default=True,
        ),
        option(
            "--heartbeat SECONDS",
            "Seconds between heartbeats while COMMAND runs, well below txn_timeout_seconds.",
            type=click.FloatRange(min=0.01),
            default=60.0,
        ),
        work="coordination.locks:acquire",
        examples=[
            'locks acquire "drop table sales.orders"',
            'locks acquire "insert overwrite table t select * from u" -- ./job.sh',
            "locks acquire --operation insert --on sales.t/ds=1 --reads sales.u",
            'locks acquire --hiveconf hive.lock.numretries=0 "drop table t"',
        ],
        exits={1: "No try succeeded, or the locks were lost; that of COMMAND otherwise."},
    ),
    call_command(
        "release",
        """Release locks by id.

        Releasing an unknown id succeeds.
        """,
        _LOCK_IDS,
        work="coordination.locks:release",
        examples=["locks release 42 43"],
    ),
    call_command(
        "show",
        "List the locks, as SHOW LOCKS of Hive does.",
        option("--table TABLE", "Show only locks on this table and its partitions."),
        option("--partition NAME", "Show only locks on this partition: ds=1/hr=2, or ds='1', hr=2."),
        option("--database NAME", "Show only locks in this database."),
        option("--legacy is_legacy", "Print the form of Hive without transactions."),
        option("--extended is_extended", "Like --legacy, with query, time and statement of each lock."),
        option(
            "--blocking is_blocking", "Show only locks that block requests, with owner, age and the waiting requests."
        ),
        FORM,
        STRUCTS_AS_JSON,
        work="coordination.locks:show",
        examples=["locks show --table sales.orders", "locks show --blocking"],
    ),
    call_command(
        "force-release",
        """Release locks of other users, and show them.

        For administrators. A transaction that loses a lock is aborted, since it would otherwise write without
        protection.
        """,
        _LOCK_IDS,
        option("--reason TEXT", "Reason to put into the error text of the transaction."),
        work="coordination.locks:force_release",
        examples=['locks force-release 42 --reason "its host is gone"'],
    ),
    examples=[
        """locks acquire "alter table sales.orders add partition (ds='1')" -- ./load.sh""",
        "locks show --blocking",
    ],
)

_EXCLUSIVE: Final = repeatable("--exclusive -x OBJECT", "Object to lease for writing")
_LEASE_ID: Final = argument("lease_id", type=int)
_SOME_OBJECTS: Final = argument("objects", nargs=-1, metavar="[OBJECT]...")

LEASES: Final = group(
    "leases",
    """Grab, show, extend and drop leases: locks for a fixed time, for scripts and operators.

    Objects are database.table, database.table/partition, or database.* for a database; they need not exist.
    """,
    call_command(
        "grab",
        """Grab a lease on all of the objects or none, and print its id.

        COMMAND runs while the lease is held: this command extends the lease until COMMAND ends, then drops it.
        HMS_LEASE_ID is the lease's id. The gateway refuses a change that presents the id (header x-hms-lease-id) once
        the lease is lost.
        """,
        argument("command", nargs=-1, metavar="[-- COMMAND...]"),
        _EXCLUSIVE,
        repeatable("--shared -s OBJECT", "Object to lease for reading"),
        option("--seconds N", "How long the lease, and each extension, lasts.", type=int, default=3600),
        option("--wait wait_seconds N", "Seconds to wait for conflicting leases to end.", type=int, default=0),
        _DATABASE,
        work="coordination.leases:grab",
        examples=[
            "leases grab --exclusive sales.orders --shared sales.customers",
            "leases grab -x sales.orders/ds=1 --seconds 60 --wait 30 -- ./load.sh",
        ],
        exits={1: "Another lease conflicts, or the lease was lost; that of COMMAND otherwise."},
    ),
    call_command(
        "show",
        """List the leases on some objects and on all that lies in them, or every lease.

        '*', or no object, lists every lease.
        """,
        _SOME_OBJECTS,
        _DATABASE,
        FORM,
        STRUCTS_AS_JSON,
        work="coordination.leases:show",
        examples=["leases show", "leases show sales.orders"],
    ),
    call_command(
        "extend",
        """Extend one of your leases, or some of its objects, and print the new end.

        A shared object named by --exclusive becomes exclusive if no other lease conflicts.
        """,
        _LEASE_ID,
        _SOME_OBJECTS,
        _EXCLUSIVE,
        option("--seconds N", "Seconds from now; 0 extends by the original duration.", type=int, default=0),
        _DATABASE,
        work="coordination.leases:extend",
        examples=["leases extend 7 --seconds 600"],
    ),
    call_command(
        "drop",
        """Drop one of your leases, or some of its objects.

        Dropping a lease that has ended succeeds.
        """,
        _LEASE_ID,
        _SOME_OBJECTS,
        _DATABASE,
        work="coordination.leases:drop",
        examples=["leases drop 7", "leases drop 7 sales.orders"],
    ),
    call_command(
        "force-drop",
        """Drop objects from the leases of all users.

        For administrators. Includes objects within these; '*' drops every lease.
        """,
        argument("objects", nargs=-1, required=True, metavar="OBJECT..."),
        _DATABASE,
        work="coordination.leases:force_drop",
        examples=["leases force-drop sales.orders", "leases force-drop '*'"],
        exits={1: "No lease has any of the objects, or the metastore refused."},
    ),
    examples=["leases grab --exclusive sales.orders --seconds 600 -- ./load.sh", "leases show '*'"],
)
AUDIT: Final = call_command(
    "audit",
    """Show the last changes with user, address and call, the newest first.

    For administrators. Changes without an event, such as grants, are in the audit log only.
    """,
    option("--by changed_by NAME", "Show only changes by this user."),
    option("--object named NAME", "Show only changes of this database, or database.table."),
    option("--since TIME", "Begin of the time span: a date, a date and time, or an age such as 90m, 12h, 7d."),
    option("--until TIME", "End of the time span, written as for --since."),
    option("--limit N", "Show at most the newest N changes.", type=click.IntRange(1, 10_000), default=100),
    FORM,
    STRUCTS_AS_JSON,
    work="catalog.changes:show",
    examples=[
        "audit --object sales.orders",
        "audit --by ann --since 7d --json",
        "audit --since 2026-11-21 --until 2026-11-22",
    ],
)
