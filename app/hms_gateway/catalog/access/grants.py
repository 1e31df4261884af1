"""Privileges on the whole catalog, databases, tables, partitions and columns (semantics §2.18).

They are stored and returned here, and enforced by `catalog.rights`. What a grant is on is kept by id, so it follows
renames.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from hms_gateway.catalog.access.grant_rows import (
    Grant,
    Grantee,
    GrantId,
    GrantObject,
    GrantRows,
    StoredGrant,
    note_changed_rights,
    split_privileges,
)
from hms_gateway.catalog.access.roles import all_roles_of, check_role, is_grant, principal
from hms_gateway.catalog.arguments import is_newer, with_fields, with_plain_name
from hms_gateway.metastore.checks.errors import required, unstorable_as_meta
from hms_gateway.metastore.checks.selection import TableName, values_name
from hms_gateway.metastore.ports.store import Snapshot, Store, StoredTable, Transaction
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.metastore.vocabulary.parameters import says_true
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    EncodedList,
    GrantRevokePrivilegeRequest,
    GrantRevokePrivilegeResponse,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    MetaException,
    Partition,
    PrincipalPrivilegeSet,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
)
from hms_gateway.rpc.structs.base import items_of
from hms_gateway.rpc.structs.catalogs import DEFAULT_CATALOG, catalog_of
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.presented import creation_seconds
from hms_gateway.storage.catalog.statistics import StatisticsRows

PARTITION_LEVEL_PRIVILEGE: Final = "PARTITION_LEVEL_PRIVILEGE"

_KINDS: Final[dict[int, str]] = {
    HiveObjectType.GLOBAL: "user",
    HiveObjectType.DATABASE: "database",
    HiveObjectType.TABLE: "table",
    HiveObjectType.PARTITION: "partition",
    HiveObjectType.COLUMN: "column",
}
_REFRESHED: Final = (HiveObjectType.DATABASE, HiveObjectType.TABLE, HiveObjectType.COLUMN)


class Privileges:
    """Methods on privileges.

    Every refusal is a MetaException, the only exception these methods declare (semantics §13 row 20).
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def get_privilege_set(
        self, call: Call, hiveObject: HiveObjectRef, user_name: str, group_names: list[str]
    ) -> PrincipalPrivilegeSet:
        """Privileges of a user, their groups and their roles on one object; who has none has an empty list."""
        target, groups = required(with_plain_name(hiveObject), "object"), group_names or ()

        def work(snapshot: Snapshot) -> PrincipalPrivilegeSet:
            on = _find(snapshot, target, needs_column=True)
            grants = [] if on is None else [stored.grant for stored in GrantRows(snapshot).on(on)]
            if target.objectType == HiveObjectType.GLOBAL:
                return _global_set(grants, user_name, groups)
            return _privilege_set(grants, user_name, groups, all_roles_of(snapshot, user_name, groups))

        return self._store.read(work)

    def list_privileges(
        self, call: Call, principal_name: str | None, principal_type: int, hiveObject: HiveObjectRef
    ) -> list[HiveObjectPrivilege]:
        """Grants of a principal on one object, on all of a kind, or on everything; no principal means all."""
        target = required(with_plain_name(hiveObject), "object")
        of = None if principal_name is None else principal(principal_name, principal_type)

        def work(snapshot: Snapshot) -> list[StoredGrant]:
            kind = target.objectType
            if kind is None or (kind != HiveObjectType.GLOBAL and target.dbName is None):
                if of is None:
                    return GrantRows(snapshot).of_kind(kind)
                return GrantRows(snapshot).of_principal(of, kind)
            on = _find(snapshot, target, needs_column=False)
            found = [] if on is None else GrantRows(snapshot).on(on, of_any_column=_is_of_any_column(target))
            return [stored for stored in found if of is None or stored.grant.principal == of]

        newer = is_newer(call, hiveObject.dbName) or hiveObject.catName is not None
        catalog = DEFAULT_CATALOG if newer else None
        # Without an object, those in all catalogs for callers that are told of which each is.
        of_catalog = hiveObject.catName or (None if newer else DEFAULT_CATALOG)
        found = sorted(self._store.read(work), key=_rank)
        return [_shown(stored, catalog) for stored in found if _is_in(of_catalog, stored.db_name)]

    def grant_privileges(self, call: Call, privileges: PrivilegeBag | None) -> bool:
        """Grant all of the bag or nothing; what is on an object that is not there is left out, as in Hive."""
        given = self._dated(_entries(privileges))

        def work(tx: Transaction) -> None:
            known: dict[GrantObject, set[_Source]] = {}
            granted = [grant for entry in given for grant in self._granted(tx, entry, known)]
            GrantRows(tx).insert(granted)
            if granted:
                note_changed_rights(tx)

        with unstorable_as_meta():
            self._store.write(work)
        return True

    def revoke_privileges(self, call: Call, privileges: PrivilegeBag) -> bool:
        self._revoke(privileges)
        return True

    def grant_revoke_privileges(self, call: Call, request: GrantRevokePrivilegeRequest) -> GrantRevokePrivilegeResponse:
        request = required(request, "request")
        if is_grant(request.requestType):
            self.grant_privileges(call, request.privileges)
        else:
            self._revoke(request.privileges, grant_option_only=bool(request.revokeGrantOption))
        return GrantRevokePrivilegeResponse(success=True)

    def refresh_privileges(
        self,
        call: Call,
        objToRefresh: HiveObjectRef,
        authorizer: str,
        grantRequest: GrantRevokePrivilegeRequest,
    ) -> GrantRevokePrivilegeResponse:
        """Make the grants of one authorizer on an object, or on all columns of a table, exactly those of the bag."""
        bag = required(grantRequest, "grantRequest").privileges
        target = required(with_plain_name(objToRefresh), "object to refresh")
        if target.objectType not in _REFRESHED:
            raise MetaException(f"Unexpected object type {_kind_name(target.objectType)}")
        given = self._dated(_entries(bag))

        def work(tx: Transaction) -> None:
            found = _find(tx, target, needs_column=False)
            if found is None:
                return
            of_columns = target.objectType == HiveObjectType.COLUMN
            wanted = {}
            for entry in given:
                for grant in self._grants_of(tx, entry, authorizer):
                    wanted[_identity(grant)] = grant
            superseded = []
            for stored in GrantRows(tx).on(found, of_any_column=of_columns):
                if stored.grant.authorizer != authorizer:
                    continue
                if wanted.pop(_identity(stored.grant), None) is None:
                    superseded.append(stored.grant_id)
            GrantRows(tx).delete(superseded)
            GrantRows(tx).insert(list(wanted.values()))
            if superseded or wanted:
                note_changed_rights(tx)

        with unstorable_as_meta():
            self._store.write(work)
        return GrantRevokePrivilegeResponse(success=True)

    def _revoke(self, bag: PrivilegeBag | None, *, grant_option_only: bool = False) -> None:
        """Revoke all of the bag or nothing, or only the right to grant them on."""
        given = _entries(bag)

        def work(tx: Transaction) -> None:
            standing = _StandingGrants(tx)
            for entry in given:
                _revoke_one(tx, entry, standing, grant_option_only)
            GrantRows(tx).delete(standing.revoked)
            GrantRows(tx).clear_grant_options(standing.cleared)
            if standing.revoked or standing.cleared:
                note_changed_rights(tx)

        self._store.write(work)

    def _dated(self, entries: Sequence[HiveObjectPrivilege]) -> list[HiveObjectPrivilege]:
        """With the times that are stored."""
        now = self._clock.seconds()

        def dated(info: PrivilegeGrantInfo) -> PrivilegeGrantInfo:
            return msgspec.structs.replace(info, createTime=creation_seconds(info.createTime, now))

        return [
            one if one.grantInfo is None else msgspec.structs.replace(one, grantInfo=dated(one.grantInfo))
            for one in entries
        ]

    def _granted(
        self, tx: Transaction, entry: HiveObjectPrivilege, known: dict[GrantObject, set["_Source"]]
    ) -> list[Grant]:
        """What an entry of a bag adds to what is `known` about its object, which is read once for the whole bag."""
        grants = self._grants_of(tx, entry, entry.authorizer)
        if not grants:
            return []
        on = grants[0].on
        if on.object_type == HiveObjectType.PARTITION:
            _check_partition_level(tx, required(entry.hiveObject, "object"))
        if on not in known:
            known[on] = {_source(stored.grant) for stored in GrantRows(tx).on(on)}
        for grant in grants:
            if _source(grant) in known[on]:
                where = _where(required(entry.hiveObject, "object"))
                raise MetaException(f"{grant.privilege} is already granted{where} by {grant.grantor}")
        known[on].update(map(_source, grants))
        return grants

    def _grants_of(self, tx: Transaction, entry: HiveObjectPrivilege, authorizer: str | None) -> list[Grant]:
        """What one entry of a bag grants; nothing when its table is not there, as in Hive (semantics §2.18)."""
        to, privileges = _principal_of(tx, entry), _privileges_of(entry)
        target = required(entry.hiveObject, "object")
        on = _find(tx, target, needs_column=True)
        if on is None and target.objectType == HiveObjectType.DATABASE:
            raise MetaException(f"There is no database named {target.dbName}")
        if on is None:
            return []
        info = required(entry.grantInfo, "grant")
        return [
            Grant(
                on=on,
                principal=to,
                privilege=privilege,
                create_time=info.createTime or 0,
                grant_option=bool(info.grantOption),
                grantor=info.grantor,
                grantor_type=info.grantorType,
                authorizer=authorizer,
            )
            for privilege in privileges
        ]


