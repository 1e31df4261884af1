import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_gateway.metastore.filters.grammar import (
    And,
    Between,
    Comparison,
    Filter,
    FilterError,
    In,
    Like,
    Literal,
    LiteralKind,
    MultiIn,
    Operator,
    Or,
    parse_filter,
)
from hms_gateway.runtime.limits import DEFAULT_LIMITS, Limits


def text(value: str) -> Literal:
    return Literal(LiteralKind.STRING, value)


def integer(value: int) -> Literal:
    return Literal(LiteralKind.INTEGER, str(value))


def equals(key: str, literal: Literal) -> Comparison:
    return Comparison(key, Operator.EQUAL, literal)


A1, B1, C1 = (equals(key, integer(1)) for key in "abc")


@pytest.mark.parametrize("empty", [None, ""])
def test_no_filter_is_every_partition(empty: str | None) -> None:
    assert parse_filter(empty) is None


@pytest.mark.parametrize(
    ("written", "parsed"),
    [
        ('ds = "d1"', equals("ds", text("d1"))),
        ("ds='d1'", equals("ds", text("d1"))),
        ("DS = 'd1'", equals("DS", text("d1"))),
        ("hr = 2", equals("hr", integer(2))),
        ("hr = -2", equals("hr", integer(-2))),
        ("hr = 01", equals("hr", Literal(LiteralKind.INTEGER, "01"))),
        ("hr = 9223372036854775807", equals("hr", integer(2**63 - 1))),
        ("hr = -9223372036854775808", equals("hr", integer(-(2**63)))),
        ("p = 1.50", equals("p", Literal(LiteralKind.DECIMAL, "1.50"))),
        ("p = -.5", equals("p", Literal(LiteralKind.DECIMAL, "-.5"))),
        ("p = 1.0E10", equals("p", Literal(LiteralKind.DECIMAL, "1.0E10"))),
        ("d = 2024-01-02", equals("d", Literal(LiteralKind.DATE, "2024-01-02"))),
        ("d = date '2024-1-2'", equals("d", Literal(LiteralKind.DATE, "2024-01-02"))),
        ('d = DATE "2024-01-02"', equals("d", Literal(LiteralKind.DATE, "2024-01-02"))),
        ("t = TIMESTAMP '2024-01-02 3:04'", equals("t", Literal(LiteralKind.TIMESTAMP, "2024-01-02 03:04:00"))),
        ("date = 'x'", equals("date", text("x"))),
        ("`a key.` = 1", equals("a key.", integer(1))),
        ("`in` = 1", equals("in", integer(1))),
        ("_a = 1", equals("_a", integer(1))),
        ("2nd = 1", equals("2nd", integer(1))),
        ("a != 1", Comparison("a", Operator.NOT_EQUAL, integer(1))),
        ("a <> 1", Comparison("a", Operator.NOT_EQUAL, integer(1))),
        ("a<1", Comparison("a", Operator.LESS, integer(1))),
        ("a<=1", Comparison("a", Operator.LESS_OR_EQUAL, integer(1))),
        ("a>1", Comparison("a", Operator.GREATER, integer(1))),
        ("a>=1", Comparison("a", Operator.GREATER_OR_EQUAL, integer(1))),
        ('"a" = ds', equals("ds", text("a"))),
        ("5 < hr", Comparison("hr", Operator.GREATER, integer(5))),
        ("5 >= hr", Comparison("hr", Operator.LESS_OR_EQUAL, integer(5))),
        ("5 != hr", Comparison("hr", Operator.NOT_EQUAL, integer(5))),
        ("date '2024-01-02' = d", equals("d", Literal(LiteralKind.DATE, "2024-01-02"))),
        ('ds like "2024.*"', Like("ds", "2024.*")),
        ("ds LIKE 'a'", Like("ds", "a")),
        ("hr between 1 and 3", Between("hr", integer(1), integer(3), negated=False)),
        ("hr NOT BETWEEN 1 AND 3", Between("hr", integer(1), integer(3), negated=True)),
        ("(hr) in (1, 2)", In("hr", (integer(1), integer(2)), negated=False)),
        ('(ds) not in ("a")', In("ds", (text("a"),), negated=True)),
        (
            "(STRUCT(ds, hr)) IN (CONST STRUCT('a', 1), const struct('b', 2))",
            MultiIn(("ds", "hr"), ((text("a"), integer(1)), (text("b"), integer(2))), negated=False),
        ),
        (
            "(struct(a,b)) IN (struct('a', 1), const struct('b', 2), STRUCT('c', 3))",
            MultiIn(
                ("a", "b"), tuple((text(one), integer(place)) for place, one in enumerate("abc", 1)), negated=False
            ),
        ),
        ("(struct(a)) not in (const struct(1))", MultiIn(("a",), ((integer(1),),), negated=True)),
        ("a=1 and b=1 or c=1", Or((And((A1, B1)), C1))),
        ("a=1 or b=1 and c=1", Or((A1, And((B1, C1))))),
        ("(a=1 or b=1) and c=1", And((Or((A1, B1)), C1))),
        ("a=1 AND (b=1 And c=1)", And((A1, B1, C1))),
        ("((a=1) or ((b=1 or c=1)))", Or((A1, B1, C1))),
        ("((a) in (1))", In("a", (integer(1),), negated=False)),
        ("a\t=\r\n1", A1),
        (r'ds = "a\"b"', equals("ds", text(r"a\"b"))),
        (r'ds = "a\\"', equals("ds", text(r"a\\"))),
        ("ds = '\"quoted\"'", equals("ds", text('"quoted"'))),
        ('ds = "o\'q"', equals("ds", text("o'q"))),
        ("ds = 'é😀;\n'", equals("ds", text("é😀;\n"))),
    ],
)
def test_filters_become_trees(written: str, parsed: Filter) -> None:
    assert parse_filter(written) == parsed


