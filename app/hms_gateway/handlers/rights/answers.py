"""What is left out of answers: all that the caller may not see."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from hms_gateway.catalog.arguments import database_name, with_fields
from hms_gateway.catalog.notifications import event_selection
from hms_gateway.catalog.rights.decisions import GROUP, ROLE, Permissions, Visible
from hms_gateway.catalog.rights.keeper import PolicyKeeper
from hms_gateway.catalog.rights.policy import PUBLIC_ROLE, Action, Policy, Principal, Securable
from hms_gateway.metastore.ports.store import EventId, EventSelection, Snapshot, Store
from hms_gateway.metastore.vocabulary.names import DATABASE, FUNCTION, normalize, trim
from hms_gateway.rpc.call import Call, Uncacheable
from hms_gateway.rpc.structs import MetaException, RightAnswer, Struct, Table
from hms_gateway.rpc.structs.base import items_of
from hms_gateway.rpc.structs.catalogs import InvalidCatalogMarker, key_of_qualified
from hms_gateway.rpc.structs.paths import argument_paths

Answer: TypeAlias = Callable[["Asked"], Any]


class Asked:
    """A call's answer on its way to the caller, who sees what `rights` say; each database is looked up once for it."""

    def __init__(
        self, rights: Permissions, arguments: Struct, value: Any, paths: tuple[str, ...], handle: Callable[[], Any]
    ) -> None:
        self.rights = rights
        self.arguments: Any = arguments
        self.is_uncacheable = isinstance(value, Uncacheable)
        self.value = value.answer if isinstance(value, Uncacheable) else value
        self.paths = paths
        self._handle = handle
        self._visible: dict[str, Visible] = {}

    def ask_again(self) -> Any:
        """The answer to the arguments as they are now."""
        value = self._handle()
        return value.answer if isinstance(value, Uncacheable) else value

    def kept(self, value: Any) -> Any:
        """A reply as cacheable as the handler's."""
        return Uncacheable(value) if self.is_uncacheable else value

    def sees_database(self, name: str | None) -> bool:
        return self.rights.decide(Action.SEE, Securable(normalize(name or "") or "\0")).allowed

    def tables(self, database: str) -> Visible:
        found = self._visible.get(database)
        if found is None:
            found = self._visible[database] = self.rights.visible(database)
        return found

    def sees(self, database: str | None, table: str | None) -> bool:
        """True for a table that the caller sees; without one, for a database."""
        if not table:
            return self.sees_database(database)
        return bool(self.tables(normalize(database or "")).select([normalize(table)]))

    def sees_named(self, name: str) -> bool:
        """A table by `db.table`, or `catalog.db.table`."""
        database, _, table = name.rpartition(".")
        try:
            return bool(table) and self.sees(key_of_qualified(database), table)
        except InvalidCatalogMarker:
            return False


def _filtered(field: str, is_seen: Callable[[Asked, Any], bool], *, is_kept: bool = False) -> Answer:
    """The list in a field of the answer, or the answer itself, without what the caller does not see.

    Not kept, unless `is_kept`: what is seen may change without the objects of the reply.
    """

    def answer(asked: Asked) -> Any:
        listed = getattr(asked.value, field) if field else asked.value
        seen = [one for one in items_of(listed) if is_seen(asked, one)]
        shown = with_fields(asked.value, **{field: seen}) if field else seen
        return shown if is_kept else Uncacheable(shown)

    return answer


def _table_names(asked: Asked) -> Any:
    """A number of names that the caller asks for is of those that it sees."""
    visible = asked.rights.visible(_database_at(asked))
    limit = getattr(asked.arguments, "max_tables", None)
    if limit is not None and limit >= 0 and not visible.everything:
        asked.arguments.max_tables = -1
        return Uncacheable(visible.select(items_of(asked.ask_again()))[:limit])
    return asked.kept(asked.value if visible.everything else visible.select(items_of(asked.value)))


