"""Transactions' rows follow the objects they name: gone with what is dropped, renamed with what is renamed.

Locks stay as they are (semantics §3.7): they are on names, whatever is behind them.
"""

from typing import Final

from hms_gateway.storage.schema.txn import (
    COMPACTIONS,
    COMPLETED_COMPONENTS,
    REBUILDS,
    TABLE_WRITE_IDS,
    TXN_COMPONENTS,
    TXN_WRITE_IDS,
    WRITE_SETS,
)

OF_PARTITIONS: Final = (TXN_COMPONENTS, COMPLETED_COMPONENTS, COMPACTIONS)
# A table that is made again begins with its first write id.
WRITE_IDS: Final = (TXN_WRITE_IDS, TABLE_WRITE_IDS)
PURGED: Final = (*OF_PARTITIONS, *WRITE_IDS)
RENAMED: Final = (*PURGED, WRITE_SETS, REBUILDS)
RENAMED_PARTITIONS: Final = (*OF_PARTITIONS, WRITE_SETS)
