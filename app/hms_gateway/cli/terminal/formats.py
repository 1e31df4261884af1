"""Rows as text: aligned for people, or in a form for programs, written while they arrive."""

import csv
import itertools
import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType, SimpleNamespace
from typing import IO, Final

from hms_gateway.runtime.logging import printable

Cell = str | int | bool | None
Format = Callable[[Sequence[str], Iterable[Sequence[Cell]]], Iterator[str]]

# So many rows decide about the widths of the columns; those behind them may be wider.
ROWS_MEASURED: Final = 1_000
_NULL: Final = "NULL"


def write_rows(stream: IO[str], form: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> int:
    """Write in one of FORMATS; how many rows there were. A row is written before the next but some is asked for."""
    count = 0

    def counted() -> Iterator[Sequence[Cell]]:
        nonlocal count
        for row in rows:
            count += 1
            yield row

    for text in FORMATS[form](columns, counted()):
        stream.write(text)
    return count


def write_text(stream: IO[str], form: str, columns: Sequence[str], cells: Sequence[Cell]) -> None:
    """A text of its own, such as a statement: as it is, except for programs that read JSON."""
    if form == "json":
        write_rows(stream, form, columns, [cells])
    else:
        stream.write(f"{cells[0]}\n")


def _table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
    shown = ([_shown(cell) for cell in row] for row in rows)
    first = list(itertools.islice(shown, ROWS_MEASURED))
    widths = [max(map(_width, column)) for column in zip(columns, *first, strict=True)]
    for cells in itertools.chain([columns, ["-" * width for width in widths]], first, shown):
        yield _line(cells, widths)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip() + "\n"


def _width(text: str) -> int:
    """The places on a terminal, of which characters of East Asia take two."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text
    )


def _shown(cell: Cell) -> str:
    """The cell in one line."""
    return printable(_plain(cell))


def _plain(cell: Cell) -> str:
    if cell is None:
        return _NULL
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def _vertical(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
    widest = max(map(_width, columns), default=0)
    for count, row in enumerate(rows, 1):
        yield f"-- row {count}\n"
        for name, cell in zip(columns, row, strict=True):
            yield f"{name}{' ' * (widest - _width(name))}  {_shown(cell)}\n"


def _json(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n"


def _csv(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
    """Null is an empty cell."""
    writer = csv.writer(SimpleNamespace(write=str), lineterminator="\n")
    yield writer.writerow(columns)
    for row in rows:
        yield writer.writerow([cell if cell is None or isinstance(cell, str) else _plain(cell) for cell in row])


def _tsv(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
    yield "\t".join(columns) + "\n"
    for row in rows:
        yield "\t".join(map(_between_tabs, row)) + "\n"


def _between_tabs(cell: Cell) -> str:
    """The form of PostgreSQL and MySQL: \\N is null, and tabs and line ends are escaped."""
    if cell is None:
        return "\\N"
    return _plain(cell).translate(_TSV_ESCAPES)


_TSV_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
FORMATS: Final[Mapping[str, Format]] = MappingProxyType(
    {"table": _table, "json": _json, "csv": _csv, "tsv": _tsv, "vertical": _vertical}
)
