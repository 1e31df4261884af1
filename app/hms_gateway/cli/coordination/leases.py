"""Work of `hms-gateway leases`."""

from collections.abc import Sequence
from typing import Any

import click

from hms_gateway.cli.calls.arguments import parse_object
from hms_gateway.cli.calls.calling import connected
from hms_gateway.cli.calls.plain_values import as_json as json_text
from hms_gateway.cli.calls.statements import print_rows
from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.cli.coordination.holding import run_holding
from hms_gateway.cli.hiveql.locking import leases_of
from hms_gateway.cli.terminal.output import EXIT_REFUSED, fail, say
from hms_gateway.metastore.vocabulary.texts import time_text
from hms_gateway.rpc.idl import ListType, StructType
from hms_gateway.rpc.structs import LeaseObject

LEASE_VARIABLE = "HMS_LEASE_ID"
EVERYTHING = "*"

_LEASES: Any = ListType(StructType("LeaseObject"))
# Two extensions may fail before the lease is lost.
_EXTENSIONS_PER_LEASE = 3


def grab(
    target: CallTarget,
    exclusive: Sequence[str],
    shared: Sequence[str],
    database: str,
    seconds: int,
    wait_seconds: int,
    command: Sequence[str],
) -> None:
    """Print the lease's id, or run `command` under the lease and leave with its exit status."""
    objects = [*_objects(exclusive, database, "x"), *_objects(shared, database, "s")]
    if not objects:
        fail("the lease has no object", "--exclusive OBJECT and --shared OBJECT name it")
    with connected(target) as client:
        lease_id: int = client.call("grab_lease", objects, seconds, wait_seconds)
    if command:
        raise click.exceptions.Exit(_run(target, lease_id, seconds, command))
    print(lease_id)


def show(target: CallTarget, objects: Sequence[str], database: str, *, form: str | None, as_json: bool) -> None:
    """Print the leases on some objects, or all."""
    with connected(target) as client:
        found: list[LeaseObject] = client.call("list_lease", _objects_or_all(objects or [EVERYTHING], database))
    if as_json:
        print(json_text(_LEASES, found))
    else:
        print_rows(leases_of(found), form)


def extend(
    target: CallTarget, lease_id: int, objects: Sequence[str], exclusive: Sequence[str], database: str, seconds: int
) -> None:
    """Print the new end."""
    leased = [*_objects(objects, database, "s"), *_objects(exclusive, database, "x")]
    with connected(target) as client:
        print(time_text(client.call("extend_lease", lease_id, leased, seconds)))


def drop(target: CallTarget, lease_id: int, objects: Sequence[str], database: str) -> None:
    """Drop a lease, or some of its objects."""
    with connected(target) as client:
        client.call("drop_lease", lease_id, _objects(objects, database, "s"))


def force_drop(target: CallTarget, objects: Sequence[str], database: str) -> None:
    """Drop objects from all leases, and say from which."""
    leased = _objects_or_all(objects, database)
    with connected(target) as client:
        found: list[Any] = client.call("list_lease", leased)
        if not found:
            fail("no lease has " + (" or ".join(objects) if leased else "anything"), exit_code=EXIT_REFUSED)
        client.call("force_drop_lease", leased)
    ids = " ".join(map(str, dict.fromkeys(lease.lease_id for lease in found)))
    say(f"dropped from the leases {ids}")


def _run(target: CallTarget, lease_id: int, seconds: int, command: Sequence[str]) -> int:
    try:
        return run_holding(
            target,
            "the lease was",
            command,
            {LEASE_VARIABLE: str(lease_id)},
            lambda client: client.call("extend_lease", lease_id, [], 0),
            every_seconds=seconds / _EXTENSIONS_PER_LEASE,
            lost_after_seconds=seconds,
        )
    finally:
        drop(target, lease_id, [], "")


def _objects(texts: Sequence[str], database: str, lease_type: str) -> list[LeaseObject]:
    return [LeaseObject(*parse_object(text, database), lease_type) for text in texts]


def _objects_or_all(texts: Sequence[str], database: str) -> list[LeaseObject]:
    """No objects mean all leases, which has to be said here: an empty variable of a script must not mean it."""
    return [] if list(texts) == [EVERYTHING] else _objects(texts, database, "s")
