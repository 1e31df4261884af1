"""Spark with Iceberg's RESTCatalog (`lake`) and HiveCatalog (`hive`) in one session, on the same tables."""

import pyarrow as pa
import pytest

from hms_gateway.rpc.structs import Catalog, CreateCatalogRequest
from tests.bridge.bridge_process import connected
from tests.iceberg.java_library import PYTHON, TRUST_PASSWORD, library_jars, trust_store
from tests.iceberg.spark_process import hive_catalog, rest_catalog, spark_process
from tests.support.readme import PORT, block, prepare, run
from tests.support.server import USER

pytestmark = [pytest.mark.iceberg, pytest.mark.java, pytest.mark.slow, pytest.mark.whole]

WRITERS = 4


class Failed(Exception):
    """A statement that Spark refuses; the text is the beginning of its error."""


@pytest.fixture(scope="module")
def together(tmp_path_factory, iceberg_gateway, iceberg_bridge, uri, warehouse):
    """Runs statements at once; the rows of each, or the text of its error."""
    folder = tmp_path_factory.mktemp("spark")
    store = trust_store(folder, iceberg_gateway)
    trusting = f"-Djavax.net.ssl.trustStore={store} -Djavax.net.ssl.trustStorePassword={TRUST_PASSWORD}"
    with connected(iceberg_bridge) as client:
        client.create_catalog(CreateCatalogRequest(Catalog(name="second", locationUri=f"file:{warehouse}/second")))
    place = f"https://127.0.0.1:{iceberg_gateway.port}/iceberg"
    catalogs = {
        "lake": rest_catalog(place),
        "second": rest_catalog(place, warehouse="second"),
        "hive": hive_catalog(uri, warehouse),
    }
    with spark_process(folder, catalogs, trusting) as spark:
        yield spark.together


@pytest.fixture
def sql(together):
    """Runs statements one after the other; the rows of the last. Raises Failed."""

    def run(*statements):
        for statement in statements:
            (found,) = together(statement)
            if isinstance(found, str):
                raise Failed(f"{statement}: {found}")
        return found

    return run


@pytest.fixture
def space(sql, request):
    """A namespace that both catalogs have, and the test names with `{}`."""
    name = "spark_" + request.node.name.translate(str.maketrans("[-]", "___")).removeprefix("test_")[:60]
    sql(f"CREATE NAMESPACE lake.{name}")
    return name


def ids(sql, table, *, condition="true"):
    return [row[0] for row in sql(f"SELECT id FROM {table} WHERE {condition} ORDER BY id")]


