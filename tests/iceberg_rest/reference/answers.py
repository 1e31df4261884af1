"""Plays the requests at a server, and makes its answers comparable with those of another one."""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tests.iceberg_rest.reference.requests import Json, Step, steps

RECORD = Path(__file__).with_name("answers.jsonl")
Send = Callable[[Step], tuple[int, Any]]
"""Sends a request whose values are filled in; status and decoded body of the answer."""

_uuid = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_place = re.compile(r"file:/[^\s\"]*?/warehouse/(\w+)(?:\.db)?")
_filled = re.compile(r"\$(file|uuid|place|folder):(\w+)|\$now\+(\d+)")
_MS_MIN = 10**12


class Answer(NamedTuple):
    """The answer to a request by the request's name."""

    step: str
    status: int
    body: Any


def played(send: Send) -> Iterator[Answer]:
    """The answers to all requests, comparable ones."""
    kept: dict[str, Json] = {}
    now_ms = time.time_ns() // 1_000_000
    for step in steps():
        filled = step._replace(path=_fill(step.path, kept, now_ms), body=_fill(step.body, kept, now_ms))
        status, body = send(filled)
        if step.keep is not None:
            assert status == 200, (step, body)
            kept[step.keep] = body
        yield Answer(step.name, status, _comparable(None if step.method == "HEAD" else body))


def _fill(value: Any, kept: dict[str, Json], now_ms: int) -> Any:
    if isinstance(value, dict):
        return {key: _fill(each, kept, now_ms) for key, each in value.items()}
    if isinstance(value, list):
        return [_fill(each, kept, now_ms) for each in value]
    if not isinstance(value, str):
        return value
    number = _filled.fullmatch(value)
    if number is not None and number[3]:
        return now_ms + int(number[3])
    return _filled.sub(lambda found: _of_answer(found[1], kept[found[2]]), value)


def _of_answer(what: str, answer: Json) -> str:
    metadata = answer["metadata"]
    found = {
        "file": answer["metadata-location"],
        "uuid": metadata.get("table-uuid", metadata.get("view-uuid")),
        "place": metadata["location"],
        "folder": metadata["location"].rpartition("/")[0],
    }
    return str(found[what])


def _comparable(value: Any, field: str = "") -> Any:
    """Without what is of one server (UUIDs, places, times, tokens of pages, compression), texts of errors and nulls."""
    if isinstance(value, dict):
        left_out = {"stack", "message"} if field == "error" else set()
        return {
            key: _comparable(each, key)
            for key, each in sorted(value.items())
            if key not in left_out and each is not None
        }
    if isinstance(value, list):
        return [_comparable(each, field) for each in value]
    if field == "next-page-token":
        return "TOKEN"
    if isinstance(value, str):
        return _place.sub(r"PLACE/\1", _uuid.sub("UUID", value)).replace(".gz.metadata.json", ".metadata.json")
    if isinstance(value, int) and value > _MS_MIN and field.endswith("-ms"):
        return "MS"
    return value


def recorded() -> list[Answer]:
    """The answers of Iceberg's own adapter."""
    return [msgspec.json.decode(line, type=Answer) for line in RECORD.read_bytes().splitlines()]


def record(answers: Iterable[Answer]) -> None:
    RECORD.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in answers))
