"""The ids under which storage keeps things."""

from typing import NewType

DatabaseId = NewType("DatabaseId", int)
TableId = NewType("TableId", int)
PartitionId = NewType("PartitionId", int)
EventId = NewType("EventId", int)
FunctionId = NewType("FunctionId", int)
IndexId = NewType("IndexId", int)