def with_privileges(
    store: Store,
    table_name: TableName,
    partitions: list[Partition] | EncodedList,
    user: str | None,
    groups: Sequence[str] | None,
) -> list[Partition] | EncodedList:
    """Partitions with what a user may do with each, where the table asks for that (semantics §4.6); else as given.

    Without a user it is what the groups may do.
    """

    def work(snapshot: Snapshot) -> list[Partition] | EncodedList:
        table = table_name.load(snapshot)
        if not has_partition_privileges(table):
            return partitions
        roles = all_roles_of(snapshot, user, groups or ())
        by_id = GrantRows(snapshot).on_partitions(table.table_id)
        each = items_of(partitions)
        names = [make_name(table.key_names, one.values or []) for one in each]
        ids = StatisticsRows(snapshot).partition_ids(table, names)
        return [
            msgspec.structs.replace(
                one,
                privileges=_privilege_set(by_id.get(ids[name], []) if name in ids else [], user, groups or (), roles),
            )
            for one, name in zip(each, names, strict=True)
        ]

    return store.read(work)


def has_partition_privileges(table: StoredTable) -> bool:
    """Whether partitions of the table have privileges of their own."""
    return says_true(table.table.parameters, PARTITION_LEVEL_PRIVILEGE)


class _StandingGrants:
    """The grants on the objects of a bag while it is revoked, read once for each object, and what is to be changed."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._objects: set[GrantObject] = set()
        # In order, by whose, on what and which; besides by the authorizer, or without.
        self._found: defaultdict[object, OrderedDict[GrantId, StoredGrant]] = defaultdict(OrderedDict)
        self.revoked: list[GrantId] = []
        self.cleared: list[GrantId] = []

    def first(self, on: GrantObject, of: Grantee, privilege: str, authorizer: str | None) -> StoredGrant | None:
        """The oldest one that is left; of any authorizer when None is given."""
        if on not in self._objects:
            self._objects.add(on)
            for stored in GrantRows(self._tx).on(on):
                for key in _keys_of(on, stored.grant):
                    self._found[key][stored.grant_id] = stored
        key = (on, of, privilege) if authorizer is None else (on, of, privilege, authorizer)
        return next(iter(self._found[key].values()), None)

    def revoke(self, on: GrantObject, stored: StoredGrant) -> None:
        self.revoked.append(stored.grant_id)
        for key in _keys_of(on, stored.grant):
            del self._found[key][stored.grant_id]

    def clear_grant_option(self, on: GrantObject, stored: StoredGrant) -> None:
        self.cleared.append(stored.grant_id)
        for key in _keys_of(on, stored.grant):
            self._found[key][stored.grant_id] = msgspec.structs.replace(
                stored, grant=msgspec.structs.replace(stored.grant, grant_option=False)
            )


def _keys_of(on: GrantObject, grant: Grant) -> tuple[object, object]:
    held = (on, grant.principal, grant.privilege)
    return held, (*held, grant.authorizer)


def _revoke_one(
    tx: Transaction, entry: HiveObjectPrivilege, standing: _StandingGrants, grant_option_only: bool
) -> None:
    of, privileges = _principal_of(tx, entry), _privileges_of(entry)
    target = required(entry.hiveObject, "object")
    on = _find(tx, target, needs_column=True)
    for privilege in privileges:
        found = None if on is None else standing.first(on, of, privilege, entry.authorizer)
        if on is None or found is None:
            raise MetaException(f"No {_kind_name(target.objectType)} grant found for privileges {privilege}")
        if not grant_option_only:
            standing.revoke(on, found)
        elif found.grant.grant_option:
            standing.clear_grant_option(on, found)
        else:
            raise MetaException(f"User {of.name} does not have grant option with privilege {privilege}")


def _entries(bag: PrivilegeBag | None) -> list[HiveObjectPrivilege]:
    entries = [required(entry, "privilege") for entry in required(bag, "privileges").privileges or ()]
    return [with_fields(entry, hiveObject=with_plain_name(entry.hiveObject)) for entry in entries]


def _principal_of(snapshot: Snapshot, entry: HiveObjectPrivilege) -> Grantee:
    found = principal(entry.principalName, entry.principalType)
    if found.principal_type == PrincipalType.ROLE:
        check_role(snapshot, found.name)
    return found


def _privileges_of(entry: HiveObjectPrivilege) -> list[str]:
    found = split_privileges(required(entry.grantInfo, "grant").privilege)
    if not found:
        raise MetaException("privilege must not be empty")
    return found


def _find(snapshot: Snapshot, ref: HiveObjectRef, *, needs_column: bool) -> GrantObject | None:
    """What a reference is to; None when there is no such object. Raises MetaException for one that cannot be."""
    kind = required(ref.objectType, "object type")
    if kind not in _KINDS:
        raise MetaException(f"There are no privileges on objects of type {kind}")
    if kind == HiveObjectType.GLOBAL:
        return GrantObject(kind)
    if kind == HiveObjectType.DATABASE:
        database = snapshot.database(normalize(required(ref.dbName, "database name")))
        return None if database is None else GrantObject(kind, database_id=database.database_id)
    column = None
    if kind == HiveObjectType.COLUMN:
        column = required(ref.columnName, "column name") if needs_column else ref.columnName
    table = TableName(ref.dbName, ref.objectName).find(snapshot)
    if table is None:
        return None
    found = GrantObject(kind, table_id=table.table_id, column=None if column is None else normalize(column))
    if kind == HiveObjectType.PARTITION or (kind == HiveObjectType.COLUMN and ref.partValues):
        name = values_name(table, ref.partValues)
        partition_id = StatisticsRows(snapshot).partition_ids(table, [name]).get(name)
        return None if partition_id is None else msgspec.structs.replace(found, partition_id=partition_id)
    return found


def _check_partition_level(snapshot: Snapshot, ref: HiveObjectRef) -> None:
    table = TableName(ref.dbName, ref.objectName).load(snapshot)
    if not has_partition_privileges(table):
        raise MetaException(
            f"{PARTITION_LEVEL_PRIVILEGE} is not set for table {table.table.dbName}.{table.table.tableName}"
        )


def _is_of_any_column(ref: HiveObjectRef) -> bool:
    return ref.objectType == HiveObjectType.COLUMN and ref.columnName is None


def _identity(grant: Grant) -> object:
    """Everything but when it was granted."""
    return msgspec.structs.replace(grant, create_time=0)


_Source: TypeAlias = tuple[Grantee, str, str, str | None]


def _source(grant: Grant) -> _Source:
    """Who has which privilege from whom; the same twice is refused."""
    return grant.principal, grant.privilege, (grant.grantor or "").lower(), grant.authorizer


def _where(ref: HiveObjectRef) -> str:
    """Where something is granted, as Hive's texts say it."""
    place = f"{ref.dbName},{ref.objectName}"
    partition = "" if not ref.partValues else f",{'/'.join(ref.partValues)}"
    match ref.objectType:
        case HiveObjectType.GLOBAL:
            return ""
        case HiveObjectType.DATABASE:
            return f" on database {ref.dbName}"
        case HiveObjectType.COLUMN:
            return f" on column {ref.columnName} [{place}{partition}]"
        case _:
            return f" on {_kind_name(ref.objectType)} [{place}{partition}]"


