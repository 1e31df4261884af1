"""Notification events of databases and tables, and what the messages of all events share (semantics §2.20)."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from hms_gateway.metastore.checks.table_shape import PartitionTexts
from hms_gateway.metastore.ports.store import Event
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.runtime.clock import Clock
from hms_gateway.structs import Database, Function, Struct, Table

CREATE_DATABASE: Final = "CREATE_DATABASE"
ALTER_DATABASE: Final = "ALTER_DATABASE"
DROP_DATABASE: Final = "DROP_DATABASE"
CREATE_TABLE: Final = "CREATE_TABLE"
ALTER_TABLE: Final = "ALTER_TABLE"
DROP_TABLE: Final = "DROP_TABLE"
DROP_FUNCTION: Final = "DROP_FUNCTION"


def event_message(server: str, principal: str, fields: Mapping[str, Any]) -> str:
    """The JSON text of an event: `server` and `servicePrincipal`, then `fields` in their order, without white space."""
    message = {"server": server, "servicePrincipal": principal, **fields}
    try:
        return msgspec.json.encode(message).decode()
    except UnicodeEncodeError:
        # Half of a surrogate pair, which every store of the message refuses.
        return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


class EventMaker:
    """Makes events; what they say about an object is the object in TJSON, as Hive's consumers expect.

    Names in an event are those under which the object is stored. Hive repeats the caller's spelling, which would leave
    it to every consumer to fold the case.
    """

    def __init__(self, settings: MetastoreSettings, clock: Clock, to_tjson: Callable[[Struct], bytes]) -> None:
        self._settings = settings
        self._clock = clock
        self._to_tjson = to_tjson

    def event(self, event_type: str, db_name: str, table_name: str | None, fields: Mapping[str, Any]) -> Event:
        """An event with `fields` after the two that every message starts with."""
        message = event_message(self._settings.event_server, self._settings.event_service_principal, fields)
        return Event(event_type, db_name, table_name, message)

    def timestamp(self) -> int:
        """Now, in seconds, as every message carries it."""
        return self._clock.seconds()

    def object_json(self, struct: Struct) -> str:
        """A struct as the text of a `…ObjJson` key."""
        return self._to_tjson(struct).decode()

    def partition_texts(self) -> PartitionTexts:
        """Partitions of one request as the texts of `…ObjJson` keys."""
        return PartitionTexts(self._to_tjson)

    def create_database(self, database: Database) -> Event:
        return self._database(CREATE_DATABASE, database.name or "", {"dbJson": self.object_json(database)})

    def drop_database(self, name: str) -> Event:
        return self._database(DROP_DATABASE, name, {})

    def alter_database(self, before: Database, after: Database) -> Event:
        states = {"dbObjBeforeJson": self.object_json(before), "dbObjAfterJson": self.object_json(after)}
        return self._database(ALTER_DATABASE, before.name or "", states)

    def create_table(self, table: Table) -> Event:
        return self._table(CREATE_TABLE, table, self.whole_table(table) | {"files": []})

    def drop_table(self, table: Table) -> Event:
        return self._table(DROP_TABLE, table, self.whole_table(table))

    def alter_table(self, before: Table, after: Table, *, truncates: bool = False) -> Event:
        """A rename is filed under the new name; the message itself names the old table (semantics §2.20)."""
        fields = self.table_fields(before) | {
            "tableObjBeforeJson": self.object_json(before),
            "tableObjAfterJson": self.object_json(after),
            "timestamp": self.timestamp(),
            "isTruncateOp": truncates,
        }
        event = self._table(ALTER_TABLE, after, fields)
        old_name = (before.dbName or "", before.tableName or "")
        return (
            event
            if old_name == (after.dbName, after.tableName)
            else msgspec.structs.replace(event, renamed_from=old_name)
        )

    def drop_function(self, function: Function) -> Event:
        db_name = function.dbName or ""
        fields = {"db": db_name, "functionName": function.functionName, "timestamp": self.timestamp()}
        return self.event(DROP_FUNCTION, db_name, None, fields)

    def table_fields(self, table: Table) -> dict[str, Any]:
        """The keys by which every message about a table or its partitions names the table."""
        return {"db": table.dbName, "table": table.tableName, "tableType": table.tableType}

    def whole_table(self, table: Table) -> dict[str, Any]:
        """The keys of messages that show the table as it is."""
        return self.table_fields(table) | {"tableObjJson": self.object_json(table), "timestamp": self.timestamp()}

    def _database(self, event_type: str, name: str, states: Mapping[str, str]) -> Event:
        return self.event(event_type, name, None, {"db": name, **states, "timestamp": self.timestamp()})

    def _table(self, event_type: str, table: Table, fields: Mapping[str, Any]) -> Event:
        return self.event(event_type, table.dbName or "", table.tableName, fields)
