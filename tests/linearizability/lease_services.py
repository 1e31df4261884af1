"""The calls of clients on leases, and writes under them, on a store in their own process or through a gateway."""

import time
from collections.abc import Sequence
from typing import Any, Final, Protocol

from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.metastore.ports.store import Event
from hms_gateway.rpc.structs import Database, LeaseObject
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.presented import presenting
from hms_gateway.storage.writing.store import SqlStore, open_store
from hms_gateway.txn.rules.leases import Ticket
from hms_gateway.txn.services.leases import LeaseService, MustWait
from hms_gateway.txn.services.settings import LeaseSettings
from tests.support.server import trusting

ADMIN: Final = "admin"
# How long a place among those who wait is kept; no client is away for so long.
FORGOTTEN_SECONDS: Final = 1_000.0
PAUSE_SECONDS: Final = 0.03


class Leases(Protocol):
    """What a client may call. Raises ThriftException."""

    def enter(self, db_name: str) -> None:
        """Make what will be written to."""

    def take(self, user: str, claims: Sequence[Any], duration_seconds: int, wait_seconds: int) -> int: ...
    def extend(self, user: str, lease_id: int, claims: Sequence[Any], duration_seconds: int) -> None: ...
    def drop(self, user: str, lease_id: int, places: Sequence[Any]) -> None: ...
    def write(self, lease_id: int, place: Sequence[str | None]) -> Any: ...
    def close(self) -> None: ...


class StoreLeases:
    """On the database itself. A write is an event."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._service = LeaseService(store, LeaseSettings(forgotten_seconds=FORGOTTEN_SECONDS))

    def twin(self) -> "StoreLeases":
        """For another thread."""
        return StoreLeases(self._store)

    def enter(self, db_name: str) -> None:
        """Events need nothing to be there."""

    def grab(self, user: str, claims: Sequence[Any], ticket: int, wait_seconds: int) -> tuple[str, int]:
        """One attempt: `granted` and a lease, or `waits` and a ticket."""
        objects = _objects(claims)
        outcome = self._service.grab(user, objects, 3_600, wait_seconds, ticket=Ticket(ticket) if ticket else None)
        return ("waits", outcome.ticket) if isinstance(outcome, MustWait) else ("granted", outcome)

    def take(self, user: str, claims: Sequence[Any], duration_seconds: int, wait_seconds: int) -> int:
        begin = time.monotonic()
        ticket: Ticket | None = None
        while True:
            waited_seconds = time.monotonic() - begin
            outcome = self._service.grab(
                user, _objects(claims), duration_seconds, wait_seconds, waited_seconds=waited_seconds, ticket=ticket
            )
            if not isinstance(outcome, MustWait):
                return outcome
            ticket = outcome.ticket
            time.sleep(PAUSE_SECONDS)

    def abandon(self, ticket: int, claims: Sequence[Any]) -> None:
        self._service.abandon(Ticket(ticket))

    def extend(self, user: str, lease_id: int, claims: Sequence[Any], duration_seconds: int = 0) -> None:
        self._service.extend(user, lease_id, _objects(claims), duration_seconds or None)

    def drop(self, user: str, lease_id: int, places: Sequence[Any]) -> None:
        self._service.drop(user, lease_id, _objects([(place, "s") for place in places]))

    def force_drop(self, places: Sequence[Any]) -> None:
        self._service.force_drop(ADMIN, _objects([(place, "s") for place in places]))

    def listed(self, db_name: str) -> list[Any]:
        found = self._service.listed([LeaseObject(db_name)])
        return [
            (one.lease_id, (one.db_name, one.table_name, one.partition_name or None), one.lease_type) for one in found
        ]

    def write(self, lease_id: int, place: Sequence[str | None]) -> Any:
        """The number of the change, which is that of the catalog's version after it."""
        db_name, table_name, _ = place
        event = Event("ALTER_TABLE" if table_name else "ALTER_DATABASE", db_name or "", table_name, "{}")
        with presenting(lease_id):
            return self._store.write(lambda tx: tx.append_event(event))

    def version(self) -> int:
        return self._store.version()

    def close(self) -> None:
        self._store.close()


class GatewayLeases:
    """Through HTTP. A write alters a database."""

    def __init__(self, url: str, user: str, password: str) -> None:
        self._account = (url, (user, password), trusting())
        self._client = MetastoreClient(*self._account)

    def twin(self) -> "GatewayLeases":
        """For another thread."""
        url, account, _ = self._account
        return GatewayLeases(url, *account)

    def enter(self, db_name: str) -> None:
        if db_name not in self._client.call("get_all_databases"):
            self._client.call("create_database", Database(db_name))

    def take(self, user: str, claims: Sequence[Any], duration_seconds: int, wait_seconds: int) -> int:
        lease_id: int = self._client.call("grab_lease", _objects(claims), duration_seconds, wait_seconds)
        return lease_id

    def extend(self, user: str, lease_id: int, claims: Sequence[Any], duration_seconds: int) -> None:
        self._client.call("extend_lease", lease_id, _objects(claims), duration_seconds)

    def drop(self, user: str, lease_id: int, places: Sequence[Any]) -> None:
        self._client.call("drop_lease", lease_id, _objects([(place, "s") for place in places]))

    def write(self, lease_id: int, place: Sequence[str | None]) -> None:
        headers = {"X-HMS-Lease-Id": str(lease_id)}
        with MetastoreClient(*self._account, headers=headers) as fenced:
            fenced.call("alter_database", place[0], Database(place[0], parameters={"writer": str(lease_id)}))

    def close(self) -> None:
        self._client.close()


def open_leases(address: str) -> StoreLeases | GatewayLeases:
    """`address` as for `services.open_services`."""
    url, *account = address.split(" ", 2)
    if url.startswith("http"):
        return GatewayLeases(url, *account)
    return StoreLeases(open_store(url, SystemClock(), Limits(), 2))


def _objects(claims: Sequence[Any]) -> list[LeaseObject]:
    return [LeaseObject(*place, kind) for place, kind in claims]  # type: ignore[call-arg]
