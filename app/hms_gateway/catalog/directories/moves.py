"""Moves directories together with the catalog, and removes those that have no row.

A pending move is a row that says: as long as I exist, this directory belongs at `source`. It is written before the
directory moves to `target`, and deleted in the very unit of work that makes the new location known. A call that finds
one left over moves the directory back. To move a directory after a change of the catalog, write a pending move whose
`source` is the new place and whose `target` is the old one in that change's unit of work, and delete it when done.

Removal works beside gateways that make new tables.
Each is set aside first: renamed, within a unit of work that has just looked for a row. A creation that finds a
directory in its place makes sure of it once more after it has committed (`TableService.create`, for instance), and
units of work come one after the other, so either that creation has committed by now and we see its row, or it will
commit later, and then makes the directory anew. To look and to remove without a unit of work would leave a gap between
the two. What no unit of work announces, such as a table that is altered to lie here, is looked for afterwards: until
then a directory set aside can be put back as it was. One gap is left, for directories with files: a partition that is
added over such files is not looked at again by its creation, so its row may come after all of this. Who removes files
has looked at the list, and they have not changed for the time that `--older-than` gives.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec

from hms_gateway.catalog.directories.known_places import Candidate, KnownPlaces
from hms_gateway.metastore.ports.places import DirectoryTrees, Tree
from hms_gateway.metastore.ports.store import (
    FileSystem,
    FileSystemError,
    PendingMove,
    Reach,
    Snapshot,
    Store,
    StoreError,
    TableId,
    Transaction,
)
from hms_gateway.runtime.call_keys import answering

_LOG: Final = logging.getLogger(__name__)


class MoveTakenBack(Exception):
    """Another call took the pending move for left over and moved the directory back; nothing may be committed."""


class DirectoryMoves:
    """The steps of a move; between `begin` and the end of `settle`'s unit of work lies the change of the catalog."""

    def __init__(self, store: Store, files: FileSystem) -> None:
        self._store = store
        self._files = files

    def begin(self, table_id: TableId, source: str, target: str) -> PendingMove:
        """Announce the move and make it. Raises FileSystemError, with nothing changed."""
        with answering(None):
            move_id = self._store.write(lambda tx: tx.insert_pending_move(table_id, source, target))
        move = PendingMove(move_id, table_id, source, target)
        try:
            self._files.move_directory(source, target)
        except FileSystemError:
            self._forget(move)
            raise
        return move

    def settle(self, tx: Transaction, move: PendingMove) -> None:
        """Part of the unit of work that makes the new location known. Raises MoveTakenBack."""
        if not _is_pending(tx.pending_moves(), move):
            raise MoveTakenBack
        tx.delete_pending_move(move.move_id)

    def is_being_moved(self, snapshot: Snapshot, table_id: TableId) -> bool:
        """Whether a directory of this table is being moved."""
        return any(move.table_id == table_id for move in snapshot.pending_moves())

    def is_settled(self, move: PendingMove) -> bool:
        """Whether the unit of work with `settle` committed; the answer to OutcomeUnknown. Raises StoreUnavailable."""
        return not _is_pending(self._store.read(lambda snapshot: snapshot.pending_moves()), move)

    def take_back(self, move: PendingMove) -> None:
        """Undo the move after the change of the catalog failed. What fails here is left to `recover`."""
        if self._put_back(move):
            self._forget(move)

    def recover(self) -> int:
        """Mend what a crash left: directories go back to where the catalog says they are. How many moves there were.

        For the start of a server, also beside others: a move is claimed by giving it a new id, whereupon the server
        that made it, should it be alive after all, can no longer settle it.
        """
        pending = self._store.read(lambda snapshot: snapshot.pending_moves())
        for move in pending:
            with answering(None):
                claimed = self._store.write(partial(_claim, move))
            if claimed is not None:
                self.take_back(claimed)
        return len(pending)

    def _put_back(self, move: PendingMove) -> bool:
        try:
            if any(self._files.reach(place) is Reach.OUTSIDE for place in (move.source, move.target)):
                _LOG.error("%s stays, and belongs at %s: name both in file_roots", move.target, move.source)
                return False
            if self._files.exists(move.target) and not self._files.exists(move.source):
                self._files.move_directory(move.target, move.source)
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


