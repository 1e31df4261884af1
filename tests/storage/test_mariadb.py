"""What is different on MariaDB: its texts, its limits, its URLs, and that it cannot take a half-made schema back."""

import os
import tempfile
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pymysql
import pytest
import trustme
from sqlalchemy import func, insert, make_url, select
from sqlalchemy.dialects.mysql.base import MySQLDialect

from hms_gateway.catalog.types import TypeRows
from hms_gateway.metastore.ports.store import (
    Event,
    Selection,
    StoredPartition,
    StoreError,
    StoreUnavailable,
    Transaction,
    UnstorableText,
)
from hms_gateway.rpc.structs import Type
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.dialects import mysql, postgres
from hms_gateway.storage.dialects.mysql import PagedRows
from hms_gateway.storage.migrations.revisions import migrate, revision_of
from hms_gateway.storage.schema.catalog import (
    DROPPED_TABLES,
    KEY_COLUMN_COUNT,
    KEY_COLUMNS,
    NAME_BYTES_MAX,
    OF_PARTITIONED,
    PARTITIONS,
    TYPES,
)
from hms_gateway.storage.schema.column_types import DATABASE_CHARACTERS, NAME_CHARACTERS, TABLE_CHARACTERS
from hms_gateway.storage.schema.txn import LOCKS, TABLE_WRITE_IDS
from hms_gateway.storage.sql.filter_sql import has_id_among, is_among
from hms_gateway.storage.txn.state import object_columns
from hms_gateway.storage.writing.store import SqlStore, open_store
from hms_gateway.txn.rules.names import Target
from tests.contract.objects import create, keys, names, table
from tests.storage.dialects.test_version_watch import asked
from tests.support.patience import PATIENCE_SECONDS
from tests.support.private_mariadb import MariadbUnavailable, PrivateMariadb
from tests.support.server import free_port

pytestmark = pytest.mark.mariadb

EVENT = Event("X", "d", None, "{}")
WIDE = "\N{GRINNING FACE}"


def opened(url: str) -> SqlStore:
    return open_store(url, SystemClock(), Limits())


@pytest.fixture
def store(fresh_mariadb_database: str) -> Iterator[SqlStore]:
    migrate(fresh_mariadb_database)
    store = opened(fresh_mariadb_database)
    yield store
    store.close()


def append(transaction: Transaction) -> int:
    return transaction.append_event(EVENT)


def execute(store: SqlStore, statement: Any, *values: Any) -> Any:
    return store.write(lambda tx: tx._connection.execute(statement, *values))  # type: ignore[attr-defined]


# Texts.


def test_names_are_told_apart_and_ordered_by_code_points(store: SqlStore) -> None:
    names = [
        "a",
        "a ",
        "a  ",
        "A",
        "á",
        "a\u0301",
        "ß",
        "ss",
        "\uffee",
        WIDE,
        "",
        " ",
        "a\t",
        "\\",
        "a%",
        "'",
        "0",
        "/",
    ]
    execute(store, insert(TYPES), [{"name": name} for name in names])

    def found(condition: Any) -> list[str]:
        return store.write(lambda tx: list(tx._connection.scalars(select(TYPES.c.name).where(condition))))  # type: ignore[attr-defined]

    assert all(found(TYPES.c.name == name) == [name] for name in names)
    in_order = store.write(lambda tx: list(tx._connection.scalars(select(TYPES.c.name).order_by(TYPES.c.name))))  # type: ignore[attr-defined]
    assert in_order == sorted(names)
    for low, high in pairwise(sorted(names)):
        assert found((TYPES.c.name > low) & (TYPES.c.name <= high)) == [high]
    assert found(TYPES.c.name.like("a!%", escape="!")) == ["a%"]
    assert found(TYPES.c.name.like("\\", escape="!")) == ["\\"]
    assert found(TYPES.c.name.like("_ ", escape="!")) == ["a "]


