"""Random histories of rights against an oracle that is written from docs/rights.md alone, with the reply cache on.

Two gateways share a database. Calls go through the relay of the Thrift port of either, in two protocols and both
dialects; changes through either. `RIGHTS_ORACLE_DECISIONS` is the number of decisions that are compared,
`RIGHTS_ORACLE_SEED` the seed. A failure names both.
"""

import asyncio
import fnmatch
import itertools
import os
import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hms_gateway.bridge.relays.processor_relay import ProcessorRelay
from hms_gateway.bridge.thrift.messages import ThriftMessage
from hms_gateway.bridge.thrift.session import Session
from hms_gateway.cache import ReplyCache
from hms_gateway.composition.main import DATABASE_FILE, Metastore, build_metastore
from hms_gateway.metastore.rights import decisions, keeper
from hms_gateway.rpc.call import Caller, Dialect
from hms_gateway.rpc.dialects import methods_of
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Settings
from hms_gateway.structs import Database, FieldSchema, Role, SerDeInfo, StorageDescriptor, Table
from hms_gateway.wire import MessageType
from tests.handlers.rights.test_gate import bag
from tests.support.catalog import place_empty_database

pytestmark = pytest.mark.slow

DECISIONS = int(os.environ.get("RIGHTS_ORACLE_DECISIONS", "1500"))
DECISIONS_PER_CHANGE = 30
SEED = int(os.environ.get("RIGHTS_ORACLE_SEED", "17"))
DATABASES = ("sales", "sales_eu", "hr")
TABLES = ("orders", "public_prices", "people")
USERS = ("alice", "bob", "cleo")
GROUPS = ("staff", "etl")
ROLES = ("r1", "r2", "r3")
PRIVILEGES = ("select", "insert", "update", "delete", "create", "alter", "drop", "all", "lock", "show_database")
RULES = [
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


class Oracle:
    """The catalog and its rights as plain sets, and what docs/rights.md makes of them."""

    def __init__(self) -> None:
        self.databases: dict[str, tuple[int, str]] = {"default": (ROLE, "public")}
        self.tables: dict[tuple[str, str], tuple[int, str]] = {}
        self.roles: set[str] = set()
        self.members: set[tuple[str, int, str]] = set()
        # (kind, name, privilege, database, table)
        self.grants: set[tuple[int, str, str, str, str]] = set()

    def parties(self, user: str, groups: frozenset[str]) -> set[tuple[int, str]]:
        mine = {(USER, user), (ROLE, "public"), *((GROUP, group) for group in groups)}
        while True:
            more = {(ROLE, role) for role, kind, name in self.members if (kind, name) in mine} - mine
            if not more:
                return mine
            mine |= more

    def may(self, user: str, groups: frozenset[str], action: str, db: str, tbl: str = "") -> bool:
        mine = self.parties(user, groups)
        if (ROLE, "admin") in mine:
            return True
        if tbl:
            return (db, tbl) in self.tables and self._table(mine, action, db, tbl)
        if db not in self.databases:
            return False
        if action == "see" and any(self._table(mine, "see", db, one) for its, one in self.tables if its == db):
            return True
        owner = self.databases[db]
        if owner in mine and (owner != (ROLE, "public") or action in ("see", "create")):
            return True
        if self._granted(mine, db, "", self._of_database(action)):
            return True
        return any(
            self._is_about(rule, mine)
            and fnmatch.fnmatchcase(db, rule[3])
            and ((rule[4] is None and rule[2] & self._of_database(action)) or (rule[4] is not None and action == "see"))
            for rule in RULES
        )

    def _table(self, mine: set[tuple[int, str]], action: str, db: str, tbl: str) -> bool:
        for owner in (self.tables[db, tbl], self.databases[db]):
            if owner in mine and owner != (ROLE, "public"):
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
        every = {*PRIVILEGES} - {"create", "show_database"}
        return every if action == "see" else {action, "all"}

    @staticmethod
    def _of_database(action: str) -> set[str]:
        return set(PRIVILEGES) if action == "see" else {action, "all"}


class Direct:
    def __init__(self, processor: Any) -> None:
        self._processor = processor

    async def answer(self, codec: Any, message: Any, call: Any, wrap: Any, until_gone: Any) -> Any:
        return SimpleNamespace(reply=self._processor.process(codec, message, call), stream=None)


class Gateway:
    def __init__(self, metastore: Metastore, settings: Settings) -> None:
        self.metastore = metastore
        assert metastore.rights is not None
        store, generation = metastore.store, metastore.rights.rules.look
        self.cache = ReplyCache(store, settings.limits, store.read, generation=generation)
        self._caller = Caller("")

        async def identify(session: Session) -> Caller:
            return self._caller

        self._relays = {
            dialect: ProcessorRelay(
                Direct(metastore.processor), metastore.codecs, dialect=dialect, cache=self.cache, identify=identify
            )
            for dialect in Dialect
        }

    async def ask(self, caller: Caller, dialect: Dialect, protocol: str, name: str, *values: Any) -> Any:
        self._caller = caller
        codec, method = getattr(self.metastore.codecs, protocol), methods_of(dialect)[name]
        before, after = codec.envelope(name, MessageType.CALL, 1)
        payload = codec.encode(method.arguments(*values))
        message = ThriftMessage(protocol, name, MessageType.CALL, 1, before + payload + after, len(before))
        reply = await self._relays[dialect].call(message, Session())
        answer = codec.read_message(reply.body)
        if answer.type is MessageType.EXCEPTION:
            return "PROTOCOL_ERROR"
        result = codec.decode(method.result, answer.payload)
        for field in method.definition.throws:
            if (raised := getattr(result, field.name)) is not None:
                return f"{type(raised).__name__}: {raised.message}"
        return None if method.definition.returns is None else result.success


def new_table(db: str, name: str, owner: str) -> Table:
    sd = StorageDescriptor(
        cols=[FieldSchema("a", "int")], serdeInfo=SerDeInfo(parameters={}), location=f"file:/w/{db}.db/{name}"
    )
    return Table(name, db, owner, sd=sd, partitionKeys=[FieldSchema("ds", "string")], parameters={})


class History:
    def __init__(self, gateways: list[Gateway], seed: int) -> None:
        self.random = random.Random(seed)
        self.gateways = gateways
        self.oracle = Oracle()
        self.decisions = 0

    async def root(self, name: str, *values: Any) -> Any:
        gateway = self.random.choice(self.gateways)
        return await gateway.ask(Caller("root"), Dialect.HIVE_2_3, "binary", name, *values)

    async def change(self) -> None:
        await self.random.choice(
            [self.make_database, self.make_table, self.make_table, self.drop, self.rename, self.give]
            + [self.grant] * 6
            + [self.revoke] * 4
            + [self.member] * 2
            + [self.role]
        )()

    async def make_database(self) -> None:
        name, owner = self.random.choice(DATABASES), self.random.choice((*USERS, "root"))
        if name not in self.oracle.databases:
            assert await self.root("create_database", Database(name=name, ownerName=owner)) is None
            self.oracle.databases[name] = (USER, owner)

    async def make_table(self) -> None:
        db, tbl = self.random.choice(DATABASES), self.random.choice(TABLES)
        owner = self.random.choice((*USERS, "root"))
        if db in self.oracle.databases and (db, tbl) not in self.oracle.tables:
            assert await self.root("create_table", new_table(db, tbl, owner)) is None
            self.oracle.tables[db, tbl] = (USER, owner)

    async def drop(self) -> None:
        if self.oracle.tables and self.random.random() < 0.7:
            db, tbl = self.random.choice(sorted(self.oracle.tables))
            assert await self.root("drop_table", db, tbl, False) is None
            self.forget({(db, tbl)})
        elif len(self.oracle.databases) > 1 and self.random.random() < 0.2:
            db = self.random.choice(sorted(set(self.oracle.databases) - {"default"}))
            assert await self.root("drop_database", db, False, True) is None
            self.forget({name for name in self.oracle.tables if name[0] == db})
            del self.oracle.databases[db]
            self.oracle.grants = {one for one in self.oracle.grants if one[3] != db}

    def forget(self, tables: set[tuple[str, str]]) -> None:
        for name in tables:
            del self.oracle.tables[name]
        self.oracle.grants = {one for one in self.oracle.grants if (one[3], one[4]) not in tables}

    async def rename(self) -> None:
        if not self.oracle.tables:
            return
        old, db = self.random.choice(sorted(self.oracle.tables)), self.random.choice(sorted(self.oracle.databases))
        new = (db, self.random.choice(TABLES))
        if new in self.oracle.tables or db == "default":
            return
        owner = self.oracle.tables[old]
        assert await self.root("alter_table", *old, new_table(*new, owner[1])) is None
        self.oracle.tables[new] = self.oracle.tables.pop(old)
        self.oracle.grants = {
            (one[0], one[1], one[2], *(new if (one[3], one[4]) == old else (one[3], one[4])))
            for one in self.oracle.grants
        }

    async def give(self) -> None:
        owner = self.random.choice(USERS)
        if self.oracle.tables and self.random.random() < 0.5:
            db, tbl = self.random.choice(sorted(self.oracle.tables))
            assert await self.root("alter_table", db, tbl, new_table(db, tbl, owner)) is None
            self.oracle.tables[db, tbl] = (USER, owner)
        elif len(self.oracle.databases) > 1:
            db = self.random.choice(sorted(set(self.oracle.databases) - {"default"}))
            kind = self.random.choice((USER, ROLE))
            name = owner if kind == USER else "public"
            assert await self.root("alter_database", db, Database(name=db, ownerName=name, ownerType=kind)) is None
            self.oracle.databases[db] = (kind, name)

    def some_grant(self) -> tuple[int, str, str, str, str]:
        parties = [(USER, name) for name in USERS] + [(GROUP, name) for name in GROUPS]
        parties += [(ROLE, name) for name in sorted(self.oracle.roles)] + [(ROLE, "public")]
        places = [("", "")] + [(db, "") for db in sorted(self.oracle.databases)] + sorted(self.oracle.tables) * 4
        weights = [1 if name != "public" else 0.2 for _, name in parties]
        kind, name = self.random.choices(parties, weights)[0]
        db, tbl = self.random.choice(places)
        return kind, name, self.random.choice(PRIVILEGES), db, tbl

    async def grant(self) -> None:
        grant = self.some_grant()
        if grant in self.oracle.grants or (not grant[3] and self.random.random() < 0.9):
            return
        kind, name, privilege, db, tbl = grant
        assert await self.root("grant_privileges", bag(privilege, f"{db}.{tbl}" if tbl else db, name, kind)) is True
        self.oracle.grants.add(grant)

    async def revoke(self) -> None:
        if not self.oracle.grants:
            return
        kind, name, privilege, db, tbl = grant = self.random.choice(sorted(self.oracle.grants))
        assert await self.root("revoke_privileges", bag(privilege, f"{db}.{tbl}" if tbl else db, name, kind)) is True
        self.oracle.grants.discard(grant)

    async def role(self) -> None:
        name = self.random.choice(ROLES)
        if name not in self.oracle.roles:
            assert await self.root("create_role", Role(name, 0, "root")) is True
            self.oracle.roles.add(name)
        elif self.random.random() < 0.4:
            assert await self.root("drop_role", name) is True
            self.oracle.roles.discard(name)
            self.oracle.members = {one for one in self.oracle.members if name != one[0] and (ROLE, name) != one[1:]}
            self.oracle.grants = {one for one in self.oracle.grants if one[:2] != (ROLE, name)}

    async def member(self) -> None:
        if not self.oracle.roles:
            return
        role = self.random.choice(sorted(self.oracle.roles))
        parties = [(USER, name) for name in USERS] + [(GROUP, name) for name in GROUPS]
        parties += [(ROLE, name) for name in sorted(self.oracle.roles)]
        kind, name = self.random.choice(parties)
        if (role, kind, name) in self.oracle.members:
            assert await self.root("revoke_role", role, name, kind) is True
            self.oracle.members.discard((role, kind, name))
        else:
            done = await self.root("grant_role", role, name, kind, "root", USER, False)
            if done is True:
                self.oracle.members.add((role, kind, name))
            else:
                assert "no cycles allowed" in done

    async def compare(self) -> None:
        """One call of somebody, and what the oracle says of it."""
        user = self.random.choice(USERS)
        groups = frozenset(self.random.sample(GROUPS, self.random.randrange(3)))
        # Mostly the same call, so that the cache has it.
        gateway = self.random.choices(self.gateways, (3, 1))[0]
        dialect = self.random.choices(list(Dialect), (3, 1))[0]
        protocol = self.random.choices(("binary", "compact"), (3, 1))[0]
        db, tbl = self.random.choices(DATABASES, (3, 1, 1))[0], self.random.choices(TABLES, (3, 1, 1))[0]

        async def ask(name: str, *values: Any) -> Any:
            return await gateway.ask(Caller(user, groups), dialect, protocol, name, *values)

        def may(action: str, *names: str) -> bool:
            return self.oracle.may(user, groups, action, *names)

        kind = self.random.choice(
            (
                "see",
                "see",
                "see",
                "list",
                "databases",
                "database",
                "drop",
                "alter",
                "select",
                "delete",
                "insert",
                "metas",
            )
        )
        sees = sorted(one for its, one in self.oracle.tables if its == db and may("see", db, one))
        if kind == "see":
            answer = await ask("get_table", db, tbl)
            if may("see", db, tbl):
                assert answer.tableName == tbl
            else:
                assert answer == f"NoSuchObjectException: {db}.{tbl} table not found"
        elif kind == "list":
            assert await ask("get_all_tables", db) == sees
            assert await ask("get_tables", db, "*") == sees
        elif kind == "metas":
            metas = await ask("get_table_meta", "*", "*", None)
            assert sorted((one.dbName, one.tableName) for one in metas) == sorted(
                name for name in self.oracle.tables if may("see", *name)
            )
        elif kind == "databases":
            assert await ask("get_all_databases") == sorted(one for one in self.oracle.databases if may("see", one))
        elif kind == "database":
            answer = await ask("get_database", db)
            assert isinstance(answer, str) is not may("see", db), answer
        else:
            await self._compare_action(kind, ask, may, db, tbl)
        self.decisions += 1

    async def _compare_action(self, action: str, ask: Any, may: Any, db: str, tbl: str) -> None:
        """A call that changes nothing in the end, for what it names besides does not exist."""
        # A name that is no table's, where the database is one on which it may be done.
        calls = {
            "drop": ("drop_table", db, tbl, False),
            "alter": ("drop_index_by_name", db, tbl, "no_index", False),
            "select": ("get_table_column_statistics", db, tbl, "no_column"),
            "delete": ("drop_partition_by_name", db, tbl, "ds=nothing", False),
            "insert": ("markPartitionForEvent", db, tbl, {"no": "key"}, 1),
        }
        if action == "drop" and may(action, db, tbl):
            return
        answer = await ask(*calls[action])
        is_refused = isinstance(answer, str) and "Permission denied" in answer
        if may(action, db, tbl):
            assert not is_refused, answer
            assert answer is None or f"{db}.{tbl} table not found" not in str(answer)
        elif may("see", db, tbl):
            assert is_refused, answer
        elif not is_refused:
            # Hidden or missing, which must be the same; refused where the whole database is known to the caller.
            assert isinstance(answer, str), answer
            assert not answer.startswith("PROTOCOL"), answer


@pytest.fixture
def gateways(tmp_path: Path) -> Iterator[list[Gateway]]:
    place_empty_database(tmp_path / DATABASE_FILE)
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES_TEXT)
    settings = Settings(
        data_dir=tmp_path,
        file_systems={"file": "ignore"},
        warehouse_dir="file:/w",
        administrators=["root"],
        authorization="grants",
        authorization_rules_file=rules,
        limits=Limits(),
    )
    both = [build_metastore(settings) for _ in range(2)]
    yield [Gateway(one, settings) for one in both]
    for one in both:
        one.store.close()


