"""What authorization costs: a cached get_table with grants on beside off, and the names that one user may see."""

import argparse
import asyncio
import statistics
import tempfile
from pathlib import Path

import uvloop

from benchmarks.edge import Link, Uncounted, first_answer, links, seconds_per_call
from benchmarks.http import PASSWORD, log_to_file
from benchmarks.report import median_seconds, print_table
from hms_gateway.composition.demo import DATABASE, TABLE, load_demo
from hms_gateway.composition.main import Metastore, build, build_metastore
from hms_gateway.gateway import Server, ServerOptions, ensure_first_user
from hms_gateway.gateway.http.http_protocol import BoundedConfig, BoundedHttpProtocol
from hms_gateway.metastore.ports.access import Grant, GrantObject, Principal
from hms_gateway.metastore.ports.store import Transaction
from hms_gateway.rpc.call import Call
from hms_gateway.runtime.settings import Settings, load_settings
from hms_gateway.structs import (
    METHODS,
    HiveObjectType,
    PrincipalType,
    Role,
    RolePrincipalGrant,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from hms_gateway.wire import MessageType

ROLES = 100
USER = "admin"
TABLES_AT_ONCE = 5_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--calls", type=int, default=8_000, help="of each run")
    parser.add_argument("--tables", type=int, default=100_000, help="of the database of which the names are asked for")
    parser.add_argument("--seen", type=int, default=100, help="of which the user may see so many")
    parser.add_argument("--grants", type=int, default=10_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        off = _settings(Path(folder, "off"), "off")
        on = _settings(Path(folder, "on"), "grants")
        for settings in (off, on):
            _fill(settings, arguments.grants)
        uvloop.run(_compare(off, on, arguments.runs, arguments.calls))
        _list_names(on, arguments.tables, arguments.seen)


def _settings(folder: Path, authorization: str) -> Settings:
    settings = load_settings(
        data_dir=folder,
        port=0,
        tls=False,
        admin_password=PASSWORD,
        administrators=["root"],
        authorization=authorization,
        file_systems={"file": "ignore"},
    )
    folder.mkdir()
    log_to_file(settings)
    ensure_first_user(settings)
    return settings


def _fill(settings: Settings, grants: int) -> None:
    """The demo's table, and grants of many roles on it and on others, all of which the user has."""
    metastore = build_metastore(settings)
    load_demo(metastore.store, metastore.events)

    def work(tx: Transaction) -> None:
        for number in range(ROLES):
            role_id = tx.roles.insert(Role(f"role_{number}", 0, "root"))
            tx.roles.insert_grant(role_id, RolePrincipalGrant(f"role_{number}", USER, PrincipalType.USER, False, 0))
        table = tx.table(DATABASE, TABLE)
        assert table is not None
        on = GrantObject(HiveObjectType.TABLE, table_id=table.table_id)
        tx.grants.insert(
            [
                Grant(on, Principal(f"role_{number % ROLES}", int(PrincipalType.ROLE)), f"p{number}", 0, False)
                for number in range(grants)
            ]
        )
        tx.grants.insert([Grant(on, Principal("role_7", int(PrincipalType.ROLE)), "SELECT", 0, False)])

    metastore.store.write(work)
    metastore.store.close()


async def _compare(off: Settings, on: Settings, runs: int, calls: int) -> None:
    prepared = {"off": await _linked(off), f"grants, {ROLES} roles": await _linked(on)}
    measured: dict[str, list[float]] = {name: [] for name in prepared}
    for _ in range(runs):
        for name, made in prepared.items():
            measured[name].append(await seconds_per_call(made, calls))
    base = statistics.median(measured["off"])
    print_table(
        "CPU time of a cached get_table without sockets, by authorization",
        ["authorization", "median", "best", "of the speed without"],
        [
            [name, *(f"{it * 1e6:.1f} µs" for it in (statistics.median(times), min(times))),
             f"{base / statistics.median(times):.1%}"]
            for name, times in measured.items()
        ],
    )  # fmt: skip


async def _linked(settings: Settings) -> list[Link]:
    server = Server(build(settings), ServerOptions(), settings.limits)
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    config = server.config
    assert isinstance(config, BoundedConfig)
    made = links(config, lambda: BoundedHttpProtocol(config, server.server_state, {}, Uncounted()))
    await first_answer(made[0])
    await asyncio.sleep(0)
    return made


def _list_names(settings: Settings, tables: int, seen: int) -> None:
    metastore = build_metastore(settings)
    descriptor = StorageDescriptor(cols=[], serdeInfo=SerDeInfo(parameters={}))
    for start in range(0, tables, TABLES_AT_ONCE):
        names = [f"t{number:07}" for number in range(start, min(start + TABLES_AT_ONCE, tables))]

        def insert(tx: Transaction, names: list[str] = names) -> None:
            database = tx.database(DATABASE)
            assert database is not None
            for name in names:
                table = Table(name, DATABASE, "root", 0, 0, 0, descriptor, [], {}, tableType="MANAGED_TABLE")
                tx.insert_table(database.database_id, table)

        metastore.store.write(insert)

    def grant(tx: Transaction) -> None:
        to = Principal("alice", int(PrincipalType.USER))
        for number in range(0, tables, max(1, tables // seen)):
            table = tx.table(DATABASE, f"t{number:07}")
            assert table is not None
            tx.grants.insert(
                [Grant(GrantObject(HiveObjectType.TABLE, table_id=table.table_id), to, "SELECT", 0, False)]
            )

    metastore.store.write(grant)
    rows = []
    for user in ("root", "alice"):
        size = len(_answer(metastore, user))
        taken = median_seconds(lambda user=user: _answer(metastore, user), 7)  # type: ignore[misc]
        rows.append([user, f"{size:,} bytes", f"{taken * 1e3:.1f} ms"])
    print_table(f"get_all_tables of {tables:,} tables, uncached", ["user", "answer", "median"], rows)
    metastore.store.close()


def _answer(metastore: Metastore, user: str) -> bytes:
    codec = metastore.codecs.tjson
    before, after = codec.envelope("get_all_tables", MessageType.CALL, 1)
    payload = codec.encode(METHODS["get_all_tables"].arguments(DATABASE))
    assert isinstance(payload, bytes)
    reply = metastore.processor.process(codec, codec.read_message(before + payload + after), Call(user))
    assert isinstance(reply.payload, bytes)
    return reply.payload
