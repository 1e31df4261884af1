"""Declarations of commands: options as the help shows them, one form of help, work that is imported when it runs."""

import inspect
import re
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import click

from hms_gateway.cli.terminal.importing import gc_paused, import_structlog

FILE: Final = click.Path(path_type=Path)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
OWN_OPTIONS: Final = "Options"
_ARGUMENTS: Final = "Arguments"
# Types of values, by the words for them in the help.
_TYPES: Final[Mapping[str, click.ParamType[Any]]] = MappingProxyType(
    {
        "FILE": FILE,
        "FOLDER": FILE,
        "N": click.IntRange(min=1),
        "PORT": click.IntRange(0, 65_535),
        "SECONDS": click.FloatRange(min=0),
    }
)
_FORMS: Final = ("table", "json", "csv", "tsv", "vertical")
_FAILED: Final = "It failed, or an option is wrong."
DONE: Final[Mapping[int, str]] = MappingProxyType({0: "Done.", 2: _FAILED})


class Measure(click.ParamType[int]):
    """A whole number with a unit behind it; `units` are their values, that of "" is for a number alone."""

    def __init__(self, name: str, units: Mapping[str, int]) -> None:
        self.name, self._units = name, units

    def read(self, text: str) -> int | None:
        """The value of a text; None for what is no such number."""
        found = re.fullmatch(r"([0-9]{1,15})([a-z]?)", text.lower())
        return None if found is None or found[2] not in self._units else int(found[1]) * self._units[found[2]]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = self.read(str(value))
        if found is None:
            units = ", ".join(filter(None, self._units))
            where = " where you like" if "" in self._units else ""
            self.fail(f"{value!r} is not a whole number with {units} behind it{where}", param, ctx)
        return found


AGE: Final = Measure("TIME", _SECONDS)
SPAN: Final = Measure("TIME", {"": 1, **_SECONDS})


class Option(click.Option):
    """An option in a section of the help; without one of its own it is among the command's."""

    def __init__(self, names: Sequence[str], *, section: str, **named: Any) -> None:
        super().__init__(names, **named)
        self.section = section


def option(
    declared: str, help: str, *, section: str = OWN_OPTIONS, variable: str | None = None, **named: Any
) -> Option:
    """An option as the help shows it: `--long -l name VALUE`, a flag without VALUE; `a|b` is a choice.

    The word for the value is its type, see `_TYPES`. `variable` is the environment variable that gives the value.
    """
    words = declared.split()
    names = list(takewhile(lambda word: word.startswith("-") or (word.islower() and "|" not in word), words))
    metavar = " ".join(words[len(names) :]) or None
    if metavar is not None and "|" in metavar:
        named.setdefault("type", click.Choice(metavar.split("|")))
    if (kind := _TYPES.get(metavar or "")) is not None:
        named.setdefault("type", kind)
    if metavar is None and "/" not in declared and "type" not in named:
        named.setdefault("is_flag", True)
    named.setdefault("show_default", named.get("default") != "")
    return Option(
        names, section=section, help=help, metavar=metavar, envvar=variable, show_envvar=bool(variable), **named
    )


def repeatable(declared: str, help: str, **named: Any) -> Option:
    """An option that may be given several times."""
    return option(declared, f"{help.removesuffix('.')}; repeatable.", multiple=True, **named)


def argument(name: str, help: str | None = None, **named: Any) -> click.Argument:
    """A positional argument."""
    return click.Argument([name], help=help, **named)


def _form_option(default: str, **named: Any) -> Option:
    text = f"Form of the rows. [default: {default}]"
    return option("--format form", text, type=click.Choice(_FORMS), show_default=False, **named)


FORM: Final = _form_option("table on a terminal, tsv otherwise")
STRUCTS_AS_JSON: Final = option("--json as_json", "Print the structs as JSON, with the IDL's field names.")


def form_or_json(default: str = "a line of text for each") -> tuple[Option, Option]:
    """`--format` with another default, and `--json` as another spelling of one of its values, which wins."""

    def note(context: click.Context, _: click.Parameter, value: bool) -> None:
        context.meta[__name__] = value

    def chosen(context: click.Context, _: click.Parameter, value: str | None) -> str | None:
        return "json" if context.meta.get(__name__) else value

    same = option("--json", "The same as --format json.", is_eager=True, expose_value=False, callback=note)
    return _form_option(default, callback=chosen), same


