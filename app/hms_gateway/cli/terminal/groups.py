"""Commands and groups of commands, and how they show their help."""

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import click


class Option(click.Option):
    """An option that `--help` shows in a section of its own, behind the examples."""

    def __init__(self, *arguments: Any, section: str, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.section = section


class SectionedCommand(click.Command):
    """Shows its own options first, then its examples, then the options that it shares with other commands."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_options(ctx, formatter, "Options", [each for each in self.get_params(ctx) if not _section(each)])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        shared = [each for each in self.get_params(ctx) if _section(each)]
        for section in dict.fromkeys(map(_section, shared)):
            _write_options(ctx, formatter, section, [each for each in shared if _section(each) == section])


class Group(click.Group):
    """Shows its commands in the order of their declaration, each with its whole sentence."""

    command_class = SectionedCommand
    group_class = type

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, sentence(command)) for name, command in commands if command is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def command(name: str | None = None, **named: Any) -> Callable[[Callable[..., None]], click.Command]:
    """`click.command` of a Command."""
    return click.command(name, cls=SectionedCommand, **named)


def sentence(command: click.Command) -> str:
    """The first paragraph of a command's help."""
    return " ".join(inspect.cleandoc(command.help or "").partition("\n\n")[0].split())


def examples(*lines: str) -> str:
    """An epilog that shows lines as they are."""
    return "\b\nExample:\n" + textwrap.indent("\n".join(lines), "  ")


def _section(parameter: click.Parameter) -> str:
    return parameter.section if isinstance(parameter, Option) else ""


def _write_options(
    ctx: click.Context, formatter: click.HelpFormatter, section: str, parameters: list[click.Parameter]
) -> None:
    records = [
        record
        for each in parameters
        if not isinstance(each, click.Argument) and (record := each.get_help_record(ctx)) is not None
    ]
    if records:
        with formatter.section(section):
            formatter.write_dl(records)
