"""One parameter of a table that is set by the commit of a transaction (semantics §5.6).

A job that writes to a table notes there how far it came. When the note is part of the commit, it is made exactly when
the job's rows become visible.
"""

from collections.abc import Callable
from typing import Final

from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.table_shape import with_parameters
from hms_gateway.metastore.ports.store import Transaction
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.runtime.clock import Clock
from hms_gateway.structs import CommitTxnKeyValue, MetaException, Struct

KEY_START: Final = "_meta"


class CommitKeyValue:
    def __init__(self, clock: Clock, settings: MetastoreSettings, to_tjson: Callable[[Struct], bytes]) -> None:
        self._events = EventMaker(settings, clock, to_tjson)

    def setting(self, mark: CommitTxnKeyValue) -> Callable[[Transaction], None]:
        """What sets the parameter within the commit's unit of work; that raises MetaException without the table.

        Raises MetaException for a key that does not begin as such keys do, so that a commit cannot change what others
        go by.
        """
        key, value = mark.key or "", mark.value or ""
        if not key.startswith(KEY_START):
            raise MetaException(
                f"Error updating key/value with tableId={mark.tableId}, key={key}, value={value}."
                f" The key should start with {KEY_START}."
            )

        def set_parameter(tx: Transaction) -> None:
            found = tx.table_with_id(mark.tableId or 0)
            if found is None:
                raise MetaException(f"no table has the id {mark.tableId}")
            before = found.table
            after = with_parameters(before, {**(before.parameters or {}), key: value})
            tx.update_table(found.table_id, found.database_id, after)
            tx.append_event(self._events.alter_table(before, after))

        return set_parameter
