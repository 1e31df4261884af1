"""Commands and options. What a command does is in a module of its own, imported when the command runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hms_gateway.cli.calls.target_options import FILE, password_stdin_option, target_of, target_options
from hms_gateway.cli.catalog import catalog_commands, grant_commands
from hms_gateway.cli.coordination.audit_command import audit
from hms_gateway.cli.coordination.lease_group import leases
from hms_gateway.cli.coordination.lock_group import locks
from hms_gateway.cli.operations.bridge_command import bridge
from hms_gateway.cli.pipeline.group import pipeline
from hms_gateway.cli.sql.sql_command import sql
from hms_gateway.cli.terminal.groups import Group
from hms_gateway.cli.terminal.importing import gc_paused
from hms_gateway.cli.terminal.output import fail
from hms_gateway.cli.terminal.signals import ignore_hang_up

if TYPE_CHECKING:
    from hms_gateway.runtime.settings import Settings

_EXAMPLES = """\b
Examples:
  hms-gateway serve                                data in ./var, https://localhost:30443
  hms-gateway serve --demo                         with a sample table to look at
  hms-gateway user add alice                       asks for the password
  hms-gateway call -k get_all_databases            asks for admin's password
  hms-gateway call -k get_table sales orders
  hms-gateway call --explain create_table          the arguments of the method
  hms-gateway sql                                  a shell for HiveQL about the catalog
  hms-gateway locks show --blocking                which locks block which requests
"""
_SERVE_EXAMPLES = """\b
Examples:
  hms-gateway serve --data-dir /srv/hms --host 0.0.0.0
  hms-gateway serve --database postgresql+psycopg://hms@db.example.org/hms --workers 4
  hms-gateway serve --config /etc/hms-gateway/hms-gateway.toml
"""
_MIGRATE_EXAMPLES = """\b
Example:
  hms-gateway migrate --database postgresql+psycopg://hms@db.example.org/hms
"""
_BACKUP_EXAMPLES = """\b
Example:
  hms-gateway backup --data-dir /srv/hms /backup/hms-$(date +%F).db
"""
_CHECK_EXAMPLES = """\b
Examples:
  hms-gateway check --data-dir /srv/hms/var
  hms-gateway check --data-dir /srv/hms/var --remove
  hms-gateway check --config /etc/hms-gateway/hms-gateway.toml --json > report.json
"""
_DOCTOR_EXAMPLES = """\b
Examples:
  hms-gateway doctor
  hms-gateway doctor --config /etc/hms-gateway/hms-gateway.toml --replica https://two.example.org:30443
"""
_USER_EXAMPLES = """\b
Examples:
  hms-gateway user add alice                       asks for the password
  hms-gateway user add alice --password-stdin < password
  hms-gateway user add admin                       a new password for admin
"""
_MAY_EXAMPLES = """\b
Examples:
  hms-gateway may alice select sales.orders
  hms-gateway may alice create sales --group sales-team
"""
_TOKEN_EXAMPLES = """\b
Examples:
  hms-gateway token create etl --ttl 30d --note "nightly jobs" > token
  hms-gateway call --token-file token get_all_databases
  hms-gateway token list
  hms-gateway token revoke 3f2a9c1d77b0
"""
_CALL_EXAMPLES = """\b
A word is the next argument, or name=value. Structs, lists and maps are JSON
with the field names that --explain shows; @file reads JSON from a file, - from
standard input.

\b
Examples:
  hms-gateway call get_partition_names sales orders max_parts=10
  hms-gateway call create_database '{"name": "sales", "description": "sold"}'
  hms-gateway call get_table_req dbName=sales tblName=orders
  hms-gateway call --json get_table sales orders > orders.json
  hms-gateway call create_table @orders.json
