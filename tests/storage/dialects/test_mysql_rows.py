"""Rows come as PyMySQL itself would read them, and what is not a row ends a query."""

from typing import Any

import pymysql
import pytest
from pymysql.connections import MySQLResult
from sqlalchemy import Engine, text

from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.dialects import mysql_engines
from hms_gateway.storage.dialects.mysql_engines import RowsInOneLoop
from hms_gateway.storage.writing.store import SqlStore, open_store

pytestmark = pytest.mark.mariadb

# Each length of a value takes one byte, three, four or nine; more than 16 MiB takes two packets.
QUERIES = [
    "SELECT 1, NULL, 'text', '', x'00ff', CAST('é😀' AS CHAR), 2.5, CURRENT_DATE, 1e300",
    "SELECT REPEAT('a', 250), REPEAT('b', 251), REPEAT('c', 65535), REPEAT('d', 65536)",
    "SELECT REPEAT('e', 0x1000000), 7",
    "SELECT seq, IF(MOD(seq, 3), seq, NULL), REPEAT('x', MOD(seq, 300)) FROM seq_1_to_2000",
    "SELECT 1 WHERE 0",
]


@pytest.fixture
def store(migrated_mariadb_database: str):
    store = open_store(migrated_mariadb_database, SystemClock(), Limits())
    yield store
    store.close()


def rows(engine: Engine, query: str) -> list[tuple[object, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(query)]


def test_rows_are_those_that_the_driver_reads(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with store._writing.connect() as connection:
        connection.execute(text("SET GLOBAL max_allowed_packet = 67108864"))
    store._reading.dispose()
    ours = [rows(store._reading, query) for query in QUERIES]
    monkeypatch.setattr(mysql_engines, "RowsInOneLoop", MySQLResult)
    assert ours == [rows(store._reading, query) for query in QUERIES]
    assert len(ours[3]) == 2000


def test_an_error_between_rows_is_raised_and_the_connection_goes_on(store: SqlStore) -> None:
    with store._reading.connect() as connection:
        with pytest.raises(Exception, match="out of range"):
            connection.exec_driver_sql(
                "SELECT (SELECT seq FROM seq_1_to_2 WHERE seq >= s.seq - 999) FROM seq_1_to_2000 s"
            )
        assert connection.exec_driver_sql("SELECT 5").scalar() == 5


@pytest.mark.parametrize("sent", [b"", b"\x01\x00\x00", b"\x05\x00\x00\x03ab", b"\x01\x00\x00\x09\x00"])
def test_what_is_cut_or_out_of_order_is_a_lost_connection(sent: bytes) -> None:
    class Lost:
        encoding, _next_seq_id, closed = "utf8", 3, False

        class _rfile:
            rest = sent

            @classmethod
            def read(cls, count: int) -> bytes:
                found, cls.rest = cls.rest[:count], cls.rest[count:]
                return found

        def _force_close(self) -> None:
            self.closed = True

    connection = Lost()
    result: Any = RowsInOneLoop(connection)
    result.converters = []
    with pytest.raises(pymysql.err.OperationalError, match="Lost connection"):
        result._read_rowdata_packet()
    assert connection.closed
