"""Fixtures and settings for the whole test run."""

import gc
import inspect
import itertools
import os
import re
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import psycopg
import pytest
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from hms_gateway.storage.migrations.revisions import migrate
from tests.bridge.bridge_process import BridgeProcess
from tests.oracle.peer import PeerUnavailable, RealMetastore
from tests.spark.spark_session import one_session, why_not
from tests.support import spark_variables
from tests.support.kept_logging import kept_logging
from tests.support.kept_store import Empty, close_kept_file, empty_mariadb, empty_postgres
from tests.support.merged_cases import merged
from tests.support.patience import PATIENCE_SECONDS
from tests.support.private_bucket import BucketUnavailable, PrivateBucket
from tests.support.private_mariadb import MariadbCopy, MariadbUnavailable, PrivateMariadb
from tests.support.private_postgres import PostgresUnavailable, PrivatePostgres
from tests.support.quick_hashes import hash_quickly
from tests.support.sample import FAST, WHOLE, sample
from tests.support.server import GatewayServer, free_port
from tests.support.shared_authorities import share_authorities
from tests.support.shared_schema import share_schema
from tests.support.shared_statements import share_statements
from tests.support.turns import Scheduling, place, tell_less
from tests.support.warm_program import stop_warm_programs

TERMINAL_VARIABLES = ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
# Names in a module whose tests start a gateway or a bridge, each of which takes a second.
OUR_PROGRAMS = {"GatewayServer", "BridgeProcess"}
# What `make test-fast` has no test of. A file or folder that has only such ones is not even read.
NOT_FAST = {
    *("slow", "postgres", "mariadb", "node", "browser", "curl", "java", "spark", "iceberg", "kerberos", "ldap", "otel"),
    "s3",
}
NOTHING_FAST = re.compile(
    rf"^pytestmark = .*mark\.({'|'.join(NOT_FAST)})"
    rf"|^from tests\.(support\.server|bridge\.bridge_process) import .*({'|'.join(OUR_PROGRAMS)})",
    re.MULTILINE,
)
# Python's own (700, 10, 10) spend a quarter of the time of most tests on collections that find nothing.
COLLECTION_THRESHOLDS = (20_000, 20, 20)

# Fixtures that every test has, which the cases of one may have together.
FOR_EACH_TEST = {"logging_as_before"}

_database_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    tell_less(config)
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    # Commands that came as wheels (node, npm) count as installed, also when pytest was started by its path.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    # What the person at the terminal likes, or has set for a gateway of their own, changes no output of a test.
    for name in [*TERMINAL_VARIABLES, *filter(lambda name: name.startswith("HMS_GATEWAY_"), os.environ)]:
        os.environ.pop(name, None)
    # Our servers are on loopback; somebody's proxy settings must not send a client elsewhere.
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"
    # A busy machine is no bug. An example costs a thousandth of a second before it asks anything.
    hypothesis.settings.register_profile("project", deadline=None, max_examples=sample(30, of=100))
    hypothesis.settings.load_profile("project")
    if not WHOLE:
        # It tries the constants of all our modules, too; to find them takes a second of each process.
        none = Constants()
        setattr(providers, "_get_local_constants", lambda: none)  # noqa: B010
    # Nor are five seconds, after which httpx gives up by itself.
    for step in ("connect", "read", "write", "pool"):
        setattr(httpx._config.DEFAULT_TIMEOUT_CONFIG, step, PATIENCE_SECONDS)
    os.environ.update(spark_variables.VARIABLES)
    share_statements()
    share_schema()
    share_authorities()
    hash_quickly()


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """A test that configures logging does not change where the next ones write: its stream may be closed by then."""
    with kept_logging():
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    config.option.loadscopereorder = False
    return Scheduling(config, log)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    if not FAST:
        return None
    files = collection_path.rglob("test_*.py") if collection_path.is_dir() else [collection_path]
    return True if all(NOTHING_FAST.search(file.read_text("utf-8")) for file in files) else None


