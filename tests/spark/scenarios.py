"""The script of clients §2.3 and §2.4: what people do with Spark's tables, once for every metastore.

Each table is written in three ways: parquet and ORC by Spark's own sources, and Hive's text files.
"""

from tests.spark.partitioned_scenario import partitioned
from tests.spark.steps import Scenario, at_once, catalog, fails, gives, look, run, save
from tests.spark.table_formats import FORMATS, KEYS, create

UDF = "org.apache.hadoop.hive.ql.udf.UDFHex"


def unpartitioned(file_format: str) -> Scenario:
    """Tables without partitions: written, overwritten, renamed, moved, dropped and made again."""
    saved = "hive" if file_format == "text" else file_format
    stored = "STORED AS TEXTFILE" if file_format == "text" else f"USING {file_format}"
    steps = [
        *run(create(file_format, "t", "id INT, name STRING")),
        gives("SELECT count(*) FROM t", (0,)),
        *run("INSERT INTO t VALUES (1, 'one'), (2, 'two')", "INSERT INTO t SELECT id + 10, name FROM t"),
        gives("SELECT id, name FROM t ORDER BY id", (1, "one"), (2, "two"), (11, "one"), (12, "two")),
        *run("INSERT OVERWRITE t VALUES (5, 'five')"),
        gives("SELECT id, name FROM t", (5, "five")),
        *run("ANALYZE TABLE t COMPUTE STATISTICS", "ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS"),
        look(),
        *run("DESCRIBE EXTENDED t", "ALTER TABLE t RENAME TO u"),
        gives("SELECT id, name FROM u", (5, "five")),
        fails("SELECT * FROM t", "TABLE_OR_VIEW_NOT_FOUND"),
        *run(f"CREATE TABLE copy {stored} AS SELECT * FROM u"),
        fails("CREATE TABLE copy (a INT) USING parquet", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        fails("ALTER TABLE u RENAME TO copy", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        *run("TRUNCATE TABLE u"),
        gives("SELECT count(*) FROM u", (0,)),
        *run("ALTER TABLE copy SET LOCATION '{location}/moved'", "INSERT INTO copy VALUES (7, 'seven')"),
        gives("SELECT id, name FROM copy", (7, "seven")),
        save("SELECT 1 AS id, 'one' AS name", "saved", saved),
        save("SELECT 2 AS id, 'two' AS name", "saved", saved),
        gives("SELECT id, name FROM saved ORDER BY id", (1, "one"), (2, "two")),
        save("SELECT 3 AS id, 'three' AS name", "saved", saved, "overwrite"),
        gives("SELECT id, name FROM saved", (3, "three")),
        save("SELECT 4 AS id, 'four' AS name, 'x' AS k", "saved_partitioned", saved, partitions=["k"]),
        save("SELECT 5 AS id, 'five' AS name, 'y' AS k", "saved_partitioned", saved, partitions=["k"]),
        gives("SELECT id, k FROM saved_partitioned ORDER BY id", (4, "x"), (5, "y")),
        *run("CREATE TABLE alike LIKE saved_partitioned", "DROP TABLE u PURGE", create(file_format, "u", "other DATE")),
        gives("SELECT * FROM u"),
        *run("DROP TABLE IF EXISTS nothing"),
        fails("DROP TABLE nothing", "TABLE_OR_VIEW_NOT_FOUND"),
    ]
    return Scenario(f"unpartitioned_{file_format}", tuple(steps))


def external(file_format: str) -> Scenario:
    """External tables leave their files alone."""
    location = "LOCATION '{location}/outside'"
    make = create(file_format, "t", "id INT", "k STRING", location).replace("CREATE TABLE", "CREATE EXTERNAL TABLE", 1)
    if file_format != "text":
        make = make.replace("EXTERNAL ", "", 1)
    steps = [
        *run(make, "INSERT INTO t VALUES (1, 'a'), (2, 'b')", "ALTER TABLE t DROP PARTITION (k = 'b')", "DROP TABLE t"),
        *run(make, "MSCK REPAIR TABLE t"),
        gives("SELECT id, k FROM t ORDER BY id", (1, "a"), (2, "b")),
        *run("ALTER TABLE t RENAME TO u"),
        gives("SELECT id FROM u ORDER BY id", (1,), (2,)),
        *run("ALTER TABLE u PARTITION (k = 'b') RENAME TO PARTITION (k = 'c')", "SHOW PARTITIONS u"),
        gives("SELECT id, k FROM u ORDER BY id", (1, "a"), (2, "c")),
        *run("DESCRIBE EXTENDED u"),
    ]
    return Scenario(f"external_{file_format}", tuple(steps))


# Beside a condition that is like others.
LIKE = True
FILTERED = (
    ("ds = '2024-01-01' AND hr = 2", 1),
    ("hr > 0 OR ds >= '2024-01-02'", 8),
    ("ds LIKE '2024%' AND hr IN (1, 2)", 4, LIKE),
    ("ds NOT IN ('a', 'b')", 8),
    ("hr IN (1, 2, 3) AND hr <> 2 AND (hr < 100 OR hr > 200)", 2, LIKE),
    ("d > DATE '2024-02-01'", 3, LIKE),
    ("d = '2024-02-01' OR d IN (DATE '2024-03-01')", 7),
    ("ds LIKE '%24-01%'", 6),
    ("ds LIKE '%-02' OR ds LIKE 'a%'", 4),
    ("'a' = ds", 1, LIKE),
    ("ds = '\"quoted\"'", 1),
    ('ds = "o\'q"', 1),
    ("hr = '1'", 2),
    ("hr <=> 1", 2),
    ("NOT (hr = 1)", 7, LIKE),
    ("hr = 1 AND NOT (ds = '2024-01-01')", 1, LIKE),
    ("ds LIKE '2024-01-0_'", 6, LIKE),
    ("ds LIKE 'a'", 1, LIKE),
    ("upper(ds) = 'A'", 1, LIKE),
    ("d IS NULL", 0),
    ("year(d) = 2024 AND hr < 1", 2, LIKE),
    ("hr = 2147483648", 0),
    ("startswith(ds, '2024') AND endswith(ds, '02') AND contains(ds, '-')", 3, LIKE),
    ("ds IN (" + ", ".join(f"'v{number}'" for number in range(40)) + ", 'a')", 1),
)


def filters(file_format: str) -> Scenario:
    """Every filter that Spark sends to the metastore, and some it keeps to itself (clients §2.4)."""
    keys = "ds STRING, hr INT, d DATE"
    columns = "id INT" if file_format == "text" else f"id INT, {keys}"
    rows = [
        *[f"({n}, '2024-01-0{1 + n % 2}', {n // 2}, DATE '2024-0{2 + n % 2}-01')" for n in range(6)],
        "(6, 'a', 7, DATE '2024-02-01')",
        "(7, '\"quoted\"', 8, DATE '2023-02-01')",
        "(8, 'o\\'q', 9, DATE '2023-02-01')",
    ]
    steps = [
        *run(create(file_format, "t", columns, keys if file_format == "text" else "ds, hr, d")),
        *run(f"INSERT INTO t VALUES {', '.join(rows)}", "SHOW PARTITIONS t"),
        *[
            gives(f"SELECT count(*) FROM t WHERE {condition}", (count,), like=LIKE in like)
            for condition, count, *like in FILTERED
        ],
        *run(
            "SHOW PARTITIONS t PARTITION (ds = '2024-01-01')",
            "SHOW PARTITIONS t PARTITION (hr = 1)",
            "SHOW PARTITIONS t PARTITION (ds = '2024-01-01', hr = 0, d = '2024-02-01')",
            "ALTER TABLE t DROP PARTITION (ds = '2024-01-02')",
            "ALTER TABLE t DROP PARTITION (hr = 8)",
        ),
        gives("SELECT id FROM t ORDER BY id", (0,), (2,), (4,), (6,), (8,)),
    ]
    return Scenario(f"filters_{file_format}", tuple(steps))


def odd_keys(file_format: str) -> Scenario:
    """Partition keys whose values Spark never filters by in the metastore."""
    keys = "a BOOLEAN, b DECIMAL(7, 2), c TIMESTAMP, d BIGINT, e CHAR(3)"
    rows = (
        "(1, true, 1.50, TIMESTAMP '2024-01-01 10:20:30', 9223372036854775807, 'x')",
        "(2, false, -20.25, TIMESTAMP '2024-01-01 10:20:30.5', -1, 'yz')",
    )
    columns = "id INT" if file_format == "text" else f"id INT, {keys}"
    steps = [
        *run(create(file_format, "t", columns, keys if file_format == "text" else "a, b, c, d, e")),
        *run(f"INSERT INTO t VALUES {', '.join(rows)}", "SHOW PARTITIONS t"),
        gives("SELECT id FROM t WHERE a", (1,)),
        gives("SELECT id FROM t WHERE b < 0", (2,)),
        gives("SELECT id FROM t WHERE c = TIMESTAMP '2024-01-01 10:20:30'", (1,)),
        gives("SELECT id FROM t WHERE d > 5", (1,)),
        gives("SELECT id FROM t WHERE d = 9223372036854775807 AND a", (1,)),
        gives("SELECT id FROM t WHERE e = 'x'", (1,)),
    ]
    return Scenario(f"odd_keys_{file_format}", tuple(steps))


SPECIAL_VALUES = (
    "a/b=c%20 d", '"quoted"', "o\\'q", "10:30", "é☃😀", "back\\\\slash", "tab\\tinside", "line\\nbreak", "#?*[]{}^",
    "trailing ", " leading", "..", "%", "__HIVE_DEFAULT_PARTITION__x", "semi;colon", "dollar$1",
)  # fmt: skip


def special_characters(file_format: str) -> Scenario:
    """Characters that names of directories, JSON and SQL treat specially."""
    inserts = [
        f"INSERT INTO t PARTITION (k = '{value}') VALUES ({number})" for number, value in enumerate(SPECIAL_VALUES)
    ]
    found = [gives(f"SELECT id FROM t WHERE k = '{value}'", (number,)) for number, value in enumerate(SPECIAL_VALUES)]
    text = "q\"uo\\'te back\\\\slash tab\\t line\\n é☃😀 \\u0001 {{}} %s <&>"
    steps = [
        *run(create(file_format, "t", f"id INT COMMENT '{text}'", "k STRING", f"COMMENT '{text}'")),
        *run(f"ALTER TABLE t SET TBLPROPERTIES ('{text}' = '{text}', 'empty' = '', 'long' = '{'x' * 3000}')"),
        *run(*inserts, "SHOW PARTITIONS t", "SHOW TBLPROPERTIES t", "DESCRIBE t"),
        *found,
        *run(
            "ALTER TABLE t PARTITION (k = 'a/b=c%20 d') RENAME TO PARTITION (k = 'a%2Fb')",
            "ALTER TABLE t PARTITION (k = 'é☃😀') RENAME TO PARTITION (k = 'ü/ü')",
            "ALTER TABLE t DROP PARTITION (k = '10:30'), PARTITION (k = '\"quoted\"')",
            "SHOW TABLE EXTENDED LIKE 't' PARTITION (k = 'ü/ü')",
            "INSERT INTO t VALUES (99, '')",
            "SHOW PARTITIONS t",
        ),
        gives("SELECT id FROM t WHERE k = 'ü/ü'", (4,)),
        gives("SELECT id FROM t WHERE k = 'a%2Fb'", (0,)),
        *run("SELECT id, k FROM t WHERE id = 99"),
    ]
    return Scenario(f"special_characters_{file_format}", tuple(steps))


def concurrent_inserts(file_format: str) -> Scenario:
    """Many writers, each in partitions of its own; the rows of all of them are there.

    Writers of parquet and ORC need the dynamic mode, else Spark lets them share one temporary folder.
    """
    insert = "INSERT INTO t" if file_format == "text" else "INSERT OVERWRITE t"
    steps = [
        *run(create(file_format, "t", "id INT", "k INT"), "SET spark.sql.sources.partitionOverwriteMode = dynamic"),
        at_once(*[f"{insert} VALUES ({number}, {number})" for number in range(8)]),
        at_once(*[f"{insert} VALUES ({number}, {100 + number}), ({number}, {200 + number})" for number in range(4)]),
        *run("RESET spark.sql.sources.partitionOverwriteMode"),
        gives("SELECT count(*), sum(id), count(DISTINCT k) FROM t", (16, 40, 16)),
        *run("SHOW PARTITIONS t"),
    ]
    return Scenario(f"concurrent_inserts_{file_format}", tuple(steps))


def many_partitions(file_format: str) -> Scenario:
    """250 new partitions leave Spark in three requests."""
    steps = [
        *run(create(file_format, "t", "id INT", "p INT")),
        *run("INSERT INTO t SELECT CAST(id AS INT), CAST(id AS INT) FROM range(250)"),
        gives("SELECT count(*), max(p) FROM t", (250, 249)),
        gives("SELECT count(*) FROM t WHERE p BETWEEN 100 AND 119 OR p = 7", (21,)),
        *run("ALTER TABLE t ADD COLUMNS (b STRING)", "ALTER TABLE t RENAME TO u"),
        *run("ALTER TABLE u DROP PARTITION (p = 249)"),
        gives("SELECT count(*), max(p) FROM u", (249, 248)),
    ]
    return Scenario(f"many_partitions_{file_format}", tuple(steps))


COLUMN_TYPES = (
    "a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, f FLOAT, g DOUBLE, h DECIMAL(20, 4), i STRING, j VARCHAR(10), "
    "k CHAR(3), l DATE, m TIMESTAMP, n BINARY, o ARRAY<INT>, p MAP<STRING, ARRAY<INT>>, "
    "q STRUCT<x: INT, y: STRUCT<z: STRING>>"
)
VALUES_OF_TYPES = (
    "true, 1, 2, 3, 4, 1.5, 2.5, 12.3456, 's', 'v', 'c', DATE '2024-01-01', TIMESTAMP '2024-01-01 01:02:03', X'00FF', "
    "array(1, 2), map('k', array(3)), named_struct('x', 1, 'y', named_struct('z', 'deep'))"
)


def column_types(file_format: str) -> Scenario:
    """Every type a column may have, mixed case, and a schema that needs several parameters."""
    wide = ", ".join(f"column_number_{number} STRING COMMENT 'what column {number} holds'" for number in range(300))
    steps = [
        *run(create(file_format, "t", COLUMN_TYPES), f"INSERT INTO t VALUES ({VALUES_OF_TYPES})"),
        *run("SELECT * FROM t", "DESCRIBE t"),
        *run(create(file_format, "MixedCase", "Id INT, `Name with space` STRING, `sélect` INT")),
        *run("INSERT INTO mixedcase VALUES (1, 'x', 2)", "SELECT * FROM MIXEDCASE", "DESCRIBE mixedCase"),
        *run(create(file_format, "wide", wide), "DESCRIBE wide", "SHOW COLUMNS IN wide"),
    ]
    return Scenario(f"column_types_{file_format}", tuple(steps))


def databases() -> Scenario:
    """Databases: made, listed, described, altered, refused and dropped."""
    steps = [
        *run("CREATE DATABASE other COMMENT 'an \"other\"' LOCATION '{location}/other' WITH DBPROPERTIES ('a' = 'b')"),
        fails("CREATE DATABASE other", "SCHEMA_ALREADY_EXISTS"),
        *run("CREATE DATABASE IF NOT EXISTS other", "DESCRIBE DATABASE EXTENDED other", "CREATE DATABASE plain"),
        *run("DESCRIBE DATABASE EXTENDED plain", "SHOW DATABASES LIKE 'oth*|plain'", "SHOW DATABASES LIKE 'nothing*'"),
        *run(
            "CREATE DATABASE temporary WITH DBPROPERTIES ('x' = 'y')",
            "DROP DATABASE temporary RESTRICT",
            "ALTER DATABASE other SET DBPROPERTIES ('a' = 'c', 'd' = 'é☃')",
            "COMMENT ON DATABASE other IS 'changed'",
            "DESCRIBE DATABASE EXTENDED other",
            "DESCRIBE DATABASE EXTENDED plain",
            "CREATE TABLE plain.t (a INT) USING parquet",
            "INSERT INTO plain.t VALUES (1)",
            "CREATE TABLE other.t (a INT) STORED AS TEXTFILE",
            "CREATE VIEW other.v AS SELECT 1 AS one",
            "INSERT INTO other.t VALUES (1)",
            "DESCRIBE EXTENDED plain.t",
        ),
        # The metastore of Hive 2.3 keeps a database where it is.
        fails("ALTER DATABASE plain SET LOCATION '{location}/plain'", "_LEGACY_ERROR_TEMP_1219"),
        fails("DROP DATABASE other", "SCHEMA_NOT_EMPTY"),
        fails("DROP DATABASE nothing", "SCHEMA_NOT_FOUND"),
        fails("DESCRIBE DATABASE nothing", "SCHEMA_NOT_FOUND"),
        *run("DROP DATABASE IF EXISTS nothing", "DROP DATABASE other CASCADE", "DROP DATABASE plain CASCADE"),
        gives("SHOW DATABASES LIKE 'other|plain'"),
        catalog("databaseExists", "other"),
        catalog("currentDatabase"),
        *run("USE default", "SELECT current_database()", "USE databases"),
    ]
    return Scenario("databases", tuple(steps))


def listings() -> Scenario:
    """The ways to ask what is there."""
    steps = [
        *run(
            "CREATE TABLE apples (a INT COMMENT 'first', b STRING) USING parquet PARTITIONED BY (b)",
            "CREATE TABLE pears (a INT) STORED AS TEXTFILE",
            "CREATE VIEW fruit AS SELECT a FROM apples UNION ALL SELECT a FROM pears",
            "SHOW TABLES",
            "SHOW TABLES LIKE '*p*'",
            "SHOW TABLES LIKE 'apples|fruit'",
            "SHOW TABLES IN default LIKE 'nothing'",
            "SHOW VIEWS",
            "SHOW VIEWS LIKE 'f*'",
            "SHOW TABLE EXTENDED LIKE '*'",
            "SHOW CREATE TABLE apples",
            "SHOW CREATE TABLE pears AS SERDE",
            "SHOW CREATE TABLE fruit",
            "SHOW COLUMNS IN apples",
        ),
        catalog("listTables"),
        catalog("listTables", "listings", "pe*"),
        catalog("listColumns", "apples"),
        catalog("tableExists", "pears"),
        catalog("tableExists", "plums"),
        catalog("getTable", "fruit"),
        catalog("getDatabase", "listings"),
        catalog("refreshTable", "apples"),
        fails("SHOW TABLES IN nothing", "SCHEMA_NOT_FOUND"),
        fails("DESCRIBE plums", "TABLE_OR_VIEW_NOT_FOUND"),
    ]
    return Scenario("listings", tuple(steps))


def views() -> Scenario:
    """Views: made, replaced, altered, renamed and dropped."""
    steps = [
        *run(
            "CREATE TABLE t (a INT, b STRING) USING parquet",
            "INSERT INTO t VALUES (1, 'x'), (2, 'y')",
            "CREATE VIEW v (number COMMENT 'é \"q\"', letter) COMMENT 'l' TBLPROPERTIES ('p' = 'q') AS SELECT * FROM t",
        ),
        gives("SELECT number, letter FROM v ORDER BY number", (1, "x"), (2, "y")),
        fails("CREATE VIEW v AS SELECT 1", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        *run("CREATE VIEW IF NOT EXISTS v AS SELECT 1", "CREATE OR REPLACE VIEW v AS SELECT a FROM t WHERE b = 'y'"),
        gives("SELECT * FROM v", (2,)),
        *run("ALTER VIEW v AS SELECT b FROM t WHERE a = 1"),
        gives("SELECT * FROM v", ("x",)),
        *run(
            "ALTER VIEW v SET TBLPROPERTIES ('r' = 's')",
            "ALTER VIEW v RENAME TO w",
            "DESCRIBE EXTENDED w",
            "SHOW CREATE TABLE w",
            "SHOW VIEWS",
        ),
        gives("SELECT * FROM w", ("x",)),
        *run("CREATE VIEW gone AS SELECT 1 AS one", "DROP VIEW gone", "DROP VIEW IF EXISTS gone"),
        fails("DROP VIEW gone", "TABLE_OR_VIEW_NOT_FOUND"),
    ]
    return Scenario("views", tuple(steps))


def functions() -> Scenario:
    """Functions of Java classes and of SQL."""
    steps = [
        *run(f"CREATE FUNCTION to_hex AS '{UDF}'"),
        gives("SELECT to_hex(255)", ("FF",)),
        fails(f"CREATE FUNCTION to_hex AS '{UDF}'", "ROUTINE_ALREADY_EXISTS"),
        *run(
            f"CREATE FUNCTION IF NOT EXISTS to_hex AS '{UDF}'",
            "CREATE OR REPLACE FUNCTION to_hex AS 'org.apache.hadoop.hive.ql.udf.UDFBin'",
        ),
        *run(
            "DESCRIBE FUNCTION EXTENDED functions.to_hex",
            "SHOW USER FUNCTIONS",
            "SHOW USER FUNCTIONS LIKE 'to*'",
            "CREATE FUNCTION add_one(x INT) RETURNS INT COMMENT 'é \"one\" more' RETURN x + 1",
            "CREATE FUNCTION pair(a STRING, n INT DEFAULT 2) RETURNS TABLE(l STRING, m INT) RETURN SELECT a, n",
        ),
        gives("SELECT functions.add_one(41)", (42,)),
        gives("SELECT * FROM pair('x')", ("x", 2)),
        *run("DESCRIBE FUNCTION EXTENDED add_one", "SHOW USER FUNCTIONS", "DROP FUNCTION to_hex"),
        fails("DROP FUNCTION to_hex", "ROUTINE_NOT_FOUND"),
        *run("DROP FUNCTION IF EXISTS to_hex"),
        fails("SELECT to_hex(1)", "UNRESOLVED_ROUTINE"),
    ]
    return Scenario("functions", tuple(steps))


def buckets() -> Scenario:
    """Bucketed and sorted tables."""
    steps = [
        *run(
            "CREATE TABLE own (a INT, b STRING) USING parquet CLUSTERED BY (a) SORTED BY (b) INTO 4 BUCKETS",
            "CREATE TABLE hives (a INT, b STRING) CLUSTERED BY (a, b) SORTED BY (b ASC) INTO 3 BUCKETS STORED AS ORC",
            "INSERT INTO own VALUES (1, 'x'), (2, 'y')",
            "DESCRIBE EXTENDED own",
            "DESCRIBE EXTENDED hives",
            "ALTER TABLE hives SET TBLPROPERTIES ('x' = 'y')",
        ),
        save("SELECT 1 AS a, 2 AS b", "saved", "parquet", buckets="a"),
        gives("SELECT a FROM own ORDER BY a", (1,), (2,)),
        *run("DESCRIBE EXTENDED saved"),
    ]
    return Scenario("buckets", tuple(steps))


def hive_text() -> Scenario:
    """What only Hive's own tables know: delimiters, LOAD DATA, other serdes, partitions of two keys."""
    commas = "ROW FORMAT DELIMITED FIELDS TERMINATED BY ','"
    steps = [
        *run(
            f"CREATE TABLE plain (a INT, b STRING) {commas} STORED AS TEXTFILE",
            "INSERT INTO plain VALUES (1, 'x'), (2, 'y')",
            f"CREATE TABLE staged (a INT, b STRING) {commas}",
            f"INSERT OVERWRITE DIRECTORY '{{location}}/files' {commas} SELECT * FROM plain",
            "LOAD DATA INPATH '{location}/files' INTO TABLE staged",
        ),
        gives("SELECT * FROM staged ORDER BY a", (1, "x"), (2, "y")),
        *run(
            f"CREATE TABLE days (a INT, b STRING) PARTITIONED BY (y INT, m STRING) {commas}",
            f"INSERT OVERWRITE DIRECTORY '{{location}}/files' {commas} SELECT * FROM plain",
            "LOAD DATA INPATH '{location}/files' OVERWRITE INTO TABLE days PARTITION (y = 2024, m = 'may')",
            f"INSERT OVERWRITE DIRECTORY '{{location}}/files' {commas} SELECT * FROM plain",
            "LOAD DATA INPATH '{location}/files' INTO TABLE days PARTITION (y = 2024, m = 'may')",
            "INSERT INTO days PARTITION (y = 2024, m) SELECT 3, 'z', 'june'",
            "INSERT OVERWRITE TABLE days PARTITION (y, m) SELECT 4, 'w', 2025, 'june'",
            "SHOW PARTITIONS days",
            "SHOW PARTITIONS days PARTITION (m = 'june')",
        ),
        gives("SELECT count(*) FROM days WHERE m = 'may'", (4,)),
        gives("SELECT a, y FROM days WHERE m = 'june' ORDER BY y", (3, 2024), (4, 2025)),
        *run(
            "ALTER TABLE days DROP PARTITION (y = 2024)",
            "CREATE TABLE quoted (a STRING) ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde' "
            "WITH SERDEPROPERTIES ('separatorChar' = ';') STORED AS TEXTFILE",
            "INSERT INTO quoted VALUES ('x;y')",
            "CREATE TABLE columns STORED AS PARQUET AS SELECT 1 AS a",
            "CREATE TABLE rows STORED AS ORC AS SELECT 1 AS a",
            "CREATE TABLE avros (a INT) STORED AS AVRO",
            "ALTER TABLE plain SET SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde'",
            "DESCRIBE EXTENDED plain",
        ),
        gives("SELECT * FROM quoted", ("x;y",)),
        gives("SELECT r.a + c.a FROM rows r JOIN columns c ON r.a = c.a", (2,)),
    ]
    return Scenario("hive_text", tuple(steps))


def cascade() -> Scenario:
    """DROP DATABASE … CASCADE with everything in it, and the same name again."""
    fill = run(
        "CREATE DATABASE full",
        "CREATE TABLE full.t (a INT, k STRING) USING orc PARTITIONED BY (k)",
        "INSERT INTO full.t VALUES (1, 'x'), (2, 'y')",
        "CREATE TABLE full.outside (a INT) USING parquet LOCATION '{location}/outside'",
        "INSERT INTO full.outside VALUES (1)",
        "CREATE VIEW full.v AS SELECT * FROM full.t",
        f"CREATE FUNCTION full.f AS '{UDF}'",
    )
    steps = [*fill, *run("DROP DATABASE full CASCADE"), *fill, gives("SELECT count(*) FROM full.t", (2,))]
    return Scenario("cascade", (*steps, *run("DROP DATABASE full CASCADE", "SHOW TABLES")))


PER_FORMAT = (
    unpartitioned, external, filters, odd_keys, special_characters, concurrent_inserts, many_partitions, column_types,
)  # fmt: skip
SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        *(partitioned(file_format, key) for file_format in FORMATS for key in KEYS),
        *(make(file_format) for make in PER_FORMAT for file_format in FORMATS),
        *(make() for make in (databases, listings, views, functions, buckets, hive_text, cascade)),
    )
}
