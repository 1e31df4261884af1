"""The two things units of work are handed: one consistent state to read, and a state to change."""

from sqlalchemy import Connection

from app.storage.databases import DatabaseReads, DatabaseWrites
from app.storage.events import EventReads, EventWrites
from app.storage.partition_list import Lease
from app.storage.partition_writes import PartitionWrites
from app.storage.partitions import PartitionReads
from app.storage.tables import TableReads, TableWrites


class SqlSnapshot(PartitionReads, TableReads, DatabaseReads, EventReads):
    """`ports.Snapshot` inside a read-only transaction that `lease` keeps open."""

    def __init__(self, connection: Connection, lease: Lease) -> None:
        super().__init__(connection)
        self._lease = lease


class SqlTransaction(PartitionWrites, TableWrites, DatabaseWrites, EventWrites):
    """`ports.Transaction` inside the writer's transaction. Lists are read at once: it ends before they are sent."""

    def savepoint(self) -> None:
        """Mark the state that `roll_back` returns to."""
        self._connection.exec_driver_sql("SAVEPOINT work")

    def roll_back(self) -> None:
        """Undo everything since the savepoint."""
        self._connection.exec_driver_sql("ROLLBACK TO SAVEPOINT work")
        self.release()

    def release(self) -> None:
        """Keep what was done since the savepoint."""
        self._connection.exec_driver_sql("RELEASE SAVEPOINT work")
