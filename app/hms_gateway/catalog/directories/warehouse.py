"""Where databases and tables lie, and making and deleting their directories (semantics §3.1, §3.2)."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from hms_gateway.catalog.directories.known_places import KnownPlaces
from hms_gateway.metastore.checks.errors import file_errors_as_meta
from hms_gateway.metastore.ports.store import (
    DirectoryNotMade,
    FileSystemError,
    LeftDirectory,
    ObjectsKept,
    OutcomeUnknown,
    PendingMove,
    Reach,
    Snapshot,
    Store,
    StoreError,
    TableId,
    Transaction,
)
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
from hms_gateway.rpc.structs import Database, MetaException
from hms_gateway.runtime.call_keys import answering
from hms_gateway.storage.files.directories import Directories

if TYPE_CHECKING:
    from hms_gateway.storage.files.buckets import Copied

_ADVICE: Final = "name a directory around it in file_roots, or make the table external"


def check_place(files: Directories, location: str, *, is_owned: bool) -> None:
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

    def __init__(self, settings: MetastoreSettings, files: Directories) -> None:
        self._files = files
        self.root: Final = self.normalized(settings.warehouse_location)

    def normalized(self, location: str) -> str:
        """The form in which a location is stored. Raises MetaException."""
        try:
            return normalize_location(location)
        except LocationError as error:
            raise MetaException(str(error)) from error

    def new_database_location(self, name: str, given: str | None, around: str | None = None) -> str:
        """Location of a new database; `""` is an error here, while a table takes it for "not given".

        `around` is the location of its catalog, where that is not the warehouse.
        """
        return default_database_location(around or self.root, name) if given is None else self.normalized(given)

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

    @contextmanager
    def directory_made(
        self, location: str, is_used: Callable[[], bool], complaint: str | None = None
    ) -> Iterator[bool]:
        """A directory for an object that the block stores; True if this call made it.

        It is taken back if the block fails and not another one `is_used`. `complaint` is said if it cannot be made.
        """
        with file_errors_as_meta():
            try:
                made = self._files.make_directory(location)
            except DirectoryNotMade as error:
                raise MetaException(complaint or str(error)) from error
        try:
            yield made
        except OutcomeUnknown:
            raise
        except BaseException:
            # Better an empty directory too many than one that is missing.
            with suppress(StoreError):
                if made and not is_used():
                    self.discard(location)
            raise
        if not made:
            # A call whose own creation failed may have removed the directory found here.
            with file_errors_as_meta():
                self._files.make_directory(location)

    def discard(self, location: str) -> None:
        """Take back a directory that was made: by now another call may use it, so only an empty one goes."""
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


# Moves directories together with the catalog, so that a crash in between can be mended (semantics §13, trap 6).
#
# A pending move is a row that says: as long as I exist, this directory belongs at `source`. It is written before the
# directory moves to `target`, and deleted in the very unit of work that makes the new location known. A call that finds
# one left over moves the directory back. To move a directory after a change of the catalog, write a pending move whose
# `source` is the new place and whose `target` is the old one in that change's unit of work, and delete it when done.
#
# A bucket knows no move: its objects are copied, and the originals deleted after the change of the catalog, which such
# a second pending move announces. So at each moment all objects are where the catalog says. Once the originals may be
# another's, or the bucket keeps them, they stay and the move is forgotten.


class MoveTakenBack(Exception):
    """Another call took the pending move for left over and moved the directory back; nothing may be committed."""


class DirectoryMoves:
    """The steps of a move; between `moved` and the end of `settle`'s unit of work lies the change of the catalog."""

    def __init__(self, store: Store, files: Directories) -> None:
        self._store = store
        self._files = files
        self._known = KnownPlaces(store, files)

    @contextmanager
    def moved(self, table_id: TableId, source: str, target: str) -> Iterator[PendingMove]:
        """A directory that is moved for a change, which the block commits with `settle`; back, if it did not commit.

        If the outcome is unknown, the pending move decides. While the store cannot be asked the directory stays where
        it is: `recover` will ask. Raises FileSystemError, with nothing changed.
        """
        move, copied = self._begin(table_id, source, target)
        try:
            yield move
        except OutcomeUnknown as error:
            try:
                is_settled = not _is_pending(self._store.read(lambda snapshot: snapshot.pending_moves()), move)
            except StoreError:
                raise error from None
            if not is_settled:
                self._take_back(move, copied)
                raise
        except MoveTakenBack:
            # The directory is that of the process that took the move back, or of a move after it.
            if copied is not None:
                self._discard_copies(move, copied)
            raise
        except BaseException:
            self._take_back(move, copied)
            raise
        if copied is not None:
            self._finish(move, copied)

    def _begin(self, table_id: TableId, source: str, target: str) -> "tuple[PendingMove, Copied | None]":
        """Announce the move and make it."""
        move = self._announced(table_id, source, target)
        try:
            return move, self._files.move_directory(source, target)
        except FileSystemError:
            self._forget(move)
            raise

    def _announced(self, table_id: TableId, source: str, target: str) -> PendingMove:
        """Raises FileSystemError if copies of another move may be at either place."""
        copies = self._files.copies(source)

        def announce(tx: Transaction) -> int:
            if copies and any({move.source, move.target} & {source, target} for move in tx.pending_moves()):
                raise FileSystemError(
                    f"objects of {source} or {target} are being moved by another call; try again later"
                )
            return tx.insert_pending_move(table_id, source, target)

        with answering(None):
            return PendingMove(self._store.write(announce), table_id, source, target)

    def settle(self, tx: Transaction, move: PendingMove) -> None:
        """Part of the unit of work that makes the new location known. Raises MoveTakenBack."""
        if not _is_pending(tx.pending_moves(), move):
            raise MoveTakenBack
        tx.delete_pending_move(move.move_id)
        if self._files.copies(move.source):
            tx.insert_pending_move(move.table_id, move.target, move.source)

    def cancel(self, tx: Transaction, table_id: TableId) -> list[LeftDirectory]:
        """Part of the unit of work that drops a table: its moves cannot be settled any more.

        Returns where its directory may be. Copies are left to who makes them, and originals to their operator: others
        may have written there since.
        """
        left: list[LeftDirectory] = []
        for move in tx.pending_moves():
            if move.table_id != table_id:
                continue
            tx.delete_pending_move(move.move_id)
            if self._files.copies(move.target):
                _LOG.warning("Objects of dropped %s may stay at %s; see whose they are", move.source, move.target)
            else:
                left.append(LeftDirectory(move.target, may_be_used=True))
        return left

    def check_at_rest(self, tx: Transaction, location: str) -> None:
        """Part of the unit of work that stores a new table: raises MetaException if a directory there is being moved.

        What is stored there would lose its directory if the move is taken back. Copies in a bucket are told apart.
        """
        for move in tx.pending_moves():
            for place in (move.source, move.target):
                if not (is_under(place, location) or is_under(location, place)):
                    continue
                with file_errors_as_meta():
                    is_copied = self._files.copies(move.target)
                if not is_copied:
                    raise MetaException(
                        f"{location} cannot be used while a directory there is being moved; try again later, or after "
                        "the next start of a gateway"
                    )

    def is_being_moved(self, snapshot: Snapshot, table_id: TableId) -> bool:
        """True while a directory of this table is being moved."""
        return any(move.table_id == table_id for move in snapshot.pending_moves())

    def _take_back(self, move: PendingMove, copied: "Copied | None" = None) -> None:
        """Undo the move after the change of the catalog failed. What fails here is left to `recover`."""
        if copied is not None:
            copied.undo()
            self._forget(move)
        elif self._put_back(move):
            self._forget(move)

    def _discard_copies(self, move: PendingMove, copied: "Copied") -> None:
        """Delete the copies of a move that was taken back, unless another move has begun, whose copies they may be."""
        try:
            self._take_back(self._announced(move.table_id, move.source, move.target), copied)
        except (FileSystemError, StoreError) as error:
            _LOG.error("Copies of %s stay at %s: %s", move.source, move.target, error)

    def _finish(self, move: PendingMove, copied: "Copied") -> None:
        """Delete the originals of what was copied. A failure is left to `recover`, unless the bucket keeps objects."""
        try:
            try:
                copied.finish()
            except ObjectsKept as error:
                _LOG.warning("Originals of %s stay at %s; delete them: %s", move.target, move.source, error)
            for left in self._store.read(lambda snapshot: snapshot.pending_moves()):
                if (left.source, left.target) == (move.target, move.source):
                    self._forget(left)
        except (FileSystemError, StoreError) as error:
            _LOG.error("Originals of %s stay at %s until the next start: %s", move.target, move.source, error)

    def recover(self) -> int:
        """Mend what a crash left: directories go back to where the catalog says they are. How many moves there were.

        For the start of a server, also beside others: a move is claimed by giving it a new id, whereupon the server
        that made it, should it be alive after all, can no longer settle it.
        """
        pending = self._store.read(lambda snapshot: snapshot.pending_moves())
        for move in pending:
            with answering(None):
                claimed = self._store.write(partial(_claim, move))
            if claimed is not None and self._put_back(claimed, may_be_used=True):
                self._forget(claimed)
        return len(pending)

    def _put_back(self, move: PendingMove, *, may_be_used: bool = False) -> bool:
        """False if it has to be tried again. `may_be_used`: others may have stored something there since the move."""
        try:
            if any(self._files.reach(place) is Reach.OUTSIDE for place in (move.source, move.target)):
                _LOG.error("%s stays, and belongs at %s: name both in file_roots", move.target, move.source)
                return False
            if may_be_used and not self._known.is_unused(move.target):
                _LOG.warning(
                    "Files of %s stay at %s, which another object of the catalog uses", move.source, move.target
                )
            elif self._files.put_back(move.source, move.target):
                _LOG.warning(
                    "Objects stay at %s after a move to or from %s; see whose they are", move.target, move.source
                )
        except ObjectsKept as error:
            _LOG.warning("Objects of %s stay at %s; delete them: %s", move.source, move.target, error)
        except FileSystemError as error:
            _LOG.error("Could not move %s back to %s: %s", move.target, move.source, error)
            return False
        return True

    def _forget(self, move: PendingMove) -> None:
        try:
            with answering(None):
                self._store.write(lambda tx: tx.delete_pending_move(move.move_id))
        except StoreError as error:
            _LOG.warning("Pending move %s stays until the next start: %s", move.move_id, error)


def _is_pending(pending: list[PendingMove], move: PendingMove) -> bool:
    return any(other.move_id == move.move_id for other in pending)


def _claim(move: PendingMove, tx: Transaction) -> PendingMove | None:
    if not _is_pending(tx.pending_moves(), move):
        return None
    tx.delete_pending_move(move.move_id)
    return PendingMove(
        tx.insert_pending_move(move.table_id, move.source, move.target), move.table_id, move.source, move.target
    )
