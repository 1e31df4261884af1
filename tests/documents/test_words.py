"""Docstrings begin with a verb or a noun phrase; those that begin with a relative clause may only become fewer."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "app" / "hms_gateway"
CLAUSE = re.compile(r"\s*(?:What|Whether|Who|How|Where|Which|Why|As|Those|Of|With)\b")
# Lower it when you remove some.
CLAUSES_MAX = 1_017


def clauses(source: str) -> Iterator[str]:
    """The docstrings of a module that begin with one of these words."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text is not None and CLAUSE.match(text):
                yield text


@pytest.mark.slow
def test_no_more_docstrings_begin_with_a_relative_clause() -> None:
    found = [text for path in PACKAGE.rglob("*.py") for text in clauses(path.read_text("utf-8"))]
    assert len(found) <= CLAUSES_MAX


def test_docstrings_that_count() -> None:
    source = '"""What it is."""\ndef first():\n    """Whatever it gives."""\n    """As text."""\n'
    assert list(clauses(source)) == ["What it is."]
