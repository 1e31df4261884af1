"""Names of databases, tables, views and functions, found by a part of them; how many there are."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, case, func, literal, select

from hms_gateway.metastore.vocabulary.names import DATABASE, FUNCTION
from hms_gateway.metastore.vocabulary.parameters import ROW_COUNT, SPARK, TOTAL_BYTES
from hms_gateway.metastore.vocabulary.patterns import Pattern, containing, end_of_beginning
from hms_gateway.metastore.vocabulary.table_types import TableType
from hms_gateway.rpc.structs import DatabaseCounts, FoundName
from hms_gateway.storage.schema.catalog import DATABASES, FUNCTIONS, TABLES
from hms_gateway.storage.sql.filter_sql import matches_pattern, unindexed
from hms_gateway.storage.sql.fragments import decode_map
from hms_gateway.storage.sql.repository import Repository, is_storable

# What an i64 has room for.
_NUMBER: Final = re.compile(r"[0-9]{1,18}")


class NameReads(Repository):
    def search_names(self, db_text: str | None, text: str, limit: int, details: bool = False) -> list[FoundName]:
        if not is_storable(text) or not is_storable(db_text or ""):
            return []
        of_database = None if db_text is None else self._of_database(db_text)
        tables = self._best(TABLES, of_database, text, limit, details)
        functions = self._best(FUNCTIONS, of_database, text, limit)
        databases = self._databases(text, limit) if db_text is None else []
        found = sorted((*databases, *tables, *functions), key=lambda each: _rank(each, text))
        return found[:limit]

    def count_objects(self, db_name: str | None, details: bool = False) -> list[DatabaseCounts]:
        if not is_storable(db_name or ""):
            return []
        databases = select(DATABASES.c.database_id, DATABASES.c.name).order_by(DATABASES.c.name)
        if db_name is not None:
            databases = databases.where(DATABASES.c.name == db_name)
        names = {row[0]: row[1] for row in self._connection.execute(databases)}

        def by_database(table: Any, *counts: ColumnElement[Any]) -> dict[int, list[int]]:
            key = table.c.database_id
            counted = select(key, func.count(), *counts).group_by(key)
            if db_name is not None:
                counted = counted.where(key.in_(names))
            return {row[0]: [int(each) for each in row[1:]] for row in self._connection.execute(counted)}

        # Without details by the index of names alone: rows of 100,000 tables take a third of a second.
        is_view = TABLES.c.table_type.in_((TableType.VIRTUAL_VIEW.value, TableType.MATERIALIZED_VIEW.value))
        more = (func.count(case((is_view, 1))), func.sum(TABLES.c.partition_count)) if details else ()
        tables, functions = by_database(TABLES, *more), by_database(FUNCTIONS)
        nothing = [0, *(0 for _ in more)]
        found = []
        for key, name in names.items():
            of_tables, *rest = tables.get(key, nothing)
            found.append(DatabaseCounts(name, of_tables, functions.get(key, [0])[0], *rest))
        return found

    def _of_database(self, text: str) -> Pattern:
        """The database of this name, or else those with the text in their names."""
        exists = self._connection.execute(select(DATABASES.c.name).where(DATABASES.c.name == text)).first()
        return containing(text) if exists is None else Pattern(((text,),), folds_case=True)

    def _databases(self, text: str, limit: int) -> list[FoundName]:
        name = DATABASES.c.name
        every = select(name)
        rows = self._first(_Names(name, (), every, every, select), text, limit)
        return [FoundName(db_name=row[0], kind=DATABASE) for row in rows]

    def _best(
        self, table: Any, of_database: Pattern | None, text: str, limit: int, details: bool = False
    ) -> list[FoundName]:
        key, name, database_id = table.c.database_id, table.c.name, DATABASES.c.database_id
        every = select(key, name)
        # Without the index of ids there is one way: from each database by the index of its tables' names.
        by_database = every.select_from(DATABASES).join(table, key == unindexed(database_id))
        condition = matches_pattern(DATABASES.c.name, of_database, self._dialect)
        if condition is not None:
            every = every.where(key.in_(select(database_id).where(condition)))
            by_database = by_database.where(condition)

        def whole(found: Any) -> Select[Any]:
            # Names are looked at by their index alone, which has neither the kind nor the database's name. Joined with
            # them, SQLite would keep and sort every name before it takes the first.
            is_found = (TABLES.c.database_id == found.c.database_id, TABLES.c.name == found.c.name)
            told = [TABLES.c[each] for each in ("table_type", *(_DETAILS if details else ()))]
            return select(
                select(DATABASES.c.name).where(database_id == found.c.database_id).scalar_subquery(),
                found.c.name,
                *(
                    [select(each).where(*is_found).scalar_subquery() for each in told]
                    if table is TABLES
                    else [literal(FUNCTION)]
                ),
            )

        rows = self._first(_Names(name, (key,), every, by_database, whole), text, limit)
        return [FoundName(row[0], row[1], row[2], *_details(*row[3:])) for row in rows]

    def _first(self, names: "_Names", text: str, limit: int) -> list[Sequence[Any]]:
        """Those that begin with the text first, then the shortest: the one that is exactly it, if there is one.

        Of all names, the first. Those with the text elsewhere, of which there may be as many as there are names, are
        looked for where too few begin with it.
        """
        name = names.name
        order: tuple[ColumnElement[Any], ...] = (
            (self._dialect.characters(name), name, *names.ties) if text else (name, *names.ties)
        )
        anywhere = matches_pattern(name, containing(text), self._dialect)
        every = names.every if anywhere is None else names.every.where(anywhere)
        steps = [every]
        if text and "*" not in text:
            end = end_of_beginning(text)
            begins = name >= text if end is None else and_(name >= text, name < end)
            others = func.substr(name, 1, len(text)) != text
            steps = [names.by_database.where(begins), every.where(others)]
        rows: list[Sequence[Any]] = []
        for some in steps:
            if len(rows) < limit:
                found = some.order_by(*order).limit(limit - len(rows)).subquery()
                rows += self._connection.execute(names.whole(found)).all()
        return rows


class _Names(NamedTuple):
    """Names of one kind: all of them as they are scanned and as a beginning is looked up, and what is said of some."""

    name: ColumnElement[str]
    ties: tuple[ColumnElement[Any], ...]
    every: Select[Any]
    by_database: Select[Any]
    whole: Callable[[Any], Select[Any]]


_DETAILS: Final = ("owner", "partition_count", "parameters")


def _details(owner: str | None = None, partitions: int | None = None, parameters: str | None = None) -> list[Any]:
    """The members of a FoundName behind its kind."""
    known = decode_map(parameters) if parameters else {}
    return [owner, known.get("comment"), _number(known, ROW_COUNT), _number(known, TOTAL_BYTES), partitions]


def _number(parameters: Mapping[str, str], name: str) -> int | None:
    """Spark counts a table with partitions, and after ANALYZE any, under a name of its own."""
    texts = (parameters.get(key, "") for key in (name, SPARK + name))
    return next((int(text) for text in texts if _NUMBER.fullmatch(text)), None)


def _rank(found: FoundName, text: str) -> tuple[bool, int, str, str]:
    name = found.name or found.db_name or ""
    return "*" in text or not name.startswith(text), len(name) if text else 0, name, found.db_name or ""
