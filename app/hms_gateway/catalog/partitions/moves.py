"""Directories that follow their partitions (semantics §2.11, §13 row 6)."""

from collections.abc import Callable, Sequence

import msgspec

from hms_gateway.catalog.directories.moves import DirectoryMoves, MoveTakenBack
from hms_gateway.catalog.partitions.writes import Conflict, write
from hms_gateway.metastore.changes.implicit_locks import held_for_files
from hms_gateway.metastore.ports.store import FileSystem, OutcomeUnknown, Store, TableId, Transaction
from hms_gateway.txn.rules.names import Target


class Move(msgspec.Struct, frozen=True):
    """A directory to be renamed because partitions are about to lie elsewhere; `changed` are these, or a prefix."""

    table_id: TableId
    source: str
    target: str
    changed: Sequence[Target]


class PartitionMoves:
    """Commits a change of the catalog together with the move of a directory.

    Hive moves after the commit and takes the catalog back when that fails; here the journalled move comes first, so
    that a change that is taken back is never seen.
    """

    def __init__(self, store: Store, files: FileSystem) -> None:
        self._store = store
        self._moves = DirectoryMoves(store, files)

    def commit(self, change: Callable[[Transaction], None], move: Move | None) -> None:
        """Move, then commit `change`; nothing has happened when either fails.

        Raises FileSystemError, Conflict and what `change` raises.
        """
        if move is None:
            write(self._store, change)
            return
        with held_for_files(self._store, move.changed):
            self._commit_moved(change, move)

    def _commit_moved(self, change: Callable[[Transaction], None], move: Move) -> None:
        pending = self._moves.begin(move.table_id, move.source, move.target)

        def settled(transaction: Transaction) -> None:
            self._moves.settle(transaction, pending)
            change(transaction)

        try:
            write(self._store, settled)
        except MoveTakenBack as error:
            raise Conflict from error
        except OutcomeUnknown:
            if not self._moves.is_settled(pending):
                self._moves.take_back(pending)
                raise
        except BaseException:
            self._moves.take_back(pending)
            raise
