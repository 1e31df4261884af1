"""Methods on leases."""

from hms_gateway.catalog.arguments import database_name, with_fields
from hms_gateway.handlers.key_order import KeyOrder
from hms_gateway.rpc.call import Call, Waiting
from hms_gateway.structs import InvalidArgumentsException, LeaseObject, MetaException
from hms_gateway.txn.rules.leases import Ticket
from hms_gateway.txn.rules.names import target
from hms_gateway.txn.services.leases import LeaseService, MustWait


class Leases:
    def __init__(self, leases: LeaseService, order: KeyOrder) -> None:
        self._leases = leases
        self._order = order

    def grab_lease(
        self, call: Call, objs: list[LeaseObject], lease_duration_sec: int, lease_wait_duration_sec: int
    ) -> int:
        """A request that has to wait is called again by the edge; what it is resumed with is its ticket."""
        ticket = call.resume if isinstance(call.resume, int) else None
        outcome = self._leases.grab(
            call.principal,
            self._objects(objs),
            lease_duration_sec or 0,
            lease_wait_duration_sec or 0,
            waited_seconds=call.waited_seconds,
            ticket=None if ticket is None else Ticket(ticket),
        )
        if not isinstance(outcome, MustWait):
            return outcome
        waits_for = outcome.ticket
        raise Waiting(outcome.seconds, resume=waits_for, abandon=lambda: self._leases.abandon(waits_for))

    def list_lease(self, call: Call, objs: list[LeaseObject]) -> list[LeaseObject]:
        return self._leases.listed(self._objects(objs))

    def extend_lease(self, call: Call, lease_id: int, objs: list[LeaseObject], lease_duration_sec: int) -> int:
        return self._leases.extend(call.principal, lease_id or 0, self._objects(objs), lease_duration_sec)

    def drop_lease(self, call: Call, lease_id: int, objs: list[LeaseObject]) -> None:
        self._leases.drop(call.principal, lease_id or 0, self._objects(objs))

    def force_drop_lease(self, call: Call, objs: list[LeaseObject]) -> None:
        self._leases.force_drop(call.principal, self._objects(objs))

    def _objects(self, objs: list[LeaseObject] | None) -> list[LeaseObject]:
        """Spell names as the catalog does: databases may be given as `@hive#name`."""
        try:
            given = [with_fields(each, db_name=database_name(each.db_name)) for each in objs or ()]
        except MetaException as error:
            raise InvalidArgumentsException(error.message) from error
        places = [target(each.db_name, each.table_name, each.partition_name) for each in given]
        return [
            each if place.partition_name is None else with_fields(each, partition_name=place.partition_name)
            for each, place in zip(given, self._order.ordered(places), strict=True)
        ]
