"""The commands about objects and rights, with their options."""

from typing import Final

import click

from hms_gateway.cli.calls.targets import call_command
from hms_gateway.cli.terminal.commands import FILE, FORM, argument, form_or_json, group, option, repeatable

OBJECTS: Final = (
    call_command(
        "ls",
        "List databases, the tables of a database, or the partitions of a table.",
        argument("name", required=False, metavar="[DB[.TABLE[/PARTITION]]]"),
        option("--long -l is_long", "Show owner, time of creation, location and more of each object."),
        option("--limit N", "List at most N names."),
        FORM,
        work="catalog.listing:run_list",
        examples=["ls", "ls -l sales", "ls sales.orders --limit 10", "ls sales.orders/region=eu"],
    ),
    call_command(
        "describe",
        """Describe a database, table or partition.

        --format json prints the struct with the IDL's field names.
        """,
        argument("name", metavar="DB[.TABLE[/PARTITION]]"),
        FORM,
        work="catalog.listing:run_describe",
        examples=[
            "describe sales.orders",
            "describe sales.orders/region=eu/ds=2026-01-01",
            "describe sales --format json",
        ],
    ),
    call_command(
        "export",
        """Write the catalog, a database or a table as JSON lines.

        Contains databases, functions, tables, partitions, primary and foreign keys; no statistics, grants or files.
        """,
        argument("name", required=False, metavar="[DB[.TABLE]]"),
        option("--output -o FILE", "File to write; unset means standard output."),
        work="catalog.exports:run_export",
        examples=["export sales -o sales.jsonl", "export sales.orders | gzip > orders.jsonl.gz", "export > all.jsonl"],
    ),
    call_command(
        "import",
        """Create the objects of an export, from FILE or standard input.

        Stops at the first refused object; earlier objects stay. Copies no files.
        """,
        argument("file", required=False, type=FILE, metavar="[FILE]"),
        option("--exact is_exact", "Keep creation times and create no directory (administrators of a gateway only)."),
        option(
            "--skip-existing skips_existing",
            "Keep existing objects; without this option the first one ends the import.",
        ),
        repeatable(
            "--relocate relocated OLD=NEW", "Replace directory OLD by NEW in locations, such as another warehouse"
        ),
        work="catalog.exports:run_import",
        examples=[
            "import sales.jsonl",
            "import --skip-existing < sales.jsonl",
            "import sales.jsonl --relocate file:/old/warehouse=file:/new/warehouse",
        ],
    ),
    call_command(
        "diff",
        """Compare two catalogs, or a catalog and an export.

        `-` is only in BEFORE, `+` only in AFTER, `~` differs. Compares the part of the catalog that an export contains.

        A side is a file of `hms-gateway export`, or the URL of a metastore, which is called with the same user and
        password; without AFTER it is the one of --url.
        """,
        argument("before"),
        argument("after", required=False),
        option("--only DB[.TABLE]", "Compare only this database or table."),
        repeatable("--ignore ignored FIELD", "Field that may differ, * stands for any text"),
        *form_or_json(),
        work="catalog.comparing:run_diff",
        examples=[
            "diff yesterday.jsonl",
            "diff --only sales yesterday.jsonl today.jsonl",
            "diff --ignore 'parameters.transient_*' https://a.example.org/metastore https://b.example.org/metastore",
        ],
        exits={0: "The catalogs are equal.", 1: "They are different, or the metastore refused."},
    ),
    call_command(
        "tail",
        "Show the last changes of the catalog, then new ones.",
        argument("name", required=False, metavar="[DB[.TABLE]]"),
        option("--lines -n N", "Show the last N events first.", type=click.IntRange(min=0), default=10),
        option("--since EVENT", "Show the events after this one first; replaces --lines.", type=click.IntRange(min=0)),
        option("--follow/--no-follow follows", "Wait for further events, until Ctrl-C.", default=True),
        option("--json as_json", "Print a JSON object for each event, with its message."),
        work="catalog.changes:run_tail",
        examples=["tail -n 50", "tail sales.orders --no-follow --json"],
        exits={130: "Ctrl-C ended it."},
    ),
)

_PRIVILEGE: Final = argument("privilege", "select, insert, create, ... or all; or the word role.")
_OBJECT: Final = argument("thing", "*, database, database.table; or the role's name.", metavar="OBJECT")
_PARTY: Final = argument("party", "A user, group:NAME or role:NAME.")
_ROLE: Final = argument("role", "Name of the role.")

RIGHTS: Final = (
    call_command(
        "grant",
        """Grant a privilege on an object, or a role, to a user, group or role.

        Prints a note if authorization is off, or the user or group is unknown.
        """,
        *(_PRIVILEGE, _OBJECT, _PARTY),
        option("--grant-option is_option", "Let the party grant it to others."),
        work="catalog.granting:grant",
        examples=[
            "grant select sales.orders alice",
            "grant all sales group:sales-team",
            "grant role analyst group:staff",
        ],
    ),
    call_command(
        "revoke",
        "Revoke a privilege or a role.",
        *(_PRIVILEGE, _OBJECT, _PARTY),
        work="catalog.granting:revoke",
        examples=["revoke select sales.orders alice", "revoke role analyst group:staff"],
    ),
    call_command(
        "grants",
        """List what was granted to a party or on an object.

        --on includes grants on everything, on the database of a table, and on the tables of a database. Rules are not
        listed; `hms-gateway may` evaluates them.
        """,
        argument("party", "A user, group:NAME or role:NAME; unset means all.", required=False),
        option("--on thing OBJECT", "Show the parties with rights on this database or database.table, owners too."),
        FORM,
        work="catalog.granting:show",
        examples=["grants alice", "grants role:analyst", "grants --on sales.orders"],
    ),
    group(
        "role",
        "Create, drop and list roles.",
        call_command(
            "create",
            "Create a role; `hms-gateway grant` gives it privileges and members.",
            _ROLE,
            work="catalog.granting:create_role",
            examples=["role create analyst"],
        ),
        call_command(
            "drop",
            "Drop a role with its grants.",
            _ROLE,
            work="catalog.granting:drop_role",
            examples=["role drop analyst"],
        ),
        call_command(
            "list",
            "List the roles, or the members of one.",
            argument("role", "Name of a role, to list who has it.", required=False),
            FORM,
            work="catalog.granting:show_role",
            examples=["role list", "role list analyst"],
        ),
        examples=["role create analyst", "grant role analyst group:staff"],
    ),
    call_command(
        "may",
        """Tell if a user may do something, and the grant, role, rule or ownership that decides.

        Asks the gateway as an administrator; the answer includes its rules and groups_file.
        """,
        argument("name", "Name of the user.", metavar="USER"),
        argument("action", "see, select, insert, update, delete, create, alter, drop, lock, own or admin."),
        argument("thing", "A database, database.table, or * for everything.", metavar="OBJECT"),
        repeatable("--group groups GROUP", "Group that the login proves"),
        work="catalog.granting:explain",
        examples=["may alice select sales.orders", "may alice create sales --group sales-team"],
        exits={0: "Yes.", 1: "No, or the metastore refused."},
    ),
)