def _table_infos(asked: Asked) -> Any:
    visible = asked.rights.visible(_database_at(asked))
    if visible.everything:
        return asked.kept(asked.value)
    request: Any = getattr(asked.arguments, asked.paths[0].partition(".")[0])
    infos, limit = asked.value, request.limit
    if limit is not None and limit >= 0:
        request.limit = None
        infos = asked.ask_again()
    kept = set(visible.select([one.tblName for one in items_of(infos)]))
    found = [one for one in items_of(infos) if one.tblName in kept]
    return Uncacheable(found if limit is None or limit < 0 else found[:limit])


def _table_objects(asked: Asked) -> Any:
    tables = items_of(getattr(asked.value, "tables", asked.value))
    seen = [_without_hidden_sources(one, asked) for one in tables if asked.sees(one.dbName, one.tableName)]
    shown = with_fields(asked.value, tables=seen) if isinstance(asked.value, Struct) else seen
    return Uncacheable(shown) if len(seen) < len(tables) else asked.kept(shown)


def _table(asked: Asked) -> Any:
    """A view shows the tables that it was built from."""
    table = asked.value if isinstance(asked.value, Table) else getattr(asked.value, "table", None)
    if not isinstance(table, Table) or table.creationMetadata is None:
        return asked.kept(asked.value)
    shown = _without_hidden_sources(table, asked)
    return asked.kept(shown if table is asked.value else with_fields(asked.value, table=shown))


def _without_hidden_sources(table: Any, asked: Asked) -> Any:
    made = getattr(table, "creationMetadata", None)
    if made is None:
        return table
    names = [name for name in made.tablesUsed or () if asked.sees_named(name)]
    sources = [
        one
        for one in made.sourceTables or ()
        if one.table is not None and asked.sees(one.table.dbName, one.table.tableName)
    ]
    made = with_fields(made, tablesUsed=set(names), sourceTables=sources if made.sourceTables else made.sourceTables)
    return with_fields(table, creationMetadata=made)


def _found_names(asked: Asked) -> Any:
    """As many as are asked for, of those that the caller sees."""
    arguments, value = asked.arguments, asked.value
    wanted = arguments.max_names
    if wanted is not None and wanted > 0:
        arguments.max_names = 2**31 - 1
        value = asked.ask_again()
    db_text, dot, name = trim(arguments.text or "").lower().rpartition(".")
    if dot and not asked.sees_database(db_text):
        # Else a database of this very name would be the only one that is looked through.
        arguments.text = name
        value = [one for one in items_of(asked.ask_again()) if one.kind != DATABASE and db_text in one.db_name]
    kept = [one for one in items_of(value) if asked.sees(one.db_name, None if one.kind == FUNCTION else one.name)]
    return Uncacheable(kept[:wanted] if wanted is not None and wanted > 0 else kept)


def events_answer(store: Store) -> Answer:
    """The events that the caller sees; the others are gaps in the ids.

    Empty only where the log ends: a client that follows it asks again from the last event it has. The log may be
    long, so the database looks for the next event that is seen.
    """

    def answer(asked: Asked) -> Any:
        request, response = asked.arguments.rqst, asked.value
        while True:
            events = items_of(response.events)
            found = [one for one in events if one.dbName and asked.sees(one.dbName, one.tableName)]
            if found or not events:
                return Uncacheable(with_fields(response, events=found))
            request.lastEvent = events[-1].eventId
            firsts = store.read(partial(_first_events, event_selection(request)))
            following = min((first for db, table, first in firsts if db and asked.sees(db, table)), default=None)
            if following is None:
                return Uncacheable(with_fields(response, events=[]))
            request.lastEvent = following - 1
            response = asked.ask_again()

    return answer


def _first_events(selection: EventSelection, snapshot: Snapshot) -> list[tuple[str, str | None, EventId]]:
    return snapshot.first_events(selection)


def _sees_lock(asked: Asked, lock: Any) -> bool:
    return bool(lock.user == asked.rights.user) or asked.sees(lock.dbname, lock.tablename)


