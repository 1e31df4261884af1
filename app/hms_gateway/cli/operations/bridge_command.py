"""Work of `hms-gateway bridge`: Thrift over TCP on this machine, HTTPS to a gateway."""

import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from hms_gateway.bridge.server.admission import BridgeOptions
from hms_gateway.bridge.server.running import BridgeSettings, run_bridge
from hms_gateway.bridge.thrift.sasl import Credentials
from hms_gateway.cli.calls.targets import PASSWORD_VARIABLE, fail_for_certificate, named_certificate
from hms_gateway.cli.terminal.output import fail, find_token, first_line
from hms_gateway.runtime.kerberos import KerberosError
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.logging import configure_logging, format_for_stderr
from hms_gateway.runtime.logins.client_certificate import ClientCertificateError
from hms_gateway.runtime.logins.login_tokens import TokenCommand


def run(
    *,
    url: str,
    host: str,
    port: int,
    allow_remote: bool,
    is_open: bool,
    sasl: str,
    user: str,
    password_file: Path | None,
    token_file: Path | None,
    token_command: TokenCommand | None,
    negotiate: bool,
    certificate: Path | None,
    key: Path | None,
    insecure: bool,
    timeout: float,
    clients: int | None,
    health_port: int,
    no_health: bool,
    log_level: str,
    **given: Any,
) -> None:
    """Run until stopped; `given` are fields of the settings."""
    source = token_file or token_command
    token = None if source is None else find_token(source)
    shown = named_certificate(url, certificate, key)
    logs_in_itself = negotiate or token is not None or (shown is not None and password_file is None)
    _check_tls(given)
    if given["keytab"] is not None and sasl == "off":
        fail("--keytab has no effect without SASL; add --sasl allow or --sasl require")
    settings = BridgeSettings(
        url=url,
        server=BridgeOptions(host, port, allow_remote, sasl, is_open=is_open),  # type: ignore[arg-type]
        credentials=None if logs_in_itself else _credentials(user, password_file, is_optional=sasl != "off"),
        token=token,
        negotiates=negotiate,
        certificate=shown,
        is_insecure=insecure,
        side_port=None if no_health else health_port,
        call_seconds_max=timeout,
        limits=Limits() if clients is None else msgspec.structs.replace(Limits(), connections_max=clients),
        **given,
    )
    configure_logging(log_level, format_for_stderr(None))
    try:
        run_bridge(settings, lambda thrift_port, side_port: _announce(settings.server.host, thrift_port, side_port))
    except ClientCertificateError as error:
        fail_for_certificate(error)
    except (OSError, ValueError, KerberosError) as error:
        fail(str(error))


def _check_tls(given: dict[str, Any]) -> None:
    """Ends the command for options of TLS that have no effect without another one."""
    is_required = given["client_certificates"] == "require"
    for name in ("tls_key", "client_authority"):
        if given[name] is not None and given["tls_certificate"] is None:
            fail(f"--{name.replace('_', '-')} has no effect without TLS; add --tls-certificate")
    if given["client_authority"] is None and (given["client_revocations"] is not None or is_required):
        fail("--client-certificates require and --client-revocations need --client-authority; add it")


def _announce(host: str, port: int, side_port: int | None) -> None:
    health = "" if side_port is None else f", health at http://127.0.0.1:{side_port}/healthz"
    print(f"thrift://{host}:{port} is ready{health}", file=sys.stderr, flush=True)


def _credentials(user: str, file: Path | None, *, is_optional: bool) -> Credentials | None:
    """Read the password, which is never on the command line, where every account of the machine could read it."""
    if file is not None:
        return Credentials(user, first_line("password file", file))
    if PASSWORD_VARIABLE in os.environ:
        return Credentials(user, os.environ[PASSWORD_VARIABLE])
    if not is_optional:
        fail("no password", f"set {PASSWORD_VARIABLE}, or use --password-file")
    return None
