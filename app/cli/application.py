"""Commands and options. What a command does is in a module of its own, imported when the command runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.bridge_command import EXAMPLES as BRIDGE_EXAMPLES
from app.cli.bridge_command import bridge
from app.cli.importing import uncollected
from app.cli.lease_group import leases
from app.cli.lock_group import locks
from app.cli.output import fail, out
from app.cli.target_options import (
    DEFAULT_URL,
    CacertOption,
    HeaderOption,
    InsecureOption,
    PasswordFileOption,
    PasswordStdinOption,
    TimeoutOption,
    UrlOption,
    UserOption,
    target_of,
)

if TYPE_CHECKING:
    from app.settings import Settings

_EXAMPLES = """\b
Examples:
  hms-gateway serve                                data in ./var, https://localhost:30443
  hms-gateway serve --demo                         with a sample table to look at
  hms-gateway user add alice                       asks for the password
  hms-gateway call -k get_all_databases            asks for admin's password
  hms-gateway call -k get_table sales orders
  hms-gateway call --explain create_table          what the method takes
  hms-gateway locks show --blocking                who holds up whom
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
_USER_EXAMPLES = """\b
Examples:
  hms-gateway user add alice                       asks for the password
  hms-gateway user add alice --password-stdin < password
  hms-gateway user add admin                       a new password, when it got lost
"""
_CALL_EXAMPLES = """\b
A word is the next argument, or name=value. Structs, lists and maps are JSON
with the field names that --explain shows; @file reads them from a file, - from
standard input.

\b
Examples:
  hms-gateway call get_partition_names sales orders max_parts=10
  hms-gateway call create_database '{"name": "sales", "description": "sold"}'
  hms-gateway call get_table_req dbName=sales tblName=orders
  hms-gateway call --json get_table sales orders > orders.json
  hms-gateway call create_table @orders.json
"""

application = typer.Typer(
    help="A Hive Metastore you install with pip and call over HTTPS.",
    epilog=_EXAMPLES,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
users = typer.Typer(
    help="Who may call: the users in the gateway's password file.", epilog=_USER_EXAMPLES, no_args_is_help=True
)
application.add_typer(users, name="user")
application.add_typer(locks, name="locks")
application.add_typer(leases, name="leases")

ConfigOption = Annotated[
    Path | None, typer.Option("--config", envvar="HMS_GATEWAY_CONFIG", help="TOML file with settings.", metavar="FILE")
]
DataDirOption = Annotated[
    Path | None, typer.Option(help="Folder of database, certificate and users. [default: var]", metavar="FOLDER")
]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="Name of the user.")]
DatabaseOption = Annotated[
    str | None, typer.Option(metavar="URL", help="SQLAlchemy URL of the database; unset is SQLite in the data folder.")
]


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        out.print(f"hms-gateway {metadata.version('hms-gateway')}", highlight=False)
        raise typer.Exit


@application.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    pass


@application.command(epilog=_SERVE_EXAMPLES)
def serve(
    config: ConfigOption = None,
    host: Annotated[
        str | None,
        typer.Option(help="Address to listen on, 0.0.0.0 to be reached from elsewhere. [default: 127.0.0.1]"),
    ] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on, 0 takes a free one. [default: 30443]")] = None,
    data_dir: DataDirOption = None,
    database: DatabaseOption = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Load the protocol document's sample table, to have something to look at.")
    ] = False,
    thrift_port: Annotated[
        int | None, typer.Option(help="Also serve Thrift over TCP to this machine, for PySpark and PyIceberg: 9083.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Server processes; on SQLite one is fastest. [default: 1]")
    ] = None,
    tls: Annotated[
        bool | None, typer.Option("--tls/--no-tls", help="HTTPS, or HTTP that anybody can read. [default: tls]")
    ] = None,
    tls_certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="PEM certificate chain; unset makes one on the first start.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="PEM private key of --tls-certificate.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error. [default: info]")] = None,
) -> None:
    """Run a gateway until it is told to stop (Ctrl-C or SIGTERM).

    The first start makes a certificate and the user admin, and prints admin's password once. Every setting can also
    stand in the file of --config or in the environment as HMS_GATEWAY_NAME; an option here wins over both.
    """
    settings = _settings(
        config,
        host=host,
        port=port,
        data_dir=data_dir,
        database_url=database,
        thrift_port=thrift_port,
        workers=workers,
        tls=tls,
        tls_certificate=tls_certificate,
        tls_key=tls_key,
        log_level=log_level,
    )
    with uncollected():
        from app.cli.serving import run_server

    run_server(settings, demo=demo)


