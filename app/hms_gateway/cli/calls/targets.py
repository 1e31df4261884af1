"""Whom a command calls, as whom, and what it trusts. Imports little: a prompt appears before the rest is loaded."""

import os
import re
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click
import msgspec

from hms_gateway.cli.terminal.output import fail, first_line, line_of_input
from hms_gateway.runtime.kerberos import KerberosError, ServiceTickets
from hms_gateway.runtime.logins.login_tokens import LoginToken

PASSWORD_VARIABLE: Final = "HMS_GATEWAY_PASSWORD"
DATA_DIR_VARIABLE: Final = "HMS_GATEWAY_DATA_DIR"
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class Target(msgspec.Struct, frozen=True):
    """Whom to call, and as whom: with a token, else a password, else Kerberos tickets."""

    url: str
    user: str
    password: str | None
    token: LoginToken | None
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


def find_trust(url: str, cacert: Path | None, *, insecure: bool) -> bool | ssl.SSLContext:
    """What the server's certificate is checked against: one file, the system's authorities, or nothing.

    A gateway of this machine is also trusted with the certificate that a server of this folder has made.
    """
    if insecure:
        return False
    trusted = cacert or own_certificate(url)
    if trusted is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(trusted))
    except (OSError, ssl.SSLError) as error:
        fail(f"certificate {trusted} cannot be read: {error}")


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
