"""Methods of the service itself: its configuration, and what it does not keep."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Final

from hms_gateway.catalog.arguments import database_name
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.ports.store import ChangeSelection, MadeChange
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    CacheFileMetadataRequest,
    CacheFileMetadataResult,
    Change,
    ChangesRequest,
    ClearFileMetadataRequest,
    ClearFileMetadataResult,
    ConfigValSecurityException,
    GetFileMetadataByExprRequest,
    GetFileMetadataByExprResult,
    GetFileMetadataRequest,
    GetFileMetadataResult,
    MetaException,
    PutFileMetadataRequest,
    PutFileMetadataResult,
    fb_status,
)
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.limits import Limits

# Options mean nothing to the metastore, so the oldest one makes room.
_OPTIONS_MAX: Final = 1000


class Service:
    """`counters` gives the number of calls by method."""

    def __init__(self, clock: Clock, counters: Callable[[], Mapping[str, int]] = dict) -> None:
        self._started = clock.seconds()
        self._counters = counters
        self._options: dict[str, str] = {}

    def getName(self, call: Call) -> str:
        return "new db based metaserver"

    def getVersion(self, call: Call) -> str:
        return "3.0"

    def getStatus(self, call: Call) -> int:
        return fb_status.ALIVE

    def getStatusDetails(self, call: Call) -> str:
        return ""

    def getCounters(self, call: Call) -> dict[str, int]:
        return dict(self._counters())

    def getCounter(self, call: Call, key: str) -> int:
        return self._counters().get(key, 0)

    def setOption(self, call: Call, key: str | None, value: str | None) -> None:
        if key is None or value is None:
            return
        self._options[key] = value
        if len(self._options) > _OPTIONS_MAX:
            self._options.pop(next(iter(self._options)), None)

    def getOption(self, call: Call, key: str) -> str | None:
        """None for a key that is not set, which clients see as a missing result."""
        return self._options.get(key)

    def getOptions(self, call: Call) -> dict[str, str]:
        return dict(self._options)

    def getCpuProfile(self, call: Call, profileDurationInSec: int) -> str:
        return ""

    def aliveSince(self, call: Call) -> int:
        return self._started

    def reinitialize(self, call: Call) -> None:
        """Nothing: every call starts afresh."""

    def shutdown(self, call: Call) -> None:
        """Nothing: Java clients send it whenever they close a connection (clients §0 rule 9)."""


class FileMetadata:
    """Nothing is kept; every call is answered that it is not supported."""

    def get_file_metadata_by_expr(self, call: Call, req: GetFileMetadataByExprRequest) -> GetFileMetadataByExprResult:
        required(req, "req")
        return GetFileMetadataByExprResult({}, False)

    def get_file_metadata(self, call: Call, req: GetFileMetadataRequest) -> GetFileMetadataResult:
        required(req, "req")
        return GetFileMetadataResult({}, False)

    def put_file_metadata(self, call: Call, req: PutFileMetadataRequest) -> PutFileMetadataResult:
        required(req, "req")
        return PutFileMetadataResult()

    def clear_file_metadata(self, call: Call, req: ClearFileMetadataRequest) -> ClearFileMetadataResult:
        """Hive fails with an internal error here; there is nothing to clear, so it is done."""
        required(req, "req")
        return ClearFileMetadataResult()

    def cache_file_metadata(self, call: Call, req: CacheFileMetadataRequest) -> CacheFileMetadataResult:
        required(req, "req")
        return CacheFileMetadataResult(False)


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
    "hive.metastore.event.expiry.duration": "0s",
    "hive.metastore.execute.setugi": "true",
    "hive.metastore.failure.retries": "1",
    # As many as make directories of partitions.
    "hive.metastore.fshandler.threads": "15",
    "hive.metastore.orm.retrieveMapNullsAsEmptyStrings": "false",
    "hive.metastore.stats.ndv.densityfunction": "false",
    "hive.metastore.stats.ndv.tuner": "0.0",
    "hive.stats.autogather": "true",
    "hive.support.special.characters.tablename": "true",
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
        _SOCKET_TIMEOUT: "600s",
        _WHITELIST: "",
        "hive.metastore.client.capability.check": "true",
        "hive.metastore.disallow.incompatible.col.type.changes": _text(settings.refuses_incompatible_column_changes),
    }


def _own_values(settings: MetastoreSettings) -> Mapping[str, str]:
    """Settings of this server under Hive's names. A value that is empty is none, as in Hive."""
    values = {
        **_meta_configuration(settings),
        "hive.metastore.warehouse.dir": settings.warehouse_location,
        "hive.metastore.limit.partition.request": str(settings.limit_partition_request),
        "hive.metastore.allow.incompatible.col.type.changes.serdes": ",".join(settings.column_change_serdes),
        "hive.metastore.event.db.listener.timetolive": f"{settings.event_seconds_max}s",
        **settings.hive_configuration,
    }
    return {key: value for key, value in values.items() if value}


