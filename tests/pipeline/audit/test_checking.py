"""Footers of real files against columns, and which of them are read."""

import io
import os
from datetime import datetime
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

import pyarrow
import pyarrow.parquet

from hms_gateway.pipeline.audit.footer_checks import Checker, digest_of
from hms_gateway.pipeline.footers.footer import Column
from hms_gateway.pipeline.storage import Storage
from tests.pipeline.audit.world import blob

COLUMNS = (Column("id", "bigint"), Column("note", "string"))
CONTENTS = pyarrow.schema(
    [
        *((name, pyarrow.string()) for name in ("database", "table", "partition", "location", "format")),
        ("files", pyarrow.int64()),
        ("total_bytes", pyarrow.int64()),
        ("newest_seconds", pyarrow.float64()),
        ("old_digest", pyarrow.string()),
        ("old_files", pyarrow.int64()),
        ("old_total_bytes", pyarrow.int64()),
        ("old_newest_seconds", pyarrow.float64()),
        ("old_problems", pyarrow.list_(pyarrow.struct([("text", pyarrow.string())]))),
    ]
)


def parquet_of(**columns):
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), out)
    return out.getvalue()


def checked(folder, reads_all=False, columns=COLUMNS, **changed):
    """Problems of a directory as (severity, kind, file, files, text)."""
    row = {"database": "sales", "table": "t", "location": f"file:{folder}", "format": "parquet", "files": 1}
    rows = pyarrow.Table.from_pylist([{**row, "total_bytes": 2, "newest_seconds": 3.0, **changed}], schema=CONTENTS)
    step = Checker(Storage(roots=("file:/",)), SimpleNamespace(value={"sales.t": (columns, ("ds",))}), reads_all)
    [found] = [one for piece in step(rows) for one in piece.to_pylist()]
    return sorted((one["severity"], one["kind"], one["file"], one["files"], one["text"]) for one in found["problems"])


def test_files_that_fit_have_no_problems_and_hidden_ones_are_not_read(tmp_path):
    (tmp_path / "a").write_bytes(blob("parquet"))
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "_metadata").write_bytes(b"nothing")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b").write_bytes(parquet_of(id=[1], ds=["2024-01-01"]))
    assert checked(tmp_path) == []


def test_drift_is_found_once_for_files_of_one_kind(tmp_path):
    for name in ("b", "a", "c"):
        (tmp_path / name).write_bytes(parquet_of(id=["1"], note=["x"]))
    (tmp_path / "d").write_bytes(parquet_of(id=[1], more=[1]))
    assert checked(tmp_path) == [
        ("error", "drift", "a", 3, "column id is string in the file and bigint in the table"),
        ("warning", "drift", "d", 1, "the table does not have the file's columns more"),
    ]


def test_columns_that_spark_does_not_read_are_drift(tmp_path):
    at = pyarrow.array([datetime(2024, 1, 1)], pyarrow.timestamp("ns"))
    columns = (Column("id", "timestamp"), Column("note", "float"))
    (tmp_path / "a").write_bytes(parquet_of(id=at, note=pyarrow.array([1.0], pyarrow.float16())))
    (tmp_path / "b").write_bytes(parquet_of(note=pyarrow.array([1.0], pyarrow.float32()), NOTE=[1]))
    reasons = ("id is a timestamp of nanoseconds; write microseconds", "note is a float of 16 bits; write 32")
    assert checked(tmp_path, columns=columns) == [
        ("error", "drift", "a", 1, f"column {', '.join(reasons)}"),
        ("error", "drift", "b", 1, "column NOTE has the name of another column, but for upper and lower case"),
    ]


def test_corrupt_files_are_named_and_files_of_other_formats_are_not(tmp_path):
    (tmp_path / "cut").write_bytes(blob("parquet")[:-40])
    (tmp_path / "orc").write_bytes(blob("orc"))
    (tmp_path / "text").write_bytes(b"hello")
    [(severity, kind, file, files, text)] = checked(tmp_path)
    assert (severity, kind, file, files) == ("error", "corrupt", "cut", 1)
    assert "cut off" in text


def test_a_directory_that_did_not_change_is_not_read_again(tmp_path):
    (tmp_path / "a").write_bytes(parquet_of(id=["1"]))
    old = {"old_digest": digest_of(COLUMNS), "old_files": 1, "old_total_bytes": 2, "old_newest_seconds": 3.0}
    kept = [{"text": "as before"}]
    assert [one[4] for one in checked(tmp_path, **old, old_problems=kept)] == ["as before"]
    read = ["column id is string in the file and bigint in the table"]
    for changed in ({"old_files": 2}, {"old_total_bytes": 3}, {"old_newest_seconds": 2.0}, {"old_digest": "other"}):
        assert [one[4] for one in checked(tmp_path, **{**old, **changed}, old_problems=kept)] == read
    assert [one[4] for one in checked(tmp_path, True, **old, old_problems=kept)] == read


def test_a_directory_that_is_gone_has_no_problems(tmp_path):
    assert checked(tmp_path / "gone") == []
    os.symlink(tmp_path / "nowhere", tmp_path / "link")
    assert checked(tmp_path) == []
