"""The documents stay short enough to be read: words in all, lines of the pages that have to be short."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
GENERATED = {"methods.md", "differences.md", "settings.md"}
WORDS_MAX = 40_000
LINES_MAX = {"performance.md": 150, "operations.md": 300, "production.md": 60}


def test_all_documents_together_are_not_longer_than_a_book() -> None:
    read = [ROOT / "README.md", *(path for path in (ROOT / "docs").glob("*.md") if path.name not in GENERATED)]
    words = {path.relative_to(ROOT).as_posix(): len(path.read_text("utf-8").split()) for path in read}
    assert sum(words.values()) <= WORDS_MAX, words


def test_pages_that_have_to_be_short_are() -> None:
    lines = {name: len((ROOT / "docs" / name).read_text("utf-8").splitlines()) for name in LINES_MAX}
    assert {name: count for name, count in lines.items() if count > LINES_MAX[name]} == {}
