"""Checks of one call: each need of its method against the permissions of the caller."""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from itertools import pairwise
from typing import Any, Final, TypeVar

from hms_gateway.catalog.access.grant_rows import split_privileges
from hms_gateway.catalog.arguments import database_name
from hms_gateway.catalog.functions import FunctionRows
from hms_gateway.catalog.rights.decisions import ROLE, USER, Decision, Permissions
from hms_gateway.catalog.rights.keeper import RightsRows
from hms_gateway.catalog.rights.policy import (
    EVERYTHING,
    PARTS,
    PUBLIC_ROLE,
    Action,
    Principal,
    Securable,
    privilege_name,
)
from hms_gateway.handlers.rights.locations import LocationCheck
from hms_gateway.metastore.ports.store import Snapshot, Store, Transaction
from hms_gateway.metastore.vocabulary.names import DEFAULT_DATABASE, normalize
from hms_gateway.rpc.call import Call, Uncacheable
from hms_gateway.rpc.idl.method_facts import Need
from hms_gateway.rpc.structs import (
    GrantRevokeType,
    HeartbeatTxnRangeResponse,
    HiveObjectType,
    LeaseAlreadyExistsException,
    LockType,
    MetaException,
    PrincipalType,
    PrivilegeGrantInfo,
    Struct,
    Table,
    ThriftException,
)
from hms_gateway.rpc.structs.catalogs import InvalidCatalogMarker, key_of_qualified
from hms_gateway.rpc.structs.paths import Slot, argument_paths
from hms_gateway.runtime.presented import changing_only_if
from hms_gateway.runtime.suspension import Outdated, waited

_T = TypeVar("_T")

# Behind a name that is to be missing. No name has it: it is made anew by each process.
_MARK: Final = f"_{secrets.token_hex(12)}"
# No transaction or lock has this number.
_NO_ID: Final = 9_110_000_000_000_000_000 + secrets.randbelow(10**16)
# No name of a table is this one.
_NO_NAME: Final = "\0"
_SHARED_LEASE: Final = "s"
_SHARED_READS: Final = frozenset({int(LockType.SHARED_READ)})


