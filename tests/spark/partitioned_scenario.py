"""The life of a partitioned table, the longest of the scenarios (clients §2.3)."""

from tests.spark.steps import Scenario, Step, fails, gives, look, run
from tests.spark.table_formats import KEYS, create, write_files


def partitioned(file_format: str, key_type: str) -> Scenario:
    """The life of a partitioned table."""
    key = KEYS[key_type]
    a, b, c, d, e, f, g = key.literals
    name = key.names
    steps = [
        *run(
            create(file_format, "t", "id INT COMMENT 'number', name STRING", f"k {key.type}", "COMMENT 'people'"),
            "SELECT * FROM t",
            f"INSERT INTO t PARTITION (k = {a}) VALUES (1, 'one')",
            f"INSERT INTO t PARTITION (k = {a}) VALUES (2, 'two')",
            f"INSERT INTO t VALUES (3, 'three', {b}), (4, 'four', {c})",
        ),
        gives("SELECT id, name FROM t ORDER BY id", (1, "one"), (2, "two"), (3, "three"), (4, "four")),
        gives("SHOW PARTITIONS t", *[(f"k={value}",) for value in sorted(name[:3])]),
        gives(f"SHOW PARTITIONS t PARTITION (k = {b})", (f"k={name[1]}",)),
        *run("DESCRIBE FORMATTED t", f"DESCRIBE FORMATTED t PARTITION (k = {a})"),
        *run("SHOW TABLE EXTENDED LIKE 't'", f"SHOW TABLE EXTENDED LIKE 't' PARTITION (k = {a})"),
        *run("SHOW CREATE TABLE t"),
        *_filters(a, b, c),
        *_overwriting(file_format, a, b, e),
        look(),
        *_partition_changes(a, d, e, f, name),
        *_found_directories(file_format, g, name[6]),
        *_column_changes(file_format, a),
        look(),
        *_statistics(a),
        *run("ALTER TABLE t RENAME TO renamed"),
        look(),
        gives(f"SELECT count(*), min(id) FROM renamed WHERE k = {g}", (1, 70)),
        *run("SHOW PARTITIONS renamed", f"TRUNCATE TABLE renamed PARTITION (k = {g})"),
        gives(f"SELECT count(*) FROM renamed WHERE k = {g}", (0,)),
        *run("TRUNCATE TABLE renamed"),
        gives("SELECT count(*) FROM renamed", (0,)),
        *run("CREATE TABLE kept LIKE renamed", "DROP TABLE renamed"),
        # A directory left behind would be refused here.
        *run(create(file_format, "renamed", "id INT, name STRING", f"k {key.type}")),
        gives("SELECT count(*) FROM renamed", (0,)),
        *run(f"INSERT INTO renamed VALUES (1, 'again', {c})", "ALTER TABLE renamed SET TBLPROPERTIES ('last' = 'yes')"),
    ]
    return Scenario(f"partitioned_{file_format}_{key_type}", tuple(steps))


def _filters(a: str, b: str, c: str) -> list[Step]:
    """Conditions; the scenario of filters has those that are alike, on keys of three types."""
    counted = "SELECT count(*) FROM t WHERE"
    return [
        gives(f"{counted} k = {a}", (2,), like=True),
        gives(f"{counted} {a} = k", (2,), like=True),
        gives(f"{counted} k IN ({a}, {c})", (3,)),
        gives(f"{counted} k NOT IN ({a}, {c})", (1,), like=True),
        gives(f"{counted} k <> {a}", (2,), like=True),
        gives(f"{counted} k > {a} AND k <= {c}", (2,)),
        gives(f"{counted} k < {b} OR k >= {c}", (3,), like=True),
        gives(f"{counted} k IN ({a}, {b}, {c}) AND k <> {b} AND (k < {b} OR k > {b})", (3,), like=True),
        gives(f"{counted} k IS NULL", (0,), like=True),
        gives(f"{counted} k = {a} AND id = 2", (1,)),
        gives(f"{counted} k BETWEEN {b} AND {c}", (2,), like=True),
        gives(f"{counted} coalesce(k, {a}) = {b}", (1,), like=True),
    ]


def _overwriting(file_format: str, a: str, b: str, e: str) -> list[Step]:
    return [
        *run(f"INSERT OVERWRITE t PARTITION (k = {a}) VALUES (10, 'ten')"),
        gives(f"SELECT id, name FROM t WHERE k = {a}", (10, "ten")),
        *run(
            "SET spark.sql.sources.partitionOverwriteMode = dynamic",
            f"INSERT OVERWRITE t VALUES (30, 'thirty', {b}), (50, 'fifty', {e})",
            "RESET spark.sql.sources.partitionOverwriteMode",
        ),
        gives("SELECT id FROM t ORDER BY id", (4,), (10,), (30,), (50,)),
        *run("INSERT INTO t VALUES (60, 'nobody', NULL)"),
        # Spark reads no null back from the partitions of Hive's text tables.
        *([] if file_format == "text" else [gives("SELECT id, k FROM t WHERE k IS NULL", (60, None))]),
        *run("SHOW PARTITIONS t", "ALTER TABLE t DROP PARTITION (k = NULL)", "SHOW PARTITIONS t"),
    ]


