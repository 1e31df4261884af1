"""The option that says in which form rows are printed, the same for every command that prints some."""

import sys
from typing import Final

import click

_FORMS: Final = ("table", "json", "csv", "tsv", "vertical")
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(_FORMS),
    help="Form of the rows. [default: table on a terminal, tsv otherwise]",
    show_default=False,
)


def rows_form(form: str | None) -> str:
    """A table for people, tab-separated values for programs, unless another form is asked for."""
    return form or ("table" if sys.stdout.isatty() else "tsv")
