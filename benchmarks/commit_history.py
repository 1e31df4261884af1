"""The history of an Iceberg table by its metadata files, and how it agrees with what clients were told."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from hms_gateway.iceberg.manifest_lists import read_manifests
from tests.linearizability.history import Call

COMMIT: Final = "commit"
"""The key in a snapshot's summary that has the number of its commit."""
WRITER: Final = "writer-"
"""The beginning of the properties that have the numbers of the commits that set them."""


def path_of(location: str) -> Path:
    return Path(location.removeprefix("file:"))


class History(NamedTuple):
    """All states of a table by their files, and the commits between them: appends, and those that set properties."""

    location: str
    metadata: Any
    files: Sequence[str]
    appends: Counter[str]
    others: Counter[str]

    @property
    def commits(self) -> Counter[str]:
        return self.appends + self.others


def history_of(loaded: Any) -> History:
    files: list[str] = [loaded["metadata-location"]]
    metadata = loaded["metadata"]
    while earlier := [one["metadata-file"] for one in metadata.get("metadata-log", ())]:
        files = [*earlier, *files]
        metadata = msgspec.json.decode(path_of(earlier[0]).read_bytes())
    appends: Counter[str] = Counter()
    others: Counter[str] = Counter()
    known: set[int] = set()
    values: dict[str, str] = {}
    for file in files:
        metadata = msgspec.json.decode(path_of(file).read_bytes())
        appends.update(one["summary"][COMMIT] for one in metadata["snapshots"] if one["snapshot-id"] not in known)
        others.update(
            value
            for name, value in metadata["properties"].items()
            if name.startswith(WRITER) and values.get(name) != value
        )
        known, values = {one["snapshot-id"] for one in metadata["snapshots"]}, metadata["properties"]
    return History(loaded["metadata-location"], loaded["metadata"], files, appends, others)


def missing_files(history: History) -> Iterator[str]:
    """Name the lists, manifests and data files of snapshots that are not there."""
    import fastavro

    named: set[str] = set()
    for snapshot in history.metadata["snapshots"]:
        try:
            named |= {one["manifest_path"] for one in read_manifests(path_of(snapshot["manifest-list"]).read_bytes())}
        except FileNotFoundError:
            yield f"{snapshot['manifest-list']} is missing"
    for manifest in named:
        if not path_of(manifest).exists():
            yield f"{manifest} is missing"
            continue
        with path_of(manifest).open("rb") as file:
            entries: Any = fastavro.reader(file)
            data = [entry["data_file"]["file_path"] for entry in entries]
        yield from (f"{one} is missing" for one in data if not path_of(one).exists())


def wrong_commits(calls: Sequence[Call], commits: Mapping[str, Counter[str]]) -> Iterator[str]:
    """Find where clients were told something else than the histories of tables say: how often each has a commit."""
    sent: dict[str, set[str]] = {table: set() for table in commits}
    for call in calls:
        number, *tables = map(str, call.arguments)
        times = [commits[table][number] for table in tables]
        for table in tables:
            sent[table].add(number)
        told = "refused" if call.failure else "acknowledged" if call.is_answered else "without an answer"
        right = {"refused": [0], "acknowledged": [1]}.get(told, [0, 1])
        if len(set(times)) > 1 or times[0] not in right:
            yield f"{call.name} {number}, {told}, is in the history of {tables} {times} times"
    for table, sent_there in sent.items():
        if others := commits[table].keys() - sent_there:
            yield f"{table} has commits that nobody sent: {sorted(others)[:5]}"
