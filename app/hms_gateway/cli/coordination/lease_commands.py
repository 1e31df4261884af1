"""What `hms-gateway leases` does."""

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from hms_gateway.cli.calls.calling import connected
from hms_gateway.cli.calls.objects import parse_object
from hms_gateway.cli.calls.plain_values import as_json
from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.cli.coordination.holding import HoldingLost, run_while_held
from hms_gateway.cli.terminal.formats import write_rows
from hms_gateway.cli.terminal.output import EXIT_REFUSED, err, fail
from hms_gateway.client.lock_text import shown_text
from hms_gateway.rpc.idl import ListType, StructType
from hms_gateway.rpc.structs import LeaseObject

LEASE_VARIABLE = "HMS_LEASE_ID"
EVERYTHING = "*"

_LEASES: Any = ListType(StructType("LeaseObject"))
_HEADER = ("Lease ID", "User", "Database", "Table", "Partition", "Type", "Start", "End")
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


def show(target: CallTarget, texts: Sequence[str], database: str, *, form: str, as_plain_json: bool) -> None:
    with connected(target) as client:
        found: list[LeaseObject] = client.call("list_lease", _objects_or_all(texts, database))
    if as_plain_json:
        sys.stdout.write(as_json(_LEASES, found) + "\n")
    else:
        write_rows(sys.stdout, form, _HEADER, map(_cells, found))


def extend(
    target: CallTarget, lease_id: int, texts: Sequence[str], exclusive: Sequence[str], database: str, seconds: int
) -> None:
    objects = [*_objects(texts, database, "s"), *_objects(exclusive, database, "x")]
    with connected(target) as client:
        print(_time(client.call("extend_lease", lease_id, objects, seconds)))


def drop(target: CallTarget, lease_id: int, texts: Sequence[str], database: str) -> None:
    with connected(target) as client:
        client.call("drop_lease", lease_id, _objects(texts, database, "s"))


def force_drop(target: CallTarget, texts: Sequence[str], database: str) -> None:
    objects = _objects_or_all(texts, database)
    with connected(target) as client:
        found: list[Any] = client.call("list_lease", objects)
        if not found:
            fail("no lease has " + ("anything" if not objects else " or ".join(texts)), exit_code=EXIT_REFUSED)
        client.call("force_drop_lease", objects)
    ids = " ".join(map(str, dict.fromkeys(lease.lease_id for lease in found)))
    err.print(f"dropped from the leases {ids}", markup=False, highlight=False, soft_wrap=True)


def _run(target: CallTarget, lease_id: int, seconds: int, command: Sequence[str]) -> int:
    """With a client of its own, which does not wait so long for an answer that the lease is lost meanwhile."""
    every_seconds = seconds / _EXTENSIONS_PER_LEASE
    impatient = msgspec.structs.replace(target, timeout_seconds=min(target.timeout_seconds, every_seconds))
    with connected(impatient) as client:
        try:
            return run_while_held(
                command,
                {**os.environ, LEASE_VARIABLE: str(lease_id)},
                lambda: client.call("extend_lease", lease_id, [], 0),
                every_seconds=every_seconds,
                lost_after_seconds=seconds,
            )
        except HoldingLost as error:
            fail(f"the lease was lost and {command[0]} was stopped: {error}", exit_code=EXIT_REFUSED)
        finally:
            # Nothing is lost meanwhile: this one may wait as long as any call.
            drop(target, lease_id, [], "")


def _objects(texts: Sequence[str], database: str, lease_type: str) -> list[LeaseObject]:
    return [LeaseObject(*parse_object(text, database), lease_type) for text in texts]


def _objects_or_all(texts: Sequence[str], database: str) -> list[LeaseObject]:
    """No objects mean all leases, which has to be said here: an empty variable of a script must not mean it."""
    return [] if list(texts) == [EVERYTHING] else _objects(texts, database, "s")


def _cells(lease: LeaseObject) -> tuple[str, ...]:
    kind = "EXCLUSIVE" if lease.lease_type == "x" else "SHARED"
    names = (shown_text(name) or "NULL" for name in (lease.db_name, lease.table_name, lease.partition_name))
    times = (_time(lease.start_utc or 0), _time(lease.end_utc or 0))
    return (str(lease.lease_id), shown_text(lease.user), *names, kind, *times)


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
