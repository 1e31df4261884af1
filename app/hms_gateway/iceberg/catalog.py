"""Operations of the REST catalog, over the rows that HiveCatalog writes and reads (Iceberg REST OpenAPI document)."""

import uuid
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar

import msgspec

from hms_gateway.catalog.directories.warehouse import Warehouse
from hms_gateway.catalog.tables.databases import change_database
from hms_gateway.catalog.tables.service import TableService
from hms_gateway.iceberg.appends import REBASE, Append, Chain, Together, append_of, has_branch, with_manifests
from hms_gateway.iceberg.commits import Commits, Committer, Outdated, Plan, check_place, is_of_another, too_many
from hms_gateway.iceberg.errors import IcebergError, bad_request, commit_failed, invalid
from hms_gateway.iceberg.files import MetadataFile, MetadataFiles, is_own, next_location
from hms_gateway.iceberg.json_values import Json, needed, objects, optional, text_map, texts
from hms_gateway.iceberg.metadata import committed, new_table, normalized, with_id, with_log
from hms_gateway.iceberg.metastore import (
    Metastore,
    Name,
    cannot_rename,
    database_key,
    exists_already,
    missing,
    no_namespace,
    translated,
    when_locked,
)
from hms_gateway.iceberg.rows import (
    TABLE,
    VIEW,
    kind_of,
    new_row,
    pointer,
    with_metadata,
)
from hms_gateway.iceberg.views import new_view, normalized_view, replaced_view
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.checks.table_shape import stored_descriptor
from hms_gateway.metastore.ports.store import FileSystemError, LeftDirectory, Store
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.metastore.vocabulary.table_types import EXTERNAL_PURGE_KEY, METADATA_LOCATION
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import AlterTableRequest, Database, PrincipalType, Table, ThriftException
from hms_gateway.rpc.structs.catalogs import plain_name
from hms_gateway.runtime.call_keys import AlreadyConcluded, CallKey, answering, current_call_key
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.presented import acting, locking
from hms_gateway.storage.files.directories import Directories
from hms_gateway.txn.rules.locks import LockedByAnother

T = TypeVar("T")

_ATTEMPTS: Final = 10
_LOCATION: Final = "location"
_COMMENT: Final = "comment"
_OWNER: Final = "hive.metastore.database.owner"
_OWNER_TYPE: Final = "hive.metastore.database.owner-type"
_RESERVED: Final = frozenset({_LOCATION, _COMMENT, _OWNER, _OWNER_TYPE})
# For the row of a table whose metadata is not read yet.
_NO_TABLE: Final[Json] = {
    **dict.fromkeys(("current-snapshot-id", "current-schema-id", "default-spec-id", "default-sort-order-id"), 0),
    **dict.fromkeys(("snapshots", "schemas", "partition-specs", "sort-orders"), ()),
    "table-uuid": "",
    "properties": {},
}
_FILTERS: Final = {
    kind: f'hive_filter_field_params__table_type = "{kind}" or hive_filter_field_params__table_type = "{kind.lower()}"'
    for kind in (TABLE, VIEW)
}


class Page(NamedTuple):
    """A page of a list: so many from behind a name on; all without a token."""

    token: str | None = None
    size: int | None = None


class SentAppend(NamedTuple):
    """An append on its way, the key of its call, and who makes it."""

    call: Call
    append: Append
    key: CallKey | None
    committer: Committer = Committer()


class Pointer(NamedTuple):
    """The place of the metadata file of a row; `is_own`: in the place of the row, whatever other tables do."""

    location: str
    row: Table
    name: Name
    is_own: bool


