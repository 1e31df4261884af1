"""Rows of the database before and after a call, each with the object that it says something of."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, select

from hms_gateway.storage.schema.catalog import METADATA

# Counters, the log, and what is kept about calls: they follow a change and are none.
_BOOKKEEPING: Final = {"catalog", "notifications", "changes", "outcomes", "txn_counters", "gateways", "dropped_tables"}
_USERS: Final = ("user_name", "principal")


class About(NamedTuple):
    """The database and table of a row, where it is of one, and its user."""

    database: str = ""
    table: str = ""
    user: str = ""


class Change(NamedTuple):
    """One row; `before` and `after` are None for one that was not there, and for one that is gone."""

    kind: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    about: frozenset[About]


class Rows(NamedTuple):
    """All rows by kind and key."""

    found: Mapping[tuple[str, Any], tuple[About, Mapping[str, Any]]]

    def changes(self, after: "Rows") -> list[Change]:
        keys = {key for key in {**self.found, **after.found} if self.found.get(key) != after.found.get(key)}
        made = []
        for key in sorted(keys, key=repr):
            both = [one for one in (self.found.get(key), after.found.get(key)) if one is not None]
            rows = [None if (one := rows.found.get(key)) is None else one[1] for rows in (self, after)]
            made.append(Change(key[0], rows[0], rows[1], frozenset(about for about, _ in both)))
        return made


def read_rows(connection: Connection) -> Rows:
    kinds = [table for table in METADATA.sorted_tables if table.name not in _BOOKKEEPING]
    rows = {table.name: [dict(row) for row in connection.execute(select(table)).mappings()] for table in kinds}
    databases = {row["database_id"]: row["name"] for row in rows["databases"]}
    tables = {row["table_id"]: (databases.get(row["database_id"], "?"), row["name"]) for row in rows["tables"]}
    schemas = {row["schema_id"]: row["database_id"] for row in rows["registry_schemas"]}
    found = {}
    for table in kinds:
        for row in rows[table.name]:
            key = tuple(row[column.name] for column in table.primary_key) or tuple(row.values())
            keyed = {"table_id": row.get("view_id"), "database_id": schemas.get(row.get("schema_id", 0)), **row}
            found[table.name, key] = (_about(table.name, keyed, databases, tables), row)
    return Rows(found)


def _about(
    kind: str, row: Mapping[str, Any], databases: Mapping[int, str], tables: Mapping[int, tuple[str, str]]
) -> About:
    if kind == "databases":
        return About(row["name"])
    if kind == "tables":
        return About(*tables[row["table_id"]])
    user = next((row[name] for name in _USERS if row.get(name)), "")
    if row.get("table_id") is not None:
        return About(*tables.get(row["table_id"], ("?", "?")), user)
    if row.get("database_id") is not None:
        return About(databases.get(row["database_id"], "?"), "", user)
    return About(row.get("db_name") or "", row.get("table_name") or "", user)
