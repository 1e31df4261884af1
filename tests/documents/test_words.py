"""Documents for people use plain words: subjects that are named, verbs that say what happens."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# Names are said, not "somebody"; documents say or list, programs print, send or log.
UNWANTED = re.compile(
    r"\b(?:told|tells?|stands?|whoever|whomever|somebody|nobody|anybody|leaves with)\b", re.IGNORECASE
)


def test_documents_name_who_does_what() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{number}": match[0]
        for path in DOCUMENTS
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if (match := UNWANTED.search(line))
    }
    assert not found
