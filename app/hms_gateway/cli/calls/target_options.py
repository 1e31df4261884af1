"""The options that say whom to call and as whom, the same for every command that calls a metastore."""

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hms_gateway.cli.terminal.groups import Option

if TYPE_CHECKING:
    from hms_gateway.cli.calls.targets import CallTarget
    from hms_gateway.runtime.logins.login_tokens import TokenCommand

DEFAULT_URL: Final = "https://localhost:30443/gateway/default/hmshttpthrift/api/hms"

TIMEOUT_SECONDS_MAX: Final = 30 * 86_400

FILE: Final = click.Path(path_type=Path)


class _Words(click.ParamType["TokenCommand"]):
    """A program and its arguments, as a shell separates them; no shell runs it."""

    name = "command"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> "TokenCommand":
        import shlex

        from hms_gateway.runtime.logins.login_tokens import TokenCommand

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
    """What a socket can wait for; not a number is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = super().convert(value, param, ctx)
        if not is_time_out(seconds):
            self.fail(f"{value} is not a number from above 0 to {TIMEOUT_SECONDS_MAX:,}", param, ctx)
        return seconds


def is_time_out(seconds: float) -> bool:
    """Not a number is none."""
    return 0 < seconds <= TIMEOUT_SECONDS_MAX


SECONDS: Final = _Seconds(min=0, min_open=True)

connection_option: Final = functools.partial(click.option, cls=Option, section="Connection options")
password_stdin_option = connection_option(
    "--password-stdin", is_flag=True, help="Read the password from the first line of standard input."
)
cacert_option = connection_option(
    "--cacert",
    envvar="HMS_GATEWAY_CACERT",
    show_envvar=True,
    type=FILE,
    metavar="FILE",
    help="Certificate (PEM) to trust, such as var/certificate.pem.",
)
certificate_option = connection_option(
    "--certificate",
    envvar="HMS_GATEWAY_CERTIFICATE",
    show_envvar=True,
    type=FILE,
    metavar="FILE",
    help="Client certificate (PEM) to log in with; HMS_GATEWAY_PASSWORD is then ignored.",
)
key_option = connection_option(
    "--key",
    envvar="HMS_GATEWAY_KEY",
    show_envvar=True,
    type=FILE,
    metavar="FILE",
    help="Private key (PEM, not encrypted) of --certificate; unset means that the certificate's file contains it.",
)
token_file_option = connection_option(
    "--token-file",
    type=FILE,
    metavar="FILE",
    help="File with a token (of `hms-gateway token create` or an issuer) in its first line, instead of a password.",
)
token_command_option = connection_option(
    "--token-command",
    type=_Words(),
    metavar="COMMAND",
    help="Program that prints such a token; runs again when the token expires or is refused.",
)
password_file_option = connection_option(
    "--password-file",
    type=FILE,
    metavar="FILE",
    help="File with the password in its first line; replaces HMS_GATEWAY_PASSWORD.",
)
insecure_option = connection_option(
    "--insecure", "-k", is_flag=True, help="Accept any certificate of the server, as curl -k does."
)
timeout_option = connection_option(
    "--timeout", type=SECONDS, default=600.0, metavar="SECONDS", help="How long to wait for an answer."
)
_OPTIONS: Final = (
    connection_option(
        "--profile",
        envvar="HMS_GATEWAY_PROFILE",
        show_envvar=True,
        metavar="NAME",
        help="Read defaults of the options below from profile NAME in ~/.config/hms-gateway/profiles.toml.",
    ),
    connection_option(
        "--url", envvar="HMS_GATEWAY_URL", show_envvar=True, default=DEFAULT_URL, help="URL of the metastore."
    ),
    connection_option("--user", envvar="HMS_GATEWAY_USER", show_envvar=True, default="admin", help="User to call as."),
    password_stdin_option,
    password_file_option,
    token_file_option,
    token_command_option,
    connection_option("--negotiate", is_flag=True, help="Log in with a Kerberos ticket (kinit) instead of a password."),
    certificate_option,
    key_option,
    insecure_option,
    cacert_option,
    timeout_option,
)


# Calls of jobs carry headers of their own.
_HEADER: Final = connection_option(
    "--header", "-H", multiple=True, metavar="'NAME: VALUE'", help="HTTP header to send; repeatable."
)


def target_of(
    *,
    url: str,
    user: str,
    password_stdin: bool,
    password_file: Path | None,
    token_file: Path | None,
    token_command: "TokenCommand | None",
    negotiate: bool,
    certificate: Path | None,
    key: Path | None,
    insecure: bool,
    cacert: Path | None,
    header: tuple[str, ...],
    timeout: float,
) -> "CallTarget":
    """Whom the options name; asks for the password where nothing gives it."""
    from hms_gateway.cli.calls import targets
    from hms_gateway.cli.terminal.output import find_token

    source = token_file or token_command
    token = None if source is None else find_token(source)
    shown = targets.find_certificate(url, certificate, key)
    if token is not None:
        password = None
    elif negotiate:
        user, password = targets.find_ticket(url), None
    elif shown is not None and password_file is None and not password_stdin:
        password = None
    else:
        password = targets.find_password(user, password_file, from_stdin=password_stdin)
    return targets.CallTarget(
        url=url,
        user=user,
        password=password,
        token=token,
        negotiates=negotiate and token is None,
        verify=targets.find_trust(url, cacert, insecure=insecure, shown=shown),
        headers=targets.parse_headers(header),
        timeout_seconds=timeout,
    )


TARGET_NAMES: Final = tuple(inspect.signature(target_of).parameters)


def check_words(given: Mapping[str, Any]) -> None:
    """Ends the command when one of its words is not text: it could not be sent."""
    from hms_gateway.cli.calls.arguments import is_text
    from hms_gateway.cli.terminal.output import fail

    for value in given.values():
        for word in value if isinstance(value, tuple) else [value]:
            if isinstance(word, str) and not is_text(word):
                fail(f"{word!r} is not UTF-8")


def target_options(command: Callable[..., None]) -> Callable[..., None]:
    """`command` with the options added whose values `target_of` takes, and --profile, which fills them."""
    return login_options(_HEADER(command))


def login_options(command: Callable[..., None]) -> Callable[..., None]:
    """The same without --header."""

    @functools.wraps(command)
    def called(**given: Any) -> None:
        profile = given.pop("profile")
        if profile is not None:
            from hms_gateway.cli.calls.profiles import with_profile

            given = with_profile(profile, given)
        command(**given)

    for option in reversed(_OPTIONS):
        called = option(called)
    return called


def with_target(command: Callable[..., None]) -> Callable[..., None]:
    """`command` with these options added to its own; what they name becomes its first argument."""

    @functools.wraps(command)
    def called(**given: Any) -> None:
        check_words(given)
        options = {name: given.pop(name) for name in TARGET_NAMES}
        command(target_of(**options), **given)

    return target_options(called)
