"""The metastore that a command calls: options, profiles, login and trust.

Imports little: a prompt appears before the rest is loaded.
"""

import os
import re
import shlex
import ssl
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn
from urllib.parse import urlsplit

import click
import msgspec
from click.core import ParameterSource

from hms_gateway.cli.terminal.commands import Option, Subject, command, option, repeatable
from hms_gateway.cli.terminal.output import fail, find_token, first_line, line_of_input
from hms_gateway.metastore.vocabulary.texts import did_you_mean
from hms_gateway.runtime.kerberos import KerberosError, ServiceTickets
from hms_gateway.runtime.logins.login_tokens import LoginToken, TokenCommand

if TYPE_CHECKING:
    from hms_gateway.runtime.logins.client_certificate import ClientCertificate, ClientCertificateError

DEFAULT_URL: Final = "https://localhost:30443/gateway/default/hmshttpthrift/api/hms"
PASSWORD_VARIABLE: Final = "HMS_GATEWAY_PASSWORD"
DATA_DIR_VARIABLE: Final = "HMS_GATEWAY_DATA_DIR"
PROFILES_VARIABLE: Final = "HMS_GATEWAY_PROFILES"
TIMEOUT_SECONDS_MAX: Final = 30 * 86_400
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Keys of a profile, with the types of their values.
_KEYS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "url": str,
        "user": str,
        "cacert": str,
        "insecure": bool,
        "password_file": str,
        "token_file": str,
        "token_command": Annotated[list[str], msgspec.Meta(min_length=1)],
        "negotiate": bool,
        "certificate": str,
        "key": str,
        "timeout": float,
        "catalog": str,
        "headers": list[str],
    }
)
_PATHS: Final = ("cacert", "password_file", "token_file", "certificate", "key")
_LOGINS: Final = ("password_file", "token_file", "token_command", "negotiate", "certificate", "key")


class _Words(click.ParamType[TokenCommand]):
    """A program and its arguments, as a shell separates them; no shell runs it."""

    name = "command"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> TokenCommand:
        if isinstance(value, TokenCommand):
            return value
        try:
            words = shlex.split(value)
        except ValueError as error:
            self.fail(f"{value!r} cannot be separated into words: {error}", param, ctx)
        if not words:
            self.fail("the command is empty", param, ctx)
        return TokenCommand(tuple(words))


