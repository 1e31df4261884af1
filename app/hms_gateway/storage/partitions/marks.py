"""What markPartitionForEvent noted, as rows (semantics §2.12)."""

from collections.abc import Sequence

from sqlalchemy import delete, exists, insert, select

from hms_gateway.metastore.vocabulary.ids import TableId
from hms_gateway.storage.schema.catalog import PARTITION_MARKS
from hms_gateway.storage.sql.fragments import encode_texts, text_hash
from hms_gateway.storage.sql.repository import Repository


class PartitionMarkRepository(Repository):
    """`object_ports.PartitionMarkWrites`."""

    def has(self, table_id: TableId, values: Sequence[str], event_type: int, since_seconds: int) -> bool:
        statement = select(
            exists().where(
                PARTITION_MARKS.c.table_id == table_id,
                PARTITION_MARKS.c.values_hash == _hash(values),
                PARTITION_MARKS.c.event_type == event_type,
                PARTITION_MARKS.c.event_time >= since_seconds,
            )
        )
        return bool(self._connection.execute(statement).scalar_one())

    def insert(self, table_id: TableId, values: Sequence[str], event_type: int, now_seconds: int) -> None:
        self._connection.execute(
            insert(PARTITION_MARKS).values(
                table_id=table_id, values_hash=_hash(values), event_type=event_type, event_time=now_seconds
            )
        )

    def delete_before(self, seconds: int) -> int:
        return self._connection.execute(delete(PARTITION_MARKS).where(PARTITION_MARKS.c.event_time < seconds)).rowcount


def _hash(values: Sequence[str]) -> str:
    return text_hash(encode_texts(values))
