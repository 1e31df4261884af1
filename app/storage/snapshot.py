"""The two things units of work are handed: one consistent state to read, and a state to change."""

from sqlalchemy import Connection

from app.storage.databases import DatabaseReads, DatabaseWrites
from app.storage.engines import run_on_driver
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
        run_on_driver(self._connection, "SAVEPOINT work")

    def roll_back(self) -> None:
        """Undo everything since the savepoint."""
        run_on_driver(self._connection, "ROLLBACK TO SAVEPOINT work")
        self.release()

    def release(self) -> None:
        """Keep what was done since the savepoint."""
        run_on_driver(self._connection, "RELEASE SAVEPOINT work")
