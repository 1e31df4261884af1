"""The document of differences says what the table says."""

from pathlib import Path

from hms_gateway.rpc.structs import METHODS
from tests.comparison.answers import Difference
from tests.comparison.differences import DIFFERENCES
from tests.comparison.document import FILE, text
from tests.comparison.third_differences import THIRD, UNASKED
from tests.comparison.uncompared_differences import UNCOMPARED, Uncompared

ENTRIES: tuple[Difference | Uncompared, ...] = (*DIFFERENCES, *THIRD, *UNASKED, *UNCOMPARED)


def test_the_document_is_current() -> None:
    assert FILE.read_text() == text(), "run: python -m tests.comparison.document"


def test_entries_have_names_of_their_own() -> None:
    names = [entry.name for entry in ENTRIES]
    assert len(names) == len(set(names))


def test_entries_are_about_methods_that_exist() -> None:
    unknown = {name for entry in ENTRIES for name in entry.methods.split() if name not in METHODS}
    assert unknown == {"*"}


def test_what_is_not_compared_has_a_test() -> None:
    root = Path(__file__).parents[2]
    for entry in UNCOMPARED:
        file, _, test = entry.test.partition("::")
        assert f"def {test}(" in (root / file).read_text(), entry.test
