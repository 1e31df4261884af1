"""Where the commands write: answers to standard output, everything about them to standard error."""

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click
from rich.console import Console
from rich.markup import escape

from hms_gateway.runtime.logins.login_tokens import LoginToken, TokenError, TokenSource

# The answer is that the call failed, as opposed to there being no answer.
EXIT_REFUSED = 1
EXIT_FAILED = 2

out = Console()
err = Console(stderr=True)


def fail(text: str, hint: str = "", exit_code: int = EXIT_FAILED) -> NoReturn:
    """End the command with one red line, and a dim one with what to do about it."""
    err.print(f"[bold red]error:[/bold red] {escape(text)}", soft_wrap=True, highlight=False)
    if hint:
        err.print(escape(hint), style="dim", soft_wrap=True, highlight=False)
    raise click.exceptions.Exit(exit_code)


def first_line(what: str, file: Path) -> str:
    """The first line of a file with a secret. Ends the command when it cannot be read."""
    try:
        return file.read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{what} {file} cannot be read: {error}")


def find_token(source: TokenSource) -> LoginToken:
    """The token in a file, or that a program prints. Ends the command without one."""
    try:
        return LoginToken(source)
    except TokenError as error:
        fail(str(error), error.hint)


def fail_all(problems: Sequence[str]) -> NoReturn:
    """End the command with one red line for each problem."""
    for problem in problems[:-1]:
        err.print(f"[bold red]error:[/bold red] {escape(problem)}", soft_wrap=True, highlight=False)
    fail(problems[-1])


def fail_for_store(error: Exception) -> NoReturn:
    """End the command because of a `StoreError`, with the driver's words where there are any."""
    detail = getattr(error, "detail", "")
    fail(f"{error}: {detail}" if detail else str(error))
