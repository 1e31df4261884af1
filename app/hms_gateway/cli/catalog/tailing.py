"""`hms-gateway tail`: the notification log, as it grows."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import click
import msgspec

from hms_gateway.cli.calls.calling import connected
from hms_gateway.cli.calls.plain_values import to_plain
from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.cli.catalog.names import CatalogName, parse_name
from hms_gateway.cli.hiveql.running.shell_state import time_text
from hms_gateway.cli.terminal.output import EXIT_REFUSED, err, fail
from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.rpc.idl import StructType
from hms_gateway.rpc.structs import NoSuchObjectException, NotificationEvent, NotificationEventRequest

EXIT_INTERRUPTED: Final = 130
_EVENTS_A_CALL: Final = 1_000
_PAUSE_SECONDS: Final = 1.0


def run_tail(
    target: CallTarget, name: str | None, *, lines: int, since: int | None, follows: bool, as_json: bool
) -> None:
    """The last events, then those that come."""
    wanted = CatalogName("") if name is None else parse_name(name)
    try:
        with connected(target) as client:
            if since is None:
                _need_object(client, wanted)
            begin = max(0, _newest(client) - lines) if since is None else since
            for event in events_after(client, begin, follows=follows, pause=time.sleep):
                if _is_wanted(event, wanted):
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
        text = f"{wanted.db_name}.{wanted.table_name}" if wanted.table_name else f"database {wanted.db_name}"
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


def _is_wanted(event: NotificationEvent, wanted: CatalogName) -> bool:
    return wanted.db_name in ("", event.dbName) and wanted.table_name in (None, event.tableName)


def _text(event: NotificationEvent, *, as_json: bool) -> str:
    if as_json:
        plain: Any = to_plain(StructType("NotificationEvent"), event)
        # Messages of other formats than JSON stay text.
        with contextlib.suppress(msgspec.DecodeError):
            plain["message"] = msgspec.json.decode(event.message or "")
        return msgspec.json.encode(plain).decode()
    name = ".".join(filter(None, (event.dbName, event.tableName)))
    return f"{event.eventId}  {time_text(event.eventTime)}  {event.eventType:<24}  {name}".rstrip()
