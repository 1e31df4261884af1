import operator
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_gateway.metastore.filters.binding import (
    BoundAnd,
    BoundBetween,
    BoundComparison,
    BoundIn,
    BoundMultiIn,
    bind,
)
from hms_gateway.metastore.filters.grammar import FilterError, Operator, parse_filter
from hms_gateway.metastore.vocabulary.partition_names import DEFAULT_PARTITION_NAME
from tests.support.filter_evaluation import evaluate

KEYS = [("ds", "string"), ("hr", "int"), ("d", "date")]
ROWS = [
    ["2024-01-01", "1", "2024-01-01"],
    ["2024-01-02", "01", "2024-1-2"],
    ["a/b=c %:é", "2", "2024-02-01"],
    ["", "10", "tomorrow"],
    ["o'q", "notint", DEFAULT_PARTITION_NAME],
    ['"quoted"', DEFAULT_PARTITION_NAME, "2024-02-02 00:00:00"],
]


def selected(text: str, keys: Sequence[tuple[str, str]] = KEYS, rows: Sequence[list[str]] = ROWS) -> list[int]:
    tree = parse_filter(text)
    assert tree is not None
    bound = bind(tree, keys)
    return [number for number, row in enumerate(rows) if evaluate(bound, keys, row)]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('ds = "2024-01-01" and hr = 1', [0]),
        ('(hr > 1 or ds >= "2024-01-02")', [1, 2, 3, 4]),
        ('ds like "2024.*" and (hr) in (1, 2)', [0, 1]),
        ('(ds) not in ("2024-01-01", "2024-01-02")', [2, 3, 4, 5]),
        ("(hr) in (1, 2, 3) and hr != 2 and (hr < 100 or hr > 200)", [0, 1]),
        ('d > "2024-01-15"', [2, 5]),
        ("ds = '\"quoted\"'", [5]),
        ('ds = "o\'q"', [4]),
        ('ds like ".*a.*"', [2]),
        ('(ds like ".*d" or ds like "a.*")', [2]),
        ('"o\'q" = ds', [4]),
        ('ds = "a/b=c %:é"', [2]),
        ("hr = 01", [0, 1]),
        ('hr = "1"', [0, 1]),
        ("hr = 1.0", [0, 1]),
        ("hr > 1.5 and hr < 9.99", [2]),
        ("hr != 1", [2, 3]),
        ("(hr) not in (1)", [2, 3]),
        ("hr between 1 and 2", [0, 1, 2]),
        ("hr not between 1 and 2", [3]),
        ("hr >= -5", [0, 1, 2, 3]),
        ("d = 2024-01-02", [1]),
        ("d = '2024-1-2'", [1]),
        ("d = date '2024-01-02'", [1]),
        ("d != 2024-01-02", [0, 2, 5]),
        ("ds = 2024-01-02", [1]),
        ("ds = date '2024-1-2'", [1]),
        ('DS = "o\'q" and HR = 1', []),
        ("ds = ''", [3]),
        (f"ds = '{DEFAULT_PARTITION_NAME}'", [3]),
        ("ds != ''", [0, 1, 2, 4, 5]),
        ("ds > ''", [0, 1, 2, 3, 4, 5]),
        ("(struct(ds, hr)) in (const struct('2024-01-01', 1), const struct('a', 2))", [0]),
        ("(struct(ds, hr)) not in (const struct('2024-01-01', 1), const struct('o\\'q', 2))", [1, 2, 3, 4, 5]),
        ("(struct(hr, d)) not in (const struct(1, '2024-01-01'))", [1, 2, 3, 5]),
    ],
)
def test_filters_select_rows(text: str, rows: list[int]) -> None:
    assert selected(text) == rows


@pytest.mark.parametrize("literal", ["20230505", "'20230505'"])
def test_a_text_key_compares_with_an_unquoted_number_by_its_text(literal: str) -> None:
    assert selected(f"dt = {literal}", [("dt", "string")], [["20230505"], ["020230505"]]) == [0]


