"""Commits: metadata files first, then the rows, compared and changed in one unit of work with their events."""

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from hms_gateway.catalog.directories.places import PlaceRows
from hms_gateway.catalog.tables.alter import without_lost_statistics
from hms_gateway.catalog.tables.catalogs import homes_in
from hms_gateway.iceberg.errors import IcebergError, bad_request, commit_failed
from hms_gateway.iceberg.files import MetadataFile, MetadataFiles, is_own
from hms_gateway.iceberg.json_values import Json
from hms_gateway.iceberg.metastore import Metastore, Name, exists_already, missing, no_namespace, when_locked
from hms_gateway.iceberg.rows import pointer, with_metadata
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.changes.implicit_locks import refuse_locked
from hms_gateway.metastore.ports.store import (
    CatalogWork,
    DuplicateKey,
    FileSystemError,
    OutcomeUnknown,
    Snapshot,
    Store,
    Transaction,
)
from hms_gateway.metastore.vocabulary.parameters import DDL_TIME
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import AlterTableRequest, CreateTableRequest, LockType, Table
from hms_gateway.runtime.call_keys import CallKey
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.presented import Actor, LockCaller, current_actor, lock_caller
from hms_gateway.txn.rules.locks import LockedByAnother, Needed
from hms_gateway.txn.rules.names import Target

_LOG: Final = logging.getLogger(__name__)
# No lock has this number.
_NO_LOCK: Final = -1
_DELETES_OLD_FILES: Final = "write.metadata.delete-after-commit.enabled"


class Plan(msgspec.Struct, frozen=True):
    """A table or view to make or to change: its new metadata and row, and the file that it was made from.

    `row` has columns and location as they are stored. `new_place` is its location, normalized, where that is a new one:
    no other table may lie there.
    """

    name: Name
    kind: str
    value: Json
    location: str
    row: Table
    base: MetadataFile | None = None
    new_place: str | None = None


class Committer(NamedTuple):
    """The user and the owner of locks that the steps of a call note for its changes; None where they note nothing."""

    actor: Actor | None = None
    locks: LockCaller | None = None


class Outdated(Exception):
    """A table has changed since the plan was made."""