class CallCheck:
    """One call of one user on its way to the handler."""

    def __init__(
        self,
        store: Store | None,
        permissions: Permissions,
        call: Call,
        arguments: Struct,
        locations: Callable[[Permissions], LocationCheck] | None,
        *,
        is_refused: bool,
    ) -> None:
        """Without a store the checks are Outdated where they would have to read."""
        self._store = store
        self._locations = locations
        self._permissions = permissions
        self._call = call
        self._arguments = arguments
        self._is_refused = is_refused
        self.is_keepable = True
        # Numbers in place of which the caller named others.
        self._hidden_ids: list[int] = []
        self._has_hidden = False
        # Transactions of others within a range.
        self._foreign: list[int] = []
        self._located: list[LocationCheck] = []
        # What was decided about, and the users that requests named.
        self.tables: list[tuple[str, str]] = []
        self._named: list[tuple[Any, str | None]] = []

    def _read(self, work: Callable[[Snapshot], _T]) -> _T:
        if self._store is None:
            raise Outdated
        return self._store.read(work)

    def undone(self, go_on: Callable[[], Any]) -> Any:
        """Result of `go_on`, with the arguments as they were sent."""
        for request, user in self._named:
            request.user = user
        return go_on()

    def through(self, handle: Callable[[], Any]) -> Any:
        """Call the handler. What it answers for arguments that were changed is not kept.

        With a name that is to be missing nothing is changed, also by a handler that does not read that name.
        """
        try:
            with changing_only_if(self._condition) if self._has_hidden or self._located else nullcontext():
                value = waited(handle()) if not self._foreign else self._heartbeat_without(self._foreign, handle)
        except ThriftException as error:
            if self._has_hidden:
                _restore(error, self._hidden_ids)
            if isinstance(error, LeaseAlreadyExistsException):
                self._forget_obstacle(error)
            raise
        if self._has_hidden and _MARK in repr(value):
            raise _denied(self._permissions.user, Action.SEE, "what the call names")
        if self.is_keepable or isinstance(value, Uncacheable):
            return value
        return Uncacheable(value)

    def _condition(self, transaction: Transaction) -> None:
        """Raises MetaException for a change that the call must not make."""
        if self._has_hidden:
            raise MetaException("Permission denied: the call changes something besides what it may not see")
        for located in self._located:
            located.check_again(transaction)

    def check(self, need: Need) -> None:
        """Raises MetaException for what is refused."""
        whole = _WHOLE.get((need.verb, need.kind))
        if whole is not None:
            whole(self, need)
            return
        check = _SPECIAL.get((need.verb, need.kind), CallCheck.check_named_object)
        for places in argument_paths(need.paths).slots(self._arguments):
            check(self, need, *places)

    def check_named_object(self, need: Need, *places: Slot) -> None:
        action = Action(need.verb)
        if need.kind == "named":
            self._check_named(action, places[0].get() or ())
        elif need.kind == "database":
            self._check_database(action, places[0])
        elif need.kind == "function":
            self._check_function(action, *places)
        else:
            self._check_table(action, *places, has_column=need.kind == "column")

    def _check_database(self, action: Action, place: Slot) -> None:
        if place.holder is None:
            return
        thing = Securable(_database(place.get()))
        decision = self._decide(action, thing)
        if not decision.allowed:
            self._refuse(action, thing)
            self._hide(place)

    def _check_table(self, action: Action, db_place: Slot, tbl_place: Slot, *, has_column: bool = False) -> None:
        if db_place.holder is None or tbl_place.holder is None:
            return
        if tbl_place.get() is None and self._is_optional(tbl_place):
            if db_place.get() is not None:
                self._check_database(action, db_place)
            return
        thing = Securable(_database(db_place.get()), _table(tbl_place.get(), has_column=has_column))
        if self._decide(action, thing).allowed:
            return
        self._refuse(action, thing)
        if not self._permissions.decide(Action.SEE, Securable(thing.database)).allowed:
            self._hide(db_place)
        else:
            self._hide(tbl_place, has_column=has_column)

    @staticmethod
    def _is_optional(place: Slot) -> bool:
        """Foreign keys are asked for by one of two tables."""
        return type(place.holder).__name__ == "ForeignKeysRequest"

    def _check_function(self, action: Action, db_place: Slot, name_place: Slot) -> None:
        thing = Securable(_database(db_place.get()))
        if self._decide(action, thing).allowed or self._owns_function(thing.database, name_place.get()):
            return
        self._refuse(action, thing)
        self._hide(db_place)

    def _owns_function(self, db_name: str, name: str | None) -> bool:
        if not name or "\0" in name:
            return False
        found = self._read(lambda snapshot: FunctionRows(snapshot).find(db_name, normalize(name)))
        if found is None or not found.function.ownerName:
            return False
        party = Principal(int(found.function.ownerType or USER), found.function.ownerName)
        return party in self._permissions.parties and party != Principal(ROLE, PUBLIC_ROLE)

    def _check_named(self, action: Action, names: Iterable[str]) -> None:
        """Names such as `db.table`, of which one that is hidden is refused like one that is missing."""
        for name in names:
            # Some clients write `catalog.db.table`.
            database, _, table = name.rpartition(".")
            with suppress(InvalidCatalogMarker):  # it stays a name that no database has
                database = key_of_qualified(database)
            self._demand(action, Securable(_database(database), _table(table)))

    def _demand(self, action: Action, thing: Securable) -> None:
        """Raises MetaException without the right, whether the object exists or not."""
        if not self._decide(action, thing).allowed:
            raise _denied(self._permissions.user, action, thing)

    def check_sources(self, need: Need, place: Slot) -> None:
        """The tables that a view is made of, since its owner learns of their changes."""
        metadata = place.get()
        if metadata is not None:
            self._check_named(Action.SEE, metadata.tablesUsed or ())
            for source in metadata.sourceTables or ():
                self._demand(Action.SEE, Securable(_database(source.table.dbName), _table(source.table.tableName)))

    def check_admin(self, need: Need) -> None:
        raise _denied(self._permissions.user, Action.ADMIN, EVERYTHING)

    def check_leased(self, need: Need, place: Slot) -> None:
        for leased in place.get() or ():
            if leased.db_name is None:
                continue
            is_shared = (leased.lease_type or _SHARED_LEASE).lower() == _SHARED_LEASE
            self._check_either(Action.SEE if is_shared else Action.LOCK, leased.db_name, leased.table_name)

    def _forget_obstacle(self, error: ThriftException) -> None:
        """An obstacle to a lease on a database may be a table in it that the caller does not see."""
        leased = [one for one in getattr(self._arguments, "objs", None) or () if one.db_name and not one.table_name]
        if all(self._permissions.visible(_database(one.db_name)).everything for one in leased):
            return
        wanted, conflicts, _ = (error.message or "").partition(" conflicts with ")
        if conflicts:
            error.message = f"{wanted}{conflicts}another lease"

    def check_components(self, need: Need, place: Slot) -> None:
        for component in place.get() or ():
            action = Action.SEE if component.type in _SHARED_READS else Action.LOCK
            self._check_either(action, component.dbname, component.tablename)

    def _check_either(self, action: Action, db_name: str | None, tbl_name: str | None) -> None:
        self._demand(action, Securable(_database(db_name), normalize(tbl_name) if tbl_name else ""))

    def check_move(self, need: Need, old_db: Slot, old_tbl: Slot, new_db: Slot, new_tbl: Slot) -> None:
        """A new name takes the right to create in its database; another database, to drop the table from its own."""
        if new_db.holder is None or new_tbl.holder is None or new_tbl.get() is None:
            return
        # Without a database the table stays in its own.
        into = old_db if new_db.get() is None else new_db
        old = (_database(_plain(old_db.get())), _table(_plain(old_tbl.get())))
        new = (_database(_plain(into.get())), _table(new_tbl.get()))
        if old != new and not self._has_hidden:
            if old[0] != new[0]:
                self._demand(Action.DROP, Securable(*old))
            self._check_database(Action.CREATE, into)

    def check_give(self, need: Need, *places: Slot) -> None:
        """Another owner is named by owners only; where others name none, the owner stays."""
        *names, owner_place = places
        struct = owner_place.holder
        if struct is None or self._has_hidden:
            return
        owner, kind = owner_place.get(), getattr(struct, "ownerType", None)
        named = [place.get() for place in names]
        thing = Securable(_database(named[0]), _table(named[1]) if need.kind == "table" else "")
        # Most changes are made by owners: whether the object is there is read for others only.
        if self._decide(Action.OWN, thing).allowed:
            return
        is_there, current = self._owner(need.kind, thing, named)
        if not is_there:
            return
        given = None if owner is None else Principal(USER if kind is None else int(kind), owner)
        if given == current:
            return
        if current is None:
            # Spark sends the name of its own account as the owner of what has none.
            owner_place.set(None)
        elif owner is None or (owner == current.name and kind is None):
            owner_place.set(current.name)
            struct.ownerType = current.kind
        else:
            raise _denied(self._permissions.user, Action.OWN, thing)

    def _owner(self, kind: str, thing: Securable, names: list[str | None]) -> tuple[bool, Principal | None]:
        """True if the object is there, and its owner."""
        found: Any
        if kind == "table":
            found = self._read(lambda snapshot: snapshot.table(thing.database, thing.table))
        elif kind == "database":
            found = self._read(lambda snapshot: snapshot.database(thing.database))
        else:
            found = self._read(lambda snapshot: FunctionRows(snapshot).find(thing.database, normalize(names[1] or "")))
        if found is None:
            return False, None
        struct = getattr(found, kind)
        return True, _party(struct.owner if kind == "table" else struct.ownerName, struct.ownerType)

    def check_grant(self, need: Need, bag: Slot, *kinds: Slot) -> None:
        """A bag of privileges, and in requests that may be either whether they are given or taken.

        What the caller may not grant on is refused, whether it exists or not: everything has no name to be missing by.
        """
        takes = need.verb == "revoke" or any(kind.get() == GrantRevokeType.REVOKE for kind in kinds)
        for entry in bag.get() or ():
            if entry is not None and entry.hiveObject is not None and entry.grantInfo is not None:
                self._check_entry(entry, takes=takes)

    def _check_entry(self, entry: Any, *, takes: bool) -> None:
        ref, info = entry.hiveObject, entry.grantInfo
        thing = _granted_on(ref)
        for privilege in map(privilege_name, split_privileges(info.privilege)):
            if takes:
                of = Principal(int(entry.principalType or 0), entry.principalName or "")
                decision = self._permissions.may_revoke(privilege, thing, of, is_partial=ref.objectType in PARTS)
            else:
                decision = self._permissions.may_grant(privilege, thing)
            if not decision.allowed:
                raise _denied(self._permissions.user, Action.OWN, thing)
        info.grantor, info.grantorType = self._permissions.user, int(PrincipalType.USER)

    def check_object(self, need: Need, place: Slot) -> None:
        """The object of privileges, as `grant_privileges` names it."""
        ref = place.get()
        if ref is None or ref.dbName is None or ref.objectType == HiveObjectType.GLOBAL:
            return
        thing = _granted_on(ref) if ref.objectName is not None else Securable(_database(ref.dbName))
        if not self._decide(Action(need.verb), thing).allowed:
            self._hide(Slot(ref, "objectName" if thing.table and self._sees(Securable(thing.database)) else "dbName"))

    def check_table_id(self, need: Need, place: Slot) -> None:
        table_id = place.get()
        if table_id is None:
            return
        found = self._read(lambda snapshot: snapshot.table_with_id(table_id))
        if found is None:
            return
        thing = Securable(found.table.dbName or "", found.table.tableName or "")
        if not self._decide(Action(need.verb), thing).allowed:
            self._refuse(Action(need.verb), thing)
            self._hide_id(place)

    def check_other(self, need: Need) -> None:
        """Tables that a list beside a new table names; the new one itself takes no right, and is what is left out."""
        action = Action(need.verb)
        for made in argument_paths(need.paths[:2]).slots(self._arguments):
            own = [_plain(place.get()) for place in made]
            for places in argument_paths(need.paths[2:]).slots(self._arguments):
                if places[0].holder is None:
                    continue
                db_name, tbl_name = (
                    name if place.get() is None else place.get() for place, name in zip(places, own, strict=True)
                )
                if (_database(db_name), _table(tbl_name)) != (_database(own[0]), _table(own[1])):
                    places[0].set(db_name)
                    places[1].set(tbl_name)
                    self._check_table(action, *places)

    def check_asked(self, need: Need, db_place: Slot, tbl_place: Slot, asked: Slot) -> None:
        """An object that is asked for besides, and left out for callers without the right."""
        if asked.get():
            thing = Securable(_database(_plain(db_place.get())), _table(_plain(tbl_place.get())))
            if not self._decide(Action(need.verb), thing).allowed:
                asked.set(False)
                self.is_keepable = False

    def check_role_grant(self, need: Need, role: Slot, *grantor: Slot) -> None:
        """A role, and who is said to grant it, where the call says so."""
        if not self._permissions.may_grant_role(role.get() or ""):
            raise _denied(self._permissions.user, Action.ADMIN, f"role {role.get()}")
        for place, value in zip(grantor, (self._permissions.user, int(PrincipalType.USER)), strict=False):
            if place.holder is not None:
                place.set(value)

    def check_location(self, need: Need) -> None:
        """What has locations is behind the last path; a name with the mark is that of nothing."""
        if self._locations is None:
            return
        checked = self._locations(self._permissions)
        self._located.append(checked)
        for *names, place in argument_paths(need.paths).slots(self._arguments):
            struct, named = place.get(), [name.get() for name in names]
            if struct is None or any(isinstance(name, str) and _MARK in name for name in named):
                continue
            if len(named) == 1:
                checked.check_database(_database(named[0]), struct)
                continue
            thing = Securable(_database(named[0]), _table(named[1]))
            if isinstance(struct, Table):
                is_named = struct.dbName is not None and struct.tableName is not None
                renamed = Securable(_database(struct.dbName), _table(struct.tableName)) if is_named else thing
                checked.check_table(thing, renamed, struct)
            else:
                checked.check_partitions(thing, struct, named[2] if named[2:] else None)
        checked.finish()

    def check_owner(self, need: Need, place: Slot) -> None:
        """Locks and leases of others are missing."""
        number = place.get()
        if isinstance(number, int) and number > 0:
            user_of = RightsRows.lock_user if need.kind == "lock" else RightsRows.lease_user
            user = self._read(lambda snapshot: user_of(RightsRows(snapshot), number))
            if user not in (None, self._permissions.user):
                self._hide_id(place)

    def check_txn_owner(self, need: Need, place: Slot) -> None:
        given = place.get()
        if isinstance(given, list):
            users = self._txn_users(given)
            place.set([one for one in given if users.get(one, self._permissions.user) == self._permissions.user])
        elif isinstance(given, int) and given > 0:
            users = self._txn_users([given])
            if users.get(given, self._permissions.user) != self._permissions.user:
                self._hide_id(place)

    def heartbeat_range(self, need: Need) -> None:
        """Transactions of others are left out of the range, and answered about as unknown."""
        (path,) = need.paths
        for first, last in argument_paths((*path.split(".."),)).slots(self._arguments):
            if first.get() is not None and last.get() is not None and first.get() <= last.get():
                users = self._txn_users_between(first.get(), last.get())
                self._foreign = sorted(txn_id for txn_id, user in users.items() if user != self._permissions.user)

    def _heartbeat_without(self, foreign: Sequence[int], handle: Callable[[], Any]) -> Any:
        request: Any = self._arguments.txns  # type: ignore[attr-defined]
        first, last = request.min, request.max
        # A range that is too long is refused for its length, with the same number in the text.
        request.min, request.max = _NO_ID, _NO_ID + last - first
        handle()
        aborted: set[int] = set()
        nosuch = set(foreign)
        for before, after in pairwise((first - 1, *foreign, last + 1)):
            if before + 1 < after:
                request.min, request.max = before + 1, after - 1
                part = handle()
                aborted |= set(part.aborted)
                nosuch |= set(part.nosuch)
        return HeartbeatTxnRangeResponse(aborted=aborted, nosuch=nosuch)

    def _txn_users(self, txn_ids: Sequence[int]) -> dict[int, str]:
        return self._read(lambda snapshot: RightsRows(snapshot).txn_users(txn_ids))

    def _txn_users_between(self, first: int, last: int) -> dict[int, str]:
        return self._read(lambda snapshot: RightsRows(snapshot).txn_users_between(first, last))

    def check_self(self, need: Need, place: Slot) -> None:
        if place.get() not in (None, self._permissions.user):
            raise _denied(self._permissions.user, Action.ADMIN, f"user {place.get()}")

    def check_principal(self, need: Need, name: Slot, kind: Slot) -> None:
        if name.get() is None or kind.get() is None:
            return
        party = Principal(int(kind.get()), name.get())
        if party not in self._permissions.parties:
            raise _denied(self._permissions.user, Action.ADMIN, str(party))

    def check_replication(self, need: Need, place: Slot) -> None:
        if place.get() is not None:
            raise _denied(self._permissions.user, Action.ADMIN, EVERYTHING)

    def take_ownership(self, need: Need, place: Slot) -> None:
        """Who makes something owns it, or a group or role of the caller does."""
        struct = place.get()
        if struct is None:
            return
        field = "owner" if hasattr(struct, "owner") else "ownerName"
        party = Principal(int(getattr(struct, "ownerType", None) or USER), getattr(struct, field) or "")
        if party not in self._permissions.parties or party == Principal(ROLE, PUBLIC_ROLE):
            setattr(struct, field, self._permissions.user)
            struct.ownerType = int(PrincipalType.USER)
        for info in _given_with(struct):
            info.grantor, info.grantorType = self._permissions.user, int(PrincipalType.USER)

    def check_new_grants(self, need: Need, place: Slot) -> None:
        """Privileges that come with a new object are its owner's."""
        given = getattr(place.get(), "privileges", None)
        if given is None:
            return
        others = {*(given.userPrivileges or ())} - {getattr(place.get(), "owner", None)}
        if others or given.groupPrivileges or given.rolePrivileges:
            raise _denied(self._permissions.user, Action.ADMIN, EVERYTHING)

    def act(self, need: Need, place: Slot) -> None:
        request = place.get()
        if request is not None:
            self._named.append((request, request.user))
            request.user = self._permissions.user

    def show_to_caller(self, need: Need, user: Slot, groups: Slot) -> None:
        if user.holder is not None and (user.get() or groups.get()):
            if user.get() != self._permissions.user or set(groups.get() or ()) != self._call.groups:
                self.is_keepable = False
            user.set(self._permissions.user)
            groups.set(sorted(self._call.groups))

    def _decide(self, action: Action, thing: Securable) -> Decision:
        self.tables.append((thing.database, thing.table))
        decision = self._permissions.decide(action, thing)
        if decision.through is not None:
            # What is seen because of a table ends with the table, of which the reply does not know.
            self.is_keepable = False
        return decision

    def _sees(self, thing: Securable) -> bool:
        return self._permissions.decide(Action.SEE, thing).allowed

    def _refuse(self, action: Action, thing: Securable) -> None:
        """Raises MetaException, unless the object has to seem missing."""
        if self._is_refused or self._sees(thing):
            raise _denied(self._permissions.user, action, thing)

    def _hide(self, place: Slot, *, has_column: bool = False) -> None:
        self._has_hidden, self.is_keepable = True, False
        name = place.get() or ""
        if name.endswith(_MARK):
            return
        if has_column and "." in name:
            table, dot, column = name.partition(".")
            place.set(f"{table}{_MARK}{dot}{column}")
        else:
            place.set(f"{name}{_MARK}")

    def _hide_id(self, place: Slot) -> None:
        self._has_hidden, self.is_keepable = True, False
        self._hidden_ids.append(place.get())
        place.set(_NO_ID + len(self._hidden_ids))


