"""Changing a table: load, decide, apply (semantics §2.7).

Directories are slow and cannot be rolled back, so they are touched between two looks at the catalog: the first decides
what has to be done to files, the second, inside the unit of work that stores the result, decides again. When both come
to the same conclusion the change is made, else everything starts over. A directory that moves is journalled
(`PendingMove`).
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Final

import msgspec

from hms_gateway.catalog.arguments import is_newer, table_in, table_named, with_fields, with_plain_name
from hms_gateway.catalog.constraints import ConstraintRows
from hms_gateway.catalog.directories.warehouse import DirectoryMoves, MoveTakenBack, Warehouse
from hms_gateway.catalog.statistics.aggregation import after_concurrent_write, seen_by
from hms_gateway.catalog.tables.catalogs import check_apart
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.changes.fencing import check_unchanged_since
from hms_gateway.metastore.changes.implicit_locks import held_for_files
from hms_gateway.metastore.checks.errors import required, unstorable_as_meta
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.checks.table_shape import (
    check_bucket_columns,
    check_serde,
    check_shape,
    stored_table,
    transactional_parameters,
    with_known_skew,
    with_location,
    with_parameters,
)
from hms_gateway.metastore.ports.store import (
    CatalogWork,
    DatabaseId,
    DuplicateKey,
    FileSystemError,
    PendingMove,
    Snapshot,
    Store,
    StoredDatabase,
    StoredTable,
    TableId,
    Transaction,
)
from hms_gateway.metastore.vocabulary.column_types import InvalidColumnType, check_type_changes
from hms_gateway.metastore.vocabulary.locations import is_default_table_location, on_file_system_of, same_file_system
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.metastore.vocabulary.parameters import (
    CASCADE,
    EXPECTED_KEY,
    EXPECTED_VALUE,
    ParameterConflict,
    alter_table_counts_files,
    check_expected,
    take_do_not_update,
    with_fast_statistics,
    without_accurate_columns,
    written_under,
)
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.metastore.vocabulary.table_types import (
    METADATA_LOCATION,
    PREVIOUS_METADATA_LOCATION,
    TABLE_TYPE_KEY,
    altered_parameters,
    is_external,
    is_iceberg,
    is_view,
)
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    AlterTableRequest,
    AlterTableResponse,
    CommitTxnKeyValue,
    Database,
    EnvironmentContext,
    FieldSchema,
    InvalidOperationException,
    MetaException,
    Table,
)
from hms_gateway.rpc.structs.catalogs import catalog_of, prefix_of
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.presented import is_recorded
from hms_gateway.storage.catalog.statistics import StatisticsRows
from hms_gateway.storage.files.directories import Directories
from hms_gateway.txn.rules.names import Target

_ATTEMPTS: Final = 10


class AlterRequest(msgspec.Struct, frozen=True):
    """A checked request.

    given             the new table, normalised and complete, but for the location, which may be absent
    sent_location     what the caller put there: absent and empty mean different things in a rename
    complaint         what is wrong with its names, columns or serde; raised once the table it replaces was looked at
    is_recorded       whether the table becomes as another metastore knows it, time of creation included
    valid_write_ids   those that the caller sees, as they were sent
    """

    name: TableName
    given: Table
    sent_location: str | None
    complaint: InvalidOperationException | MetaException | None
    cascade: bool
    environment: Mapping[str, str]
    expected_key: str | None
    expected_value: str | None
    is_recorded: bool = False
    valid_write_ids: str | None = None

    @property
    def foreseen(self) -> list[tuple[str, str]]:
        """The names of the tables that it asks for."""
        names = [*self.name.foreseen, (self.given.dbName or "", self.given.tableName or "")]
        return list(dict.fromkeys(names))

    def renames(self, old: Table) -> bool:
        return (self.given.dbName, self.given.tableName) != (old.dbName, old.tableName)


class AlterContext(msgspec.Struct, frozen=True):
    """What an alteration depends on besides the table itself.

    source_path       where the old database's tables go
    adopted_locations where partitions lie whose data the table does not own yet, and is to own
    """

    source_path: str
    target_database: StoredDatabase | None
    target_is_taken: bool
    adopted_locations: Sequence[str] = ()


class FileWork(msgspec.Struct, frozen=True):
    """What has to happen to files: a directory to move, or one whose files are to be counted."""

    move: tuple[str, str] | None = None
    counted_location: str | None = None


class Alteration(msgspec.Struct, frozen=True):
    """The decision: the table to store, and what goes with it; and what it was made by."""

    before: StoredTable
    context: AlterContext
    after: Table
    database_id: DatabaseId
    files: FileWork


class _Outdated(Exception):
    """The catalog changed between the two looks."""


class TableAlterations:
    """alter_table in all its forms. Raise InvalidOperationException, MetaException."""

    def __init__(
        self, store: Store, files: Directories, clock: Clock, settings: MetastoreSettings, events: EventMaker
    ) -> None:
        self._store = store
        self._files = files
        self._clock = clock
        self._settings = settings
        self._warehouse: Final = Warehouse(settings, files)
        self._moves: Final = DirectoryMoves(store, files)
        self._events = events

    def alter_table(self, call: Call, dbname: str, tbl_name: str, new_tbl: Table) -> None:
        self._alter(table_named(dbname, tbl_name), new_tbl, by_newer=is_newer(call, dbname))

    def alter_table_with_environment_context(
        self, call: Call, dbname: str, tbl_name: str, new_tbl: Table, environment_context: EnvironmentContext
    ) -> None:
        name = table_named(dbname, tbl_name)
        self._alter(name, new_tbl, environment_context, by_newer=is_newer(call, dbname))

    def alter_table_with_cascade(self, call: Call, dbname: str, tbl_name: str, new_tbl: Table, cascade: bool) -> None:
        name = table_named(dbname, tbl_name)
        self._alter(name, new_tbl, cascade=bool(cascade), by_newer=is_newer(call, dbname))

    def alter_table_req(self, call: Call, req: AlterTableRequest) -> AlterTableResponse:
        request = required(req, "req")
        table = request.table
        if table is not None and request.writeId is not None and request.writeId > 0:
            table = with_fields(table, writeId=request.writeId)
        self._alter(
            table_in(request.catName, request.dbName, request.tableName),
            table,
            request.environmentContext,
            valid_write_ids=request.validWriteIdList,
            expected_key=request.expectedParameterKey,
            expected_value=request.expectedParameterValue,
            by_newer=True,
        )
        return AlterTableResponse()

    def _alter(
        self,
        name: TableName,
        table: Table | None,
        environment: EnvironmentContext | None = None,
        *,
        by_newer: bool,
        cascade: bool = False,
        expected_key: str | None = None,
        expected_value: str | None = None,
        valid_write_ids: str | None = None,
    ) -> None:
        """Replace a table, renaming it when the new one has another name.

        The compare-and-set may come as arguments or in the environment. With `by_newer` every bucketing column must
        be a column, and names may have hyphens, as from Hive 4 on. `valid_write_ids` are those that the caller sees.
        """
        request = self._checked(name, with_plain_name(table), environment, by_newer=by_newer)
        request = msgspec.structs.replace(
            request,
            cascade=cascade or request.cascade,
            expected_key=request.expected_key if expected_key is None else expected_key,
            expected_value=request.expected_value if expected_value is None else expected_value,
            valid_write_ids=valid_write_ids,
        )
        for _ in range(_ATTEMPTS):
            plan = self._store.read(lambda snapshot: self._plan(snapshot, request), asks_once=True)
            with nullcontext() if plan.files.move is None else self._held(plan):
                if self._attempt(request, plan):
                    return
        raise MetaException(f"table {name} is being changed by too many others at once, try again")

    def _held(self, plan: Alteration) -> AbstractContextManager[None]:
        """The locks of a rename, from before its directory is moved."""
        old, new = (Target(one.dbName or "", one.tableName) for one in (plan.before.table, plan.after))
        return held_for_files(self._store, [old], [Target(new.db_name), new])

    def _attempt(self, request: AlterRequest, plan: Alteration) -> bool:
        """Whether the change was made; if not, something else was, and it has to be planned again."""
        place = plan.files.counted_location
        counted = None if place is None else self._warehouse.statistics(place)
        try:
            with self._moved(plan) as pending, unstorable_as_meta():
                work = partial(self._apply, request, plan, pending, counted)
                self._store.write(CatalogWork(work, request.foreseen))
        except (_Outdated, MoveTakenBack):
            return False
        except FileSystemError as error:
            raise InvalidOperationException(
                f"Alter Table operation for {request.name} failed to move data due to: '{error}'"
                " See hive log file for details."
            ) from error
        return True

    def _moved(self, plan: Alteration) -> AbstractContextManager[PendingMove | None]:
        """The directory is moved; without one there is nothing to move but the catalog's idea of where it is."""
        if plan.files.move is None:
            return nullcontext()
        source, target = plan.files.move
        self._store.read(lambda snapshot: check_apart(snapshot, target, catalog_of(plan.after.dbName)))
        if self._files.exists(target):
            raise InvalidOperationException(
                f"New location for this table {plan.after.dbName}.{plan.after.tableName} already exists : {target}"
            )
        if not self._files.exists(source):
            return nullcontext()
        return self._moves.moved(plan.before.table_id, source, target)

    def _checked(
        self,
        name: TableName,
        table: Table | None,
        environment: EnvironmentContext | None,
        *,
        by_newer: bool,
    ) -> AlterRequest:
        given = required(table, "new table")
        complaint = _complaint(name, given, by_newer=by_newer)
        db_name = normalize(given.dbName or required(name.db_name, "database name"))
        sent_location = given.sd.location if given.sd else None
        if sent_location:
            given = with_location(given, self._warehouse.normalized(sent_location))
            if is_recorded():
                self._warehouse.check_place(sent_location)
        stored = stored_table(given, db_name, self._clock.seconds())
        properties = (environment.properties if environment else None) or {}
        return AlterRequest(
            name=name,
            given=stored,
            sent_location=sent_location,
            complaint=complaint,
            cascade=properties.get(CASCADE) == "true",
            environment=properties,
            expected_key=properties.get(EXPECTED_KEY),
            expected_value=properties.get(EXPECTED_VALUE),
            is_recorded=is_recorded(),
        )

    def _plan_again(self, tx: Transaction, request: AlterRequest, planned: Alteration) -> Alteration:
        """As `_plan`, without deciding anew where everything that was decided by is as before."""
        before = tx.unchanged(planned.before)
        if before is None or _adopts(before.table, request.given):
            return self._plan(tx, request)
        if self._context(tx, request, before.table) != planned.context:
            return self._plan(tx, request)
        return msgspec.structs.replace(planned, before=before)

    def _plan(self, snapshot: Snapshot, request: AlterRequest) -> Alteration:
        snapshot.foresee(request.foreseen)
        old = request.name.find(snapshot)
        if old is None:
            raise InvalidOperationException(f"{request.name} table not found")
        context = self._context(snapshot, request, old.table)
        if old.partition_count and _adopts(old.table, request.given):
            own = old.table.sd.location if old.table.sd else None
            adopted = [*([own] if own else []), *snapshot.outside_locations(old)]
            context = msgspec.structs.replace(context, adopted_locations=adopted)
        return decide(request, old, context, self._warehouse, self._settings)

    def _context(self, snapshot: Snapshot, request: AlterRequest, old: Table) -> AlterContext:
        source = snapshot.database(old.dbName or "")
        assert source is not None
        source_path = self._warehouse.path_of(source.database)
        if not request.renames(old):
            return AlterContext(source_path, source, target_is_taken=False)
        db_name, tbl_name = request.given.dbName or "", request.given.tableName or ""
        if "\0" in db_name or "\0" in tbl_name:
            return AlterContext(source_path, None, target_is_taken=False)
        return AlterContext(source_path, snapshot.database(db_name), snapshot.table(db_name, tbl_name) is not None)

    def _apply(
        self,
        request: AlterRequest,
        planned: Alteration,
        pending: PendingMove | None,
        counted: tuple[int, int] | None,
        tx: Transaction,
    ) -> None:
        plan = self._plan_again(tx, request, planned)
        check_unchanged_since(tx, request.environment, plan.before.table)
        if plan.files != planned.files:
            raise _Outdated
        if pending is not None:
            if pending.table_id != plan.before.table_id:
                raise _Outdated
            self._moves.settle(tx, pending)
        elif plan.files.move is not None and self._moves.is_being_moved(tx, plan.before.table_id):
            # The directory was not missing: another rename has moved it, and may yet move it back.
            raise _Outdated
        after = plan.after
        if counted is not None:
            after = with_parameters(after, with_fast_statistics(after.parameters or {}, *counted, request.environment))
        if request.valid_write_ids and plan.before.table.writeId:
            seen = seen_by(request.valid_write_ids)
            parameters = after_concurrent_write(after.parameters or {}, plan.before.table.writeId, seen)
            after = with_parameters(after, parameters)
        self._store_change(tx, plan, after, cascade=request.cascade)

    def _store_change(self, tx: Transaction, plan: Alteration, after: Table, *, cascade: bool) -> None:
        table_id, before = plan.before.table_id, plan.before.table
        after = _with_creation_metadata(after, before)
        columns = _columns_of(after)
        are_changed = columns != _columns_of(before)
        if are_changed:
            after = without_lost_statistics(tx, table_id, after)
        try:
            tx.update_table(table_id, plan.database_id, after)
        except DuplicateKey as error:
            raise _taken(after) from error
        if plan.files.move is not None and plan.before.partition_count:
            # As Hive has it: statistics of partitions that moved are gone (semantics §2.7 item 7).
            StatisticsRows(tx).delete_below(table_id, plan.files.move[0])
            tx.move_partition_locations(table_id, *plan.files.move)
        # As Hive has it: without a change there is nothing to cascade, and partitions keep columns of their own.
        if cascade and are_changed and plan.before.partition_count:
            tx.replace_partition_columns(table_id, columns)
            StatisticsRows(tx).keep_partition_columns(table_id, columns)
        tx.append_event(self._events.alter_table(before, after))


