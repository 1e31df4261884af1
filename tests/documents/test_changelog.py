"""CHANGELOG has what is not released first, then the versions, the newest being that of the package."""

import re
import tomllib
from datetime import date
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEADING = re.compile(r"^## (?:(Unreleased)|(\d+)\.(\d+)\.(\d+) \((\d{4}-\d\d-\d\d)\))$")


def test_the_newest_version_is_that_of_the_package() -> None:
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines() if line.startswith("## ")]
    first, *versions = [HEADING.match(line) for line in headings]
    assert first is not None
    assert first[1] == "Unreleased"
    assert None not in versions
    released = [(tuple(map(int, match.group(2, 3, 4))), date.fromisoformat(match[5])) for match in versions if match]
    assert released
    assert all(newer > older for newer, older in pairwise(released))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["version"] == ".".join(map(str, released[0][0]))


def test_the_newest_version_is_short_and_sorted() -> None:
    """From 0.2.0 on: four lists, one line for each change, at most 60 lines."""
    _, _, newest, *_ = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE)
    lines = newest.rstrip().splitlines()
    assert len(lines) <= 60
    assert {line for line in lines if line.startswith("### ")} <= {
        "### Added",
        "### Changed",
        "### Fixed",
        "### Security",
    }
    assert not [line for line in lines if line.startswith(" ")]