def _partition_changes(a: str, d: str, e: str, f: str, name: tuple[str, ...]) -> list[Step]:
    return [
        *run(f"ALTER TABLE t ADD PARTITION (k = {d})"),
        gives(f"SELECT count(*) FROM t WHERE k = {d}", (0,)),
        fails(f"ALTER TABLE t ADD PARTITION (k = {d})", "PARTITIONS_ALREADY_EXIST"),
        *run(
            f"ALTER TABLE t ADD IF NOT EXISTS PARTITION (k = {d}) PARTITION (k = {f})",
            f"ALTER TABLE t DROP PARTITION (k = {f}) PURGE",
            f"ALTER TABLE t DROP IF EXISTS PARTITION (k = {f})",
        ),
        fails(f"ALTER TABLE t DROP PARTITION (k = {f})", "PARTITIONS_NOT_FOUND"),
        *run(f"ALTER TABLE t PARTITION (k = {e}) RENAME TO PARTITION (k = {f})"),
        gives(f"SELECT id, name FROM t WHERE k = {f}", (50, "fifty")),
        fails(f"ALTER TABLE t PARTITION (k = {a}) RENAME TO PARTITION (k = {f})", "PARTITIONS_ALREADY_EXIST"),
        *run(
            f"ALTER TABLE t PARTITION (k = {d}) SET LOCATION '{{location}}/elsewhere'",
            f"INSERT INTO t PARTITION (k = {d}) VALUES (40, 'elsewhere')",
        ),
        gives(f"SELECT id, name FROM t WHERE k = {d}", (40, "elsewhere")),
        *run("SHOW PARTITIONS t", f"DESCRIBE FORMATTED t PARTITION (k = {d})"),
        look(),
        *run(f"ALTER TABLE t ADD PARTITION (k = {e}) LOCATION '{{location}}/t/k={name[5]}'"),
        gives(f"SELECT id FROM t WHERE k = {e}", (50,)),
        # The two share a directory, so they go together.
        *run(f"ALTER TABLE t DROP PARTITION (k = {d}), PARTITION (k = {e}), PARTITION (k = {f})"),
    ]


def _found_directories(file_format: str, g: str, name: str) -> list[Step]:
    return [
        *run(
            write_files(file_format, f"{{location}}/t/k={name}", "SELECT 70 AS id, 'found' AS name"),
            "MSCK REPAIR TABLE t",
        ),
        gives(f"SELECT id, name FROM t WHERE k = {g}", (70, "found")),
        *run("SHOW PARTITIONS t", "ALTER TABLE t RECOVER PARTITIONS"),
    ]


def _column_changes(file_format: str, a: str) -> list[Step]:
    set_serde = "SET SERDEPROPERTIES ('some.property' = 'é,')"
    of_hive = [f"ALTER TABLE t {set_serde}", f"ALTER TABLE t PARTITION (k = {a}) {set_serde}"]
    return [
        *run(
            "ALTER TABLE t ADD COLUMNS (added STRING COMMENT 'came later')",
            "ALTER TABLE t ALTER COLUMN id COMMENT 'the number'",
            "ALTER TABLE t SET TBLPROPERTIES ('one' = '1', 'two' = '2')",
            "ALTER TABLE t UNSET TBLPROPERTIES ('two')",
            "COMMENT ON TABLE t IS 'other people'",
            "SHOW TBLPROPERTIES t",
            "SHOW COLUMNS IN t",
        ),
        gives(f"SELECT id, name, added FROM t WHERE k = {a}", (10, "ten", None)),
        *run(*of_hive if file_format == "text" else []),
        *run("DESCRIBE EXTENDED t"),
    ]


def _statistics(a: str) -> list[Step]:
    return run(
        "ANALYZE TABLE t COMPUTE STATISTICS NOSCAN",
        "ANALYZE TABLE t COMPUTE STATISTICS",
        "ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS id, name",
        f"ANALYZE TABLE t PARTITION (k = {a}) COMPUTE STATISTICS",
        "ANALYZE TABLE t PARTITION (k) COMPUTE STATISTICS NOSCAN",
        "DESCRIBE FORMATTED t id",
        f"DESCRIBE FORMATTED t PARTITION (k = {a})",
    )