class Catalog:
    """Raises IcebergError, and what the metastore raises when it cannot answer. Safe to use from several threads."""

    def __init__(
        self,
        store: Store,
        tables: TableService,
        warehouse: Warehouse,
        directories: Directories,
        files: MetadataFiles,
        commits: Commits,
        events: EventMaker,
        clock: Clock,
    ) -> None:
        self._store = store
        self._tables = tables
        self._warehouse = warehouse
        self._directories = directories
        self._files = files
        self._commits = commits
        self._events = events
        self._clock = clock
        self._together: Together[Name, SentAppend, MetadataFile] = Together(self._append_all)

    # Namespaces.

    def list_namespaces(self, metastore: Metastore, catalog: str, parent: str | None, page: Page) -> Json:
        if parent is not None:
            metastore.database(catalog, parent)
            return {"namespaces": []}
        names = metastore.perform("get_databases", pattern=database_key(catalog, "*"))
        shown, token = _paged(sorted(map(plain_name, names)), page)
        return {"namespaces": [[name] for name in shown], "next-page-token": token}

    def create_namespace(self, metastore: Metastore, catalog: str, namespace: str, properties: dict[str, str]) -> Json:
        owner = properties.get(_OWNER, metastore.call.principal)
        database = Database(
            name=namespace,
            catalogName=catalog,
            description=properties.get(_COMMENT),
            locationUri=properties.get(_LOCATION),
            parameters={key: value for key, value in properties.items() if key not in _RESERVED},
            ownerName=owner,
            ownerType=_owner_type("properties", properties),
        )
        try:
            metastore.perform("create_database", database=database)
        except IcebergError as error:
            if error.kind == "AlreadyExistsException":
                raise IcebergError(error.kind, f"Namespace already exists: {namespace}") from error
            raise
        return self.load_namespace(metastore, catalog, namespace)

    def load_namespace(self, metastore: Metastore, catalog: str, namespace: str) -> Json:
        return {"namespace": [namespace], "properties": _properties(metastore.database(catalog, namespace))}

    def drop_namespace(self, metastore: Metastore, catalog: str, namespace: str) -> None:
        database = metastore.database(catalog, namespace)
        try:
            metastore.perform("drop_database", name=database_key(catalog, namespace), deleteData=False, cascade=False)
        except IcebergError as error:
            if "is not empty" in str(error):
                raise IcebergError("NamespaceNotEmptyException", f"Namespace {namespace} is not empty") from error
            if error.kind == "NotFoundException":
                raise no_namespace(database.name or namespace) from error
            raise
        # As HiveCatalog has it: files of tables that were dropped without them stay.
        if database.locationUri:
            self._warehouse.discard(database.locationUri)

    def update_namespace(self, metastore: Metastore, catalog: str, namespace: str, request: Json) -> Json:
        removals, updates = dict.fromkeys(texts(request, "removals")), text_map(request, "updates")
        both = sorted(removals.keys() & updates.keys())
        if both:
            raise IcebergError("UnprocessableEntityException", f"keys are in removals and in updates: {both}")
        if _LOCATION in removals:
            raise bad_request("a namespace has a location, which cannot be removed")
        if updates.get(_LOCATION) == "":
            raise bad_request("location is empty")
        changed = partial(_changed_database, self._warehouse, removals, updates)
        gone: list[str] = []

        def alter(call: Call, dbname: str, db: Database) -> None:
            def change(before: Database) -> Database:
                gone[:] = [key for key in removals if key not in _properties(before)]
                after = changed(before)
                # As the caller may give it.
                return msgspec.structs.replace(after, ownerName=db.ownerName, ownerType=db.ownerType) if owns else after

            change_database(self._store, self._warehouse, self._events, dbname, change)

        owns = not {_OWNER, _OWNER_TYPE}.isdisjoint(removals.keys() | updates.keys())
        planned = changed(metastore.database(catalog, namespace))
        planned = msgspec.structs.replace(planned, catalogName=catalog, name=namespace)
        if not owns:
            planned = msgspec.structs.replace(planned, ownerName=None, ownerType=None)
        metastore.perform("alter_database", alter, dbname=database_key(catalog, namespace), db=planned)
        removed = [key for key in removals if key not in gone]
        return {"updated": list(updates), "removed": removed, "missing": gone}

    # Tables and views.

    def list_named(self, metastore: Metastore, catalog: str, namespace: str, kind: str, page: Page) -> Json:
        metastore.database(catalog, namespace)
        names: list[str] = metastore.perform(
            "get_table_names_by_filter", dbname=database_key(catalog, namespace), filter=_FILTERS[kind], max_tables=-1
        )
        shown, token = _paged(names, page)
        return {
            "identifiers": [{"namespace": [namespace], "name": name} for name in shown],
            "next-page-token": token,
        }

    def pointer(self, metastore: Metastore, name: Name, kind: str) -> Pointer:
        return self._pointer(metastore.row_of(name, kind), name)

    def read(self, pointer: Pointer, kind: str) -> MetadataFile:
        """Raises IcebergError for a file that is none of Iceberg's, or of a later version."""
        file = self._file_at(pointer)
        _read_as(kind, file)
        return file

    def create_table(self, metastore: Metastore, name: Name, request: Json) -> MetadataFile:
        """The file of the new table; of a staged one only its metadata, at no place."""
        is_staged = optional(request, "stage-create", bool) or False
        location = self._new_location(metastore, name, TABLE, optional(request, _LOCATION, str))
        plan = self._new(metastore, name, new_table(request, location, self._clock.milliseconds()), TABLE)
        if is_staged:
            self._make_folders(location)
            return MetadataFile("", msgspec.json.encode(plan.value), plan.value)
        return self._commits.carry_out(metastore, [plan])[0]

    def _make_folders(self, location: str) -> None:
        """For clients that write the files of a staged table where they find its folders, such as DuckDB."""
        try:
            for folder in ("metadata", "data"):
                self._directories.make_directory(f"{location}/{folder}")
        except FileSystemError as error:
            raise bad_request(str(error)) from error

    def create_view(self, metastore: Metastore, name: Name, request: Json) -> MetadataFile:
        location = self._new_location(metastore, name, VIEW, optional(request, _LOCATION, str))
        plan = self._new(metastore, name, new_view(request, location, self._clock.milliseconds()), VIEW)
        return self._commits.carry_out(metastore, [plan])[0]

    def register(self, metastore: Metastore, name: Name, request: Json, kind: str = TABLE) -> MetadataFile:
        """The file that the table or view points to now; the row of one that is there only with `overwrite`."""
        location = needed(request, "metadata-location", str)
        self._check_reader(metastore, name, location)
        file = self._files.read(location)
        value = _read_as(kind, file)
        row = metastore.row(name)
        if row is not None and (kind_of(row) != kind or not optional(request, "overwrite", bool)):
            raise exists_already(name, kind, row)
        if row is None:
            metastore.database(name.catalog, name.namespace)
            plan = self._new(metastore, name, value, kind, location)
        else:
            base = self.file_of(row, name)
            plan = self._changed(name, row, base, value, location, kind)
            if not self._is_placed(row, value):
                plan = self._placed(metastore, plan)
        self._commits.point(metastore, plan)
        return file

    def _check_reader(self, metastore: Metastore, name: Name, location: str) -> None:
        """Raises IcebergError where the caller may not have a table at the place of a metadata file."""
        folder = location.rpartition("/")[0]
        place = folder.removesuffix("/metadata")
        row = new_row(TABLE, name.key, name.name, metastore.call.principal, location, {**_NO_TABLE, _LOCATION: place})
        self._commits.check(metastore, Plan(name, TABLE, {}, location, row))

    def commit(self, metastore: Metastore, changes: Sequence[tuple[Name, Json]]) -> list[MetadataFile]:
        """Change tables, all or none; the files that they point to now. A change that changes nothing writes none."""
        if len(changes) == 1 and (appended := self._appended(metastore, *changes[0])) is not None:
            return [appended]

        def attempt() -> list[MetadataFile]:
            plans = [self._plan(metastore, name, request) for name, request in changes]
            to_do = [plan for plan in plans if isinstance(plan, Plan)]
            written = iter(self._commits.carry_out(metastore, to_do) if to_do else ())
            return [next(written) if isinstance(plan, Plan) else plan for plan in plans]

        return _until_current(attempt)

    def replace_view(self, metastore: Metastore, name: Name, request: Json) -> MetadataFile:
        requirements, updates = objects(request, "requirements"), objects(request, "updates")

        def attempt() -> MetadataFile:
            row = metastore.row_of(name, VIEW)
            base = self.file_of(row, name)
            now_ms = self._clock.milliseconds()
            value = replaced_view(normalized_view(base.value), requirements, updates, now_ms)
            plan = self._changed(name, row, base, value, next_location(value, base.location), VIEW)
            if not self._is_placed(row, value):
                plan = self._placed(metastore, plan)
            return self._commits.carry_out(metastore, [plan])[0]

        return _until_current(attempt)

    def drop(self, metastore: Metastore, name: Name, kind: str = TABLE, *, purges: bool = False) -> MetadataFile | None:
        """The last metadata file, where it can be read. With `purges` a directory goes that nothing else uses."""
        row = metastore.row_of(name, kind)
        try:
            file = self.file_of(row, name)
        except IcebergError:
            # A table whose file is gone can be dropped.
            file = None
        try:
            metastore.perform("drop_table", dbname=name.key, name=name.name, deleteData=False)
        except IcebergError as error:
            if error.kind == "NotFoundException":
                raise missing(name, kind) from error
            raise
        self._files.forget(name.stored)
        location = row.sd.location if row.sd else None
        # As HiveCatalog stores `gc.enabled`.
        keeps = (row.parameters or {}).get(EXTERNAL_PURGE_KEY, "").lower() == "false"
        if purges and location and not keeps:
            self._tables.delete_directories([LeftDirectory(location, may_be_used=True)])
        return file

    def rename(self, metastore: Metastore, source: Name, target: Name, kind: str = TABLE) -> None:
        metastore.row_of(source, kind)
        metastore.database(target.catalog, target.namespace)
        there = metastore.row(target)
        if there is not None:
            raise cannot_rename(source, target, there)

        def attempt() -> None:
            row = metastore.row_of(source, kind)
            request = AlterTableRequest(
                dbName=source.key,
                tableName=source.name,
                table=msgspec.structs.replace(row, dbName=target.key, tableName=target.name, catName=None),
                expectedParameterKey=METADATA_LOCATION,
                expectedParameterValue=pointer(row),
            )
            try:
                metastore.perform("alter_table_req", req=request)
            except IcebergError as error:
                # A commit was faster, which the row that was read would undo.
                if "The table has been modified" in str(error):
                    raise Outdated from error
                raise

        _until_current(attempt)

    def _appended(self, metastore: Metastore, name: Name, request: Json) -> MetadataFile | None:
        """The file after an append to a table that rebases appends; None for every other commit."""
        append = append_of(objects(request, "requirements"), objects(request, "updates"))
        call = metastore.call
        if append is None or (call.lease, call.lock_id, call.txn_id) != (None, None, None):
            return None
        row = metastore.row(name)
        if row is None or kind_of(row) != TABLE or (row.parameters or {}).get(REBASE, "").lower() != "true":
            return None
        number, place = needed(append.snapshot, "snapshot-id", int), needed(append.snapshot, "manifest-list", str)
        base = self.file_of(row, name)
        known = normalized(base.value)
        if not self._is_placed(row, known) or not is_own(known, place) or "table-uuid" not in known:
            return None
        if not has_branch(append, known):
            return None
        committer = self._commits.check(metastore, Plan(name, TABLE, base.value, base.location, row, base))
        try:
            append = with_manifests(append, self._files.manifests(place))
        except IcebergError:
            # A repetition, whose list may be gone by now; another may be right as it is.
            return base if with_id(known["snapshots"], "snapshot-id", number) else None
        # The caller was checked for this table, and not for one that takes its name meanwhile.
        is_same = {"type": "assert-table-uuid", "uuid": known["table-uuid"]}
        append = msgspec.structs.replace(append, requirements=[*append.requirements, is_same])
        return self._together.result(name, SentAppend(call, append, current_call_key(), committer))

    def _append_all(self, name: Name, appends: Sequence[SentAppend]) -> Sequence[MetadataFile | Exception]:
        """Put appends one behind the other. Those of one user are one commit, and so one change of that user."""
        groups: dict[Hashable, list[int]] = {}
        for place, one in enumerate(appends):
            user = one.call.principal, one.call.real_user, one.committer.locks
            groups.setdefault(user, []).append(place)
        found: dict[int, MetadataFile | Exception] = {}
        # The outcome of each is kept under its own key.
        with answering(None):
            for places in groups.values():
                results = self._append_group(name, [appends[place] for place in places])
                found.update(zip(places, results, strict=True))
        return [found[place] for place in range(len(appends))]

    def _append_group(self, name: Name, appends: Sequence[SentAppend]) -> Sequence[MetadataFile | Exception]:
        try:
            return _until_current(lambda: self._append_once(name, appends))
        except AlreadyConcluded as error:
            if len(appends) == 1:
                return [error]
        except Exception as error:
            return [error] * len(appends)
        # A key came in twice at once, which is the failure of its own call only.
        return [self._append_group(name, [one])[0] for one in appends]

    def _append_once(self, name: Name, appends: Sequence[SentAppend]) -> Sequence[MetadataFile | Exception]:
        found = self._store.read(lambda snapshot: snapshot.table(*name.stored))
        if found is None or kind_of(found.table) != TABLE:
            raise missing(name, TABLE)
        base = self.file_of(found.table, name)
        known = normalized(base.value)
        if not self._is_placed(found.table, known):
            raise commit_failed("Requirement failed: the table has moved")
        chain = Chain(known, self._files, self._clock.milliseconds())
        failures, added = list[IcebergError | None](), list[SentAppend]()
        for one in appends:
            before = chain.value
            failures.append(chain.add(one.append))
            if chain.value is not before:
                added.append(one)
        keys = [one.key for one in added if one.key is not None]
        if len({(key.principal, key.text) for key in keys}) < len(keys):
            raise AlreadyConcluded
        if not added:
            return [base if failure is None else failure for failure in failures]
        value = with_log(chain.value, known, base.location)
        plan = self._changed(name, found.table, base, value, next_location(value, base.location), TABLE)
        # The change of all is that of the first.
        call, committer = added[0].call, added[0].committer
        try:
            with acting(committer.actor), locking(committer.locks):
                (written,) = self._commits.write(call, [plan], chain.lists, keys)
        except LockedByAnother as error:
            made = [with_id(known["snapshots"], "snapshot-id", one.append.snapshot["snapshot-id"]) for one in appends]
            return [
                failure or (base if is_made else when_locked(one.call, error))
                for one, failure, is_made in zip(appends, failures, made, strict=True)
            ]
        return [written if failure is None else failure for failure in failures]

    def _plan(self, metastore: Metastore, name: Name, request: Json) -> Plan | MetadataFile:
        """The plan of one change; the file of a table that stays as it is."""
        requirements, updates = objects(request, "requirements"), objects(request, "updates")
        now_ms = self._clock.milliseconds()
        row = metastore.row(name)
        if any(each.get("type") == "assert-create" for each in requirements):
            metastore.database(name.catalog, name.namespace)
            if row is not None and kind_of(row) == VIEW:
                raise exists_already(name, TABLE, row)
            if row is not None:
                raise commit_failed(f"Requirement failed: table already exists: {name}")
            value = committed(None, requirements, updates, now_ms, None)
            assert value is not None
            if not value.get(_LOCATION):
                raise invalid("updates: a new table needs set-location")
            return self._new(metastore, name, value, TABLE)
        if row is None or kind_of(row) != TABLE:
            raise missing(name, TABLE, row)
        base = self.file_of(row, name)
        known = normalized(base.value)
        changed = committed(known, requirements, updates, now_ms, base.location)
        if changed is None:
            return base
        plan = self._changed(name, row, base, changed, next_location(changed, base.location), TABLE)
        # Hive may have moved the row, and another table may be in its place.
        return plan if self._is_placed(row, changed) else self._placed(metastore, plan)

    def _new(self, metastore: Metastore, name: Name, value: Json, kind: str, file: str | None = None) -> Plan:
        """The plan of a table or view that is made, from a file that is there or with a new one."""
        location = file or next_location(value, None)
        row = new_row(kind, name.key, name.name, metastore.call.principal, location, value)
        # Whether a hidden table has the name is told to those who may make tables.
        self._commits.check(metastore, Plan(name, kind, value, location, row))
        try:
            row = self._tables.preview(row)
        except ThriftException as error:
            raise translated(error) from error
        return self._placed(metastore, Plan(name, kind, value, location, row))

    def _changed(self, name: Name, row: Table, base: MetadataFile, value: Json, location: str, kind: str) -> Plan:
        # As the row is stored, without what answers show.
        plain = msgspec.structs.replace(row, catName=None)
        after = with_metadata(kind, plain, base.value, location, value)
        place = self._normalized(value[_LOCATION])
        sd = msgspec.structs.replace(stored_descriptor(required(after.sd, "storage descriptor")), location=place)
        return Plan(name, kind, value, location, msgspec.structs.replace(after, sd=sd), base)

    def _new_location(self, metastore: Metastore, name: Name, kind: str, given: str | None) -> str:
        """The place of a new table, which is its own. Raises IcebergError for a given one that is not."""
        database = metastore.database(name.catalog, name.namespace)
        there = metastore.row(name)
        if there is not None:
            raise exists_already(name, kind, there)
        if given is not None:
            location = given.rstrip("/")
            if not location:
                raise bad_request("location is empty")
            return location
        location = self._warehouse.default_table_location(database, normalize(name.name))
        try:
            is_taken = self._directories.exists(location)
        except FileSystemError as error:
            raise bad_request(str(error)) from error
        return f"{location}-{uuid.uuid4().hex[:12]}" if is_taken else location

    def file_of(self, row: Table, name: Name) -> MetadataFile:
        """The metadata file that a row points to. Raises IcebergError for one of another table, which may be hidden."""
        return self._file_at(self._pointer(row, name))

    def _pointer(self, row: Table, name: Name) -> Pointer:
        """Raises IcebergError for a row without a file, or with one in the place of another table."""
        location = pointer(row)
        if not location:
            raise IcebergError("NotFoundException", f"{name} has no metadata_location")
        own = row.sd.location if row.sd else None
        found = Pointer(location, row, name, bool(own) and is_own({_LOCATION: own}, location))
        if not found.is_own:
            place = self._normalized(location)
            if self._store.read(lambda snapshot: is_of_another(snapshot, place, name.stored)):
                text = f"the metadata file of {name} lies in the place of another table"
                raise IcebergError("ForbiddenException", text)
        return found

    def _file_at(self, found: Pointer) -> MetadataFile:
        file = self._files.of(found.name.stored, found.location)
        # Files of dropped tables stay, and who may not see them may know where they are.
        if not found.is_own and not (
            isinstance(file.value.get(_LOCATION), str) and self._is_placed(found.row, file.value)
        ):
            text = f"the metadata file of {found.name} is that of a table elsewhere"
            raise IcebergError("ForbiddenException", text)
        return file

    def _is_placed(self, row: Table, metadata: Json) -> bool:
        """True if metadata has the location of its row, which the caller's rights are about."""
        own = row.sd.location if row.sd else None
        return bool(own) and self._normalized(own or "") == self._normalized(metadata[_LOCATION])

    def _normalized(self, location: str) -> str:
        return self._warehouse.normalized(location.rstrip("/"))

    def _placed(self, metastore: Metastore, plan: Plan) -> Plan:
        """The plan with its new place. Raises IcebergError for that of another table, to those who may use it."""
        self._commits.check(metastore, plan)
        placed = msgspec.structs.replace(plan, new_place=self._normalized(plan.value[_LOCATION]))
        self._store.read(lambda snapshot: check_place(snapshot, placed))
        return placed


