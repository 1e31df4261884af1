"""Where the commands write: answers to standard output, everything about them to standard error."""

from collections.abc import Sequence
from typing import NoReturn

import click
from rich.console import Console
from rich.markup import escape

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


def fail_all(problems: Sequence[str]) -> NoReturn:
    """End the command with one red line for each problem."""
    for problem in problems[:-1]:
        err.print(f"[bold red]error:[/bold red] {escape(problem)}", soft_wrap=True, highlight=False)
    fail(problems[-1])


def fail_for_store(error: Exception) -> NoReturn:
    """End the command because of a `StoreError`, with the driver's words where there are any."""
    detail = getattr(error, "detail", "")
    fail(f"{error}: {detail}" if detail else str(error))
