"""Columns of files against those of their table."""

import pytest

from hms_gateway.pipeline.audit.footer_checks import drift
from hms_gateway.pipeline.footers.footer import Column, Footer, fits


@pytest.mark.parametrize(
    ("table", "file"),
    [
        ("bigint", "bigint"),
        ("bigint", "int"),
        ("double", "float"),
        ("tinyint", "int"),
        ("decimal(20,2)", "decimal(10,2)"),
        ("decimal(20,0)", "int"),
        ("string", "binary"),
        ("varchar(10)", "string"),
        ("timestamp", "timestamp with local time zone"),
        ("array<bigint>", "array<int>"),
        ("map<string,double>", "map<string,float>"),
        ("struct<a:bigint,b:string>", "struct<a:int>"),
        ("struct<a:bigint>", "struct<a:bigint,b:string>"),
        ("STRING", "string"),
        ("interval_year_month", "void"),
        ("a type of another engine", "int"),
    ],
)
def test_types_that_are_read(table, file):
    assert fits(table, file)


@pytest.mark.parametrize(
    ("table", "file"),
    [
        ("int", "bigint"),
        ("float", "double"),
        ("string", "int"),
        ("int", "string"),
        ("date", "timestamp"),
        ("boolean", "int"),
        ("decimal(10,2)", "decimal(20,2)"),
        ("decimal(10,4)", "decimal(10,2)"),
        ("double", "bigint"),
        ("decimal(19,0)", "bigint"),
        ("array<int>", "array<bigint>"),
        ("array<int>", "int"),
        ("map<string,int>", "map<int,int>"),
        ("struct<a:int>", "struct<a:string>"),
    ],
)
def test_types_that_are_not_read(table, file):
    assert not fits(table, file)


COLUMNS = (Column("id", "bigint"), Column("note", "string"))


def problems(*columns, keys=()):
    footer = Footer("orc", 1, tuple(Column(name, type) for name, type in columns), {})
    return [(severity.value, text) for _, severity, text in drift(footer, COLUMNS, keys)]


def test_a_file_with_fewer_columns_or_with_keys_is_as_it_should_be():
    assert problems(("id", "bigint")) == []
    assert problems(("id", "int"), ("ds", "string"), keys=("ds",)) == []
    assert problems() == []


def test_a_file_with_more_columns_is_a_warning():
    assert problems(("id", "bigint"), ("more", "int")) == [
        ("warning", "the table does not have the file's columns more")
    ]


def test_a_file_with_other_types_is_an_error():
    assert problems(("id", "string"), ("note", "string")) == [
        ("error", "column id is string in the file and bigint in the table")
    ]


@pytest.mark.parametrize(("format", "severities"), [("orc", []), ("parquet", ["error"])])
def test_readers_of_orc_make_a_double_of_a_number(format, severities):
    footer = Footer(format, 1, (Column("price", "decimal(9,2)"),), {})
    assert [severity.value for _, severity, _ in drift(footer, (Column("price", "double"),), ())] == severities


def test_a_file_of_another_table_is_an_error():
    assert problems(("a", "int"), ("b", "int"), ("c", "int"), ("d", "int")) == [
        ("error", "the file has none of the table's columns, but a, b, c and 1 more")
    ]


def test_a_column_of_the_table_that_spark_does_not_read_is_an_error():
    unread = (("Id", "is a timestamp of nanoseconds; write microseconds"), ("ds", "is x"), ("more", "is y"))
    footer = Footer("parquet", 1, (Column("id", "bigint"), Column("note", "string")), {}, unread)
    assert [(severity.value, text) for _, severity, text in drift(footer, COLUMNS, ("ds",))] == [
        ("error", "column Id is a timestamp of nanoseconds; write microseconds")
    ]


def test_columns_without_names_go_by_position():
    assert problems(("_col0", "bigint"), ("_col1", "string")) == []
    assert problems(("_col0", "string")) == [("error", "column id is string in the file and bigint in the table")]
    assert problems(("_col0", "bigint"), ("_col2", "string")) == [
        ("warning", "the table does not have the file's columns _col2")
    ]
