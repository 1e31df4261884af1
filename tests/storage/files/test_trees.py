"""What a check sees and removes of this machine's directories: through handles, below the roots, no links."""

import os
from pathlib import Path

import pytest

from hms_gateway.metastore.ports.store import FileSystemError, Tree
from hms_gateway.storage.files.directories import Directories


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def files(root: Path) -> Directories:
    return Directories(roots=[f"file:{root}"])


def test_names_are_those_of_directories_below_a_root(files: Directories, root: Path) -> None:
    for name in ("d.db/t", "_hidden", "e.db"):
        (root / name).mkdir(parents=True)
    (root / "link").symlink_to(root.parent)
    (root / "file").touch()
    assert sorted(files.names_below(f"file:{root}")) == ["_hidden", "d.db", "e.db"]
    assert list(files.names_below(f"file:{root}/missing")) == []
    assert list(files.names_below(f"file:{root.parent}")) == []


def test_a_tree_is_measured_with_what_is_hidden_and_without_links(files: Directories, root: Path) -> None:
    (root / "t" / "a" / "b").mkdir(parents=True)
    (root / "t" / ".a").write_text("12345")
    (root / "t" / "link").symlink_to(root)
    for path, seconds in ((".a", 3_000), ("a/b", 2_000), ("a", 1_000), (".", 500)):
        os.utime(root / "t" / path, (seconds, seconds))
    os.utime(root / "t" / "link", (100, 100), follow_symlinks=False)
    length = len(str(root))
    assert files.measure(f"file:{root}/t") == Tree(2, 2, 5 + length, 3_000)
    assert files.measure(f"file:{root}/no") is None
    assert files.measure(f"file:{root.parent}") is None


def test_only_directories_are_deleted(files: Directories, root: Path) -> None:
    (root / "t" / "a" / "b").mkdir(parents=True)
    (root / "t" / "a" / "b" / "file").touch()
    assert files.delete_directories(f"file:{root}/t") is False
    (root / "t" / "a" / "b" / "file").unlink()
    assert files.delete_directories(f"file:{root}/t") is True
    assert files.delete_directories(f"file:{root}/t") is True
    assert list(root.iterdir()) == []
    with pytest.raises(FileSystemError, match="one of file_roots"):
        files.delete_directories(f"file:{root}")


def test_a_link_is_not_followed_to_delete(files: Directories, root: Path) -> None:
    (root.parent / "kept").mkdir()
    (root / "link").symlink_to(root.parent / "kept")
    with pytest.raises(FileSystemError):
        files.delete_directories(f"file:{root}/link")
    assert (root.parent / "kept").is_dir()


def test_one_text_for_all_ways_to_a_directory(files: Directories, root: Path) -> None:
    (root / "t").mkdir()
    (root.parent / "link").symlink_to(root)
    (root / "inner").symlink_to(root / "t")
    wanted = f"file:{root}/t"
    for location in (f"file:{root}/t", f"file://{root}//t/", f"file:{root.parent}/link/t", f"file:{root}/inner"):
        assert files.real_location(location) == wanted
    assert files.real_location("s3a://b/t") == files.real_location("S3://b/t") == "s3://b/t"
    assert files.real_location("file://host/t") == "file://host/t"