def _with_creation_metadata(after: Table, before: Table) -> Table:
    """Only update_creation_metadata changes them; they follow the name of the view."""
    kept = before.creationMetadata
    if kept is not None:
        kept = msgspec.structs.replace(kept, dbName=after.dbName, tblName=after.tableName)
    return msgspec.structs.replace(after, creationMetadata=kept)


def decide(
    request: AlterRequest,
    old: StoredTable,
    context: AlterContext,
    warehouse: Warehouse,
    settings: MetastoreSettings,
) -> Alteration:
    """What altering `old` as requested comes to. Raises InvalidOperationException, MetaException."""
    before, given = old.table, request.given
    after = _merged(before, given, is_recorded=request.is_recorded)
    if request.complaint is not None:
        raise request.complaint
    _check_expected(request, before)
    if not request.is_recorded:
        _check_pointer(before.parameters or {}, given.parameters or {})
    renames = request.renames(before)
    if renames and context.target_is_taken:
        raise _taken(given)
    if not is_view(before.tableType):
        _check_columns(request, before, settings)
        _check_partition_keys(before, given)
    target = context.target_database
    if target is None:
        raise InvalidOperationException(
            "Unable to change partition or table. Check metastore logs for detailed stack."
            f"Database {given.dbName} doesn't exist."
        )
    move = None
    if renames and not is_view(before.tableType) and not request.is_recorded:
        move = _move_of_rename(request, before, context, target.database, warehouse)
    if move is not None:
        after = with_location(after, move[1])
        files = FileWork(move=move)
    else:
        after, counts_files = _counted(request, after)
        files = FileWork(counted_location=_managed_location(after, warehouse) if counts_files else None)
    if not request.is_recorded:
        _check_place(before, after, context, warehouse)
    return Alteration(old, context, after, target.database_id, files)


