"""Where databases and tables lie, and making and deleting their directories (semantics §3.1, §3.2)."""

import logging
from typing import Final

from hms_gateway.metastore.checks.errors import file_errors_as_meta
from hms_gateway.metastore.ports.store import FileSystem, FileSystemError, Reach
from hms_gateway.metastore.vocabulary.locations import (
    LocationError,
    database_path,
    default_database_location,
    default_table_location,
    is_under,
    join,
    normalize_location,
)
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.structs import Database, MetaException

_ADVICE: Final = "name a directory around it in file_roots, or make the table external"


def check_place(files: FileSystem, location: str, *, is_owned: bool) -> None:
    """Check that a location may be recorded. Raises MetaException.

    `is_owned` means that the catalog owns the data there: it is a database's, or that of a table that is not external.
    What is not owned may lie outside the roots, and is then left alone.
    """
    with file_errors_as_meta():
        reach = files.reach(location)
        if reach is Reach.REFUSED:
            files.manages(location)
    if is_owned and reach is Reach.OUTSIDE:
        raise MetaException(f"{location} is outside the directories this server manages; {_ADVICE}")


_LOG: Final = logging.getLogger(__name__)


class Warehouse:
    """Directories by the warehouse's rules. File errors are MetaExceptions unless a method says otherwise."""

    def __init__(self, settings: MetastoreSettings, files: FileSystem) -> None:
        self._default_file_system = settings.default_file_system
        self._files = files
        self.root: Final = self.normalized(settings.warehouse_location)

    def normalized(self, location: str) -> str:
        """The form in which a location is stored. Raises MetaException."""
        try:
            return normalize_location(location, self._default_file_system)
        except LocationError as error:
            raise MetaException(str(error)) from error

    def new_database_location(self, name: str, given: str | None) -> str:
        """Where a new database goes; `""` is an error here, while a table takes it for "not given"."""
        return default_database_location(self.root, name) if given is None else self.normalized(given)

    def path_of(self, database: Database) -> str:
        """Where the tables of a database go."""
        return database_path(self.root, database.name or "", database.locationUri)

    def new_table_location(self, database: Database, tbl_name: str, given: str | None) -> str:
        """Where a new table goes."""
        return self.normalized(given) if given else self.default_table_location(database, tbl_name)

    def default_table_location(self, database: Database, tbl_name: str) -> str:
        """Where a table goes that does not say; its directory moves when it is renamed."""
        return default_table_location(self.path_of(database), tbl_name)

    def check_place(self, location: str, *, is_owned: bool = True) -> None:
        """Whether a location may be recorded, as that of data that the catalog owns or does not."""
        check_place(self._files, location, is_owned=is_owned)

    def make_directory(self, location: str) -> bool:
        """True when this call made it, so that it may be discarded when what it was made for fails."""
        with file_errors_as_meta():
            return self._files.make_directory(location)

    def discard(self, location: str) -> None:
        """Take back `make_directory`: by now another call may use the directory, so only an empty one goes."""
        try:
            self._files.delete_empty_parents(join(location, "x"), 1)
        except FileSystemError as error:
            _LOG.warning("Could not take back directory %s: %s", location, error)

    def delete(self, location: str) -> None:
        """Delete data after its metadata is gone: what fails is only logged (semantics §2.3, §2.6).

        A directory around the warehouse itself is never deleted, whichever table claims it.
        """
        if is_under(location, self.root):
            _LOG.warning("Kept %s: the warehouse lies in it", location)
            return
        try:
            if self._files.reach(location) is Reach.OUTSIDE:
                _LOG.warning("Kept %s: it is outside the directories this server manages (file_roots)", location)
                return
            self._files.delete_directory(location)
        except FileSystemError as error:
            _LOG.warning("Could not delete %s: %s", location, error)

    def manages(self, location: str) -> bool:
        """Whether directories there are made, moved, deleted and measured."""
        with file_errors_as_meta():
            return self._files.manages(location)

    def statistics(self, location: str) -> tuple[int, int]:
        """Number and bytes of the files of a table or partition."""
        with file_errors_as_meta():
            return self._files.quick_statistics(location)
