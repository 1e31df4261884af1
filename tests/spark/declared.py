"""The differences to the real metastore that docs/reference/spark.md declares."""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "reference" / "spark.md"
HEADER = "| scenarios | where | the real metastore | hms-gateway | why |"


@dataclass(frozen=True, slots=True)
class Declared:
    """One row: patterns of scenario and place, and pieces of text that both sides must show there."""

    scenarios: str
    where: str
    real: str
    ours: str

    def covers(self, scenario: str, path: str, real: object, ours: object) -> bool:
        return (
            fnmatchcase(scenario, self.scenarios)
            and fnmatchcase(path, self.where)
            and self.real in str(real)
            and self.ours in str(ours)
        )


def declared() -> list[Declared]:
    """The rows of the document's table."""
    _, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(HEADER)
    assert rest, f"no table of differences in {DOCUMENT.name}"
    rows = []
    for line in rest.strip("\n").split("\n")[1:]:
        if not line.startswith("|"):
            break
        scenarios, where, real, ours, _ = (cell.strip() for cell in line.strip("|").split(" | "))
        rows.append(Declared(*(re.sub(r"^`(.*)`$", r"\1", cell) for cell in (scenarios, where, real, ours))))
    return rows
