"""Names of databases, tables, views and functions, found by a part of them."""

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, case, func, literal, select

from hms_gateway.metastore.vocabulary.patterns import Pattern, containing
from hms_gateway.storage.schema.catalog import DATABASES, FUNCTIONS, TABLES
from hms_gateway.storage.sql.filter_sql import matches_pattern
from hms_gateway.storage.sql.repository import Repository
from hms_gateway.storage.sql.texts import is_storable
from hms_gateway.structs import FoundName

DATABASE: Final = "DATABASE"
FUNCTION: Final = "FUNCTION"


class NameReads(Repository):
    def search_names(self, db_text: str | None, text: str, limit: int) -> list[FoundName]:
        if not is_storable(text) or not is_storable(db_text or ""):
            return []
        named, of_database = containing(text), None if db_text is None else self._of_database(db_text)
        tables = self._best(TABLES, TABLES.c.table_type, named, of_database, text, limit)
        functions = self._best(FUNCTIONS, literal(FUNCTION), named, of_database, text, limit)
        databases = self._databases(named, text, limit) if db_text is None else []
        found = sorted((*databases, *tables, *functions), key=lambda each: _rank(each, text))
        return found[:limit]

    def _of_database(self, text: str) -> Pattern:
        """The database of this name, or else those with the text in their names."""
        exists = self._connection.execute(select(DATABASES.c.name).where(DATABASES.c.name == text)).first()
        return containing(text) if exists is None else Pattern(((text,),), folds_case=True)

    def _databases(self, named: Pattern, text: str, limit: int) -> list[FoundName]:
        statement = select(DATABASES.c.name)
        rows = self._connection.execute(self._first(statement, DATABASES.c.name, named, text, limit))
        return [FoundName(db_name=name, kind=DATABASE) for (name,) in rows]

    def _best(
        self, table: Any, kind: ColumnElement[str], named: Pattern, of_database: Pattern | None, text: str, limit: int
    ) -> Iterator[FoundName]:
        # All names are looked at by their index alone, which does not have the kind.
        key, name = table.c.database_id, table.c.name
        statement = select(key, name)
        condition = matches_pattern(DATABASES.c.name, of_database, self._dialect)
        if condition is not None:
            statement = statement.where(key.in_(select(DATABASES.c.database_id).where(condition)))
        found = self._first(statement, name, named, text, limit).subquery()
        is_it = (key == found.c.database_id) & (name == found.c.name)
        whole = select(DATABASES.c.name, name, kind).select_from(
            found.join(table, is_it).join(DATABASES, DATABASES.c.database_id == key)
        )
        rows = self._connection.execute(whole)
        return (FoundName(db_name=db_name, name=name, kind=kind_of) for db_name, name, kind_of in rows)

    def _first(
        self, statement: Select[Any], name: ColumnElement[str], named: Pattern, text: str, limit: int
    ) -> Select[Any]:
        """Those that begin with the text first, then the shortest: the one that is exactly it, if there is one.

        Of all names, the first.
        """
        condition = matches_pattern(name, named, self._dialect)
        if condition is not None:
            statement = statement.where(condition)
        if not text:
            return statement.order_by(name).limit(limit)
        begins = case((func.substr(name, 1, len(text)) == text, 0), else_=1)
        return statement.order_by(begins, func.length(name), name).limit(limit)


def _rank(found: FoundName, text: str) -> tuple[bool, int, str, str]:
    name = found.name or found.db_name or ""
    return not name.startswith(text), len(name) if text else 0, name, found.db_name or ""
