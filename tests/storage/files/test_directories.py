"""Directories on this machine, in a bucket and in fsspec's memory file system: the same promises; policies, roots."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fsspec
import pytest

from hms_gateway.metastore.ports.store import DirectoryNotMade, FileSystemError
from hms_gateway.storage.files.directories import Directories
from hms_gateway.storage.files.places import FilePolicy
from tests.support.bucket_server import BUCKET

NO_FILE_SYSTEM = 'Got exception: org.apache.hadoop.fs.UnsupportedFileSystemException No FileSystem for scheme "{}"'
MANAGED = {"memory": FilePolicy.MANAGE, "s3a": FilePolicy.MANAGE}

WriteFile = Callable[[str, bytes], None]


class Opened:
    """Makes the directories below some roots."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options

    def __call__(self, *roots: str) -> Directories:
        return Directories(MANAGED, roots, self.options)


@pytest.fixture(params=["file", "memory", pytest.param("s3a", marks=pytest.mark.s3)])
def base(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return f"file:{tmp_path}"
    name = uuid.uuid4().hex
    return f"memory:/{name}" if request.param == "memory" else f"s3a://{BUCKET}/{name}"


@pytest.fixture
def opened(base: str, request: pytest.FixtureRequest) -> Opened:
    return Opened({"s3": request.getfixturevalue("bucket").options} if base.startswith("s3a:") else {})


@pytest.fixture
def write_file(base: str, opened: Opened) -> WriteFile:
    def write(location: str, content: bytes) -> None:
        scheme, _, path = location.partition(":")
        options = opened.options["s3"] if scheme == "s3a" else {"auto_mkdir": True}
        with fsspec.filesystem(scheme, **options).open(path, "wb") as file:
            file.write(content)

    return write


@pytest.fixture
def files(base: str, opened: Opened) -> Directories:
    return opened(base)


def test_a_directory_is_made_with_its_parents_and_only_once(files: Directories, base: str) -> None:
    assert files.make_directory(f"{base}/a/b/c") is True
    assert files.make_directory(f"{base}/a/b/c") is False
    assert files.is_directory(f"{base}/a/b/c")
    assert files.is_directory(f"{base}/a/b")


def test_a_file_in_the_way_is_an_error_that_names_the_location(
    files: Directories, base: str, write_file: WriteFile, caplog: pytest.LogCaptureFixture
) -> None:
    write_file(f"{base}/taken", b"x")
    with pytest.raises(DirectoryNotMade, match=r"taken is not a directory or unable to create one$"):
        files.make_directory(f"{base}/taken")
    assert f"the directory {base}/taken cannot be made: " in caplog.text
    assert files.exists(f"{base}/taken")
    assert not files.is_directory(f"{base}/taken")


def test_deleting_takes_everything_below_and_forgives_what_is_missing(
    files: Directories, base: str, write_file: WriteFile
) -> None:
    write_file(f"{base}/t/p/data", b"x")
    files.delete_directory(f"{base}/t")
    files.delete_directory(f"{base}/t")
    assert not files.exists(f"{base}/t")


def test_deleting_takes_characters_of_patterns_as_they_are(
    files: Directories, base: str, write_file: WriteFile
) -> None:
    write_file(f"{base}/a1/data", b"x")
    for name in ("a*", "a?", "a[0-9]"):
        write_file(f"{base}/{name}/data", b"x")
        if base.startswith("memory:"):
            with pytest.raises(FileSystemError, match="takes for a pattern"):
                files.delete_directory(f"{base}/{name}")
        else:
            files.delete_directory(f"{base}/{name}")
            assert not files.exists(f"{base}/{name}")
    assert files.exists(f"{base}/a1/data")


def test_parents_go_as_long_as_they_are_empty(files: Directories, base: str, write_file: WriteFile) -> None:
    files.make_directory(f"{base}/t/a/b")
    write_file(f"{base}/t/keep", b"x")
    files.delete_empty_parents(f"{base}/t/a/b/c", 3)
    assert files.is_directory(f"{base}/t")
    assert not files.exists(f"{base}/t/a")


def test_no_more_parents_go_than_asked_for(files: Directories, base: str) -> None:
    files.make_directory(f"{base}/t/a/b")
    files.delete_empty_parents(f"{base}/t/a/b/c", 1)
    if not base.startswith("s3a:"):  # without an object below it, a directory is gone
        assert files.is_directory(f"{base}/t/a")
    assert not files.exists(f"{base}/t/a/b")


def test_a_directory_moves_with_its_content_under_parents_that_are_made(
    files: Directories, base: str, write_file: WriteFile
) -> None:
    write_file(f"{base}/old/p/data", b"12345")
    copied = files.move_directory(f"{base}/old", f"{base}/new/place")
    if copied is not None:
        copied.finish()
    assert files.quick_statistics(f"{base}/new/place") == (1, 5)
    assert not files.exists(f"{base}/old")


def test_nothing_is_moved_onto_something(files: Directories, base: str) -> None:
    files.make_directory(f"{base}/old")
    files.make_directory(f"{base}/new")
    with pytest.raises(FileSystemError, match="exists already"):
        files.move_directory(f"{base}/old", f"{base}/new")
    assert files.is_directory(f"{base}/old")


def test_statistics_leave_hidden_files_and_directories_out(
    files: Directories, base: str, write_file: WriteFile
) -> None:
    for name in ("a", "sub/b", "_SUCCESS", ".crc", ".hive-staging/c", "_temporary/d"):
        write_file(f"{base}/t/{name}", b"123")
    assert files.quick_statistics(f"{base}/t") == (2, 6)


def test_statistics_of_a_missing_directory_are_zero(files: Directories, base: str) -> None:
    assert files.quick_statistics(f"{base}/missing") == (0, 0)


def test_blanks_and_percent_signs_are_ordinary(tmp_path: Path) -> None:
    files = Directories(roots=[f"file:{tmp_path}"])
    files.make_directory(f"file:{tmp_path}/lt%20a b?x#y")
    assert (tmp_path / "lt%20a b?x#y").is_dir()


def test_exactly_one_of_many_makes_the_directory(tmp_path: Path) -> None:
    files = Directories(roots=[f"file:{tmp_path}"])
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(files.make_directory, [f"file:{tmp_path}/deep/er/t"] * 32))
    assert made.count(True) == 1


