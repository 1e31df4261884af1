"""Gateways that share a database know each other: each writes now and then that it is there, and reads who else is."""

import contextlib
import os
import socket
import time
from collections.abc import Callable
from functools import cached_property
from secrets import token_hex
from typing import Final, Protocol

import msgspec
import structlog

from hms_gateway.gateway.observability.figures import Replica, Watched
from hms_gateway.metastore.ports.store import StoreError, StoreUnavailable
from hms_gateway.storage.registry.gateways import GatewayRow

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


class GatewayRows(Protocol):
    """Where rows of processes are; a store."""

    def note_gateway(self, row: GatewayRow) -> list[GatewayRow]:
        """Say that this process is there; all that are. Raises StoreError."""

    def forget_gateway(self, gateway_id: str) -> None:
        """This process ends. Raises StoreError."""


class Presence:
    """One process; `version` gives the newest event that its cache has seen.

    `note` and `leave` run in a thread, `watched` in the event loop's.
    """

    def __init__(
        self, rows: GatewayRows, version: Callable[[], int], port: int, clock: Callable[[], float] = time.time
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