"""

config_option = click.option(
    "--config",
    envvar="HMS_GATEWAY_CONFIG",
    show_envvar=True,
    type=FILE,
    help="TOML file with settings.",
    metavar="FILE",
)
data_dir_option = click.option(
    "--data-dir", type=FILE, metavar="FOLDER", help="Folder of database, certificate and users. [default: var]"
)
database_option = click.option(
    "--database", metavar="URL", help="SQLAlchemy URL of the database; unset is SQLite in the data folder."
)
name_argument = click.argument("name", help="Name of the user.")


@click.group(
    cls=Group,
    epilog=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110, "show_default": True},
)
@click.version_option(package_name="hms-gateway", message="hms-gateway %(version)s", help="Show the version and exit.")
def application() -> None:
    """A Hive Metastore you install with pip and call over HTTPS."""


@application.command(epilog=_SERVE_EXAMPLES)
@config_option
@click.option("--host", help="Address to listen on; 0.0.0.0 accepts calls from other machines. [default: 127.0.0.1]")
@click.option("--port", type=int, help="Port to listen on; 0 takes a free one. [default: 30443]")
@data_dir_option
@database_option
@click.option(
    "--demo", is_flag=True, help="Load the protocol document's sample table; web pages served by localhost may call."
)
@click.option(
    "--thrift-port",
    type=int,
    help="Also serve Thrift over TCP to this machine, for PySpark and PyIceberg, usually on port 9083.",
)
@click.option(
    "--thrift-open",
    is_flag=True,
    default=None,
    help="Let every account of this machine use the Thrift port, not only the one that runs the gateway.",
)
@click.option("--workers", type=int, help="Server processes; on SQLite one is fastest. [default: 1]")
@click.option("--tls/--no-tls", default=None, help="HTTPS, or unencrypted HTTP. [default: tls]")
@click.option(
    "--tls-certificate", type=FILE, metavar="FILE", help="PEM certificate chain; unset makes one on the first start."
)
@click.option("--tls-key", type=FILE, metavar="FILE", help="PEM private key of --tls-certificate.")
@click.option("--log-level", help="debug, info, warning or error. [default: info]")
def serve(config: Path | None, database: str | None, demo: bool, **given: Any) -> None:
    """Run a gateway until Ctrl-C or SIGTERM.

    The first start makes a certificate and the user admin, and prints admin's password once. Every setting can also
    be a line of the file of --config or an environment variable HMS_GATEWAY_NAME; an option here overrides both.
    """
    ignore_hang_up()
    settings = _settings(config, database_url=database, **given)
    with gc_paused():
        from hms_gateway.cli.operations.serving import run_server

    run_server(settings, config, demo=demo)


@application.command(epilog=_MIGRATE_EXAMPLES)
@config_option
@data_dir_option
@database_option
def migrate(config: Path | None, data_dir: Path | None, database: str | None) -> None:
    """Create the tables of the database, or change them to those of this version.

    On SQLite `serve` does this itself. On other databases, run it before the first start of every version. It does not
    change anything when the tables are up to date.
    """
    settings = _settings(config, data_dir=data_dir, database_url=database)
    from hms_gateway.cli.operations.migrating import run_migration

    run_migration(settings)


@application.command(epilog=_BACKUP_EXAMPLES)
@click.argument("file", type=FILE, help="A file that does not exist yet.")
@config_option
@data_dir_option
@database_option
def backup(file: Path, config: Path | None, data_dir: Path | None, database: str | None) -> None:
    """Copy the embedded database into FILE, also while a gateway uses it.

    The copy is one consistent state and is checked; it gets the file mode of the database. For other databases this
    command prints the one that backs them up.
    """
    settings = _settings(config, data_dir=data_dir, database_url=database)
    from hms_gateway.cli.operations.backing_up import run_backup

    run_backup(settings, file)


@application.command(epilog=_CHECK_EXAMPLES)
@config_option
@data_dir_option
@database_option
@click.option("--remove", is_flag=True, help="Remove directories that have no row and contain no files.")
@click.option("--remove-with-files", is_flag=True, help="Remove them and the files in them; look at the list first.")
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    default=600,
    metavar="SECONDS",
    help="Skip directories without a row that changed in the last SECONDS: a running call may still add the row.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON on a terminal too.")
def check(
    config: Path | None,
    data_dir: Path | None,
    database: str | None,
    remove: bool,
    remove_with_files: bool,
    older_than: float,
    as_json: bool,
) -> None:
    """Compare the catalog with the directories, also while a gateway runs.

    Lists directories of databases, tables and partitions that have no row in the catalog, for example after a gateway
    was killed; managed tables and partitions whose directory is missing; locations outside the roots; moves that did
    not end; damage of an embedded database. Prints a line for each on a terminal, a JSON object for each otherwise.
    The exit status is 0 when nothing remains, 1 when something does, 2 when the check was not possible.
    """
    settings = _settings(config, data_dir=data_dir, database_url=database)
    from hms_gateway.cli.operations.checking import CheckOptions, run_check

    run_check(settings, CheckOptions(remove or remove_with_files, remove_with_files, older_than, as_json))


@application.command(epilog=_DOCTOR_EXAMPLES)
@config_option
@data_dir_option
@database_option
@click.option(
    "--replica", "replicas", multiple=True, metavar="URL", help="Another gateway of the same database; repeatable."
)
@click.option("--json", "as_json", is_flag=True, help="Print an object for each finding.")
def doctor(
    config: Path | None, data_dir: Path | None, database: str | None, replicas: tuple[str, ...], as_json: bool
) -> None:
    """Say what is wrong with this installation, and what to do about it.

    Looks at settings, folders, certificate, database, clocks, file systems, and whether the gateway and its replicas
    answer. Does not change anything. The exit status is 1 when there is an error.
    """
    settings = _settings(config, data_dir=data_dir, database_url=database)
    from hms_gateway.cli.operations.doctor import run_doctor

    run_doctor(settings, replicas, as_json=as_json)


# Negative numbers are arguments, not options.
@application.command(epilog=_CALL_EXAMPLES, context_settings={"ignore_unknown_options": True})
@click.argument("method", required=False, help="Name of the method.")
@click.argument("arguments", nargs=-1, metavar="[ARGUMENT]...", help="Arguments of the method, see below.")
@target_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON on a terminal too.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Show at most N of a list.")
@click.option("--explain", is_flag=True, help="Show the arguments of METHOD and an example, without calling it.")
@click.option("--list", "show_list", is_flag=True, help="Show all methods without calling one.")
def call(
    method: str | None,
    arguments: tuple[str, ...],
    as_json: bool,
    limit: int | None,
    explain: bool,
    show_list: bool,
    **target: Any,
) -> None:
    """Call one method of any metastore that speaks Thrift JSON over HTTP, and print the answer.

    Prints tables on a terminal, JSON with the IDL's field names otherwise. The password comes from
    HMS_GATEWAY_PASSWORD, --password-file or --password-stdin; without these the command asks for it. The exit status
    is 1 when the metastore refuses the call, 2 when it does not answer.
    """
    from hms_gateway.cli.calls import explaining

    if show_list:
        explaining.print_methods()
    elif method is None:
        fail("which method?", "hms-gateway call --list shows all of them, hms-gateway call --help how to call them")
    elif explain:
        explaining.print_explanation(method)
    else:
        explaining.find_method(method)
        from hms_gateway.cli.calls import calling

        calling.run_call(target_of(**target), method, arguments, as_plain_json=as_json, limit=limit)


application.add_command(sql)
for _command in (
    catalog_commands.ls,
    catalog_commands.describe,
    catalog_commands.export,
    catalog_commands.import_,
    catalog_commands.diff,
    catalog_commands.tail,
):
    application.add_command(_command)
application.add_command(bridge)


@application.group(cls=Group, epilog=_USER_EXAMPLES)
def user() -> None:
    """Add, remove and list the users of the gateway's password file."""


