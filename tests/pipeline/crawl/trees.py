"""Directories with Parquet files in them."""

import io
from pathlib import Path

import pyarrow
import pyarrow.parquet


def parquet(**columns) -> bytes:
    """A file with these columns of one value each."""
    arrays = [
        pyarrow.array([value], value.type if isinstance(value, pyarrow.Scalar) else None) for value in columns.values()
    ]
    table = pyarrow.table(arrays, names=list(columns))
    written = io.BytesIO()
    pyarrow.parquet.write_table(table, written)
    return written.getvalue()


SMALL = parquet(id=1, note="a")


def plant(folder: Path, *names: str, content: bytes = SMALL) -> None:
    """Files, or directories where a name ends with a slash."""
    for name in names:
        path = folder / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
