"""The recorded corpus: what the real metastore answered to every call of every script, one JSON line a call.

`python -m tests.comparison.record` writes it anew from a real metastore, with `--third` that of Hive 3.1.3.
"""

import gzip
import json
from collections.abc import Iterable, Sequence
from functools import cache
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
# 2.8 MB of calls that are much alike: packed.
LONG = ("odd_arguments",)
# What 3.1.3 answered, which knows catalogs and no indexes.
THIRD_FOLDER = FOLDER / "hive3"
THIRD_SCRIPTS = (*(script for script in SCRIPTS if script != "indexes"), "catalogs")


def steps_of(script: str) -> list[Step]:
    """The calls of a script, in order. They expect a clean metastore."""
    return list(import_module(f"tests.comparison.scripts.{script}").steps())


@cache
def read(script: str, folder: Path = FOLDER) -> Sequence[tuple[Step, Reply]]:
    file = _file(script, folder)
    text = gzip.decompress(file.read_bytes()).decode() if script in LONG else file.read_text()
    recorded = [json.loads(line) for line in text.splitlines()]
    return [(Step(one["method"], one["request"]), one["reply"]) for one in recorded]


def write(script: str, answered: Iterable[tuple[Step, Reply]], folder: Path = FOLDER) -> None:
    lines = ({"method": step.method, "request": step.request, "reply": reply} for step, reply in answered)
    texts = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines)
    folder.mkdir(exist_ok=True)
    data = "".join(f"{text}\n" for text in texts).encode()
    _file(script, folder).write_bytes(gzip.compress(data, mtime=0) if script in LONG else data)


def _file(script: str, folder: Path) -> Path:
    return folder / f"{script}.jsonl{'.gz' if script in LONG else ''}"
