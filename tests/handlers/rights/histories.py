"""Random changes of a catalog, its grants, roles and owners, and calls whose answers the oracle knows."""

import random
from collections.abc import Sequence
from typing import Any

from hms_gateway.rpc.call import Caller
from hms_gateway.rpc.structs import (
    CheckLockRequest,
    Database,
    FieldSchema,
    GrantRevokePrivilegeRequest,
    GrantRevokeType,
    HiveObjectRef,
    HiveObjectType,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    NotificationEventRequest,
    Role,
    SerDeInfo,
    StorageDescriptor,
    Table,
    UnlockRequest,
)
from tests.handlers.rights.oracle import (
    DATABASES,
    GROUP,
    GROUPS,
    PRIVILEGES,
    PUBLIC,
    ROLE,
    ROLES,
    TABLES,
    USER,
    USERS,
    Oracle,
)
from tests.handlers.rights.privileges import bag
from tests.handlers.rights.replicas import ADMINISTRATOR, Asker, Door, Repeatable, Replica

_ROOT = Caller(ADMINISTRATOR)
_KEPT_CALLS_MAX = 50
_EVENTS_MAX = 20


def new_table(db: str, name: str, owner: str, location: str | None) -> Table:
    sd = StorageDescriptor(cols=[FieldSchema("a", "int")], serdeInfo=SerDeInfo(parameters={}), location=location)
    return Table(name, db, owner, sd=sd, partitionKeys=[FieldSchema("ds", "string")], parameters={})


def located_table(db: str, name: str, owner: str) -> Table:
    return new_table(db, name, owner, f"file:/w/{db}.db/{name}")


