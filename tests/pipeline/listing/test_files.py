"""One directory: on this machine's disks and through fsspec."""

import os
import uuid

import fsspec
import pytest

from hms_gateway.pipeline.storage import (
    Entry,
    ListingProblem,
    Storage,
    files_of,
    fold,
    format_of,
    formats_in,
    is_hidden,
    unlike,
)
from tests.support.bucket_server import BUCKET

DISKS = Storage(roots=("file:/",))


def write(path, content=b"x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


@pytest.fixture(params=["local", "memory", pytest.param("bucket", marks=pytest.mark.s3)])
def folder(request, tmp_path):
    """A function that writes a file, the file system, and the path of a folder in it."""
    if request.param == "local":
        files = files_of(str(tmp_path), DISKS)
        yield lambda name, content: write(tmp_path / name, content), files, files.root(f"file://{tmp_path}/")
        return
    if request.param == "bucket":
        bucket, top = request.getfixturevalue("bucket"), uuid.uuid4().hex
        # Options of `[s3]` are for `s3a` as well.
        files = files_of(f"s3a://{BUCKET}/{top}", Storage({"s3": bucket.options}, (f"s3://{BUCKET}/{top}",)))
        yield lambda name, content: bucket.put(f"{top}/{name}", content), files, files.root(f"s3a://{BUCKET}/{top}/")
        return
    memory = fsspec.filesystem("memory")
    files = files_of("memory://lake", Storage(roots=("memory://lake",)))
    yield lambda name, content: memory.pipe_file(f"/lake/{name}", content), files, files.root("memory://lake/")
    if memory.exists("/lake"):
        memory.rm("/lake", recursive=True)


def test_a_directory_is_listed_with_sizes(folder):
    make, files, root = folder
    make("a.parquet", b"12345")
    make("ds=1/b", b"1")
    found = sorted(files.scan(root))
    assert [(entry.name, entry.is_directory) for entry in found] == [("a.parquet", False), ("ds=1", True)]
    assert found[0].bytes == 5
    assert files.is_directory(f"{root}/ds=1")
    assert not files.is_directory(f"{root}/ds=2")
    assert (files.size(f"{root}/a.parquet"), files.read(f"{root}/a.parquet", 1, 2)) == (5, b"23")


def test_files_are_folded_into_one_row(folder):
    make, files, root = folder
    make("a", b"12345")
    make("sub/deep/b", b"1234567")
    make("c", b"1")
    make("_SUCCESS", b"")
    make(".a.crc", b"123")
    make("_temporary/x", b"123")
    found = fold(files, root, files.scan(root))
    assert (found.files, found.bytes, found.largest, found.largest_bytes) == (3, 13, "sub/deep/b", 7)
    make("empty", b"")
    assert sorted(fold(files, root, files.scan(root)).names) == ["a", "c", "sub/deep/b"]


def test_an_empty_directory_folds_to_nothing(tmp_path):
    files = files_of(str(tmp_path), DISKS)
    assert fold(files, str(tmp_path), files.scan(str(tmp_path))) == (0, 0, "", 0, ())


def test_a_directory_that_is_not_there_is_named(folder):
    _, files, root = folder
    with pytest.raises(ListingProblem, match=r"is not there \(any more\)") as caught:
        list(files.scan(f"{root}/absent"))
    assert caught.value.path == f"{root}/absent"


def test_a_file_in_place_of_a_directory_is_named(tmp_path):
    write(tmp_path / "one")
    with pytest.raises(ListingProblem, match="is not a directory"):
        list(files_of(str(tmp_path), DISKS).scan(f"{tmp_path}/one"))


def test_what_vanishes_while_it_is_listed_is_left_out(tmp_path):
    for name in ("one", "two"):
        write(tmp_path / name)
    os.symlink(tmp_path / "absent", tmp_path / "dangling")
    found = list(files_of(str(tmp_path), DISKS).scan(str(tmp_path)))
    assert sorted(entry.name for entry in found) == ["one", "two"]


@pytest.mark.parametrize("target", ["a", "file"])
def test_a_link_is_named_and_not_followed(tmp_path, target):
    (tmp_path / "a").mkdir()
    (tmp_path / "file").write_bytes(b"1")
    os.symlink(tmp_path / target, tmp_path / "a" / "again")
    files = files_of(str(tmp_path), DISKS)
    with pytest.raises(ListingProblem, match=r"a/again leads through a symbolic link, which is not followed"):
        fold(files, f"{tmp_path}/a", files.scan(f"{tmp_path}/a"))


@pytest.mark.parametrize(
    ("name", "is_directory", "hidden"),
    [
        ("_SUCCESS", False, True),
        (".x", True, True),
        ("_temporary", True, True),
        ("_a=1", True, False),
        ("a_", False, False),
    ],
)
def test_hidden_names(name, is_directory, hidden):
    assert is_hidden(name, is_directory=is_directory) == hidden


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"PAR1\x15\x04", "parquet"),
        (b"ORC\x11", "orc"),
        (b"Obj\x01", "avro"),
        (b"SEQ\x06", "sequence"),
        (b"SEQ,ID\n", "text"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"a,b\n1,2", "text"),
        (b"", "empty"),
    ],
)
def test_a_format_is_known_by_its_beginning(head, name):
    assert format_of(head) == name


@pytest.mark.parametrize(
    ("beginnings", "two"),
    [
        ([b"PAR1", b"PAR1"], None),
        ([b"PAR1", b"ORC", b"PAR1"], (("0", "parquet"), ("1", "orc"))),
        ([b"a,b", b"\x1f\x8b\x08"], None),
        ([b"a,b", b"Obj\x01"], (("0", "text"), ("1", "avro"))),
        ([b"PAR1"], None),
    ],
)
def test_files_that_no_reader_reads_together(folder, beginnings, two):
    make, files, root = folder
    for number, content in enumerate(beginnings):
        make(str(number), content)
    assert unlike(files, root, [str(number) for number in range(len(beginnings))]) == two


def test_of_a_file_system_that_is_away_few_files_are_looked_at(folder):
    make, files, root = folder
    if not files.waits:
        pytest.skip("is a disk of this machine")
    for number in range(9):
        make(str(number), b"ORC" if number == 8 else b"PAR1")
    names = [str(number) for number in range(9)]
    assert [name for name, _ in formats_in(files, root, names)] == ["0", "4", "8"]
    assert unlike(files, root, names) == (("0", "parquet"), ("8", "orc"))


def test_entries_are_values():
    assert Entry("a", False, 1, 2) == ("a", False, 1, 2, False, "")
