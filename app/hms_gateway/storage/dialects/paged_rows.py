"""The rows of a long query a page at a time, by a query for each.

MariaDB and MySQL send all rows of a query or let nothing else be asked on the connection until they are read, and a
snapshot has one connection. Pages of one snapshot fit together.
"""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Column, Connection, Select

PAGE_ROWS: Final = 10_000


class PagedRows:
    """Like the driver's cursor. The rows are in order of `key`, which is unique among them and their first column."""

    def __init__(self, connection: Connection, statement: Select[Any], key: Column[str]) -> None:
        self._connection = connection
        self._statement: Select[Any] | None = statement
        self._key = key
        self._limit = _limit_of(statement)
        self._page: Sequence[Any] = ()
        self._start = 0

    def fetchmany(self, count: int) -> Sequence[Any]:
        """So many rows or fewer; none at the end only."""
        if self._start == len(self._page):
            self._read_page()
        rows = self._page[self._start : self._start + count]
        self._start += len(rows)
        return rows

    def close(self) -> None:
        self._statement, self._page, self._start = None, (), 0

    def _read_page(self) -> None:
        if self._statement is None:
            return
        statement = self._statement
        if self._page:
            statement = statement.where(self._key > self._page[-1][0])
        asked = PAGE_ROWS if self._limit is None else min(PAGE_ROWS, self._limit)
        self._page = self._connection.execute(statement.limit(asked)).cursor.fetchall()
        self._start = 0
        if self._limit is not None:
            self._limit -= len(self._page)
        if len(self._page) < asked or self._limit == 0:
            self._statement = None


def _limit_of(statement: Select[Any]) -> int | None:
    limit: Any = statement._limit
    return None if limit is None else int(limit)
