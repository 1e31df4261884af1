"""The rules and actions of docs/rights.md are what the program takes."""

import re
from pathlib import Path

from hms_gateway.catalog.rights.policy import ALL, Action
from hms_gateway.catalog.rights.rules_file import parse_rules

TEXT = (Path(__file__).parents[2] / "docs" / "rights.md").read_text("utf-8")


def test_the_examples_of_rules_are_rules() -> None:
    examples = [one for one in re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL) if "[[rule]]" in one]
    assert [len(parse_rules(one)) for one in examples] == [4]


def test_every_action_has_a_row() -> None:
    rows = set(re.findall(r"^\| `(\w+)` \|", TEXT.partition("## Actions")[2], re.MULTILINE))
    assert rows == {*(action.value for action in Action), ALL} - {"admin"}
