"""Commands and options. What a command does is in a module of its own, imported when the command runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hms_gateway.cli.calls.target_options import FILE, target_of, target_options
from hms_gateway.cli.catalog import catalog_commands, grant_commands
from hms_gateway.cli.coordination.audit_command import audit
from hms_gateway.cli.coordination.lease_group import leases
from hms_gateway.cli.coordination.lock_group import locks
from hms_gateway.cli.operations.bridge_command import bridge
from hms_gateway.cli.pipeline.group import pipeline
from hms_gateway.cli.sql.sql_command import sql
from hms_gateway.cli.terminal.format_options import format_option, rows_form, with_json
from hms_gateway.cli.terminal.groups import Group, examples
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
  hms-gateway check --config /etc/hms-gateway/hms-gateway.toml --format csv > report.csv
"""
_DOCTOR_EXAMPLES = """\b
Examples:
  hms-gateway doctor
  hms-gateway doctor --config /etc/hms-gateway/hms-gateway.toml --replica https://two.example.org:30443
"""
_ADD_USER_EXAMPLES = """\b
Examples:
  hms-gateway user add alice                       asks for the password
  hms-gateway user add alice --password-stdin < password
  hms-gateway user add admin --config /etc/hms-gateway/hms-gateway.toml
"""
_CREATE_TOKEN_EXAMPLES = """\b
Examples:
  hms-gateway token create etl --ttl 30d --note "nightly jobs" > token
  hms-gateway call --token-file token get_all_databases
"""
_REVOKE_TOKEN_EXAMPLES = """\b
Examples:
  hms-gateway token revoke 3f2a9c1d77b0
  hms-gateway token revoke --user etl
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
    "--data-dir", type=FILE, metavar="FOLDER", help="Folder of the database, certificate and users. [default: var]"
)
database_option = click.option(
    "--database", metavar="URL", help="SQLAlchemy URL of the database; unset means SQLite in the data folder."
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
    "--demo", is_flag=True, help="Load sample data, and let web pages that localhost serves call the gateway."
)
@click.option(
    "--thrift-port",
    type=int,
    help="Serve Thrift over TCP as well, to programs of this machine such as PySpark; the usual port is 9083.",
)
@click.option(
    "--thrift-open",
    is_flag=True,
    default=None,
    help="Let all accounts of this machine use the Thrift port, not only the one that runs the gateway.",
)
@click.option("--workers", type=int, help="Number of server processes; with SQLite, one is fastest. [default: 1]")
@click.option("--tls/--no-tls", default=None, help="Serve HTTPS, or unencrypted HTTP. [default: tls]")
@click.option(
    "--tls-certificate",
    type=FILE,
    metavar="FILE",
    help="Certificate chain (PEM); unset means that the first start makes one.",
)
@click.option("--tls-key", type=FILE, metavar="FILE", help="Private key (PEM) of --tls-certificate.")
@click.option("--log-level", help="Least severity of log lines: debug, info, warning or error. [default: info]")
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
    """Create or upgrade the database schema.

    On SQLite `serve` does this itself. On other databases, run it before the first start of every version. It does not
    change anything when the tables are up to date.
    """
    settings = _settings(config, data_dir=data_dir, database_url=database)
    from hms_gateway.cli.operations.migrating import run_migration

    run_migration(settings)


@application.command(epilog=_BACKUP_EXAMPLES)
@click.argument("file", type=FILE, help="File to write; it must not exist.")
@config_option
@data_dir_option
@database_option
def backup(file: Path, config: Path | None, data_dir: Path | None, database: str | None) -> None:
    """Copy the SQLite database into FILE, even while a gateway uses it.

    The copy is one consistent state and is checked; it gets the file mode of the database. For other databases it
    prints the command for a backup.
    """
    settings = _settings(config, data_dir=data_dir, database_url=database)
    from hms_gateway.cli.operations.backing_up import run_backup

    run_backup(settings, file)


@application.command(epilog=_CHECK_EXAMPLES)
@config_option
@data_dir_option
@database_option
@click.option("--remove", is_flag=True, help="Remove directories that have no row in the catalog and contain no files.")
@click.option(
    "--remove-with-files", is_flag=True, help="Remove these directories also with their files; read the list first."
)
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    default=600,
    metavar="SECONDS",
    help="Skip directories that changed in the last SECONDS: a running call may still add their row.",
)
@with_json("a line of text for each on a terminal, json otherwise")
def check(
    config: Path | None,
    data_dir: Path | None,
    database: str | None,
    remove: bool,
    remove_with_files: bool,
    older_than: float,
    form: str | None,
) -> None:
    """Compare the catalog with the directories of tables and partitions, even while a gateway runs.

    Lists directories of databases, tables and partitions without a row in the catalog, for example after a kill;
    managed tables and partitions without a directory; locations outside the roots; unfinished moves; damage of a SQLite
    database. Prints a line for each on a terminal, otherwise a JSON object. The exit status is 0 without findings, 1
    with findings, 2 for a failed check.
    """
    settings = _settings(config, data_dir=data_dir, database_url=database)
    from hms_gateway.cli.operations.checking import CheckOptions, run_check

    run_check(settings, CheckOptions(remove or remove_with_files, remove_with_files, older_than, form))


@application.command(epilog=_DOCTOR_EXAMPLES)
@config_option
@data_dir_option
@database_option
@click.option("--port", type=int, help="Port on which the gateway of this machine listens. [default: 30443]")
@click.option(
    "--replica",
    "replicas",
    multiple=True,
    metavar="URL",
    help="URL of another gateway of the same database; repeatable.",
)
@with_json()
def doctor(
    config: Path | None,
    data_dir: Path | None,
    database: str | None,
    port: int | None,
    replicas: tuple[str, ...],
    form: str | None,
) -> None:
    """Report problems of this installation, and their remedies.

    Checks settings, folders, certificate, database, clocks, file systems, and the answers of the gateway and its
    replicas. Changes nothing. The exit status is 1 for errors.
    """
    settings = _settings(config, data_dir=data_dir, database_url=database, port=port)
    from hms_gateway.cli.operations.doctor import run_doctor

    run_doctor(settings, replicas, form=form)


# Negative numbers are arguments, not options.
@application.command(epilog=_CALL_EXAMPLES, context_settings={"ignore_unknown_options": True})
@click.argument("method", required=False, help="Name of the method.")
@click.argument("arguments", nargs=-1, metavar="[ARGUMENT]...", help="Arguments of the method, see below.")
@target_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON on a terminal as well.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Show at most N elements of a list.")
@click.option("--explain", is_flag=True, help="Show the arguments of METHOD and an example instead of calling it.")
@click.option("--list", "show_list", is_flag=True, help="List all methods instead of calling one.")
def call(
    method: str | None,
    arguments: tuple[str, ...],
    as_json: bool,
    limit: int | None,
    explain: bool,
    show_list: bool,
    **target: Any,
) -> None:
    """Call one method of a metastore and print the answer.

    Works with every metastore that speaks Thrift JSON over HTTP.

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


