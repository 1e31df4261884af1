"""The settings by which the metastore's rules differ, with Hive's defaults (semantics §11)."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec


class MetastoreSettings(msgspec.Struct, frozen=True):
    """Settings of the rules; each comment names Hive's own key.

    `hive_configuration` holds further keys that `get_config_value` answers.
    """

    # hive.metastore.warehouse.dir
    warehouse_location: str = "/user/hive/warehouse"
    # hive.metastore.limit.partition.request; -1 means no limit.
    limit_partition_request: int = -1
    # hive.metastore.disallow.incompatible.col.type.changes
    refuses_incompatible_column_changes: bool = True
    # metastore.allow.incompatible.col.type.changes.serdes, of Hive 4: tables with these serdes are exempt.
    column_change_serdes: tuple[str, ...] = ()
    # hive.metastore.event.db.listener.timetolive: notification events are kept so long.
    event_seconds_max: int = 86_400
    hive_configuration: Mapping[str, str] = msgspec.field(default_factory=lambda: MappingProxyType({}))
