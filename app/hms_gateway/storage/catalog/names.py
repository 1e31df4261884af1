"""Names of databases, tables, views and functions, found by a part of them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, func, literal, select

from hms_gateway.metastore.vocabulary.names import DATABASE, FUNCTION
from hms_gateway.metastore.vocabulary.patterns import Pattern, containing, end_of_beginning
from hms_gateway.storage.schema.catalog import DATABASES, FUNCTIONS, TABLES
from hms_gateway.storage.sql.filter_sql import matches_pattern, unindexed
from hms_gateway.storage.sql.repository import Repository
from hms_gateway.storage.sql.texts import is_storable
from hms_gateway.structs import FoundName


class NameReads(Repository):
    def search_names(self, db_text: str | None, text: str, limit: int) -> list[FoundName]:
        if not is_storable(text) or not is_storable(db_text or ""):
            return []
        of_database = None if db_text is None else self._of_database(db_text)
        tables = self._best(TABLES, of_database, text, limit)
        functions = self._best(FUNCTIONS, of_database, text, limit)
        databases = self._databases(text, limit) if db_text is None else []
        found = sorted((*databases, *tables, *functions), key=lambda each: _rank(each, text))
        return found[:limit]

    def _of_database(self, text: str) -> Pattern:
        """The database of this name, or else those with the text in their names."""
        exists = self._connection.execute(select(DATABASES.c.name).where(DATABASES.c.name == text)).first()
        return containing(text) if exists is None else Pattern(((text,),), folds_case=True)

    def _databases(self, text: str, limit: int) -> list[FoundName]:
        name = DATABASES.c.name
        every = select(name)
        rows = self._first(_Names(name, (), every, every, select), text, limit)
        return [FoundName(db_name=row[0], kind=DATABASE) for row in rows]

    def _best(self, table: Any, of_database: Pattern | None, text: str, limit: int) -> list[FoundName]:
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
            of_table = select(TABLES.c.table_type).where(
                TABLES.c.database_id == found.c.database_id, TABLES.c.name == found.c.name
            )
            return select(
                select(DATABASES.c.name).where(database_id == found.c.database_id).scalar_subquery(),
                found.c.name,
                of_table.scalar_subquery() if table is TABLES else literal(FUNCTION),
            )

        rows = self._first(_Names(name, (key,), every, by_database, whole), text, limit)
        return [FoundName(db_name=row[0], name=row[1], kind=row[2]) for row in rows]

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


def _rank(found: FoundName, text: str) -> tuple[bool, int, str, str]:
    name = found.name or found.db_name or ""
    return "*" in text or not name.startswith(text), len(name) if text else 0, name, found.db_name or ""
