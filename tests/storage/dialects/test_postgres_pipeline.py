"""What is sent through the pipeline arrives as it is, all of it, and what went wrong is told apart."""

import select
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    LargeBinary,
    MetaData,
    Table,
    Text,
    bindparam,
    cast,
    insert,
    text,
)
from sqlalchemy import select as select_from

from hms_gateway.metastore.ports.store import StoreUnavailable
from hms_gateway.storage.dialects import parse_url, writing_engine
from hms_gateway.storage.dialects.postgres_pipeline import PostgresPipeline, open_pipeline
from hms_gateway.storage.dialects.statements import ConnectionLost, Rows, Statement, StatementRefused
from tests.storage.test_outage import cut_connections
from tests.support.patience import PATIENCE_SECONDS
from tests.support.private_postgres import PrivatePostgres

pytestmark = pytest.mark.postgres

THINGS = Table(
    "things",
    MetaData(),
    Column("number", BigInteger),
    Column("name", Text),
    Column("is_one", Boolean),
    Column("content", LargeBinary),
)
ADD = insert(THINGS)
ECHO = {type: select_from(cast(bindparam("given"), type)) for type in (BigInteger, Text, Boolean)}
LENGTHS = select_from(text("each, length(each)")).select_from(text("unnest(CAST(:given AS text[])) AS each"))
TEXTS = ["", " ", "NULL", 'quo"te', "back\\slash", '\\"', "{a,b}", "it's", "Straße 🚲", "a\nb\tc", "%s %(x)s :y $1"]


@pytest.fixture
def url(fresh_postgres_database: str) -> str:
    engine = writing_engine(parse_url(fresh_postgres_database))
    THINGS.metadata.create_all(engine)
    engine.dispose()
    return fresh_postgres_database


@pytest.fixture
def pipeline(url: str) -> Iterator[PostgresPipeline]:
    pipeline = connected(url)
    yield pipeline
    pipeline.close()


def connected(url: str) -> PostgresPipeline:
    engine = writing_engine(parse_url(url))
    try:
        return open_pipeline(engine, engine.url)
    finally:
        engine.dispose()


def asked(pipeline: PostgresPipeline, *statements: Statement) -> list[Rows]:
    pipeline.send(statements)
    return answered(pipeline)


def answered(pipeline: PostgresPipeline) -> list[Rows]:
    is_sent = pipeline.flush()
    while True:
        writing: Sequence[int] = [] if is_sent else [pipeline.fileno()]
        ready, can_write, _ = select.select([pipeline.fileno()], writing, [], PATIENCE_SECONDS)
        assert ready or can_write
        if can_write:
            is_sent = pipeline.flush()
        if ready and (rows := pipeline.answers()) is not None:
            return rows


def echo(type: Any, *values: object) -> list[Statement]:
    return [Statement(ECHO[type], {"given": value}) for value in values]


def test_values_come_back_as_they_were_sent(pipeline: PostgresPipeline) -> None:
    for type, values in ((BigInteger, [0, -1, 2**63 - 1, None]), (Boolean, [True, False, None]), (Text, TEXTS)):
        assert asked(pipeline, *echo(type, *values)) == [[[value]] for value in values]


def test_values_of_every_type_are_read_as_psycopg_reads_them(pipeline: PostgresPipeline) -> None:
    columns = text("CAST('\\x00ff' AS bytea), ARRAY[1, NULL], CAST(1.50 AS numeric), CAST('{\"a\": [1]}' AS jsonb)")
    assert asked(pipeline, Statement(select_from(columns), {})) == [
        [[b"\x00\xff", [1, None], Decimal("1.50"), {"a": [1]}]]
    ]


def test_lists_come_as_lists(pipeline: PostgresPipeline) -> None:
    assert asked(pipeline, Statement(LENGTHS, {"given": TEXTS})) == [[[each, len(each)] for each in TEXTS]]
    assert asked(pipeline, Statement(LENGTHS, {"given": []})) == [[]]
    numbers = select_from(bindparam("given", type_=ARRAY(BigInteger)) == bindparam("same", type_=ARRAY(BigInteger)))
    for given in ([], [1], [1, -2, 2**40]):
        assert asked(pipeline, Statement(numbers, {"given": given, "same": list(given)})) == [[[True]]]


def test_rows_of_an_insertion_are_stored_one_by_one(pipeline: PostgresPipeline) -> None:
    rows = [
        {"number": number, "name": name, "is_one": number == 1, "content": bytes(range(256)) * number}
        for number, name in enumerate([*TEXTS, None])
    ]
    partial = [{"number": 100}, {"number": 101}]
    asked(pipeline, Statement(ADD, rows), Statement(ADD, partial))
    (found,) = asked(pipeline, Statement(select_from(text("number, name, is_one FROM things ORDER BY number")), {}))
    assert found == [[row["number"], row["name"], row["is_one"]] for row in rows] + [
        [100, None, None],
        [101, None, None],
    ]
    (contents,) = asked(
        pipeline, Statement(select_from(text("encode(content, 'hex') FROM things ORDER BY number")), {})
    )
    assert [content for (content,) in contents[: len(rows)]] == [bytes(row["content"]).hex() for row in rows]  # type: ignore[call-overload]


def test_more_is_sent_than_the_socket_takes_at_once(pipeline: PostgresPipeline) -> None:
    rows = [{"number": number, "content": b"x" * 1_000_000} for number in range(30)]
    pipeline.send([Statement(ADD, rows)])
    assert not pipeline.flush()
    answered(pipeline)
    assert asked(pipeline, Statement(select_from(text("count(*) FROM things")), {})) == [[[30]]]


def test_a_refused_statement_takes_the_ones_after_it_along(pipeline: PostgresPipeline, url: str) -> None:
    broken = Statement(text("SELECT 1 FROM nowhere"), {})
    with pytest.raises(StatementRefused, match="42P01"):
        asked(
            pipeline, Statement(text("BEGIN"), {}), Statement(ADD, {"number": 1}), broken, Statement(text("COMMIT"), {})
        )
    other = connected(url)
    assert asked(other, Statement(select_from(text("count(*) FROM things")), {})) == [[[0]]]
    other.close()


def test_a_lost_connection_is_told(pipeline: PostgresPipeline, postgres_server: PrivatePostgres) -> None:
    assert asked(pipeline, *echo(Text, "a")) == [[["a"]]]
    cut_connections(postgres_server)
    with pytest.raises(ConnectionLost):
        asked(pipeline, *echo(Text, "a"))
    with pytest.raises(ConnectionLost):
        asked(pipeline, *echo(Text, "a"))


def test_a_connection_lost_while_nobody_asks_is_told(
    pipeline: PostgresPipeline, postgres_server: PrivatePostgres
) -> None:
    cut_connections(postgres_server)
    with pytest.raises(ConnectionLost):
        answered(pipeline)


def test_a_database_that_is_not_there_is_unavailable(url: str) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        connected(url.replace("test_", "no_test_"))
