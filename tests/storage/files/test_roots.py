"""What lies below a root, whatever changes around it; with the kernel's bounded lookups and step by step."""

import contextlib
import os
from pathlib import Path

import pytest

from hms_gateway.metastore.ports.store import FileSystemError, Reach
from hms_gateway.storage.files.directories import Directories
from hms_gateway.storage.files.handles import REACHING, has_openat2, open_below, open_top
from hms_gateway.storage.files.local import LocalDirectories
from hms_gateway.storage.files.places import FilePolicy


@pytest.fixture(params=["kernel", "steps"], autouse=True)
def lookups(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "steps":
        for name in ("has_openat2", "has_renameat2"):
            monkeypatch.setattr(f"hms_gateway.storage.files.handles.{name}", lambda: False)
    elif not has_openat2():
        pytest.skip("this kernel has no openat2")


@pytest.mark.parametrize(
    ("location", "reach"),
    [
        ("file:{root}", Reach.MANAGED),
        ("file:{root}/t", Reach.MANAGED),
        ("file://{root}/t", Reach.MANAGED),
        ("file://LocalHost{root}/t", Reach.MANAGED),
        ("FILE:{root}/t", Reach.MANAGED),
        ("file:{root}//./t/", Reach.MANAGED),
        ("{root}/t", Reach.MANAGED),
        ("file:{root}-other/t", Reach.OUTSIDE),
        ("file:/", Reach.OUTSIDE),
        ("file://elsewhere{root}/t", Reach.OUTSIDE),
        ("file:/%2e{root}/t", Reach.OUTSIDE),
        ("s3a://bucket/t", Reach.IGNORED),
        ("ftp://host/t", Reach.IGNORED),
        ("local:{root}/t", Reach.REFUSED),
        ("github://{root}/t", Reach.REFUSED),
        ("memory:/t", Reach.REFUSED),
    ],
)
def test_what_a_location_is_to_this_server(location: str, reach: Reach, tmp_path: Path) -> None:
    files = Directories(roots=[f"file:{tmp_path}/root"])
    assert files.reach(location.format(root=tmp_path / "root")) is reach


def test_a_managed_scheme_without_a_root_is_outside() -> None:
    files = Directories({"memory": FilePolicy.MANAGE}, ["file:/tables", "memory://a/tables"])
    assert files.reach("memory://a/tables/t") is Reach.MANAGED
    assert files.reach("memory://b/tables/t") is Reach.OUTSIDE
    assert files.reach("memory://a/tables2/t") is Reach.OUTSIDE
    with pytest.raises(FileSystemError, match="encoded"):
        files.reach("memory://a/tables/%2e%2e/t")
    with pytest.raises(FileSystemError, match="'::'"):
        files.reach("memory://a/tables/x::file:/etc")


def test_schemes_that_go_outward_are_managed_only_by_their_own_line_and_root(tmp_path: Path) -> None:
    place = f"{tmp_path}/t"
    for scheme in ("local", "ftp", "http", "sftp", "github"):
        named = Directories({scheme: FilePolicy.MANAGE}, [f"file:{tmp_path}/other"])
        assert named.reach(f"{scheme}:{place}") is Reach.OUTSIDE
        assert named.quick_statistics(f"{scheme}:{place}") == (0, 0)
    both = Directories({"local": FilePolicy.MANAGE}, [f"local:{tmp_path}"])
    assert both.make_directory(f"local:{place}") is True


def test_one_root_has_two_spellings_when_it_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "root").symlink_to("disk")
    files = Directories(roots=[f"file:{tmp_path}/root"])
    assert files.make_directory(f"file:{tmp_path}/root/t") is True
    assert files.make_directory(f"file:{tmp_path}/disk/t") is False
    (tmp_path / "root").unlink()
    (tmp_path / "root").symlink_to("/")
    assert files.is_directory(f"file:{tmp_path}/root/t")


