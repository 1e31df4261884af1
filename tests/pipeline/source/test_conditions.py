"""Spark's filters as conditions and as the metastore's filter text, without Spark."""

from datetime import date

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from pyspark.sql.datasource import EqualTo, GreaterThan, In, IsNull, Not, StringContains, StringStartsWith

from hms_gateway.pipeline.source.objects import KEY_TYPES, TEXT, key_value
from hms_gateway.pipeline.source.planning import Condition, condition_of, exact_values, filter_text

TYPES = {"ds": "string", "hr": "int", "d": "date", "c": "char(3)", "v": "varchar(9)", "amount": "decimal(9,2)"}


def text(*filters):
    return filter_text([condition_of(one) for one in filters], TYPES)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (EqualTo(("key", "ds"), "x"), "ds = 'x'"),
        (EqualTo(("key", "ds"), "it's"), 'ds = "it\'s"'),
        (EqualTo(("key", "v"), "x"), "v = 'x'"),
        (GreaterThan(("key", "hr"), 5), "hr > 5"),
        (EqualTo(("key", "d"), date(2024, 1, 2)), "d = 2024-01-02"),
        (In(("key", "hr"), (1, None, 2)), "(hr = 1 or hr = 2)"),
        (Not(EqualTo(("key", "ds"), "x")), "ds != 'x'"),
        (StringStartsWith(("key", "ds"), "2024-01"), "ds like '2024-01.*'"),
    ],
)
def test_what_a_filter_can_say(given, expected):
    assert text(given) == expected


@pytest.mark.parametrize(
    "given",
    [
        EqualTo(("key", "ds"), "both ' and \""),
        EqualTo(("key", "ds"), "back\\slash"),
        EqualTo(("key", "ds"), ""),
        EqualTo(("key", "c"), "x"),
        EqualTo(("key", "amount"), "1.50"),
        EqualTo(("key", "hr"), None),
        In(("key", "hr"), tuple(range(501))),
        IsNull(("key", "ds")),
        StringStartsWith(("key", "ds"), "a.b"),
    ],
)
def test_what_it_cannot_say_is_left_out(given):
    assert text(given) == ""
    assert text(given, GreaterThan(("key", "hr"), 5)) == "hr > 5"


def test_other_filters_are_left_to_spark():
    assert condition_of(StringContains(("key", "ds"), "x")) is None
    assert condition_of(Not(StringStartsWith(("key", "ds"), "x"))) is None


def test_null_satisfies_only_is_null():
    for one in (EqualTo(("a",), "x"), Not(EqualTo(("a",), "x")), In(("a",), ("x",)), Not(In(("a",), ("x", None)))):
        assert not condition_of(one).holds(None)
    assert condition_of(IsNull(("a",))).holds(None)
    assert not condition_of(Not(In(("a",), ("x", None)))).holds("y")
    assert not condition_of(EqualTo(("a",), None)).holds("y")


def test_texts_that_alone_can_satisfy():
    database = ("database",)
    assert exact_values([Condition(database, "in", ("b", "a", None)), Condition(database, "!=", "b")], database) == [
        "a"
    ]
    assert exact_values([Condition(database, ">", "a")], database) is None


@pytest.mark.parametrize(
    ("hive_type", "value", "expected"),
    [
        ("int", "007", 7),
        ("int", "2147483648", None),
        ("tinyint", "-128", -128),
        ("bigint", "x", None),
        ("date", "2024-01-02", date(2024, 1, 2)),
        ("date", "2024-02-30", None),
        ("date", "20240102", None),
        ("int", "__HIVE_DEFAULT_PARTITION__", None),
        ("string", "", None),
        ("string", "x", "x"),
    ],
)
def test_values_of_keys(hive_type, value, expected):
    assert key_value(KEY_TYPES.get(hive_type, TEXT), value) == expected
