"""Moves directories together with the catalog, so that a crash in between can be mended (semantics §13, trap 6).

A pending move is a row that says: as long as I exist, this directory belongs at `source`. It is written before the
directory moves to `target`, and deleted in the very unit of work that makes the new location known. A call that finds
one left over moves the directory back. To move a directory after a change of the catalog, write a pending move whose
`source` is the new place and whose `target` is the old one in that change's unit of work, and delete it when done.
"""

import logging
from functools import partial
from typing import Final

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