@pytest.mark.parametrize(
    "written",
    [
        " ",
        "ds",
        "ds =",
        "= 1",
        "ds == 'a'",
        "hr <=> 1",
        "ds = a",
        "ds = 'o''brien'",
        'ds = "d1" hr = 2',
        'ds = "d1";',
        'ds = "d1',
        "ds = 'a\\'",
        "ds = `a`",
        "`` = 1",
        "hr = 1.5.6",
        "hr = 1e5",
        "hr = - 1",
        "d = 2024-13-01",
        "d = 2024-02-30",
        "d = date 'tomorrow'",
        "t = timestamp 'now'",
        "hr = 9223372036854775808",
        "hr = -9223372036854775809",
        "hr = " + "9" * 5_000,
        "not ds = 'a'",
        "ds is null",
        "ds not like 'a'",
        "ds like 1",
        "ds in ('a')",
        "ds not in ('a')",
        "(ds) in ()",
        "(ds) in ('a',)",
        "(ds) in ('a', 1)",
        "(ds)",
        "(ds) = 'a'",
        "hr between 1",
        "hr between 1 and 'a'",
        "hr between 1 or 2",
        "(struct(a, b)) in (const struct(1))",
        "(struct(a)) in (const (1))",
        "(struct(a)) in (const struct(1), const struct('x'))",
        "(a = 1",
        "a = 1)",
        "()",
        "a = 1 and",
        "or a = 1",
        "1 = 1",
        "a = b",
        "ds = 'a' # b",
        "é = 1",
        "\0",
    ],
)
def test_anything_else_is_an_error_with_the_known_beginning(written: str) -> None:
    with pytest.raises(FilterError) as refused:
        parse_filter(written)
    assert str(refused.value).startswith("Error parsing partition filter")
    assert len(str(refused.value)) < 200


def test_like_with_its_sides_exchanged_has_a_text_of_its_own() -> None:
    with pytest.raises(FilterError) as refused:
        parse_filter("'a.*' like ds")
    assert str(refused.value) == "Value should be on the RHS for LIKE operator : Key <ds>"


def test_an_error_says_where() -> None:
    with pytest.raises(FilterError, match=r"expected AND, OR or the end, found 'hr' at character 10"):
        parse_filter('ds = "d1" hr = 2')


def nested(depth: int) -> str:
    written = "a = 1"
    for level in range(depth):
        written = f"({written}) {'or' if level % 2 else 'and'} b = {level}"
    return written


def test_nesting_is_limited_and_the_error_names_the_limit() -> None:
    assert parse_filter(nested(DEFAULT_LIMITS.filter_depth_max)) is not None
    with pytest.raises(FilterError, match=f"filter_depth_max = {DEFAULT_LIMITS.filter_depth_max}"):
        parse_filter(nested(DEFAULT_LIMITS.filter_depth_max + 1))
    with pytest.raises(FilterError, match="filter_depth_max = 2"):
        parse_filter(nested(3), Limits(filter_depth_max=2))


def test_brackets_that_change_nothing_do_not_count_as_nesting() -> None:
    assert parse_filter("(" * 5_000 + "a = 1" + ")" * 5_000) == A1
    chain = "a = 0"
    for number in range(1, 300):
        chain = f"({chain} or a = {number})"
    assert parse_filter(chain) == Or(tuple(equals("a", integer(number)) for number in range(300)))


def test_open_brackets_without_end_are_an_error() -> None:
    with pytest.raises(FilterError, match="expected a key, found the end"):
        parse_filter("(" * 1_000)
    with pytest.raises(FilterError, match=f"filter_brackets_max = {DEFAULT_LIMITS.filter_brackets_max}"):
        parse_filter("(" * 100_000)


def test_children_of_brackets_keep_their_order() -> None:
    expected = Or(tuple(equals("a", integer(number)) for number in range(6)))
    assert parse_filter("a = 0 or ((a = 1 or a = 2 or a = 3) or a = 4) or a = 5") == expected
    assert parse_filter("(a = 0 or (a = 1 or (a = 2 or (a = 3 or (a = 4 or a = 5)))))") == expected


@pytest.mark.slow
def test_the_number_of_values_is_limited_and_the_error_names_the_limit() -> None:
    values = ",".join(["1"] * DEFAULT_LIMITS.filter_literals_max)
    assert parse_filter(f"(a) in ({values})") is not None
    with pytest.raises(FilterError, match="filter_literals_max"):
        parse_filter(f"(a) in ({values},1)")


@given(st.text(alphabet="ab1 ()=<>!,'\"`-.anotrliketwsucINdb;\\é", max_size=40))
def test_no_text_raises_anything_but_a_filter_error(written: str) -> None:
    with contextlib.suppress(FilterError):
        parse_filter(written)