def _adopts(before: Table, after: Table) -> bool:
    """Whether the table becomes the owner of data that was not its own."""
    is_owner = not is_view(after.tableType) and not is_external(after.parameters or {})
    return is_owner and (is_view(before.tableType) or is_external(before.parameters or {}))


def _check_place(before: Table, after: Table, context: AlterContext, warehouse: Warehouse) -> None:
    """A place that was stored before the roots were narrowed may stay, as long as nothing more is done there."""
    location = after.sd.location if after.sd else None
    if not location or is_view(after.tableType):
        return
    adopts = _adopts(before, after)
    if adopts or before.sd is None or location != before.sd.location:
        warehouse.check_place(location, is_owned=not is_external(after.parameters or {}))
    for adopted in context.adopted_locations if adopts else ():
        warehouse.check_place(adopted)


def _complaint(name: TableName, given: Table, *, by_newer: bool) -> InvalidOperationException | MetaException | None:
    keeps_name = normalize(given.tableName or "") == normalize(name.tbl_name or "")
    if given.dbName is not None and prefix_of(given.dbName) != prefix_of(name.db_name):
        old, new = catalog_of(name.db_name), catalog_of(given.dbName)
        text = f"Tables cannot be moved between catalogs, old catalog{old}, new catalog {new}"
        return InvalidOperationException(text)
    try:
        allows_hyphen = by_newer or keeps_name
        check_shape(given, allows_hyphen=allows_hyphen, refusal=InvalidOperationException, checks_keys=False)
        check_serde(given.sd)
        if by_newer:
            check_bucket_columns(given, InvalidOperationException)
    except (InvalidOperationException, MetaException) as error:
        return error
    return None