def test_a_link_is_removed_and_what_it_points_at_stays(tmp_path: Path) -> None:
    files = Directories(roots=[f"file:{tmp_path}"])
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    files.delete_directory(f"file:{tmp_path}/link")
    assert (tmp_path / "real").is_dir()
    assert not (tmp_path / "link").exists()


@pytest.mark.parametrize("scheme", ["hdfs", "s3a", "gs", "abfss"])
def test_other_schemes_are_left_alone(scheme: str) -> None:
    files = Directories()
    location = f"{scheme}://somewhere/t"
    assert files.manages(location) is False
    assert files.make_directory(location) is False
    assert not files.exists(location)
    assert files.quick_statistics(location) == (0, 0)
    files.delete_directory(location)
    files.delete_empty_parents(location, 3)
    files.move_directory(location, f"{scheme}://somewhere/u")


def test_an_unknown_scheme_is_refused_as_hive_does() -> None:
    with pytest.raises(FileSystemError) as refusal:
        Directories().make_directory("x://a/b")
    assert str(refusal.value) == NO_FILE_SYSTEM.format("x")


def test_the_operator_decides_about_a_scheme(tmp_path: Path) -> None:
    files = Directories({"file": FilePolicy.IGNORE, "hdfs": FilePolicy.REFUSE, "x": FilePolicy.IGNORE})
    assert files.make_directory(f"file:{tmp_path}/t") is False
    assert not (tmp_path / "t").exists()
    assert files.manages("x://a/b") is False
    with pytest.raises(FileSystemError):
        files.manages("hdfs://nn/a")


def test_the_operator_decides_about_all_other_schemes() -> None:
    files = Directories({"x": FilePolicy.REFUSE}, default=FilePolicy.IGNORE)
    assert files.manages("y://a/b") is False
    with pytest.raises(FileSystemError):
        files.manages("x://a/b")


def test_a_scheme_to_manage_without_its_library_says_so() -> None:
    with pytest.raises(FileSystemError) as refusal:
        Directories({"nosuchfs": FilePolicy.MANAGE}, ["nosuchfs://a"]).make_directory("nosuchfs://a/b")
    assert str(refusal.value) == NO_FILE_SYSTEM.format("nosuchfs")


def test_nothing_is_changed_outside_the_roots(base: str, opened: Opened) -> None:
    files = opened(f"{base}/root")
    opened(base).make_directory(f"{base}/rootless/t")
    for change in (files.make_directory, files.delete_directory):
        with pytest.raises(FileSystemError, match=r"outside the directories this server manages \(file_roots\)"):
            change(f"{base}/rootless/t")
    with pytest.raises(FileSystemError, match="outside"):
        files.move_directory(f"{base}/rootless/t", f"{base}/root/t")
    files.delete_empty_parents(f"{base}/rootless/t/x", 2)
    assert opened(base).is_directory(f"{base}/rootless/t")
    assert files.make_directory(f"{base}/root/t") is True


