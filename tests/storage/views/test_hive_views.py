"""Hive's schema as views says what the gateway answers, to SQL and to a real metastore that reads it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, make_url, text
from sqlalchemy.exc import DBAPIError

from hms_gateway.client.thrift_client import ThriftClient
from hms_gateway.metastore.ports.store import StoreError
from hms_gateway.rpc.structs import (
    Catalog,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CreateCatalogRequest,
    Database,
    DoubleColumnStatsData,
    FieldSchema,
    Function,
    ResourceType,
    ResourceUri,
    SkewedInfo,
    StringColumnStatsData,
)
from hms_gateway.storage.migrations import revisions, steps
from hms_gateway.storage.migrations.operations import Operations
from hms_gateway.storage.migrations.revisions import migrate
from hms_gateway.storage.schema.catalog import REVISION
from hms_gateway.storage.views.installing import install, remove
from tests.bridge.bridge_process import connected
from tests.oracle.peer import HiveDatabase, PeerUnavailable, RealMetastore
from tests.pipeline.content import add_partitions, fill, storage
from tests.pipeline.migrate.content import fill_rest, table
from tests.support.catalog_dump import differing, dump
from tests.support.private_mariadb import PrivateMariadb
from tests.support.private_postgres import PrivatePostgres
from tests.support.server import USER, GatewayServer, free_port
from tests.support.shared_schema import upgrade

pytestmark = pytest.mark.slow

ODD = {":": ":", 'a"b\\': "x\n\ty", "": "no name", "no value": "", "\\u0000": "\\\\u0000", "ä 😀": "{}[],':\""}
DRIVERS = {
    "postgres": ("org.postgresql.Driver", Path("/usr/share/java/postgresql.jar")),
    "mariadb": ("org.mariadb.jdbc.Driver", Path("/usr/share/java/mariadb-java-client.jar")),
}
JDBC = {
    "postgres": "postgresql://127.0.0.1:{}/postgres?currentSchema=hive",
    "mariadb": "mariadb://127.0.0.1:{}/hive?useMysqlMetadata=true",
}
GRANTS = {
    "postgres": (
        "CREATE ROLE reader LOGIN PASSWORD 'hive'",
        "ALTER ROLE reader SET jit = off",
        "GRANT USAGE ON SCHEMA hive TO reader",
        "GRANT SELECT ON ALL TABLES IN SCHEMA hive TO reader",
    ),
    "mariadb": ("CREATE USER reader IDENTIFIED BY 'hive'", "GRANT SELECT ON hive.* TO reader"),
}
READ_ONLY = {
    "hive.metastore.schema.verification": "true",
    "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DummyTxnManager",
    "hive.support.concurrency": "false",
}
DATABASES = ("default", "everything", "sales", "stock")
SERVERS = [pytest.param(name, marks=getattr(pytest.mark, name)) for name in DRIVERS]


@dataclass
class Filled:
    """A gateway with every kind of object, its Thrift port, and a connection whose default schema is the views'."""

    port: int
    connection: Connection

    def client(self) -> ThriftClient:
        client = ThriftClient("127.0.0.1", self.port)
        client.call("set_ugi", USER, [])
        return client

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query with names in double quotes."""
        return [tuple(row) for row in self.connection.execute(text(query), values)]


@contextmanager
def filled(url: str, schema: str, folder: Path) -> Iterator[Filled]:
    port, place = free_port(), folder / "files"
    place.mkdir(parents=True)
    settings = {"thrift_port": port, "file_roots": [str(place)]}
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with GatewayServer(folder / "var", database=url, settings=settings), engine.connect() as connection:
        found = Filled(port, connection)
        fill(found)  # type: ignore[arg-type]
        with found.client() as client:
            fill_rest(client, str(place))
            fill_odd(client, str(place))
        install(url, schema)
        if engine.dialect.name == "postgresql":
            # Lists in JSON are short, and the planner takes them for long: it would compile each statement for seconds.
            connection.exec_driver_sql(f"SET search_path = {schema}; SET jit = off")
        else:
            connection.exec_driver_sql("SET sql_mode = 'ANSI_QUOTES'")
            connection.exec_driver_sql(f"USE {schema}")
        yield found
    engine.dispose()


def fill_odd(client: ThriftClient, place: str) -> None:
    """A second catalog; texts that JSON escapes, directories of skewed values, statistics of more kinds."""
    odd = table("odd", storage(("id", "int"), ("x", "double"), ("s", "string")), ODD)
    odd.sd.parameters = odd.sd.serdeInfo.parameters = ODD
    directories = {("a", 'b"'): "file:/elsewhere/skewed"}
    odd.sd.skewedInfo = SkewedInfo(["id", "s"], [["a", 'b"'], ["c", ""]], directories)
    odd.partitionKeys = [FieldSchema("k", "string", 'a "key"\n')]
    client.call("create_table", odd)
    add_partitions(client, "everything", "odd", [['"\\'], ["a:b"]])
    client.call("create_table", table("counted", storage(("x", "double"), ("s", "string")), {}))
    client.call("create_catalog", CreateCatalogRequest(Catalog("other", None, f"file:{place}/other")))
    client.call("create_database", Database("sales", locationUri=f"file:{place}/other/sales", catalogName="other"))
    columns = [
        ColumnStatisticsObj(
            "x", "double", ColumnStatisticsData(doubleStats=DoubleColumnStatsData(-1.5, float("inf"), 1, 2))
        ),
        ColumnStatisticsObj("s", "string", ColumnStatisticsData(stringStats=StringColumnStatsData(9, 2.5, 3, 4))),
    ]
    desc = ColumnStatisticsDesc(isTblLevel=True, dbName="everything", tableName="counted")
    client.call("update_table_column_statistics", ColumnStatistics(statsDesc=desc, statsObj=columns))
    resources = [ResourceUri(ResourceType.JAR, "file:/a.jar"), ResourceUri(ResourceType.FILE, "file:/b")]
    client.call(
        "create_function",
        Function("twofold", "everything", "org.example.Twofold", "tester", functionType=1, resourceUris=resources),
    )


@pytest.fixture(scope="module", params=SERVERS)
def catalog(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    url: str = request.getfixturevalue(f"{request.param}_database_of_module")
    schema = f"hive_of_{make_url(url).database}"
    with filled(url, schema, tmp_path_factory.mktemp("views")) as found:
        yield found
        remove(url, schema)


def test_tables_and_partitions_are_what_the_gateway_answers(catalog: Filled) -> None:
    names = catalog.rows('SELECT d."NAME", t."TBL_NAME" FROM "TBLS" t JOIN "DBS" d ON d."DB_ID" = t."DB_ID"')
    assert len(names) == 11
    with catalog.client() as client:
        for database, name in names:
            answered = client.call("get_table", database, name)
            by_name = client.call("get_partitions", database, name, -1) if answered.partitionKeys else []
            assert table_of(catalog, database, name) == shown(answered), name
            assert partitions_of(catalog, database, name) == {tuple(one.values): shown(one) for one in by_name}, name


def shown(answered: Any) -> dict[str, Any]:
    """What a table or partition has in Hive's schema, of the gateway's answer."""
    sd, skewed = answered.sd, answered.sd.skewedInfo
    return {
        "location": sd.location,
        "formats": (sd.inputFormat, sd.outputFormat),
        "flags": (bool(sd.compressed), bool(sd.storedAsSubDirectories), sd.numBuckets),
        "serde": (sd.serdeInfo.name, sd.serdeInfo.serializationLib, sd.serdeInfo.parameters or {}),
        "columns": [(one.name, one.type, one.comment) for one in sd.cols],
        "keys": [(one.name, one.type, one.comment) for one in getattr(answered, "partitionKeys", None) or ()],
        "parameters": answered.parameters or {},
        "of the descriptor": sd.parameters or {},
        "buckets": sd.bucketCols or [],
        "sorted": [(one.col, one.order) for one in sd.sortCols or ()],
        "skewed": (skewed.skewedColNames or [], skewed.skewedColValues or []) if skewed else ([], []),
        "times": (answered.createTime, answered.lastAccessTime),
    }


def table_of(catalog: Filled, database: str, name: str) -> dict[str, Any]:
    query = """
        SELECT t."TBL_ID", t."SD_ID", t."CREATE_TIME", t."LAST_ACCESS_TIME"
        FROM "TBLS" t JOIN "DBS" d ON d."DB_ID" = t."DB_ID" WHERE d."NAME" = :database AND t."TBL_NAME" = :name"""
    ((table_id, sd_id, *times),) = catalog.rows(query, database=database, name=name)
    keys = f"""
        SELECT "PKEY_NAME", "PKEY_TYPE", "PKEY_COMMENT" FROM "PARTITION_KEYS"
        WHERE "TBL_ID" = {table_id} ORDER BY "INTEGER_IDX" """
    parameters = f'SELECT "PARAM_KEY", "PARAM_VALUE" FROM "TABLE_PARAMS" WHERE "TBL_ID" = {table_id}'
    return {
        **descriptor(catalog, sd_id),
        "keys": catalog.rows(keys),
        "parameters": dict(catalog.rows(parameters)),
        "times": tuple(times),
    }


def partitions_of(catalog: Filled, database: str, name: str) -> dict[tuple[str, ...], dict[str, Any]]:
    query = """
        SELECT p."PART_ID", p."SD_ID", p."CREATE_TIME", p."LAST_ACCESS_TIME"
        FROM "PARTITIONS" p JOIN "TBLS" t ON t."TBL_ID" = p."TBL_ID" JOIN "DBS" d ON d."DB_ID" = t."DB_ID"
        WHERE d."NAME" = :database AND t."TBL_NAME" = :name"""
    found = {}
    for part_id, sd_id, *times in catalog.rows(query, database=database, name=name):
        values = 'SELECT "PART_KEY_VAL" FROM "PARTITION_KEY_VALS" WHERE "PART_ID" = :id ORDER BY "INTEGER_IDX"'
        parameters = 'SELECT "PARAM_KEY", "PARAM_VALUE" FROM "PARTITION_PARAMS" WHERE "PART_ID" = :id'
        found[tuple(value for (value,) in catalog.rows(values, id=part_id))] = {
            **descriptor(catalog, sd_id),
            "keys": [],
            "parameters": dict(catalog.rows(parameters, id=part_id)),
            "times": tuple(times),
        }
    return found


def descriptor(catalog: Filled, sd_id: int) -> dict[str, Any]:
    query = """
        SELECT s."LOCATION", s."INPUT_FORMAT", s."OUTPUT_FORMAT", s."IS_COMPRESSED", s."IS_STOREDASSUBDIRECTORIES",
            s."NUM_BUCKETS", s."CD_ID", e."SERDE_ID", e."NAME", e."SLIB"
        FROM "SDS" s JOIN "SERDES" e ON e."SERDE_ID" = s."SERDE_ID" JOIN "CDS" c ON c."CD_ID" = s."CD_ID"
        WHERE s."SD_ID" = :id"""
    ((location, *formats, compressed, directories, buckets, cd_id, serde_id, serde, library),) = catalog.rows(
        query, id=sd_id
    )

    def rows(columns: str, view: str, key: str = "SD_ID", value: int = sd_id, order: str = "INTEGER_IDX") -> Any:
        quoted = ", ".join(f'"{column}"' for column in columns.split())
        return catalog.rows(f'SELECT {quoted} FROM "{view}" WHERE "{key}" = :id ORDER BY "{order}"', id=value)

    lists = """
        SELECT s."INTEGER_IDX", v."STRING_LIST_VALUE" FROM "SKEWED_VALUES" s
        JOIN "SKEWED_STRING_LIST" l ON l."STRING_LIST_ID" = s."STRING_LIST_ID_EID"
        JOIN "SKEWED_STRING_LIST_VALUES" v ON v."STRING_LIST_ID" = s."STRING_LIST_ID_EID"
        WHERE s."SD_ID_OID" = :id ORDER BY s."INTEGER_IDX", v."INTEGER_IDX" """
    values = dict[int, list[str]]()
    for place, value in catalog.rows(lists, id=sd_id):
        values.setdefault(place, []).append(value)
    return {
        "location": location,
        "formats": tuple(formats),
        "flags": (compressed in (True, b"\1"), directories in (True, b"\1"), buckets),
        "serde": (
            serde,
            library,
            dict(rows("PARAM_KEY PARAM_VALUE", "SERDE_PARAMS", "SERDE_ID", serde_id, "PARAM_KEY")),
        ),
        "columns": rows("COLUMN_NAME TYPE_NAME COMMENT", "COLUMNS_V2", "CD_ID", cd_id),
        "of the descriptor": dict(rows("PARAM_KEY PARAM_VALUE", "SD_PARAMS", order="PARAM_KEY")),
        "buckets": [name for (name,) in rows("BUCKET_COL_NAME", "BUCKETING_COLS")],
        "sorted": rows("COLUMN_NAME ORDER", "SORT_COLS"),
        "skewed": ([name for (name,) in rows("SKEWED_COL_NAME", "SKEWED_COL_NAMES")], list(values.values())),
    }


def test_what_catalogs_of_data_select(catalog: Filled) -> None:
    """OpenMetadata asks for names, columns and comments, DataHub for columns with places and for parameters."""
    columns = """
        WITH listed AS (
            SELECT t."TBL_ID" AS id, c."COLUMN_NAME" AS name, c."TYPE_NAME" AS kind, 0 AS part,
                c."INTEGER_IDX" AS place, s."LOCATION" AS location
            FROM "COLUMNS_V2" c JOIN "CDS" x ON x."CD_ID" = c."CD_ID" JOIN "SDS" s ON s."CD_ID" = x."CD_ID"
            JOIN "TBLS" t ON t."SD_ID" = s."SD_ID" AND t."TBL_TYPE" IN ('EXTERNAL_TABLE', 'MANAGED_TABLE')
            UNION
            SELECT t."TBL_ID", k."PKEY_NAME", k."PKEY_TYPE", 1, k."INTEGER_IDX", s."LOCATION"
            FROM "TBLS" t JOIN "PARTITION_KEYS" k ON k."TBL_ID" = t."TBL_ID" JOIN "SDS" s ON s."SD_ID" = t."SD_ID")
        SELECT listed.name, kind FROM listed JOIN "TBLS" t ON t."TBL_ID" = id JOIN "DBS" d ON d."DB_ID" = t."DB_ID"
        WHERE d."NAME" = 'sales' AND t."TBL_NAME" = 'orders' AND location LIKE '%/orders' ORDER BY part, place"""
    assert catalog.rows(columns) == [("id", "bigint"), ("note", "string"), ("ds", "string"), ("hr", "int")]
    comments = """
        SELECT d."NAME", t."TBL_NAME", p."PARAM_VALUE" FROM "DBS" d JOIN "TBLS" t ON t."DB_ID" = d."DB_ID"
        LEFT JOIN "TABLE_PARAMS" p ON p."TBL_ID" = t."TBL_ID" AND p."PARAM_KEY" = 'comment'
        WHERE (t."TBL_TYPE" <> 'VIRTUAL_VIEW' OR t."TBL_TYPE" IS NULL) AND d."NAME" IN ('stock', 'everything')"""
    found = {(database, name): comment for database, name, comment in catalog.rows(comments)}
    assert found["everything", "rows"] == "ACID"
    assert found["stock", "items"] is None
    assert ("everything", "seen") not in found
    views = """SELECT "TBL_NAME", "VIEW_ORIGINAL_TEXT" FROM "TBLS" WHERE "VIEW_EXPANDED_TEXT" LIKE '%`wide`.`id`%'"""
    assert catalog.rows(views) == [("seen", "select * from wide")]
    assert catalog.rows('SELECT "SCHEMA_VERSION" FROM "VERSION"') == [("3.1.0",)]
    catalogs = 'SELECT d."CTLG_NAME", d."NAME" FROM "DBS" d JOIN "CTLGS" c ON c."NAME" = d."CTLG_NAME" ORDER BY 1, 2'
    assert catalog.rows(catalogs) == [*(("hive", name) for name in DATABASES), ("other", "default"), ("other", "sales")]


def test_functions_constraints_grants_and_statistics(catalog: Filled) -> None:
    functions = """
        SELECT f."FUNC_NAME", f."CLASS_NAME", r."RESOURCE_TYPE", r."RESOURCE_URI" FROM "FUNCS" f
        LEFT JOIN "FUNC_RU" r ON r."FUNC_ID" = f."FUNC_ID" ORDER BY f."FUNC_ID", r."INTEGER_IDX" """
    assert catalog.rows(functions) == [
        ("twice", "org.example.Twice", None, None),
        ("twofold", "org.example.Twofold", 1, "file:/a.jar"),
        ("twofold", "org.example.Twofold", 2, "file:/b"),
    ]
    constraints = """
        SELECT k."CONSTRAINT_NAME", k."CONSTRAINT_TYPE", k."ENABLE_VALIDATE_RELY", p."TBL_NAME", c."COLUMN_NAME",
            h."TBL_NAME", k."POSITION" FROM "KEY_CONSTRAINTS" k
        JOIN "TBLS" p ON p."TBL_ID" = k."PARENT_TBL_ID" LEFT JOIN "TBLS" h ON h."TBL_ID" = k."CHILD_TBL_ID"
        JOIN "COLUMNS_V2" c ON c."CD_ID" = k."PARENT_CD_ID" AND c."INTEGER_IDX" = k."PARENT_INTEGER_IDX"
        ORDER BY k."CONSTRAINT_TYPE" """
    assert catalog.rows(constraints) == [
        ("pk_wide", 0, 1, "wide", "id", None, 1),
        ("fk_outside", 1, 1, "wide", "id", "outside", 1),
    ]
    grants = """
        SELECT g."TBL_PRIV", g."PRINCIPAL_NAME", g."PRINCIPAL_TYPE", t."TBL_NAME" FROM "TBL_PRIVS" g
        JOIN "TBLS" t ON t."TBL_ID" = g."TBL_ID" WHERE g."PRINCIPAL_NAME" IN ('reporter', 'readers') ORDER BY 1, 2"""
    assert catalog.rows(grants) == [
        ("DROP", "readers", "ROLE", "wide"),
        ("SELECT", "readers", "ROLE", "wide"),
        ("SELECT", "reporter", "USER", "orders"),
    ]
    statistics = """
        SELECT "COLUMN_NAME", "LONG_LOW_VALUE", "DOUBLE_LOW_VALUE", "NUM_NULLS", "NUM_DISTINCTS", "AVG_COL_LEN",
            "MAX_COL_LEN" FROM "TAB_COL_STATS" ORDER BY "COLUMN_NAME" """
    assert catalog.rows(statistics) == [
        ("id", -3, None, 2, 5, None, None),
        ("s", None, None, 3, 4, 2.5, 9),
        ("x", None, -1.5, 1, 2, None, None),
    ]
    of_partitions = 'SELECT "PARTITION_NAME", "LONG_HIGH_VALUE" FROM "PART_COL_STATS"'
    assert catalog.rows(of_partitions) == [("d=2024-01-01", 9)]
    located = 'SELECT "LOCATION" FROM "SKEWED_COL_VALUE_LOC_MAP"'
    assert set(catalog.rows(located)) == {("file:/elsewhere/skewed",)}


def test_a_null_character_is_a_character(catalog: Filled) -> None:
    """PostgreSQL has no U+0000 in texts, and one in a parameter does not fail the whole query."""
    with catalog.client() as client:
        client.call("create_table", table("nul", storage(("id", "int")), {"n": "a\0\0b\\u0000"}))
        found = catalog.rows("""SELECT "PARAM_VALUE" FROM "TABLE_PARAMS" WHERE "PARAM_KEY" = 'n' ORDER BY 1 DESC""")
        client.call("drop_table", "everything", "nul", True)
    ((value,), *_) = [row for row in found if row[0].startswith("a")]
    assert value in ("a\0\0b\\u0000", "a\ufffd\ufffdb\\u0000")


@pytest.fixture(params=SERVERS)
def database(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """A database of its own, and the name of a schema."""
    url: str = request.getfixturevalue(f"migrated_{request.param}_database")
    schema = f"hive_of_{make_url(url).database}"
    yield url, schema
    engine = create_engine(url)
    with engine.begin() as connection:
        name = f"`{schema}`" if engine.dialect.name == "mariadb" else f'"{schema}" CASCADE'
        connection.exec_driver_sql(f"DROP SCHEMA IF EXISTS {name}")
    engine.dispose()


def test_a_migration_takes_the_views_away_and_makes_them_again(
    database: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, schema = database
    install(url, schema)
    changed = list[str]()

    def step(operations: Operations) -> None:
        connection = operations.connection
        # A column of views cannot be dropped on PostgreSQL, and makes them unusable on MariaDB.
        connection.exec_driver_sql("ALTER TABLE roles DROP COLUMN owner_name")
        connection.exec_driver_sql("ALTER TABLE roles ADD COLUMN owner_name TEXT")
        with pytest.raises(DBAPIError), connection.begin_nested():
            connection.exec_driver_sql(f"SELECT * FROM {schema}.ROLES")
        changed.append("done")

    monkeypatch.setattr(revisions, "_upgrade", upgrade)
    monkeypatch.setitem(steps.STEPS, "9999", step)
    monkeypatch.setattr(revisions, "REVISION", "9999")
    engine = create_engine(url)
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.exec_driver_sql(f'CREATE ROLE "Reader of {schema}"')
            connection.exec_driver_sql(f'GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO "Reader of {schema}"')
    migrate(url)
    assert changed == ["done"]
    with engine.begin() as connection:
        quote = engine.dialect.identifier_preparer.quote
        query = f"SELECT COUNT(*) FROM {schema}.{quote('ROLES')}"
        assert connection.exec_driver_sql(query).scalar() == 0
        if engine.dialect.name == "postgresql":
            connection.exec_driver_sql(f'GRANT USAGE ON SCHEMA {schema} TO "Reader of {schema}"')
            connection.exec_driver_sql(f'SET ROLE "Reader of {schema}"')
            assert connection.exec_driver_sql(query).scalar() == 0
            connection.exec_driver_sql("RESET ROLE")
            connection.exec_driver_sql(f'DROP OWNED BY "Reader of {schema}"')
            connection.exec_driver_sql(f'DROP ROLE "Reader of {schema}"')
    engine.dispose()


def test_only_schemas_of_views_are_touched(database: tuple[str, str]) -> None:
    url, schema = database
    with pytest.raises(StoreError, match=f"schema {schema} has no views of this database"):
        remove(url, schema)
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {schema}")
        connection.exec_driver_sql(f"CREATE TABLE {schema}.mine (id INTEGER)")
    with pytest.raises(StoreError, match=f"schema {schema} is there and has no views of this database"):
        install(url, schema)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DROP TABLE {schema}.mine")
        connection.exec_driver_sql(f"DROP SCHEMA {schema}")
    assert install(url, schema) == install(url, schema) > 30
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE TABLE {schema}.mine (id INTEGER)")
    with pytest.raises(StoreError, match=f"schema {schema} also has mine; remove what others made first"):
        remove(url, schema)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DROP TABLE {schema}.mine")
    remove(url, schema)
    with pytest.raises(StoreError, match="has no views"):
        remove(url, schema)
    engine.dispose()


@pytest.mark.postgres
def test_views_that_others_made_of_ours_are_not_dropped(migrated_postgres_database: str) -> None:
    install(migrated_postgres_database, "hive")
    engine = create_engine(migrated_postgres_database)
    with engine.begin() as connection:
        connection.exec_driver_sql('CREATE VIEW mine AS SELECT "NAME" FROM hive."DBS"')
    with pytest.raises(StoreError, match="views in schema hive cannot be dropped; drop what others made of them first"):
        install(migrated_postgres_database, "hive")
    with engine.begin() as connection:
        assert connection.exec_driver_sql("SELECT COUNT(*) FROM mine").scalar() == 0
    engine.dispose()


@pytest.mark.postgres
def test_rights_on_views_are_the_same_after_the_views_are_made_again(migrated_postgres_database: str) -> None:
    url = migrated_postgres_database
    install(url, "hive")
    reader, analyst = (f'"{name} 100% of {make_url(url).database}"' for name in ("Reader", "Analyst"))
    engine = create_engine(url, isolation_level="AUTOCOMMIT", execution_options={"no_parameters": True})
    with engine.connect() as connection:
        run = connection.exec_driver_sql
        for statement in (
            f"CREATE ROLE {reader}; CREATE ROLE {analyst}; GRANT USAGE, CREATE ON SCHEMA hive TO {analyst}",
            f'GRANT SELECT ON hive."DBS" TO {reader} WITH GRANT OPTION; GRANT SELECT ON hive."ROLES" TO PUBLIC',
            f'GRANT SELECT ("TBL_ID", "TBL_NAME") ON hive."TBLS" TO {analyst}',
            f"SET ROLE {analyst}; CREATE TABLE hive.mine (id INTEGER); GRANT SELECT ON hive.mine TO {reader}",
            "RESET ROLE",
        ):
            run(statement)
        query = (
            "SELECT relname, attname, CAST(relacl AS text), CAST(attacl AS text) FROM pg_class"
            " JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0"
            " WHERE relnamespace = CAST('hive' AS regnamespace) ORDER BY 1, 2"
        )
        before = run(query).all()
        assert {row.relname for row in before if row.relacl or row.attacl} == {"DBS", "ROLES", "TBLS", "mine"}
        install(url, "hive")
        assert run(query).all() == before
        run(f"DROP OWNED BY {reader}, {analyst}; DROP ROLE {reader}, {analyst}")
    engine.dispose()


@pytest.mark.postgres
def test_an_old_schema_has_no_views_yet(migrated_postgres_database: str) -> None:
    engine = create_engine(migrated_postgres_database)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    engine.dispose()
    with pytest.raises(StoreError, match="run `hms-gateway migrate` first"):
        install(migrated_postgres_database, "hive")
    assert REVISION > "0001"


@pytest.mark.parametrize("schema", ["", 'a"b', "a b", "1a", "x" * 64])
def test_a_name_that_needs_quotes_is_refused(schema: str) -> None:
    with pytest.raises(StoreError, match="is not a name of ASCII letters"):
        install("postgresql+psycopg://nobody@/nothing", schema)


def test_sqlite_has_no_views(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="need PostgreSQL or MariaDB"):
        install(f"sqlite:///{tmp_path / 'new.db'}", "hive")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.whole
@pytest.mark.java
@pytest.mark.parametrize("kind", SERVERS)
def test_a_real_metastore_reads_the_views_as_the_gateway_answers(kind: str, tmp_path: Path) -> None:
    if not DRIVERS[kind][1].exists():
        pytest.skip(f"no JDBC driver {DRIVERS[kind][1]}")
    port = free_port()
    server = PrivatePostgres(port) if kind == "postgres" else PrivateMariadb(port=port)
    try:
        server.start()
        url = server.url()
        if isinstance(server, PrivateMariadb):
            server.administer("CREATE DATABASE hms")
            url = server.url("hms")
        migrate(url)
        with filled(url, "hive", tmp_path) as found:
            peer = RealMetastore(
                tmp_path / "peer", database=read_only(found, kind, port), notifies=False, settings=READ_ONLY
            )
            with peer, connected(found) as client, connected(peer) as other:
                ours, theirs = dump(client), dump(other)
    except PeerUnavailable as reason:
        pytest.skip(str(reason))
    finally:
        server.delete()
    assert len(ours) > 40
    # MariaDB has no infinite number.
    assert set(differing(ours, theirs)) == ({"everything.counted x"} if kind == "mariadb" else set())


def read_only(catalog: Filled, kind: str, port: int) -> HiveDatabase:
    """The database for an account that may read the views and nothing else, as docs/leaving.md has it."""
    for statement in GRANTS[kind]:
        catalog.connection.exec_driver_sql(statement)
    return HiveDatabase(f"jdbc:{JDBC[kind].format(port)}", "reader", DRIVERS[kind])
