"""Everything a metastore does with partitions, by what it does: reads, additions, drops, changes, exchange."""

from collections.abc import Callable

from hms_gateway.catalog.directories.of_partitions import PartitionDirectories
from hms_gateway.catalog.partitions.additions import PartitionAdditions
from hms_gateway.catalog.partitions.changes import PartitionChanges, PartitionExchange
from hms_gateway.catalog.partitions.reads import PartitionReads
from hms_gateway.catalog.partitions.writes import PartitionDrops, PartitionValues
from hms_gateway.catalog.statistics.column_statistics import ColumnStatisticsService
from hms_gateway.metastore.changes.events import EventMaker, PartitionEvents
from hms_gateway.metastore.ports.store import FileSystem, Store
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.rpc.structs import Struct
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.limits import DEFAULT_LIMITS, Limits


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
        on_insert = None if statistics is None else statistics.of_new_partitions
        self.additions = PartitionAdditions(store, directories, values, clock, settings, limits, events, on_insert)
        self.drops = PartitionDrops(store, directories, limits, events)
        self.changes = PartitionChanges(store, files, directories, values, clock, settings, limits, events)
        self.exchanges = PartitionExchange(store, files, events)
