"""Everything a metastore does with partitions, by what it does: reads, additions, drops, changes, exchange."""

from collections.abc import Callable

from app.clock import Clock
from app.limits import DEFAULT_LIMITS, Limits
from app.metastore.column_statistics import ColumnStatisticsService
from app.metastore.events import EventMaker
from app.metastore.partition_additions import PartitionAdditions
from app.metastore.partition_changes import PartitionChanges
from app.metastore.partition_directories import PartitionDirectories
from app.metastore.partition_drops import PartitionDrops
from app.metastore.partition_events import PartitionEvents
from app.metastore.partition_exchange import PartitionExchange
from app.metastore.partition_reads import PartitionReads
from app.metastore.partition_values import PartitionValues
from app.metastore.ports import FileSystem, Store
from app.metastore.settings import MetastoreSettings
from app.structs import Struct


class PartitionService:
    """The operations on partitions. `to_tjson` encodes structs for notification events."""

    def __init__(
        self,
        store: Store,
        files: FileSystem,
        clock: Clock,
        settings: MetastoreSettings,
        to_tjson: Callable[[Struct], bytes],
        limits: Limits = DEFAULT_LIMITS,
        statistics: ColumnStatisticsService | None = None,
    ) -> None:
        """`statistics` keep those that new partitions come with; without them they are passed over."""
        directories = PartitionDirectories(files, settings.directory_threads_max)
        events = PartitionEvents(EventMaker(settings, clock, to_tjson))
        values = PartitionValues(settings.partition_name_whitelist_pattern)
        self.values = values
        self.reads = PartitionReads(store, settings, to_tjson, limits)
        also = statistics.of_new_partitions if statistics is not None else lambda transaction, added: None
        self.additions = PartitionAdditions(store, directories, values, clock, settings, limits, events, also)
        self.drops = PartitionDrops(store, directories, limits, events)
        self.changes = PartitionChanges(store, files, directories, values, clock, settings, limits, events)
        self.exchanges = PartitionExchange(store, files, events)