def test_a_root_is_made_but_never_deleted(base: str, opened: Opened) -> None:
    files = opened(f"{base}/root")
    files.make_directory(f"{base}/root")
    with pytest.raises(FileSystemError, match="one of file_roots"):
        files.delete_directory(f"{base}/root")
    files.delete_empty_parents(f"{base}/root/t", 1)
    assert files.is_directory(f"{base}/root")


def test_a_link_does_not_lead_out_of_a_root(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "root/link").symlink_to(tmp_path / "secret")
    files = Directories(roots=[f"file:{tmp_path}/root"])
    with pytest.raises(FileSystemError, match="not a directory"):
        files.make_directory(f"file:{tmp_path}/root/link/t")
    assert list((tmp_path / "secret").iterdir()) == []


@pytest.mark.parametrize("location", ["file:/a/../b", "/a/..", "memory:/a/../../b"])
def test_a_way_up_is_refused(location: str) -> None:
    with pytest.raises(FileSystemError, match=r"\.\."):
        Directories(MANAGED).make_directory(location)


def test_the_top_of_a_file_system_is_not_deleted() -> None:
    for location in ("file:/", "file:///", "memory:///"):
        with pytest.raises(FileSystemError, match="not deleted"):
            Directories(MANAGED, ["file:/", "memory:/"]).delete_directory(location)


@pytest.mark.parametrize("location", ["file:/tmp/a\0b", "file:/tmp/" + "x" * 5000])
def test_paths_the_system_cannot_take_are_errors_of_ours(location: str) -> None:
    with pytest.raises(FileSystemError):
        Directories(roots=["file:/tmp"]).make_directory(location)


def test_different_file_systems_are_not_moved_between(tmp_path: Path) -> None:
    with pytest.raises(FileSystemError, match="different file system"):
        Directories(MANAGED, [f"file:{tmp_path}", "memory:/"]).move_directory(f"file:{tmp_path}/t", "memory:/t")


def test_many_are_made_with_their_parents_and_each_once(files: Directories, base: str) -> None:
    wanted = [f"{base}/t/a={number // 3}/b={number}" for number in range(9)] + [f"{base}/elsewhere/x"]
    make = files.directory_maker()
    assert [make(location) for location in wanted] == [True] * 10
    assert [make(location) for location in wanted] == [False] * 10
    assert [files.directory_maker()(location) for location in wanted] == [False] * 10


def test_a_maker_finds_what_others_remove_and_make_meanwhile(files: Directories, base: str) -> None:
    make = files.directory_maker()
    assert make(f"{base}/t/a/1") is True
    files.delete_directory(f"{base}/t")
    assert make(f"{base}/t/a/2") is True
    files.make_directory(f"{base}/t/b/1")
    assert make(f"{base}/t/b/1") is False
    assert make(f"{base}/t/b/2") is True


def test_a_maker_goes_on_after_a_file_in_the_way(files: Directories, base: str, write_file: WriteFile) -> None:
    make = files.directory_maker()
    assert make(f"{base}/t/a/1") is True
    write_file(f"{base}/t/taken", b"x")
    with pytest.raises(DirectoryNotMade, match=r"t/taken is not a directory or unable to create one$"):
        make(f"{base}/t/taken")
    assert make(f"{base}/t/b/1") is True


def test_a_maker_does_not_take_a_file_for_a_parent(tmp_path: Path) -> None:
    make = Directories(roots=[f"file:{tmp_path}"]).directory_maker()
    assert make(f"file:{tmp_path}/t/a/1") is True
    (tmp_path / "t/taken").write_bytes(b"x")
    for _ in range(2):
        with pytest.raises(DirectoryNotMade):
            make(f"file:{tmp_path}/t/taken/1")


def test_a_maker_leaves_other_schemes_alone_and_stays_inside_the_roots(tmp_path: Path) -> None:
    make = Directories(roots=[f"file:{tmp_path}/root"]).directory_maker()
    assert make("hdfs://somewhere/t") is None
    assert make(f"file:{tmp_path}/root/t") is True
    assert make(f"file:{tmp_path}/other/t") is None
    assert not (tmp_path / "other").exists()