@pytest.mark.parametrize(("maker", "other"), [("lake", "hive"), ("hive", "lake")])
def test_each_catalog_sees_the_other_s_changes(sql, space, maker, other):
    mine, theirs = f"{maker}.{space}.t", f"{other}.{space}.t"
    sql(
        f"CREATE TABLE {mine} (id INT, name STRING) USING iceberg"
        " PARTITIONED BY (bucket(4, id)) TBLPROPERTIES ('a' = 'ä')"
    )
    assert sql(f"SHOW TABLES IN {other}.{space}") == [[space, "t", False]]
    for number, table in enumerate((mine, theirs, mine, theirs)):
        sql(f"INSERT INTO {table} VALUES ({number}, 'ö{number}')")
        assert ids(sql, theirs if table == mine else mine) == [*range(number + 1)]
    sql(f"ALTER TABLE {theirs} ADD COLUMN price DOUBLE", f"ALTER TABLE {mine} RENAME COLUMN name TO title")
    assert [row[0] for row in sql(f"DESCRIBE TABLE {theirs}")][:3] == ["id", "title", "price"]
    rows = "VALUES (1, 'new', 2.5), (9, 'nine', 9.5) AS rows(id, title, price)"
    merge = f"USING (SELECT * FROM {rows}) s ON t.id = s.id"
    sql(f"MERGE INTO {theirs} t {merge} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    assert sql(f"SELECT id, title, price FROM {mine} WHERE price IS NOT NULL ORDER BY id") == [
        [1, "new", 2.5],
        [9, "nine", 9.5],
    ]
    sql(f"DELETE FROM {mine} WHERE id = 0", f"UPDATE {theirs} SET title = 'two' WHERE id = 2")
    assert ids(sql, theirs, condition="title IN ('two', 'ö3')") == [2, 3]
    sql(f"ALTER TABLE {mine} RENAME TO {space}.renamed")
    assert ids(sql, f"{other}.{space}.renamed") == [1, 2, 3, 9]
    snapshots = sql(f"SELECT operation FROM {other}.{space}.renamed.snapshots ORDER BY committed_at")
    assert [row[0] for row in snapshots[:4]] == ["append"] * 4
    assert len(sql(f"SELECT * FROM {mine[:-1]}renamed.history")) == len(snapshots)
    sql(f"DROP TABLE {other}.{space}.renamed PURGE", f"DROP NAMESPACE {maker}.{space}")
    assert [space] not in sql(f"SHOW NAMESPACES IN {other}")


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_rows_that_are_changed(sql, space, mode):
    modes = ", ".join(f"'write.{each}.mode' = '{mode}'" for each in ("delete", "update", "merge"))
    table = f"lake.{space}.t"
    sql(f"CREATE TABLE {table} (id INT, n INT) USING iceberg TBLPROPERTIES ('format-version' = '2', {modes})")
    sql(
        f"INSERT INTO {table} SELECT id, 0 FROM range(6)",
        f"DELETE FROM {table} WHERE id = 1",
        f"UPDATE {table} SET n = 1 WHERE id = 2",
    )
    sql(f"MERGE INTO {table} t USING (SELECT 3 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert sql(f"SELECT id, n FROM hive.{space}.t ORDER BY id") == [[0, 0], [2, 1], [4, 0], [5, 0]]
    assert bool(sql(f"SELECT * FROM {table}.delete_files")) is (mode == "merge-on-read")
    sql(f"INSERT OVERWRITE {table} VALUES (7, 7)")
    assert ids(sql, f"hive.{space}.t") == [7]


def test_partitions_that_change_and_dynamic_overwrites(sql, space):
    table = f"lake.{space}.t"
    sql(f"CREATE TABLE {table} (id INT, day DATE) USING iceberg PARTITIONED BY (days(day))")
    sql(f"INSERT INTO {table} VALUES (1, DATE '2024-05-01'), (2, DATE '2024-05-02')")
    sql(f"ALTER TABLE hive.{space}.t ADD PARTITION FIELD bucket(2, id)", f"ALTER TABLE {table} WRITE ORDERED BY id")
    sql("SET spark.sql.sources.partitionOverwriteMode = dynamic")
    sql(
        f"INSERT OVERWRITE {table} VALUES (3, DATE '2024-05-02')",
        f"INSERT OVERWRITE {table} VALUES (3, DATE '2024-05-02')",
    )
    sql("SET spark.sql.sources.partitionOverwriteMode = static")
    assert ids(sql, f"hive.{space}.t", condition="day = DATE '2024-05-01'") == [1]
    sql(f"ALTER TABLE {table} DROP PARTITION FIELD days(day)")
    assert len(sql(f"SELECT * FROM {table}.partitions")) >= 2


def test_time_travel_branches_tags_and_procedures(sql, space):
    table, other = f"lake.{space}.t", f"hive.{space}.t"
    sql(f"CREATE TABLE {table} USING iceberg AS SELECT 1 AS id", f"INSERT INTO {other} VALUES (2)")
    first, second = (row[0] for row in sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at"))
    assert ids(sql, f"{other} VERSION AS OF {first}") == [1]
    sql(
        f"ALTER TABLE {table} CREATE TAG old AS OF VERSION {first} RETAIN 7 DAYS",
        f"ALTER TABLE {other} CREATE BRANCH audit",
    )
    sql(f"INSERT INTO {table}.branch_audit VALUES (3)")
    assert (ids(sql, f"{other} VERSION AS OF 'audit'"), ids(sql, table)) == ([1, 2, 3], [1, 2])
    sql(f"CALL lake.system.fast_forward('{space}.t', 'main', 'audit')")
    assert ids(sql, other) == [1, 2, 3]
    sql(f"CALL hive.system.rollback_to_snapshot('{space}.t', {second})")
    assert ids(sql, table) == [1, 2]
    sql(f"CALL lake.system.rewrite_data_files(table => '{space}.t', options => map('rewrite-all', 'true'))")
    sql(f"ALTER TABLE {table} DROP TAG old", f"ALTER TABLE {other} DROP BRANCH audit")
    older = "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1"
    sql(f"CALL lake.system.expire_snapshots(table => '{space}.t', {older})")
    assert len(sql(f"SELECT * FROM {other}.snapshots")) == 1
    assert ids(sql, other) == [1, 2]
    sql(f"CREATE OR REPLACE TABLE {table} USING iceberg AS SELECT 'x' AS name")
    assert sql(f"SELECT * FROM {other}") == [["x"]]
    assert len(sql(f"SELECT * FROM {other}.history")) >= 1


def test_tables_that_are_registered_and_added(sql, space):
    table = f"lake.{space}.t"
    sql(f"CREATE TABLE {table} USING iceberg AS SELECT 1 AS id")
    (file,) = sql(f"SELECT file FROM {table}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1")
    sql(f"DROP TABLE hive.{space}.t")
    sql(f"CALL lake.system.register_table(table => '{space}.again', metadata_file => '{file[0]}')")
    assert ids(sql, f"hive.{space}.again") == [1]


def test_views(sql, space):
    sql(f"CREATE TABLE lake.{space}.t USING iceberg AS SELECT 1 AS id")
    sql(f"CREATE VIEW lake.{space}.v (number COMMENT 'of it') COMMENT 'ü' AS SELECT id FROM lake.{space}.t")
    assert sql(f"SELECT number FROM lake.{space}.v") == [[1]]
    assert sql(f"SELECT number FROM hive.{space}.v") == [[1]]
    assert [row[1] for row in sql(f"SHOW VIEWS IN lake.{space}")] == ["v"]
    sql(f"CREATE OR REPLACE VIEW hive.{space}.v AS SELECT id + 1 AS number FROM hive.{space}.t")
    assert sql(f"SELECT number FROM lake.{space}.v") == [[2]]
    sql(
        f"ALTER VIEW lake.{space}.v SET TBLPROPERTIES ('a' = 'b')",
        f"ALTER VIEW lake.{space}.v RENAME TO lake.{space}.w",
    )
    assert ["a", "b"] in sql(f"SHOW TBLPROPERTIES hive.{space}.w")
    with pytest.raises(Failed, match=r"(?i)already exists"):
        sql(f"CREATE TABLE lake.{space}.w (id INT) USING iceberg")
    sql(f"DROP VIEW hive.{space}.w")
    assert sql(f"SHOW VIEWS IN lake.{space}") == []


@pytest.mark.parametrize("rebases", [False, True])
def test_writers_of_both_catalogs_at_once_lose_nothing(sql, together, space, rebases):
    retries = "'commit.retry.num-retries' = '50', 'commit.retry.min-wait-ms' = '10'"
    properties = f"{retries}, 'hms.append-rebase' = '{str(rebases).lower()}'"
    sql(f"CREATE TABLE lake.{space}.t (id INT) USING iceberg TBLPROPERTIES ({properties})")
    places = [f"{('lake', 'hive')[number % 2]}.{space}.t" for number in range(WRITERS)]
    for turn in range(3):
        values = [turn * WRITERS + number for number in range(WRITERS)]
        answers = together(
            *(f"INSERT INTO {table} VALUES ({each})" for table, each in zip(places, values, strict=True))
        )
        assert answers == [[]] * WRITERS
    assert ids(sql, f"hive.{space}.t") == [*range(3 * WRITERS)]
    assert len(sql(f"SELECT * FROM lake.{space}.t.snapshots")) == 3 * WRITERS


def test_namespaces_and_their_properties(sql, space):
    sql(f"ALTER NAMESPACE hive.{space} SET PROPERTIES ('team' = 'till')", f"COMMENT ON NAMESPACE lake.{space} IS 'ß'")
    found = dict(sql(f"DESCRIBE NAMESPACE EXTENDED lake.{space}"))
    assert "team" in found["Properties"]
    assert found["Comment"] == "ß"
    with pytest.raises(Failed, match=r"(?i)not empty"):
        sql(f"CREATE TABLE hive.{space}.t (id INT) USING iceberg", f"DROP NAMESPACE lake.{space}")
    with pytest.raises(Failed, match=r"(?i)cannot be found"):
        sql(f"SELECT * FROM lake.{space}.gone")


def test_the_block_of_the_document(iceberg_gateway, catalog, tmp_path):
    catalog.create_namespace_if_not_exists("lake")
    if catalog.table_exists("lake.readings"):
        catalog.drop_table("lake.readings")
    rows = pa.table({"id": [1, 2]})
    catalog.create_table("lake.readings", rows.schema).append(rows)
    folder = prepare(tmp_path, iceberg_gateway)
    run(["sh", "-c", block("trust store")], folder, iceberg_gateway)
    program = block("spark rest").replace(PORT, str(iceberg_gateway.port)).replace('"admin"', f'"{USER}"')
    arguments = f"--jars {','.join(map(str, library_jars()))} pyspark-shell"
    variables = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_SUBMIT_ARGS": arguments}
    printed = run([str(PYTHON), "-c", program], folder, iceberg_gateway, **variables)
    assert [line for line in printed.splitlines() if line[:3] == "|  "] == ["|  1|", "|  2|", "|  3|"]


def test_another_catalog_is_a_warehouse(sql, space):
    sql(f"CREATE NAMESPACE second.{space}", f"CREATE TABLE second.{space}.t USING iceberg AS SELECT 7 AS id")
    assert ids(sql, f"second.{space}.t") == [7]
    assert sql(f"SHOW TABLES IN lake.{space}") == []
    sql(f"INSERT INTO second.{space}.t VALUES (8)", f"ALTER TABLE second.{space}.t RENAME TO {space}.u")
    assert ids(sql, f"second.{space}.u") == [7, 8]
    sql(f"DROP TABLE second.{space}.u PURGE", f"DROP NAMESPACE second.{space}")
    assert [space] in sql("SHOW NAMESPACES IN lake")