@application.group(cls=Group, epilog=examples("hms-gateway user add alice"))
def user() -> None:
    """Add, remove and list the users of the gateway's password file."""


@user.command("add", epilog=_ADD_USER_EXAMPLES)
@name_argument
@click.option("--password-stdin", is_flag=True, help="Read the password from the first line of standard input.")
@click.option(
    "--inherit", is_flag=True, help="Give the user the grants and objects that a removed user of this name left."
)
@click.option("--allow-short", is_flag=True, help="Accept a password of fewer than eight characters.")
@config_option
@data_dir_option
def add_user(
    name: str, password_stdin: bool, inherit: bool, allow_short: bool, config: Path | None, data_dir: Path | None
) -> None:
    """Add a user, or give an existing one a new password.

    Asks for the password twice, unless it comes from standard input. A running gateway accepts the user at once.
    Without --inherit the command refuses a new name that has grants or objects.
    """
    from hms_gateway.cli.operations.user_commands import add, new_password

    settings = _settings(config, data_dir=data_dir)
    _need_folder(settings.users_file, settings, config, data_dir)
    password = new_password(name, from_stdin=password_stdin)
    add(settings, name, password, inherits=inherit, is_short_allowed=allow_short)


@user.command("remove", epilog=examples("hms-gateway user remove alice"))
@name_argument
@config_option
@data_dir_option
def remove_user(name: str, config: Path | None, data_dir: Path | None) -> None:
    """Remove a user and the user's tokens.

    A running gateway notices within a second. Grants and objects of the user stay; the command lists them.
    """
    from hms_gateway.cli.operations.user_commands import remove

    remove(_settings(config, data_dir=data_dir), name)