class Commits:
    """Carries plans out, all or none. Safe to use from several threads."""

    def __init__(
        self, store: Store, files: MetadataFiles, events: EventMaker, clock: Clock, lock_timeout_ms: int
    ) -> None:
        self._store = store
        self._files = files
        self._events = events
        self._clock = clock
        self._lock_timeout_ms = lock_timeout_ms

    def carry_out(self, metastore: Metastore, plans: Sequence[Plan]) -> list[MetadataFile]:
        """The files that were written. Nothing has happened where this raises, but for CommitStateUnknown.

        Each plan passes the steps of the method that would make its change, and all end in one unit of work. Raises
        Outdated, IcebergError, and Waiting while others hold a lock on a table.
        """

        def go_on() -> list[MetadataFile]:
            try:
                return self.write(metastore.call, plans)
            except LockedByAnother as error:
                # Steps around this one would wait longer.
                raise when_locked(metastore.call, error) from error

        *others, last = plans
        for plan in others:
            self.check(metastore, plan)
        found: list[MetadataFile] = self._perform(metastore, last, go_on)
        return found

    def point(self, metastore: Metastore, plan: Plan) -> None:
        """Carry out a plan whose file is there already. Raises as `carry_out`, 409 for a changed table."""

        def go_on() -> None:
            try:
                self._store.write(self._work(metastore.call, [plan]))
            except Outdated:
                raise too_many() from None
            except OutcomeUnknown as error:
                raise IcebergError("CommitStateUnknownException", str(error)) from error

        self._perform(metastore, plan, go_on)

    def check(self, metastore: Metastore, plan: Plan) -> Committer:
        """The caller as changes know it. Raises IcebergError where it may not carry the plan out."""
        found: Committer = self._perform(metastore, plan, lambda: Committer(current_actor(), lock_caller()))
        return found

    def _perform(self, metastore: Metastore, plan: Plan, go_on: Callable[[], Any]) -> Any:
        name = plan.name

        def create(call: Call, request: CreateTableRequest) -> Any:
            return go_on()

        def alter(call: Call, request: AlterTableRequest) -> Any:
            if (request.dbName, request.tableName) != (name.key, name.name):
                # Hidden from the caller.
                raise missing(name, plan.kind)
            return go_on()

        if plan.base is None:
            return metastore.perform("create_table_req", create, request=CreateTableRequest(table=plan.row))
        request = AlterTableRequest(dbName=name.key, tableName=name.name, table=plan.row)
        return metastore.perform("alter_table_req", alter, req=request)

    def write(
        self,
        call: Call,
        plans: Sequence[Plan],
        lists: Sequence[tuple[str, bytes]] = (),
        keys: Sequence[CallKey] = (),
    ) -> list[MetadataFile]:
        """Write the files and change the rows of plans that each caller was checked for.

        `lists` are manifest lists that the plans name; `keys` are those of calls that the plans are for beside the
        current one. Raises Outdated, IcebergError, LockedByAnother, and AlreadyConcluded for the keys.
        """
        written = self._files.write([(plan.location, plan.value) for plan in plans], lists)
        try:
            self._store.write(self._work(call, plans, keys))
        except OutcomeUnknown as error:
            # The row may point to the file.
            raise IcebergError("CommitStateUnknownException", str(error)) from error
        except BaseException:
            for location in (*(file.location for file in written), *(location for location, _ in lists)):
                self._discard(location)
            raise
        for key in keys:
            key.is_concluded = True
        for plan, file in zip(plans, written, strict=True):
            self._files.keep(plan.name.stored, file)
            self._delete_old(plan)
        return written

    def _work(self, call: Call, plans: Sequence[Plan], keys: Sequence[CallKey] = ()) -> CatalogWork[None]:
        # Locks of the same user and host are others' too: those of a HiveCatalog beside this client.
        own = frozenset({_NO_LOCK if call.lock_id is None or not call.lock_id.isdecimal() else int(call.lock_id)})
        caller = LockCaller(call.principal, call.client_address, self._lock_timeout_ms, lock_ids=own)

        def work(tx: Transaction) -> None:
            for key in keys:
                tx.refuse_second(key)
                tx.conclude(key, None)
            for plan in plans:
                if plan.base is None:
                    self._insert(tx, plan)
                else:
                    self._update(tx, plan, plan.base, caller)
                # Last, since what was read before a statement is read again behind it.
                check_place(tx, plan)

        names = [plan.name.stored for plan in plans]
        return CatalogWork(work, names, new_tables=sum(plan.base is None for plan in plans), reads_locks=True)

    def _insert(self, tx: Transaction, plan: Plan) -> None:
        key, name = plan.row.dbName or "", plan.row.tableName or ""
        database = tx.database(key)
        if database is None:
            raise no_namespace(plan.name.namespace)
        found = tx.table(key, name)
        if found is not None:
            raise exists_already(plan.name, plan.kind, found.table)
        try:
            tx.insert_table(database.database_id, plan.row)
        except DuplicateKey as error:
            raise exists_already(plan.name, plan.kind) from error
        tx.append_event(self._events.create_table(plan.row))

    def _update(self, tx: Transaction, plan: Plan, base: MetadataFile, caller: LockCaller) -> None:
        key, name = plan.name.stored
        found = tx.table(key, name)
        if found is None or pointer(found.table) != base.location:
            raise Outdated
        refuse_locked(tx, caller, [Needed(Target(key, name), LockType.SHARED_READ)])
        after = with_metadata(plan.kind, found.table, base.value, plan.location, plan.value)
        parameters = {**(after.parameters or {}), DDL_TIME: str(self._clock.seconds())}
        after = msgspec.structs.replace(after, parameters=parameters, sd=plan.row.sd)
        if (after.sd and after.sd.cols) != (found.table.sd and found.table.sd.cols):
            after = without_lost_statistics(tx, found.table_id, after)
        tx.update_table(found.table_id, found.database_id, after)
        tx.append_event(self._events.alter_table(found.table, after))

    def _discard(self, location: str) -> None:
        try:
            self._files.delete(location)
        except FileSystemError as error:
            _LOG.warning("The file %s of a failed commit stays: %s", location, error)

    def _delete_old(self, plan: Plan) -> None:
        """Delete files that the log of earlier ones does not name any more, where the table asks for that."""
        if plan.base is None or plan.value["properties"].get(_DELETES_OLD_FILES, "").lower() != "true":
            return
        for file in {*logged_files(plan.base.value)} - {*logged_files(plan.value)}:
            if file.endswith(".metadata.json") and is_own(plan.value, file):
                with contextlib.suppress(FileSystemError):
                    self._files.delete(file)


def check_place(snapshot: Snapshot, plan: Plan) -> None:
    """Raises IcebergError for a new place that is not a table's own alone."""
    if plan.new_place is not None and is_of_another(snapshot, plan.new_place, plan.name.stored):
        # Whose it is may be hidden from the caller.
        raise bad_request(
            f"location {plan.value['location']} lies at, in or around that of another table, or a database lies in it"
        )


def is_of_another(snapshot: Snapshot, place: str, own: tuple[str, str]) -> bool:
    """True if a table or view of other names than these, as stored, lies at, in or around a place, or a home in it."""
    return bool(homes_in(snapshot, [place])) or any(
        (one.db_name, one.name) != own for one in PlaceRows(snapshot).tables_around(place)
    )


def logged_files(metadata: Json) -> list[str]:
    """The earlier files that metadata names, the oldest first; other writers may have left odd entries."""
    entries = (one for one in metadata.get("metadata-log") or () if isinstance(one, dict))
    return [file for one in entries if isinstance(file := one.get("metadata-file"), str)]


def too_many() -> IcebergError:
    return commit_failed("Too many commits change the table at once; read it and try again")
