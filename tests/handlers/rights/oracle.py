"""What docs/rights.md says of a catalog and its grants, as plain sets and loops, without a line of the program."""

import fnmatch
from typing import Any

DATABASES = ("sales", "sales_eu", "hr")
TABLES = ("orders", "public_prices", "people")
USERS = ("alice", "bob", "cleo")
GROUPS = ("staff", "etl")
ROLES = ("r1", "r2", "r3")
PRIVILEGES = ("select", "insert", "update", "delete", "create", "alter", "drop", "all", "lock", "show_database")
# (kind of party, its name, actions, pattern of databases, pattern of tables)
RULES: list[tuple[str, str, set[str], str, str | None]] = [
    ("groups", "etl", {"insert", "create"}, "sales_*", None),
    ("users", "cleo", {"select"}, "*", "public_*"),
    ("roles", "r3", {"drop"}, "hr", "*"),
]
RULES_TEXT = "".join(
    f'[[rule]]\n{kind} = ["{name}"]\nactions = {sorted(actions)}\n'
    f'objects = ["{db}{"" if tbl is None else "." + tbl}"]\n'
    for kind, name, actions, db, tbl in RULES
)
USER, ROLE, GROUP = 1, 2, 3
PUBLIC = (ROLE, "public")


class Oracle:
    """The catalog as it should be, and who may do what with it."""

    def __init__(self) -> None:
        self.databases: dict[str, tuple[int, str]] = {"default": PUBLIC}
        self.tables: dict[tuple[str, str], tuple[int, str]] = {}
        self.roles: set[str] = set()
        self.members: set[tuple[str, int, str]] = set()
        # (kind, name, privilege, database, table), and who gave it
        self.grants: dict[tuple[int, str, str, str, str], str] = {}

    def parties(self, user: str, groups: frozenset[str]) -> set[tuple[int, str]]:
        mine = {(USER, user), PUBLIC, *((GROUP, group) for group in groups)}
        while True:
            more = {(ROLE, role) for role, kind, name in self.members if (kind, name) in mine} - mine
            if not more:
                return mine
            mine |= more

    def may(self, user: str, groups: frozenset[str], action: str, db: str, tbl: str = "") -> bool:
        """Whether it may be done with an object that is there."""
        return ((db, tbl) in self.tables if tbl else db in self.databases) and self.would(user, groups, action, db, tbl)

    def would(self, user: str, groups: frozenset[str], action: str, db: str, tbl: str = "") -> bool:
        """The same of an object that need not be there."""
        mine = self.parties(user, groups)
        if (ROLE, "admin") in mine:
            return True
        if tbl:
            return self._table(mine, action, db, tbl)
        if action == "see" and any(self._table(mine, "see", db, one) for its, one in self.tables if its == db):
            return True
        owner = self.databases.get(db)
        if owner in mine and (owner != PUBLIC or action in ("see", "create")):
            return True
        if self._granted(mine, db, "", self._of_database(action)):
            return True
        return any(
            self._is_about(rule, mine)
            and fnmatch.fnmatchcase(db, rule[3])
            and ((rule[4] is None and rule[2] & self._of_database(action)) or (rule[4] is not None and action == "see"))
            for rule in RULES
        )

    def drop_tables(self, tables: set[tuple[str, str]]) -> None:
        for name in tables:
            del self.tables[name]
        self.grants = {one: by for one, by in self.grants.items() if (one[3], one[4]) not in tables}

    def drop_database(self, db: str) -> None:
        self.drop_tables({name for name in self.tables if name[0] == db})
        del self.databases[db]
        self.grants = {one: by for one, by in self.grants.items() if one[3] != db}

    def drop_role(self, name: str) -> None:
        self.roles.discard(name)
        self.members = {one for one in self.members if name != one[0] and (ROLE, name) != one[1:]}
        self.grants = {one: by for one, by in self.grants.items() if one[:2] != (ROLE, name)}

    def rename(self, old: tuple[str, str], new: tuple[str, str]) -> None:
        self.tables[new] = self.tables.pop(old)
        self.grants = {(*one[:3], *(new if one[3:] == old else one[3:])): by for one, by in self.grants.items()}

    def _table(self, mine: set[tuple[int, str]], action: str, db: str, tbl: str) -> bool:
        for owner in (self.tables.get((db, tbl)), self.databases.get(db)):
            if owner in mine and owner != PUBLIC:
                return True
        if self._granted(mine, db, tbl, self._of_table(action)):
            return True
        return any(
            self._is_about(rule, mine)
            and rule[2] & self._of_table(action)
            and fnmatch.fnmatchcase(db, rule[3])
            and (rule[4] is None or fnmatch.fnmatchcase(tbl, rule[4]))
            for rule in RULES
        )

    @staticmethod
    def _is_about(rule: Any, mine: set[tuple[int, str]]) -> bool:
        return ({"users": USER, "groups": GROUP, "roles": ROLE}[rule[0]], rule[1]) in mine

    def _granted(self, mine: set[tuple[int, str]], db: str, tbl: str, privileges: set[str]) -> bool:
        places = {("", ""), (db, ""), (db, tbl)}
        return any(
            (kind, name) in mine and privilege in privileges and (on_db, on_tbl) in places
            for kind, name, privilege, on_db, on_tbl in self.grants
        )

    @staticmethod
    def _of_table(action: str) -> set[str]:
        if action == "own":
            return set()
        if action == "see":
            return {*PRIVILEGES} - {"create", "show_database"}
        more = {"insert", "update", "delete", "alter", "drop"} if action == "lock" else set()
        return {action, "all", *more}

    @staticmethod
    def _of_database(action: str) -> set[str]:
        if action == "own":
            return set()
        return set(PRIVILEGES) if action == "see" else {action, "all"}
