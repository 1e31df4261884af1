"""What has become a directory of the catalog since an audit, by the metastore's notification log."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from hms_gateway.pipeline.audit.rules.values import location_of
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.rpc.structs import NoSuchObjectException, NotificationEvent, NotificationEventRequest

_EVENTS_A_CALL: Final = 1_000
_PARTITIONS_A_CALL: Final = 1_000


class EventsMissing(Exception):
    """The log does not reach back far enough."""


def changed_tables(client: PatientClient, event: int) -> set[tuple[str, str]]:
    """Database and table of every change since an event. Raises EventsMissing."""
    return {(one.dbName or "", one.tableName or "") for one in _events(client, event) if one.tableName}


def changed_places(client: PatientClient, event: int) -> dict[str, str] | None:
    """Locations of what was changed since an event, with names. None where the log does not reach back so far."""
    try:
        tables = changed_tables(client, event)
    except EventsMissing:
        return None
    return {location: name for database, table in tables for location, name in _places(client, database, table)}


def _places(client: PatientClient, database: str, table: str) -> Iterator[tuple[str, str]]:
    try:
        found = client.call("get_table", database, table)
        if (location := location_of(found.sd.location if found.sd else None)) is not None and not found.partitionKeys:
            yield location, f"{database}.{table}"
        names = iter(client.call("get_partition_names", database, table, -1) if found.partitionKeys else ())
        while some := list(islice(names, _PARTITIONS_A_CALL)):
            for partition in client.call("get_partitions_by_names", database, table, some):
                location = location_of(partition.sd.location if partition.sd else None)
                if location is not None:
                    yield location, f"a partition of {database}.{table}"
    except NoSuchObjectException:
        return


def _events(client: PatientClient, event: int) -> Iterator[NotificationEvent]:
    while True:
        request = NotificationEventRequest(lastEvent=event, maxEvents=_EVENTS_A_CALL)
        found = client.call("get_next_notification", request).events
        if not found:
            return
        for one in found:
            if one.eventId != event + 1:
                raise EventsMissing
            event = one.eventId
            yield one
