"""What is left out of answers: all that the caller may not see."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from hms_gateway.catalog.arguments import database_name, with_fields
from hms_gateway.catalog.notifications import event_selection
from hms_gateway.catalog.rights.decisions import ROLE, Permissions, Visible
from hms_gateway.catalog.rights.policy import PUBLIC_ROLE, Action, Principal, Securable
from hms_gateway.metastore.ports.store import EventId, EventSelection, Snapshot, Store
from hms_gateway.metastore.vocabulary.names import DATABASE, FUNCTION, normalize, trim
from hms_gateway.rpc.call import Call, Uncacheable
from hms_gateway.rpc.structs import EncodedList, MetaException, RightAnswer, Struct, Table
from hms_gateway.rpc.structs.base import EncodedTexts
from hms_gateway.rpc.structs.paths import argument_paths

if TYPE_CHECKING:
    from hms_gateway.catalog.rights.keeper import PolicyKeeper
    from hms_gateway.catalog.rights.policy import Policy, Securable


Answer: TypeAlias = Callable[[Permissions, Struct, Any, tuple[str, ...], Callable[[], Any]], Any]


class _Seen:
    """What a caller sees, each database looked up once for an answer."""

    def __init__(self, rights: Permissions) -> None:
        self._rights = rights
        self._visible: dict[str, Visible] = {}

    def database(self, name: str | None) -> bool:
        return self._rights.decide(Action.SEE, Securable(normalize(name or "") or "\0")).allowed

    def tables(self, database: str) -> Visible:
        found = self._visible.get(database)
        if found is None:
            found = self._visible[database] = self._rights.visible(database)
        return found

    def table(self, database: str | None, table: str | None) -> bool:
        if not table:
            return self.database(database)
        return bool(self.tables(normalize(database or "")).select([normalize(table)]))

    def named(self, name: str) -> bool:
        """A table by `db.table`, or `catalog.db.table`."""
        database, _, table = name.rpartition(".")
        return bool(table) and self.table(database.rpartition(".")[2], table)


def _items(value: Any) -> list[Any]:
    """A list that may be one that is read while it is sent."""
    if isinstance(value, EncodedTexts) and not isinstance(value, list) and hasattr(value, "text_chunks"):
        try:
            return [text for chunk in value.text_chunks() for text in chunk]
        finally:
            value.close()
    if isinstance(value, EncodedList) and not isinstance(value, list):
        try:
            return [struct for chunk in value.struct_chunks() for struct in chunk]
        finally:
            value.close()
    return list(value or ())


def _unwrapped(value: Any) -> tuple[Any, bool]:
    return (value.answer, True) if isinstance(value, Uncacheable) else (value, False)


def _kept(value: Any, is_uncacheable: bool) -> Any:
    return Uncacheable(value) if is_uncacheable else value


def _databases(rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Any) -> Any:
    """Not kept: a database may be seen because of one of its tables."""
    names, _ = _unwrapped(value)
    seen = _Seen(rights)
    return Uncacheable([name for name in _items(names) if seen.database(name)])


def _database_objects(rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Any) -> Any:
    response, _ = _unwrapped(value)
    seen = _Seen(rights)
    kept = [one for one in _items(response.databases) if seen.database(one.name)]
    return Uncacheable(with_fields(response, databases=kept))


def _table_names(rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Any) -> Any:
    """A number of names that the caller asks for is of those that it sees."""
    database = _database_at(arguments, paths[0])
    visible = rights.visible(database)
    limit = getattr(arguments, "max_tables", None)
    names, is_uncacheable = _unwrapped(value)
    if limit is not None and limit >= 0 and not visible.everything:
        arguments.max_tables = -1  # type: ignore[attr-defined]
        names, _ = _unwrapped(handle())
        return Uncacheable(visible.select(_items(names))[:limit])
    if visible.everything:
        return value
    return _kept(visible.select(_items(names)), is_uncacheable)


def _table_infos(rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Any) -> Any:
    infos, _ = _unwrapped(value)
    visible = rights.visible(_database_at(arguments, paths[0]))
    if visible.everything:
        return value
    request: Any = getattr(arguments, paths[0].partition(".")[0])
    limit = request.limit
    if limit is not None and limit >= 0:
        request.limit = None
        infos, _ = _unwrapped(handle())
    kept = set(visible.select([one.tblName for one in _items(infos)]))
    found = [one for one in _items(infos) if one.tblName in kept]
    return Uncacheable(found if limit is None or limit < 0 else found[:limit])


def _table_metas(rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Any) -> Any:
    metas, _ = _unwrapped(value)
    seen = _Seen(rights)
    return Uncacheable([one for one in _items(metas) if seen.table(one.dbName, one.tableName)])


def _table_objects(rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Any) -> Any:
    answer, is_uncacheable = _unwrapped(value)
    tables = _items(getattr(answer, "tables", answer))
    seen = _Seen(rights)
    kept = [_without_hidden_sources(one, seen) for one in tables if seen.table(one.dbName, one.tableName)]
    changed = with_fields(answer, tables=kept) if isinstance(answer, Struct) else kept
    return _kept(changed, is_uncacheable or len(kept) < len(tables))


def _table(rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Any) -> Any:
    """A view shows the tables that it was built from."""
    answer, is_uncacheable = _unwrapped(value)
    table = answer if isinstance(answer, Table) else getattr(answer, "table", None)
    if not isinstance(table, Table) or table.creationMetadata is None:
        return value
    shown = _without_hidden_sources(table, _Seen(rights))
    return _kept(shown if table is answer else with_fields(answer, table=shown), is_uncacheable)


def _without_hidden_sources(table: Any, seen: _Seen) -> Any:
    made = getattr(table, "creationMetadata", None)
    if made is None:
        return table
    names = [name for name in made.tablesUsed or () if seen.named(name)]
    sources = [
        one
        for one in made.sourceTables or ()
        if one.table is not None and seen.table(one.table.dbName, one.table.tableName)
    ]
    made = with_fields(made, tablesUsed=set(names), sourceTables=sources if made.sourceTables else made.sourceTables)
    return with_fields(table, creationMetadata=made)


def _found_names(rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Any) -> Any:
    """As many as are asked for, of those that the caller sees."""
    wanted = getattr(arguments, "max_names", None)
    if wanted is not None and wanted > 0:
        arguments.max_names = 2**31 - 1  # type: ignore[attr-defined]
        value = handle()
    seen = _Seen(rights)
    text: str = getattr(arguments, "text", None) or ""
    db_text, dot, name = trim(text).lower().rpartition(".")
    if dot and not seen.database(db_text):
        # Else a database of this very name would be the only one that is looked through.
        arguments.text = name  # type: ignore[attr-defined]
        value = [one for one in _items(_unwrapped(handle())[0]) if one.kind != DATABASE and db_text in one.db_name]
    found, _ = _unwrapped(value)
    kept = [one for one in _items(found) if seen.table(one.db_name, None if one.kind == FUNCTION else one.name)]
    return Uncacheable(kept[:wanted] if wanted is not None and wanted > 0 else kept)


def _database_counts(rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Any) -> Any:
    """Numbers say how much is hidden, so those of databases that are seen as a whole."""
    seen = _Seen(rights)
    return Uncacheable([one for one in _items(_unwrapped(value)[0]) if seen.tables(one.db_name).everything])


def _functions(rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Any) -> Any:
    response, _ = _unwrapped(value)
    seen = _Seen(rights)
    kept = [one for one in _items(response.functions) if seen.database(one.dbName)]
    return Uncacheable(with_fields(response, functions=kept))


def events_answer(store: Store) -> Answer:
    """The events that the caller sees; the others are gaps in the ids.

    Empty only where the log ends: a client that follows it asks again from the last event it has. The log may be
    long, so the database looks for the next event that is seen.
    """

    def answer(rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Any) -> Any:
        request: Any = arguments.rqst  # type: ignore[attr-defined]
        seen = _Seen(rights)
        response, _ = _unwrapped(value)
        while True:
            events = _items(response.events)
            found = [one for one in events if one.dbName and seen.table(one.dbName, one.tableName)]
            if found or not events:
                return Uncacheable(with_fields(response, events=found))
            request.lastEvent = events[-1].eventId
            firsts = store.read(partial(_first_events, event_selection(request)))
            following = min((first for db, table, first in firsts if db and seen.table(db, table)), default=None)
            if following is None:
                return Uncacheable(with_fields(response, events=[]))
            request.lastEvent = following - 1
            response, _ = _unwrapped(handle())

    return answer


def _first_events(selection: EventSelection, snapshot: Snapshot) -> list[tuple[str, str | None, EventId]]:
    return snapshot.first_events(selection)


def _locks(rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Any) -> Any:
    response, _ = _unwrapped(value)
    seen = _Seen(rights)
    return with_fields(response, locks=[one for one in _items(response.locks) if _sees_lock(rights, seen, one)])


def _blocking_locks(rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Any) -> Any:
    found, _ = _unwrapped(value)
    seen = _Seen(rights)
    return [one for one in _items(found) if _sees_lock(rights, seen, one.lock)]


def _sees_lock(rights: Permissions, seen: _Seen, lock: Any) -> bool:
    return bool(lock.user == rights.user) or seen.table(lock.dbname, lock.tablename)


def _leases(rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Any) -> Any:
    found, _ = _unwrapped(value)
    seen = _Seen(rights)
    return [one for one in _items(found) if one.user == rights.user or seen.table(one.db_name, one.table_name)]


def _compactions(rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Any) -> Any:
    response, _ = _unwrapped(value)
    seen = _Seen(rights)
    kept = [one for one in _items(response.compacts) if seen.table(one.dbname, one.tablename)]
    return with_fields(response, compacts=kept)


def _txn_infos(rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Any) -> Any:
    response, _ = _unwrapped(value)
    return with_fields(response, open_txns=[one for one in _items(response.open_txns) if one.user == rights.user])


def _roles(rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Any) -> Any:
    names, _ = _unwrapped(value)
    return [name for name in _items(names) if name in rights.roles]


def _role_members(rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Any) -> Any:
    """Of a role that the caller may grant; of another one of the caller's, the caller's own entry."""
    response, _ = _unwrapped(value)
    role = getattr(getattr(arguments, "request", None), "roleName", None)
    if role is not None and rights.may_grant_role(role):
        return value
    kept = [one for one in _items(response.principalGrants) if _party(one.principalType, one.principalName, rights)]
    return with_fields(response, principalGrants=kept)


def _privileges(rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Any) -> Any:
    """Those of the caller, and all on what the caller owns."""
    found, _ = _unwrapped(value)

    def is_shown(one: Any) -> bool:
        if _party(one.principalType, one.principalName, rights):
            return True
        ref = one.hiveObject
        if ref is None or not ref.dbName:
            return False
        return rights.decide(Action.OWN, Securable(normalize(ref.dbName), normalize(ref.objectName or ""))).allowed

    return [one for one in _items(found) if is_shown(one)]


def _party(kind: int | None, name: str | None, rights: Permissions) -> bool:
    party = Principal(int(kind or 0), name or "")
    return party in rights.parties or party == Principal(ROLE, PUBLIC_ROLE)


def _foreign_keys(rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Any) -> Any:
    response, is_uncacheable = _unwrapped(value)
    kept = _visible_keys(_Seen(rights), response.foreignKeys)
    return _kept(with_fields(response, foreignKeys=kept), is_uncacheable)


def _constraints(rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Any) -> Any:
    response, is_uncacheable = _unwrapped(value)
    lists = response.allTableConstraints
    if lists is None or not lists.foreignKeys:
        return value
    shown = with_fields(lists, foreignKeys=_visible_keys(_Seen(rights), lists.foreignKeys))
    return _kept(with_fields(response, allTableConstraints=shown), is_uncacheable)


def _visible_keys(seen: _Seen, keys: Iterable[Any]) -> list[Any]:
    return [
        one
        for one in _items(keys)
        if seen.table(one.pktable_db, one.pktable_name) and seen.table(one.fktable_db, one.fktable_name)
    ]


def _database_at(arguments: Struct, path: str) -> str:
    ((place,),) = argument_paths((path,)).slots(arguments)
    try:
        return normalize(database_name(place.get()) or "")
    except MetaException:
        return ""


ANSWERS: Final[Mapping[str, Answer]] = {
    "databases": _databases,
    "database_objects": _database_objects,
    "table": _table,
    "table_names": _table_names,
    "table_infos": _table_infos,
    "table_metas": _table_metas,
    "table_objects": _table_objects,
    "functions": _functions,
    "database_counts": _database_counts,
    "found_names": _found_names,
    "locks": _locks,
    "blocking_locks": _blocking_locks,
    "leases": _leases,
    "compactions": _compactions,
    "txn_infos": _txn_infos,
    "roles": _roles,
    "role_members": _role_members,
    "privileges": _privileges,
    "foreign_keys": _foreign_keys,
    "constraints": _constraints,
}


# Decisions of the gateway about a user with their reasons, for administrators who ask.


_OFF = 'authorization is not "grants": every user may do everything, whatever is said here'


class ExplainedRights:
    """By the policy that calls are decided by, or would be where rights are not enforced (`is_enforced`).

    `keeper` raises MetaException for rules that cannot be read, `groups_of` gives the groups of the groups file,
    `users` those of the password file, None where it cannot be read.
    """

    def __init__(
        self,
        store: Store,
        administrators: Collection[str],
        keeper: "Callable[[], PolicyKeeper]",
        groups_of: Callable[[str], frozenset[str]],
        users: Callable[[], Collection[str] | None],
        *,
        is_enforced: bool,
    ) -> None:
        self._store = store
        self._administrators = administrators
        self._keeper = keeper
        self._groups_of = groups_of
        self._users = users
        self._is_enforced = is_enforced

    def explain_right(
        self,
        call: Call,
        user: str,
        groups: Sequence[str] | None,
        action: str,
        db_name: str | None,
        tbl_name: str | None,
    ) -> RightAnswer:
        # Only here, since a gateway of one user needs none of it.
        from hms_gateway.catalog.rights.policy import Action, Securable

        if call.principal not in self._administrators:
            raise MetaException(
                f"user {call.principal} is not an administrator; what others may do is for the users that the setting "
                "administrators names"
            )
        if not user:
            raise MetaException("the user is empty; write the name that the user logs in with")
        actions = [each.value for each in Action]
        if action not in actions:
            raise MetaException(f"the action {action} is not known; the actions are {', '.join(actions)}")
        thing = Securable(normalize(database_name(db_name) or ""), normalize(tbl_name or ""))
        keeper, proved = self._keeper(), groups or ()
        decision = keeper.permissions(user, self._groups_of(user).union(proved)).decide(Action(action), thing)
        notes = [] if self._is_enforced else [_OFF]
        if not self._store.read(lambda snapshot: _exists(snapshot, thing)):
            notes.append(f"{thing} does not exist")
        policy = keeper.policy()
        notes += [f"no grant, role or rule names the group {one}" for one in proved if not _is_named(one, policy)]
        users = self._users()
        if users is not None and user not in users:
            notes.append(f"user {user} is not in the password file; a directory or an issuer may know the name")
        return RightAnswer(decision.allowed, decision.why, notes)


def _exists(snapshot: Snapshot, thing: "Securable") -> bool:
    if thing.table:
        return snapshot.table(thing.database, thing.table) is not None
    return not thing.database or snapshot.database(thing.database) is not None


def _is_named(group: str, policy: "Policy") -> bool:
    """True if any grant, role, owner or rule is about the group."""
    from hms_gateway.catalog.rights.decisions import GROUP

    parties = {*policy.held, *policy.members, *(owner for owner in policy.databases.values() if owner is not None)}
    return any(party.kind == GROUP and party.name == group for party in parties) or any(
        group in rule.groups for rule in policy.rules
    )
