"""What is asked of who made which change."""

from typing import Protocol

import msgspec

from hms_gateway.metastore.vocabulary.names import EventId
from hms_gateway.runtime.presented import Actor


class ChangeSelection(msgspec.Struct, frozen=True):
    """Which changes: times in seconds since 1970, both included; `before` is an event, which is not."""

    user: str | None = None
    db_name: str | None = None
    table_name: str | None = None
    since: int | None = None
    until: int | None = None
    before: int | None = None
    limit: int = 100


class MadeChange(msgspec.Struct, frozen=True):
    """A change as its event names it, and who made it."""

    event_id: EventId
    seconds: int
    event_type: str
    db_name: str
    table_name: str | None
    actor: Actor


class ChangeTrail(Protocol):
    """Where it is kept; a store."""

    def changes_made(self, selection: ChangeSelection) -> list[MadeChange]:
        """The newest first. Raises StoreUnavailable."""