class History:
    """One seed, one history. The catalog begins empty."""

    def __init__(self, made: list[Replica], seed: int, others: Sequence[Door] = ()) -> None:
        self.random = random.Random(seed)
        self.asker = Asker(made, self.random, others)
        self.oracle = Oracle()
        self.calls = self.decisions = 0
        # Mostly the call before, so that caches have it.
        self._about = self._some_subject()
        self._kept: list[tuple[Repeatable, Any]] = []
        self._clear()

    def _clear(self) -> None:
        for db in self.root("get_all_databases"):
            if db != "default":
                self.root("drop_database", db, False, True)
        for role in self.root("get_role_names"):
            if role in ROLES:
                self.root("drop_role", role)
        for place in ["", "default"]:
            for one in self.root("list_privileges", None, None, bag("x", place, "x", USER).privileges[0].hiveObject):
                if one.principalName in {*USERS, *GROUPS, "public"}:
                    privilege, kind = one.grantInfo.privilege, one.principalType
                    self.root("revoke_privileges", bag(privilege, place, one.principalName, kind))

    def root(self, name: str, *values: Any) -> Any:
        return self.asker.ask(_ROOT, name, *values)

    def change(self) -> None:
        self.random.choice(
            [self.make_database, self.make_table, self.make_table, self.drop, self.rename, self.give]
            + [self.grant] * 6
            + [self.revoke] * 4
            + [self.member] * 2
            + [self.role]
        )()

    def make_database(self) -> None:
        name, owner = self.random.choice(DATABASES), self.random.choice((*USERS, ADMINISTRATOR))
        if name not in self.oracle.databases:
            assert self.root("create_database", Database(name=name, ownerName=owner)) is None
            self.oracle.databases[name] = (USER, owner)

    def make_table(self) -> None:
        db, tbl = self.random.choice(DATABASES), self.random.choice(TABLES)
        owner = self.random.choice((*USERS, ADMINISTRATOR))
        if db in self.oracle.databases and (db, tbl) not in self.oracle.tables:
            assert self.root("create_table", located_table(db, tbl, owner)) is None
            self.oracle.tables[db, tbl] = (USER, owner)

    def drop(self) -> None:
        if self.oracle.tables and self.random.random() < 0.7:
            db, tbl = self.random.choice(sorted(self.oracle.tables))
            assert self.root("drop_table", db, tbl, False) is None
            self.oracle.drop_tables({(db, tbl)})
        elif len(self.oracle.databases) > 1 and self.random.random() < 0.2:
            db = self.random.choice(sorted(set(self.oracle.databases) - {"default"}))
            assert self.root("drop_database", db, False, True) is None
            self.oracle.drop_database(db)

    def rename(self) -> None:
        if not self.oracle.tables:
            return
        old, db = self.random.choice(sorted(self.oracle.tables)), self.random.choice(sorted(self.oracle.databases))
        new = (db, self.random.choice(TABLES))
        if new in self.oracle.tables or db == "default":
            return
        owner = self.oracle.tables[old]
        assert self.root("alter_table", *old, located_table(*new, owner[1])) is None
        self.oracle.rename(old, new)

    def give(self) -> None:
        owner = self.random.choice(USERS)
        if self.oracle.tables and self.random.random() < 0.5:
            db, tbl = self.random.choice(sorted(self.oracle.tables))
            assert self.root("alter_table", db, tbl, located_table(db, tbl, owner)) is None
            self.oracle.tables[db, tbl] = (USER, owner)
        elif len(self.oracle.databases) > 1:
            db = self.random.choice(sorted(set(self.oracle.databases) - {"default"}))
            kind = self.random.choice((USER, ROLE))
            name = owner if kind == USER else "public"
            assert self.root("alter_database", db, Database(name=db, ownerName=name, ownerType=kind)) is None
            self.oracle.databases[db] = (kind, name)

    def some_grant(self) -> tuple[int, str, str, str, str]:
        parties = [(USER, name) for name in USERS] + [(GROUP, name) for name in GROUPS]
        parties += [(ROLE, name) for name in sorted(self.oracle.roles)] + [PUBLIC]
        places = [("", "")] + [(db, "") for db in sorted(self.oracle.databases)] + sorted(self.oracle.tables) * 4
        weights = [1 if name != "public" else 0.2 for _, name in parties]
        kind, name = self.random.choices(parties, weights)[0]
        db, tbl = self.random.choice(places)
        return kind, name, self.random.choice(PRIVILEGES), db, tbl

    def grant(self) -> None:
        grant = self.some_grant()
        if grant in self.oracle.grants or (not grant[3] and self.random.random() < 0.9):
            return
        kind, name, privilege, db, tbl = grant
        assert self.root("grant_privileges", bag(privilege, f"{db}.{tbl}" if tbl else db, name, kind)) is True
        self.oracle.grants[grant] = ADMINISTRATOR

    def revoke(self) -> None:
        if not self.oracle.grants:
            return
        kind, name, privilege, db, tbl = grant = self.random.choice(sorted(self.oracle.grants))
        assert self.root("revoke_privileges", bag(privilege, f"{db}.{tbl}" if tbl else db, name, kind)) is True
        del self.oracle.grants[grant]

    def role(self) -> None:
        name = self.random.choice(ROLES)
        if name not in self.oracle.roles:
            assert self.root("create_role", Role(name, 0, ADMINISTRATOR)) is True
            self.oracle.roles.add(name)
        elif self.random.random() < 0.4:
            assert self.root("drop_role", name) is True
            self.oracle.drop_role(name)

    def member(self) -> None:
        if not self.oracle.roles:
            return
        role = self.random.choice(sorted(self.oracle.roles))
        parties = [(USER, name) for name in USERS] + [(GROUP, name) for name in GROUPS]
        parties += [(ROLE, name) for name in sorted(self.oracle.roles)]
        kind, name = self.random.choice(parties)
        if (role, kind, name) in self.oracle.members:
            assert self.root("revoke_role", role, name, kind) is True
            self.oracle.members.discard((role, kind, name))
        else:
            done = self.root("grant_role", role, name, kind, ADMINISTRATOR, USER, False)
            if done is True:
                self.oracle.members.add((role, kind, name))
            else:
                assert "no cycles allowed" in done

    def compare(self) -> None:
        """One call of one of the users, and what the oracle says of it."""
        if self.random.random() < 0.6:
            self._about = self._some_subject()
        caller, db, tbl, kind = self._about
        _Comparison(self, caller, db, tbl).make(kind)
        self.calls += 1
        # A list decides about each name that it might have.
        self.decisions += _NAMES.get(kind, 1)

    def _some_subject(self) -> tuple[Caller, str, str, str]:
        groups = frozenset(self.random.sample(GROUPS, self.random.randrange(3)))
        caller = Caller(self.random.choice(USERS), groups)
        db, tbl = self.random.choices(DATABASES, (3, 1, 1))[0], self.random.choices(TABLES, (3, 1, 1))[0]
        return caller, db, tbl, self.random.choices(KINDS, WEIGHTS)[0]

    def keep(self, call: Repeatable, answer: Any) -> None:
        """Remember a call that was made with a key, and repeat one of those before."""
        self._kept.append((call, answer))
        if len(self._kept) > _KEPT_CALLS_MAX:
            self._kept.pop(0)
        call, answer = self.random.choice(self._kept)
        assert self.asker.repeat(call, call.asked.caller) == answer


