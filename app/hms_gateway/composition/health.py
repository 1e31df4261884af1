"""Facts that operators have to know besides calls: whether the gateway is ready, room on disks, files not usable, and
the gateways that share the database.
"""

import contextlib
import os
import re
import shutil
import socket
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from typing import Final

import msgspec
import structlog

from hms_gateway.catalog.rights.rules_file import read_rules
from hms_gateway.composition.places import database_url
from hms_gateway.gateway.application import NotReady
from hms_gateway.gateway.auth.tokens import read_tokens
from hms_gateway.gateway.auth.users import read_groups, read_users
from hms_gateway.gateway.certificates.client_certificates import read_revocations
from hms_gateway.gateway.certificates.tls import read_fields
from hms_gateway.gateway.observability.figures import Replica, Watched
from hms_gateway.metastore.ports.store import StoreError, StoreUnavailable
from hms_gateway.runtime.file_versions import FileVersion, file_version
from hms_gateway.runtime.settings import Settings
from hms_gateway.runtime.tracebacks import forget_frames
from hms_gateway.storage.dialects.integrity import sqlite_file
from hms_gateway.storage.registry.gateways import GatewayRow
from hms_gateway.storage.writing.store import SqlStore

_LOCAL: Final = re.compile(r"(?:file:(?://)?)?(/.*)")


class ReadFile(msgspec.Struct):
    """A file that is read again when it changes. `read` raises for one that cannot be used."""

    path: Path
    read: Callable[[Path], object]
    may_be_missing: bool = False
    version: FileVersion | None = None
    is_unusable: bool = False

    def look(self) -> bool:
        """True for a file that cannot be used as it is now. It is read where it has changed since the last look."""
        version = file_version(self.path)
        if version is None:
            return not self.may_be_missing
        if version != self.version:
            try:
                self.read(self.path)
            except Exception:
                # The code that uses the file has logged why.
                self.is_unusable = True
            else:
                self.is_unusable = False
            self.version = version
        return self.is_unusable


def check_ready(store: SqlStore) -> None:
    """Raises NotReady while no call can be answered.

    A full disk and an unusable file of users are no reasons: reads go on, and the previous users stay valid.
    """
    try:
        store.ready()
    except StoreUnavailable as error:
        forget_frames(error)
        raise NotReady(str(error)) from None


class Health:
    """`folders` and `files` are by the names of settings; `free` gives the free bytes on the disk of a folder."""

    def __init__(
        self,
        folders: Mapping[str, Path],
        files: Mapping[str, ReadFile],
        free: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
    ) -> None:
        self._folders = folders
        self._files = files
        self._free = free

    def figures(self) -> dict[str, dict[str, float]]:
        """Gauges, by their names and the values of their labels. It looks at disks, so it takes time."""
        free = {name: self._free_in(folder) for name, folder in self._folders.items()}
        return {
            "disk_free_bytes": {name: count for name, count in free.items() if count is not None},
            "file_unreadable": {name: int(file.look()) for name, file in self._files.items()},
        }

    def _free_in(self, folder: Path) -> int | None:
        """None for one that is not there."""
        try:
            return self._free(folder)
        except OSError:
            return None


def folders_of(settings: Settings) -> dict[str, Path]:
    """The folders whose disks may fill up, by the settings that name them. Raises StoreError."""
    folders = {"data_dir": settings.data_dir}
    database = sqlite_file(database_url(settings))
    if database is not None and database.parent != settings.data_dir.absolute():
        folders["database_url"] = database.parent
    warehouse = _LOCAL.fullmatch(settings.warehouse_location)
    return folders if warehouse is None else folders | {"warehouse_dir": Path(warehouse[1])}


