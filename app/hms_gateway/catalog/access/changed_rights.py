"""The event of a change of roles and grants, by which caches and policies of all gateways learn of it."""

from typing import Final

from hms_gateway.metastore.ports.store import Event, Transaction

# Not one of Hive's: its metastore writes no event. Followers of the log skip kinds that they do not know.
CHANGE_RIGHTS: Final = "CHANGE_RIGHTS"


def note_changed_rights(tx: Transaction) -> None:
    """Within the unit of work that changes them. Of no database: only administrators see it."""
    tx.append_event(Event(CHANGE_RIGHTS, "", None, "{}"))