def _text(value: bool) -> str:
    return "true" if value else "false"


def _complaint(key: str, value: str | None) -> str | None:
    """Reason that a value is refused; booleans have no check in Hive either."""
    if key == _SOCKET_TIMEOUT and not _TIME.fullmatch((value or "").strip().lower()):
        return "not a time"
    return complaint_about(value or "") if key == _WHITELIST else None


# Quoted text, an escaped character, a class up to its first member (where `]` means itself), what opens a group,
# counts, and single characters. No alternative begins like another that can fail after it.
_PIECE: Final = re.compile(
    r"""
      (?P<quoted>     \\Q (?: [^\\] | \\(?!E) )*+ (?: \\E )? )
    | (?P<escaped>    \\ . )
    | (?P<class>      \[ \^? \]? )
    | (?P<open>       \( (?: \? [^)]? )? )
    | (?P<close>      \) )
    | (?P<quantifier> [*+?] | \{ [0-9]++ (?: , [0-9]*+ )? \} )
    | (?P<bar>        \| )
    | (?P<plain>      [^\\] )
    """,
    re.VERBOSE | re.DOTALL,
)
_COUNT_DIGITS_MAX: Final = 9


def complaint_about(text: str) -> str | None:
    """Fault of a regular expression, None when there is none."""
    groups, at, repeatable = 0, 0, False
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            return f"a backslash at the end, at character {at}"
        at = piece.end()
        match piece.lastgroup:
            case "class":
                closed = _end_of_class(text, at)
                if closed is None:
                    return f"[ without ] at character {piece.start()}"
                at, repeatable = closed, True
            case "open":
                groups, repeatable = groups + 1, False
            case "close":
                if not groups:
                    return f") without ( at character {piece.start()}"
                groups, repeatable = groups - 1, True
            case "quantifier":
                if not repeatable:
                    return f"nothing to repeat at character {piece.start()}"
                if not _counts_fit(piece[0]):
                    return f"a count that is too large at character {piece.start()}"
            case "bar":
                repeatable = False
            case _:
                repeatable = True
    return "( without )" if groups else None


def _end_of_class(text: str, at: int) -> int | None:
    """After the class that is open at `at`; classes of Java may hold classes."""
    depth = 1
    while at < len(text):
        character = text[at]
        at += 2 if character == "\\" else 1
        depth += (character == "[") - (character == "]")
        if not depth:
            return at
    return None


def _counts_fit(quantifier: str) -> bool:
    counts = [count for count in quantifier.strip("{}").split(",") if count]
    if any(len(count) > _COUNT_DIGITS_MAX for count in counts):
        return False
    return len(counts) < 2 or not quantifier.startswith("{") or int(counts[0]) <= int(counts[1])


# Who changed what.


CHANGES_MAX: Final = 10_000
_CHANGES_DEFAULT: Final = 100


class ChangeTrails:
    """For administrators, since it names users, their addresses and every object."""

    def __init__(self, changes_made: Callable[..., list[MadeChange]], administrators: Collection[str]) -> None:
        self._changes_made = changes_made
        self._administrators = administrators

    def list_changes(self, call: Call, rqst: ChangesRequest | None) -> list[Change]:
        if call.principal not in self._administrators:
            raise MetaException(
                f"user {call.principal} is not an administrator; who changed what is for the users that the setting "
                "administrators names"
            )
        rqst = rqst or ChangesRequest()
        limit = _CHANGES_DEFAULT if rqst.limit is None else rqst.limit
        if not 0 < limit <= CHANGES_MAX:
            raise MetaException(f"limit {limit} is out of range; ask for 1 to {CHANGES_MAX} changes")
        selection = ChangeSelection(
            rqst.user,
            None if rqst.db_name is None else normalize(database_name(rqst.db_name) or ""),
            None if rqst.table_name is None else normalize(rqst.table_name),
            rqst.from_time,
            rqst.until_time,
            rqst.before_event_id,
            limit,
        )
        return [_change(made) for made in self._changes_made(selection)]


def _change(made: MadeChange) -> Change:
    actor = made.actor
    return Change(
        event_id=made.event_id,
        event_time=made.seconds,
        event_type=made.event_type,
        user=actor.user,
        db_name=made.db_name or None,
        table_name=made.table_name or None,
        real_user=actor.real_user or None,
        address=actor.address or None,
        method=actor.method or None,
        request_id=actor.request_id or None,
    )
