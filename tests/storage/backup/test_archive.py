"""Backups in a folder: chunks that stay, points, and files that are damaged, cut off or gone."""

import errno
import fcntl
import os
import resource
import stat
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

from hms_gateway.metastore.ports.store import StoreError
from hms_gateway.storage.backup import archive
from hms_gateway.storage.backup.archive import (
    FORMAT,
    Backup,
    BackupFolder,
    BackupWriter,
    Inventory,
    Point,
    backup_name,
    chunks_of,
    rows_of,
)

ROWS = [(number, f"row {number}", None, number % 2 == 0) for number in range(9_000)]


def written(path: Path, rows: list[tuple], time_ms: int = 1_000, event_id: int = 7, **changed: object) -> Backup:
    """A backup of one table, with what the newest one has not."""
    with BackupFolder(path) as folder:
        newest = folder.newest()
        known = {} if newest is None else {one.sha256: one for one in newest.inventory.tables["t"].chunks}
        name = backup_name(time_ms, event_id)
        with BackupWriter(folder, name, known) as writer:
            tables = {"t": writer.add_rows(["a", "b", "c", "d"], rows)}
            values = {"format": FORMAT, "program": "1", "revision": "0019", "event_id": event_id, "time_ms": time_ms}
            inventory = Inventory(**{**values, "tables": tables, "files": {}, **changed})
            writer.finish(inventory, None)
        return Backup(name, inventory)


def read(path: Path, backup: Backup) -> list[tuple]:
    with BackupFolder(path) as folder:
        folder.verify(backup)
        return [tuple(row) for chunk in backup.inventory.tables["t"].chunks for row in rows_of(folder.chunk(chunk))]


def test_rows_come_back_as_they_were_in_chunks_of_a_bounded_length(tmp_path: Path) -> None:
    backup = written(tmp_path / "backups", ROWS)
    assert read(tmp_path / "backups", backup) == ROWS
    assert backup.inventory.count("t") == 9_000
    assert len(list(chunks_of([("x" * 3_000_000,)] * 4))) == 2
    assert [count for _, count in chunks_of([(1,)] * 8_193)] == [8_192, 1]


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: [*rows[:4_500], (-1, "new", None, False), *rows[4_500:]],
        lambda rows: rows[:4_500] + rows[4_501:],
        lambda rows: [*rows[:4_500], (4_500, "changed", None, True), *rows[4_501:]],
        lambda rows: [*rows, (9_000, "new", None, True)],
    ],
    ids=["inserted", "deleted", "changed", "appended"],
)
def test_an_increment_has_the_chunks_around_a_change_only(tmp_path: Path, change) -> None:
    base = written(tmp_path, ROWS)
    increment = written(tmp_path, change(ROWS), time_ms=2_000)
    own = {chunk.sha256 for chunk in increment.inventory.tables["t"].chunks if chunk.file == increment.name}
    assert 1 <= len(own) <= 2 < len(base.inventory.tables["t"].chunks)
    with ZipFile(tmp_path / increment.name) as file:
        assert set(file.namelist()) == {"inventory.json", *(f"chunks/{sha256}" for sha256 in own)}
    assert read(tmp_path, increment) == change(ROWS)
    assert read(tmp_path, base) == ROWS


@pytest.mark.parametrize(
    ("point", "chosen"),
    [(Point(), 2), (Point(8), 1), (Point(9), 2), (Point(7), 0), (Point(None, 2_999), 1), (Point(None, 3_000), 2)],
)
def test_a_point_is_the_newest_state_before_it(tmp_path: Path, point: Point, chosen: int) -> None:
    backups = [written(tmp_path, ROWS[:5], 1_000 * number + 1_000, 7 + number) for number in range(3)]
    with BackupFolder(tmp_path) as folder:
        assert folder.choose(point) == backups[chosen]


@pytest.mark.parametrize(
    ("point", "text"), [(Point(6), "no backup at event 6 or before; the first one is of event 7"),
                        (Point(None, 5), "no backup at that time or before; the first one is of event 7, 1970-01-01T0")]
)  # fmt: skip
def test_a_point_before_the_first_backup_is_named(tmp_path: Path, point: Point, text: str) -> None:
    written(tmp_path, ROWS[:5])
    with BackupFolder(tmp_path) as folder, pytest.raises(StoreError, match=text):
        folder.choose(point)


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-30])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    file.write_bytes(content)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def replace_chunk(file: Path) -> None:
    """With one that is sound, but is not the one that was written."""
    with ZipFile(file) as old:
        members = {name: old.read(name) for name in old.namelist()}
    with ZipFile(file, "w") as new:
        for name, content in members.items():
            new.writestr(name, b"[1]" if name.startswith("chunks/") else content)


@pytest.mark.slow
def test_damage_is_a_text_with_the_name_of_the_file(tmp_path: Path) -> None:
    for number, damage in enumerate((cut_off, flip, empty, replace_chunk, Path.unlink)):
        path = tmp_path / str(number)
        base = written(path, ROWS)
        increment = written(path, [*ROWS, (9_000, "new", None, True)], time_ms=2_000)
        damage(path / base.name)
        with pytest.raises(StoreError, match=f"{base.name} is (damaged|gone)"):
            read(path, increment)
        # The next backup does not rely on it.
        healed = written(path, ROWS, time_ms=3_000)
        assert read(path, healed) == ROWS


