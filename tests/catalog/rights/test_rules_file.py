"""The file of rules: what it may say, what is wrong with one, and what a change of it does."""

import os
from pathlib import Path

import pytest

from hms_gateway.catalog.rights.policy import NamePattern
from hms_gateway.catalog.rights.rules_file import RulesError, RulesFile, parse_rules

GOOD = """
[[rule]]
groups = ["sales"]
actions = ["select"]
objects = ["sales_*"]
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[rule]\n", "at line 1, column 7"),
        ("\n[[rules]]\n", "'rules' is not known (at line 2, column 3)"),
        ("rule = 3", "rule is not a list"),
        (GOOD + "[[rule]]\nusers = []\n", "rule 2 names no party; give it users, groups or roles (at line 6"),
        ("[[rule]]\nusers=['a']\nactions=['read']\nobjects=['x']", "actions that name read"),
        ("[[rule]]\nusers=['a']\nactions=['select']", "has no objects"),
        ("[[rule]]\nusers=['a']\nactions=['select']\nobjects=['a.b.c']", "'a.b.c'"),
        ("[[rule]]\nuser=['a']", "the key 'user'"),
        ("[[rule]]\nusers=['a']\nobjects=['x']\nlocations=['file:/a']", "has objects and no actions"),
        ("[[rule]]\nusers=['a']\nlocations=['/data/a']", "the location '/data/a'; write a directory with its scheme"),
        ("[[rule]]\nusers=['a']\nlocations=['file:/a/../b']", "the location 'file:/a/../b'"),
        ("[[rule]]\nusers=['a']\nlocations=['file:/data/t*']", "the location 'file:/data/t*'"),
        ("[[rule]]\nusers=['a']\nlocations=['s3://*/t']", "the location 's3://*/t'"),
        ("[[rule]]\nusers='a'", "users that is not a list of texts"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, said: str) -> None:
    with pytest.raises(RulesError) as raised:
        parse_rules(text)
    assert said in str(raised.value)


def test_a_change_is_seen_and_a_broken_file_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    path = tmp_path / "rules.toml"
    path.write_text(GOOD)
    file = RulesFile(path, lambda: now)
    before = file.rules
    assert (file.look(), len(before)) == (0, 1)
    path.write_text(GOOD + "[[rule]\n")
    os.utime(path, (1, 1))
    assert file.look() == 0  # the next look is a second later
    now = 1.5
    assert file.look() == 0
    assert file.rules is before
    assert "line 6, column 7" in caplog.text
    path.write_text(GOOD + GOOD)
    now = 3.0
    assert file.look() == 1
    assert len(file.rules) == 2


@pytest.mark.parametrize(
    ("pattern", "taken", "left"),
    [
        ("*", ["", "a"], []),
        ("sales", ["sales"], ["sales_", "sale"]),
        ("sales_*", ["sales_", "sales_eu"], ["sales"]),
        ("*_eu", ["_eu", "sales_eu"], ["sales_eu2"]),
        ("a*b*c", ["abc", "axbyc"], ["ab", "abcd"]),
        ("a.b*", ["a.b", "a.bc"], ["axb"]),
    ],
)
def test_patterns(pattern: str, taken: list[str], left: list[str]) -> None:
    matches = NamePattern(pattern).matcher()
    assert [name for name in taken + left if matches(name)] == taken