def _merges_cases(config: pytest.Config) -> bool:
    """A process of several, which nobody has asked for a case by its name."""
    is_asked = bool(config.option.keyword) or any("[" in one for one in config.args)
    return FAST or (hasattr(config, "workerinput") and not WHOLE and not is_asked)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> Any:
    if not _merges_cases(collector.config) or not isinstance(collector, pytest.Module) or not inspect.isfunction(obj):
        return None
    fixtures = collector.session._fixturemanager

    def is_shared(name: str) -> bool:
        found = fixtures.getfixturedefs(name, collector)
        return bool(found) and found[-1].scope != "function"

    marks = {mark.name for mark in (*collector.own_markers, *getattr(obj, "pytestmark", ()))}
    # Cases that talk to programs take seconds each.
    is_alike = marks.isdisjoint(NOT_FAST - {"slow"}) and all(
        name in FOR_EACH_TEST or is_shared(name) for name in fixtures._getautousenames(collector)
    )
    test = merged(obj, is_shared) if is_alike and collector.istestfunction(obj, name) else None
    if test is None:
        return None
    setattr(collector.obj, name, test)
    return collector.ihook.pytest_pycollect_makeitem(collector=collector, name=name, obj=test)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: place(item.nodeid))
    for item in items:
        module = item.getparent(pytest.Module)
        if module is not None and not OUR_PROGRAMS.isdisjoint(vars(module.obj)):
            item.add_marker(pytest.mark.slow)
    left_out = set() if WHOLE else {"whole", *NOT_FAST} if FAST else {"whole"}
    left: list[pytest.Item] = []
    taken: list[pytest.Item] = []
    for item in items:
        (taken if left_out.isdisjoint(mark.name for mark in item.iter_markers()) else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = taken


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say of each room how many tests of the whole have run."""
    if WHOLE:
        terminalreporter.section("passed, by room")
        rooms = Counter(report.nodeid.split("/")[1] for report in terminalreporter.getreports("passed"))
        terminalreporter.write_line(", ".join(f"{room} {count}" for room, count in sorted(rooms.items())))


def pytest_unconfigure() -> None:
    stop_warm_programs()
    close_kept_file()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is read stays to the end: collections of garbage need not look at it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PrivatePostgres]:
    """A running PostgreSQL of our own, shared by the run. Skips where none can be had."""
    yield from _running_postgres()


@pytest.fixture
def own_postgres() -> Iterator[PrivatePostgres]:
    """One for a single test, which may stop it: the shared one has other tests' connections."""
    yield from _running_postgres()


def _running_postgres() -> Iterator[PrivatePostgres]:
    try:
        server = PrivatePostgres()
    except PostgresUnavailable as reason:
        pytest.skip(f"no PostgreSQL: {reason}")
    try:
        server.start()
        yield server
    finally:
        server.delete()


@pytest.fixture(scope="session")
def bucket_server() -> Iterator[PrivateBucket]:
    """A server of S3 with a bucket, shared by the run. Skips where none can be had."""
    try:
        server = PrivateBucket()
    except BucketUnavailable as reason:
        pytest.skip(f"no bucket: {reason}")
    yield server
    server.delete()


@pytest.fixture
def bucket(bucket_server: PrivateBucket) -> Iterator[PrivateBucket]:
    """The same, whose requests fail for one test only."""
    bucket_server.fail()
    yield bucket_server
    bucket_server.fail()


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[PrivateMariadb]:
    """A running MariaDB of our own, shared by the run. Skips where none can be had."""
    yield from _running_mariadb()


@pytest.fixture
def own_mariadb(request: pytest.FixtureRequest) -> Iterator[PrivateMariadb]:
    """One for a single test, which may stop it; with the options that the test's parameter lists.

    On disk: in memory the server maps its log, and a crash takes nothing back.
    """
    yield from _running_mariadb(*getattr(request, "param", ()), parent=Path("/var/tmp"))


def _running_mariadb(*options: str, parent: Path | None = None) -> Iterator[PrivateMariadb]:
    try:
        server = PrivateMariadb(*options, parent=parent)
    except MariadbUnavailable as reason:
        pytest.skip(f"no MariaDB: {reason}")
    try:
        server.start()
        yield server
    finally:
        server.delete()


@pytest.fixture
def fresh_mariadb_database(mariadb_server: PrivateMariadb) -> Iterator[str]:
    """SQLAlchemy URL of a new, empty database that is dropped after the test."""
    yield from _fresh_mariadb_database(mariadb_server)


@pytest.fixture(scope="session")
def mariadb_catalog(mariadb_server: PrivateMariadb) -> MariadbCopy:
    """The tables of a catalog. To make them of their texts takes a third of the time of the migrations."""
    mariadb_server.administer("CREATE DATABASE catalog")
    migrate(mariadb_server.url("catalog"))
    return MariadbCopy(mariadb_server, "catalog")


@pytest.fixture
def migrated_mariadb_database(
    mariadb_server: PrivateMariadb, mariadb_catalog: MariadbCopy, fresh_mariadb_database: str
) -> str:
    """The same with the tables of a catalog."""
    mariadb_catalog.copy_to(mariadb_server.name_of(fresh_mariadb_database))
    return fresh_mariadb_database


@pytest.fixture(scope="module")
def mariadb_database_of_module(mariadb_server: PrivateMariadb, mariadb_catalog: MariadbCopy) -> Iterator[str]:
    """The same for all tests of a module together."""
    for url in _fresh_mariadb_database(mariadb_server):
        mariadb_catalog.copy_to(mariadb_server.name_of(url))
        yield url


@pytest.fixture(scope="session")
def emptied_mariadb(mariadb_server: PrivateMariadb) -> Iterator[tuple[str, Empty]]:
    """The URL of a database with the tables of a catalog that tests share, and what empties it before each."""
    mariadb_server.administer("CREATE DATABASE emptied")
    url = mariadb_server.url("emptied")
    migrate(url)
    with mariadb_server.connect("emptied") as connection, connection.cursor() as cursor:
        yield url, lambda: empty_mariadb(cursor)


@pytest.fixture(
    params=[
        pytest.param("postgres", marks=pytest.mark.postgres),
        pytest.param("mariadb", marks=pytest.mark.mariadb),
    ]
)
def database_server(request: pytest.FixtureRequest) -> PrivatePostgres | PrivateMariadb:
    """The running server of each kind that several gateways may share."""
    server: PrivatePostgres | PrivateMariadb = request.getfixturevalue(f"{request.param}_server")
    return server


@pytest.fixture
def server_database(database_server: PrivatePostgres | PrivateMariadb, request: pytest.FixtureRequest) -> str:
    """SQLAlchemy URL of a new, empty database of `database_server`."""
    kind = "mariadb" if isinstance(database_server, PrivateMariadb) else "postgres"
    url: str = request.getfixturevalue(f"fresh_{kind}_database")
    return url


@pytest.fixture
def migrated_server_database(database_server: PrivatePostgres | PrivateMariadb, request: pytest.FixtureRequest) -> str:
    """The same with the tables of a catalog."""
    kind = "mariadb" if isinstance(database_server, PrivateMariadb) else "postgres"
    url: str = request.getfixturevalue(f"migrated_{kind}_database")
    return url


@pytest.fixture
def server_databases(database_server: PrivatePostgres | PrivateMariadb) -> Iterator[Iterator[str]]:
    """Databases like `server_database`, as many as the test takes."""

    def fresh() -> AbstractContextManager[str]:
        if isinstance(database_server, PrivateMariadb):
            return contextmanager(_fresh_mariadb_database)(database_server)
        return contextmanager(_fresh_database)(database_server)

    with ExitStack() as stack:
        yield (stack.enter_context(fresh()) for _ in itertools.count())


def _fresh_mariadb_database(server: PrivateMariadb) -> Iterator[str]:
    name = f"test_{next(_database_numbers)}"
    server.administer(f"CREATE DATABASE {name}")
    yield server.url(name)
    server.administer(f"DROP DATABASE {name}")


@pytest.fixture(scope="session")
def real_metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealMetastore]:
    """The real metastore 2.3.10, shared by the run. Skips where it cannot run."""
    peer = RealMetastore(tmp_path_factory.mktemp("real") / "metastore")
    try:
        peer.start()
    except PeerUnavailable as reason:
        pytest.skip(f"no real metastore: {reason}")
    yield peer
    peer.stop()


