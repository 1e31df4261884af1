"""Help of every command in one form: a sentence, an example that is accepted as printed, options, exit codes."""

import inspect
import re
import shlex
from collections.abc import Iterator

import click
import pytest

from hms_gateway.cli.application import application
from hms_gateway.cli.terminal.commands import CommandGroup, DeclaredCommand, sentence

EXAMPLE = re.compile(r"^ *((?:[A-Za-z].*\| *)?hms-gateway .*)$", re.MULTILINE)
WIDTH = 100


def walk(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from walk(found, (*path, name))


PATHS = list(walk(application, ("hms-gateway",)))


def named(path: tuple[str, ...]) -> click.Command:
    command: click.Command = application
    for name in path[1:]:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    return command


def help_of(path: tuple[str, ...]) -> str:
    return named(path).get_help(click.Context(named(path), info_name=" ".join(path), terminal_width=WIDTH))


@pytest.mark.parametrize(
    ("name", "default"), [("doctor", "a line of text for each"), ("ls", "table on a terminal, tsv otherwise")]
)
def test_the_form_of_rows_without_an_option_is_in_the_help(name, default):
    assert f"[default: {default}]" in " ".join(help_of(("hms-gateway", name)).split())


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_help_is_a_sentence_examples_options_and_exit_codes(path: tuple[str, ...]) -> None:
    command, text = named(path), help_of(path)
    said = sentence(command)
    assert said.endswith(".")
    assert ". " not in said, "one sentence"
    assert said[0].isupper()
    assert "..." not in said
    assert isinstance(command, DeclaredCommand | CommandGroup)
    own, shared = text.index("\nOptions:"), text.find("\nConnection options:")
    codes = text.index("\nExit codes:\n  0  ")
    assert text.index(" ".join(said.split()[:3])) < text.index("\nExample") < own < codes
    assert text.count("Connection options:") <= 1
    assert {0, 2} <= set(command.exits)
    if shared >= 0:
        assert own < shared < codes
        assert re.search(r"^  --url ", text[shared:], re.MULTILINE)
        assert not re.search(r"^  --url ", text[:shared], re.MULTILINE)


@pytest.mark.parametrize("path", [path for path in PATHS if isinstance(named(path), DeclaredCommand)], ids=" ".join)
def test_the_work_of_a_command_takes_its_options(path: tuple[str, ...]) -> None:
    command = named(path)
    assert isinstance(command, DeclaredCommand)
    if path[1] == "pipeline":
        pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
    taken = set() if command.subject is None else {each.name for each in command.subject.options}
    given = {str(each.name): None for each in command.params if each.expose_value and each.name not in taken}
    if path[1] == "serve":
        given = dict.fromkeys(("config", "demo"))
    if path[1] == "doctor":
        del given["port"]
    subject = [] if command.subject is None else [None]
    inspect.signature(command.implementation()).bind(*subject, **given)


def test_each_option_is_described() -> None:
    for path in PATHS:
        for parameter in named(path).params:
            if isinstance(parameter, click.Option):
                assert re.match(r"[A-Z].*[.)\]]$", parameter.help or ""), (path, parameter.name)


def test_no_description_of_a_command_is_cut() -> None:
    for path in PATHS:
        command = named(path)
        if isinstance(command, click.Group):
            shown = " ".join(help_of(path).split())
            for name in command.list_commands(click.Context(command)):
                assert f"{name} {sentence(named((*path, name)))}" in shown


def examples() -> Iterator[str]:
    for path in PATHS:
        command = named(path)
        assert isinstance(command, DeclaredCommand | CommandGroup)
        yield from (line for line in EXAMPLE.findall("\n".join(command.examples)))


@pytest.mark.parametrize("line", list(dict.fromkeys(examples())))
def test_an_example_is_accepted(line: str) -> None:
    """Without what the shell does, and what is said beside it."""
    lexer = shlex.shlex(re.sub(r"\$\(.*?\)", "X", line).split("   ")[0], posix=True, punctuation_chars="|<>")
    lexer.whitespace_split = True
    words = list(lexer)
    words = words[words.index("hms-gateway") + 1 :]
    words = words[: next((at for at, word in enumerate(words) if word in ("|", "<", ">")), None)]
    command: click.Command = application
    while isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words[0])
        assert found is not None, words
        command, words = found, words[1:]
    command.make_context("example", words)