@user.command("add")
@name_argument
@password_stdin_option
@config_option
@data_dir_option
def add_user(name: str, password_stdin: bool, config: Path | None, data_dir: Path | None) -> None:
    """Add a user, or give an existing one a new password.

    Asks for the password twice, unless it comes from standard input. A running gateway accepts the user at once.
    """
    from hms_gateway.cli.operations.user_commands import add, new_password

    settings = _settings(config, data_dir=data_dir)
    add(settings, name, new_password(name, from_stdin=password_stdin))


@user.command("remove")
@name_argument
@config_option
@data_dir_option
def remove_user(name: str, config: Path | None, data_dir: Path | None) -> None:
    """Remove a user and the tokens of the user. A running gateway notices within a second."""
    from hms_gateway.cli.operations.user_commands import remove

    remove(_settings(config, data_dir=data_dir), name)


@user.command("list")
@config_option
@data_dir_option
def list_users(config: Path | None, data_dir: Path | None) -> None:
    """Show the names of the users, one per line."""
    from hms_gateway.cli.operations.user_commands import print_users

    print_users(_settings(config, data_dir=data_dir).users_path)


for _command in (grant_commands.grant, grant_commands.revoke, grant_commands.grants):
    application.add_command(_command)


@application.command(epilog=_MAY_EXAMPLES)
@click.argument("name", metavar="USER", help="Name of the user.")
@click.argument("action", help="see, select, insert, update, delete, create, alter, drop, lock, own or admin.")
@click.argument("thing", metavar="OBJECT", help="A database, database.table, or * for everything.")
@click.option("--group", "groups", multiple=True, metavar="GROUP", help="A group that the login proves; repeatable.")
@config_option
@data_dir_option
@database_option
def may(
    name: str,
    action: str,
    thing: str,
    groups: tuple[str, ...],
    config: Path | None,
    data_dir: Path | None,
    database: str | None,
) -> None:
    """Say whether a user may do something, and why: which grant, role, rule or ownership.

    Reads the database and the rules of these settings, not a running gateway. The exit status is 1 for no.
    """
    settings = _settings(config, data_dir=data_dir, database_url=database)
    from hms_gateway.cli.operations.rights_commands import run_may

    run_may(settings, name, action, thing, groups)