def _until_current(attempt: Callable[[], T]) -> T:
    """The result of an attempt that no other change was faster than. Raises IcebergError (409) after some."""
    for _ in range(_ATTEMPTS):
        try:
            return attempt()
        except Outdated:
            continue
    raise too_many()


def _read_as(kind: str, file: MetadataFile) -> Json:
    """The metadata of a table or view in a file. Raises IcebergError for what is none."""
    return normalized(file.value) if kind == TABLE else normalized_view(file.value)


def _owner_type(field: str, properties: Mapping[str, str]) -> PrincipalType:
    """The kind of a namespace's owner, by default a user. Raises IcebergError that names the field."""
    kind = properties.get(_OWNER_TYPE, PrincipalType.USER.name)
    if kind not in PrincipalType.__members__:
        raise bad_request(f"{field}.{_OWNER_TYPE} must be one of {', '.join(PrincipalType.__members__)}")
    return PrincipalType[kind]


def _changed_database(
    warehouse: Warehouse, removals: Container[str], updates: dict[str, str], database: Database
) -> Database:
    """A database with other properties. Raises IcebergError."""
    after = {key: value for key, value in _properties(database).items() if key not in removals} | updates
    owner_type = _owner_type("updates", after)
    return msgspec.structs.replace(
        database,
        description=after.get(_COMMENT),
        locationUri=warehouse.normalized(updates[_LOCATION]) if _LOCATION in updates else database.locationUri,
        parameters={key: value for key, value in after.items() if key not in _RESERVED},
        ownerName=after.get(_OWNER),
        ownerType=owner_type if _OWNER in after else None,
    )


def _properties(database: Database) -> dict[str, str]:
    """The properties of a namespace as HiveCatalog shows them."""
    found = dict(database.parameters or {})
    if database.locationUri:
        found[_LOCATION] = database.locationUri
    if database.description:
        found[_COMMENT] = database.description
    if database.ownerName:
        found[_OWNER] = database.ownerName
        if database.ownerType is not None:
            found[_OWNER_TYPE] = PrincipalType(database.ownerType).name
    return found


def _paged(names: Sequence[str], page: Page) -> tuple[Sequence[str], str | None]:
    """One page, and the token of the next: the last name of this one."""
    if page.token is None and page.size is None:
        return names, None
    behind = [name for name in names if name > (page.token or "")]
    shown = behind if page.size is None else behind[: page.size]
    return shown, shown[-1] if len(shown) < len(behind) else None
