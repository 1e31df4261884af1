"""docs/security.md names every attack test, and names none that is not there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_document_and_the_tests_are_the_same_list() -> None:
    named = set(re.findall(r"`(test_\w+\.py)`", (ROOT / "docs" / "security.md").read_text()))
    assert named == {path.name for path in (ROOT / "tests" / "attacks").glob("test_*.py")}