def test_a_link_below_a_root_is_followed_when_it_is_a_root_itself(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "big").symlink_to(tmp_path / "disk")
    one, both = f"file:{tmp_path}/root", f"file:{tmp_path}/root/big"
    with pytest.raises(FileSystemError, match="symbolic link, which is not followed below a root; name the link in"):
        Directories(roots=[one]).exists(f"{both}/t")
    files = Directories(roots=[one, both])
    assert files.make_directory(f"{both}/t") is True
    assert (tmp_path / "disk" / "t").is_dir()
    with pytest.raises(FileSystemError, match="file_roots, or holds one, and is not deleted"):
        files.delete_directory(both)
    with pytest.raises(FileSystemError, match="is not moved"):
        files.move_directory(both, f"{one}/small")


def test_a_root_that_was_removed_is_made_again(tmp_path: Path) -> None:
    files = Directories(roots=[f"file:{tmp_path}/root"])
    make = files.directory_maker()
    for _ in range(2):
        assert files.make_directory(f"file:{tmp_path}/root/a/b") is True
        assert make(f"file:{tmp_path}/root/a/c") is True
        (tmp_path / "root" / "a" / "b").rmdir()
        (tmp_path / "root" / "a" / "c").rmdir()
        (tmp_path / "root" / "a").rmdir()
        (tmp_path / "root").rmdir()


def test_a_root_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "victim").mkdir()
    files = Directories(roots=[f"file:{tmp_path}/root"])
    (tmp_path / "root").rmdir()
    (tmp_path / "root").symlink_to("victim")
    for change in (files.make_directory, files.delete_directory):
        with pytest.raises(FileSystemError):
            change(f"file:{tmp_path}/root/t")
    assert list((tmp_path / "victim").iterdir()) == []


@pytest.mark.slow
def test_a_deep_tree_is_deleted_with_few_handles(tmp_path: Path) -> None:
    files = Directories(roots=[f"file:{tmp_path}"])
    deep = "/".join(["d"] * 400)
    make = files.directory_maker()
    assert make(f"file:{tmp_path}/t/{deep}/x") is True
    assert 0 < handles_below(tmp_path) < 40
    (tmp_path / "t" / deep / "file").write_text("x")
    (tmp_path / "t" / "link").symlink_to(tmp_path)
    files.delete_directory(f"file:{tmp_path}/t")
    assert list(tmp_path.iterdir()) == []
    del make
    assert handles_below(tmp_path) == 0


def handles_below(folder: Path) -> int:
    """Those that this process has on a directory or below it; others come and go with its other threads."""
    found = 0
    for handle in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            place = Path(os.readlink(f"/proc/self/fd/{handle}").removesuffix(" (deleted)"))
            found += place.is_relative_to(folder)
    return found


def test_directories_are_moved_between_roots_and_replace_nothing(tmp_path: Path) -> None:
    files = Directories(roots=[f"file:{tmp_path}/a", f"file:{tmp_path}/b"])
    files.make_directory(f"file:{tmp_path}/a/t")
    files.make_directory(f"file:{tmp_path}/b/empty")
    with pytest.raises(FileSystemError, match="exists already"):
        files.move_directory(f"file:{tmp_path}/a/t", f"file:{tmp_path}/b/empty")
    files.move_directory(f"file:{tmp_path}/a/t", f"file:{tmp_path}/b/new/t")
    assert (tmp_path / "b" / "new" / "t").is_dir()
    with pytest.raises(FileSystemError, match="does not exist"):
        files.move_directory(f"file:{tmp_path}/a/t", f"file:{tmp_path}/b/u")


def test_a_handle_leads_to_what_it_was_opened_for(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    with open_top(str(tmp_path)) as top, open_below(top, "a/b", REACHING) as below:
        (tmp_path / "a" / "b").rename(tmp_path / "kept")
        (tmp_path / "a" / "b").symlink_to("/")
        os.mkdir("made", dir_fd=below.number)
        with pytest.raises(OSError, match="symbolic links"):
            open_below(top, "a/b")
    assert (tmp_path / "kept" / "made").is_dir()


def test_a_file_is_no_folder_to_look_into(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    local = LocalDirectories(str(tmp_path))
    assert not local.is_directory("file")
    assert not local.exists("file/x")
    assert list(local.file_sizes("file")) == []
