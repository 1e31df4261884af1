"""The document of differences says what the table says."""

from app.structs import METHODS
from tests.comparison.differences import DIFFERENCES
from tests.comparison.document import FILE, text


def test_the_document_is_current() -> None:
    assert FILE.read_text() == text(), "run: python -m tests.comparison.document"


def test_entries_have_names_of_their_own() -> None:
    names = [entry.name for entry in DIFFERENCES]
    assert len(names) == len(set(names))


def test_entries_are_about_methods_that_exist() -> None:
    unknown = {name for entry in DIFFERENCES for name in entry.methods.split() if name not in METHODS}
    assert unknown == {"*"}
