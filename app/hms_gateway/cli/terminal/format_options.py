"""The option that says in which form rows are printed, the same for every command that prints some."""

import functools
import sys
from collections.abc import Callable
from typing import Any, Final

import click

_FORMS: Final = ("table", "json", "csv", "tsv", "vertical")
_Function = Callable[..., None]


def _format_option(default: str) -> Callable[[_Function], _Function]:
    return click.option(
        "--format",
        "form",
        type=click.Choice(_FORMS),
        help=f"Form of the rows. [default: {default}]",
        show_default=False,
    )


format_option = _format_option("table on a terminal, tsv otherwise")


def with_json(default: str = "a line of text for each") -> Callable[[_Function], _Function]:
    """Decorate with `--format`, whose default has words of its own, and `--json` as another spelling of it."""

    def decorated(function: _Function) -> _Function:
        @click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
        @_format_option(default)
        @functools.wraps(function)
        def called(*arguments: Any, form: str | None, as_json: bool, **named: Any) -> None:
            function(*arguments, form="json" if as_json else form, **named)

        return called

    return decorated


def rows_form(form: str | None) -> str:
    """A table for people, tab-separated values for programs, unless another form is asked for."""
    return form or ("table" if sys.stdout.isatty() else "tsv")
