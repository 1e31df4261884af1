"""Connections that were lost while they were idle are replaced, whatever notices it first."""

import pytest
from sqlalchemy import make_url, text

from hms_gateway.storage.dialects import writing_engine
from hms_gateway.storage.dialects.postgres import PostgresDialect

BACKENDS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> {pid}"


@pytest.mark.postgres
def test_a_lost_connection_is_replaced_when_its_plans_are_discarded(
    fresh_postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresDialect, "plans_kept_seconds", 0.0)
    url = make_url(fresh_postgres_database)
    engine, other = writing_engine(url), writing_engine(url)
    try:
        with engine.connect() as connection:
            assert connection.scalar(text("SELECT 1")) == 1
        with other.connect() as connection:
            own = connection.scalar(text("SELECT pg_backend_pid()"))
            assert connection.execute(text(BACKENDS.format(pid=own))).all() == [(True,)]
        with engine.connect() as connection:
            assert connection.scalar(text("SELECT 2")) == 2
    finally:
        engine.dispose()
        other.dispose()
