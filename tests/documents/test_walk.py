"""The walk of a request in docs/architecture.md is the way that a call takes."""

import re
from pathlib import Path

import pytest

from tools.walks import GET_TABLE, NEW_TABLE, traced

ROOT = Path(__file__).parents[2]


def walk() -> list[tuple[str, str]]:
    """Files and functions as the document lists them."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    (block,) = re.findall(r"test_walk.py` compares\):\n\n```text\n(.*?)```", text, re.DOTALL)
    return [(line.split()[0], line.split()[1]) for line in block.splitlines()]


@pytest.mark.slow
def test_a_call_goes_through_the_functions_of_the_document_in_their_order(tmp_path: Path) -> None:
    with traced(tmp_path) as calls:
        calls.answer(NEW_TABLE % "walks")
        left = iter(calls.steps(GET_TABLE % "walks"))
    assert 20 < len(walk()) <= 30
    for step in walk():
        assert step in left, f"{step} is not called, or not here"
