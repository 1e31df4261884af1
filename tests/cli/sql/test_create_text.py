"""SHOW CREATE TABLE: run again, the text makes the same table; tables of Spark's sources are written for Spark."""

import json

import pytest

from hms_gateway.cli.hiveql.shell_state import ShellState
from hms_gateway.cli.hiveql.statement_reader import parse_statement
from hms_gateway.metastore.vocabulary.create_text import create_table_text, literal
from hms_gateway.metastore.vocabulary.hiveql_tokens import tokens_of
from hms_gateway.rpc.structs import SerDeInfo, StorageDescriptor, Table

TABLES = {
    "plain": "create table {} (a int)",
    "types": "create table {} (a array<map<string,struct<x:int,y:decimal(5,2)>>> comment 'it\\'s', b varchar(3))",
    "partitioned": "create table {} (a int) comment 'c\\nd' partitioned by (ds date comment 'x', hr int) stored as orc",
    "delimited": "create table {} (a int) row format delimited fields terminated by ',' lines terminated by '\\n'",
    "bucketed": "create table {} (a int, b int) clustered by (a) sorted by (b desc, a) into 4 buckets",
    "skewed": "create table {} (a int, b string) skewed by (a, b) on ((1, 'x'), (2, 'y')) stored as rcfile",
    "external": "create external table {} (a int) stored as avro location 'file:/x' tblproperties ('k' = 'a\\\\b')",
    "serde": "create table {} (a int) row format serde 'x.Y' with serdeproperties ('a' = 'b') "
    "stored as inputformat 'i' outputformat 'o'",
}


@pytest.fixture
def state(client):
    return ShellState(client, "admin", "host")


def run(state, text):
    return parse_statement(text, state.database).run(state)


def comparable(table):
    table.createTime = table.tableName = None
    table.parameters.pop("transient_lastDdlTime", None)
    if table.tableType == "MANAGED_TABLE":
        table.sd.location = None
    return table


@pytest.mark.parametrize("name", TABLES)
def test_the_text_makes_the_same_table(state, client, name):
    run(state, TABLES[name].format(name))
    try:
        (text,) = next(iter(run(state, f"show create table {name}").rows))
        run(state, text.replace(f"`{name}`", "`again`", 1))
        assert comparable(client.call("get_table", "default", "again")) == comparable(
            client.call("get_table", "default", name)
        )
    finally:
        for table in (name, "again"):
            run(state, f"drop table if exists {table}")


def test_a_table_of_spark_is_written_for_spark():
    fields = [
        {"name": "Id", "type": "long", "nullable": False, "metadata": {}},
        {"name": "c", "type": "string", "nullable": True, "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}},
        {"name": "s", "type": {"type": "struct", "fields": [
            {"name": "X", "type": "integer", "nullable": True, "metadata": {}}]}, "nullable": True, "metadata": {}},
        {"name": "day", "type": "date", "nullable": True, "metadata": {"comment": "d"}},
    ]  # fmt: skip
    schema = json.dumps({"type": "struct", "fields": fields})
    half = len(schema) // 2
    table = Table(
        tableName="t",
        dbName="d",
        tableType="EXTERNAL_TABLE",
        sd=StorageDescriptor(serdeInfo=SerDeInfo(parameters={"path": "file:/x", "compression": "zstd"})),
        parameters={
            "spark.sql.sources.provider": "parquet",
            "spark.sql.sources.schema.numParts": "2",
            "spark.sql.sources.schema.part.0": schema[:half],
            "spark.sql.sources.schema.part.1": schema[half:],
            "spark.sql.sources.schema.numPartCols": "1",
            "spark.sql.sources.schema.partCol.0": "day",
            "comment": "what",
            "k": "v",
        },
    )
    assert create_table_text(table, None) == (
        "CREATE TABLE `d`.`t` (\n  `Id` bigint NOT NULL,\n  `c` char(3),\n  `s` struct<`X`:int>,\n"
        "  `day` date COMMENT 'd')\n"
        "USING parquet\nOPTIONS (\n  'compression' = 'zstd')\nPARTITIONED BY (`day`)\nLOCATION 'file:/x'\n"
        "COMMENT 'what'\nTBLPROPERTIES (\n  'k' = 'v')"
    )


@pytest.mark.parametrize("text", ["", "it's", "a\\b", "a\nb\tc", "\x01\x7f", "é☃😀", "${x}", "--"])
def test_a_literal_is_read_as_its_text(text):
    (token,) = tokens_of(literal(text))
    assert token.text == text
