"""What whole tables have: figures of all partitions together, and how many of these have statistics.

Added up batch by batch where the batch is written, and then on the driver: a few rows for each table.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import pyarrow

from hms_gateway.pipeline.footers import FooterFigures, joined
from hms_gateway.pipeline.stats.measuring import FRESH, NEW
from hms_gateway.pipeline.stats.packing import packed, unpacked

_UNKNOWN: Final = pyarrow.struct(
    [("column", pyarrow.string()), ("reason", pyarrow.string()), ("partitions", pyarrow.int64())]
)
TOTALS: Final = pyarrow.schema(
    [
        ("database", pyarrow.string()),
        ("table", pyarrow.string()),
        ("is_partitioned", pyarrow.bool_()),
        ("partitions", pyarrow.int64()),
        ("new", pyarrow.int64()),
        ("known", pyarrow.int64()),
        ("files", pyarrow.int64()),
        ("bytes", pyarrow.int64()),
        ("rows", pyarrow.int64()),
        ("raw", pyarrow.int64()),
        ("figures", pyarrow.binary()),
        ("location", pyarrow.string()),
        ("fingerprint", pyarrow.string()),
        ("of", pyarrow.string()),
        ("columns", pyarrow.int64()),
        ("had_columns", pyarrow.int64()),
        ("unknown", pyarrow.list_(_UNKNOWN)),
        ("distinct", pyarrow.map_(pyarrow.string(), pyarrow.int64())),
    ]
)
_SUMS: Final = ("partitions", "new", "known", "files", "bytes", "columns", "had_columns")
_ROWS_AT_ONCE: Final = 500


def of_batch(rows: Iterable[Mapping[str, Any]], unknown: Mapping[tuple[str, str], int]) -> pyarrow.Table:
    """Rows of FOUND, all of one table, as one of TOTALS; `unknown` counts columns without statistics by reason."""
    total = _added_up(_of_partition(row) for row in rows)
    total["unknown"] = [unknown_row(*key, number) for key, number in unknown.items()]
    return pyarrow.Table.from_pylist([_packed(total)], TOTALS)


def unknown_row(column: str, reason: str, partitions: int) -> dict[str, Any]:
    """Of the field `unknown`: a column that has no statistics in so many partitions."""
    return {"column": column, "reason": reason, "partitions": partitions}


def of_tables(rows: Iterable[Mapping[str, Any]], distinct: Mapping[tuple[str, str], Any]) -> Iterator[dict[str, Any]]:
    """Totals of batches, those of a table behind each other, as one for each table.

    `distinct` has the distinct values of columns by table, where they are known of all its partitions together.
    """
    for table, parts in groupby(rows, lambda row: (row["database"], row["table"])):
        total = _added_up(dict(part) | {"figures": _figures(part)} for part in parts)
        yield _packed(total) | {"distinct": distinct.get(table)}


def _of_partition(row: Mapping[str, Any]) -> dict[str, Any]:
    is_known = row["state"] in (NEW, FRESH)
    return {
        "database": row["database"],
        "table": row["table"],
        "is_partitioned": row["partition"] != "",
        "partitions": 1,
        "new": int(row["state"] == NEW),
        "known": int(is_known),
        "files": row["files"] or 0,
        "bytes": row["bytes"] or 0,
        "rows": row["rows"] if is_known else None,
        "raw": row["raw"],
        "figures": _figures(row) if is_known else None,
        "location": row["location"],
        "fingerprint": row["fingerprint"],
        "of": row["of"],
        "columns": row["columns"],
        "had_columns": row["had_columns"],
        "unknown": [],
    }


def _figures(row: Mapping[str, Any]) -> dict[str, FooterFigures] | None:
    return unpacked(row["figures"]) if row["figures"] else None


def _packed(total: dict[str, Any]) -> dict[str, Any]:
    return total | {"figures": None if total["figures"] is None else packed(total["figures"])}


def _added_up(rows: Iterator[dict[str, Any]]) -> dict[str, Any]:
    total: list[dict[str, Any]] = []
    for row in rows:
        total.append(row)
        if len(total) == _ROWS_AT_ONCE:
            total = [_added(total)]
    return _added(total)


def _added(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    added = {name: sum(row[name] for row in rows) for name in _SUMS}
    for name in ("rows", "raw"):
        values = [row[name] for row in rows]
        added[name] = None if None in values else sum(values)
    unknown = [one for row in rows for one in row["unknown"] or ()]
    return {**rows[0], **added, "figures": _joined([row["figures"] for row in rows]), "unknown": unknown}


def _joined(parts: Sequence[dict[str, FooterFigures] | None]) -> dict[str, FooterFigures] | None:
    """Of the columns that all parts have; None where one has nothing."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    names = [name for name in known[0] if all(name in part for part in known)]
    return {name: joined(part[name] for part in known) for name in names}
