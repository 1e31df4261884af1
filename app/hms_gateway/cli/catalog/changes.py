"""Work of `hms-gateway tail` and `hms-gateway audit`: events of the log, and changes with their callers."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import click
import msgspec

from hms_gateway.cli.calls.arguments import parse_object
from hms_gateway.cli.calls.calling import connected
from hms_gateway.cli.calls.plain_values import as_json as json_text
from hms_gateway.cli.calls.plain_values import to_plain
from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.cli.catalog.exports import CatalogName, placed_name
from hms_gateway.cli.terminal.commands import AGE, rows_form
from hms_gateway.cli.terminal.formats import write_rows
from hms_gateway.cli.terminal.output import EXIT_REFUSED, err, fail
from hms_gateway.client.lock_text import shown_text
from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.metastore.vocabulary.texts import time_text
from hms_gateway.rpc.idl import ListType, StructType
from hms_gateway.rpc.structs import (
    Change,
    ChangesRequest,
    NoSuchObjectException,
    NotificationEvent,
    NotificationEventRequest,
)
from hms_gateway.rpc.structs.catalogs import key_within, shown_key

EXIT_INTERRUPTED: Final = 130
_EVENTS_A_CALL: Final = 1_000
_PAUSE_SECONDS: Final = 1.0
_CHANGES: Any = ListType(StructType("Change"))
_HEADER = ("Time", "User", "Change", "Object", "Address", "Method", "Request")


def run_tail(
    target: CallTarget, name: str | None, *, lines: int, since: int | None, follows: bool, as_json: bool
) -> None:
    """Print the last events, then those that come."""
    target, wanted = placed_name(target, name)
    try:
        with connected(target) as client:
            if since is None:
                _need_object(client, wanted)
            begin = max(0, _newest(client) - lines) if since is None else since
            for event in events_after(client, begin, follows=follows, pause=time.sleep):
                if _is_wanted(event, wanted, target.catalog):
                    sys.stdout.write(_text(event, as_json=as_json) + "\n")
                    sys.stdout.flush()
    except KeyboardInterrupt as error:
        raise click.exceptions.Exit(EXIT_INTERRUPTED) from error


def _need_object(client: MetastoreClient, wanted: CatalogName) -> None:
    """Ends the command: of a name that is misspelt no event would ever come."""
    try:
        if wanted.table_name is not None:
            client.call("get_table", wanted.db_name, wanted.table_name)
        elif wanted.db_name:
            client.call("get_database", wanted.db_name)
    except NoSuchObjectException:
        text = str(wanted) if wanted.table_name else f"database {wanted}"
        fail(f"{text} does not exist", "--since EVENT shows events of what is gone", exit_code=EXIT_REFUSED)


def _newest(client: MetastoreClient) -> int:
    newest: int = client.call("get_current_notificationEventId").eventId
    return newest


def events_after(
    client: MetastoreClient, last: int, *, follows: bool, pause: Callable[[float], None]
) -> Iterator[NotificationEvent]:
    """Events in their order; says when some have expired before they were read."""
    while True:
        found = client.call("get_next_notification", NotificationEventRequest(last, _EVENTS_A_CALL)).events or []
        for event in found:
            if event.eventId > last + 1 and last:
                err.print(f"events {last + 1} to {event.eventId - 1} have expired", style="yellow", highlight=False)
            last = event.eventId
            yield event
        if len(found) < _EVENTS_A_CALL:
            if not follows:
                return
            pause(_PAUSE_SECONDS)


def _is_wanted(event: NotificationEvent, wanted: CatalogName, catalog: str) -> bool:
    """True for an event of the client's catalog; without one and without a name, for each."""
    is_inside = not (catalog or wanted.db_name) or _name_of(event) == event.dbName
    return is_inside and wanted.db_name in ("", event.dbName) and wanted.table_name in (None, event.tableName)


def _name_of(event: NotificationEvent) -> str:
    """The database, with its catalog if that is not the client's."""
    return shown_key(key_within(event.catName, event.dbName) or "")


def _text(event: NotificationEvent, *, as_json: bool) -> str:
    if as_json:
        plain: Any = to_plain(StructType("NotificationEvent"), event)
        # Messages of other formats than JSON stay text.
        with contextlib.suppress(msgspec.DecodeError):
            plain["message"] = msgspec.json.decode(event.message or "")
        return msgspec.json.encode(plain).decode()
    name = ".".join(filter(None, (_name_of(event), event.tableName)))
    return f"{event.eventId}  {time_text(event.eventTime)}  {event.eventType:<24}  {name}".rstrip()


def show(
    target: CallTarget,
    *,
    changed_by: str | None,
    named: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    form: str | None,
    as_json: bool,
) -> None:
    """Print changes with their callers, the newest first."""
    database, table = named, None
    if named is not None and "." in named:
        database, table, _ = parse_object(named, "")
    now = datetime.now(UTC)
    request = ChangesRequest(
        user=changed_by,
        db_name=database,
        table_name=table,
        from_time=seconds_of("--since", since, now),
        until_time=seconds_of("--until", until, now),
        limit=limit,
    )
    with connected(target) as client:
        found: list[Change] = client.call("list_changes", request)
    if as_json:
        sys.stdout.write(json_text(_CHANGES, found) + "\n")
    else:
        write_rows(sys.stdout, rows_form(form), _HEADER, map(_cells, found))


def seconds_of(option: str, text: str | None, now: datetime) -> int | None:
    """Seconds since 1970 of a date, a date with a time, or a time ago such as 90m, 12h, 7d."""
    if text is None:
        return None
    if (ago := AGE.read(text)) is not None:
        return max(0, int(now.timestamp()) - ago)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        fail(f"{option} {text!r} is not a time", "write 2026-11-21, 2026-11-21T09:30, or how long ago: 90m, 12h, 7d")
    return int(moment.timestamp() if moment.tzinfo else moment.astimezone().timestamp())


def _cells(change: Change) -> tuple[str, ...]:
    database = shown_key(change.db_name or "")
    place = f"{database}.{change.table_name}" if change.table_name else database
    user = f"{change.real_user} as {change.user}" if change.real_user else change.user
    time = datetime.fromtimestamp(change.event_time or 0, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    texts = (user, change.event_type, place, change.address or "", change.method or "", change.request_id or "")
    return (time, *(shown_text(text) for text in texts))
