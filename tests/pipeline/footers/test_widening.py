"""Types as which Spark reads two."""

import contextlib
import itertools

import pytest

from hms_gateway.metastore.vocabulary.column_types import is_compatible_change
from hms_gateway.pipeline.footers.footer import Column, TypesConflict, fits, united, widened

SIMPLE = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(9,2)", "decimal(38,10)",
    "string", "varchar(5)", "char(3)", "binary", "date", "timestamp",
)  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("int", "bigint", "bigint"),
        ("tinyint", "decimal(12,2)", "decimal(12,2)"),
        ("int", "decimal(9,2)", "decimal(12,2)"),
        ("bigint", "decimal(9,2)", "decimal(22,2)"),
        ("bigint", "decimal(38,10)", "decimal(38,10)"),
        ("decimal(5,0)", "decimal(3,3)", "decimal(8,3)"),
        ("int", "float", "double"),
        ("float", "double", "double"),
        ("varchar(5)", "varchar(9)", "varchar(9)"),
        ("char(5)", "varchar(3)", "varchar(5)"),
        ("varchar(5)", "string", "string"),
        ("array<int>", "array<bigint>", "array<bigint>"),
        ("map<string,int>", "map<string,double>", "map<string,double>"),
        ("struct<a:int>", "struct<b:string,a:bigint>", "struct<a:bigint,b:string>"),
        ("uniontype<int,string>", "uniontype<bigint,string>", "uniontype<bigint,string>"),
    ],
)
def test_the_narrowest_type_that_holds_both(one, other, both):
    assert widened(one, other) == both


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("boolean", "int"),
        ("binary", "string"),
        ("int", "string"),
        ("date", "string"),
        ("date", "timestamp"),
        ("bigint", "double"),
        ("bigint", "float"),
        ("decimal(9,2)", "double"),
        ("bigint", "decimal(38,30)"),
        ("array<int>", "int"),
        ("array<int>", "map<int,int>"),
        ("struct<a:int>", "struct<a:boolean>"),
        ("date", "int"),
        ("nonsense", "int"),
        ("decimal(x)", "int"),
    ],
)
def test_types_without_a_common_one_are_a_conflict(one, other):
    with pytest.raises(TypesConflict):
        widened(one, other)


def test_the_order_of_two_types_does_not_matter_and_a_table_may_be_altered_to_the_result():
    """What the metastore allows as a change of a column's type; it reads `decimal` without looking at its digits."""
    for one, other in itertools.product(SIMPLE, repeat=2):
        try:
            both = widened(one, other)
        except TypesConflict:
            with pytest.raises(TypesConflict):
                widened(other, one)
            continue
        assert widened(other, one) == both
        assert widened(both, one) == both
        assert is_compatible_change(one, both), (one, other, both)
        for third in SIMPLE:
            with contextlib.suppress(TypesConflict):
                assert all(fits(widened(both, third), each) for each in (one, other, third)), (one, other, third)


def test_columns_of_several_files_are_one_list():
    files = [
        ("a", [Column("id", "int"), Column("n", "string")]),
        ("b", [Column("n", "string"), Column("id", "bigint"), Column("x", "date")]),
    ]
    assert united(files) == (Column("id", "bigint"), Column("n", "string"), Column("x", "date"))


def test_a_conflict_names_the_column_and_both_files():
    with pytest.raises(TypesConflict, match="column id is int in /t/a and boolean in /t/b"):
        united([("/t/a", [Column("id", "int")]), ("/t/b", [Column("id", "boolean")])])
    files = [
        (name, [Column("n", type)]) for name, type in (("a", "int"), ("b", "double"), ("c", "int"), ("d", "bigint"))
    ]
    with pytest.raises(TypesConflict, match="column n is double in b and bigint in d; Spark reads no type from both"):
        united(files)
