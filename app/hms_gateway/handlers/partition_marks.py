"""Methods that mark partitions for events (semantics §2.12)."""

from hms_gateway.catalog.arguments import database_name
from hms_gateway.metastore.partitions.marks import PartitionMarkService
from hms_gateway.metastore.selection.table_name import TableName
from hms_gateway.rpc.call import Call


class PartitionMarks:
    def __init__(self, marks: PartitionMarkService) -> None:
        self._marks = marks

    def markPartitionForEvent(
        self, call: Call, db_name: str, tbl_name: str, part_vals: dict[str, str], eventType: int
    ) -> None:
        self._marks.mark(TableName(database_name(db_name), tbl_name), part_vals, eventType)

    def isPartitionMarkedForEvent(
        self, call: Call, db_name: str, tbl_name: str, part_vals: dict[str, str], eventType: int
    ) -> bool:
        return self._marks.is_marked(TableName(database_name(db_name), tbl_name), part_vals, eventType)
