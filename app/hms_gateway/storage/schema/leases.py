"""The tables of leases. Absent names are empty texts, so that one index finds an object and all around it."""

from typing import Final

from sqlalchemy import BigInteger, Column, Index, Integer, Table

from hms_gateway.storage.schema.catalog import METADATA
from hms_gateway.storage.schema.column_types import BINARY_TEXT, DATABASE_NAME, LONG_TEXT, SHORT_TEXT, TABLE_NAME


def _object_columns() -> tuple[Column[str], ...]:
    return (
        Column("db_name", DATABASE_NAME, nullable=False),
        Column("table_name", TABLE_NAME, nullable=False),
        Column("partition_name", BINARY_TEXT, nullable=False),
        Column("type", SHORT_TEXT, nullable=False),
    )


# One row for each object of a lease. Times in milliseconds of the database's clock.
LEASES: Final = Table(
    "leases",
    METADATA,
    Column("lease_id", BigInteger, primary_key=True, autoincrement=False),
    Column("object_number", Integer, primary_key=True, autoincrement=False),
    *_object_columns(),
    Column("user_name", LONG_TEXT, nullable=False),
    Column("start_ms", BigInteger, nullable=False),
    Column("end_ms", BigInteger, nullable=False),
    Column("duration_ms", BigInteger, nullable=False),
    Index("leases_end", "end_ms"),
)

# Requests that wait for leases, in order of their tickets.
LEASE_WAITERS: Final = Table(
    "lease_waiters",
    METADATA,
    Column("ticket", BigInteger, primary_key=True, autoincrement=False),
    Column("object_number", Integer, primary_key=True, autoincrement=False),
    *_object_columns(),
    Column("until_ms", BigInteger, nullable=False),
    Index("lease_waiters_until", "until_ms"),
)
