"""Statements in texts: where one ends, where a place is, what a string means."""

import pytest

from hms_gateway.metastore.vocabulary.hiveql_tokens import (
    is_complete,
    line_and_column,
    pointed_at,
    split_statements,
    unescaped,
)

TEXTS = {
    "": [],
    " ; ;; -- nothing": [],
    "show tables": ["show tables"],
    "a; b;": ["a", "b"],
    "select ';', \"a;b\", `c;d` -- ; comment\n; b": ["select ';', \"a;b\", `c;d` -- ; comment", "b"],
    "a /* ; */ b; c": ["a /* ; */ b", "c"],
    "a 'not closed; b": ["a 'not closed; b"],
    "a /* not closed; b": ["a /* not closed; b"],
}


@pytest.mark.parametrize(("text", "expected"), TEXTS.items())
def test_statements_end_at_semicolons_outside_of_quotes(text, expected):
    found = list(split_statements(text))
    assert [statement.strip() for statement, _ in found] == expected
    assert all(text[begin:].startswith(statement) for statement, begin in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("show tables;", True),
        ("show tables", False),
        ("show 'a;", False),
        ("", True),
        ("-- ;", True),
        ("a; b", False),
        ("a; -- end", True),
        ("a /* ;", False),
    ],
)
def test_a_text_is_complete_with_the_semicolon_of_its_last_statement(text, expected):
    assert is_complete(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"it\'s", "it's"),
        (r"a\tb\nc\\d", "a\tb\nc\\d"),
        (r"\u00fc\001", "ü\x01"),
        (r"50\%", r"50\%"),
        (r"\q", "q"),
    ],
)
def test_escapes_mean_what_they_mean_in_hive(text, expected):
    assert unescaped(text) == expected


def test_a_place_is_a_line_and_a_column():
    assert line_and_column("ab\ncd", 4) == (2, 2)
    assert pointed_at("show foo", 5) == "show foo\n     ^"
    assert pointed_at("show\n  foo", 7) == "line 2:   foo\n          ^"


def test_of_a_long_line_the_part_around_the_place_is_shown():
    line, mark = pointed_at("x" * 500 + "!" + "x" * 500, 500).split("\n")
    assert line[mark.index("^")] == "!"
    assert len(line) <= 80