class _Comparison:
    """One call of one caller about one table."""

    def __init__(self, history: History, caller: Caller, db: str, tbl: str) -> None:
        self._history, self._oracle = history, history.oracle
        self._caller, self._db, self._tbl = caller, db, tbl

    def make(self, kind: str) -> None:
        if kind in _HARMLESS:
            self._act(kind, *_HARMLESS[kind](self._db, self._tbl))
        else:
            getattr(self, f"_{kind}")()

    def _ask(self, name: str, *values: Any) -> Any:
        return self._history.asker.ask(self._caller, name, *values)

    def _may(self, action: str, *names: str) -> bool:
        return self._oracle.may(self._caller.user, self._caller.groups, action, *names)

    def _would(self, action: str, *names: str) -> bool:
        return self._oracle.would(self._caller.user, self._caller.groups, action, *names)

    def _seen(self) -> list[str]:
        """The tables of the database that the caller sees."""
        return sorted(one for its, one in self._oracle.tables if its == self._db and self._may("see", its, one))

    def _see(self) -> None:
        answer = self._ask("get_table", self._db, self._tbl)
        if self._may("see", self._db, self._tbl):
            assert not isinstance(answer, str), answer
            assert answer.tableName == self._tbl
        else:
            assert answer == f"NoSuchObjectException: {self._db}.{self._tbl} table not found"

    def _list(self) -> None:
        seen = self._seen()
        assert self._ask("get_all_tables", self._db) == seen
        assert self._ask("get_tables", self._db, "*") == seen

    def _objects(self) -> None:
        answer = self._ask("get_table_objects_by_name", self._db, [*TABLES])
        if self._may("see", self._db):
            assert not isinstance(answer, str), answer
            assert sorted(one.tableName for one in answer) == self._seen()
        else:
            assert isinstance(answer, str)
            assert "Permission denied" not in answer

    def _metas(self) -> None:
        metas = self._ask("get_table_meta", "*", "*", None)
        assert sorted((one.dbName, one.tableName) for one in metas) == sorted(
            name for name in self._oracle.tables if self._may("see", *name)
        )

    def _databases(self) -> None:
        seen = sorted(one for one in self._oracle.databases if self._may("see", one))
        assert self._ask("get_all_databases") == seen
        assert self._ask("get_databases", "s*") == [one for one in seen if one.startswith("s")]

    def _database(self) -> None:
        answer = self._ask("get_database", self._db)
        assert isinstance(answer, str) is not self._may("see", self._db), answer

    def _roles(self) -> None:
        mine = self._oracle.parties(self._caller.user, self._caller.groups)
        assert sorted(self._ask("get_role_names")) == sorted(name for kind, name in mine if kind == ROLE)

    def _events(self) -> None:
        newest = self._ask("get_current_notificationEventId").eventId
        answer = self._ask("get_next_notification", NotificationEventRequest(max(newest - _EVENTS_MAX, 0), 5))
        for event in answer.events:
            names = (event.dbName, event.tableName) if event.tableName else (event.dbName,)
            # The table of the name may not be there any more.
            assert self._would("see", *names), event

    def _act(self, action: str, name: str, *values: Any) -> None:
        """A call that changes nothing in the end, for what it names besides does not exist."""
        if self._history.random.random() < 0.8 or action == "select":
            self._check(action, self._ask(name, *values))
            return
        answer, call = self._history.asker.with_key(self._caller, name, *values)
        self._check(action, answer)
        self._history.keep(call, answer)
        # The same key of another user is another key.
        other = Caller(next(user for user in USERS if user != self._caller.user))
        answer = self._history.asker.repeat(call, other)
        _Comparison(self._history, other, self._db, self._tbl)._check(action, answer)

    def _check(self, action: str, answer: Any) -> None:
        db, tbl = self._db, self._tbl
        if not self._is_refused(action, answer) and self._may("see", db, tbl):
            assert answer is None or f"{db}.{tbl} table not found" not in str(answer)

    def _is_refused(self, action: str, answer: Any) -> bool:
        """Hidden or missing, which must be the same; refused where the caller would see the table if it were there."""
        db, tbl = self._db, self._tbl
        is_refused = isinstance(answer, str) and "Permission denied" in answer
        if self._would(action, db, tbl):
            assert not is_refused, answer
        elif self._would("see", db, tbl):
            assert is_refused, answer
        else:
            assert not is_refused, answer
            assert isinstance(answer, str), answer
            assert not answer.startswith("TApplication"), answer
        return is_refused

    def _drop(self) -> None:
        db, tbl = self._db, self._tbl
        answer = self._ask("drop_table", db, tbl, False)
        self._is_refused("drop", answer)
        assert (answer is None) is self._may("drop", db, tbl), answer
        if answer is None:
            self._oracle.drop_tables({(db, tbl)})

    def _create(self) -> None:
        db, tbl = self._db, self._tbl
        answer = self._ask("create_table", new_table(db, tbl, "somebody", None))
        is_refused = isinstance(answer, str) and "Permission denied" in answer
        if not self._would("create", db):
            assert is_refused is self._would("see", db), answer
            assert isinstance(answer, str)
        elif db in self._oracle.databases and (db, tbl) not in self._oracle.tables:
            assert answer is None
            self._oracle.tables[db, tbl] = (USER, self._caller.user)
        else:
            assert isinstance(answer, str)
            assert not is_refused

    def _grant(self) -> None:
        """Who owns the table grants on it; others may not, whether they see it or not."""
        db, tbl = self._db, self._tbl
        grant = (USER, self._history.random.choice(USERS), "select", db, tbl)
        if grant in self._oracle.grants:
            return
        answer = self._ask("grant_privileges", bag("select", f"{db}.{tbl}", grant[1], USER))
        if self._may("own", db, tbl):
            assert answer is True
            self._oracle.grants[grant] = self._caller.user
        elif not self._would("own", db, tbl):
            assert "Permission denied" in str(answer)

    def _take(self) -> None:
        """A grant is taken away by an owner, and by who gave it."""
        if not self._oracle.grants:
            return
        kind, name, privilege, db, tbl = grant = self._history.random.choice(sorted(self._oracle.grants))
        on = f"{db}.{tbl}" if tbl else db
        answer = self._ask("revoke_privileges", bag(privilege, on, name, kind))
        is_owner = bool(db) and self._may("own", db, *filter(None, [tbl]))
        if is_owner or self._oracle.grants[grant] == self._caller.user:
            assert answer is True, (answer, grant)
            del self._oracle.grants[grant]
        else:
            assert "Permission denied" in str(answer), (answer, grant)

    def _shape(self) -> None:
        """Privileges on an object of any kind, named in any way: nothing to who owns none of it."""
        if self._would("own", self._db) or self._would("own", self._db, self._tbl) or self._would("own", "default"):
            return
        choose = self._history.random.choice
        given = bag("all", f"{self._db}.{self._tbl}", choose(("public", *USERS)), choose((USER, ROLE)))
        names = choose((None, "", self._db)), choose((None, "", self._tbl))
        given.privileges[0].hiveObject = HiveObjectRef(choose((None, 0, *HiveObjectType, 99)), *names, columnName="a")
        request = GrantRevokePrivilegeRequest(choose((None, *GrantRevokeType, 99)), given)
        name = choose(("grant_privileges", "revoke_privileges", "grant_revoke_privileges"))
        assert isinstance(self._ask(name, request if "_revoke_" in name else given), str)

    def _move(self) -> None:
        """To another database: the table is lost for those who have it by the one where it is."""
        old, to = (self._db, self._tbl), self._history.random.choice(DATABASES)
        if to == self._db:
            return
        new = (to, self._tbl)
        kind, owner = self._oracle.tables.get(old, (USER, "x"))
        assert kind == USER
        answer = self._ask("alter_table", *old, located_table(*new, owner))
        may = self._may("alter", *old) and self._may("drop", *old) and self._may("create", to)
        assert (answer is None) is (may and new not in self._oracle.tables), answer
        if answer is None:
            self._oracle.rename(old, new)

    def _lock(self) -> None:
        """An exclusive lock, which is refused for hidden and missing tables alike."""
        component = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, self._db, self._tbl)
        answer = self._ask("lock", LockRequest([component], user="somebody", hostname="h"))
        if self._would("lock", self._db, self._tbl):
            assert not isinstance(answer, str), answer
            other = Caller(next(user for user in USERS if user != self._caller.user))
            lock_id = answer.lockid
            assert "NoSuchLock" in self._history.asker.ask(other, "check_lock", CheckLockRequest(lock_id))
            assert self._ask("unlock", UnlockRequest(lock_id)) is None
        else:
            assert isinstance(answer, str)


def _select(db: str, tbl: str) -> tuple[Any, ...]:
    return "get_table_column_statistics", db, tbl, "no_column"


def _alter(db: str, tbl: str) -> tuple[Any, ...]:
    return "drop_index_by_name", db, tbl, "no_index", False


def _delete(db: str, tbl: str) -> tuple[Any, ...]:
    return "drop_partition_by_name", db, tbl, "ds=nothing", False


def _insert(db: str, tbl: str) -> tuple[Any, ...]:
    return "markPartitionForEvent", db, tbl, {"no": "key"}, 1


# Calls that take an action on a table and change nothing.
_HARMLESS = {"select": _select, "alter": _alter, "delete": _delete, "insert": _insert}
_NAMES = {
    "list": 2 * len(TABLES),
    "objects": len(TABLES),
    "metas": len(DATABASES) * len(TABLES),
    "databases": 2 * len(DATABASES),
    "roles": len(ROLES),
}
KINDS = (
    *("see", "list", "objects", "metas", "databases", "database", "roles", "events"),
    *("select", "alter", "delete", "insert", "drop", "create", "grant", "lock", "take", "shape", "move"),
)
WEIGHTS = (5, 3, 2, 1, 2, 2, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1, 1, 2, 1)
