"""A file system of fsspec's kind with any number of entries that are nowhere: `synthetic://100x1000` is the place of a
table with 100 directories `part=N`, each with 1,000 Parquet files. Spark's workers get this file alone."""

import io
from typing import Any

import pyarrow
import pyarrow.parquet
from fsspec import AbstractFileSystem


def _file() -> bytes:
    written = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"id": [1]}), written)
    return written.getvalue()


FILE = _file()


class SyntheticFiles(AbstractFileSystem):
    protocol = ("synthetic",)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        place = self._strip_protocol(path).strip("/")
        top, _, inner = place.partition("/")
        directories, files = map(int, top.split("x"))
        if inner.startswith("t/part="):
            found = [self._entry(f"{place}/{number:06}.parquet", "file") for number in range(files)]
        elif inner == "t":
            found = [self._entry(f"{place}/part={number}", "directory") for number in range(directories)]
        else:
            found = [self._entry(f"{place}/t", "directory")]
        return found if detail else [entry["name"] for entry in found]

    def isdir(self, path: str) -> bool:
        return not path.endswith(".parquet")

    def size(self, path: str) -> int:
        return len(FILE)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        return FILE[start:end]

    def _entry(self, name: str, kind: str) -> dict[str, Any]:
        return {"name": name, "type": kind, "size": len(FILE) if kind == "file" else 0}
