"""What `hms-gateway audit` does."""

import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from hms_gateway.cli.calls.calling import connected
from hms_gateway.cli.calls.objects import parse_object
from hms_gateway.cli.calls.plain_values import as_json
from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.cli.terminal.formats import write_rows
from hms_gateway.cli.terminal.output import fail
from hms_gateway.client.lock_text import shown_text
from hms_gateway.rpc.idl import ListType, StructType
from hms_gateway.rpc.structs import Change, ChangesRequest

_CHANGES: Any = ListType(StructType("Change"))
_HEADER = ("Time", "User", "Change", "Object", "Address", "Method", "Request")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class ChangeFilter(msgspec.Struct, frozen=True):
    """Which changes, as they were asked for."""

    user: str | None
    object: str | None
    since: str | None
    until: str | None
    limit: int


def show(target: CallTarget, wanted: ChangeFilter, form: str, *, as_plain_json: bool) -> None:
    """The newest first."""
    request = _request(wanted)
    with connected(target) as client:
        found: list[Change] = client.call("list_changes", request)
    if as_plain_json:
        sys.stdout.write(as_json(_CHANGES, found) + "\n")
    else:
        write_rows(sys.stdout, form, _HEADER, map(_cells, found))


def _request(wanted: ChangeFilter) -> ChangesRequest:
    database, table = None, None
    if wanted.object is not None:
        place = parse_object(wanted.object, "") if "." in wanted.object else None
        database, table = (wanted.object, None) if place is None else (place.db_name, place.table_name)
    now = datetime.now(UTC)
    return ChangesRequest(
        user=wanted.user,
        db_name=database,
        table_name=table,
        from_time=seconds_of("--since", wanted.since, now),
        until_time=seconds_of("--until", wanted.until, now),
        limit=wanted.limit,
    )


def seconds_of(option: str, text: str | None, now: datetime) -> int | None:
    """Seconds since 1970 of a date, a date with a time, or a time ago such as 90m, 12h, 7d."""
    if text is None:
        return None
    if text[-1:] in _UNITS and text[:-1].isdecimal():
        return int((now - timedelta(**{_UNITS[text[-1]]: int(text[:-1])})).timestamp())
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        fail(f"{option} {text!r} is not a time", "write 2026-11-21, 2026-11-21T09:30, or how long ago: 90m, 12h, 7d")
    return int(moment.timestamp() if moment.tzinfo else moment.astimezone().timestamp())


def _cells(change: Change) -> tuple[str, ...]:
    place = f"{change.db_name or ''}.{change.table_name}" if change.table_name else change.db_name or ""
    user = f"{change.real_user} as {change.user}" if change.real_user else change.user
    time = datetime.fromtimestamp(change.event_time or 0, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    texts = (user, change.event_type, place, change.address or "", change.method or "", change.request_id or "")
    return (time, *(shown_text(text) for text in texts))