_log = logging.getLogger(__name__)

# What directories are called while they are set aside, before their names. Hive takes such names for hidden.
ASIDE: Final = ".unknown-"


class UnknownDirectory(msgspec.Struct, frozen=True):
    """A directory without a row; `kept` says why it was to be removed and is there all the same."""

    candidate: Candidate
    tree: Tree
    is_removed: bool = False
    kept: str = ""


class DirectoryRemoval:
    """Removes directories that are old enough, those with files in them only `with_files`."""

    def __init__(
        self,
        store: Store,
        files: DirectoryTrees,
        known: KnownPlaces,
        older_than: Callable[[Tree], bool],
        *,
        with_files: bool,
    ) -> None:
        self._store = store
        self._files = files
        self._known = known
        self._is_old = older_than
        self._with_files = with_files

    def takes(self, tree: Tree) -> bool:
        return self._is_old(tree) and (self._with_files or not tree.files)

    def remove(self, found: Sequence[UnknownDirectory]) -> list[UnknownDirectory]:
        """What became of each. Raises StoreUnavailable, with everything put back."""
        aside: dict[str, str] = {}
        reasons: dict[str, str] = {}
        candidates = [one.candidate for one in found]
        if not candidates:
            return []
        try:
            self._store.write(lambda tx: self._set_aside(tx, candidates, aside, reasons))
            unknown = {one.location for one in self._known.unknown_again(candidates)}
        except BaseException:
            for place in aside:
                self._put_back(place, aside[place])
            raise
        return [self._finished(one, aside, reasons, unknown) for one in found]

    def _set_aside(
        self, tx: Transaction, candidates: Sequence[Candidate], aside: dict[str, str], reasons: dict[str, str]
    ) -> None:
        """A unit of work may run again: what is set aside already then stays so."""
        for one in self._known.still_unknown(candidates, tx):
            place = one.location
            if place in aside:
                continue
            target = _aside(place)
            try:
                self._files.move_directory(place, target)
                aside[place] = target
            except FileSystemError as error:
                reasons[place] = str(error)

    def _finished(
        self, one: UnknownDirectory, aside: dict[str, str], reasons: dict[str, str], unknown: set[str]
    ) -> UnknownDirectory:
        place = one.candidate.location
        if place not in aside:
            return UnknownDirectory(one.candidate, one.tree, kept=reasons.get(place, "it has a row by now"))
        try:
            kept = self._deleted(place, aside[place], has_row=place not in unknown)
        except FileSystemError as error:
            kept = f"{error} (it is {aside[place]} now)"
        return UnknownDirectory(one.candidate, one.tree, is_removed=not kept, kept=kept)

    def _deleted(self, place: str, target: str, *, has_row: bool) -> str:
        """Delete what is set aside, or say why it was put back. Raises FileSystemError."""
        tree = self._files.measure(target)
        if tree is None:
            return ""
        if has_row:
            return self._put_back(place, target) or "it has a row by now"
        if not self.takes(tree):
            return self._put_back(place, target) or "it was changed just now"
        if tree.files:
            self._files.delete_directory(target)
        elif not self._files.delete_directories(target):
            return self._put_back(place, target) or "it was changed just now"
        return ""

    def _put_back(self, place: str, target: str) -> str:
        """Why it cannot be; then it keeps the name it was given, unless there is nothing in it."""
        try:
            self._files.move_directory(target, place)
        except FileSystemError as error:
            if self._files.is_directory(place) and self._files.delete_directories(target):
                return ""
            _log.warning("%s cannot be moved back and is now %s: %s", place, target, error)
            return f"it is {target} now: {error}"
        return ""


def _aside(location: str) -> str:
    folder, _, name = location.rpartition("/")
    return f"{folder}/{ASIDE}{name}"