@pytest.mark.parametrize(
    ("type_name", "text", "rows", "expected"),
    [
        ("varchar(10)", "k = 'a'", ["a", "A"], [0]),
        ("char(1)", "k > 'a'", ["a", "b"], [1]),
        ("tinyint", "k < 2", ["1", "10"], [0]),
        ("bigint", "k = 9223372036854775807", ["9223372036854775807", "9223372036854775806"], [0]),
        ("decimal(10,2)", "k = 1.5", ["1.50", "1.5", "1.51"], [0, 1]),
        ("decimal(10,2)", "k > -0.12", ["-0.123", "-0.12", "-0.1", "0", DEFAULT_PARTITION_NAME], [2, 3]),
        ("double", "k = 1", ["1.0", "1", "1E0", "1.5"], [0, 1, 2]),
        ("float", "k < '-1'", ["-1.5", "-1", "NaN", "-Infinity"], [0, 3]),
        ("boolean", "k = 'true'", ["true", "TRUE", "false", "x"], [0, 1]),
        ("boolean", "k != 'true'", ["true", "false", "x"], [1]),
        ("timestamp", "k = '2024-01-02 00:00:00'", ["2024-01-02", "2024-01-02 00:00:00.0", "2024-01-03"], [0, 1]),
        ("timestamp", "k > timestamp '2024-01-02 00:00:00'", ["2024-01-02 00:00:00.1", "2024-01-02"], [0]),
        ("timestamp", "k >= 2024-01-02", ["2024-01-02", "2024-01-01 23:59:59.9"], [0]),
    ],
)
def test_every_primitive_type_compares_as_its_values_do(
    type_name: str, text: str, rows: list[str], expected: list[int]
) -> None:
    assert selected(text, [("k", type_name)], [[row] for row in rows]) == expected


@pytest.mark.parametrize("text", ["nokey = 1", "ds = 'a' and nokey = 1", "(nokey) in (1)", "nokey like 'a'"])
def test_an_unknown_key_is_an_error(text: str) -> None:
    with pytest.raises(FilterError) as refused:
        selected(text)
    assert str(refused.value) == "Specified key <nokey> is not a partitioning key for the table"


@pytest.mark.parametrize(
    ("type_name", "text"),
    [
        ("int", "k = 'one'"),
        ("int", "k = 2024-01-01"),
        ("int", "k like '1.*'"),
        ("date", "k = 20240101"),
        ("date", "k = 'tomorrow'"),
        ("date", "k like '2024.*'"),
        ("double", "k = 2024-01-01"),
        ("boolean", "k = 1"),
        ("boolean", "k = 'yes'"),
        ("timestamp", "k = 1"),
        ("binary", "k = 'a'"),
        ("array<int>", "k = 'a'"),
    ],
)
def test_a_literal_that_does_not_fit_the_type_is_an_error(type_name: str, text: str) -> None:
    with pytest.raises(FilterError) as refused:
        selected(text, [("k", type_name)], [])
    assert str(refused.value) == "Filtering is supported only on partition keys of type string"


def test_bound_filters_hold_positions_and_sort_keys() -> None:
    tree = parse_filter(
        "hr = 01 and (ds) in ('b', 'a', 'b', '') and d between '2024-1-1' and '2024-02-01'"
        " and (struct(d, ds)) in (const struct('2024-1-1', 'a'), const struct('2024-01-01', 'a'))"
    )
    assert tree is not None
    assert bind(tree, KEYS) == BoundAnd(
        (
            BoundComparison(1, Operator.EQUAL, "350011"),
            BoundIn(0, ("b", "a", DEFAULT_PARTITION_NAME), negated=False),
            BoundBetween(2, "2024-01-01", "2024-02-01", negated=False),
            BoundMultiIn((2, 0), (("2024-01-01", "a"),), negated=False),
        )
    )


