"""Work of `hms-gateway locks`: statements become lock requests, locks become text."""

import socket
import sys
import time
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from hms_gateway.cli.calls.arguments import parse_object
from hms_gateway.cli.calls.calling import connected
from hms_gateway.cli.calls.plain_values import as_json as json_text
from hms_gateway.cli.calls.statements import print_rows, session
from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.cli.coordination.holding import ended_by_exception, run_holding
from hms_gateway.cli.hiveql.lock_commands import parse_command, parse_partition
from hms_gateway.cli.hiveql.locking import blocking_of, filter_of, locks_of, locks_on
from hms_gateway.cli.hiveql.shell_state import KeyValue, PlaceName
from hms_gateway.cli.terminal.output import EXIT_REFUSED, fail, say
from hms_gateway.client import acquiring, concurrency
from hms_gateway.client.lock_text import LockReason, explain_locks, show_locks_legacy
from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.metastore.vocabulary.hiveql_tokens import CommandError
from hms_gateway.metastore.vocabulary.partition_names import make_name, name_to_spec
from hms_gateway.rpc.idl import ListType, StructType
from hms_gateway.rpc.structs import BlockingLock, ShowLocksResponseElement

LOCK_VARIABLE = "HMS_LOCK_ID"
# hive.txn.timeout; the metastore does not return its own value.
_LOST_AFTER_SECONDS = 300.0


class WantedLocks(msgspec.Struct, frozen=True):
    """The caller's intention: a statement, or an operation with its objects."""

    statement: str | None
    operation: str | None
    on: Sequence[str]
    reads: Sequence[str]
    database: str
    is_as_hive: bool

    def locks_of(self, command: concurrency.Command) -> list[concurrency.NeededLock]:
        """In the order in which they are taken."""
        return concurrency.needed_locks(command, concurrency.HIVE_CODE if self.is_as_hive else concurrency.HIVE_PAGE)

    def command(self) -> concurrency.Command:
        """Ends the command line's command when the statement is none."""
        if (self.statement is None) == (self.operation is None):
            fail("give a statement, or --operation with --on and --reads")
        if self.statement is None:
            operation = _operation(self.operation or "")
            if not self.on and not self.reads:
                fail("--operation needs --on or --reads; name the objects")
            places = [[_place(text, self.database) for text in texts] for texts in (self.on, self.reads)]
            return concurrency.Command(operation, tuple(places[0]), tuple(places[1]))
        if self.on or self.reads:
            fail("--on and --reads belong to --operation; a statement names its objects itself")
        try:
            return parse_command(self.statement, make_name, self.database)
        except CommandError as error:
            fail(f"{self.statement!r}: {error}", "--operation and --on name an operation and its objects without one")

    @property
    def text(self) -> str:
        """The text by which holders are shown."""
        if self.statement is not None:
            return self.statement
        reading = f" < {' '.join(self.reads)}" if self.reads else ""
        return f"{self.operation} {' '.join(self.on)}{reading}"


def _place_shown(table: str | None, partition: str | None, database: str | None) -> PlaceName | None:
    """The place of the locks to show; None for all."""
    if table is None:
        if partition is not None:
            fail("--partition needs --table")
        return None if database is None else PlaceName(database)
    place = parse_object(table, database or "default")
    named = place.partition_name if partition is None else _partition_name(partition)
    spec = tuple(KeyValue(key, value) for key, value in name_to_spec(named or "").items())
    return PlaceName(place.db_name, place.table_name, spec)


def explain(**given: Any) -> None:
    """Print the locks that a statement needs."""
    wanted = WantedLocks(**given)
    print(explain_locks(wanted.locks_of(wanted.command())))


def concurrency_settings(hiveconf: Sequence[str], *, keeps_place: bool) -> acquiring.ConcurrencySettings:
    """Ends the command line's command when a setting is none."""
    given = dict(_setting(text) for text in hiveconf)
    try:
        settings = acquiring.ConcurrencySettings.from_configuration(given)
    except acquiring.SettingError as error:
        fail(str(error))
    return msgspec.structs.replace(settings, keeps_place=keeps_place)


