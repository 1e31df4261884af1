"""The settings that docs/logins.md and docs/operations.md show are settings of the program."""

import re
from pathlib import Path

import pytest

from hms_gateway.runtime.settings_reading import load_settings

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("document", "blocks"), [("logins.md", 10), ("operations.md", 1)])
def test_every_example_of_settings_is_accepted(document: str, blocks: int, tmp_path: Path) -> None:
    shown = re.findall(r"^```toml\n(.*?)^```", (DOCS / document).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert len(shown) == blocks
    for number, text in enumerate(shown):
        file = tmp_path / f"{number}.toml"
        file.write_text(text)
        load_settings(file)


def test_every_login_of_the_table_has_a_section_with_an_example() -> None:
    text = (DOCS / "logins.md").read_text("utf-8")
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE))
    linked = re.findall(r"^\| \[[^\]]+\]\(#([\w-]+)\)", text, re.MULTILINE)
    named = {title.lower().replace(" ", "-"): body for title, body in sections.items()}
    assert len(linked) == 9
    assert [anchor for anchor in linked if "```console" not in named[anchor]] == []
