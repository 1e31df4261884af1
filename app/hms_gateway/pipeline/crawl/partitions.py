"""Directories with data become partitions of their tables, or are refused; in executors."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import pyarrow

from hms_gateway.pipeline.crawl.keys import NotAPartition, spelled

# CANONICAL: the values are spelled as their types spell them; OTHER: `d=01` for an int.
CANONICAL, OTHER, REFUSED = 0, 1, 2
PARTITIONS: Final = pyarrow.schema(
    [
        ("state", pyarrow.int8()),
        ("database", pyarrow.string()),
        ("table", pyarrow.string()),
        ("name", pyarrow.string()),
        ("values", pyarrow.list_(pyarrow.string())),
        ("location", pyarrow.string()),
        ("files", pyarrow.int64()),
        ("bytes", pyarrow.int64()),
        ("same", pyarrow.string()),
        ("reason", pyarrow.string()),
    ]
)
_ROWS_A_PIECE: Final = 5_000
_COLUMNS: Final = ("root", "relative", "files", "bytes")


class CrawledTable(msgspec.Struct, frozen=True):
    """A table that directories belong to, known or new; `keys` are names and types."""

    database: str
    table: str
    location: str
    keys: tuple[tuple[str, str], ...]


class PartitionsOf(msgspec.Struct, frozen=True):
    """For batches of directories with data; `targets` are by path. What belongs to no target is left out."""

    targets: Mapping[str, CrawledTable]

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        kept: dict[tuple[int, str], list[tuple[Any, ...]]] = {}
        rows = zip(*(batch.column(name).to_pylist() for name in _COLUMNS), strict=True)
        for root, relative, files, size in rows:
            target = self.targets.get(root)
            if target is None or not (target.keys or relative):
                continue
            row = _row(target, relative, files, size)
            same = kept.setdefault((row[0], root), [])
            same.append(row)
            if len(same) == _ROWS_A_PIECE:
                yield _piece(same)
                same.clear()
        yield from (_piece(same) for same in kept.values() if same)


def _row(target: CrawledTable, relative: str, files: int, size: int) -> tuple[Any, ...]:
    location = f"{target.location.rstrip('/')}/{relative}" if relative else target.location
    names = (target.database, target.table)
    try:
        found = spelled(target.keys, relative.split("/") if relative else [])
    except NotAPartition as problem:
        return REFUSED, *names, relative, [], location, files, size, "", str(problem)
    state = CANONICAL if found.same == found.name else OTHER
    return state, *names, found.name, found.values, location, files, size, found.same, ""


def _piece(rows: list[tuple[Any, ...]]) -> pyarrow.RecordBatch:
    columns = zip(zip(*rows, strict=True), PARTITIONS, strict=True)
    arrays = [pyarrow.array(values, of.type) for values, of in columns]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=PARTITIONS)
