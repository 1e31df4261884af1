"""SHOW CREATE TABLE of the shell: Spark accepts the text, and makes the same table of it."""

import json
import re

import pytest

from hms_gateway.cli.hiveql.running.running import run_statement
from hms_gateway.cli.hiveql.running.shell_state import ShellState
from hms_gateway.cli.hiveql.statement_reader import parse_statement
from hms_gateway.client.metastore_client import MetastoreClient
from tests.spark.catalog_content import plain
from tests.spark.scenario_run import _filled
from tests.spark.scenarios import SCENARIOS
from tests.support.sample import sample
from tests.support.server import USER

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Types, buckets, and views.
FEW = ("column_types_parquet", "buckets", "views")
# Statements that make or change tables; rows and partitions do not matter here.
DEFINES = re.compile(r"\s*(?:CREATE|ALTER (?:TABLE|VIEW) \S+ (?!.*PARTITION \()|DROP|USE)", re.IGNORECASE)
# What engines and the metastore derive from data and time.
DERIVED = re.compile(
    r"numFiles|totalSize|numRows|rawDataSize|COLUMN_STATS_ACCURATE|transient_lastDdlTime|last_modified_.*"
    r"|spark\.sql\.statistics\..*|view\.sqlConfig\..*|numPartitions"
    # Spark notes it when a table of Hive's formats is altered.
    r"|spark\.sql\.partitionProvider"
)


@pytest.fixture
def client(gateway):
    with MetastoreClient(gateway.url, (USER, gateway.password), verify=False) as client:
        yield client


def comparable(table, database):
    """Without times, statistics, and the name of the database."""
    found = plain(table)
    for name in ("createTime", "lastAccessTime", "id", "writeId"):
        found.pop(name, None)
    found["parameters"] = {name: value for name, value in found["parameters"].items() if not DERIVED.fullmatch(name)}
    return json.loads(json.dumps(found).replace(f"{database}_again", database))


@pytest.mark.parametrize("name", sample(FEW, of=tuple(SCENARIOS)))
def test_spark_makes_the_same_tables_of_the_text(place, client, name):
    spark, again = place.spark, f"{name}_again"
    for database in (name, again):
        spark.sql(f"CREATE DATABASE {database}")
    try:
        spark.sql(f"USE {name}")
        directory = client.call("get_database", name).locationUri
        for step in SCENARIOS[name].steps:
            request = _filled(step.request, directory)
            if "save" in request or DEFINES.match(request.get("sql", "")):
                spark.ask(request)
        state = ShellState(client, USER, "host", name)
        for table in client.call("get_all_tables", name):
            (text,) = next(iter(run_statement(parse_statement(f"show create table `{table}`", name), state).rows))
            spark.sql(text.replace(f"`{name}`.`{table}`", f"`{again}`.`{table}`", 1))
            made = comparable(client.call("get_table", again, table), name)
            original = comparable(client.call("get_table", name, table), name)
            if original["tableType"] == "MANAGED_TABLE" and "\nLOCATION " in text:
                # It was moved. Spark keeps the place and makes the table external: it knows no such managed table.
                assert made.pop("tableType") == "EXTERNAL_TABLE"
                made["parameters"].pop("EXTERNAL", None)
                original.pop("tableType")
            assert made == original, text
    finally:
        spark.sql("USE default")
        for database in (again, name):
            spark.sql(f"DROP DATABASE {database} CASCADE")