def _kind_name(object_type: int | None) -> str:
    return _KINDS.get(object_type or 0, str(object_type))


def _privilege_set(
    grants: Iterable[Grant], user: str | None, groups: Sequence[str], roles: Sequence[str]
) -> PrincipalPrivilegeSet:
    by_principal = _by_principal(grants)

    def of(kind: int, names: Sequence[str]) -> dict[str, list[PrivilegeGrantInfo]]:
        return {name: by_principal.get(Grantee(name, int(kind)), []) for name in names}

    return PrincipalPrivilegeSet(
        userPrivileges=None if user is None else of(PrincipalType.USER, [user]),
        groupPrivileges=of(PrincipalType.GROUP, groups) if groups else None,
        rolePrivileges=of(PrincipalType.ROLE, roles) if roles else None,
    )


def _global_set(grants: Iterable[Grant], user: str | None, groups: Sequence[str]) -> PrincipalPrivilegeSet:
    """Without roles, and without those who have nothing."""
    by_principal = _by_principal(grants)
    of_user = [] if user is None else by_principal.get(Grantee(user, PrincipalType.USER), [])
    of_groups = {name: found for name in groups if (found := by_principal.get(Grantee(name, PrincipalType.GROUP)))}
    return PrincipalPrivilegeSet(
        userPrivileges={user: of_user} if user is not None and of_user else None,
        groupPrivileges=of_groups if groups else None,
    )