class _Seconds(click.FloatRange):
    """A time that a socket can wait for; NaN is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = super().convert(value, param, ctx)
        if not is_time_out(seconds):
            self.fail(f"{value} is not a number from above 0 to {TIMEOUT_SECONDS_MAX:,}", param, ctx)
        return seconds


def is_time_out(seconds: float) -> bool:
    """False for NaN, too."""
    return 0 < seconds <= TIMEOUT_SECONDS_MAX


SECONDS: Final = _Seconds(min=0, min_open=True)

connection_option: Final = partial(option, section="Connection options")
URL: Final = connection_option("--url URL", "URL of the metastore.", variable="HMS_GATEWAY_URL", default=DEFAULT_URL)
USER: Final = connection_option("--user NAME", "User to call as.", variable="HMS_GATEWAY_USER", default="admin")
PASSWORD_STDIN: Final = connection_option(
    "--password-stdin", "Read the password from the first line of standard input."
)
PASSWORD_FILE: Final = connection_option(
    "--password-file FILE", "File with the password in its first line; replaces HMS_GATEWAY_PASSWORD."
)
TOKEN_FILE: Final = connection_option(
    "--token-file FILE",
    "File with a token (of `hms-gateway token create` or an issuer) in its first line, instead of a password.",
)
TOKEN_COMMAND: Final = connection_option(
    "--token-command COMMAND",
    "Program that prints such a token; runs again when the token expires or is refused.",
    type=_Words(),
)
NEGOTIATE: Final = connection_option("--negotiate", "Log in with a Kerberos ticket (kinit) instead of a password.")
CERTIFICATE: Final = connection_option(
    "--certificate FILE",
    "Client certificate (PEM) to log in with; HMS_GATEWAY_PASSWORD is then ignored.",
    variable="HMS_GATEWAY_CERTIFICATE",
)
KEY: Final = connection_option(
    "--key FILE",
    "Private key (PEM, not encrypted) of --certificate; unset means that the certificate's file contains it.",
    variable="HMS_GATEWAY_KEY",
)
NEW_FILE: Final = click.Path(dir_okay=False, path_type=Path)
INSECURE: Final = connection_option("--insecure -k", "Accept any certificate of the server, as curl -k does.")
CACERT: Final = connection_option(
    "--cacert FILE", "Certificate (PEM) to trust, such as var/certificate.pem.", variable="HMS_GATEWAY_CACERT"
)
TIMEOUT: Final = connection_option("--timeout SECONDS", "How long to wait for an answer.", type=SECONDS, default=600.0)
CATALOG: Final = connection_option(
    "--catalog NAME",
    "Catalog of all names that do not say theirs (Hive 3.1 and later). [default: hive]",
    variable="HMS_GATEWAY_CATALOG",
    default="",
    show_default=False,
)
LOGIN: Final[tuple[Option, ...]] = (
    connection_option(
        "--profile NAME",
        "Read defaults of the options below from profile NAME in ~/.config/hms-gateway/profiles.toml.",
        variable="HMS_GATEWAY_PROFILE",
    ),
    *(URL, USER, PASSWORD_STDIN, PASSWORD_FILE, TOKEN_FILE, TOKEN_COMMAND, NEGOTIATE, CERTIFICATE, KEY, INSECURE),
    *(CACERT, TIMEOUT),
)


class TargetLogin(msgspec.Struct, frozen=True):
    """The user, and what proves the user: a password, a token or tickets, else a client certificate."""

    user: str
    password: str | None = None
    token: LoginToken | None = None
    negotiates: bool = False


class CallTarget(TargetLogin, frozen=True, kw_only=True):
    """A metastore and the login there; `verify` may show a certificate."""

    url: str
    verify: bool | ssl.SSLContext
    headers: dict[str, str]
    timeout_seconds: float
    catalog: str = ""


def find_password(user: str, file: Path | None, *, from_stdin: bool) -> str:
    """From standard input, a file or the environment, else asked for. Never from the command line."""
    if from_stdin:
        return line_of_input("password")
    if file is not None:
        return first_line("password file", file)
    if PASSWORD_VARIABLE in os.environ:
        return _encodable(os.environ[PASSWORD_VARIABLE])
    if not sys.stdin.isatty():
        fail("no password", f"set {PASSWORD_VARIABLE}, or use --password-file or --password-stdin")
    password: str = click.prompt(f"Password of {user}", hide_input=True, err=True)
    return password


def login_of(
    *,
    url: str,
    user: str,
    password_stdin: bool,
    password_file: Path | None,
    token_file: Path | None,
    token_command: TokenCommand | None,
    negotiate: bool,
    certificate: Path | None,
    key: Path | None,
    find: Callable[..., str] = find_password,
    **_: Any,
) -> TargetLogin:
    """Read the options about the login; `find` finds the password."""
    source = token_file or token_command
    if source is not None:
        return TargetLogin(user, token=find_token(source))
    if negotiate:
        return TargetLogin(find_ticket(url), negotiates=True)
    if find_certificate(url, certificate, key) is not None and password_file is None and not password_stdin:
        return TargetLogin(user)
    return TargetLogin(user, find(user, password_file, from_stdin=password_stdin))


def target_of(
    *,
    url: str,
    certificate: Path | None,
    key: Path | None,
    insecure: bool,
    cacert: Path | None,
    header: tuple[str, ...],
    timeout: float,
    catalog: str,
    **words: Any,
) -> CallTarget:
    """Read the options; ask for the password where nothing gives it."""
    login = login_of(url=url, certificate=certificate, key=key, **words)
    shown = find_certificate(url, certificate, key)
    return CallTarget(
        **msgspec.structs.asdict(login),
        url=url,
        verify=find_trust(url, cacert, insecure=insecure, shown=shown),
        headers=parse_headers(header),
        timeout_seconds=timeout,
        catalog=named_catalog("--catalog", catalog),
    )


def named_catalog(option: str, text: str) -> str:
    """Empty for the default catalog. Ends the command when the option is not the name of one."""
    if not text:
        return ""
    from hms_gateway.client.in_catalog import catalog_named
    from hms_gateway.metastore.vocabulary.names import InvalidName, check_catalog_name

    try:
        check_catalog_name(text)
    except InvalidName as error:
        fail(f"{option}: {error}")
    return catalog_named(text)


def check_words(given: Mapping[str, Any]) -> None:
    """Ends the command when one of its words is not text: it could not be sent."""
    for value in given.values():
        for word in value if isinstance(value, tuple) else [value]:
            if isinstance(word, str) and not is_text(word):
                fail(f"{word!r} is not UTF-8")


def is_text(word: str) -> bool:
    """Bytes of the command line that are not text arrive as lone surrogates."""
    return word.isascii() or not any("\ud800" <= character <= "\udfff" for character in word)


def login_words(given: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Take the options about the metastore out of the given ones, with what a profile says in place of defaults."""
    profile = given.pop("profile")
    if profile is not None:
        given.update(with_profile(profile, given))
    check_words(given)
    return {name: given.pop(name) for name in names}


