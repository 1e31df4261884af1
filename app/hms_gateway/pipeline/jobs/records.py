"""Notes about a run: `run.json` with its arguments and its state, signs of life of its driver, and its lease."""

import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from hms_gateway.client.metastore_client import ClientError
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.errors import JobFailed, TablesHeld, UsageRefused
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.jobs.state import State
from hms_gateway.rpc.structs import (
    ExceedsMaxLeaseTimeException,
    LeaseAlreadyExistsException,
    LeaseObject,
    PropertyGetRequest,
    PropertySetRequest,
    ThriftException,
)
from hms_gateway.rpc.wire import ApplicationError

NAMESPACE: Final = "pipeline"
_BEAT_SECONDS: Final = 10.0
_BEATS_MISSED_MAX: Final = 3


def records(state: State) -> list[dict[str, Any]]:
    """The runs of a state, the oldest first. Raises StateFailed."""
    found = [state.read_json(f"{name}/run.json") for name in state.names("")]
    listed = [{**each, "url": each["options"]["url"]} for each in found if each is not None]
    return sorted(listed, key=lambda each: str(each["began"]))


def known_runs(connection: Connection) -> list[dict[str, Any]]:
    """The runs that a metastore knows, the oldest first. Raises JobFailed."""
    with PatientClient(connection, 0) as client:
        found = client.call("get_properties", PropertyGetRequest(nameSpace=NAMESPACE, mapPrefix="")).properties
    listed = [{"run": run, "url": connection.url, **values} for run, values in found.items()]
    return sorted(listed, key=lambda each: str(each.get("began")))


def holding(state: State, lease_id: int) -> str | None:
    """The run of a state that has taken a lease and has not given it back. Raises StateFailed."""
    return next((each["run"] for each in records(state) if each.get("lease") == lease_id), None)


def record_of(options: JobOptions) -> dict[str, Any]:
    """The notes about the run to resume. Raises UsageRefused."""
    state = State.of(options.state, options.storage)
    record: dict[str, Any] | None = state.read_json(f"{options.resume}/run.json")
    if record is None:
        text = f"run {options.resume} is not in {state.location}"
        raise UsageRefused(text, "hms-gateway pipeline runs lists the runs")
    return record


def options_of(options: JobOptions, record: dict[str, Any]) -> JobOptions:
    """The options for going on with a run: what has to be the same is taken from its beginning."""
    begun = record["options"]
    connection = replace(options.connection, url=begun["url"], catalog=begun.get("catalog", ""))
    only, roots = (tuple(begun.get(name, ())) for name in ("only", "roots"))
    return replace(options, connection=connection, only=only, where=begun["where"], roots=roots)


def publish(connection: Connection, record: dict[str, Any], state: State) -> None:
    """Note a run in the metastore, where others find it; a metastore that keeps no properties is fine."""
    shown = ("kind", "status", "began", "ended")
    values = {f"{record['run']}.{name}": str(record.get(name) or "") for name in shown}
    values[f"{record['run']}.state"] = state.location
    with suppress(JobFailed, ThriftException, ApplicationError), PatientClient(connection, 0) as client:
        client.call("set_properties", PropertySetRequest(nameSpace=NAMESPACE, propertyMap=values))


def new(kind: str, options: JobOptions, arguments: Any) -> dict[str, Any]:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    return {
        "run": f"{kind}-{stamp}-{uuid.uuid4().hex[:6]}",
        "kind": kind,
        "status": "begun",
        "began": now(),
        "arguments": _plain(arguments),
        "options": _compared(options),
        "first_event": 0,
        "lease": None,
    }


def found(state: State, kind: str, options: JobOptions, arguments: Any) -> dict[str, Any]:
    """Raises UsageRefused when the run is unknown, of another kind, or was given something else."""
    run_id, record = options.resume or "", record_of(options)
    if record["kind"] != kind:
        raise UsageRefused(f"run {run_id} is a run of {record['kind']}, not of {kind}")
    _check_alone(state, run_id)
    given = {**_plain(arguments), **_compared(options)}
    named = fields(arguments) if is_dataclass(arguments) else ()
    said = {one.name: one.metadata["said"] for one in named if "said" in one.metadata}
    for name, before in {**record["arguments"], **record["options"]}.items():
        if given.get(name) != before:
            text = said.get(name) or f"{name} {before!r}, not {given.get(name)!r}"
            raise UsageRefused(
                f"run {run_id} was begun with {text}", "resume it with the same arguments, or begin a new run"
            )
    return record


def _plain(arguments: Any) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(arguments))
    return values


def _compared(options: JobOptions) -> dict[str, Any]:
    """The options that a resume has to repeat; none of them is secret."""
    return {
        "url": options.connection.url,
        "catalog": options.connection.catalog,
        "only": list(options.only),
        "where": options.where,
        "roots": list(options.roots),
    }


def _check_alone(state: State, run_id: str) -> None:
    beat = state.read_json(f"{run_id}/driver.json")
    if beat is None or time.time() - beat["at"] > _BEATS_MISSED_MAX * _BEAT_SECONDS:
        return
    if beat["host"] == socket.gethostname() and not _is_alive(beat["pid"], beat["started"]):
        return
    text = f"run {run_id} is running on {beat['host']}, process {beat['pid']}"
    raise UsageRefused(text, f"end it first; without a sign of life it can be resumed after {_BEAT_SECONDS * 3:.0f} s")


@contextmanager
def beating(state: State, run_id: str) -> Iterator[None]:
    """Signs of life in the state, so that a run is not resumed while it runs."""
    ended, pid = threading.Event(), os.getpid()
    sign = {"host": socket.gethostname(), "pid": pid, "started": _started(pid)}

    def beat() -> None:
        state.write_json(f"{run_id}/driver.json", {**sign, "at": time.time()})

    def keep() -> None:
        while not ended.wait(_BEAT_SECONDS):
            with suppress(JobFailed):
                beat()

    beat()
    thread = threading.Thread(target=keep, name="signs of life", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        with suppress(JobFailed):
            state.remove(f"{run_id}/driver.json")


def _is_alive(pid: int, started: str) -> bool:
    return _started(pid) == started and bool(started)


def _started(pid: int) -> str:
    """When a process of this machine began, in the kernel's own count; empty where there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def note(state: State, record: dict[str, Any], **values: Any) -> None:
    record.update(values)
    state.write_json(f"{record['run']}/run.json", record)


def now() -> str:
    """Fine enough to order runs that follow each other at once."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


# The lease of a run: taken and extended by the driver, presented by every changing call.


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
        """Gives the lease back; one that cannot be dropped ends by itself."""
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