def _role_members(asked: Asked) -> Any:
    """Of a role that the caller may grant; of another one of the caller's, the caller's own entry."""
    role = getattr(getattr(asked.arguments, "request", None), "roleName", None)
    if role is not None and asked.rights.may_grant_role(role):
        return asked.kept(asked.value)
    given = items_of(asked.value.principalGrants)
    kept = [one for one in given if _party(one.principalType, one.principalName, asked.rights)]
    return with_fields(asked.value, principalGrants=kept)


def _shows_privilege(asked: Asked, one: Any) -> bool:
    """Those of the caller, and all on what the caller owns."""
    if _party(one.principalType, one.principalName, asked.rights):
        return True
    ref = one.hiveObject
    if ref is None or not ref.dbName:
        return False
    thing = Securable(normalize(ref.dbName), normalize(ref.objectName or ""))
    return asked.rights.decide(Action.OWN, thing).allowed


def _party(kind: int | None, name: str | None, rights: Permissions) -> bool:
    party = Principal(int(kind or 0), name or "")
    return party in rights.parties or party == Principal(ROLE, PUBLIC_ROLE)


def _foreign_keys(asked: Asked) -> Any:
    return asked.kept(with_fields(asked.value, foreignKeys=_visible_keys(asked, asked.value.foreignKeys)))


def _constraints(asked: Asked) -> Any:
    lists = asked.value.allTableConstraints
    if lists is None or not lists.foreignKeys:
        return asked.kept(asked.value)
    shown = with_fields(lists, foreignKeys=_visible_keys(asked, lists.foreignKeys))
    return asked.kept(with_fields(asked.value, allTableConstraints=shown))


def _visible_keys(asked: Asked, keys: Iterable[Any]) -> list[Any]:
    return [
        one
        for one in items_of(keys)
        if asked.sees(one.pktable_db, one.pktable_name) and asked.sees(one.fktable_db, one.fktable_name)
    ]


def _database_at(asked: Asked) -> str:
    ((place,),) = argument_paths((asked.paths[0],)).slots(asked.arguments)
    try:
        return normalize(database_name(place.get()) or "")
    except MetaException:
        return ""


ANSWERS: Final[Mapping[str, Answer]] = {
    # A database may be seen because of one of its tables.
    "databases": _filtered("", Asked.sees_database),
    "database_objects": _filtered("databases", lambda asked, one: asked.sees_database(one.name)),
    "table": _table,
    "table_names": _table_names,
    "table_infos": _table_infos,
    "table_metas": _filtered("", lambda asked, one: asked.sees(one.dbName, one.tableName)),
    "table_objects": _table_objects,
    "functions": _filtered("functions", lambda asked, one: asked.sees_database(one.dbName)),
    # Numbers say how much is hidden, so those of databases that are seen as a whole.
    "database_counts": _filtered("", lambda asked, one: asked.tables(one.db_name).everything),
    "found_names": _found_names,
    "locks": _filtered("locks", _sees_lock, is_kept=True),
    "blocking_locks": _filtered("", lambda asked, one: _sees_lock(asked, one.lock), is_kept=True),
    "leases": _filtered(
        "", lambda asked, one: one.user == asked.rights.user or asked.sees(one.db_name, one.table_name), is_kept=True
    ),
    "compactions": _filtered("compacts", lambda asked, one: asked.sees(one.dbname, one.tablename), is_kept=True),
    "txn_infos": _filtered("open_txns", lambda asked, one: one.user == asked.rights.user, is_kept=True),
    "roles": _filtered("", lambda asked, name: name in asked.rights.roles, is_kept=True),
    "role_members": _role_members,
    "privileges": _filtered("", _shows_privilege, is_kept=True),
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


def _exists(snapshot: Snapshot, thing: Securable) -> bool:
    if thing.table:
        return snapshot.table(thing.database, thing.table) is not None
    return not thing.database or snapshot.database(thing.database) is not None


def _is_named(group: str, policy: Policy) -> bool:
    """True if any grant, role, owner or rule is about the group."""
    parties = {*policy.held, *policy.members, *(owner for owner in policy.databases.values() if owner is not None)}
    return any(party.kind == GROUP and party.name == group for party in parties) or any(
        group in rule.groups for rule in policy.rules
    )
