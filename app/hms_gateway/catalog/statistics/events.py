"""Notification events of column statistics, as 3.1 and later write them. Earlier servers said nothing."""

from typing import Any, Final

from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.ports.store import Event
from hms_gateway.metastore.vocabulary.partition_names import name_to_values
from hms_gateway.structs import ColumnStatistics_v4, Table

UPDATE_OF_TABLE: Final = "UPDATE_TBL_COL_STAT_EVENT"
DELETE_OF_TABLE: Final = "DELETE_TBL_COL_STAT_EVENT"
UPDATE_OF_PARTITION: Final = "UPDATE_PART_COL_STAT_EVENT"
DELETE_OF_PARTITION: Final = "DELETE_PART_COL_STAT_EVENT"


class StatisticsEvents:
    def __init__(self, events: EventMaker) -> None:
        self._events = events

    def update_of_table(self, table: Table, statistics: ColumnStatistics_v4) -> Event:
        """`table` as it is now, with the parameters that say which statistics are accurate."""
        fields = {
            "colStatsJson": self._events.object_json(statistics),
            "parameters": table.parameters or {},
            "tableObjJson": self._events.object_json(table),
        }
        return self._event(UPDATE_OF_TABLE, table, fields)

    def update_of_partition(self, table: Table, part_name: str, statistics: ColumnStatistics_v4) -> Event:
        fields = {
            "partName": part_name,
            "partVals": name_to_values(part_name),
            "colStatsJson": self._events.object_json(statistics),
        }
        return self._event(UPDATE_OF_PARTITION, table, fields)

    def delete_of_table(self, table: Table, column: str | None) -> Event:
        """No column means all of them."""
        return self._event(DELETE_OF_TABLE, table, {"colName": column})

    def delete_of_partition(self, table: Table, part_name: str, column: str | None) -> Event:
        fields = {"colName": column, "partName": part_name, "partValues": name_to_values(part_name)}
        return self._event(DELETE_OF_PARTITION, table, fields)

    def _event(self, event_type: str, table: Table, fields: dict[str, Any]) -> Event:
        names = {"database": table.dbName, "table": table.tableName}
        message = names | fields | {"timestamp": self._events.timestamp()}
        return self._events.event(event_type, table.dbName or "", table.tableName, message)
