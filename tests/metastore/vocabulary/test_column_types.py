import itertools

import pytest

from hms_gateway.metastore.vocabulary.column_types import (
    InvalidColumnType,
    MissingColumnType,
    check_type_changes,
    check_types,
    is_compatible_change,
    is_valid_type,
)

KNOWN = [
    *("void", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "varchar", "char"),
    *("date", "datetime", "timestamp", "interval_year_month", "interval_day_time", "decimal", "binary"),
    *("array", "map", "struct", "uniontype"),
]


@pytest.mark.parametrize(
    "text",
    [
        *KNOWN,
        "array<foo>",
        "decimal(10,2)",
        "varchar(",
        "timestamp with local time zone",
        "<derived from deserializer>",
    ],
)
def test_a_type_is_known_by_its_first_word(text: str) -> None:
    assert is_valid_type(text)
    check_types([text])


@pytest.mark.parametrize("text", ["xyz", "INT", "integer", "int2", " int", "<int>", "(int)", "é"])
def test_other_types_are_refused(text: str) -> None:
    with pytest.raises(InvalidColumnType) as refused:
        check_types(["int", text])
    assert str(refused.value) == f"Invalid column type: {text}"
    with pytest.raises(InvalidColumnType) as refused:
        check_types([text], of_partition_keys=True)
    assert str(refused.value) == f"Invalid partition column type: {text}"


@pytest.mark.parametrize("text", [None, ""])
def test_no_type_is_an_error_of_its_own(text: str | None) -> None:
    with pytest.raises(MissingColumnType):
        check_types([text])


STRINGS = ("string", "varchar(5)", "char(5)")
NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal(10,2)", "float", "double")

ALLOWED = [
    ("int", "int"),
    ("varchar(10)", "varchar(5)"),
    ("decimal(10,2)", "decimal(4,1)"),
    ("void", "date"),
    *itertools.product(STRINGS, STRINGS),
    *((text, "double") for text in STRINGS),
    *itertools.product(("date", "timestamp"), STRINGS),
    *itertools.product(NUMBERS, STRINGS),
    *itertools.combinations_with_replacement(NUMBERS, 2),
    ("struct<a:int,b:map<string,array<int>>>", "struct< a : int , B:map<string,array<int>> >"),
    ("array<decimal>", "array<decimal(10,0)>"),
    ("array<decimal(12)>", "array<decimal(12,0)>"),
    ("uniontype<int,string>", "uniontype<int, string>"),
    ("timestamp with local time zone", "timestamp with local time zone"),
    ("array<nonsense>", "array<nonsense>"),
]

REFUSED = [
    ("boolean", "string"),
    ("binary", "string"),
    ("interval_year_month", "string"),
    ("string", "int"),
    ("string", "float"),
    ("string", "date"),
    ("string", "decimal(10,2)"),
    ("timestamp", "date"),
    ("date", "timestamp"),
    ("int", "date"),
    ("int", "boolean"),
    ("int", "array<int>"),
    ("array<int>", "string"),
    ("array<int>", "array<bigint>"),
    ("struct<a:int>", "struct<b:int>"),
    ("struct<a:int>", "struct<a:int,b:int>"),
    ("map<string,int>", "map<string,string>"),
    ("array<int>", "array<nonsense>"),
    ("array<" * 1_000 + "int" + ">" * 1_000, "int"),
    *((wide, narrow) for narrow, wide in itertools.combinations(NUMBERS, 2)),
]


@pytest.mark.parametrize(("old", "new"), ALLOWED)
def test_changes_that_keep_old_data_readable_are_allowed(old: str, new: str) -> None:
    assert is_compatible_change(old, new)


@pytest.mark.parametrize(("old", "new"), REFUSED)
def test_other_changes_are_refused(old: str, new: str) -> None:
    assert not is_compatible_change(old, new)


def test_columns_are_compared_by_position_and_refused_together() -> None:
    old = ["int", "string", "int"]
    check_type_changes(old, [("renamed", "bigint"), ("b", "string")])
    check_type_changes(old, [("a", "int"), ("b", "string"), ("c", "int"), ("added", "date")])
    with pytest.raises(InvalidColumnType) as refused:
        check_type_changes(old, [("a", "date"), ("b", "string"), ("c", "boolean")])
    assert str(refused.value) == (
        "The following columns have types incompatible with the existing columns in their respective positions :\na,c"
    )
