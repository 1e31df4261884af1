"""A change on the condition that nothing has changed its object since an event that the caller has seen."""

from collections.abc import Mapping, Sequence
from typing import Final

from hms_gateway.metastore.changes.fencing import changed
from hms_gateway.metastore.ports.store import EventId, Transaction
from hms_gateway.structs import InvalidOperationException, Table
from hms_gateway.txn.rules.names import target

PROPERTY: Final = "hms.unchanged.since"
# They are read while all other changes wait.
EVENTS_MAX: Final = 10_000


def check_unchanged_since(
    transaction: Transaction, environment: Mapping[str, str], table: Table, partition_names: Sequence[str] = ()
) -> None:
    """Obey the property of an environment context, before a change of the table or of some of its partitions.

    Raises InvalidOperationException.
    """
    text = environment.get(PROPERTY)
    if text is None:
        return
    current = transaction.current_event_id()
    if not (text.isascii() and text.isdigit() and int(text) <= current):
        raise InvalidOperationException(
            f"Refused: {PROPERTY} is {text[:80]!r}; give the id of an event, at most {current}"
        )
    since = EventId(int(text))
    events = transaction.events_after(since, EVENTS_MAX)
    if len(events) != current - since:
        raise InvalidOperationException(
            f"Refused: {PROPERTY} is {since}, and not all of the events up to {current} can be compared;"
            " read the object again and give a newer event"
        )
    whole = target(table.dbName, table.tableName)
    names = {target(*whole[:2], name).partition_name for name in partition_names}
    for stored in events:
        for one in changed(stored.event):
            if one.overlaps(whole) and (not names or one.partition_name is None or one.partition_name in names):
                raise InvalidOperationException(
                    f"Refused: event {stored.event_id} has changed {one} after event {since}"
                )
