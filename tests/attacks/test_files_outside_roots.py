"""C1, C2, M1: whatever a caller does, files outside the roots stay as they are, and nothing about them is answered.

Each way is tried straight, and while a thread swaps a directory of the warehouse for a symbolic link to the outside;
with the kernel's own bounded lookups and with those that go step by step.
"""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.rpc.structs import Database
from hms_gateway.runtime.settings import Settings
from tests.attacks.file_attacks import (
    ATTACKS,
    Attack,
    Attacker,
    database,
    external_table_made_managed,
    looking_at_its_size,
    managed_table,
    partition_of_a_managed_table,
    partitions_exchanged_away,
    table_renamed_into,
    table_truncated,
)
from tests.support.catalog import new_table
from tests.support.kept_store import empty_database
from tests.support.sample import sample

pytestmark = pytest.mark.slow

SWAPS = 150
ATTEMPTS_MAX = 12
SECRET_BYTES = 1_234_567
# One for each of what can have a location, and of what can be done there.
SOME = (
    managed_table,
    database,
    partition_of_a_managed_table,
    external_table_made_managed,
    table_truncated,
    partitions_exchanged_away,
    table_renamed_into,
    looking_at_its_size,
)


@pytest.fixture(params=["kernel", "steps"])
def lookups(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "steps":
        for name in ("has_openat2", "has_renameat2"):
            monkeypatch.setattr(f"hms_gateway.storage.files.handles.{name}", lambda: False)
    return str(request.param)


@pytest.fixture
def metastore(tmp_path: Path, lookups: str) -> Iterator[Metastore]:
    data_dir = tmp_path / "var"
    data_dir.mkdir()
    (data_dir / DATABASE_FILE).write_bytes(empty_database())
    (data_dir / "users").write_text("admin:hash\n")
    metastore = build_metastore(Settings(data_dir=data_dir))
    yield metastore
    metastore.store.close()


@pytest.fixture
def attacker(metastore: Metastore, tmp_path: Path) -> Attacker:
    return Attacker(metastore, tmp_path / "var" / "warehouse")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Another account's folder: a file whose name and size must stay unknown, and directories that attacks look for."""
    inner = tmp_path / "outside" / "inner"
    for name in ("sub", "p=a", "x"):
        (inner / name).mkdir(parents=True)
        (inner / name / "kept").write_text("kept")
    with (inner / "unguessable").open("wb") as file:
        file.truncate(SECRET_BYTES)
    return inner.parent


def content(folder: Path) -> list[tuple[str, int, int]]:
    """Every name below, with its inode and the time it changed."""
    return sorted((str(path), path.lstat().st_ino, path.lstat().st_mtime_ns) for path in folder.rglob("*"))


def check_nothing_is_known(attacker: Attacker) -> None:
    answered = "".join(attacker.answers)
    assert not [size for size in re.findall(r"totalSize': '(\d+)", answered) if int(size) >= SECRET_BYTES]
    # One attack guesses the name, and is answered with it.
    assert "unguessable" not in answered.replace("/unguessable", "")


@pytest.mark.parametrize(
    ("lookups", "attack"),
    [*(("kernel", attack) for attack in ATTACKS), *(("steps", attack) for attack in sample(SOME, of=tuple(ATTACKS)))],
    indirect=["lookups"],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_straight(attack: Attack, attacker: Attacker, outside: Path) -> None:
    before = content(outside)
    place = f"file:{outside}/inner"
    attack(attacker, place)
    assert content(outside) == before
    check_nothing_is_known(attacker)


@pytest.mark.parametrize("attack", sample(SOME, of=tuple(ATTACKS)), ids=lambda attack: attack.__name__)
def test_raced(attack: Attack, attacker: Attacker, outside: Path) -> None:
    before = content(outside)
    door = attacker.warehouse / "door"
    (door / "inner").mkdir(parents=True)
    place = f"file:{door}/inner"
    for _ in _while_swapped(door, outside):
        attacker.attempt += 1
        attack(attacker, place)
    assert content(outside) == before
    check_nothing_is_known(attacker)


def _while_swapped(door: Path, outside: Path) -> Iterator[None]:
    """Goes on as long as a thread swaps a directory for a link to the outside and back, so often and no longer."""
    swapper = threading.Thread(target=lambda: [_swap(door, outside, number) for number in range(SWAPS)])
    swapper.start()
    try:
        for _ in range(ATTEMPTS_MAX):
            yield
    finally:
        swapper.join()


def _swap(door: Path, outside: Path, number: int) -> None:
    aside = door.with_name(f".aside{number}")
    with suppress(OSError):
        door.rename(aside)
    with suppress(OSError):
        door.symlink_to(outside)
    os.sched_yield()
    with suppress(OSError):
        door.unlink()
    with suppress(OSError):
        aside.rename(door)


@pytest.mark.parametrize(
    "spelled",
    [
        "file://elsewhere{path}",
        "file://127.0.0.1{path}",
        "FILE:{path}",
        "local:{path}",
        "LOCAL://{path}",
        "file:{warehouse}/../../outside/inner",
        "file:{warehouse}/%2e%2e/%2e%2e/outside/inner",
        "file:{warehouse}/..%2f..%2foutside/inner",
        "file:{warehouse}/./link/inner",
        "file:{warehouse}/link/inner",
        "file:{warehouse}//link//inner",
        "file:{warehouse}/link",
        "simplecache::file:{path}",
        "filecache::file://{path}",
        "zip://inner::file:{path}",
        "dir::file:{path}",
        "reference::file:{path}",
        "memory://::file:{path}",
        "ftp://127.0.0.1{path}",
        "http://127.0.0.1{path}",
        "s3a://bucket::file:{path}",
        "{path}",
    ],
)
def test_spelled_otherwise(spelled: str, attacker: Attacker, outside: Path) -> None:
    (attacker.warehouse / "link").symlink_to(outside)
    before = content(outside)
    place = spelled.format(path=outside / "inner", warehouse=attacker.warehouse)
    for attack in SOME:
        attacker.attempt += 1
        attack(attacker, place)
    assert content(outside) == before
    check_nothing_is_known(attacker)


def test_the_data_folder_and_the_top_of_the_disk(attacker: Attacker) -> None:
    data_dir = attacker.warehouse.parent
    for place in (
        f"file:{data_dir}/users",
        f"file:{data_dir}",
        "file:/",
        "file:///",
        f"file:{data_dir}/{DATABASE_FILE}",
    ):
        for attack in SOME:
            attacker.attempt += 1
            attack(attacker, place)
    assert (data_dir / "users").read_text() == "admin:hash\n"
    assert (data_dir / DATABASE_FILE).is_file()
    assert "totalSize" not in "".join(answer for answer in attacker.answers if "'file:/'" in answer)


def test_no_code_is_put_into_the_program(attacker: Attacker, tmp_path: Path) -> None:
    """C2: a package is dropped, and a directory of the attacker's moved to its place."""
    package = tmp_path / "site" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("kept = True\n")
    before = content(package.parent)
    managed_table(attacker, f"file:{package}")
    attacker.ask("create_table", new_table("package"))
    (attacker.warehouse / "package" / "__init__.py").write_text("import attack\n")
    for place in (f"file:{package.parent}", f"file:{attacker.warehouse}/site"):
        with suppress(FileExistsError):
            (attacker.warehouse / "site").symlink_to(package.parent)
        attacker.attempt += 1
        attacker.ask("create_database", Database(name=attacker.name("d"), locationUri=place))
        moved = new_table("package", attacker.name("d"), location="")
        attacker.ask("alter_table", "default", "package", moved)
        attacker.ask("drop_database", attacker.name("d"), True, True)
    assert content(package.parent) == before


def test_the_warehouse_itself_stays(attacker: Attacker) -> None:
    attacker.ask("create_table", new_table("mine"))
    for attack in SOME:
        attacker.attempt += 1
        attack(attacker, f"file:{attacker.warehouse}")
    assert (attacker.warehouse / "mine").is_dir()