_WHOLE: Final[Mapping[tuple[str, str], Callable[[CallCheck, Need], None]]] = {
    ("admin", ""): CallCheck.check_admin,
    ("admin", "always"): CallCheck.check_admin,
    ("alter", "other"): CallCheck.check_other,
    ("see", "other"): CallCheck.check_other,
    ("write", "location"): CallCheck.check_location,
    ("own", "range"): CallCheck.heartbeat_range,
}
# By the places of one object.
_SPECIAL: Final[Mapping[tuple[str, str], Callable[..., None]]] = {
    ("see", "leased"): CallCheck.check_leased,
    ("see", "object"): CallCheck.check_object,
    ("alter", "id"): CallCheck.check_table_id,
    ("select", "asked"): CallCheck.check_asked,
    ("lock", "component"): CallCheck.check_components,
    ("move", "table"): CallCheck.check_move,
    **{("give", kind): CallCheck.check_give for kind in ("table", "database", "function")},
    ("see", "sources"): CallCheck.check_sources,
    ("grant", ""): CallCheck.check_grant,
    ("revoke", ""): CallCheck.check_grant,
    ("grant", "role"): CallCheck.check_role_grant,
    ("own", "lock"): CallCheck.check_owner,
    ("own", "txn"): CallCheck.check_txn_owner,
    ("own", "lease"): CallCheck.check_owner,
    ("self", ""): CallCheck.check_self,
    ("principal", ""): CallCheck.check_principal,
    ("replication", ""): CallCheck.check_replication,
    ("owned", "by"): CallCheck.take_ownership,
    ("granted", "by"): CallCheck.check_new_grants,
    ("acted", "by"): CallCheck.act,
    ("shown", "to"): CallCheck.show_to_caller,
}


