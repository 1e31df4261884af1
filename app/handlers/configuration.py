"""Settings as clients may ask for them, and what clients tell about themselves (semantics §2.2, §2.21)."""

import re
from collections.abc import Mapping
from typing import Final

from app.handlers.regular_expressions import complaint_about
from app.limits import Limits
from app.metastore.settings import MetastoreSettings
from app.rpc.call import Call
from app.structs import ConfigValSecurityException, MetaException

_READABLE = re.compile("(hive|hdfs|mapred).*")
_SECRET_WORDS: Final = ("password", "secret", "token", "key")
_TIME = re.compile(r"[0-9]+\s*([num]?s|[num]?sec|(nano|micro|milli)?seconds?|m|min|minutes?|h|hours?|d|days?)?")
_SOCKET_TIMEOUT: Final = "hive.metastore.client.socket.timeout"
_WHITELIST: Final = "hive.metastore.partition.name.whitelist.pattern"


class Configuration:
    def __init__(self, settings: MetastoreSettings, limits: Limits) -> None:
        self._pattern_bytes_max = limits.pattern_bytes_max
        self._meta = _meta_configuration(settings)
        self._values = {**_defaults(settings), **self._meta, **settings.hive_configuration}

    def getMetaConf(self, call: Call, key: str) -> str:
        if key not in self._meta:
            raise _invalid_key(key)
        return self._meta[key]

    def setMetaConf(self, call: Call, key: str, value: str) -> None:
        """Checked and forgotten: a setting would last as long as a connection, and there is none (design D13)."""
        if key not in self._meta:
            raise _invalid_key(key)
        # In UTF-8 it is not shorter than in characters.
        if value is not None and len(value) > self._pattern_bytes_max:
            raise MetaException(
                f"value is longer than {self._pattern_bytes_max} bytes; shorten it (limit pattern_bytes_max)"
            )
        reason = _complaint(key, value)
        if reason:
            raise MetaException(f"Invalid configuration value {value} for key {key} by {reason}")

    def get_config_value(self, call: Call, name: str | None, defaultValue: str | None) -> str | None:
        """The default for a key nobody set. Names that may hold secrets are refused (semantics §13, trap 32)."""
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
    }


def _defaults(settings: MetastoreSettings) -> Mapping[str, str]:
    """What semantics §11 lists and this server has."""
    return {
        "hive.metastore.warehouse.dir": settings.warehouse_location,
        "hive.metastore.limit.partition.request": str(settings.limit_partition_request),
        "hive.metastore.disallow.incompatible.col.type.changes": _text(settings.refuses_incompatible_column_changes),
        "hive.metastore.partition.inherit.table.properties": settings.partition_inherit_table_properties,
        "hive.stats.autogather": _text(settings.gathers_statistics),
        "hive.exec.default.partition.name": "__HIVE_DEFAULT_PARTITION__",
        "hive.support.special.characters.tablename": _text(settings.allows_slash_in_table_names),
    }


def _text(value: bool) -> str:
    return "true" if value else "false"


def _complaint(key: str, value: str | None) -> str | None:
    """Why a value is not one; booleans have no check in Hive either."""
    if key == _SOCKET_TIMEOUT and not _TIME.fullmatch((value or "").strip().lower()):
        return "not a time"
    return complaint_about(value or "") if key == _WHITELIST else None


def _invalid_key(key: str | None) -> MetaException:
    return MetaException(f"Invalid configuration key {'null' if key is None else key}")