_OPTIONS: Final = (
    *LOGIN,
    CATALOG,
    # Calls of jobs carry headers of their own.
    repeatable("--header -H 'NAME: VALUE'", "HTTP header to send", section="Connection options"),
)
_EXITS: Final = {
    0: "Done.",
    1: "The metastore refused the call.",
    2: "The metastore did not answer, or an option is wrong.",
}
_NAMES: Final = [str(each.name) for each in _OPTIONS if each.name != "profile"]
CALLER: Final = Subject(_OPTIONS, lambda given: target_of(**login_words(given, _NAMES)), _EXITS)
call_command: Final = partial(command, subject=CALLER)
CALLER_WORDS: Final = Subject(_OPTIONS, lambda given: login_words(given, _NAMES), _EXITS)


def _encodable(password: str) -> str:
    try:
        password.encode("utf-8")
    except UnicodeEncodeError:
        fail(f"the password in {PASSWORD_VARIABLE} is not UTF-8")
    return password


def find_ticket(url: str) -> str:
    """The user of the Kerberos tickets."""
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
    """True for an option from the environment, which is for all gateways that are called."""
    return click.get_current_context().get_parameter_source(option) is ParameterSource.ENVIRONMENT


def fail_for_certificate(error: "ClientCertificateError") -> NoReturn:
    """End the command because of a certificate that cannot be shown."""
    fail(f"--{error.option}: {error}")


def find_trust(url: str, cacert: Path | None, *, insecure: bool, shown: str | None = None) -> bool | ssl.SSLContext:
    """Trust in one file, in the system's authorities, or in any certificate; a context that shows `shown`.

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
        if not _HEADER_NAME.fullmatch(name.strip()) or not colon or not value.strip().isprintable():
            fail(f"header {line!r} is not NAME: VALUE")
        headers[name.strip()] = value.strip()
    return headers


def profiles_file() -> Path:
    """The file of the variable, or the one in the folder of configurations."""
    given = os.environ.get(PROFILES_VARIABLE)
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "hms-gateway" / "profiles.toml"


def with_profile(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options with what the profile says in place of defaults and variables; the command line stays.

    An option of the command line about how to log in leaves out all that the profile says about it.
    """
    profile = _values(name)
    if any(_is_typed(option) for option in _LOGINS if option in given) or _is_typed("password_stdin"):
        profile = {key: value for key, value in profile.items() if key not in _LOGINS}
    if "certificate" in profile:
        # A key of the environment belongs to another certificate.
        profile.setdefault("key", None)
    if "token_command" in profile:
        profile["token_command"] = TokenCommand(tuple(profile["token_command"]))
    if "headers" in profile:
        profile["header"] = tuple(profile.pop("headers"))
    return {**given, **{key: value for key, value in profile.items() if key in given and not _is_typed(key)}}


def _is_typed(option: str) -> bool:
    return click.get_current_context().get_parameter_source(option) is ParameterSource.COMMANDLINE


def _values(name: str) -> dict[str, Any]:
    """Ends the command where the profile cannot be used."""
    file = profiles_file()
    try:
        profiles = tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        fail(f"profile {name} is not known: {file} does not exist", "docs/shell.md shows what such a file contains")
    except (OSError, ValueError) as error:
        fail(f"profiles file {file} cannot be read: {error}")
    tables = [key for key, value in profiles.items() if isinstance(value, dict)]
    if name not in tables:
        hint = f"it has {', '.join(tables)}" if tables else f"it has no table such as [{name}]"
        fail(f"profile {name} is not in {file}{did_you_mean(name, tables)}", hint)
    return {key: _checked(file, name, key, value) for key, value in profiles[name].items()}


def _checked(file: Path, name: str, key: str, value: Any) -> Any:
    if key not in _KEYS:
        fail(f"{file}: [{name}] has an unknown key {key}{did_you_mean(key, _KEYS)}", f"known are {', '.join(_KEYS)}")
    try:
        checked = msgspec.convert(value, _KEYS[key])
    except msgspec.ValidationError as error:
        from hms_gateway.runtime.settings_reading import what_must_be

        fail(f"{file}: [{name}] {key} {what_must_be(str(error))}")
    if key == "timeout" and not is_time_out(checked):
        fail(f"{file}: [{name}] timeout must be a number from above 0 to {TIMEOUT_SECONDS_MAX:,}")
    return file.parent / Path(checked).expanduser() if key in _PATHS else checked
