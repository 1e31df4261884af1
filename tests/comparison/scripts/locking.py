"""How scripts and random calls ask for locks."""

from typing import Any

from hms_gateway.rpc.structs import LockComponent, LockRequest

SHARED_READ, SHARED_WRITE, EXCLUSIVE, EXCLUSIVE_WRITE = 1, 2, 3, 4
DB, TABLE, PARTITION = 1, 2, 3
SELECT, INSERT, UPDATE, DELETE, UNSET, NO_TXN = 1, 2, 3, 4, 5, 6


def component(
    type: int | None, db_name: str | None, table_name: str | None = None, partition_name: str | None = None, **more: Any
) -> LockComponent:
    """One thing to lock; its level is what is named. As Java clients send it, fields of no meaning are unset."""
    level = DB if table_name is None else TABLE if partition_name is None else PARTITION
    fields = {"operationType": None, "isAcid": None, "isDynamicPartitionWrite": None, **more}
    return LockComponent(
        type=type, level=level, dbname=db_name, tablename=table_name, partitionname=partition_name, **fields
    )


def request(*components: LockComponent, txn_id: int | None = None, user: str = "ann", host: str = "somewhere") -> Any:
    return LockRequest(component=list(components), txnid=txn_id, user=user, hostname=host)