def _check_expected(request: AlterRequest, before: Table) -> None:
    """Compare-and-set of one parameter; a change that would unset it is refused (semantics §2.7, clients §5.1)."""
    if request.expected_key is None or request.expected_value is None:
        return
    if request.expected_key not in (request.given.parameters or {}):
        raise MetaException(f"New value for expected key {request.expected_key} is not set")
    try:
        check_expected(before.parameters or {}, request.expected_key, request.expected_value)
    except ParameterConflict as error:
        raise MetaException(str(error)) from error


def _check_pointer(before: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Raises MetaException for a commit of Iceberg that was made from another state than the table's or view's.

    Clients without locks alter without a condition, and would undo what others have committed meanwhile. The text is
    that of a compare-and-set, by which Java's client knows a failed commit (clients §5.1).
    """
    current = before.get(METADATA_LOCATION)
    is_kept = before.get(TABLE_TYPE_KEY, "").upper().startswith("ICEBERG")
    if current is None or not is_kept or given.get(METADATA_LOCATION, current) == current:
        return
    try:
        check_expected(before, METADATA_LOCATION, given.get(PREVIOUS_METADATA_LOCATION) or "")
    except ParameterConflict as error:
        raise MetaException(str(error)) from error


def _check_columns(request: AlterRequest, before: Table, settings: MetastoreSettings) -> None:
    if request.is_recorded or not settings.refuses_incompatible_column_changes or _may_change_columns(before, settings):
        return
    old = (before.sd.cols if before.sd else None) or []
    new = (request.given.sd.cols if request.given.sd else None) or []
    try:
        check_type_changes(
            [column.type or "" for column in old], [(column.name or "", column.type or "") for column in new]
        )
    except InvalidColumnType as error:
        raise InvalidOperationException(str(error)) from error


def _may_change_columns(before: Table, settings: MetastoreSettings) -> bool:
    """Iceberg reads by the ids of columns in its own metadata; the columns here only show them, in any order."""
    if is_iceberg(before.parameters or {}):
        return True
    serde = before.sd.serdeInfo if before.sd else None
    return serde is not None and serde.serializationLib in settings.column_change_serdes


def _check_partition_keys(before: Table, given: Table) -> None:
    """Partition names are made of the keys' names, so those stay; types and comments may change."""
    old = [key.name for key in before.partitionKeys or []]
    if old != [key.name for key in given.partitionKeys or []]:
        raise InvalidOperationException("partition keys can not be changed.")


def _merged(before: Table, given: Table, *, is_recorded: bool) -> Table:
    """The new table with what an alter never changes: creation time, and what only newer clients send."""
    after = msgspec.structs.replace(
        given,
        createTime=(given.createTime if is_recorded else None) or before.createTime,
        ownerType=before.ownerType if given.ownerType is None else given.ownerType,
        creationMetadata=before.creationMetadata if given.creationMetadata is None else given.creationMetadata,
        writeId=written_under(given.parameters or {}, given.writeId, before.writeId),
        requiredReadCapabilities=given.requiredReadCapabilities or before.requiredReadCapabilities,
        requiredWriteCapabilities=given.requiredWriteCapabilities or before.requiredWriteCapabilities,
    )
    sd, old_sd = after.sd, before.sd
    if sd is not None and old_sd is not None:
        placed = msgspec.structs.replace(sd, location=sd.location or old_sd.location)
        after = msgspec.structs.replace(after, sd=with_known_skew(old_sd, placed))
    if is_recorded:
        return after
    return with_parameters(after, transactional_parameters(altered_parameters, after, before.parameters or {}))


def _move_of_rename(
    request: AlterRequest, before: Table, context: AlterContext, target_database: Database, warehouse: Warehouse
) -> tuple[str, str] | None:
    """From where to where a rename moves the directory; None when only names change (semantics §2.7 item 7).

    It moves when the old table lies at its default place and the request does not say another one. Directories the
    server does not manage stay, and so does the location: the data would not be moved.
    """
    sent = required(request.sent_location, "location of a table to be renamed")
    old_location = before.sd.location if before.sd else None
    if not old_location or is_external(before.parameters or {}):
        return None
    if sent and (request.given.sd is None or request.given.sd.location != old_location):
        return None
    if not is_default_table_location(old_location, context.source_path, before.tableName or ""):
        return None
    target = warehouse.default_table_location(target_database, request.given.tableName or "")
    if not same_file_system(target, old_location):
        raise InvalidOperationException(
            f"table new location {target} is on a different file system than the old location {old_location}."
            " This operation is not supported"
        )
    return (old_location, on_file_system_of(target, old_location)) if warehouse.manages(old_location) else None


def _counted(request: AlterRequest, after: Table) -> tuple[Table, bool]:
    """Whether files are to be counted. The mark DO_NOT_UPDATE_STATS is taken where they would be."""
    counts = alter_table_counts_files(after.tableType, request.environment, is_partitioned=bool(after.partitionKeys))
    if request.is_recorded or not counts:
        return after, False
    parameters, keeps_statistics = take_do_not_update(after.parameters or {})
    return with_parameters(after, parameters), not keeps_statistics


def _managed_location(table: Table, warehouse: Warehouse) -> str | None:
    location = table.sd.location if table.sd else None
    return location if location and warehouse.manages(location) else None


def _columns_of(table: Table) -> list[FieldSchema]:
    return list((table.sd.cols if table.sd else None) or ())


def without_lost_statistics(tx: Transaction, table_id: TableId, after: Table) -> Table:
    """The table to store, without statistics and constraints of columns that no longer exist (item 10)."""
    columns = _columns_of(after)
    lost = StatisticsRows(tx).keep_table_columns(table_id, columns)
    keys = [key.name or "" for key in after.partitionKeys or ()]
    ConstraintRows(tx).keep_columns(table_id, [*(column.name or "" for column in columns), *keys])
    return with_parameters(after, without_accurate_columns(after.parameters or {}, lost)) if lost else after


def _taken(table: Table) -> InvalidOperationException:
    return InvalidOperationException(f"new table {table.dbName}.{table.tableName} already exists")


KEY_START: Final = "_meta"


class CommitKeyValue:
    def __init__(self, events: EventMaker) -> None:
        self._events = events

    def setting(self, mark: CommitTxnKeyValue) -> Callable[[Transaction], None]:
        """Make a setter of the parameter for the commit's unit of work; it raises MetaException without the table.

        Raises MetaException for a key that does not begin as such keys do, so that a commit cannot change what others
        go by.
        """
        key, value = mark.key or "", mark.value or ""
        if not key.startswith(KEY_START):
            raise MetaException(
                f"Error updating key/value with tableId={mark.tableId}, key={key}, value={value}."
                f" The key should start with {KEY_START}."
            )

        def set_parameter(tx: Transaction) -> None:
            found = tx.table_with_id(mark.tableId or 0)
            if found is None:
                raise MetaException(f"no table has the id {mark.tableId}")
            before = found.table
            after = with_parameters(before, {**(before.parameters or {}), key: value})
            tx.update_table(found.table_id, found.database_id, after)
            tx.append_event(self._events.alter_table(before, after))

        return set_parameter
