"""One level of a tree on this machine's disk: what is folded, what is looked into, what cannot be listed."""

import os
from types import SimpleNamespace

import msgspec
import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

import fsspec
import pyarrow

from hms_gateway.pipeline.audit.catalog import LEVEL, LISTED, TO_LIST, UNREADABLE, DirectoryWalk
from hms_gateway.pipeline.audit.places import Areas, Directory, FileOwner, Place
from hms_gateway.pipeline.storage import Storage
from tests.pipeline.audit.world import blob

DISKS = Storage(roots=("file:/", "nowhere://bucket", "memory:///audit-walk"))


def level(location, tables=(), storage=None):
    """The rows that one directory becomes: folded ones by name, names of those to list, reasons."""
    areas = SimpleNamespace(value=Areas(tables, {}))
    rows = pyarrow.RecordBatch.from_pylist([{"kind": TO_LIST, "location": location, "payload": b"12.5"}], schema=LEVEL)
    found = [
        row
        for piece in DirectoryWalk(storage or DISKS, areas)(pyarrow.Table.from_batches([rows]))
        for row in piece.to_pylist()
    ]
    payloads = {kind: [one for one in found if one["kind"] == kind] for kind in (TO_LIST, LISTED, UNREADABLE)}
    listed = [msgspec.msgpack.decode(one["payload"], type=Directory) for one in payloads[LISTED]]
    errors = [msgspec.msgpack.decode(one["payload"], type=Directory) for one in payloads[UNREADABLE]]
    return listed, sorted(one["location"].rpartition("/")[2] for one in payloads[TO_LIST]), errors


def test_a_directory_is_one_row_and_its_directories_are_to_be_listed(tmp_path):
    (tmp_path / "a.parquet").write_bytes(blob("parquet"))
    (tmp_path / "b").write_bytes(blob("orc"))
    (tmp_path / "c").write_bytes(b"")
    for hidden in ("_SUCCESS", ".a.crc"):
        (tmp_path / hidden).write_bytes(b"hidden")
    for folder in ("ds=1", "_low=1", "_temporary", ".hive-staging_1", ".git", "_delta_log"):
        (tmp_path / folder).mkdir()
    for path in tmp_path.iterdir():
        os.utime(path, (1_000, 1_000))
    [folded], children, errors = level(f"file:{tmp_path}")
    sizes = len(blob("parquet")) + len(blob("orc"))
    assert folded == Directory(f"file:{tmp_path}", 3, sizes, 1_000.0, {"parquet": 1, "orc": 1})
    assert children == [".hive-staging_1", "_low=1", "_temporary", "ds=1"]
    assert errors == []


def test_the_age_of_an_empty_directory_is_its_own(tmp_path):
    assert level(f"file:{tmp_path}")[0][0].newest_seconds == 12.5


def test_what_is_gone_makes_no_row(tmp_path):
    assert level(f"file:{tmp_path}/gone") == ([], [], [])


def test_what_cannot_be_listed_is_named_with_the_reason(tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "odd").mkdir()
    os.mkdir(os.fsencode(tmp_path) + b"/odd/\xff\xfe")
    [error] = level(f"file:{tmp_path}/file")[2]
    assert error.error == "is not a directory (any more)"
    [error] = level(f"file:{tmp_path}/odd")[2]
    assert (error.location, error.error) == (f"file:{tmp_path}/odd/\\udcff\\udcfe", "has a name that is not UTF-8")
    [error] = level("nowhere://bucket/x")[2]
    assert "nowhere: cannot be read here" in error.error


def test_what_lies_in_a_table_with_a_log_of_its_own_is_not_listed(tmp_path):
    (tmp_path / "data").mkdir()
    of_iceberg = Place("sales", "iceberg", f"file:{tmp_path}", storage=FileOwner.LOGGED)
    assert level(f"file:{tmp_path}", [of_iceberg])[1] == []
    assert level(f"file:{tmp_path}", [msgspec.structs.replace(of_iceberg, storage=FileOwner.PLAIN)])[1] == ["data"]


def test_a_remote_directory_is_read_through_fsspec_and_a_few_files_say_its_format():
    files = fsspec.filesystem("memory", use_listings_cache=False, skip_instance_cache=True)
    for number in range(9):
        files.pipe_file(f"/audit-walk/t/part-{number}", blob("parquet"))
    [folded], children, errors = level("memory:///audit-walk/t")
    assert (folded.files, folded.formats, children, errors) == (9, {"parquet": 3}, [], [])
