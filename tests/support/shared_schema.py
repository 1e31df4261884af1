"""The schema that all new SQLite databases of this process share.

Migrating an empty database through all revisions takes longer than most tests. The first one is migrated; those after
it get the statements that make what it became.
"""

from typing import Final

from sqlalchemy import Connection, inspect

from hms_gateway.storage.migrations import revisions

upgrade: Final = revisions._upgrade
_made: list[str] = []


def share_schema() -> None:
    """From now on, for every empty SQLite database of this process."""
    setattr(revisions, "_upgrade", _upgrade_or_copy)  # noqa: B010


def _upgrade_or_copy(connection: Connection) -> None:
    if connection.dialect.name != "sqlite" or inspect(connection).get_table_names():
        upgrade(connection)
    elif _made:
        for statement in _made:
            connection.exec_driver_sql(statement)
    else:
        upgrade(connection)
        dump = connection.connection.driver_connection.iterdump()
        _made[:] = [line for line in dump if line not in ("BEGIN TRANSACTION;", "COMMIT;")]
