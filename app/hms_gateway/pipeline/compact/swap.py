"""What a swap changes of a partition or table, and whether it may still be made."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from hms_gateway.metastore.vocabulary.parameters import DDL_TIME, FILE_COUNT, ROW_COUNT, SPARK, TOTAL_BYTES
from hms_gateway.rpc.structs import Partition, Table

# What is known of the directory that was left; the cleaning removes it, and these with it.
REPLACES: Final = "hms.compact.replaces"
FILES: Final = "hms.compact.files"
AT: Final = "hms.compact.at"
RUN: Final = "hms.compact.run"
# In place of the fingerprint once files are being removed.
REMOVING: Final = "removing"
_OWN: Final = (REPLACES, FILES, AT, RUN)


Described = TypeVar("Described", bound=Partition | Table)


@dataclass(frozen=True, slots=True)
class NewFiles:
    """What was written to `location`."""

    location: str
    files: int
    bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class Left:
    """What was compacted and is still there: where, the fingerprint of its files, and when it was left, in seconds."""

    location: str
    fingerprint: str
    at: float
    run: str


def left(parameters: Mapping[str, str] | None) -> Left | None:
    """None where nothing waits to be cleaned."""
    found = parameters or {}
    if REPLACES not in found:
        return None
    at = found.get(AT, "")
    return Left(
        found[REPLACES],
        found.get(FILES, ""),
        float(at) if at.replace(".", "", 1).isdecimal() else time.time(),
        found.get(RUN, ""),
    )


def swapped(before: Described, new: NewFiles, old: Left) -> Described:
    """With the new directory, its statistics, and what is known of the old one. The server sets the DDL time."""
    parameters = {key: value for key, value in (before.parameters or {}).items() if key != DDL_TIME}
    counted = {FILE_COUNT: new.files, TOTAL_BYTES: new.bytes, ROW_COUNT: new.rows}
    counted |= {name: number for name, number in _of_spark(new).items() if name in parameters}
    noted = {REPLACES: old.location, FILES: old.fingerprint, AT: f"{old.at:.3f}", RUN: old.run}
    parameters = {**parameters, **{name: str(number) for name, number in counted.items()}, **noted}
    return msgspec.structs.replace(before, parameters=parameters, sd=_moved(before.sd, new.location))


def cleaned(before: Described) -> Described:
    """Without what was known of the old directory."""
    parameters = {key: value for key, value in (before.parameters or {}).items() if key not in _OWN}
    return msgspec.structs.replace(before, parameters=parameters)


def marked(before: Described) -> Described:
    """With the note that the files of the old directory are being removed."""
    return msgspec.structs.replace(before, parameters={**(before.parameters or {}), FILES: REMOVING})


def same_path(one: str, other: str) -> bool:
    """`file:/a`, `file:///a` and `/a` are one."""
    return _path(one) == _path(other)


def _path(location: str) -> str:
    found = location.rstrip("/")
    return "/" + found.removeprefix("file:").lstrip("/") if found.startswith(("file:", "/")) else found


def _of_spark(new: NewFiles) -> dict[str, int]:
    return {SPARK + TOTAL_BYTES: new.bytes, SPARK + ROW_COUNT: new.rows}


def _moved(sd: Any, location: str) -> Any:
    """Spark's own tables have their location a second time."""
    serde = sd.serdeInfo
    path = (serde.parameters or {}).get("path") if serde is not None else None
    if path and same_path(path, sd.location):
        serde = msgspec.structs.replace(serde, parameters={**serde.parameters, "path": location})
    return msgspec.structs.replace(sd, location=location, serdeInfo=serde)
