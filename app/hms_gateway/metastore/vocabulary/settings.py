"""What an operator may change about the metastore's rules, with Hive's defaults (semantics §11)."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec


class MetastoreSettings(msgspec.Struct, frozen=True):
    """Settings of the rules; each comment names Hive's own key.

    `hive_configuration` holds further keys that `get_config_value` answers.
    """

    # hive.metastore.warehouse.dir; a location without a scheme belongs to default_file_system.
    warehouse_location: str = "/user/hive/warehouse"
    # fs.defaultFS
    default_file_system: str = "file:///"
    # hive.support.special.characters.tablename
    allows_slash_in_table_names: bool = True
    # hive.metastore.partition.name.whitelist.pattern; empty means that every value is fine.
    partition_name_whitelist_pattern: str = ""
    # hive.metastore.limit.partition.request; -1 means no limit.
    limit_partition_request: int = -1
    # hive.metastore.partition.inherit.table.properties; comma-separated keys, `*` for all.
    partition_inherit_table_properties: str = ""
    # hive.metastore.disallow.incompatible.col.type.changes
    refuses_incompatible_column_changes: bool = True
    # metastore.allow.incompatible.col.type.changes.serdes, of Hive 4: tables with these serdes are exempt.
    column_change_serdes: tuple[str, ...] = ()
    # hive.stats.autogather
    gathers_statistics: bool = True
    # hive.metastore.client.socket.timeout, only returned to clients that ask.
    client_socket_timeout_seconds: int = 600
    # The two names in every notification message (semantics §2.20); empty as Hive has them when not configured.
    event_server: str = ""
    event_service_principal: str = ""
    # hive.metastore.event.db.listener.timetolive: notification events are kept so long.
    event_seconds_max: int = 86_400
    # hive.metastore.event.expiry.duration: marks of partitions are kept so long; 0 is for ever.
    partition_mark_seconds_max: int = 0
    # metastore.scheduled.queries.autodisable.count: a query that failed so often in a row is turned off; 0 is never.
    scheduled_query_failures_max: int = 0
    # Directories that many partitions need are made by so many threads.
    directory_threads_max: int = 15
    hive_configuration: Mapping[str, str] = msgspec.field(default_factory=lambda: MappingProxyType({}))
