import re
import sqlite3

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hms_gateway.metastore.vocabulary.patterns import Pattern, Wildcard, parse_like, parse_pattern, parse_sql_like

PATTERN_TEXTS = st.text(alphabet="ab.*|_%\\[]?A ", max_size=10)
NAMES = st.text(alphabet="ab._%\\[]?*A", max_size=8)


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("*", ["a", "default", "t_1"], []),
        (".*", ["a", "default"], [""]),
        ("default*", ["default", "default_2"], ["adefault"]),
        ("a.c", ["abc", "axc"], ["ac", "abbc"]),
        ("a_c", ["a_c"], ["abc"]),
        ("foo|bar*", ["foo", "bar", "barn"], ["fool", "ba"]),
        ("", [], ["a", "default"]),
        ("|", [], ["", "a"]),
        ("||", [], ["", "a"]),
        ("|t", ["t"], ["a"]),
        ("t|", ["t"], ["", "a"]),
        ("x?", [], ["x", "xy"]),
        ("x%", [], ["xyz"]),
        ("%", [], ["a"]),
        ("(", [], ["a"]),
        ("\\", [], ["a"]),
        ("'", [], ["a"]),
        ("[ab]*", ["[ab]x"], ["a", "b", "ab"]),
        ("  t*  ", ["t", "t1"], ["at"]),
        ("**", ["", "a"], []),
        ("T1", ["t1", "T1"], ["t2"]),
        ("a\\.b", ["a.b"], ["axb"]),
        ("test.*", ["test_table", "test1"], ["test"]),
    ],
)
def test_patterns_match_as_hive_does(pattern: str, matching: list[str], others: list[str]) -> None:
    parsed = parse_pattern(pattern)
    assert [name for name in matching + others if parsed.matches(name)] == matching


def test_alternatives_are_tokens() -> None:
    assert parse_pattern("ab*|.").alternatives == (("ab", Wildcard.ANY_RUN), (Wildcard.ANY_ONE,))
    assert parse_pattern("|").alternatives == ()


@pytest.mark.parametrize(("pattern", "is_everything"), [("*", True), ("a|*", True), ("**", True), (".*", False)])
def test_a_pattern_knows_that_it_matches_everything(pattern: str, is_everything: bool) -> None:
    assert parse_pattern(pattern).matches_everything is is_everything


def test_the_alternatives_without_wildcards_are_texts() -> None:
    assert parse_pattern("A|b_c").literals == ("a", "b_c")
    assert parse_pattern("a|b*").literals == ("a",)
    assert parse_pattern("a|b*|c|b*").without_literals == parse_pattern("b*")


@pytest.mark.parametrize(
    ("text", "matching", "others"),
    [
        ("a%_", ["ab", "abc"], ["a", "ba"]),
        ("%%b", ["b", "ab"], ["ba"]),
        ("a.\\.", ["a.\\."], ["ab.", "a."]),
        ("\\%", ["\\x"], ["x"]),
    ],
)
def test_like_as_sql_writes_it(text: str, matching: list[str], others: list[str]) -> None:
    parsed = parse_sql_like(text)
    assert [value for value in matching + others if parsed.matches(value)] == matching


@pytest.mark.parametrize(
    ("text", "like", "glob"),
    [
        ("a*", "a%", "a*"),
        (".*", "_%", "?*"),
        ("a_%", "a\\_\\%", "a_%"),
        ("[x]?", "[x]?", "[[]x][?]"),
        ("\\", "\\\\", "\\"),
    ],
)
def test_alternatives_become_like_and_glob(text: str, like: str, glob: str) -> None:
    assert parse_pattern(text).like_alternatives() == [like]
    assert parse_pattern(text).glob_alternatives() == [glob]


def test_the_escape_character_can_be_chosen() -> None:
    assert parse_pattern("a_!\\*").like_alternatives("!") == ["a!_!!.*"]


@pytest.mark.parametrize(
    ("text", "matching", "others"),
    [
        ("2024.*", ["2024", "2024-01-01"], ["x2024"]),
        (".*a.*", ["a", "xax"], ["xAx", ""]),
        ("d%", ["d%"], ["d1"]),
        ("a.c", ["abc", "a.c", "a\nc"], ["ac"]),
        ("a|b", ["a|b"], ["a", "b"]),
        ("a*", ["a*"], ["aa"]),
        (" a", [" a"], ["a"]),
        ("", [""], ["a"]),
        (".*", ["", "x"], []),
    ],
)
def test_like_of_filters_is_case_sensitive_and_knows_only_dots(
    text: str, matching: list[str], others: list[str]
) -> None:
    parsed = parse_like(text)
    assert [value for value in matching + others if parsed.matches(value)] == matching


@pytest.mark.slow
@given(PATTERN_TEXTS, NAMES)
@example("*a*b", "aab")
@example("a*|*b", "xb")
def test_matching_agrees_with_sqlite(text: str, name: str) -> None:
    for pattern in (parse_pattern(text), parse_like(text)):
        column = name.lower() if pattern.folds_case else name
        assert pattern.matches(name) == _sqlite_like(pattern, column) == _sqlite_glob(pattern, column)


@pytest.mark.slow
@given(st.lists(st.sampled_from(["a", "b", ".", ".*"]), max_size=8).map("".join), st.text("ab", max_size=10))
def test_like_agrees_with_regular_expressions_on_dots_and_stars(text: str, value: str) -> None:
    assert parse_like(text).matches(value) == bool(re.fullmatch(text, value, re.DOTALL))


def test_many_runs_do_not_explode() -> None:
    assert not parse_pattern("*a" * 200 + "*b").matches("a" * 2_000)


DATABASE = sqlite3.connect(":memory:")
DATABASE.execute("PRAGMA case_sensitive_like = ON")


def _sqlite_like(pattern: Pattern, column: str) -> bool:
    likes = pattern.like_alternatives()
    return any(DATABASE.execute("SELECT ? LIKE ? ESCAPE '\\'", (column, like)).fetchone()[0] for like in likes)


def _sqlite_glob(pattern: Pattern, column: str) -> bool:
    globs = pattern.glob_alternatives()
    return any(DATABASE.execute("SELECT ? GLOB ?", (column, glob)).fetchone()[0] for glob in globs)