def files_of(settings: Settings) -> dict[str, ReadFile]:
    """The files that logins and rights are read from."""
    optional: dict[str, tuple[Path | None, Callable[[Path], object]]] = {
        "groups_file": (settings.groups_file, read_groups),
        "client_certificates.revocations": (settings.client_certificates.revocations, read_revocations),
        "client_certificates.authority": (settings.client_certificates.authority, read_fields),
        "trusted_proxy.authority": (settings.trusted_proxy.authority, read_fields),
        "tls_certificate": (settings.tls_certificate, read_fields),
        "authorization_rules_file": (settings.authorization_rules_file, read_rules),
    }
    return {
        "users_file": ReadFile(settings.users_path, read_users),
        "tokens_file": ReadFile(settings.tokens_path, read_tokens, may_be_missing=True),
        **{name: ReadFile(path, read) for name, (path, read) in optional.items() if path is not None},
    }


# Two statements: one in five seconds.
EVERY_SECONDS: Final = 10.0
# An operator who has started a gateway looks for it.
FIRST_SECONDS: Final = 1.0
# Locks, leases and transactions go by the database's clock; times of events, tokens and certificates by the gateway's.
CLOCK_SECONDS_MAX: Final = 60.0

_log = structlog.get_logger("hms_gateway.presence")


def gateway_name(port: int) -> str:
    """By which the processes of a gateway are known to others."""
    return f"{socket.gethostname()}:{port}"


class Presence:
    """One process; `version` gives the newest event that its cache has seen.

    `note` and `leave` run in a thread, `watched` in the event loop's.
    """

    def __init__(
        self, rows: SqlStore, version: Callable[[], int], port: int, clock: Callable[[], float] = time.time
    ) -> None:
        self._rows = rows
        self._version = version
        self._clock = clock
        self._clock_seconds: float | None = None
        self._name = gateway_name(port)
        self._id = token_hex(16)
        self._known: list[GatewayRow] = []

    def note(self) -> None:
        """Write that this process is there. While the database is away, nothing is known of others.

        Raises StoreError where it failed: nothing is known then, either.
        """
        row = GatewayRow(self._id, self._name, os.getpid(), self._release, self._version())
        begin = self._clock()
        try:
            self._known = self._rows.note_gateway(row)
        except StoreError as error:
            self._known = []
            if not isinstance(error, StoreUnavailable):
                raise
            forget_frames(error)
        else:
            self._compare_clocks(begin, self._clock())

    def _compare_clocks(self, begin: float, end: float) -> None:
        """The database has said between the two what time it is; one line where the difference begins to be large."""
        was_off, now = abs(self._clock_seconds or 0.0) > CLOCK_SECONDS_MAX, self._known[0].now_ms / 1_000
        # 0.0 as long as they may agree.
        self._clock_seconds = now - min(max(now, begin), end)
        if not was_off and abs(self._clock_seconds) > CLOCK_SECONDS_MAX:
            _log.error(
                "the clock of this machine differs from the database's; set both by NTP",
                database_ahead_seconds=round(self._clock_seconds, 1),
            )

    def leave(self) -> None:
        """This process ends. Where the database is away, the others see it end in a minute."""
        with contextlib.suppress(StoreError):
            self._rows.forget_gateway(self._id)

    def watched(self) -> Watched:
        own = Replica(self._name, os.getpid(), self._version(), self._id)
        others = []
        for row in self._known:
            if row.gateway_id == self._id:
                own = _replica(row, self._version())
            else:
                others.append(_replica(row, row.event_id))
        own = msgspec.structs.replace(own, clock_seconds=self._clock_seconds)
        return Watched(replicas=[own], others=others)

    @cached_property
    def _release(self) -> str:
        from importlib.metadata import version

        return version("hms-gateway")


def _replica(row: GatewayRow, event_id: int) -> Replica:
    behind = None if row.behind_since_seconds is None else row.seen_ms / 1_000 - row.behind_since_seconds
    return Replica(
        row.name,
        row.pid,
        event_id,
        row.gateway_id,
        row.version,
        row.started_ms / 1_000,
        row.seen_ms / 1_000,
        max(0, row.newest_event_id - row.event_id),
        0.0 if behind is None else max(0.0, behind),
    )
