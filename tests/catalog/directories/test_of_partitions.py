"""Directories of many partitions at once."""

import itertools
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hms_gateway.catalog.directories.of_partitions import Found, PartitionDirectories
from hms_gateway.metastore.ports.store import FileSystemError
from hms_gateway.runtime.presented import recording
from hms_gateway.storage.files.directories import Directories
from tests.support.patience import PATIENCE_SECONDS


class MeetingFiles(Directories):
    """Lets no thread but the caller's go on before so many have come; remembers who made what."""

    def __init__(self, root: Path, together: int) -> None:
        super().__init__(roots=[f"file:{root}"])
        self.barrier = threading.Barrier(together, timeout=PATIENCE_SECONDS)
        self.met = threading.local()
        self.callers_count = 0

    def directory_maker(self) -> Callable[[str], bool | None]:
        make = super().directory_maker()

        def make_together(location: str) -> bool | None:
            if threading.current_thread() is threading.main_thread():
                self.callers_count += 1
            elif not hasattr(self.met, "others"):
                self.met.others = self.barrier.wait()
            return make(location)

        return make_together


def locations(root: Path, count: int) -> list[str]:
    return [f"file:{root}/t/ds={number}" for number in range(count)]


def test_new_and_found(tmp_path: Path) -> None:
    directories = PartitionDirectories(Directories(roots=[f"file:{tmp_path}"]), 15)
    first, second, third = locations(tmp_path, 3)
    for location in (second, third):
        Path(location.removeprefix("file:")).mkdir(parents=True)
        Path(location.removeprefix("file:"), "part-0").write_text("123")
    new: set[str] = set()
    assert directories.make([first, second, third], {first, second}, new) == [Found(second, (1, 3)), Found(third)]
    assert new == {first}


def test_what_this_call_made_before_is_not_found(tmp_path: Path) -> None:
    directories = PartitionDirectories(Directories(roots=[f"file:{tmp_path}"]), 15)
    new: set[str] = set()
    wanted = locations(tmp_path, 2)
    assert directories.make(wanted, wanted, new) == []
    assert directories.make(wanted, wanted, new) == []


def test_many_slow_ones_are_made_in_threads(tmp_path: Path) -> None:
    new: set[str] = set()
    wanted = locations(tmp_path, 40)
    files = MeetingFiles(tmp_path, together=4)
    each_look_is_a_second_later = itertools.count().__next__
    PartitionDirectories(files, 4, each_look_is_a_second_later).make(wanted, (), new)
    assert new == set(wanted)
    assert files.callers_count == 1


def test_quick_ones_are_made_by_the_caller(tmp_path: Path) -> None:
    new: set[str] = set()
    wanted = locations(tmp_path, 40)
    files = MeetingFiles(tmp_path, together=4)
    PartitionDirectories(files, 4, lambda: 0.0).make(wanted, (), new)
    assert new == set(wanted)
    assert files.callers_count == 40


def test_a_few_slow_ones_are_made_by_the_caller(tmp_path: Path) -> None:
    new: set[str] = set()
    wanted = locations(tmp_path, 8)
    files = MeetingFiles(tmp_path, together=4)
    PartitionDirectories(files, 4, itertools.count().__next__).make(wanted, (), new)
    assert files.callers_count == 8


def test_what_was_made_is_known_when_one_fails(tmp_path: Path) -> None:
    wanted = locations(tmp_path, 30)
    tmp_path.joinpath("t").mkdir()
    tmp_path.joinpath("t/ds=17").write_text("in the way")
    directories = PartitionDirectories(Directories(roots=[f"file:{tmp_path}"]), 4, itertools.count().__next__)
    new: set[str] = set()
    with pytest.raises(FileSystemError, match="ds=17 is not a directory or unable to create one"):
        directories.make(wanted, (), new)
    assert {f"file:{path}" for path in tmp_path.joinpath("t").iterdir() if path.is_dir()} == new
    directories.take_back(f"file:{tmp_path}/t", sorted(new))
    assert [path.name for path in tmp_path.joinpath("t").iterdir()] == ["ds=17"]


def test_taking_back_leaves_what_is_in_use(tmp_path: Path) -> None:
    root = tmp_path / "t"
    for name in ("a/1", "a/2", "b/1"):
        root.joinpath(name).mkdir(parents=True)
    root.joinpath("b/1/part-0").write_text("data")
    wanted = [f"file:{root}/{name}" for name in ("a/1", "b/1")] + ["hdfs://nn/x"]
    PartitionDirectories(Directories(roots=[f"file:{tmp_path}"]), 1).take_back(f"file:{root}", wanted)
    assert sorted(str(path.relative_to(root)) for path in root.rglob("*")) == ["a", "a/2", "b", "b/1", "b/1/part-0"]


def test_deleting_takes_data_and_empty_parents_but_not_the_root(tmp_path: Path) -> None:
    root = tmp_path / "t"
    for name in ("a/1", "b/1", "b/2"):
        root.joinpath(name).mkdir(parents=True)
        root.joinpath(name, "part-0").write_text("data")
    wanted = [f"file:{root}/{name}" for name in ("a/1", "b/1")] + [f"file:{root}", f"file:{tmp_path}", "hdfs://nn/x"]
    PartitionDirectories(Directories(roots=[f"file:{tmp_path}"]), 15).delete(f"file:{root}", wanted, 2)
    assert sorted(str(path.relative_to(root)) for path in root.rglob("*")) == ["b", "b/2", "b/2/part-0"]


def test_recorded_calls_touch_no_directory(tmp_path: Path) -> None:
    """Also in the threads that slow directories get."""
    wanted, new = locations(tmp_path, 30), set[str]()
    tmp_path.joinpath("t/ds=1").mkdir(parents=True)
    directories = PartitionDirectories(Directories(roots=[f"file:{tmp_path}"]), 4, itertools.count().__next__)
    with recording(1):
        assert directories.make(wanted, wanted, new) == []
        assert directories.count(wanted) == [None] * 30
        directories.delete(f"file:{tmp_path}/t", wanted, 1)
        directories.take_back(f"file:{tmp_path}/t", wanted)
    assert (new, [path.name for path in tmp_path.joinpath("t").iterdir()]) == (set(), ["ds=1"])


def test_counting(tmp_path: Path) -> None:
    tmp_path.joinpath("part-0").write_text("1234")
    counted = PartitionDirectories(Directories(roots=[f"file:{tmp_path}"]), 15).count(
        [f"file:{tmp_path}", "hdfs://nn/x"]
    )
    assert counted == [(1, 4), None]
