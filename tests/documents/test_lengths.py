"""The documents stay short enough to be read: words in all, lines of the pages that have to be short."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
GENERATED = {"methods.md", "differences.md", "settings.md"}
# Parts that tools write are not counted either.
GENERATED_PART = re.compile(r"<!-- [a-z ]+: python -m tools .*?<!-- end -->", re.DOTALL)
WORDS_MAX = 39_780
LINES_MAX = {"performance.md": 150, "operations.md": 300, "production.md": 60}


def test_all_documents_together_are_not_longer_than_a_book() -> None:
    read = [ROOT / "README.md", *(path for path in (ROOT / "docs").glob("*.md") if path.name not in GENERATED)]
    words = {path.relative_to(ROOT).as_posix(): len(_written(path).split()) for path in read}
    assert sum(words.values()) <= WORDS_MAX, words


def _written(path: Path) -> str:
    return GENERATED_PART.sub("", path.read_text("utf-8"))


def test_pages_that_have_to_be_short_are() -> None:
    lines = {name: len((ROOT / "docs" / name).read_text("utf-8").splitlines()) for name in LINES_MAX}
    assert {name: count for name, count in lines.items() if count > LINES_MAX[name]} == {}
