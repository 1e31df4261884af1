"""`hms-gateway bridge`: Thrift over TCP on this machine, HTTPS to a gateway."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from hms_gateway.cli.calls.target_options import (
    DEFAULT_URL,
    FILE,
    cacert_option,
    certificate_option,
    connection_option,
    insecure_option,
    key_option,
    password_file_option,
    timeout_option,
    token_command_option,
    token_file_option,
)
from hms_gateway.cli.terminal import output
from hms_gateway.cli.terminal.groups import command
from hms_gateway.cli.terminal.importing import gc_paused
from hms_gateway.cli.terminal.output import fail, find_token, first_line
from hms_gateway.cli.terminal.signals import ignore_hang_up

if TYPE_CHECKING:
    from hms_gateway.bridge.thrift.sasl import Credentials
    from hms_gateway.runtime.logins.login_tokens import TokenCommand

PASSWORD_VARIABLE = "HMS_GATEWAY_PASSWORD"
ENCODINGS = ("binary", "tjson")
SASL_POLICIES = ("off", "allow", "require")
LEVELS = ("debug", "info", "warning", "error")
PORT = click.IntRange(0, 65_535)
COUNT = click.IntRange(min=1)

_EXAMPLES = """\b
Examples:
  hms-gateway bridge --cacert var/certificate.pem --password-file var/password
  hms-gateway bridge --url https://hms.example.org/gateway/default/hmshttpthrift/api/hms --user spark
  hms-gateway bridge --certificate bridge.pem --key bridge-key.pem --do-as
  hms-gateway bridge --encoding tjson --url https://other.example.org/gateway/default/hms
