"""The recorded corpus: what the real metastore answered to every call of every script, one JSON line a call.

`python -m tests.comparison.record` writes it anew from a real metastore.
"""

import json
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

from tests.comparison.replies import Reply
from tests.comparison.servers import Step

FOLDER = Path(__file__).parent / "corpus"
SCRIPTS = (
    "databases",
    "tables",
    "partitions",
    "partition_specs",
    "filters",
    "functions",
    "indexes",
    "privileges",
    "statistics",
    "statistics_marks",
    "transactions",
    "locks",
    "mistaken_alterations",
    "compactions",
    "notifications",
    "service",
    "odd_arguments",
    "refusals",
    "details",
)


def steps_of(script: str) -> list[Step]:
    """The calls of a script, in order. They expect a clean metastore."""
    return list(import_module(f"tests.comparison.scripts.{script}").steps())


def read(script: str) -> Iterator[tuple[Step, Reply]]:
    for line in _file(script).read_text().splitlines():
        recorded = json.loads(line)
        yield Step(recorded["method"], recorded["request"]), recorded["reply"]


def write(script: str, answered: Iterable[tuple[Step, Reply]]) -> None:
    lines = ({"method": step.method, "request": step.request, "reply": reply} for step, reply in answered)
    texts = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines)
    FOLDER.mkdir(exist_ok=True)
    _file(script).write_text("".join(f"{text}\n" for text in texts))


def _file(script: str) -> Path:
    return FOLDER / f"{script}.jsonl"