def test_random_histories_agree_with_the_oracle(gateways: list[Gateway]) -> None:
    history = History(gateways, SEED)

    async def run() -> None:
        for step in itertools.count():
            await history.change()
            for _ in range(DECISIONS_PER_CHANGE):
                try:
                    await history.compare()
                except AssertionError as error:
                    raise AssertionError(f"seed {SEED}, step {step}, decision {history.decisions}") from error
            if history.decisions >= DECISIONS:
                return

    asyncio.run(run())
    assert sum(len(one.cache) for one in gateways) > 0


@pytest.mark.parametrize("leak", ["one cache for all", "owners of before", "grants of before", "unfiltered names"])
def test_a_planted_leak_is_found(gateways: list[Gateway], monkeypatch: pytest.MonkeyPatch, leak: str) -> None:
    """What the oracle is there to find."""
    if leak == "one cache for all":
        for one in gateways:
            monkeypatch.setattr(one.cache, "viewer", lambda user, groups: "everybody")
    elif leak == "owners of before":
        monkeypatch.setattr(keeper.PolicyKeeper, "_refresh_owners", lambda self, tables: True)
    elif leak == "grants of before":
        monkeypatch.setattr(keeper, "_OF_POLICY", frozenset({"CREATE_DATABASE", "DROP_DATABASE"}))
    else:
        monkeypatch.setattr(decisions.Visible, "select", lambda self, names: list(names))
    history = History(gateways, SEED)

    async def run() -> None:
        for _ in range(200):
            await history.change()
            for _ in range(DECISIONS_PER_CHANGE):
                await history.compare()

    with pytest.raises(AssertionError):
        asyncio.run(run())
