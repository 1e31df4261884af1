"""The two things units of work are handed: one consistent state to read, and a state to change."""

from functools import cached_property

from sqlalchemy import Connection

from app.storage.constraints import ConstraintRepository
from app.storage.databases import DatabaseReads, DatabaseWrites
from app.storage.engine_notes import EngineNoteRepository
from app.storage.engines import run_on_driver
from app.storage.events import EventReads, EventWrites
from app.storage.functions import FunctionRepository
from app.storage.grants import GrantRepository
from app.storage.indexes import IndexRepository
from app.storage.leases import SqlLeaseWrites
from app.storage.outcomes import OutcomeWrites
from app.storage.partition_list import Lease
from app.storage.partition_marks import PartitionMarkRepository
from app.storage.partition_writes import PartitionWrites
from app.storage.partitions import PartitionReads
from app.storage.places import PlaceRepository
from app.storage.properties import PropertyRepository
from app.storage.registry import RegistryRepository
from app.storage.repository import Repository
from app.storage.resource_plans import ResourcePlanRepository
from app.storage.roles import RoleRepository
from app.storage.scheduled_queries import ScheduleRepository
from app.storage.statistics import StatisticsRepository
from app.storage.tables import TableReads, TableWrites
from app.storage.tokens import TokenRepository
from app.storage.txns import SqlTxnReads, SqlTxnWrites
from app.storage.types import TypeRepository
from app.storage.views import ViewRepository


class _Objects(Repository):
    """The repositories of the smaller aggregates, each made when it is first used."""

    @cached_property
    def functions(self) -> FunctionRepository:
        return FunctionRepository(self._connection)

    @cached_property
    def types(self) -> TypeRepository:
        return TypeRepository(self._connection)

    @cached_property
    def indexes(self) -> IndexRepository:
        return IndexRepository(self._connection)

    @cached_property
    def partition_marks(self) -> PartitionMarkRepository:
        return PartitionMarkRepository(self._connection)

    @cached_property
    def tokens(self) -> TokenRepository:
        return TokenRepository(self._connection)

    @cached_property
    def places(self) -> PlaceRepository:
        return PlaceRepository(self._connection)

    @cached_property
    def properties(self) -> PropertyRepository:
        return PropertyRepository(self._connection)

    @cached_property
    def registry(self) -> RegistryRepository:
        return RegistryRepository(self._connection)

    @cached_property
    def resource_plans(self) -> ResourcePlanRepository:
        return ResourcePlanRepository(self._connection)

    @cached_property
    def engine_notes(self) -> EngineNoteRepository:
        return EngineNoteRepository(self._connection)

    @cached_property
    def schedules(self) -> ScheduleRepository:
        return ScheduleRepository(self._connection)

    @cached_property
    def views(self) -> ViewRepository:
        return ViewRepository(self._connection)

    @cached_property
    def statistics(self) -> StatisticsRepository:
        return StatisticsRepository(self._connection)

    @cached_property
    def constraints(self) -> ConstraintRepository:
        return ConstraintRepository(self._connection)

    @cached_property
    def roles(self) -> RoleRepository:
        return RoleRepository(self._connection)

    @cached_property
    def grants(self) -> GrantRepository:
        return GrantRepository(self._connection)


class SqlSnapshot(PartitionReads, TableReads, DatabaseReads, EventReads, _Objects):
    """`ports.Snapshot` inside a read-only transaction that `lease` keeps open."""

    def __init__(self, connection: Connection, lease: Lease) -> None:
        super().__init__(connection)
        self._lease = lease

    @cached_property
    def txns(self) -> SqlTxnReads:
        return SqlTxnReads(self._connection)


class SqlTransaction(PartitionWrites, TableWrites, DatabaseWrites, EventWrites, OutcomeWrites, _Objects):
    """`ports.Transaction` inside the writer's transaction. Lists are read at once: it ends before they are sent."""

    @cached_property
    def txns(self) -> SqlTxnWrites:
        return SqlTxnWrites(self._connection, self._clock)

    @cached_property
    def leases(self) -> SqlLeaseWrites:
        return SqlLeaseWrites(self._connection, self._clock)

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