@application.group(cls=Group, epilog=_TOKEN_EXAMPLES)
def token() -> None:
    """Create, list and revoke personal access tokens, which replace a password in `Authorization: Bearer`."""


@token.command("create")
@click.argument("name", help="Name of the user who calls with the token.")
@click.option("--ttl", default="90d", metavar="DURATION", help="How long it is valid: a number with s, m, h or d.")
@click.option("--note", default="", show_default=False, help="What it is for; shown by `token list`.")
@config_option
@data_dir_option
def create_token(name: str, ttl: str, note: str, config: Path | None, data_dir: Path | None) -> None:
    """Make a token and print it, only this once.

    The gateway keeps a hash of it. A running gateway accepts it at once.
    """
    from hms_gateway.cli.operations.token_commands import create

    create(_settings(config, data_dir=data_dir), name, ttl, note)


@token.command("list")
@config_option
@data_dir_option
def list_tokens(config: Path | None, data_dir: Path | None) -> None:
    """Show the tokens: id, user, when created, when they expire, when last used (to the minute), note."""
    from hms_gateway.cli.operations.token_commands import print_tokens

    print_tokens(_settings(config, data_dir=data_dir))


@token.command("revoke")
@click.argument("ids", nargs=-1, metavar="[ID]...", help="Ids of the tokens.")
@click.option("--user", "name", metavar="NAME", help="Revoke all tokens of this user.")
@config_option
@data_dir_option
def revoke_tokens(ids: tuple[str, ...], name: str | None, config: Path | None, data_dir: Path | None) -> None:
    """Revoke tokens. A running gateway notices within a second.

    With --user the delegation tokens of the user, too, and those that the user got for others.
    """
    from hms_gateway.cli.operations.token_commands import revoke

    revoke(_settings(config, data_dir=data_dir), ids, name)


application.add_command(pipeline)
application.add_command(locks)
application.add_command(leases)
application.add_command(audit)


def _settings(config: Path | None, **given: Any) -> "Settings":
    from hms_gateway.runtime.settings import SettingsError, load_settings

    try:
        return load_settings(config, **given)
    except SettingsError as error:
        fail(str(error), "hms-gateway serve --help and docs/operations.md name the settings")
