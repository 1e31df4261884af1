"""Who changed what."""

from collections.abc import Collection
from typing import Final

from hms_gateway.catalog.arguments import database_name
from hms_gateway.metastore.ports.trail import ChangeSelection, ChangeTrail, MadeChange
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.rpc.call import Call
from hms_gateway.structs import Change, ChangesRequest, MetaException

CHANGES_MAX: Final = 10_000
_CHANGES_DEFAULT: Final = 100


class ChangeTrails:
    """For administrators, since it names users, their addresses and every object."""

    def __init__(self, trail: ChangeTrail, administrators: Collection[str]) -> None:
        self._trail = trail
        self._administrators = administrators

    def list_changes(self, call: Call, rqst: ChangesRequest | None) -> list[Change]:
        if call.principal not in self._administrators:
            raise MetaException(
                f"user {call.principal} is not an administrator; who changed what is for the users that the setting "
                "administrators names"
            )
        rqst = rqst or ChangesRequest()
        limit = _CHANGES_DEFAULT if rqst.limit is None else rqst.limit
        if not 0 < limit <= CHANGES_MAX:
            raise MetaException(f"limit {limit} is out of range; ask for 1 to {CHANGES_MAX} changes")
        selection = ChangeSelection(
            rqst.user,
            None if rqst.db_name is None else normalize(database_name(rqst.db_name) or ""),
            None if rqst.table_name is None else normalize(rqst.table_name),
            rqst.from_time,
            rqst.until_time,
            rqst.before_event_id,
            limit,
        )
        return [_change(made) for made in self._trail.changes_made(selection)]


def _change(made: MadeChange) -> Change:
    actor = made.actor
    return Change(
        event_id=made.event_id,
        event_time=made.seconds,
        event_type=made.event_type,
        user=actor.user,
        db_name=made.db_name or None,
        table_name=made.table_name or None,
        real_user=actor.real_user or None,
        address=actor.address or None,
        method=actor.method or None,
        request_id=actor.request_id or None,
    )
