"""The lease of a run: taken and extended by the driver, presented by every changing call."""

import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from hms_gateway.client.metastore_client import ClientError
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.failures import JobFailed, TablesHeld, UsageRefused
from hms_gateway.pipeline.jobs.records import holding
from hms_gateway.pipeline.jobs.state import State
from hms_gateway.rpc.structs import (
    ExceedsMaxLeaseTimeException,
    LeaseAlreadyExistsException,
    LeaseObject,
    ThriftException,
)

LEASE_SECONDS_MIN: Final = 120
# A lease has to outlive the absence of a gateway that the job waits for.
_BEYOND_PATIENCE_SECONDS: Final = 60
_EXTENSIONS_PER_LEASE: Final = 6
OBJECTS_MAX: Final = 1_000
# In the gateway's text.
_HOLDER: Final = re.compile(r"\blease ([0-9]+) of ")


class Lease:
    """An exclusive lease on tables, extended by a thread until `drop`; `on_lost` runs in that thread."""

    def __init__(
        self, connection: Connection, state: State, patience_seconds: float, on_lost: Callable[[str], None]
    ) -> None:
        self.lease_id: int | None = None
        self._connection, self._state = connection, state
        self._patience_seconds = patience_seconds
        self._seconds = max(LEASE_SECONDS_MIN, int(patience_seconds) + _BEYOND_PATIENCE_SECONDS)
        self._on_lost = on_lost
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._extend, name="lease of the run", daemon=True)

    def grab(self, tables: Sequence[str]) -> int:
        """Raises TablesHeld, UsageRefused, and what PatientClient raises."""
        with PatientClient(self._connection, self._patience_seconds) as client:
            try:
                self.lease_id = client.call("grab_lease", objects(tables), self._seconds, 0)
            except LeaseAlreadyExistsException as held:
                raise self._held(held.message or "the tables are held") from held
            except ExceedsMaxLeaseTimeException as refused:
                text = f"--patience {self._patience_seconds:.0f} needs a lease that is too long: {refused.message}"
                raise UsageRefused(text, "lower --patience, or raise lease_seconds_max of the gateway") from refused
        self._thread.start()
        return self.lease_id or 0

    def _held(self, text: str) -> TablesHeld:
        named = _HOLDER.search(text)
        run = holding(self._state, int(named[1])) if named else None
        if run is None:
            return TablesHeld(text, "wait for its end (hms-gateway leases show)")
        return TablesHeld(f"{text}: run {run}", f"wait for its end; a run that was killed goes on with --resume {run}")

    def drop(self, patience_seconds: float) -> None:
        """What cannot be dropped ends by itself."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        if self.lease_id is not None:
            drop(self._connection, self.lease_id, patience_seconds)

    def _extend(self) -> None:
        kept, every = time.monotonic(), self._seconds / _EXTENSIONS_PER_LEASE
        while not self._ended.wait(every):
            asked = time.monotonic()
            try:
                with self._connection.open() as client:
                    client.call("extend_lease", self.lease_id, [], 0)
                kept = asked
            except ThriftException as lost:
                self._on_lost(lost.message or type(lost).__name__)
                return
            except (ClientError, OSError) as away:
                if time.monotonic() - kept >= self._seconds:
                    self._on_lost(f"it could not be extended for {self._seconds} s: {away}")
                    return


def drop(connection: Connection, lease_id: int, patience_seconds: float = 0) -> None:
    """End a lease, so that calls that still present it are refused; one that ended before is fine."""
    with suppress(ThriftException, JobFailed), PatientClient(connection, patience_seconds) as client:
        client.call("drop_lease", lease_id, [])


def objects(tables: Sequence[str]) -> list[LeaseObject]:
    """Tables as objects of a lease; whole databases where they are too many."""
    if len(tables) > OBJECTS_MAX:
        tables = sorted({f"{table.partition('.')[0]}.*" for table in tables})
    return [_object(table) for table in tables]


def _object(table: str) -> LeaseObject:
    database, _, name = table.partition(".")
    return LeaseObject(db_name=database, table_name=None if name == "*" else name, lease_type="x")
