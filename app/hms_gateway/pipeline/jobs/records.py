"""What is noted of a run: `run.json` with its arguments and how far it is, and signs of life of its driver."""

import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.failures import JobFailed, UsageRefused
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.jobs.state import State
from hms_gateway.rpc.structs import PropertyGetRequest, PropertySetRequest, ThriftException
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
    """What was noted of the run to resume. Raises UsageRefused."""
    state = State.of(options.state, options.storage)
    record: dict[str, Any] | None = state.read_json(f"{options.resume}/run.json")
    if record is None:
        text = f"run {options.resume} is not in {state.location}"
        raise UsageRefused(text, "hms-gateway pipeline runs lists the runs")
    return record


def options_of(options: JobOptions, record: dict[str, Any]) -> JobOptions:
    """The options for going on with a run: what has to be the same is taken from its beginning."""
    begun = record["options"]
    connection = replace(options.connection, url=begun["url"])
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