@user.command("list", epilog=examples("hms-gateway user list"))
@config_option
@data_dir_option
def list_users(config: Path | None, data_dir: Path | None) -> None:
    """List the users of the password file, one name per line."""
    from hms_gateway.cli.operations.user_commands import print_users

    print_users(_settings(config, data_dir=data_dir).users_path)


for _command in (
    grant_commands.grant,
    grant_commands.revoke,
    grant_commands.grants,
    grant_commands.role,
    grant_commands.may,
):
    application.add_command(_command)


@application.group(cls=Group, epilog=examples("hms-gateway token list"))
def token() -> None:
    """Create, list and revoke access tokens: logins of programs without a password."""


@token.command("create", epilog=_CREATE_TOKEN_EXAMPLES)
@click.argument("name", help="Name of the user who calls with the token.")
@click.option("--ttl", default="90d", metavar="DURATION", help="Validity of the token: a number with s, m, h or d.")
@click.option("--note", default="", show_default=False, help="Purpose of the token; `token list` shows it.")
@config_option
@data_dir_option
def create_token(name: str, ttl: str, note: str, config: Path | None, data_dir: Path | None) -> None:
    """Create a token and print it.

    The token is shown only this once, since the gateway keeps a hash of it. A running gateway accepts it at once.
    """
    from hms_gateway.cli.operations.token_commands import create

    settings = _settings(config, data_dir=data_dir)
    _need_folder(None, settings, config, data_dir)
    create(settings, name, ttl, note)


@token.command("list", epilog=examples("hms-gateway token list"))
@format_option
@config_option
@data_dir_option
def list_tokens(form: str | None, config: Path | None, data_dir: Path | None) -> None:
    """List the tokens: id, user, time of creation, expiry, last use (to the minute), note."""
    from hms_gateway.cli.operations.token_commands import print_tokens

    print_tokens(_settings(config, data_dir=data_dir), rows_form(form))


@token.command("revoke", epilog=_REVOKE_TOKEN_EXAMPLES)
@click.argument("ids", nargs=-1, metavar="[ID]...", help="Ids of the tokens.")
@click.option("--user", "name", metavar="NAME", help="User whose tokens are revoked.")
@config_option
@data_dir_option
def revoke_tokens(ids: tuple[str, ...], name: str | None, config: Path | None, data_dir: Path | None) -> None:
    """Revoke tokens by id, or all tokens of a user.

    A running gateway notices within a second. --user also revokes the user's delegation tokens, and those that the
    user got for others.
    """
    from hms_gateway.cli.operations.token_commands import revoke

    revoke(_settings(config, data_dir=data_dir), ids, name)


application.add_command(pipeline)
application.add_command(locks)
application.add_command(leases)
application.add_command(audit)


def _need_folder(file: Path | None, settings: "Settings", config: Path | None, data_dir: Path | None) -> None:
    """Ends the command where a new data folder would be made that was not asked for: no gateway would read it."""
    if file is None and config is not None and data_dir is None and not settings.data_dir.exists():
        folder = settings.data_dir.absolute()
        fail(
            f"data_dir {folder} of {config} does not exist", "start the gateway first, or name the folder by --data-dir"
        )


def _settings(config: Path | None, **given: Any) -> "Settings":
    from hms_gateway.runtime.settings import SettingsError
    from hms_gateway.runtime.settings_reading import load_settings

    try:
        return load_settings(config, **given)
    except SettingsError as error:
        fail(str(error), "hms-gateway serve --help and docs/settings.md name the settings")
