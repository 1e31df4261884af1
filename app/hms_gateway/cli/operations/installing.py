"""Work of `hms-gateway migrate`, `backup` and `hive-views`: the database of an installation."""

from pathlib import Path

from rich.status import Status

from hms_gateway.cli.terminal.output import err, fail, fail_for_store
from hms_gateway.composition.main import database_url
from hms_gateway.metastore.ports.store import StoreError
from hms_gateway.runtime.file_versions import make_data_folder
from hms_gateway.runtime.settings import Settings
from hms_gateway.storage.dialects.integrity import back_up
from hms_gateway.storage.migrations.revisions import migrate, revision_of
from hms_gateway.storage.schema.catalog import REVISION
from hms_gateway.storage.views.installing import install, remove


def run_migration(settings: Settings) -> None:
    """Say from which revision to which, and do it; what cannot be done is one line and exit code 2."""
    url = database_url(settings)
    try:
        if settings.database_url is None:
            make_data_folder(settings.data_dir)
        found = revision_of(url)
        if found == REVISION:
            print(f"the database has revision {REVISION} already")
            return
        print(f"from {'an empty database' if found is None else f'revision {found}'} to revision {REVISION}")
        with Status("changing the tables", console=err):
            migrate(url)
        print("done")
    except StoreError as error:
        fail_for_store(error)
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}", "--data-dir chooses another folder")


def run_backup(settings: Settings, file: Path) -> None:
    """Write the copy; what keeps it from being written is one line and exit code 2."""
    try:
        back_up(database_url(settings), file)
    except StoreError as error:
        fail_for_store(error)
    print(f"the database is in {file}")


def install_views(settings: Settings, schema: str) -> None:
    """Say how many there are; what cannot be done is one line and exit code 2."""
    try:
        print(f"{install(database_url(settings), schema)} views in schema {schema}")
    except StoreError as error:
        fail_for_store(error)


def remove_views(settings: Settings, schema: str) -> None:
    """The same for the removal."""
    try:
        remove(database_url(settings), schema)
    except StoreError as error:
        fail_for_store(error)
    print(f"schema {schema} is removed")
