"""Names and comments of users that set the title or the clipboard of an administrator's terminal, or turn its lines."""

import contextlib
import io
import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import click
import pytest

from hms_gateway.cli.calls.plain_values import as_json, print_value
from hms_gateway.cli.terminal import output
from hms_gateway.cli.terminal.formats import FORMATS, write_rows, write_text
from hms_gateway.cli.terminal.output import guard_terminals
from hms_gateway.rpc.idl import BaseType
from hms_gateway.rpc.structs import METHODS, Method
from tests.support.faker import Faker

# Title, clipboard, clear screen; the same begun by one character; a line turned around, hidden, ended; a tag.
PLANTED = "a\x1b]0;t\x07b\x1b]52;c;eA==\x07c\x1b[2Jd\x9b2Je\x90f\u202eg\u2066h\u200bi\rj\x7fk\u2028l\U000e0041\x08\x0c"
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Planted(Faker):
    def _base(self, type: BaseType) -> Any:
        return PLANTED if type is BaseType.STRING else super()._base(type)


@contextlib.contextmanager
def on_screen() -> Iterator[Terminal]:
    """Context in which output is written for a terminal."""
    screen = Terminal()
    with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
        guard_terminals()
        yield screen


def assert_is_harmless(screen: Terminal) -> str:
    """Nothing but colours, lines and tabs is for the terminal."""
    text = COLOURS.sub("", screen.getvalue())
    assert text.replace("\n", "").replace("\t", "").isprintable(), ascii(text)
    return text


RETURNING = [method for method in METHODS.values() if method.definition.returns is not None]


@pytest.mark.slow
@pytest.mark.parametrize("method", RETURNING, ids=lambda method: method.name)
def test_answers_of_every_method(method: Method) -> None:
    kind = method.definition.returns
    assert kind is not None
    value = Planted(7).value(kind)
    with on_screen() as screen:
        print_value(output.out, kind, value)
    assert_is_harmless(screen)
    with on_screen() as screen:
        sys.stdout.write(as_json(kind, value) + "\n")
    assert_is_harmless(screen)
    # What is copied from the screen is what was answered.
    assert repr(json.loads(screen.getvalue())) == repr(json.loads(as_json(kind, value)))


@pytest.mark.parametrize("form", FORMATS)
def test_rows_and_texts_of_the_shell(form: str) -> None:
    with on_screen() as screen:
        write_rows(sys.stdout, form, ["name"], [[PLANTED], [None]])
        write_text(sys.stdout, form, ["createtab_stmt"], [PLANTED])
    assert "]52;c;eA==" in assert_is_harmless(screen)


def test_whatever_a_command_writes_by() -> None:
    with on_screen() as screen:
        print(PLANTED)
        print(PLANTED, file=sys.stderr)
        click.echo(PLANTED)
        click.echo(PLANTED, err=True)
        sys.stdout.writelines([PLANTED, PLANTED])
        output.out.print(PLANTED, style="red", markup=False)
        output.err.print(f"[bold]{PLANTED}[/bold]", soft_wrap=True)
        with pytest.raises(click.exceptions.Exit):
            output.fail(PLANTED, PLANTED)
    assert assert_is_harmless(screen).count("]52;c;") == 10


def test_files_and_programs_get_what_is_stored() -> None:
    with contextlib.redirect_stdout(io.StringIO()) as file:
        guard_terminals()
        print(PLANTED)
        click.echo(PLANTED)
        write_rows(sys.stdout, "csv", ["name"], [[PLANTED]])
        write_text(sys.stdout, "tsv", ["createtab_stmt"], [PLANTED])
        sys.stdout.write(as_json(BaseType.STRING, PLANTED))
    assert file.getvalue().count("]52;c;eA==\x07") == 4
    assert json.loads(file.getvalue().rpartition("\n")[2]) == PLANTED