@pytest.fixture(scope="session")
def spark_thrift_port() -> int:
    """The Thrift port of `spark_gateway` itself."""
    return free_port()


@pytest.fixture(scope="session")
def spark_gateway(spark_thrift_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    """The gateway whose tables Spark sees."""
    if reason := why_not():
        pytest.skip(reason)
    settings = {"thrift_port": spark_thrift_port, "locks_implicit": "deny"}
    with GatewayServer(tmp_path_factory.mktemp("spark-gateway") / "var", settings=settings) as running:
        yield running


@pytest.fixture(scope="session")
def spark_bridge(spark_gateway: GatewayServer) -> Iterator[BridgeProcess]:
    with BridgeProcess(spark_gateway) as running:
        yield running


@pytest.fixture(scope="session")
def spark(
    spark_gateway: GatewayServer, spark_bridge: BridgeProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """The one Spark session of the run: its JVM takes seconds to start and to warm up."""
    pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")
    warehouse = spark_gateway.data_dir / "warehouse"
    with one_session(f"thrift://127.0.0.1:{spark_bridge.port}", warehouse, tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="session")
def postgres_url(postgres_server: PrivatePostgres) -> str:
    """SQLAlchemy URL of the maintenance database; tests that store anything want `fresh_postgres_database`."""
    return postgres_server.url()


@pytest.fixture
def fresh_postgres_database(postgres_server: PrivatePostgres) -> Iterator[str]:
    """SQLAlchemy URL of a new, empty database that is dropped after the test."""
    yield from _fresh_database(postgres_server)


@pytest.fixture(scope="session")
def postgres_catalog(postgres_server: PrivatePostgres) -> str:
    """The name of a database with the tables of a catalog. A copy takes a tenth of the time of the migrations."""
    _administer(postgres_server, "CREATE DATABASE catalog")
    migrate(postgres_server.url("catalog"))
    return "catalog"


@pytest.fixture
def migrated_postgres_database(postgres_server: PrivatePostgres, postgres_catalog: str) -> Iterator[str]:
    """A database like `fresh_postgres_database`, with the tables of a catalog."""
    yield from _fresh_database(postgres_server, postgres_catalog)


@pytest.fixture(scope="session")
def emptied_postgres(postgres_server: PrivatePostgres, postgres_catalog: str) -> Iterator[tuple[str, Empty]]:
    """As `emptied_mariadb`."""
    _administer(postgres_server, f"CREATE DATABASE emptied TEMPLATE {postgres_catalog}")
    url = postgres_server.url("emptied")
    # A connection that is kept: the server starts a process for each.
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        yield url, lambda: empty_postgres(connection)


@pytest.fixture(scope="module")
def postgres_database_of_module(postgres_server: PrivatePostgres, postgres_catalog: str) -> Iterator[str]:
    """The same for all tests of a module together."""
    yield from _fresh_database(postgres_server, postgres_catalog)


def _fresh_database(postgres_server: PrivatePostgres, model: str = "template1") -> Iterator[str]:
    name = f"test_{next(_database_numbers)}"
    _administer(postgres_server, f"CREATE DATABASE {name} TEMPLATE {model}")
    yield postgres_server.url(name)
    _administer(postgres_server, f"DROP DATABASE {name} WITH (FORCE)")


def _administer(server: PrivatePostgres, statement: str) -> None:
    with psycopg.connect(server.url().replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(statement)
