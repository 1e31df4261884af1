"""Members of roles, owners, and who made transactions and locks: what decisions on rights are made from, as rows."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Select, Text, bindparam, exists, or_, select

from hms_gateway.catalog.access.grant_rows import GrantRows, StoredGrant
from hms_gateway.catalog.rights.decisions import GROUP, ROLE, USER, Owners, Permissions
from hms_gateway.catalog.rights.policy import (
    ADMIN_ROLE,
    EVERYTHING,
    PARTS,
    Action,
    GrantedPrivilege,
    Policy,
    Principal,
    Rule,
    Securable,
    privilege_name,
    read_place,
)
from hms_gateway.catalog.rights.rules_file import RulesFile
from hms_gateway.metastore.changes.events import (
    ALTER_DATABASE,
    ALTER_TABLE,
    CREATE_DATABASE,
    CREATE_TABLE,
    DROP_DATABASE,
    DROP_TABLE,
    RESTORE_CATALOG,
)
from hms_gateway.metastore.ports.store import EventId, Snapshot, Store, StoredEvent
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.rpc.structs import HiveObjectType, PrincipalType, Table
from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.schema.catalog import DATABASES, PRIVILEGES, ROLE_MEMBERS, ROLES, TABLES
from hms_gateway.storage.schema.txn import LEASES, LOCKS, TXNS
from hms_gateway.storage.sql.filter_sql import has_id_among, is_among
from hms_gateway.storage.sql.fragments import decode_extra
from hms_gateway.storage.sql.repository import AggregateRows, is_storable

_HAS_GRANTS: Final = exists().where(PRIVILEGES.c.table_id == TABLES.c.table_id)
# Every table has a database. An outer join begins with the tables: before it has figures about them, MariaDB 11 would
# rather begin with all databases, and read all tables of each.
_OWNERS: Final = select(DATABASES.c.name, TABLES.c.name, TABLES.c.owner, TABLES.c.extra, _HAS_GRANTS).join_from(
    TABLES, DATABASES, DATABASES.c.database_id == TABLES.c.database_id, isouter=True
)
_OWNER_OF: Final = _OWNERS.where(DATABASES.c.name == bindparam("db_name"), TABLES.c.name == bindparam("tbl_name"))


class RoleMember(NamedTuple):
    role: str
    name: str
    principal_type: int
    with_admin_option: bool


class DatabaseOwner(NamedTuple):
    database: str
    owner: str | None
    owner_type: int | None
    location: str | None


class TableOwner(NamedTuple):
    """`has_grants`: on the table, its columns or its partitions."""

    database: str
    table: str
    owner: str | None
    owner_type: int
    has_grants: bool


class RightsRows(AggregateRows):
    def role_members(self) -> list[RoleMember]:
        columns = (ROLES.c.name, ROLE_MEMBERS.c.principal_name, ROLE_MEMBERS.c.principal_type)
        statement = select(*columns, ROLE_MEMBERS.c.grant_option).join(ROLES, ROLES.c.role_id == ROLE_MEMBERS.c.role_id)
        return [RoleMember(*row) for row in self._connection.execute(statement)]

    def database_owners(self) -> list[DatabaseOwner]:
        statement = select(DATABASES.c.name, DATABASES.c.owner_name, DATABASES.c.owner_type, DATABASES.c.location)
        return [DatabaseOwner(*row) for row in self._connection.execute(statement)]

    def table_owners(self, tables: Sequence[tuple[str, str]]) -> list[TableOwner]:
        """Owners of the tables that exist."""
        found = []
        for db_name, tbl_name in tables:
            if is_storable(db_name) and is_storable(tbl_name):
                rows = self._connection.execute(_OWNER_OF, {"db_name": db_name, "tbl_name": tbl_name})
                found += [_table_owner(row) for row in rows]
        return found

    def tables_owned_by(self, names: Sequence[str]) -> list[TableOwner]:
        """Tables with an owner of one of the names, whatever kind of owner it is."""
        statement = _OWNERS.where(is_among(TABLES.c.owner, names, self._dialect))
        return [_table_owner(row) for row in self._connection.execute(statement)]

    def tables_placed(self, directory: str) -> list[tuple[TableOwner, str]]:
        """The tables of all databases that lie at or below a directory, with their locations."""
        if not is_storable(directory):
            return []
        rows = self._connection.execute(_placed(self._dialect), {"directory": directory, "below": f"{directory}/"})
        return [(_table_owner(row), location) for *row, location in rows]

    def txn_users(self, txn_ids: Sequence[int]) -> dict[int, str]:
        """Users of the transactions that are known."""
        statement = select(TXNS.c.txn_id, TXNS.c.user_name).where(has_id_among(TXNS.c.txn_id, txn_ids, self._dialect))
        return {row.txn_id: row.user_name for row in self._connection.execute(statement)}

    def txn_users_between(self, first: int, last: int) -> dict[int, str]:
        statement = select(TXNS.c.txn_id, TXNS.c.user_name).where(TXNS.c.txn_id >= first, TXNS.c.txn_id <= last)
        return {row.txn_id: row.user_name for row in self._connection.execute(statement)}

    def lock_user(self, lock_id: int) -> str | None:
        found: str | None = self._connection.execute(
            select(LOCKS.c.user_name).where(LOCKS.c.lock_id == lock_id).limit(1)
        ).scalar()
        return found

    def lease_user(self, lease_id: int) -> str | None:
        found: str | None = self._connection.execute(
            select(LEASES.c.user_name).where(LEASES.c.lease_id == lease_id).limit(1)
        ).scalar()
        return found


@cache
def _placed(dialect: Dialect) -> Select[Any]:
    place, below = TABLES.c.location, bindparam("below", type_=Text)
    return _OWNERS.add_columns(place).where(or_(place == bindparam("directory"), dialect.begins_with(place, below)))


def _table_owner(row: Any) -> TableOwner:
    db_name, tbl_name, owner, extra, has_grants = row
    kind = None if extra is None or owner is None else decode_extra(Table, extra).ownerType
    return TableOwner(
        db_name, tbl_name, owner, int(PrincipalType.USER) if kind is None else int(kind), bool(has_grants)
    )


# The policy of now: read from the catalog, and again when the log of events says that it has changed.
#
# What grants, roles and owners say is a version of the catalog like everything else: each change of them has an event.
# So before a decision the newest event is asked for, as the cache does, and what came since the last decision is
# applied. A change that was committed before a call arrived, through whichever gateway, is known to its decision. An
# operator reads at the start of a gateway which parties may do everything.


PERMISSIONS_MAX: Final = 1_000
# Of more users, groups and roles than this those are forgotten that no remembered permissions has.
PARTIES_MAX: Final = 10_000
# After more tables than this have changed at once, owners are read anew.
TABLES_MAX: Final = 1_000
_OF_TABLES: Final = frozenset({CREATE_TABLE, ALTER_TABLE, DROP_TABLE})
_DROP_PARTITION: Final = "DROP_PARTITION"
_OF_POLICY: Final = frozenset({"CHANGE_RIGHTS", CREATE_DATABASE, ALTER_DATABASE, DROP_DATABASE, RESTORE_CATALOG})


class Remembered(NamedTuple):
    """The permissions of a caller at a version of the catalog, and a check that they still hold.

    `holds` takes tables and the events since, and tells whether decisions about these tables are the same after them.
    """

    permissions: Permissions
    version: EventId
    holds: Callable[[frozenset[tuple[str, str]], Sequence[StoredEvent]], bool]


class PolicyKeeper:
    """Safe to call from several threads."""

    def __init__(self, store: Store, administrators: frozenset[str], rules: RulesFile | None = None) -> None:
        self._store = store
        self._administrators = administrators
        self.rules = rules or RulesFile(None)
        self._lock = threading.Lock()
        self._policy: Policy | None = None
        self._generation = 0
        self._version = EventId(0)
        # Tables with grants, whose events change more than an owner, and those with grants on partitions.
        self._granted: frozenset[tuple[str, str]] = frozenset()
        self._partly_granted: frozenset[tuple[str, str]] = frozenset()
        self._owned: dict[Principal, dict[str, frozenset[str]]] = {}
        self._parties_max = PARTIES_MAX
        self._known: OrderedDict[tuple[str, frozenset[str], bool], Permissions] = OrderedDict()

    def permissions(self, user: str, groups: frozenset[str], may_administer: bool = True) -> Permissions:
        """Permissions of a caller now, with `may_administer` as in `rpc.call.Call`. Raises StoreUnavailable."""
        version = self._store.version()
        generation = self.rules.look()
        with self._lock:
            policy = self._current(version, generation)
            key = (user, groups, may_administer)
            found = self._known.get(key)
            if found is None:
                found = self._known[key] = self._seen(Permissions(user, groups, policy, may_administer=may_administer))
                if len(self._known) > PERMISSIONS_MAX:
                    self._known.popitem(last=False)
            else:
                self._known.move_to_end(key)
            return found

    def remembered(self, user: str, groups: frozenset[str], may_administer: bool = True) -> Remembered | None:
        """The known permissions of a caller, without waiting; None where too little is known."""
        # Read first: the permissions may be newer, but not older.
        version = self._version
        permissions = None if self.rules.is_due else self._known.get((user, groups, may_administer))
        if permissions is None or self.rules.look() != self._generation:
            return None
        return Remembered(permissions, version, partial(self._holds, version))

    def _holds(self, version: EventId, tables: frozenset[tuple[str, str]], events: Sequence[StoredEvent]) -> bool:
        touched = _touched(events, version, self._partly_granted)
        return touched is not None and self._granted.isdisjoint(touched) and tables.isdisjoint(touched)

    @property
    def parties(self) -> int:
        """Of how many users, groups and roles it is known what they own."""
        return len(self._owned)

    def policy(self) -> Policy:
        """The whole of it, for showing. Raises StoreUnavailable."""
        version, generation = self._store.version(), self.rules.look()
        with self._lock:
            return self._current(version, generation)

    def _current(self, version: EventId, generation: int) -> Policy:
        policy = self._policy
        if version < self._version:
            # Another call has learned more meanwhile, unless the database was put back to an older state.
            version = self._store.version()
        if policy is None or version < self._version:
            return self._load(generation)
        if version != self._version:
            events = self._store.changes_since(self._version)
            tables = _touched(events, self._version, self._partly_granted)
            if tables is None or not self._refresh_owners(tables):
                return self._load(generation)
            self._version = events[-1].event_id
        if generation != self._generation:
            policy = msgspec.structs.replace(policy, rules=self.rules.rules)
            self._policy, self._generation = policy, generation
            self._known.clear()
        return policy

    def _load(self, generation: int) -> Policy:
        # Other owners may have been read for parties that are not asked about any more.
        self._owned, self._known = {}, OrderedDict()
        rules = self.rules.rules

        def work(snapshot: Snapshot) -> tuple[Policy, list[StoredGrant]]:
            version = snapshot.current_event_id()
            grants = GrantRows(snapshot).of_kind()
            owners = RightsRows(snapshot).database_owners()
            policy = Policy(
                version=version,
                held=_held(grants),
                databases={
                    row.database: None if not row.owner else Principal(row.owner_type or USER, row.owner)
                    for row in owners
                },
                places={row.database: read_place(row.location) for row in owners},
                rules=rules,
                administrators=self._administrators,
                **_memberships(snapshot),
            )
            return policy, grants

        self._policy, grants = self._store.read(work)
        self._granted = _tables_of(grants)
        self._partly_granted = _tables_of(one for one in grants if one.partition_values is not None)
        self._version, self._generation = self._policy.version, generation
        return self._policy

    def _refresh_owners(self, tables: list[tuple[str, str]]) -> bool:
        """Learn who owns these now; False where more than owners may have changed."""
        if not tables:
            return True
        if len(tables) > TABLES_MAX or not self._granted.isdisjoint(tables):
            return False
        rows = self._store.read(lambda snapshot: RightsRows(snapshot).table_owners(tables))
        if any(row.has_grants for row in rows):
            return False
        owners = {(row.database, row.table): Principal(row.owner_type, row.owner) for row in rows if row.owner}
        for party, owned in self._owned.items():
            self._owned[party] = _changed(party, owned, tables, owners)
        for permissions in self._known.values():
            permissions.owners_changed(self._owners_of(permissions.parties))
        return True

    def _seen(self, permissions: Permissions) -> Permissions:
        """The new permissions with what their parties own."""
        if len(self._owned) >= self._parties_max:
            self._forget_unseen()
        missing = [party for party in permissions.parties if party not in self._owned]
        if missing:
            names = sorted({party.name for party in missing})
            rows = self._store.read(lambda snapshot: RightsRows(snapshot).tables_owned_by(names))
            by_party = _by_party(rows)
            for party in missing:
                self._owned[party] = by_party.get(party, {})
        permissions.owners_changed(self._owners_of(permissions.parties))
        return permissions

    def _forget_unseen(self) -> None:
        """Each change of a table is looked at for every party that is known."""
        seen = {party for permissions in self._known.values() for party in permissions.parties}
        self._owned = {party: owned for party, owned in self._owned.items() if party in seen}
        # Where permissions have as many, not for each new one again.
        self._parties_max = max(PARTIES_MAX, 2 * len(self._owned))

    def _owners_of(self, parties: Iterable[Principal]) -> Owners:
        return {party: self._owned.get(party, {}) for party in parties}


def _tables_of(grants: Iterable[StoredGrant]) -> frozenset[tuple[str, str]]:
    return frozenset((one.db_name, one.table_name) for one in grants if one.db_name and one.table_name)


def _touched(
    events: Sequence[StoredEvent], version: EventId, partly_granted: Container[tuple[str, str]]
) -> list[tuple[str, str]] | None:
    """The tables whose owner may have changed; None where anything may have."""
    if not events or events[0].event_id != version + 1:
        return None
    tables: dict[tuple[str, str], None] = {}
    for stored in events:
        event = stored.event
        if event.event_type in _OF_POLICY:
            return None
        if event.event_type == _DROP_PARTITION and (event.db_name, event.table_name) in partly_granted:
            # Grants on partitions end with them.
            return None
        if event.event_type in _OF_TABLES:
            tables[normalize(event.db_name), normalize(event.table_name or "")] = None
            if event.renamed_from is not None:
                tables[event.renamed_from] = None
    return list(tables)


def _changed(
    party: Principal,
    owned: Mapping[str, frozenset[str]],
    tables: list[tuple[str, str]],
    owners: Mapping[tuple[str, str], Principal],
) -> dict[str, frozenset[str]]:
    changed = dict(owned)
    for table in tables:
        db_name, tbl_name = table
        before = changed.get(db_name, frozenset())
        if owners.get(table) == party:
            changed[db_name] = before | {tbl_name}
        elif tbl_name in before:
            changed[db_name] = before - {tbl_name}
    return changed


def _by_party(rows: Iterable[TableOwner]) -> dict[Principal, dict[str, frozenset[str]]]:
    found: dict[Principal, dict[str, set[str]]] = {}
    for row in rows:
        if row.owner:
            found.setdefault(Principal(row.owner_type, row.owner), {}).setdefault(row.database, set()).add(row.table)
    return {party: {name: frozenset(tables) for name, tables in of.items()} for party, of in found.items()}


def _held(grants: Iterable[StoredGrant]) -> dict[Principal, tuple[GrantedPrivilege, ...]]:
    found: dict[Principal, list[GrantedPrivilege]] = {}
    for stored in grants:
        grant, kind = stored.grant, stored.grant.on.object_type
        if kind != HiveObjectType.GLOBAL and not stored.db_name:
            continue
        on = Securable() if kind == HiveObjectType.GLOBAL else Securable(stored.db_name or "", stored.table_name or "")
        party = Principal(grant.principal.principal_type, grant.principal.name)
        grantor = grant.grantor if grant.grantor_type == USER else None
        held = GrantedPrivilege(privilege_name(grant.privilege), on, kind in PARTS, grant.grant_option, grantor or "")
        found.setdefault(party, []).append(held)
    return {party: tuple(held) for party, held in found.items()}


def _memberships(snapshot: Snapshot) -> dict[str, Mapping[Principal, frozenset[str]]]:
    members: dict[Principal, set[str]] = {}
    options: dict[Principal, set[str]] = {}
    for row in RightsRows(snapshot).role_members():
        party = Principal(row.principal_type, row.name)
        members.setdefault(party, set()).add(row.role)
        if row.with_admin_option:
            options.setdefault(party, set()).add(row.role)
    return {
        "members": {party: frozenset(roles) for party, roles in members.items()},
        "options": {party: frozenset(roles) for party, roles in options.items()},
    }


# Of more parties the number is said, and of longer names the beginning.
SHOWN_PARTIES_MAX: Final = 20
NAME_CHARACTERS_MAX: Final = 64


def standing_lines(policy: Policy) -> list[str]:
    """A line about administrators, and one about others who have rights on everything, if there are any."""
    lines = [f"administrators: {_joined(_administrators(policy))}"]
    others = list(_with_everything(policy))
    return [*lines, f"rights on everything: {_joined(others)}"] if others else lines


def _administrators(policy: Policy) -> Iterator[str]:
    yield from (f"{_text(Principal(USER, name))} (setting)" for name in sorted(policy.administrators))
    yield from (f"{_text(party)} (role {ADMIN_ROLE})" for party in _members(policy, Principal(ROLE, ADMIN_ROLE)))
    for rule in policy.rules:
        if Action.ADMIN.value in rule.actions:
            yield _of_rule(rule)


def _with_everything(policy: Policy) -> Iterator[str]:
    """Rights of the role admin are those of administrators."""
    for party, held in sorted(policy.held.items()):
        privileges = sorted({one.privilege for one in held if one.on == EVERYTHING and not one.is_partial})
        if privileges and party != Principal(ROLE, ADMIN_ROLE):
            members = [_text(member) for member in _members(policy, party)]
            holders = f" (granted to {_joined(members)})" if members else ""
            yield f"{_text(party)}{holders} has {_joined(privileges)}"
    for rule in policy.rules:
        if any(database.matches_everything and table is None for database, table in rule.objects):
            yield f"{_of_rule(rule)} has {_joined(sorted(rule.actions))}"


def _members(policy: Policy, role: Principal) -> list[Principal]:
    """All that have a role, also by another one, the nearest first."""
    found: dict[Principal, None] = {}
    waiting = [role]
    for having in waiting:
        if having.kind == ROLE:
            new = [one for one, roles in sorted(policy.members.items()) if having.name in roles and one not in found]
            found.update(dict.fromkeys(new))
            waiting += new
    return [one for one in found if one != role]


def _of_rule(rule: Rule) -> str:
    named = ((USER, rule.users), (GROUP, rule.groups), (ROLE, rule.roles))
    parties = [_text(Principal(kind, name)) for kind, names in named for name in sorted(names)]
    return f"{_joined(parties)} (rule {rule.name[:NAME_CHARACTERS_MAX]!r})"


def _text(party: Principal) -> str:
    return str(party)[:NAME_CHARACTERS_MAX]


def _joined(texts: Iterable[str]) -> str:
    every = list(texts)
    more = [f"{len(every) - SHOWN_PARTIES_MAX} more"] if len(every) > SHOWN_PARTIES_MAX else []
    return ", ".join(every[:SHOWN_PARTIES_MAX] + more) or "none"
