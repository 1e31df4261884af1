"""A second attack: a folder that every account can write, where each of them can put another password file."""

import os
import stat
from pathlib import Path

import pytest

from hms_gateway.runtime.file_versions import is_open_to_all, make_data_folder
from hms_gateway.storage.files.local import LocalDirectories
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import GatewayServer
from tests.support.warm_program import run_program


@pytest.fixture
def without_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def modes(*folders: Path) -> list[str]:
    return [stat.filemode(folder.stat().st_mode) for folder in folders]


def test_no_umask_opens_the_folder_or_those_above_it(tmp_path, without_umask):
    make_data_folder(tmp_path / "srv" / "hms")
    make_data_folder(tmp_path / "srv" / "hms")
    assert modes(tmp_path / "srv", tmp_path / "srv" / "hms") == ["drwxr-xr-x"] * 2
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_data_folder(tmp_path / "file")


@pytest.mark.parametrize(("umask", "mode"), [(0, "drwxrwxr-x"), (0o002, "drwxrwxr-x"), (0o027, "drwxr-x---")])
def test_no_umask_opens_the_warehouse_or_what_is_made_in_it(tmp_path, without_umask, umask, mode):
    os.umask(umask)
    root = tmp_path / "srv" / "warehouse"
    tables = LocalDirectories(str(root))
    assert tables.make("")
    assert tables.make("sales.db/orders")
    assert tables.maker()("sales.db/people/ds=1")
    made = [root, *(folder for folder in root.rglob("*"))]
    assert (len(made), set(modes(*made))) == (5, {mode})
    assert modes(root.parent)[0][8] == "-"


def test_the_first_user_makes_a_closed_folder(tmp_path, without_umask):
    words = ("user", "add", "ann", "--password-stdin", "--data-dir", str(tmp_path / "srv" / "hms"))
    run_program(words, {}, "a password", PATIENCE_SECONDS).check_returncode()
    assert modes(tmp_path / "srv", tmp_path / "srv" / "hms") == ["drwxr-xr-x"] * 2


def test_a_folder_that_is_open_already_is_warned_of(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o777)
    assert is_open_to_all(folder)
    with GatewayServer(folder) as gateway:
        pass
    assert "every account of this machine can write data_dir" in gateway.log_text()
    folder.chmod(0o1777)
    assert not is_open_to_all(folder)
