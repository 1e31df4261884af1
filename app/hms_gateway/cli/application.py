"""The commands. The work of a command is in a module of its own, imported when the command runs."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hms_gateway.cli.calls import targets
from hms_gateway.cli.calls.targets import CALLER_WORDS
from hms_gateway.cli.catalog import commands as catalog
from hms_gateway.cli.coordination.commands import AUDIT, LEASES, LOCKS
from hms_gateway.cli.pipeline.commands import PIPELINE
from hms_gateway.cli.terminal.commands import (
    AGE,
    FILE,
    FORM,
    Subject,
    argument,
    command,
    form_or_json,
    group,
    option,
    repeatable,
)
from hms_gateway.cli.terminal.output import fail

if TYPE_CHECKING:
    from hms_gateway.runtime.settings import Settings

_CONFIG: Final = option("--config FILE", "TOML file with settings.", variable="HMS_GATEWAY_CONFIG")
_DATA_DIR: Final = option("--data-dir FOLDER", "Folder of the database, certificate and users. [default: var]")
_DATABASE: Final = option(
    "--database database_url URL", "SQLAlchemy URL of the database; unset means SQLite in the data folder."
)
_LOG_LEVEL_TEXT: Final = "Least severity of log lines."
_NOT_SETTINGS: Final = ("config", "demo")


def _load(config: Path | None, **given: Any) -> "Settings":
    from hms_gateway.runtime.settings import SettingsError
    from hms_gateway.runtime.settings_reading import load_settings

    try:
        return load_settings(config, **given)
    except SettingsError as error:
        fail(str(error), "hms-gateway serve --help and docs/settings.md name the settings")


def _settings(given: dict[str, Any]) -> "Settings":
    """The settings, with the options in place of lines of their file."""
    named = ("data_dir", "database_url", "port", "tls")
    return _load(given.pop("config"), **{name: given.pop(name) for name in named if name in given})


def _settings_to_serve(given: dict[str, Any]) -> "Settings":
    """All options but the file and the sample data are settings."""
    options = {name: given.pop(name) for name in list(given) if name not in _NOT_SETTINGS}
    return _load(given["config"], **{name: None if value == () else value for name, value in options.items()})


def _settings_of_gateway(given: dict[str, Any], *, is_elsewhere: Callable[["Settings"], bool]) -> "Settings":
    """Ends the command where a new data folder would be made that was not asked for: no gateway would read it."""
    config, data_dir = given["config"], given["data_dir"]
    settings = _settings(given)
    is_new = not is_elsewhere(settings) and not settings.data_dir.exists()
    if is_new and config is not None and data_dir is None:
        folder = settings.data_dir.absolute()
        fail(
            f"data_dir {folder} of {config} does not exist", "start the gateway first, or name the folder by --data-dir"
        )
    return settings


_INSTALLATION: Final = Subject((_CONFIG, _DATA_DIR, _DATABASE), _settings)
_FOLDER: Final = Subject((_CONFIG, _DATA_DIR), _settings)
_FOLDER_OF_USERS: Final = Subject(
    _FOLDER.options, partial(_settings_of_gateway, is_elsewhere=lambda settings: settings.users_file is not None)
)
_FOLDER_OF_TOKENS: Final = Subject(_FOLDER.options, partial(_settings_of_gateway, is_elsewhere=lambda settings: False))
_LISTENER: Final = Subject(
    (
        _CONFIG,
        option("--port PORT", "Port on which it listens; 9084 is a bridge's. [default: 30443]", type=int),
        option("--tls/--no-tls", "Ask by HTTPS, or by HTTP. [default: tls]", default=None),
    ),
    _settings,
)
_TO_SERVE: Final = Subject((_CONFIG, _DATA_DIR, _DATABASE), _settings_to_serve)

_SERVE: Final = command(
    "serve",
    """Run a gateway until Ctrl-C or SIGTERM.

    The first start makes a certificate and the user admin, and prints admin's password once. Every setting can also
    be a line of the file of --config or an environment variable HMS_GATEWAY_NAME; an option here overrides both.
    """,
    option("--host ADDRESS", "Address to listen on; 0.0.0.0 accepts calls from other machines. [default: 127.0.0.1]"),
    option("--port PORT", "Port to listen on; 0 takes a free one. [default: 30443]"),
    option("--demo", "Load sample data, and let web pages that localhost serves call the gateway."),
    option(
        "--thrift-port PORT",
        "Serve Thrift over TCP as well, to programs of this machine such as PySpark; the usual port is 9083.",
    ),
    option("--thrift-host ADDRESS", "Address of the Thrift port. [default: 127.0.0.1]"),
    repeatable(
        "--thrift-networks NETWORK",
        "Network, such as 10.0.0.0/8, whose clients use the Thrift port without a login, as the user they name",
    ),
    option(
        "--thrift-tls",
        "Serve TLS on the Thrift port, with the certificate of HTTPS (hive.metastore.use.SSL).",
        default=None,
    ),
    option("--workers N", "Number of server processes; with SQLite, one is fastest. [default: 1]"),
    option("--tls/--no-tls", "Serve HTTPS, or unencrypted HTTP. [default: tls]", default=None),
    option("--tls-certificate FILE", "Certificate chain (PEM); unset means that the first start makes one."),
    option("--tls-key FILE", "Private key (PEM) of --tls-certificate."),
    option("--log-level debug|info|warning|error", f"{_LOG_LEVEL_TEXT} [default: info]"),
    work="operations.serving:run_server",
    subject=_TO_SERVE,
    is_server=True,
    examples=[
        "serve --data-dir /srv/hms --host 0.0.0.0",
        "serve --database postgresql+psycopg://hms@db.example.org/hms --workers 4",
        "serve --config /etc/hms-gateway/hms-gateway.toml",
    ],
    exits={0: "It was stopped.", 2: "It could not start, or a setting is wrong."},
)
_MIGRATE: Final = command(
    "migrate",
    """Create or upgrade the database schema.

    On SQLite `serve` does this itself. On other databases, run it before the first start of every version, while the
    gateways of the version before go on. It does not change anything when the tables are up to date.
    """,
    option(
        "--revision REVISION",
        "Before a downgrade: let programs of this older revision use the tables, which stay as they are.",
    ),
    work="operations.installing:run_migration",
    subject=_INSTALLATION,
    examples=[
        "migrate --database postgresql+psycopg://hms@db.example.org/hms",
        "migrate --config /etc/hms-gateway/hms-gateway.toml --revision 0017",
    ],
)
_SECRETS_HELP: Final = "users, tokens, the key of secrets, certificate and its key"
_BACKUP: Final = command(
    "backup",
    """Write the state of the database to a new file in FOLDER, even while gateways use it.

    The first file has everything. Later ones have what changed since the one before, and need the earlier files. A
    backup of one kind of database can be restored into another kind.
    """,
    argument("folder", "Folder of the backups; it is made if it is missing.", type=FILE),
    option("--base is_base", "Write everything, so that earlier files can be deleted."),
    option("--with-secrets has_secrets", f"Also save {_SECRETS_HELP}."),
    work="operations.backing_up:run_backup",
    subject=_INSTALLATION,
    examples=[
        "backup --data-dir /srv/hms /backup/hms",
        "backup --config /etc/hms-gateway/hms-gateway.toml --base /backup/hms-$(date +%Y-%m)",
    ],
)
_RESTORE: Final = command(
    "restore",
    """Restore the database from the backups in FOLDER.

    Restores the newest state, or that of an event or time, into an empty database or in the place of what is there.
    Checks all that it reads before, and compares the rows afterwards. Prints managed tables and partitions whose
    directories are missing. Locks and leases are not restored, and open transactions are aborted.
    """,
    argument("folder", "Folder of the backups.", type=FILE),
    option("--event event_id EVENT", "Restore the newest state at this event or before.", type=click.IntRange(min=0)),
    option("--time TIME", "Restore the newest state at this time or before: 2026-11-21T09:30, or 90m, 12h, 7d ago."),
    option("--replace replaces", "Give up what the database has."),
    option("--with-secrets has_secrets", f"Also restore {_SECRETS_HELP}."),
    option("--list shows_list", "List the backups instead: time, event, revision, rows, file."),
    work="operations.backing_up:run_restore",
    subject=_INSTALLATION,
    examples=[
        "restore --data-dir /srv/hms /backup/hms",
        "restore --data-dir /srv/hms /backup/hms --replace --time 2026-11-21T09:30",
        "restore --database postgresql+psycopg://hms@db.example.org/hms /backup/hms",
        "restore --list /backup/hms",
    ],
    exits={0: "Done.", 1: "It is restored, and directories are missing.", 2: "It failed, or an option is wrong."},
)
_SCHEMA: Final = option("--schema NAME", "Schema of the views (on MariaDB: database).", default="hive")
_HIVE_VIEWS: Final = group(
    "hive-views",
    "Show the catalog to SQL as Hive's own tables (DBS, TBLS, SDS, …), for programs that read a metastore's database.",
    command(
        "install",
        """Make the views, or make them again after an upgrade of the program.

        On PostgreSQL and MariaDB, in a schema of their own. `migrate` keeps them up to date with the tables.
        """,
        _SCHEMA,
        work="operations.installing:install_views",
        subject=_INSTALLATION,
        examples=["hive-views install --database postgresql+psycopg://hms@db.example.org/hms"],
    ),
    command(
        "remove",
        "Remove the views and their schema.",
        _SCHEMA,
        work="operations.installing:remove_views",
        subject=_INSTALLATION,
        examples=["hive-views remove --config /etc/hms-gateway/hms-gateway.toml"],
    ),
    examples=["hive-views install --config /etc/hms-gateway/hms-gateway.toml"],
)
_CHECK: Final = command(
    "check",
    """Compare the catalog with the directories of tables and partitions, even while a gateway runs.

    Lists directories of databases, tables and partitions without a row in the catalog, for example after a kill;
    managed tables and partitions without a directory; locations outside the roots; files of Iceberg's commits that were
    never made; unfinished moves; damage of a SQLite database. Prints a line for each on a terminal, otherwise a JSON
    object.
    """,
    option("--remove removes", "Remove directories that have no row in the catalog and contain no files."),
    option(
        "--remove-with-files removes_files",
        "Remove these directories also with their files, and files of commits; read the list first.",
    ),
    option(
        "--older-than older_than_seconds SECONDS",
        "Skip directories that changed in the last SECONDS: a running call may still add their row.",
        default=600,
    ),
    *form_or_json("a line of text for each on a terminal, json otherwise"),
    work="operations.checking:run_check",
    subject=_INSTALLATION,
    examples=[
        "check --data-dir /srv/hms/var",
        "check --data-dir /srv/hms/var --remove",
        "check --config /etc/hms-gateway/hms-gateway.toml --format csv > report.csv",
    ],
    exits={0: "Nothing was found.", 1: "Something was found.", 2: "The check failed, or an option is wrong."},
)
_DOCTOR: Final = command(
    "doctor",
    """Report problems of this installation, and their remedies.

    Checks settings, folders, certificate, database, clocks, file systems, and the answers of the gateway and its
    replicas. Changes nothing.
    """,
    option("--port PORT", "Port on which the gateway of this machine listens. [default: 30443]"),
    repeatable("--replica replicas URL", "URL of another gateway of the same database"),
    *form_or_json(),
    work="operations.doctor:run_doctor",
    subject=_INSTALLATION,
    examples=["doctor", "doctor --config /etc/hms-gateway/hms-gateway.toml --replica https://two.example.org:30443"],
    exits={0: "No errors were found.", 1: "Errors were found.", 2: "A setting or an option is wrong."},
)
_HEALTHY: Final = command(
    "healthy",
    """Tell whether the gateway of this machine answers, as the health check of a container does.

    Asks /healthz at the address of the settings, without a login and with any certificate. An outage of the database is
    no failure: a restart would not help (see /readyz).
    """,
    work="operations.health:run_health_check",
    subject=_LISTENER,
    examples=[
        "healthy --config /etc/hms-gateway/hms-gateway.toml",
        "healthy --port 9084 --no-tls          asks a bridge",
    ],
    exits={0: "It answers.", 1: "It does not answer.", 2: "A setting or an option is wrong."},
)
_CALL: Final = command(
    "call",
    """Call one method of a metastore and print the answer.

    Works with every metastore that speaks Thrift JSON over HTTP. Prints tables on a terminal, JSON with the IDL's field
    names otherwise. The password comes from HMS_GATEWAY_PASSWORD, --password-file or --password-stdin; without these
    the command asks for it.

    A word is the next argument, or name=value. Structs, lists and maps are JSON with the field names that --explain
    shows; @file reads JSON from a file, - from standard input.
    """,
    argument("method", "Name of the method.", required=False),
    argument("words", "Arguments of the method.", nargs=-1, metavar="[ARGUMENT]..."),
    option("--json as_plain_json", "Print JSON on a terminal as well."),
    option("--limit N", "Show at most N elements of a list."),
    option("--explain", "Show the arguments of METHOD and an example instead of calling it."),
    option("--list show_list", "List all methods instead of calling one."),
    work="calls.calling:run_call",
    # Negative numbers are arguments, not options.
    context_settings={"ignore_unknown_options": True},
    subject=CALLER_WORDS,
    examples=[
        "call get_partition_names sales orders max_parts=10",
        """call create_database '{"name": "sales", "description": "sold"}'""",
        "call get_table_req dbName=sales tblName=orders",
        "call --json get_table sales orders > orders.json",
        "call create_table @orders.json",
    ],
)
_SQL: Final = command(
    "sql",
    """Run HiveQL statements about the catalog, or start a shell for them.

    Without -e and -f, reads statements from standard input; on a terminal this is a shell with completion, history and
    editing.

    Statements are SHOW, DESCRIBE, CREATE, ALTER, DROP, LOCK, UNLOCK, EXPLAIN LOCKS, GRANT, REVOKE, ABORT TRANSACTIONS,
    MSCK REPAIR, USE, SET. They end with a semicolon. docs/shell.md lists them.
    """,
    repeatable("--execute -e STATEMENTS", "Statements to run"),
    repeatable("--file -f files FILE", "File with statements to run"),
    option("--database NAME", "Database of tables that are named without one.", default="default"),
    FORM,
    option("--keep-going", "Continue after a failed statement."),
    repeatable("--hiveconf NAME=VALUE", "Setting of the session, as by SET"),
    work="sql.shell:run_shell",
    subject=CALLER_WORDS,
    examples=[
        "sql",
        'sql -e "show tables in sales"',
        'sql --format json -e "show partitions sales.orders" | jq .partition',
        "sql --database sales -f tables.sql",
        'echo "describe formatted sales.orders" | hms-gateway sql',
    ],
    exits={1: "A statement was refused.", 130: "Ctrl-C ended it."},
)
_BRIDGE: Final = command(
    "bridge",
    """Accept Thrift over TCP from PySpark, PyIceberg, Trino and Hive, and call a gateway.

    Calls over HTTPS, and runs until Ctrl-C or SIGTERM. The password comes from --password-file or, without
    --certificate, from HMS_GATEWAY_PASSWORD. Clients act with this login, so the bridge listens on this machine only
    and accepts only processes of its own account. They use thrift://127.0.0.1:9083. A keytab renews the tickets of
    --negotiate.
    """,
    option(
        "--host ADDRESS", "Address to listen on; other machines reach it only with --allow-remote.", default="127.0.0.1"
    ),
    option("--port PORT", "Port to listen on; 0 takes a free one.", default=9083),
    option(
        "--allow-remote", "Allow a --host that other machines can reach; their clients act with the bridge's login."
    ),
    option(
        "--open is_open",
        "Accept all accounts of this machine, not only the one that runs the bridge; all act with its login.",
    ),
    option(
        "--encoding binary|tjson",
        "Encoding of messages to the gateway; tjson for other MS-HMSHTTP servers.",
        default="binary",
    ),
    option(
        "--sasl off|allow|require",
        "Logins of clients: SASL PLAIN, delegation token, GSSAPI by --keytab.",
        default="off",
    ),
    option(
        "--keytab FILE",
        "Keytab of hive/<host>; clients log in with Kerberos tickets, and the bridge calls for them (see the setting "
        "proxy_users).",
    ),
    repeatable("--realm realms NAME", "Realm whose users may log in by --keytab, unset for the keytab's"),
    option("--tls-certificate FILE", "Certificate chain (PEM) for TLS with clients; unset means plain TCP."),
    option("--tls-key FILE", "Private key (PEM) of --tls-certificate; unset means that it is in the same file."),
    option(
        "--client-authority FILE",
        "Authority (PEM) that signs certificates of clients. The bridge calls for the user in a certificate (see the "
        "setting proxy_users).",
    ),
    option("--client-certificates allow|require", "Certificates of --client-authority.", default="allow"),
    option("--client-user CN|email|DNS|URI", "Part of a certificate that names the user.", default="CN"),
    option("--client-revocations FILE", "Revocation lists (PEM) of --client-authority."),
    option("--do-as acts_for_users", "Call for the user that a client names (see the setting proxy_users)."),
    option(
        "--keys/--no-keys keeps_keys",
        "Repeat a change after a lost reply, with a key so that the gateway makes it once. [default: keys, with "
        "tjson no-keys]",
        default=None,
    ),
    option("--patience patience_seconds SECONDS", "Seconds to wait for a gateway that cannot be reached.", default=5.0),
    option("--connections upstream_connections_max N", "Most connections to the gateway at a time.", default=100),
    option("--clients N", "Most connections of clients at a time. [default: 10000]"),
    option("--health-port PORT", "Port of /healthz and /metrics; 0 takes a free one.", default=9084),
    option("--no-health", "Do not serve /healthz and /metrics."),
    option("--call-log/--no-call-log logs_calls", "Write one line for each call.", default=True),
    option("--log-level debug|info|warning|error", _LOG_LEVEL_TEXT, default="info"),
    *(targets.URL, targets.USER, targets.PASSWORD_FILE, targets.TOKEN_FILE, targets.TOKEN_COMMAND, targets.NEGOTIATE),
    *(targets.CERTIFICATE, targets.KEY, targets.CACERT, targets.INSECURE, targets.TIMEOUT),
    work="operations.bridge_command:run",
    examples=[
        "bridge --cacert var/certificate.pem --password-file var/password",
        "bridge --url https://hms.example.org/gateway/default/hmshttpthrift/api/hms --user spark",
        "bridge --certificate bridge.pem --key bridge-key.pem --do-as",
        "bridge --tls-certificate tls.pem --tls-key tls-key.pem --sasl require",
        "bridge --encoding tjson --url https://other.example.org/gateway/default/hms",
    ],
    is_server=True,
    exits={0: "It was stopped.", 2: "It could not start, or an option is wrong."},
)
_USERS: Final = group(
    "user",
    "Add, remove and list the users of the gateway's password file.",
    command(
        "add",
        """Add a user, or give an existing one a new password.

        Asks for the password twice, unless it comes from standard input. A running gateway accepts the user at once.
        Without --inherit the command refuses a new name that has grants or objects.
        """,
        argument("name", "Name of the user."),
        option("--password-stdin", "Read the password from the first line of standard input."),
        option("--inherit inherits", "Give the user the grants and objects that a removed user of this name left."),
        option("--allow-short is_short_allowed", "Accept a password of fewer than eight characters."),
        work="operations.logins:add",
        subject=_FOLDER_OF_USERS,
        examples=[
            "user add alice                       asks for the password",
            "user add alice --password-stdin < password",
            "user add admin --config /etc/hms-gateway/hms-gateway.toml",
        ],
    ),
    command(
        "remove",
        """Remove a user and the user's tokens.

        A running gateway notices within a second. Grants and objects of the user stay; the command lists them.
        """,
        argument("name", "Name of the user."),
        work="operations.logins:remove",
        subject=_FOLDER,
        examples=["user remove alice"],
    ),
    command(
        "list",
        "List the users of the password file, one name per line.",
        work="operations.logins:print_users",
        subject=_FOLDER,
        examples=["user list"],
    ),
    examples=["user add alice"],
)
_TOKENS: Final = group(
    "token",
    "Create, list and revoke access tokens: logins of programs without a password.",
    command(
        "create",
        """Create a token and print it.

        The token is shown only this once, since the gateway keeps a hash of it. A running gateway accepts it at once.
        """,
        argument("name", "Name of the user who calls with the token."),
        option("--ttl DURATION", "Validity of the token: a number with s, m, h, d or w.", type=AGE, default="90d"),
        option("--note TEXT", "Purpose of the token; `token list` shows it.", default=""),
        work="operations.logins:create",
        subject=_FOLDER_OF_TOKENS,
        examples=[
            'token create etl --ttl 30d --note "nightly jobs" > token',
            "call --token-file token get_all_databases",
        ],
    ),
    command(
        "list",
        "List the tokens: id, user, time of creation, expiry, last use (to the minute), note.",
        FORM,
        work="operations.logins:print_tokens",
        subject=_FOLDER,
        examples=["token list"],
    ),
    command(
        "revoke",
        """Revoke tokens by id, or all tokens of a user.

        A running gateway notices within a second. --user also revokes the user's delegation tokens, and those that the
        user got for others.
        """,
        argument("ids", "Ids of the tokens.", nargs=-1, metavar="[ID]..."),
        option("--user NAME", "User whose tokens are revoked."),
        work="operations.logins:revoke",
        subject=_FOLDER,
        examples=["token revoke 3f2a9c1d77b0", "token revoke --user etl"],
    ),
    examples=["token list"],
)

application: Final = click.version_option(
    package_name="hms-gateway", message="hms-gateway %(version)s", help="Show the version and exit."
)(
    group(
        "hms-gateway",
        "A Hive Metastore you install with pip and call over HTTPS.",
        *(_SERVE, _MIGRATE, _BACKUP, _RESTORE, _HIVE_VIEWS, _CHECK, _DOCTOR, _HEALTHY, _CALL, _SQL),
        *(*catalog.OBJECTS, _BRIDGE, _USERS),
        *(*catalog.RIGHTS, _TOKENS, PIPELINE, LOCKS, LEASES, AUDIT),
        examples=[
            "serve                                data in ./var, https://localhost:30443",
            "serve --demo                         with a sample table to look at",
            "user add alice                       asks for the password",
            "call -k get_all_databases            asks for admin's password",
            "call -k get_table sales orders",
            "call --explain create_table          the arguments of the method",
            "sql                                  a shell for HiveQL about the catalog",
            "locks show --blocking                which locks block which requests",
        ],
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
)