def acquire(
    target: CallTarget,
    *,
    words: Sequence[str],
    hiveconf: Sequence[str],
    keeps_place: bool,
    heartbeat: float,
    **given: Any,
) -> None:
    """Print the lock id, or run a command while the locks are held and leave with its exit status."""
    # The statement comes first, unless the request is structured.
    is_structured = given["operation"] is not None or not words
    statement, command = (None, words) if is_structured else (words[0], words[1:])
    wanted = WantedLocks(statement, **given)
    settings = concurrency_settings(hiveconf, keeps_place=keeps_place)
    as_written = wanted.command()
    reason = LockReason.of_command(wanted.text, is_explicit=as_written.operation in _EXPLICIT)
    holder = acquiring.LockHolder(target.user, socket.gethostname(), str(reason))
    with connected(target) as client:
        try:
            ordered = (
                concurrency.in_key_order(as_written, acquiring.PartitionKeys(client)) if settings.is_on else as_written
            )
            locks = wanted.locks_of(ordered)
            say(explain_locks(locks))
            with ended_by_exception():
                lock_id = acquiring.LockAcquirer(client, settings, _pause).acquire(locks, holder)
        except concurrency.NotAKey as error:
            fail(str(error))
        except acquiring.LocksDenied as error:
            fail(str(error), acquiring.listing_holders("hms-gateway locks show"), exit_code=EXIT_REFUSED)
        if lock_id is None:
            say("nothing is locked: " + ("the command needs no locks" if settings.is_on else f"{_SWITCH} is false"))
    if command:
        raise click.exceptions.Exit(_run(target, settings, lock_id, command, heartbeat))
    if lock_id is not None:
        print(lock_id)


def release(target: CallTarget, lock_ids: Sequence[int]) -> None:
    """Release without another try."""
    with connected(target) as client:
        acquirer = acquiring.LockAcquirer(client, acquiring.ConcurrencySettings(unlock_retries=0), _pause)
        for lock_id in lock_ids:
            acquirer.release(lock_id)


def show(
    target: CallTarget,
    *,
    table: str | None,
    partition: str | None,
    database: str | None,
    is_legacy: bool,
    is_extended: bool,
    is_blocking: bool,
    form: str | None,
    as_json: bool,
) -> None:
    """Print the locks in one of several forms."""
    place = _place_shown(table, partition, database)
    with session(target) as state:
        if is_blocking:
            blocking: list[BlockingLock] = state.call("list_blocking_locks", filter_of(state, place))
            if as_json:
                print(json_text(_BLOCKING, blocking))
            else:
                print_rows(blocking_of(blocking), form)
            return
        shown = locks_on(state, place, is_extended=is_extended)
    if as_json:
        print(json_text(_SHOWN, shown))
    elif is_legacy or is_extended:
        sys.stdout.writelines(f"{line}\n" for line in show_locks_legacy(shown, is_extended=is_extended))
    else:
        print_rows(locks_of(shown), form)


def force_release(target: CallTarget, lock_ids: Sequence[int], reason: str | None) -> None:
    released: list[ShowLocksResponseElement] = []
    with connected(target) as client:
        try:
            for lock_id in lock_ids:
                if all(one.lockid != lock_id for one in released):
                    released += client.call("force_release_lock", lock_id, reason)
        finally:
            if released:
                print_rows(locks_of(released), None)


def _run(
    target: CallTarget,
    settings: acquiring.ConcurrencySettings,
    lock_id: int | None,
    command: Sequence[str],
    heartbeat_seconds: float,
) -> int:
    def keep(client: MetastoreClient) -> None:
        if lock_id is not None:
            acquiring.LockAcquirer(client, settings, _pause).keep(lock_id)

    try:
        return run_holding(
            target,
            "the locks were",
            command,
            {} if lock_id is None else {LOCK_VARIABLE: str(lock_id)},
            keep,
            every_seconds=heartbeat_seconds,
            lost_after_seconds=_LOST_AFTER_SECONDS,
        )
    finally:
        if lock_id is not None:
            with connected(target) as client:
                acquiring.LockAcquirer(client, settings, _pause).release(lock_id)


def _partition_name(text: str) -> str:
    """`ds=1/hr=2` as it is, or `ds='1', hr=2`."""
    if not any(sign in text for sign in "'\","):
        return text
    try:
        return parse_partition(text, make_name)
    except CommandError as error:
        fail(f"--partition {text!r}: {error}")


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or name.strip() not in acquiring.SETTING_NAMES:
        fail(f"--hiveconf {text!r}: unknown", f"known are {', '.join(acquiring.SETTING_NAMES)}, each with =VALUE")
    return name.strip(), value


def _operation(text: str) -> concurrency.Operation:
    try:
        return concurrency.Operation(" ".join(text.lower().split()))
    except ValueError:
        fail(f"unknown operation {text!r}", f"known are {'; '.join(concurrency.Operation)}")


def _place(text: str, database: str) -> concurrency.LockPlace:
    db_name, table_name, partition = parse_object(text, database)
    names = (db_name.lower(), None if table_name is None else table_name.lower())
    return concurrency.LockPlace(*names, tuple(partition.split("/")) if partition else ())


def _pause(seconds: float) -> None:
    say(f"trying again in {seconds:g} s")
    time.sleep(seconds)


_SWITCH = "hive.support.concurrency"
_EXPLICIT = frozenset({concurrency.Operation.LOCK_SHARED, concurrency.Operation.LOCK_EXCLUSIVE})
_SHOWN: Any = ListType(StructType("ShowLocksResponseElement"))
_BLOCKING: Any = ListType(StructType("BlockingLock"))
