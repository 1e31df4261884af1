"""Work of `hms-gateway migrate` and `hive-views`: the database of an installation."""

from rich.status import Status

from hms_gateway.cli.terminal.output import err, fail, fail_for_store
from hms_gateway.composition.places import database_url
from hms_gateway.metastore.ports.store import StoreError
from hms_gateway.runtime.file_versions import make_data_folder
from hms_gateway.runtime.settings import Settings
from hms_gateway.storage.migrations.revisions import migrate, note_older, revision_of
from hms_gateway.storage.schema.catalog import REVISION
from hms_gateway.storage.views.installing import install, remove


def run_migration(settings: Settings, revision: str | None) -> None:
    """Say from which revision to which, and do it; what cannot be done is one line and exit code 2."""
    url = database_url(settings)
    try:
        if revision is not None:
            print(f"from revision {note_older(url, revision)} to revision {revision}; the tables stay as they are")
            return
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