Clients then use thrift://127.0.0.1:9083.
"""


@command(epilog=_EXAMPLES)
@connection_option("--url", envvar="HMS_GATEWAY_URL", show_envvar=True, default=DEFAULT_URL, help="URL of the gateway.")
@click.option(
    "--host", default="127.0.0.1", help="Address to listen on; other machines reach it only with --allow-remote."
)
@click.option("--port", type=PORT, default=9083, help="Port to listen on; 0 takes a free one.")
@click.option(
    "--allow-remote",
    is_flag=True,
    help="Allow a --host that other machines can reach; their clients act with the bridge's login.",
)
@click.option(
    "--open",
    "is_open",
    is_flag=True,
    help="Accept all accounts of this machine, not only the one that runs the bridge; all act with its login.",
)
@connection_option(
    "--user", envvar="HMS_GATEWAY_USER", show_envvar=True, default="admin", help="User of the gateway to call as."
)
@password_file_option
@token_file_option
@token_command_option
@connection_option(
    "--negotiate",
    is_flag=True,
    help="Log in with Kerberos tickets, which a keytab renews, instead of user and password.",
)
@certificate_option
@key_option
@cacert_option
@insecure_option
@click.option(
    "--encoding",
    default="binary",
    help="Encoding of messages to the gateway: binary, or tjson for other MS-HMSHTTP servers.",
)
@click.option(
    "--sasl",
    default="off",
    help="Logins of clients (SASL PLAIN, delegation token, GSSAPI by --keytab): off, allow, require.",
)
@click.option(
    "--keytab",
    type=FILE,
    metavar="FILE",
    help="Keytab of hive/<host>; clients log in with Kerberos tickets, and the bridge calls for them (see the setting "
    "proxy_users).",
)
@click.option(
    "--realm",
    "realms",
    multiple=True,
    metavar="NAME",
    help="Realm whose users may log in by --keytab; repeatable. [default: the keytab's]",
)
@click.option("--do-as", is_flag=True, help="Call for the user that a client names (see the setting proxy_users).")
@click.option(
    "--keys/--no-keys",
    default=None,
    help="Repeat a change after a lost reply, with a key so that the gateway makes it once. [default: keys, with "
    "tjson no-keys]",
)
@click.option(
    "--patience",
    type=click.FloatRange(min=0),
    default=5.0,
    help="Seconds to wait for a gateway that cannot be reached.",
)
@timeout_option
@click.option("--connections", type=COUNT, default=100, help="Most connections to the gateway at a time.")
@click.option("--clients", type=COUNT, help="Most connections of clients at a time. [default: 10000]")
@click.option("--health-port", type=PORT, default=9084, help="Port of /healthz and /metrics; 0 takes a free one.")
@click.option("--no-health", is_flag=True, help="Do not serve /healthz and /metrics.")
@click.option("--call-log/--no-call-log", default=True, help="Write one line for each call.")
@click.option("--log-level", default="info", help="Least severity of log lines: debug, info, warning or error.")
def bridge(
    url: str,
    host: str,
    port: int,
    allow_remote: bool,
    is_open: bool,
    user: str,
    password_file: Path | None,
    token_file: Path | None,
    token_command: "TokenCommand | None",
    negotiate: bool,
    certificate: Path | None,
    key: Path | None,
    cacert: Path | None,
    insecure: bool,
    encoding: str,
    sasl: str,
    keytab: Path | None,
    realms: tuple[str, ...],
    do_as: bool,
    keys: bool | None,
    patience: float,
    timeout: float,
    connections: int,
    clients: int | None,
    health_port: int,
    no_health: bool,
    call_log: bool,
    log_level: str,
) -> None:
    """Accept Thrift over TCP from PySpark, PyIceberg, Trino and Hive, and call a gateway.

    Calls over HTTPS, and runs until Ctrl-C or SIGTERM. The password comes from --password-file or, without
    --certificate, from HMS_GATEWAY_PASSWORD. Clients act with this login, so the bridge listens on this machine only
    and accepts only processes of its own account.
    """
    ignore_hang_up()
    with gc_paused():
        from hms_gateway.bridge.server.running import BridgeSettings, run_bridge
        from hms_gateway.bridge.server.serving import BridgeOptions
        from hms_gateway.cli.calls.targets import fail_for_certificate, named_certificate
        from hms_gateway.runtime.kerberos import KerberosError
        from hms_gateway.runtime.limits import Limits
        from hms_gateway.runtime.logging import configure_logging, format_for_stderr
        from hms_gateway.runtime.logins.client_certificate import ClientCertificateError

    source = token_file or token_command
    token = None if source is None else find_token(source)
    shown = named_certificate(url, certificate, key)
    logs_in_itself = negotiate or token is not None or (shown is not None and password_file is None)
    if log_level not in LEVELS:
        fail(f"--log-level must be one of {', '.join(LEVELS)}")
    if encoding not in ENCODINGS or sasl not in SASL_POLICIES:
        fail(f"--encoding must be one of {', '.join(ENCODINGS)}, --sasl one of {', '.join(SASL_POLICIES)}")
    if keytab is not None and sasl == "off":
        fail("--keytab has no effect without SASL; add --sasl allow or --sasl require")
    limits = Limits() if clients is None else msgspec.structs.replace(Limits(), connections_max=clients)
    settings = BridgeSettings(
        url=url,
        server=BridgeOptions(host, port, allow_remote, sasl, is_open=is_open),  # type: ignore[arg-type]
        credentials=None if logs_in_itself else _credentials(user, password_file, is_optional=sasl != "off"),
        token=token,
        negotiates=negotiate,
        keytab=keytab,
        realms=realms,
        certificate=shown,
        cacert=cacert,
        is_insecure=insecure,
        encoding=encoding,  # type: ignore[arg-type]
        keeps_keys=keys,
        acts_for_users=do_as,
        side_port=None if no_health else health_port,
        upstream_connections_max=connections,
        call_seconds_max=timeout,
        patience_seconds=patience,
        logs_calls=call_log,
        limits=limits,
    )
    configure_logging(log_level, format_for_stderr(None))
    try:
        run_bridge(settings, lambda thrift_port, side_port: _announce(settings.server.host, thrift_port, side_port))
    except ClientCertificateError as error:
        fail_for_certificate(error)
    except (OSError, ValueError, KerberosError) as error:
        fail(str(error))


def _announce(host: str, port: int, side_port: int | None) -> None:
    health = "" if side_port is None else f", health at http://127.0.0.1:{side_port}/healthz"
    output.err.print(f"thrift://{host}:{port} is ready{health}", highlight=False, soft_wrap=True)
    sys.stderr.flush()


def _credentials(user: str, file: Path | None, *, is_optional: bool) -> "Credentials | None":
    """The password is never on the command line, where every account of the machine could read it."""
    from hms_gateway.bridge.thrift.sasl import Credentials

    if file is not None:
        return Credentials(user, first_line("password file", file))
    if PASSWORD_VARIABLE in os.environ:
        return Credentials(user, os.environ[PASSWORD_VARIABLE])
    if not is_optional:
        fail("no password", f"set {PASSWORD_VARIABLE}, or use --password-file")
    return None
