"""Footers of several files as figures of a table's columns, and the files that count."""

import os

import fsspec
import pyarrow
import pytest
from pyarrow import parquet

from hms_gateway.pipeline.errors import OptionError
from hms_gateway.pipeline.footers.footer import Column, Footer, FooterFigures
from hms_gateway.pipeline.stats.measuring import (
    File,
    data_files,
    digest,
    measured,
    of_footers,
    passed_by,
    uri_of,
)
from hms_gateway.pipeline.storage import ListingProblem, Storage
from hms_gateway.rpc.structs import StorageDescriptor, Table

DISKS = Storage(roots=("file:/",))
MEMORY = Storage(roots=("memory://listed", "memory://nothing-here"))


def known(rows, low, high):
    return FooterFigures(rows, 0, low, high, True, True)


def test_a_file_without_a_column_has_nulls_there():
    files = [
        Footer("parquet", 2, (Column("id", "int"),), {"id": known(2, 1, 2)}),
        Footer("parquet", 3, (Column("id", "bigint"), Column("n", "int")), {"id": known(3, 7, 9), "n": known(3, 0, 1)}),
    ]
    found = of_footers("/t", files, [Column("id", "bigint"), Column("n", "int")])
    assert (found.rows, found.notes) == (5, ())
    assert (found.figures["id"].low, found.figures["id"].high, found.figures["n"].nulls) == (1, 9, 2)
    assert found.raw == 5 * 8 + 3 * 4


def test_a_column_of_another_type_is_named_and_the_others_are_known():
    file = Footer("parquet", 1, (Column("id", "int"), Column("n", "int")), {"id": known(1, 1, 1), "n": known(1, 1, 1)})
    found = of_footers("/t", [file], [Column("id", "string"), Column("n", "int")])
    assert list(found.figures) == ["n"]
    assert [note.reason for note in found.notes] == ["has a column id that is int in the files and string in the table"]


def test_columns_of_old_orc_files_are_found_by_their_place():
    columns = (Column("_col0", "int"), Column("_col1", "string"))
    file = Footer("orc", 1, columns, {"_col0": known(1, 4, 4), "_col1": known(1, b"x", b"x")})
    found = of_footers("/t", [file], [Column("id", "int"), Column("note", "string")])
    assert (found.figures["id"].low, found.figures["note"].low) == (4, b"x")


def test_a_file_of_another_format_makes_the_partition_unknown(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"id": [1]}), path)
    found = measured(DISKS, f"file:{tmp_path}", data_files(str(tmp_path), DISKS), [Column("id", "bigint")], "orc")
    assert found.failed
    assert [(note.path, note.reason) for note in found.notes] == [
        (str(path), "is a file of parquet where the metastore says orc")
    ]


def test_hidden_files_are_not_data_and_folders_below_are(tmp_path):
    for name in ("a", "_SUCCESS", ".b.crc", "_temporary/c", "sub/d", "sub/.e"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"12")
    found = data_files(f"file://{tmp_path}/", DISKS)
    assert [(file.path, file.size, file.folder) for file in found] == [
        (str(tmp_path / "a"), 2, ""),
        (str(tmp_path / "sub" / "d"), 2, "sub"),
    ]


def test_other_file_systems_are_listed_alike():
    memory = fsspec.filesystem("memory")
    for name in ("a", "_SUCCESS", "sub/d"):
        memory.pipe_file(f"/listed/{name}", b"123")
    assert [(file.size, file.folder) for file in data_files("memory://listed", MEMORY)] == [(3, ""), (3, "sub")]
    with pytest.raises(ListingProblem, match="is not there"):
        data_files("memory://nothing-here", MEMORY)


def test_a_location_that_cannot_be_listed_is_named():
    with pytest.raises(ListingProblem, match="/nowhere/at/all is not there"):
        data_files("/nowhere/at/all", DISKS)


@pytest.mark.parametrize("location", ["relative", "nosuch://bucket/x", "file://elsewhere/x", "/tmp/../etc"])
def test_a_location_outside_of_the_roots_is_not_looked_at(location):
    with pytest.raises(OptionError):
        data_files(location, DISKS)


def test_a_digest_changes_with_each_file_and_the_columns(tmp_path):
    (tmp_path / "a").write_bytes(b"1")
    before = data_files(str(tmp_path), DISKS)
    assert digest(before, "id int") == digest(data_files(str(tmp_path), DISKS), "id int") != digest(before, "id bigint")
    os.utime(tmp_path / "a", (1, 1))
    assert digest(data_files(str(tmp_path), DISKS), "id int") != digest(before, "id int")
    assert digest([], "id int") != digest([File("/a", 1, "v")], "id int")


def test_folders_are_named_as_spark_names_them():
    assert uri_of("file:///a b/%41{}", "c#d") == "file:/a%20b/%2541%7B%7D/c%23d"
    assert uri_of("s3a://bucket/é x/", "") == "s3a://bucket/é%20x"


@pytest.mark.parametrize(
    ("kind", "parameters", "reason"),
    [
        ("VIRTUAL_VIEW", {}, "is a view"),
        ("MANAGED_TABLE", {"transactional": "true"}, "is transactional"),
        ("EXTERNAL_TABLE", {"table_type": "ICEBERG"}, "is a table of iceberg"),
        ("EXTERNAL_TABLE", {"spark.sql.sources.provider": "delta"}, "is a table of delta"),
        ("MANAGED_TABLE", {"table_type": "lance"}, "is a table of lance"),
        ("EXTERNAL_TABLE", {"storage_handler": "org.example.Handler"}, "is kept by a storage handler"),
        ("EXTERNAL_TABLE", {"skip.header.line.count": "1"}, "has lines in its files that are not rows"),
        ("EXTERNAL_TABLE", {}, ""),
    ],
)
def test_tables_without_files_of_their_own_are_passed_by(kind, parameters, reason):
    table = Table(tableType=kind, parameters=parameters, sd=StorageDescriptor(location="file:/t"))
    assert passed_by(table).startswith(reason)
    assert bool(passed_by(table)) == bool(reason)
