"""Whom a command calls, as whom, and what it trusts. Imports little: a prompt appears before the rest is loaded."""

import os
import re
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn
from urllib.parse import urlsplit

import click
import msgspec
from click.core import ParameterSource

from hms_gateway.cli.terminal.output import fail, first_line, line_of_input
from hms_gateway.runtime.kerberos import KerberosError, ServiceTickets
from hms_gateway.runtime.logins.login_tokens import LoginToken

if TYPE_CHECKING:
    from hms_gateway.runtime.logins.client_certificate import ClientCertificate, ClientCertificateError

PASSWORD_VARIABLE: Final = "HMS_GATEWAY_PASSWORD"
DATA_DIR_VARIABLE: Final = "HMS_GATEWAY_DATA_DIR"
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class CallTarget(msgspec.Struct, frozen=True):
    """Whom to call, and as whom: with a token, a password or tickets, else with the certificate of `verify`."""

    url: str
    user: str
    password: str | None
    token: LoginToken | None
    negotiates: bool
    verify: bool | ssl.SSLContext
    headers: dict[str, str]
    timeout_seconds: float


def find_password(user: str, file: Path | None, *, from_stdin: bool) -> str:
    """From standard input, a file or the environment, else asked for. Never from the command line."""
    if from_stdin:
        return line_of_input("password")
    if file is not None:
        return first_line("password file", file)
    if PASSWORD_VARIABLE in os.environ:
        return _checked(os.environ[PASSWORD_VARIABLE])
    if not sys.stdin.isatty():
        fail("no password", f"set {PASSWORD_VARIABLE}, or use --password-file or --password-stdin")
    password: str = click.prompt(f"Password of {user}", hide_input=True, err=True)
    return password


def _checked(password: str) -> str:
    try:
        password.encode("utf-8")
    except UnicodeEncodeError:
        fail(f"the password in {PASSWORD_VARIABLE} is not UTF-8")
    return password


def find_ticket(url: str) -> str:
    """Whose Kerberos tickets there are."""
    try:
        return ServiceTickets(host_of(url)).user()
    except KerberosError as error:
        fail(str(error), "kinit gets a ticket")


def host_of(url: str) -> str:
    """Ends the command when the URL cannot be read."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError as error:
        fail(f"{url!r} is not a URL: {error}")


def find_certificate(url: str, certificate: Path | None, key: Path | None) -> str | None:
    """The certificate to show, with its key, as `client_certificate.show` takes it. Ends the command when there is
    something wrong with it.
    """
    shown = named_certificate(url, certificate, key)
    if shown is None:
        return None
    from hms_gateway.runtime.logins.client_certificate import ClientCertificateError

    try:
        return shown.text()
    except ClientCertificateError as error:
        fail_for_certificate(error)


def named_certificate(url: str, certificate: Path | None, key: Path | None) -> "ClientCertificate | None":
    """The files, which are not read. Ends the command when they cannot have an effect, unless variables name them."""
    if certificate is None:
        if key is not None and not _is_variable("key"):
            fail(f"--key {key} has no effect without --certificate; name the certificate")
        return None
    if not url.lower().startswith("https:"):
        if not _is_variable("certificate"):
            fail(f"--certificate {certificate} cannot be shown to {url}; it needs https://")
        return None
    from hms_gateway.runtime.logins.client_certificate import ClientCertificate

    return ClientCertificate(certificate, key)


def _is_variable(option: str) -> bool:
    """Whether an option of the command is from the environment, which is for all gateways that are called."""
    return click.get_current_context().get_parameter_source(option) is ParameterSource.ENVIRONMENT


def fail_for_certificate(error: "ClientCertificateError") -> NoReturn:
    """End the command because of a certificate that cannot be shown."""
    fail(f"--{error.option}: {error}")


def find_trust(url: str, cacert: Path | None, *, insecure: bool, shown: str | None = None) -> bool | ssl.SSLContext:
    """What the server's certificate is checked against: one file, the system's authorities, or nothing. With `shown`
    a context that shows it.

    A gateway of this machine is also trusted with the certificate that a server of this folder has made.
    """
    trusted = None if insecure else cacert or own_certificate(url)
    if trusted is None and shown is None:
        return not insecure
    context = _trusting(trusted, insecure=insecure)
    if shown is not None:
        from hms_gateway.runtime.logins.client_certificate import show

        show(context, shown)
    return context


def _trusting(file: Path | None, *, insecure: bool) -> ssl.SSLContext:
    if file is None:
        import httpx

        # As httpx does where it gets no context.
        return httpx.create_ssl_context(verify=not insecure)
    try:
        return ssl.create_default_context(cafile=str(file))
    except (OSError, ssl.SSLError) as error:
        fail(f"certificate {file} cannot be read: {error}")


def own_certificate(url: str) -> Path | None:
    """The certificate in this folder's `var`, for a gateway of this machine."""
    if host_of(url) not in _LOCAL:
        return None
    file = Path(os.environ.get(DATA_DIR_VARIABLE, "var")) / "certificate.pem"
    return file if file.is_file() else None


def parse_headers(lines: Sequence[str]) -> dict[str, str]:
    """`Name: value` lines by name."""
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not _HEADER.fullmatch(name.strip()) or not colon or not value.strip().isprintable():
            fail(f"header {line!r} is not NAME: VALUE")
        headers[name.strip()] = value.strip()
    return headers
