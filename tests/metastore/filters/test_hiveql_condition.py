"""Conditions of HiveQL as filters of the metastore: what they say, what they select, and where they are wrong."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_gateway.metastore.filters.binding import bind
from hms_gateway.metastore.filters.grammar import parse_filter
from hms_gateway.metastore.filters.hiveql_condition import divided_condition, metastore_filter, not_of_type
from hms_gateway.metastore.vocabulary.create_text import literal
from hms_gateway.metastore.vocabulary.hiveql_tokens import CommandError
from hms_gateway.metastore.vocabulary.partition_names import DEFAULT_PARTITION_NAME
from hms_gateway.metastore.vocabulary.patterns import parse_like
from tests.support.filter_evaluation import evaluate

KEYS = [
    ("region", "string"), ("hr", "int"), ("d", "date"), ("at", "timestamp"), ("ok", "boolean"),
    ("amount", "decimal(9,2)"), ("in", "varchar(9)"), ("tags", "array<int>"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "filter"),
    [
        ("", ""),
        ("region = 'eu'", "region = 'eu'"),
        ("Region == \"eu\"", "region = 'eu'"),
        ("'eu' = region and 5 < hr", "region = 'eu' and hr > 5"),
        ("region LIKE 'e%'", "region like 'e.*'"),
        (r"region like 'a.b_c\%\_'", r"region like 'a\.b.c%_'"),
        ("region not like 'eu'", "region != 'eu'"),
        ("region not like 'e%'", "region < 'e' or region >= 'f'"),
        ("hr = 1 and region not like 'e%'", "hr = 1 and (region < 'e' or region >= 'f')"),
        ("not region like '\ud7ff%'", "region < '\ud7ff' or region >= '\ue000'"),
        ("region is null", f"region = '{DEFAULT_PARTITION_NAME}'"),
        ("region is not null", f"region != '{DEFAULT_PARTITION_NAME}'"),
        ("hr is not null and d is not null", "(hr = 0 or hr != 0) and (d = 1970-01-01 or d != 1970-01-01)"),
        (
            "at is not null",
            "at = timestamp '1970-01-01 00:00:00' or at != timestamp '1970-01-01 00:00:00'",
        ),
        ("not ok is null", "ok = 'true' or ok != 'true'"),
        ("region in ('eu', 'us')", "(region) in ('eu', 'us')"),
        ("(region) not in ('eu')", "(region) not in ('eu')"),
        ("hr in (1, '02')", "(hr) in (1, 02)"),
        ("hr in (1, 2.5)", "(hr) in ('1', '2.5')"),
        ("hr between -1 and 3", "hr between -1 and 3"),
        ("hr not between 1 and 3", "hr not between 1 and 3"),
        ("hr <> 5", "hr != 5"),
        ("not hr = 5", "hr != 5"),
        ("not not hr = 5", "hr = 5"),
        ("not (hr < 5 or region = 'a' and ok = true)", "hr >= 5 and (region != 'a' or ok != 'true')"),
        ("not (hr in (1) or hr between 2 and 3)", "(hr) not in (1) and hr not between 2 and 3"),
        ("(hr = 1 or hr = 2) and ((region = 'a'))", "(hr = 1 or hr = 2) and region = 'a'"),
        ("hr = 1 or hr = 2 and region = 'a'", "hr = 1 or (hr = 2 and region = 'a')"),
        ("d = '2024-1-2'", "d = 2024-01-02"),
        ("d >= date '2024-01-02'", "d >= 2024-01-02"),
        ("d < 2024-01-02", "d < 2024-01-02"),
        ("region = date '2024-1-2'", "region = '2024-01-02'"),
        ("at > '2024-01-02 03:04'", "at > timestamp '2024-01-02 03:04:00'"),
        ("at > timestamp '2024-01-02'", "at > timestamp '2024-01-02 00:00:00'"),
        ("amount < -1.50", "amount < '-1.50'"),
        ("amount = 1.5e-1", "amount = '1.5e-1'"),
        ("`in` = 'it\\'s'", "`in` = \"it's\""),
        (
            "struct(hr, d) in (struct(1, 2024-01-02), struct(2, '2024-1-2'))",
            "(hr = 1 and d = 2024-01-02) or (hr = 2 and d = 2024-01-02)",
        ),
        ("(struct(region, hr)) not in (struct('a', 1))", "region != 'a' or hr != 1"),
        (f"region != '{DEFAULT_PARTITION_NAME}' -- with a value", f"region != '{DEFAULT_PARTITION_NAME}'"),
    ],
)  # fmt: skip
def test_a_condition_is_a_filter(condition, filter):
    found = metastore_filter(condition, KEYS)
    assert found == filter
    parsed = parse_filter(found)
    assert parsed is None or bind(parsed, KEYS)


@pytest.mark.parametrize(
    ("condition", "text", "place"),
    [
        ("regon = 'eu'", "regon is not a partition key; the table is partitioned by region, hr", "regon"),
        ("hr = 1 and region = 'eu", "found the string that begins here and does not end", "'eu"),
        ("hr = 1 /* end", "found the comment that begins here and does not end", "/*"),
        ("hr = 1 and d = 'banana'", "'banana' is not of type date, the type of d", "'banana'"),
        ("d between '2024-01-01' and '2024-13-01'", "'2024-13-01' is not of type date", "'2024-13"),
        ("hr in (1, 'x')", "'x' is not of type int, the type of hr", "'x'"),
        ("region = date 'x'", "'x' is not of type date", "date"),
        ("ok = 1", "'1' is not of type boolean", "1"),
        ("hr like '1%'", "LIKE is for keys of type string; hr is of type int", "like"),
        ("region lke 'e%'", "found lke; did you mean LIKE?", "lke"),
        ("hr is null", "express this IS NULL; hms-gateway sql evaluates it, but only where AND, not OR", "is"),
        ("tags is not null", "can express this IS NOT NULL", "is"),
        ("region is 'a'", "expected NULL, found 'a'", "'a'"),
        ("region not like '%e'", "joins it to the rest; NOT LIKE 'text%' may be anywhere", "like"),
        ("hr = 1 or region not like '%e'", "can express this NOT LIKE", "like"),
        ("region like '_*'", "cannot say _* of this pattern", "'_*'"),
        ("year(d) = 2024", "a metastore evaluates no functions", "year"),
        ("hr = region", "expected a value, found region", "region"),
        ("hr", "expected a comparison, LIKE, IN or BETWEEN, found the end", ""),
        ("hr = 1 hr = 2", "expected AND, OR or the end of the condition, found hr", "hr = 2"),
        ("(hr = 1", "expected AND, OR or ), found the end", ""),
        ("tags = 1", "tags is of type array<int>, which a metastore does not compare", "tags"),
        ("struct(region, hr) in (struct('a'))", "1 values for 2 keys", "struct('a')"),
        ("region = 'it\\'s \"it\"'", "cannot hold this text", "'it"),
        ("(" * 101 + "hr = 1", "more than 100 brackets are open here", "(hr"),
    ],
)  # fmt: skip
def test_an_error_says_what_and_where(condition, text, place):
    with pytest.raises(CommandError) as refused:
        metastore_filter(condition, KEYS)
    assert text in str(refused.value)
    begin = condition.index(place) if place else len(condition)
    assert refused.value.position == begin


@pytest.mark.parametrize(
    ("condition", "filter", "fitting"),
    [
        ("hr = 1 and region not like '%e'", "hr = 1", ["eu", "a.x"]),
        ("region not like '_._' and region not like '%u%'", "", ["be"]),
        ("not (region like '%e' or hr > 1) and region != 'us'", "hr <= 1 and region != 'us'", ["eu", "a.x"]),
        ("hr = 1 and (ok = true or ok = false) and (region not like '%u')", "hr = 1 and (ok = 'true' or ok = 'false')",
         ["be", "a.x"]),
    ],
)  # fmt: skip
def test_what_no_filter_says_is_left_to_the_caller(condition, filter, fitting):
    found, checks = divided_condition(condition, KEYS)
    assert found == filter
    assert [value for value in ("eu", "be", "a.x") if all(check.fits(value) for check in checks)] == fitting
    assert {check.place for check in checks} == {0}


@pytest.mark.slow
def test_what_does_not_end_is_read_once():
    """A reader that began anew behind each quote or comment would take hours."""
    for text in ("'" + r"\'" * 300_000, "/*" * 300_000):
        with pytest.raises(CommandError):
            metastore_filter(text, KEYS)


# What SQL says of the same condition is what the metastore has to select.
_ROWS = [(region, hr) for region in ("", "a", "ab", "b", "a%", "é", "z") for hr in (0, 1, 2)]
_TEXTS = st.sampled_from(["", "a", "ab", "b", "a%", "é"])
_PATTERNS = st.sampled_from(["a", "a%", "%b", "_", "%", "a_", "é%", "_b"])
_LISTS = st.lists(st.integers(0, 3), min_size=1, max_size=3).map(lambda numbers: ", ".join(map(str, numbers)))
_ATOMS = st.one_of(
    st.tuples(st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="]), _TEXTS).map(
        lambda p: f"region {p[0]} '{p[1]}'"
    ),
    _PATTERNS.map(lambda pattern: f"region like '{pattern}'"),
    st.sampled_from(["a%", "é%", "ab"]).map(lambda pattern: f"region not like '{pattern}'"),
    st.tuples(st.sampled_from(["in", "not in"]), _LISTS).map(lambda p: f"hr {p[0]} ({p[1]})"),
    st.tuples(st.sampled_from(["", "not "]), st.integers(0, 2), st.integers(0, 2)).map(
        lambda p: f"hr {p[0]}between {p[1]} and {p[2]}"
    ),
    st.integers(0, 2).map(lambda number: f"{number} < hr"),
)
_CONDITIONS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda p: f"{p[0]} {p[1]} {p[2]}"),
        inner.map(lambda each: f"({each})"),
        inner.filter(lambda each: " like '%" not in each and "like '_" not in each and "like 'a_" not in each).map(
            lambda each: f"not ({each})"
        ),
    ),
    max_leaves=6,
)


@pytest.mark.slow
@given(_CONDITIONS)
def test_what_is_selected_is_what_sql_selects(condition):
    with sqlite3.connect(":memory:") as database:
        database.execute("pragma case_sensitive_like = 1")
        database.execute("create table t (region, hr)")
        database.executemany("insert into t values (?, ?)", _ROWS)
        wanted = set(database.execute(f"select region, hr from t where {condition}"))
    database.close()
    keys = [("region", "string"), ("hr", "int")]
    bound = bind(parse_filter(metastore_filter(condition, keys)), keys)
    # The empty text is the default partition, which is a text of its own to the metastore.
    assert {row for row in _ROWS if row[0] and evaluate(bound, keys, [row[0], str(row[1])])} == {
        row for row in wanted if row[0]
    }


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=6))
def test_a_text_is_the_same_text_or_refused(text):
    keys = [("region", "string")]
    try:
        found = metastore_filter(f"region = {literal(text)}", keys)
    except CommandError:
        assert ("'" in text and '"' in text) or text.endswith("\\")
        return
    bound = bind(parse_filter(found), keys)
    assert evaluate(bound, keys, [text])
    assert not evaluate(bound, keys, [f"{text}x"])


@given(st.text("a%_\\.*'", max_size=6))
def test_a_pattern_is_the_same_pattern_or_refused(text):
    try:
        found = metastore_filter(f"region like {literal(text)}", [("region", "string")])
    except CommandError:
        return
    parsed = parse_filter(found)
    for value in ("", "a", "%", "_", "a_", "aa", ".", "..", "*", "a*", "\\", "\\a"):
        assert parse_like(parsed.text).matches(value) == _matches(text, value), value


def _matches(pattern, value):
    """LIKE of HiveQL, word for word."""
    if not pattern:
        return not value
    if pattern[0] == "\\" and pattern[1:2] in ("%", "_"):
        return value[:1] == pattern[1] and _matches(pattern[2:], value[1:])
    if pattern[0] == "%":
        return any(_matches(pattern[1:], value[at:]) for at in range(len(value) + 1))
    return bool(value) and pattern[0] in ("_", value[0]) and _matches(pattern[1:], value[1:])


def test_a_value_of_a_partition_is_one_that_filters_find():
    assert not_of_type("d", "date", "banana") == "'banana' is not of type date, the type of d"
    assert not_of_type("d", "date", "2024-13-01")
    assert not_of_type("hr", "int", "1.5")
    for type_name, value in (
        ("date", "2024-1-2"),
        ("int", "01"),
        ("string", ""),
        ("date", DEFAULT_PARTITION_NAME),
        ("binary", "x"),
    ):
        assert not_of_type("k", type_name, value) is None