@pytest.mark.parametrize("text", ["hr != 1", "(hr) not in (1)", "hr not between 1 and 1", "hr = 1"])
def test_what_is_no_number_satisfies_no_condition_on_a_number(text: str) -> None:
    for value in ("notint", "", DEFAULT_PARTITION_NAME):
        assert selected(text, [("hr", "int")], [[value]]) == []


# Random filters beside the plain Python they mean. A condition is (text, predicate over text key, integer key).
Predicate = Callable[[str, int], bool]
COMPARED = {
    "=": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
OPERATORS = st.sampled_from(sorted(COMPARED))
INTEGERS = st.integers(-3, 12)
WORDS = st.text("ab", min_size=1, max_size=2)


def text_comparison(sign: str, word: str) -> tuple[str, Predicate]:
    return f"s {sign} '{word}'", lambda s, n: COMPARED[sign](s, word)


def number_comparison(sign: str, number: int) -> tuple[str, Predicate]:
    return f"n {sign} {number}", lambda s, n: COMPARED[sign](n, number)


def mirrored_comparison(sign: str, number: int) -> tuple[str, Predicate]:
    return f"{number} {sign} n", lambda s, n: COMPARED[sign](number, n)


def membership(numbers: list[int], negated: bool) -> tuple[str, Predicate]:
    text = f"(n) {'not ' if negated else ''}in ({', '.join(map(str, numbers))})"
    return text, lambda s, n: (n in numbers) is not negated


def row_membership(rows: list[tuple[str, int]], negated: bool) -> tuple[str, Predicate]:
    constants = ", ".join(f"const struct('{word}', {number})" for word, number in rows)
    text = f"(struct(s, n)) {'not ' if negated else ''}in ({constants})"
    return text, lambda s, n: ((s, n) in rows) is not negated


def span(low: int, high: int, negated: bool) -> tuple[str, Predicate]:
    text = f"n {'not ' if negated else ''}between {low} and {high}"
    return text, lambda s, n: (low <= n <= high) is not negated


def both(one: tuple[str, Predicate], other: tuple[str, Predicate]) -> tuple[str, Predicate]:
    return f"({one[0]}) and ({other[0]})", lambda s, n: one[1](s, n) and other[1](s, n)


def either(one: tuple[str, Predicate], other: tuple[str, Predicate]) -> tuple[str, Predicate]:
    return f"({one[0]}) or ({other[0]})", lambda s, n: one[1](s, n) or other[1](s, n)


CONDITIONS = st.recursive(
    st.one_of(
        st.builds(text_comparison, OPERATORS, WORDS),
        st.builds(number_comparison, OPERATORS, INTEGERS),
        st.builds(mirrored_comparison, OPERATORS, INTEGERS),
        st.builds(membership, st.lists(INTEGERS, min_size=1, max_size=3), st.booleans()),
        st.builds(row_membership, st.lists(st.tuples(WORDS, INTEGERS), min_size=1, max_size=3), st.booleans()),
        st.builds(span, INTEGERS, INTEGERS, st.booleans()),
    ),
    lambda inner: st.one_of(st.builds(both, inner, inner), st.builds(either, inner, inner)),
    max_leaves=8,
)


@pytest.mark.slow
@given(CONDITIONS, st.lists(st.tuples(WORDS, INTEGERS, st.integers(0, 2)), min_size=1, max_size=8))
def test_filters_mean_what_they_say(condition: tuple[str, Predicate], rows: list[tuple[str, int, int]]) -> None:
    text, predicate = condition
    tree = parse_filter(text)
    assert tree is not None
    keys = [("s", "string"), ("n", "int")]
    bound = bind(tree, keys)
    for word, number, zeros in rows:
        spelled = f"{'-' if number < 0 else ''}{'0' * zeros}{abs(number)}"
        assert evaluate(bound, keys, [word, spelled]) is predicate(word, number)
