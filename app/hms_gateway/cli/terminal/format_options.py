"""The option that says in which form rows are printed, the same for every command that prints some."""

import functools
import sys
from collections.abc import Callable
from typing import Any, Final

import click

_FORMS: Final = ("table", "json", "csv", "tsv", "vertical")
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(_FORMS),
    help="Form of the rows. [default: table on a terminal, tsv otherwise]",
    show_default=False,
)


def with_json(function: Callable[..., None]) -> Callable[..., None]:
    """`format_option`, and `--json` as another spelling of it."""

    @click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
    @format_option
    @functools.wraps(function)
    def called(*arguments: Any, form: str | None, as_json: bool, **named: Any) -> None:
        function(*arguments, form="json" if as_json else form, **named)

    return called


def rows_form(form: str | None) -> str:
    """A table for people, tab-separated values for programs, unless another form is asked for."""
    return form or ("table" if sys.stdout.isatty() else "tsv")
