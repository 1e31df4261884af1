"""Work of `hms-gateway backup` and `restore`."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final, NoReturn

import click
from rich.status import Status

from hms_gateway.cli.catalog.changes import seconds_of
from hms_gateway.cli.coordination.holding import ended_by_exception
from hms_gateway.cli.operations.checking import missing_directories
from hms_gateway.cli.terminal.commands import rows_form
from hms_gateway.cli.terminal.formats import write_rows
from hms_gateway.cli.terminal.output import EXIT_REFUSED, err, fail, fail_for_store, out, say
from hms_gateway.composition.places import database_url
from hms_gateway.gateway.auth.users import written_beside
from hms_gateway.metastore.ports.store import StoreError
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.file_versions import make_data_folder
from hms_gateway.runtime.settings import Settings, SettingsError
from hms_gateway.storage.backup.archive import Backup, BackupFolder, Inventory, Point
from hms_gateway.storage.backup.copying import Restored, back_up, restore

_SHOWN_MAX: Final = 100
_COUNTED: Final = ("databases", "tables", "partitions", "functions", "roles", "privileges", "notifications")
_HEADER: Final = ("time", "event", "revision", *_COUNTED, "file")


def run_backup(settings: Settings, folder: Path, *, is_base: bool, has_secrets: bool) -> None:
    """Write a backup and say what it has; what keeps it from being written is one line and exit code 2."""
    try:
        secrets = _secrets(settings) if has_secrets else {}
        files = {name: path.read_bytes() for name, path in secrets.items() if path.exists()}
        with ended_by_exception(), Status("reading", console=err) as status:
            made = back_up(
                *(database_url(settings), folder, SystemClock().milliseconds, files),
                lambda table: status.update(f"reading {table}"),
                is_base=is_base,
            )
    except StoreError as error:
        fail_for_store(error)
    except OSError as error:
        _fail_for_file(error)
    kind = "what changed" if made.is_increment else "everything"
    print(f"{kind} is in {folder / made.backup.name}, {made.file_bytes:,} bytes: {_summary(made.backup.inventory)}")


def run_restore(
    settings: Settings,
    folder: Path,
    *,
    event_id: int | None,
    time: str | None,
    replaces: bool,
    has_secrets: bool,
    shows_list: bool,
) -> None:
    """Restore, or list the backups; what keeps it from that is one line and exit code 2."""
    seconds = seconds_of("--time", time, datetime.now(UTC))
    point = Point(event_id, None if seconds is None else seconds * 1000 + 999)
    try:
        with ended_by_exception(), BackupFolder(folder) as backups:
            if shows_list:
                write_rows(sys.stdout, rows_form(None), _HEADER, sorted(map(_cells, backups.backups())))
                _tell_unreadable(backups)
                return
            backup = backups.choose(point)
            _tell_unreadable(backups)
            secrets = _secrets_of(settings, backups, backup, replaces=replaces) if has_secrets else {}
            if settings.database_url is None:
                make_data_folder(settings.data_dir)
            with _beside(secrets) as written, Status(f"checking {backup.name}", console=err) as status:
                restored = restore(
                    *(database_url(settings), backups, backup, SystemClock().milliseconds()),
                    lambda table: status.update(f"writing {table}"),
                    replaces=replaces,
                )
                _replace(written)
    except StoreError as error:
        fail_for_store(error)
    except OSError as error:
        _fail_for_file(error, "--data-dir chooses another folder")
    _tell(restored)
    _tell_missing(settings)


def _fail_for_file(error: OSError, advice: str = "") -> NoReturn:
    if error.filename is None:  # of standard output: `cli.main` knows what to say
        raise error
    fail(f"{error.filename}: {error.strerror}", advice)


def _secrets(settings: Settings) -> dict[str, Path]:
    """Files beside the database that the gateway needs to know its users, by their names in a backup."""
    return {
        "users": settings.users_path,
        "tokens": settings.tokens_path,
        "secrets.key": settings.secrets_key_path,
        "certificate.pem": settings.tls_certificate or settings.data_dir / "certificate.pem",
        "key.pem": settings.tls_key or settings.data_dir / "key.pem",
    }


def _secrets_of(settings: Settings, folder: BackupFolder, backup: Backup, *, replaces: bool) -> Mapping[Path, str]:
    """The contents of files to write. Raises StoreError."""
    places = _secrets(settings)
    if not backup.inventory.files:
        raise StoreError(f"{folder.path / backup.name} has no users and keys; make backups --with-secrets")
    try:
        found = {places[name]: folder.file(backup, name).decode() for name in places if name in backup.inventory.files}
    except UnicodeDecodeError as error:
        raise StoreError(f"a file in {folder.path / backup.name} is no text: {error}") from error
    there = [str(path) for path in found if path.exists()]
    if there and not replaces:
        raise StoreError(f"{', '.join(there)} exists already; --replace gives it up")
    return found


@contextmanager
def _beside(contents: Mapping[Path, str]) -> Iterator[dict[Path, Path]]:
    """The contents in temporary files, with the files to replace: nothing is changed before all of them are written.

    Raises StoreError.
    """
    with ExitStack() as stack:
        written = {}
        for path, text in contents.items():
            try:
                target = Path(os.path.realpath(path))  # a link stays one
                written[stack.enter_context(written_beside(target, [text]))] = target
            except OSError as error:
                raise StoreError(f"{path} cannot be written: {error.strerror}; nothing is restored") from error
        yield written


def _replace(written: Mapping[Path, Path]) -> None:
    for temporary, target in written.items():
        try:
            temporary.replace(target)
        except OSError as error:
            raise StoreError(f"the database is restored, but not {target}: {error.strerror}") from error


def _tell_unreadable(folder: BackupFolder) -> None:
    for text in folder.unreadable:
        say(f"passed over: {text}")


def _tell(restored: Restored) -> None:
    inventory = restored.inventory
    print(f"restored event {inventory.event_id:,} of {inventory.time}: {_summary(inventory)}; checksums are equal")
    print(f"the log goes on at event {restored.event_id:,}; open transactions that are aborted: {restored.aborted:,}")
    if transactional := inventory.count("table_write_ids"):
        print(
            f"tables with write ids, whose directories may have later ones: {transactional:,}; see docs/operations.md"
        )


def _tell_missing(settings: Settings) -> None:
    try:
        missing = missing_directories(settings)
        shown = list(islice(missing, _SHOWN_MAX))
        for text in shown:
            out.print(f"missing directory {text}", markup=False, highlight=False, soft_wrap=True)
        if next(missing, None) is not None:
            print("and more; hms-gateway check lists all")
    except (StoreError, SettingsError) as error:
        fail(f"the database is restored, and its directories cannot be looked at: {error}")
    if shown:
        raise click.exceptions.Exit(EXIT_REFUSED)


def _summary(inventory: Inventory) -> str:
    databases, tables, partitions, *_, events = (inventory.count(name) for name in _COUNTED)
    return f"{databases:,} databases, {tables:,} tables, {partitions:,} partitions, {events:,} events"


def _cells(backup: Backup) -> tuple[str | int, ...]:
    inventory = backup.inventory
    counts = (inventory.count(name) for name in _COUNTED)
    return (inventory.time, inventory.event_id, inventory.revision, *counts, backup.name)
