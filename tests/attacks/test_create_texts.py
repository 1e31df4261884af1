"""The statement that makes a table has texts that its maker chose, and is pasted by others."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as some
from sqlglot import TokenType, exp, parse, tokenize

from hms_gateway.metastore.vocabulary.create_text import create_database_text, create_table_text
from hms_gateway.metastore.vocabulary.hiveql_tokens import split_statements, tokens_of
from hms_gateway.rpc.structs import (
    Database,
    FieldSchema,
    Order,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
)

SCHEMA = "spark.sql.sources.schema"
PROVIDER = "spark.sql.sources.provider"
DROPS = [
    "parquet; DROP TABLE victim; --",
    "int); DROP TABLE victim; --",
    "x'); DROP TABLE victim; --",
    "x\\'); DROP TABLE victim; --",
    'x"); DROP TABLE victim; --',
    "x`); DROP TABLE victim; --",
    "*/ ; DROP TABLE victim; /*",
    "int COMMENT 'a\\'; DROP TABLE victim; --'",
    "struct<`a\\`:int>; DROP TABLE victim",
    "'a' -- '\n; DROP TABLE victim",
    "r'\\'; DROP TABLE victim; --'",
]
texts = some.sampled_from(DROPS) | some.text(max_size=8) | some.sampled_from(["int", "array<int>", "a", "7", ""])
types = some.recursive(
    texts,
    lambda inner: (
        some.builds(lambda one: {"type": "array", "elementType": one}, inner)
        | some.builds(lambda name, one: {"type": "struct", "fields": [{"name": name, "type": one}]}, texts, inner)
    ),
    max_leaves=3,
)
fields = some.fixed_dictionaries(
    {"name": texts, "type": types},
    optional={
        "nullable": some.booleans(),
        "metadata": some.dictionaries(
            some.sampled_from(["comment", "CURRENT_DEFAULT", "__CHAR_VARCHAR_TYPE_STRING"]), texts | some.integers()
        ),
    },
)
schemas = some.lists(fields, max_size=3).map(lambda columns: json.dumps({"type": "struct", "fields": columns}))
parameters = some.dictionaries(
    some.sampled_from(
        [
            PROVIDER, SCHEMA, "comment", "EXTERNAL", *DROPS[:3], f"{SCHEMA}.part.0", f"{SCHEMA}.partCol.0",
            f"{SCHEMA}.bucketCol.0", f"{SCHEMA}.sortCol.0",
            *(f"{SCHEMA}.num{what}" for what in ("Parts", "PartCols", "BucketCols", "SortCols", "Buckets")),
        ]
    ),
    texts | schemas | some.sampled_from(["0", "1", "2", "-1", "1e9", "9" * 5_000, "1000000000"]),
)  # fmt: skip
columns = some.lists(some.builds(FieldSchema, texts, texts, some.none() | texts), max_size=2)
tables = some.builds(
    Table,
    tableName=texts,
    dbName=texts,
    tableType=some.sampled_from(["MANAGED_TABLE", "EXTERNAL_TABLE", "VIRTUAL_VIEW"]),
    partitionKeys=columns,
    parameters=parameters,
    viewOriginalText=some.none() | texts,
    sd=some.builds(
        StorageDescriptor,
        cols=columns,
        location=some.none() | texts,
        inputFormat=texts,
        outputFormat=texts,
        numBuckets=some.integers(-1, 3),
        bucketCols=some.lists(texts, max_size=2),
        sortCols=some.lists(some.builds(Order, texts, some.integers(0, 1)), max_size=2),
        serdeInfo=some.builds(
            SerDeInfo, serializationLib=texts, parameters=some.dictionaries(texts, texts, max_size=2)
        ),
        skewedInfo=some.none()
        | some.builds(SkewedInfo, some.lists(texts), some.lists(some.lists(texts, max_size=2), max_size=2)),
    ),
)


def view(query: str) -> Table:
    sd = StorageDescriptor(cols=[FieldSchema("a", "int", "c")])
    return Table(tableName="v", dbName="d", tableType="VIRTUAL_VIEW", viewOriginalText=query, parameters={}, sd=sd)


def assert_is_one_statement(text: str) -> None:
    """For this shell, and for Hive and Spark: outside quotes it begins with CREATE, and drops and ends nothing."""
    assert len(list(split_statements(text))) == 1
    assert tokens_of(text)[0].upper == "CREATE"
    for dialect in ("hive", "spark"):
        kinds = [token.token_type for token in tokenize(text, read=dialect)]
        assert kinds[0] is TokenType.CREATE
        assert TokenType.SEMICOLON not in kinds[:-1]
        assert TokenType.DROP not in kinds


@pytest.mark.slow
@given(tables)
@example(Table(tableName="t", dbName="d", parameters={PROVIDER: DROPS[0]}))
@example(view("'0"))
@example(view("select '"))
@example(view("select 1 /* it's"))
@example(view("select r'\\''"))
def test_any_table_is_one_statement(table: Table) -> None:
    assert_is_one_statement(create_table_text(table, "file:/x"))


@pytest.mark.slow
@given(texts, texts, texts, some.dictionaries(texts, texts))
def test_any_database_is_one_statement(name: str, about: str, place: str, properties: dict[str, str]) -> None:
    assert_is_one_statement(create_database_text(Database(name, about, place, properties)))


def text_of(**changed: Any) -> str:
    sd = StorageDescriptor(cols=[FieldSchema("a", "int", "c")], serdeInfo=SerDeInfo(parameters={}))
    return create_table_text(Table(**{"tableName": "t", "dbName": "d", "sd": sd, "parameters": {}, **changed}), None)


@pytest.mark.parametrize(
    "parameters",
    [
        *({SCHEMA: text} for text in ("[" * 100_000, "{}", "", "null", '{"type":"struct"}', "\ud800")),
        {SCHEMA: '{"type":"struct","fields":[{"name":"a","type":' + '{"type":"array","elementType":' * 20_000},
        {SCHEMA: '{"type":"struct","fields":[{"name":"a","type":{"type":"array"}}]}'},
        {SCHEMA: '{"type":"struct","fields":[{"name":1,"type":"int"}]}'},
        *({f"{SCHEMA}.num{what}": "many"} for what in ("Parts", "PartCols", "Buckets", "BucketCols", "SortCols")),
        *({f"{SCHEMA}.num{what}": "1000000000000"} for what in ("Parts", "PartCols")),
    ],
    ids=range(16),
)
def test_what_is_no_schema_of_spark_is_left_out(parameters: dict[str, str]) -> None:
    text = text_of(parameters={PROVIDER: "parquet", **parameters})
    assert text == "CREATE TABLE `d`.`t` (\n  `a` int COMMENT 'c')\nUSING parquet"


@pytest.mark.parametrize(
    "query", ["select 'it\\'s', \"a'b\", `c``'d`", "select 1 -- it's\n+ 1", "/* it's */ select 1", "select ';'"]
)
def test_a_query_whose_quotes_end_is_kept(query: str) -> None:
    assert create_table_text(view(query), None).endswith(f"\nAS {query}")


@pytest.mark.slow
def test_a_deep_type_is_read_in_one_pass() -> None:
    deep = "array<" * 100_000 + "int" + ">" * 100_000
    assert f"`a` {deep}" in text_of(sd=StorageDescriptor(cols=[FieldSchema("a", deep)]))
    assert f"`a` `{deep}>`" in text_of(sd=StorageDescriptor(cols=[FieldSchema("a", f"{deep}>")]))


@pytest.mark.parametrize(
    "kind", ["decimal(10,2)", "timestamp with local time zone", "struct<`a;b`:int COMMENT 'x',c:map<string,int>>"]
)
def test_types_are_written_as_they_are(kind: str) -> None:
    assert f"`a` {kind})" in text_of(sd=StorageDescriptor(cols=[FieldSchema("a", kind)]))


@pytest.mark.parametrize("kind", [*DROPS, "int, b int", "int) LOCATION 'file:/x' --", "int\n", "int /* x */"])
def test_what_is_no_type_is_a_quoted_name(kind: str) -> None:
    assert "`a` `" in text_of(sd=StorageDescriptor(cols=[FieldSchema("a", kind)]))


@pytest.mark.parametrize("query", ["SELECT 1", "SELECT split(a, ';'), 'it', `b;c` FROM t", "SELECT 1 -- it's"])
def test_a_query_is_written_as_it_is(query: str) -> None:
    text = text_of(viewOriginalText=query, tableType="VIRTUAL_VIEW")
    assert text == f"CREATE VIEW `d`.`t` (\n  `a` COMMENT 'c')\nAS {query}"
    (statement,) = parse(text, read="spark")
    assert isinstance(statement, exp.Create)


@pytest.mark.parametrize("query", ["SELECT 1; DROP TABLE victim", *DROPS])
def test_more_than_a_query_is_a_literal(query: str) -> None:
    assert "\nAS '" in text_of(viewOriginalText=query, tableType="VIRTUAL_VIEW")