@application.command(epilog=_MIGRATE_EXAMPLES)
def migrate(config: ConfigOption = None, data_dir: DataDirOption = None, database: DatabaseOption = None) -> None:
    """Make or change the tables of the database as this version needs them.

    On SQLite `serve` does it itself; PostgreSQL wants this command before the first start of every version. It does no
    harm when there is nothing to do.
    """
    settings = _settings(config, data_dir=data_dir, database_url=database)
    from app.cli.migrating import run_migration

    run_migration(settings)


@users.command("add")
def add_user(
    name: NameArgument,
    password_stdin: PasswordStdinOption = False,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Add a user, or give an existing one a new password.

    Asks for the password twice, unless it comes from standard input. A running gateway lets the user in at once.
    """
    from app.cli.user_commands import add, new_password

    settings = _settings(config, data_dir=data_dir)
    add(settings.users_path, name, new_password(name, from_stdin=password_stdin))


@users.command("remove")
def remove_user(name: NameArgument, config: ConfigOption = None, data_dir: DataDirOption = None) -> None:
    """Remove a user. A running gateway notices within a second."""
    from app.cli.user_commands import remove

    remove(_settings(config, data_dir=data_dir).users_path, name)


@users.command("list")
def list_users(config: ConfigOption = None, data_dir: DataDirOption = None) -> None:
    """Show the names of the users, one per line."""
    from app.cli.user_commands import print_users

    print_users(_settings(config, data_dir=data_dir).users_path)


# Negative numbers are arguments, not options.
@application.command(epilog=_CALL_EXAMPLES, context_settings={"ignore_unknown_options": True})
def call(
    method: Annotated[
        str | None, typer.Argument(metavar="METHOD", show_default=False, help="Name of the method.")
    ] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGUMENT]...", show_default=False, help="Its arguments, see below.")
    ] = None,
    url: UrlOption = DEFAULT_URL,
    user: UserOption = "admin",
    password_stdin: PasswordStdinOption = False,
    password_file: PasswordFileOption = None,
    insecure: InsecureOption = False,
    cacert: CacertOption = None,
    header: HeaderOption = None,
    timeout: TimeoutOption = 600.0,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on a terminal too.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show what METHOD takes, call nothing.")] = False,
    show_list: Annotated[bool, typer.Option("--list", help="Show all methods, call nothing.")] = False,
) -> None:
    """Call one method of any metastore that speaks Thrift JSON over HTTP, and print the answer.

    Tables on a terminal, JSON with the IDL's field names otherwise. The password comes from HMS_GATEWAY_PASSWORD,
    --password-file or --password-stdin, or is asked for. The exit status is 1 when the metastore refuses, 2 when none
    answers.
    """
    from app.cli import explaining

    if show_list:
        explaining.print_methods()
    elif method is None:
        fail("which method?", "hms-gateway call --list shows all of them, hms-gateway call --help how to call them")
    elif explain:
        explaining.print_explanation(method)
    else:
        explaining.find_method(method)
        from app.cli import calling

        target = target_of(
            url=url,
            user=user,
            password_stdin=password_stdin,
            password_file=password_file,
            insecure=insecure,
            cacert=cacert,
            header=header,
            timeout=timeout,
        )
        calling.run_call(target, method, arguments or [], as_plain_json=as_json)


application.command(epilog=BRIDGE_EXAMPLES)(bridge)


@application.command(hidden=True)
def methods() -> None:
    """Write docs/methods.md (for developers)."""
    from app.cli.generating import write_methods

    write_methods()


@application.command(hidden=True)
def stubs() -> None:
    """Write app/structs/__init__.pyi (for developers)."""
    from app.cli.generating import write_stubs

    write_stubs()


@application.command(hidden=True)
def settings() -> None:
    """Write the tables of docs/operations.md (for developers)."""
    from app.cli.generating import write_settings

    write_settings()


def _settings(config: Path | None, **given: Any) -> "Settings":
    from app.settings import SettingsError, load_settings

    try:
        return load_settings(config, **given)
    except SettingsError as error:
        fail(str(error), "hms-gateway serve --help and docs/operations.md name the settings")
