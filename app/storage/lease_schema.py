"""The tables of leases. Absent names are empty texts, so that one index finds an object and all around it."""

from typing import Final

from sqlalchemy import BigInteger, Column, Index, Integer, Table

from app.storage.schema import METADATA
from app.storage.schema import _BinaryText as BinaryText
from app.storage.schema import _LongText as LongText
from app.storage.schema import _ShortText as ShortText


def _object_columns() -> tuple[Column[str], ...]:
    names = ("db_name", "table_name", "partition_name")
    return (*(Column(name, BinaryText, nullable=False) for name in names), Column("type", ShortText, nullable=False))


# One row for each object of a lease. Times in milliseconds of the database's clock.
LEASES: Final = Table(
    "leases",
    METADATA,
    Column("lease_id", BigInteger, primary_key=True, autoincrement=False),
    Column("object_number", Integer, primary_key=True, autoincrement=False),
    *_object_columns(),
    Column("user_name", LongText, nullable=False),
    Column("start_ms", BigInteger, nullable=False),
    Column("end_ms", BigInteger, nullable=False),
    Column("duration_ms", BigInteger, nullable=False),
    Index("leases_object", "db_name", "table_name", "partition_name"),
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
    Index("lease_waiters_object", "db_name", "table_name", "partition_name"),
    Index("lease_waiters_until", "until_ms"),
)
