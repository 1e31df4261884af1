"""Settings as clients may ask for them, and what clients say about themselves (semantics §2.2, §2.21)."""

import re
from collections.abc import Mapping
from typing import Final

from hms_gateway.handlers.regular_expressions import complaint_about
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.rpc.call import Call
from hms_gateway.runtime.limits import Limits
from hms_gateway.structs import ConfigValSecurityException, MetaException

_READABLE = re.compile("(hive|hdfs|mapred).*")
_SECRET_WORDS: Final = ("password", "secret", "token", "key")
_TIME = re.compile(r"[0-9]+\s*([num]?s|[num]?sec|(nano|micro|milli)?seconds?|m|min|minutes?|h|hours?|d|days?)?")
_SOCKET_TIMEOUT: Final = "hive.metastore.client.socket.timeout"
_WHITELIST: Final = "hive.metastore.partition.name.whitelist.pattern"

# Values of Hive's that clients act by and that nothing here contradicts.
_HIVES_DEFAULTS: Final = {
    "hive.exec.default.partition.name": "__HIVE_DEFAULT_PARTITION__",
    "hive.metastore.batch.retrieve.max": "300",
    "hive.metastore.batch.retrieve.table.partition.max": "1000",
    "hive.metastore.client.connect.retry.delay": "1s",
    "hive.metastore.client.socket.lifetime": "0s",
    "hive.metastore.connect.retries": "3",
    "hive.metastore.execute.setugi": "true",
    "hive.metastore.failure.retries": "1",
    "hive.metastore.orm.retrieveMapNullsAsEmptyStrings": "false",
    "hive.metastore.stats.ndv.densityfunction": "false",
    "hive.metastore.stats.ndv.tuner": "0.0",
    "hive.lock.numretries": "100",
    "hive.lock.sleep.between.retries": "60s",
    "hive.unlock.numretries": "10",
    "hive.support.concurrency": "true",
    "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
    "hive.txn.strict.locking.mode": "true",
    "hive.compactor.history.retention.attempted": "2",
    "hive.compactor.history.retention.failed": "3",
    "hive.compactor.history.retention.succeeded": "3",
    "hive.compactor.worker.timeout": "86400s",
}


class Configuration:
    def __init__(self, settings: MetastoreSettings, limits: Limits) -> None:
        self._pattern_bytes_max = limits.pattern_bytes_max
        self._meta = _meta_configuration(settings)
        self._values = {**_HIVES_DEFAULTS, **_own_values(settings)}

    def getMetaConf(self, call: Call, key: str) -> str:
        return self._meta[self._known(key)]

    def setMetaConf(self, call: Call, key: str, value: str) -> None:
        """Checked and forgotten: a setting would last as long as a connection, and there is none (design D13)."""
        name = self._known(key)
        # In UTF-8 it is not shorter than in characters.
        if value is not None and len(value) > self._pattern_bytes_max:
            raise MetaException(
                f"value is longer than {self._pattern_bytes_max} bytes; shorten it (limit pattern_bytes_max)"
            )
        reason = _complaint(name, value)
        if reason:
            raise MetaException(f"Invalid configuration value {value} for key {key} by {reason}")

    def _known(self, key: str | None) -> str:
        """The key by its older name; from 3.1 on `hive.` may be missing."""
        name = f"hive.{key}" if (key or "").startswith("metastore.") else key
        if name is None or name not in self._meta:
            raise MetaException(f"Invalid configuration key {'null' if key is None else key}")
        return name

    def get_config_value(self, call: Call, name: str | None, defaultValue: str | None) -> str | None:
        """The caller's default for a key that nothing here corresponds to.

        Names that may hold secrets are refused (semantics §13, trap 32).
        """
        if name is None:
            return defaultValue
        if not _READABLE.fullmatch(name) or any(word in name.lower() for word in _SECRET_WORDS):
            raise ConfigValSecurityException(f"For security reasons, the config key {name} cannot be accessed")
        return self._values.get(name, defaultValue)

    def flushCache(self, call: Call) -> None:
        """Nothing: the cache is never stale."""

    def set_ugi(self, call: Call, user_name: str, group_names: list[str]) -> list[str]:
        """The groups. Who the caller is, the transport has decided."""
        return list(group_names or [])


def _meta_configuration(settings: MetastoreSettings) -> dict[str, str]:
    return {
        "hive.metastore.try.direct.sql": "true",
        "hive.metastore.try.direct.sql.ddl": "true",
        _SOCKET_TIMEOUT: f"{settings.client_socket_timeout_seconds}s",
        _WHITELIST: settings.partition_name_whitelist_pattern,
        "hive.metastore.client.capability.check": "true",
        "hive.metastore.disallow.incompatible.col.type.changes": _text(settings.refuses_incompatible_column_changes),
    }


def _own_values(settings: MetastoreSettings) -> Mapping[str, str]:
    """What this server does, under Hive's names. A value that is empty is none, as in Hive."""
    values = {
        **_meta_configuration(settings),
        "hive.metastore.warehouse.dir": settings.warehouse_location,
        "hive.metastore.limit.partition.request": str(settings.limit_partition_request),
        "hive.metastore.allow.incompatible.col.type.changes.serdes": ",".join(settings.column_change_serdes),
        "hive.metastore.partition.inherit.table.properties": settings.partition_inherit_table_properties,
        "hive.metastore.event.db.listener.timetolive": f"{settings.event_seconds_max}s",
        "hive.metastore.event.expiry.duration": f"{settings.partition_mark_seconds_max}s",
        "hive.metastore.fshandler.threads": str(settings.directory_threads_max),
        "hive.stats.autogather": _text(settings.gathers_statistics),
        "hive.support.special.characters.tablename": _text(settings.allows_slash_in_table_names),
        **settings.hive_configuration,
    }
    return {key: value for key, value in values.items() if value}


def _text(value: bool) -> str:
    return "true" if value else "false"


def _complaint(key: str, value: str | None) -> str | None:
    """Why a value is not one; booleans have no check in Hive either."""
    if key == _SOCKET_TIMEOUT and not _TIME.fullmatch((value or "").strip().lower()):
        return "not a time"
    return complaint_about(value or "") if key == _WHITELIST else None
