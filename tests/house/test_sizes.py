"""The figures of the package in sizes.toml may fall and not rise, and docs/architecture.md quotes them."""

import ast
from pathlib import Path

import pytest

from tools.size import (
    Sizes,
    clauses,
    code_lines,
    document_path,
    in_cycles,
    kept,
    measured,
    risen,
    statements,
    traced,
    with_sizes,
)


@pytest.mark.slow
def test_no_figure_of_a_room_rises() -> None:
    assert list(risen(kept(), measured())) == []


@pytest.mark.slow
def test_no_walk_becomes_longer() -> None:
    walks = traced()
    assert walks["walks"].keys() == kept()["walks"].keys()
    assert list(risen(kept(), walks)) == []


def test_the_document_quotes_the_figures() -> None:
    document = document_path().read_text(encoding="utf-8")
    assert document == with_sizes(document, kept()), "run: python -m tools size --write"


def test_a_figure_that_is_above_or_new_has_risen() -> None:
    before: Sizes = {"rooms": {"attic": {"code": 3, "files": 2}}}
    now: Sizes = {"rooms": {"attic": {"code": 2, "files": 3}, "cellar": {"code": 1}}}
    assert list(risen(before, now)) == ["rooms attic files: 2 -> 3", "rooms cellar code: 0 -> 1"]


def test_lines_of_code_have_no_docstrings_comments_and_blank_lines() -> None:
    source = '"""A module."""\n\n# Why.\nA = """\n\ntext"""\ndef f():\n    """Two\n    lines."""\n    return A  # It.\n'
    assert code_lines(source, statements(ast.parse(source))) == 4


def test_docstrings_that_begin_with_a_relative_word() -> None:
    source = '"""What it is."""\ndef first():\n    """Whatever it gives."""\n    """As text."""\n'
    assert clauses(statements(ast.parse(source))) == ["What it is."]


def test_cycles_have_lazy_and_typing_only_imports(tmp_path: Path) -> None:
    package = tmp_path / "house"
    files = {
        "attic/__init__.py": "",
        "attic/a.py": "def f():\n    from house.attic import b\n",
        "attic/b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.attic.a import f\n",
        "attic/c.py": "from house.attic.a import f\n",
    }
    for name, text in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    assert measured(package)["rooms"]["attic"]["cyclic"] == 2
    assert in_cycles({"a": frozenset("b"), "b": frozenset("c"), "c": frozenset("b")}) == {"b", "c"}