def _by_principal(grants: Iterable[Grant]) -> dict[Grantee, list[PrivilegeGrantInfo]]:
    found: dict[Grantee, list[PrivilegeGrantInfo]] = {}
    for grant in grants:
        found.setdefault(grant.principal, []).append(_info(grant))
    return found


def _info(grant: Grant) -> PrivilegeGrantInfo:
    return PrivilegeGrantInfo(grant.privilege, grant.create_time, grant.grantor, grant.grantor_type, grant.grant_option)


def _is_in(catalog: str | None, db_name: str | None) -> bool:
    """True without a catalog, and for what is granted on everything."""
    return catalog is None or db_name is None or catalog_of(db_name) == normalize(catalog)


def _shown(stored: StoredGrant, catalog: str | None) -> HiveObjectPrivilege:
    grant = stored.grant
    return HiveObjectPrivilege(
        hiveObject=HiveObjectRef(
            catName=catalog,
            objectType=grant.on.object_type,
            dbName=stored.db_name,
            objectName=stored.table_name,
            partValues=None if stored.partition_values is None else list(stored.partition_values),
            columnName=grant.on.column,
        ),
        principalName=grant.principal.name,
        principalType=grant.principal.principal_type,
        grantInfo=_info(grant),
        authorizer=grant.authorizer,
    )


def _rank(stored: StoredGrant) -> tuple[int, bool, int]:
    """The order in which Hive puts the kinds together."""
    on = stored.grant.on
    return on.object_type, on.partition_id is not None, stored.grant_id
