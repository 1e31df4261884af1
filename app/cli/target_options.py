"""The options that say whom to call and as whom, the same for every command that calls a metastore."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from app.cli.calling import Target

DEFAULT_URL: Final = "https://localhost:30443/gateway/default/hmshttpthrift/api/hms"

UrlOption = Annotated[str, typer.Option(envvar="HMS_GATEWAY_URL", help="Where the metastore is.")]
UserOption = Annotated[str, typer.Option(envvar="HMS_GATEWAY_USER", help="User to log in as.")]
PasswordStdinOption = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input, first line.")
]
PasswordFileOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File whose first line is the password, instead of HMS_GATEWAY_PASSWORD."),
]
InsecureOption = Annotated[bool, typer.Option("--insecure", "-k", help="Take any certificate, as curl -k does.")]
CacertOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="PEM certificate to trust, such as var/certificate.pem.")
]
HeaderOption = Annotated[
    list[str] | None, typer.Option("--header", "-H", metavar="'NAME: VALUE'", help="Header to send along.")
]
TimeoutOption = Annotated[float, typer.Option(help="Seconds to wait for the answer.")]


def target_of(
    *,
    url: UrlOption = DEFAULT_URL,
    user: UserOption = "admin",
    password_stdin: PasswordStdinOption = False,
    password_file: PasswordFileOption = None,
    insecure: InsecureOption = False,
    cacert: CacertOption = None,
    header: HeaderOption = None,
    timeout: TimeoutOption = 600.0,
) -> "Target":
    """Whom the options name; asks for the password where nothing gives it."""
    from app.cli import calling

    return calling.Target(
        url=url,
        user=user,
        password=calling.find_password(user, password_file, from_stdin=password_stdin),
        verify=calling.find_trust(cacert, insecure=insecure),
        headers=calling.parse_headers(header or []),
        timeout_seconds=timeout,
    )


def check_words(given: Mapping[str, Any]) -> None:
    """Ends the command when one of its words is no text: it could not be sent."""
    from app.cli.arguments import is_text
    from app.cli.output import fail

    for value in given.values():
        for word in value if isinstance(value, list) else [value]:
            if isinstance(word, str) and not is_text(word):
                fail(f"{word!r} is not UTF-8")


_OPTIONS: Final = inspect.signature(target_of).parameters


def with_target(command: Callable[..., None]) -> Callable[..., None]:
    """`command` with these options added to its own; what they name becomes its first argument."""

    def called(**given: Any) -> None:
        check_words(given)
        options = {name: given.pop(name) for name in _OPTIONS}
        command(target_of(**options), **given)

    own = list(inspect.signature(command).parameters.values())[1:]
    parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*own, *_OPTIONS.values())]
    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return called