def known_names(permissions: Permissions, arguments: Any) -> Uncacheable[list[str]] | None:
    """The tables of a database, where grants and owners name them: reading all names would take longer."""
    visible = permissions.visible(_database(_plain(arguments.db_name)))
    if visible.everything or visible.matchers:
        return None
    return Uncacheable(sorted(visible.names))


def _granted_on(ref: Any) -> Securable:
    """The object of a privilege."""
    if ref.objectType == HiveObjectType.GLOBAL:
        return EVERYTHING
    is_database = ref.objectType == HiveObjectType.DATABASE
    return Securable(_database(ref.dbName), "" if is_database else _table(ref.objectName))


def _given_with(table: Any) -> Iterator[PrivilegeGrantInfo]:
    """The privileges that are granted with a new table."""
    privileges = getattr(table, "privileges", None)
    if privileges is not None:
        for given in (privileges.userPrivileges, privileges.groupPrivileges, privileges.rolePrivileges):
            for infos in (given or {}).values():
                yield from infos or ()


def _denied(user: str, action: Action, thing: Securable | str) -> MetaException:
    lacked = "OWNERSHIP" if action is Action.OWN else action.value.upper()
    return MetaException(f"Permission denied: user {user} lacks {lacked} on {thing}")


def _party(name: str | None, kind: int | None) -> Principal | None:
    return Principal(int(kind or USER), name) if name else None


def _plain(name: str | None) -> str | None:
    return name if name is None else name.replace(_MARK, "")


def _database(name: str | None) -> str:
    """The normalised name; that of no database where there is none in the argument but an empty text."""
    if name is None:
        return DEFAULT_DATABASE
    try:
        return normalize(database_name(name) or "") or _NO_NAME
    except MetaException:
        return normalize(name)


def _table(name: str | None, *, has_column: bool = False) -> str:
    text = name or ""
    return normalize(text.partition(".")[0] if has_column else text) or _NO_NAME


def _restore(error: ThriftException, hidden_ids: list[int]) -> None:
    """The caller's own names and numbers in the text."""
    if error.message is None:
        return
    error.message = error.message.replace(_MARK, "") or None
    for number, hidden in enumerate(hidden_ids, 1):
        error.message = (error.message or "").replace(str(_NO_ID + number), str(hidden)) or None
