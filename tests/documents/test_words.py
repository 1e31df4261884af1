"""Documents, comments and texts of the program use plain words: named subjects, verbs that say what happens."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PROGRAM = sorted((ROOT / "app" / "hms_gateway").rglob("*.py"))
# Names are said, not "somebody"; documents say or list, programs print, send or log.
UNWANTED = re.compile(
    r"\b(?:told|tells?|stands?|whoever|whomever|somebody|nobody|anybody|leaves with)\b", re.IGNORECASE
)


# Files have a method of this name.
CALL = re.compile(r"(?:\.|def )tell\(")


def unwanted(paths: list[Path]) -> dict[str, str]:
    """Place and word."""
    return {
        f"{path.relative_to(ROOT)}:{number}": match[0]
        for path in paths
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if (match := UNWANTED.search(CALL.sub("", line)))
    }


def test_documents_name_who_does_what() -> None:
    assert not unwanted(DOCUMENTS)


def test_the_program_names_who_does_what() -> None:
    assert not unwanted(PROGRAM)