def rows_form(form: str | None) -> str:
    """A table for people, tab-separated values for programs, unless another form is asked for."""
    return form or ("table" if sys.stdout.isatty() else "tsv")


class Subject(NamedTuple):
    """The first argument of a command's work, made of options that several commands share.

    `take` makes it, and takes its options out of the given ones.
    """

    options: Sequence[Option]
    take: Callable[[dict[str, Any]], Any]
    exits: Mapping[int, str] = DONE


class Documented:
    """The one form of help: a sentence, details, examples, options, exit codes."""

    examples: Sequence[str]
    exits: Mapping[int, str]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Called by click."""
        assert isinstance(self, click.Command)
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        with formatter.section("Examples" if len(self.examples) > 1 else "Example"):
            for line in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
        self.format_options(ctx, formatter)
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), text) for code, text in self.exits.items()])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Called by `format_help`: arguments, own options, then those of other sections."""
        assert isinstance(self, click.Command)
        sections: dict[str, list[tuple[str, str]]] = {_ARGUMENTS: [], OWN_OPTIONS: []}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx)
            if record is not None and record[1]:
                other = _ARGUMENTS if isinstance(each, click.Argument) else OWN_OPTIONS
                sections.setdefault(getattr(each, "section", other), []).append(record)
        for section, records in sections.items():
            if records:
                with formatter.section(section):
                    formatter.write_dl(records)


class DeclaredCommand(Documented, click.Command):
    """A command whose work is the function `module:name` of this package, imported when the command runs."""

    def __init__(self, name: str, work: str, subject: Subject | None, *, is_server: bool, **named: Any) -> None:
        super().__init__(name, callback=self._run, **named)
        self.work = work
        self.subject = subject
        self._is_server = is_server

    def _run(self, **given: Any) -> None:
        if self._is_server and threading.current_thread() is threading.main_thread():
            # SIGHUP by itself ends a process; a server has another use for it or none, and may get it while it starts.
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        first = [] if self.subject is None else [self.subject.take(given)]
        self.implementation()(*first, **given)

    def implementation(self) -> Callable[..., None]:
        """Import the work."""
        module, _, name = self.work.partition(":")
        with gc_paused():
            if self._is_server:
                import_structlog()
            found: Callable[..., None] = getattr(import_module(f"hms_gateway.cli.{module}"), name)
        return found


def command(
    name: str,
    text: str,
    *parameters: click.Parameter,
    work: str,
    examples: Sequence[str],
    exits: Mapping[int, str] | None = None,
    subject: Subject | None = None,
    is_server: bool = False,
    **named: Any,
) -> DeclaredCommand:
    """A command; the first paragraph of `text` is one sentence. `exits` add to the exit codes of its subject."""
    parameters = (*parameters, *(() if subject is None else subject.options))
    found = DeclaredCommand(name, work, subject, is_server=is_server, help=text, params=list(parameters), **named)
    found.examples = _lines(examples)
    found.exits = dict(sorted({**(DONE if subject is None else subject.exits), **(exits or {})}.items()))
    return found


class CommandGroup(Documented, click.Group):
    """Shows its commands in the order of their declaration, each with its whole sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Called by click."""
        return list(self.commands)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Called by `format_help`: the commands, too."""
        super().format_options(ctx, formatter)
        with formatter.section("Commands"):
            formatter.write_dl([(name, sentence(each)) for name, each in self.commands.items()])


def group(name: str, text: str, *commands: click.Command, examples: Sequence[str], **named: Any) -> CommandGroup:
    """A group of commands."""
    found = CommandGroup(name, help=text, commands=list(commands), **named)
    found.examples = _lines(examples)
    found.exits = {0: "Done.", 1: "Of some commands: refused, or with findings.", 2: _FAILED}
    return found


def _lines(examples: Sequence[str]) -> list[str]:
    """Lines of a shell: the name of the program is left out of those that begin with it."""
    return [line if "| hms-gateway " in line else f"hms-gateway {line}" for line in examples]


def sentence(command: click.Command) -> str:
    """The first paragraph of a command's help."""
    return " ".join(inspect.cleandoc(command.help or "").partition("\n\n")[0].split())
