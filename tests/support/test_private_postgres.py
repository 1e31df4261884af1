"""The PostgreSQL fixtures keep what other tests rely on."""

import pytest
import sqlalchemy
from sqlalchemy.pool import NullPool

from tests.support.private_postgres import PrivatePostgres

pytestmark = pytest.mark.postgres


def execute(url: str, *statements: str) -> object:
    engine = sqlalchemy.create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        for statement in statements[:-1]:
            connection.execute(sqlalchemy.text(statement))
        return connection.execute(sqlalchemy.text(statements[-1])).scalar_one()


@pytest.mark.parametrize("_attempt", [1, 2])
def test_every_test_gets_an_empty_database(fresh_postgres_database: str, _attempt: int) -> None:
    count = "select count(*) from information_schema.tables where table_schema = 'public'"
    assert execute(fresh_postgres_database, count) == 0
    assert execute(fresh_postgres_database, "create table left_behind (x int)", count) == 1


def test_the_server_can_be_taken_away_and_given_back(own_postgres: PrivatePostgres) -> None:
    assert execute(own_postgres.url(), "select 1") == 1
    own_postgres.stop()
    with pytest.raises(sqlalchemy.exc.OperationalError):
        execute(own_postgres.url(), "select 1")
    own_postgres.start()
    assert execute(own_postgres.url(), "select 1") == 1