def test_every_text_has_a_collation_that_compares_code_points(fresh_mariadb_database: str) -> None:
    migrate(fresh_mariadb_database)
    name = make_url(fresh_mariadb_database).database
    query = (
        "SELECT DISTINCT collation_name FROM information_schema.columns WHERE table_schema = %s"
        " AND collation_name IS NOT NULL AND table_name <> 'alembic_version'"
    )
    with connected(fresh_mariadb_database) as connection, connection.cursor() as cursor:
        cursor.execute(query, [name])
        assert cursor.fetchall() == (("utf8mb4_nopad_bin",),)


def test_the_longest_names_have_room_in_every_index(store: SqlStore) -> None:
    longest = Target(WIDE * DATABASE_CHARACTERS, WIDE * TABLE_CHARACTERS, WIDE * (NAME_BYTES_MAX // 4))
    columns = object_columns(longest, mysql.DIALECT)
    texts = dict.fromkeys(("user_name", "host_name", "agent_info"), "x")
    numbers = dict.fromkeys(("component_number", "txn_id", "strength", "last_heartbeat_ms"), 1)
    execute(store, insert(LOCKS), {**columns, **texts, **numbers, "lock_id": 1, "is_acquired": 1, "shares_writes": 0})
    del columns["partition_name"]
    execute(store, insert(TABLE_WRITE_IDS), {**columns, "last_write_id": 1})


@pytest.mark.parametrize(
    "target",
    [Target("d" * 129), Target("d", "t" * 257), Target("d", "t", "p" * 701)],
    ids=["database", "table", "part"],
)
def test_longer_names_are_refused_before_they_spoil_a_batch(target: Target) -> None:
    with pytest.raises(UnstorableText, match=r"longer than \d+ characters"):
        object_columns(target, mysql.DIALECT)
    object_columns(target, postgres.DIALECT)


def test_the_longest_keys_have_room_in_a_row(store: SqlStore, fresh_mariadb_database: str) -> None:
    key = WIDE * (NAME_BYTES_MAX // 4)
    row = dict.fromkeys(("part_name", *(column.name for column in KEY_COLUMNS)), key)
    row |= dict.fromkeys(("part_values", "parameters", "location", "extra"), key)
    row |= dict.fromkeys(("table_id", "create_time", "last_access_time"), "1")
    names, marks = ", ".join(row), ", ".join(["%s"] * len(row))
    with connected(fresh_mariadb_database) as connection, connection.cursor() as cursor:
        cursor.execute("SET foreign_key_checks = 0")
        assert cursor.execute(f"INSERT INTO partitions ({names}) VALUES ({marks})", list(row.values())) == 1


def test_a_partition_gets_a_name_as_long_as_a_name_may_be(store: SqlStore) -> None:
    of = create(store, values=[["a", "1"]])
    (one,) = store.read(lambda snapshot: snapshot.partitions(of, Selection(names=names(store, of))))
    value = "x" * (NAME_CHARACTERS - len("k0=/k1=1"))
    partition = msgspec.structs.replace(one.partition, values=[value, "1"])
    renamed = StoredPartition(one.partition_id, f"k0={value}/k1=1", partition, one.as_stored)
    store.write(lambda tx: tx.update_partitions(of, [renamed]))
    assert names(store, of) == [renamed.name]


def test_a_text_without_room_is_refused_and_changes_nothing(store: SqlStore) -> None:
    with pytest.raises(UnstorableText, match="longer than this database can keep"):
        execute(store, insert(TYPES), {"name": "x" * (NAME_CHARACTERS + 1)})
    assert store.write(append) == 1


# Long lists.


@pytest.mark.parametrize("limit", [None, 0, 1, 6, 7, 8, 14, 203, 209, 210, 500])
def test_rows_come_once_and_in_order_however_many_a_page_has(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, limit: int | None
) -> None:
    monkeypatch.setattr("hms_gateway.storage.dialects.mysql.PAGE_ROWS", 7)
    names = [f"{number:05}" for number in range(0, 420, 2)]
    execute(store, insert(TYPES), [{"name": name} for name in names])

    def read(snapshot: Any) -> list[str]:
        statement = select(TYPES.c.name).where(TYPES.c.name != "00008").order_by(TYPES.c.name)
        rows = PagedRows(snapshot._connection, statement if limit is None else statement.limit(limit), TYPES.c.name)
        found: list[str] = []
        while more := rows.fetchmany(5):
            assert len(more) <= 5
            found += [row[0] for row in more]
            # Of the same snapshot, whatever others do between two pages.
            execute(store, insert(TYPES), {"name": f"{2 * len(found) + 13:05}"})
        rows.close()
        assert list(rows.fetchmany(5)) == []
        return found

    assert store.read(read) == [name for name in names if name != "00008"][:limit]


def test_a_reading_connection_changes_nothing(store: SqlStore) -> None:
    with pytest.raises(StoreUnavailable, match="read-only"):
        store.read(lambda snapshot: snapshot._connection.execute(insert(TYPES), {"name": "x"}))  # type: ignore[attr-defined]


# Lists and drops.


def test_a_list_is_one_parameter_and_an_empty_one_has_nothing(store: SqlStore) -> None:
    odd = ["a", "b'", "\\", '"', "%s", WIDE, ") OR (1"]
    execute(store, insert(TYPES), [{"name": name} for name in (*odd, "c")])

    def found(condition: Any) -> list[str]:
        statement = select(TYPES.c.name).where(condition).order_by(TYPES.c.name)
        return store.write(lambda tx: list(tx._connection.scalars(statement)))  # type: ignore[attr-defined]

    assert found(is_among(TYPES.c.name, odd, mysql.DIALECT)) == sorted(odd)
    assert found(~is_among(TYPES.c.name, odd, mysql.DIALECT)) == ["c"]
    assert found(is_among(TYPES.c.name, [], mysql.DIALECT)) == []
    assert len(found(~is_among(TYPES.c.name, [], mysql.DIALECT))) == len(odd) + 1
    assert len(found(has_id_among(TYPES.c.type_id, range(1, 4), mysql.DIALECT))) == 3
    condition = is_among(TYPES.c.name, odd, mysql.DIALECT)
    assert len(condition.compile(dialect=MySQLDialect()).params) == 1


@pytest.mark.parametrize("what", ["table", "database"])
def test_many_partitions_go_after_their_table_some_at_a_time(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(mysql.MysqlDialect, "deleted_with_table_max", 2)
    monkeypatch.setattr("hms_gateway.storage.catalog.databases.PIECE_ROWS", 2)
    monkeypatch.setattr("hms_gateway.storage.writing.store._PIECES_MAX", 1)
    wide = table("wide", partitionKeys=keys(*["string"] * (KEY_COLUMN_COUNT + 1)))
    many = create(store, wide, [[*"abcdefgh", str(number)] for number in range(5)])
    few = create(store, values=[["a", "1"], ["b", "2"]])
    if what == "table":
        for dropped in (many, few):
            store.write(lambda tx, dropped=dropped: tx.delete_table(dropped.table_id))  # type: ignore[misc]
    else:
        store.write(lambda tx: tx.delete_database(few.database_id))
    again = create(store, wide, [[*"abcdefgh", "9"]])
    assert len(names(store, again)) == 1
    left = []
    while rows(store, DROPPED_TABLES):
        left.append(rows(store, PARTITIONS))
        store.delete_dropped()
    assert left == [6, 4, 2]
    assert [rows(store, each) for each in OF_PARTITIONED] == [1, 1, 1]
    store.delete_dropped()
    assert len(names(store, again)) == 1


def rows(store: SqlStore, of: Any) -> int:
    return store.write(lambda tx: tx._connection.scalar(select(func.count()).select_from(of)))  # type: ignore[attr-defined, no-any-return]


# Settings of the server.

ODD = (
    "--sql-mode=ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH",
    "--transaction-isolation=SERIALIZABLE",
    "--character-set-server=latin1",
    "--default-storage-engine=Aria",
    "--default-time-zone=-05:00",
    "--log-bin=binlog",
    "--server-id=1",
)


@pytest.mark.parametrize("own_mariadb", [ODD], indirect=True, ids=["odd"])
def test_settings_of_the_server_change_nothing(own_mariadb: PrivateMariadb) -> None:
    own_mariadb.administer("CREATE DATABASE odd")
    migrate(own_mariadb.url("odd"))
    clock, store = SystemClock(), opened(own_mariadb.url("odd"))
    name = f"\\' {WIDE} \" "
    execute(store, insert(TYPES), {"name": name})
    assert store.read(lambda snapshot: TypeRows(snapshot).find(name)) == Type(name)
    before = clock.milliseconds()
    now = store.write(lambda tx: tx.txns.now_ms())
    assert before - 1_000 <= now <= clock.milliseconds() + 1_000
    assert store.write(append) == store.version() == 1
    store.close()
    with own_mariadb.connect("information_schema") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT engine FROM tables WHERE table_schema = 'odd'")
        assert cursor.fetchall() == (("InnoDB",),)


# Limits of the server.


@pytest.mark.parametrize("own_mariadb", [("--max-allowed-packet=1M",)], indirect=True, ids=["1M"])
def test_a_change_larger_than_a_packet_is_refused_with_the_setting_to_change(own_mariadb: PrivateMariadb) -> None:
    own_mariadb.administer("CREATE DATABASE small")
    migrate(own_mariadb.url("small"))
    store = opened(own_mariadb.url("small"))
    for length in (2**20, 5 * 2**20):
        with pytest.raises(StoreError, match="max_allowed_packet") as caught:
            execute(store, insert(TYPES), {"name": "x", "extra": "y" * length})
        assert not isinstance(caught.value, StoreUnavailable)
    execute(store, insert(TYPES), {"name": "x", "extra": "y" * (2**20 - 1_000)})
    store.close()


def test_a_unit_of_work_that_loses_a_deadlock_is_run_again(store: SqlStore, fresh_mariadb_database: str) -> None:
    execute(store, insert(TYPES), {"name": "fought over"})
    runs = []
    with connected(fresh_mariadb_database, autocommit=False) as rival, rival.cursor() as cursor:
        # The rival has changed more, so it is not the one that is sacrificed.
        cursor.executemany("INSERT INTO types (name) VALUES (%s)", [(str(number),) for number in range(100)])
        cursor.execute("UPDATE types SET extra = 'rival' WHERE name = 'fought over'")
        waiting = threading.Thread(target=wait_for_the_catalog, args=(rival, cursor))

        def work(transaction: Any) -> int:
            runs.append(1)
            if len(runs) == 1:
                waiting.start()
            transaction._connection.exec_driver_sql("UPDATE types SET extra = 'ours' WHERE name = 'fought over'")
            return len(runs)

        assert store.write(work) == 2
        waiting.join()
    extra = select(TYPES.c.extra).where(TYPES.c.name == "fought over")
    assert store.write(lambda tx: tx._connection.scalar(extra)) == "ours"  # type: ignore[attr-defined]


def wait_for_the_catalog(rival: Any, cursor: Any) -> None:
    cursor.execute("SELECT last_event_id FROM catalog FOR UPDATE")
    rival.commit()


def test_a_process_that_hangs_in_a_unit_of_work_loses_the_lock(
    fresh_mariadb_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(fresh_mariadb_database)
    monkeypatch.setattr("hms_gateway.storage.dialects.mysql_engines.STUCK_SECONDS_MAX", 1)
    hanging, other = opened(fresh_mariadb_database), opened(fresh_mariadb_database)
    begun, may_go_on = threading.Event(), threading.Event()

    def hang(transaction: Transaction) -> int:
        begun.set()
        assert may_go_on.wait(PATIENCE_SECONDS)
        return append(transaction)

    thread = threading.Thread(target=lambda: hanging.write(hang))
    thread.start()
    assert begun.wait(PATIENCE_SECONDS)
    assert other.write(append) == 1
    may_go_on.set()
    thread.join()
    assert other.version() == 2
    hanging.close()
    other.close()


def test_a_user_with_the_rights_the_manual_names_needs_no_more(mariadb_server: PrivateMariadb) -> None:
    mariadb_server.administer(
        "CREATE DATABASE managed",
        "CREATE USER 'hms'@'localhost' IDENTIFIED BY 'p@ss/word'",
        "GRANT ALL PRIVILEGES ON managed.* TO 'hms'@'localhost'",
    )
    url = make_url(mariadb_server.url("managed")).set(username="hms", password="p@ss/word")
    text = url.render_as_string(hide_password=False)
    migrate(text)
    store = opened(text)
    assert store.write(append) == 1
    try:
        mariadb_server.administer("SET GLOBAL read_only = 1")
        with pytest.raises(StoreUnavailable, match="read-only"):
            store.write(append)
    finally:
        mariadb_server.administer("SET GLOBAL read_only = 0")
    assert store.write(append) == 2
    store.close()
    with pytest.raises(StoreUnavailable, match="refuses the gateway's login") as caught:
        opened(url.set(password="wrong").render_as_string(hide_password=False))
    assert "wrong" not in caught.value.detail
    assert "Access denied" in caught.value.detail


# The schema.


def test_several_that_migrate_at_once_wait_for_each_other(
    fresh_mariadb_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hms_gateway.storage.dialects.mysql.BUSY_SECONDS_MAX", PATIENCE_SECONDS)
    problems: list[Exception] = []

    def run() -> None:
        try:
            migrate(fresh_mariadb_database)
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    opened(fresh_mariadb_database).close()


def test_a_migration_that_fails_on_the_way_says_what_to_do(fresh_mariadb_database: str) -> None:
    with connected(fresh_mariadb_database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE notifications (x INT)")
    for _ in range(2):
        with pytest.raises(StoreError, match="restore the database, or drop and create it"):
            migrate(fresh_mariadb_database)
    with pytest.raises(StoreError):
        opened(fresh_mariadb_database)


# URLs.


@pytest.mark.parametrize("kind", ["mariadb+pymysql", "mariadb", "mysql+pymysql", "mysql"])
def test_every_spelling_finds_out_what_the_server_is(fresh_mariadb_database: str, kind: str) -> None:
    url = fresh_mariadb_database.replace("mariadb+pymysql", kind)
    migrate(url)
    assert revision_of(url) == revision_of(fresh_mariadb_database)
    store = opened(url)
    assert (store._writing.dialect.name, store._reading.dialect.name) == ("mariadb", "mariadb")
    assert store.write(append) == store.version() == 1
    watch = store.version_watch()
    assert watch is not None
    assert asked(watch) == 1
    watch.close()
    store.close()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("&nonsense=1", "nonsense"),
        ("&ssl_verify_cert=perhaps", "ssl_verify_cert of the database URL has to be true or false"),
        ("&ssl_capath=/etc/ssl/certs", "has the option ssl_capath; those of TLS are ssl_ca, "),
        ("&ssl_check_hostname=true", "has the option ssl_check_hostname"),
        ("&connect_timeout=soon", "option that cannot be used"),
        ("&ssl_ca=/nonexistent.pem", "TLS files of the database URL cannot be used: .*No such file"),
    ],
)
def test_options_that_cannot_be_used_are_named(fresh_mariadb_database: str, change: str, words: str) -> None:
    with pytest.raises(StoreError, match=words):
        opened(fresh_mariadb_database + change)


def test_a_url_without_a_database_is_refused(mariadb_server: PrivateMariadb) -> None:
    with pytest.raises(StoreError, match="names no database"):
        opened("mariadb+pymysql://root@localhost")


def test_a_missing_driver_is_told_how_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hms_gateway.storage.dialects.mysql.find_spec", lambda name: None)
    with pytest.raises(StoreError, match=r"pip install 'hms-gateway\[mysql\]'"):
        opened("mariadb+pymysql://root@localhost/x")


def test_a_server_that_is_too_old_is_refused(fresh_mariadb_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hms_gateway.storage.dialects.mysql_engines.OLDEST_MARIADB", (99, 1))
    with pytest.raises(StoreError, match=r"MariaDB 1\d[.\d]+ is too old: 99\.1 or newer is needed"):
        migrate(fresh_mariadb_database)


# TLS.


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def tls_folder() -> Iterator[Path]:
    """For a server of another account, to which pytest's folders are closed whenever a run of tests begins."""
    with tempfile.TemporaryDirectory(prefix="hms-tls-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def tls_server(authority: trustme.CA, tls_folder: Path) -> Iterator[tuple[PrivateMariadb, int]]:
    certificate = authority.issue_cert("localhost", "127.0.0.1")
    certificate.private_key_and_cert_chain_pem.write_to_path(str(tls_folder / "server.pem"))
    os.chmod(tls_folder / "server.pem", 0o644)
    port = free_port()
    options = (f"--ssl-cert={tls_folder / 'server.pem'}", f"--ssl-key={tls_folder / 'server.pem'}")
    try:
        server = PrivateMariadb(*options, port=port)
    except MariadbUnavailable as reason:
        pytest.skip(f"no MariaDB: {reason}")
    try:
        server.start()
        server.administer(
            "CREATE DATABASE tls",
            "CREATE USER 'hms'@'127.0.0.1' IDENTIFIED BY 'secret' REQUIRE SSL",
            "GRANT ALL PRIVILEGES ON tls.* TO 'hms'@'127.0.0.1'",
        )
        migrate(server.url("tls"))
        yield server, port
    finally:
        server.delete()


def tls_url(port: int, *options: str) -> str:
    return f"mariadb+pymysql://hms:secret@127.0.0.1:{port}/tls?{'&'.join(options)}"


def test_a_server_of_the_authority_in_the_url_is_taken(
    tls_server: tuple[PrivateMariadb, int], authority: trustme.CA, tmp_path: Path
) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    store = opened(tls_url(tls_server[1], f"ssl_ca={tmp_path / 'ca.pem'}"))
    version = store.write(append)
    watch = store.version_watch()
    assert watch is not None
    assert asked(watch) == asked(watch) == version
    assert store.write(append) == asked(watch)
    watch.close()
    store.close()


def test_a_server_of_another_authority_is_refused(tls_server: tuple[PrivateMariadb, int], tmp_path: Path) -> None:
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "other.pem"))
    for options in ([f"ssl_ca={tmp_path / 'other.pem'}"], ["ssl_verify_cert=true"], ["ssl_verify_identity=true"]):
        with pytest.raises(StoreUnavailable, match="cannot be reached") as caught:
            opened(tls_url(tls_server[1], *options))
        assert "CERTIFICATE_VERIFY_FAILED" in caught.value.detail
    opened(tls_url(tls_server[1], "ssl_verify_cert=false")).close()


def test_without_options_tls_is_used_where_the_server_has_it(tls_server: tuple[PrivateMariadb, int]) -> None:
    store = opened(tls_url(tls_server[1]))
    assert store.write(append) > 0
    store.close()
    with pytest.raises(StoreUnavailable):
        opened(tls_url(tls_server[1], "ssl_disabled=true"))


def test_a_server_without_tls_is_refused_where_the_url_asks_for_it(
    authority: trustme.CA, fresh_mariadb_database: str, tmp_path: Path
) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with pytest.raises(StoreUnavailable) as caught:
        opened(f"{fresh_mariadb_database}&ssl_ca={tmp_path / 'ca.pem'}")
    assert "SSL" in caught.value.detail


def connected(url: str, *, autocommit: bool = True) -> "pymysql.Connection[pymysql.cursors.Cursor]":
    parsed = make_url(url)
    socket = str(parsed.query["unix_socket"])
    return pymysql.connect(unix_socket=socket, user="root", database=parsed.database, autocommit=autocommit)
