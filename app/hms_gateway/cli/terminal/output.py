"""Where the commands write: answers to standard output, everything about them to standard error."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

import click
from rich.console import Console
from rich.markup import escape

# The answer is that the call failed, as opposed to there being no answer.
EXIT_REFUSED = 1
EXIT_FAILED = 2
TOKEN_SECONDS_MAX: Final = 60.0

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


class TokenCommand(NamedTuple):
    """A program whose first line of output is a token."""

    words: Sequence[str]


def find_token(source: Path | TokenCommand) -> str:
    """The first line of a file, or of what a program prints."""
    if isinstance(source, Path):
        name, line = f"token file {source}", first_line("token file", source)
    else:
        name, line = f"token_command {' '.join(source.words)}", _first_line_of(source)
    token = line.strip()
    if not token or not token.isascii() or not token.isprintable():
        fail(f"{name} has no token in its first line", "hms-gateway token create NAME prints one")
    return token


def _first_line_of(command: TokenCommand) -> str:
    import subprocess

    name = f"token_command {' '.join(command.words)}"
    try:
        ran = subprocess.run(command.words, stdout=subprocess.PIPE, text=True, timeout=TOKEN_SECONDS_MAX, check=False)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        fail(f"{name} cannot be run: {error}")
    if ran.returncode:
        fail(f"{name} ended with exit status {ran.returncode}")
    return ran.stdout.partition("\n")[0]


def fail_all(problems: Sequence[str]) -> NoReturn:
    """End the command with one red line for each problem."""
    for problem in problems[:-1]:
        err.print(f"[bold red]error:[/bold red] {escape(problem)}", soft_wrap=True, highlight=False)
    fail(problems[-1])


def fail_for_store(error: Exception) -> NoReturn:
    """End the command because of a `StoreError`, with the driver's words where there are any."""
    detail = getattr(error, "detail", "")
    fail(f"{error}: {detail}" if detail else str(error))
