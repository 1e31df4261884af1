"""Licences of what is shipped: permissive, or named with a reason."""

from typing import Any

import pytest

from tools.licences import NAMED, problems


def bill(name: str, *licences: dict[str, Any]) -> dict[str, Any]:
    return {"components": [{"name": name, "version": "1.0", "licenses": list(licences)}]}


def by_id(text: str) -> dict[str, Any]:
    return {"license": {"id": text}}


@pytest.mark.parametrize(
    "licences",
    [
        [by_id("MIT")],
        [{"expression": "(Apache-2.0 OR BSD-2-Clause) AND MIT"}],
        [{"license": {"name": "License :: OSI Approved :: Apache Software License"}}],
        [by_id("BSD-3-Clause"), {"license": {"name": "License :: OSI Approved :: BSD License"}}],
    ],
)
def test_permissive_ones_are_no_problem(licences: list[dict[str, Any]]) -> None:
    assert problems(bill("x", *licences)) == []


@pytest.mark.parametrize(
    ("licences", "text"),
    [
        ([], "x 1.0: no licence"),
        ([by_id("GPL-3.0-only")], "x 1.0: GPL-3.0-only"),
        ([by_id("MIT"), by_id("SSPL-1.0")], "x 1.0: MIT and SSPL-1.0"),
        ([{"expression": "MIT AND LGPL-3.0-only"}], "x 1.0: LGPL-3.0-only and MIT"),
    ],
)
def test_others_are_named_or_refused(licences: list[dict[str, Any]], text: str) -> None:
    assert problems(bill("x", *licences)) == [text]
    assert problems(bill(next(iter(NAMED)), *licences)) == []
