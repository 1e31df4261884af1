"""Fencing: a change that presents a lease is made only while the lease is live and covers what is changed.

A holder that was stopped past the end of its lease does not know that others have the object now. The lease is checked
within the change's own unit of work, twice: before anything is done, so that nothing happens under a lease that has
ended, and on the events the change has made, since only they say what it touched (semantics §7.2 hole 12).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from hms_gateway.metastore.changes.events import TXN_EVENTS
from hms_gateway.metastore.ports.store import Event, EventId, Transaction
from hms_gateway.metastore.vocabulary.parameters import UNCHANGED_SINCE
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.rpc.structs import InvalidOperationException, Table
from hms_gateway.runtime.presented import condition_of_changes, presented_lease_holder, presented_lease_id
from hms_gateway.txn.rules.leases import refusal
from hms_gateway.txn.rules.names import Target, target

T = TypeVar("T")


class _Named(msgspec.Struct):
    """What a message says about partitions; the rest of it, which may be long, is passed over."""

    partName: str | None = None
    keyValues: dict[str, Any] | None = None
    partitionObjAfterJson: str = ""
    partitions: Sequence[Any] = ()


_decode = msgspec.json.Decoder(_Named).decode


def fenced(work: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
    """`work` under the lease that is presented now and the condition on changes; `work` itself where none is.

    What is returned raises InvalidOperationException, and nothing is changed, when the lease has ended or does not
    hold what was changed; and what the condition raises.
    """
    lease_id, holder, condition = presented_lease_id(), presented_lease_holder(), condition_of_changes()
    if lease_id is None and condition is None:
        return work

    def fenced_work(transaction: Transaction) -> T:
        if lease_id is not None:
            _check_lease(transaction, lease_id, holder, [])
        result = work(transaction)
        if lease_id is not None:
            targets = [each for event in transaction.made_events() for each in changed(event)]
            _check_lease(transaction, lease_id, holder, targets)
        if condition is not None and transaction.made_events():
            condition(transaction)
        return result

    return fenced_work


def _check_lease(transaction: Transaction, lease_id: int, holder: str | None, targets: list[Target]) -> None:
    leases = transaction.leases
    # That of another user is answered about like one that is not held.
    held = [one for one in leases.lease(lease_id) if holder in (None, one.user)]
    reason = refusal(lease_id, held, leases.now_ms(), targets)
    if reason is not None:
        raise InvalidOperationException(f"Refused: {reason}")


def changed(event: Event) -> list[Target]:
    """What the change behind an event needs an exclusive lease on: the partitions it names, else the table or database.

    Transactions, write ids, roles and grants need none. A table that is renamed counts under its old name, a partition
    under both, as in Hive's table of locks (semantics §8.2).
    """
    if event.event_type in TXN_EVENTS or not event.db_name:
        return []
    db_name, table_name = event.renamed_from or (event.db_name, event.table_name)
    if table_name is None:
        return [target(db_name)]
    partitions = _partitions(event)
    if not partitions:
        return [target(db_name, table_name)]
    return [target(db_name, table_name, name) for name in partitions]


def _partitions(event: Event) -> list[str]:
    """The names of the partitions in a message: by what keys they are listed differs (semantics §2.20)."""
    if "PART" not in event.event_type:
        return []
    message = _decode(event.message)
    if message.partName is not None:
        return [message.partName]
    if message.keyValues:
        keys, before = list(message.keyValues), list(message.keyValues.values())
        after = json.loads(message.partitionObjAfterJson)["1"]["lst"][2:]
        return list(dict.fromkeys((make_name(keys, before), make_name(keys, after))))
    return [
        make_name(list(each), list(each.values())) for each in message.partitions if isinstance(each, dict) and each
    ]


# They are read while all other changes wait.
EVENTS_MAX: Final = 10_000


def check_unchanged_since(
    transaction: Transaction, environment: Mapping[str, str], table: Table, partition_names: Sequence[str] = ()
) -> None:
    """Obey the property of an environment context, before a change of the table or of some of its partitions.

    Raises InvalidOperationException.
    """
    text = environment.get(UNCHANGED_SINCE)
    if text is None:
        return
    current = transaction.current_event_id()
    if not (text.isascii() and text.isdigit() and int(text) <= current):
        raise InvalidOperationException(
            f"Refused: {UNCHANGED_SINCE} is {text[:80]!r}; give the id of an event, at most {current}"
        )
    since = EventId(int(text))
    events = transaction.events_after(since, EVENTS_MAX)
    if len(events) != current - since:
        raise InvalidOperationException(
            f"Refused: {UNCHANGED_SINCE} is {since}, and not all of the events up to {current} can be compared;"
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