def test_a_folder_may_have_more_files_than_a_process_may_open(tmp_path: Path) -> None:
    names = [written(tmp_path, ROWS[:number], 1_000 * number).name for number in range(1, 30)]
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = max(map(int, os.listdir("/proc/self/fd")))
    with pytest.MonkeyPatch.context() as patch, BackupFolder(tmp_path) as folder:
        patch.setattr(archive, "_OPEN_MAX", 4)
        resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 20, limits[1]))
        try:
            assert [backup.name for backup in folder.backups()] == names
            assert folder.choose(Point()).name == names[-1]
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_files_that_cannot_be_read_do_not_keep_others_from_being_restored(tmp_path: Path) -> None:
    sound = written(tmp_path, ROWS[:5])
    torn = written(tmp_path, ROWS[:50], time_ms=2_000, event_id=9)
    cut_off(tmp_path / torn.name)
    (tmp_path / "0.zip").touch()
    with BackupFolder(tmp_path) as folder:
        assert list(folder.backups()) == [sound]
        assert [text.split(" is ")[0] for text in folder.unreadable] == [
            str(tmp_path / name) for name in ("0.zip", torn.name)
        ]
        assert folder.choose(Point(8)) == folder.choose(Point(None, 1_500)) == sound
        # Nobody gets an older state than the newest unasked.
        with pytest.raises(StoreError, match=f"{torn.name} is damaged .*; --event 7 restores the newest backup that"):
            folder.choose(Point())
    (tmp_path / torn.name).unlink()
    with BackupFolder(tmp_path) as folder:
        assert folder.choose(Point()) == sound


def test_a_newer_format_and_an_inventory_of_something_else_are_refused(tmp_path: Path) -> None:
    written(tmp_path / "newer", ROWS[:5], format=FORMAT + 1)
    with BackupFolder(tmp_path / "newer") as folder, pytest.raises(StoreError, match="format 2, this program knows 1"):
        folder.choose(Point())
    for number, text in enumerate((b"{}", b"[", b'{"format":1}')):
        path = tmp_path / f"other{number}"
        path.mkdir()
        with ZipFile(path / "hms-x.zip", "w") as file:
            file.writestr("inventory.json", text)
        with BackupFolder(path) as folder, pytest.raises(StoreError, match=r"hms-x.zip is damaged"):
            folder.choose(Point())


def test_an_inventory_cannot_name_a_file_elsewhere(tmp_path: Path) -> None:
    base = written(tmp_path / "one", ROWS[:5])
    chunk = base.inventory.tables["t"].chunks[0]
    with BackupFolder(tmp_path / "two") as folder, pytest.raises(StoreError, match="elsewhere"):
        folder.chunk(type(chunk)(chunk.sha256, chunk.rows, f"../one/{base.name}"))


def test_what_is_not_finished_leaves_nothing(tmp_path: Path) -> None:
    rows = ((1 // (3_000 - number),) for number in range(5_000))
    with (
        BackupFolder(tmp_path) as folder,
        pytest.raises(ZeroDivisionError),
        BackupWriter(folder, "x.zip", {}) as writer,
    ):
        writer.add_rows(["a"], rows)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with BackupFolder(tmp_path / "file") as folder, pytest.raises(StoreError, match="file cannot be written"):
        BackupWriter(folder, "hms-x.zip", {})
    with BackupFolder(tmp_path / "none") as folder, pytest.raises(StoreError, match="none not found"):
        list(folder.backups())


def test_a_folder_without_locks_and_one_that_cannot_be_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(number: int) -> Callable[..., None]:
        def refuse(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        return refuse

    monkeypatch.setattr("fcntl.flock", refused(errno.ENOLCK))
    syncs = {True: refused(errno.EINVAL), False: os.fsync}
    monkeypatch.setattr("os.fsync", lambda file: syncs[stat.S_ISDIR(os.fstat(file).st_mode)](file))
    backup = written(tmp_path, ROWS)
    assert [path.name for path in tmp_path.iterdir()] == [backup.name]


def test_a_backup_whose_file_another_one_takes_for_left_makes_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock
    taken = iter(["the first"])

    def late(descriptor: int, how: int) -> None:
        if next(taken, None):
            for path in tmp_path.iterdir():
                path.unlink()
        lock(descriptor, how)

    monkeypatch.setattr("fcntl.flock", late)
    backup = written(tmp_path, ROWS)
    assert [path.name for path in tmp_path.iterdir()] == [backup.name]


def test_what_a_killed_backup_left_goes_with_the_next(tmp_path: Path) -> None:
    (tmp_path / ".hms-1.zip-abc").touch()
    with BackupFolder(tmp_path) as folder, BackupWriter(folder, "hms-2.zip", {}):
        (under_way,) = tmp_path.iterdir()
        with BackupWriter(folder, "hms-3.zip", {}):
            assert under_way.exists()
