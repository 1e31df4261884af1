"""Directories that follow their partitions: the metadata is committed first, together with the intent to move.

A crash in between leaves the intent behind, and whoever finds it finishes the move; a move that fails takes the
metadata back (semantics §2.11, §13 row 6).
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from app.metastore.partition_writes import write
from app.metastore.ports import FileSystem, FileSystemError, PendingMove, Store, StoreError, TableId, Transaction

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Move:
    """A directory to be renamed because partitions of `table_id` are about to lie elsewhere."""

    table_id: TableId
    source: str
    target: str


class PartitionMoves:
    """Commits a change of metadata together with the move of a directory."""

    def __init__(self, store: Store, files: FileSystem) -> None:
        self._store = store
        self._files = files

    def commit(
        self,
        change: Callable[[Transaction], None],
        move: Move | None,
        revert: Callable[[Transaction], bool],
    ) -> None:
        """Commit `change`, then move; when moving fails commit `revert` and raise the FileSystemError.

        Where `revert` finds that it cannot undo the change (and says False), the intent stays to be finished later.
        """
        if move is None:
            write(self._store, change)
            return

        def announced(transaction: Transaction) -> int:
            change(transaction)
            return transaction.insert_pending_move(move.table_id, move.source, move.target)

        move_id = write(self._store, announced)
        try:
            self._files.move_directory(move.source, move.target)
        except FileSystemError:
            self._store.write(lambda transaction: _reverted(transaction, revert, move_id))
            raise
        try:
            self._store.write(lambda transaction: transaction.delete_pending_move(move_id))
        except StoreError as error:
            # All is done; the intent that stays behind is found at the next start, and there is nothing left to move.
            _log.warning("intent to move %s stays: %s", move.source, error)


def finish_move(files: FileSystem, move: PendingMove) -> None:
    """Make a move of partitions that a crash prevented; the metadata says already that it was made.

    The caller deletes the intent. Raises FileSystemError.
    """
    if files.exists(move.source) and not files.exists(move.target):
        files.move_directory(move.source, move.target)


def _reverted(transaction: Transaction, revert: Callable[[Transaction], bool], move_id: int) -> None:
    if revert(transaction):
        transaction.delete_pending_move(move_id)
