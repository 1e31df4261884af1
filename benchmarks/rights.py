"""What authorization costs: a cached get_table with grants on beside off, with a password, a signed token and a client
certificate, and the names that one user may see."""

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import uvloop
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from benchmarks.edge import Link, Uncounted, first_answer, links, seconds_per_call
from benchmarks.http import BODY, PASSWORD, PATH, REQUEST, log_to_file
from benchmarks.load import http_request
from benchmarks.report import median_seconds, print_table
from hms_gateway.catalog.access.grant_rows import Grant, Grantee, GrantObject, GrantRows
from hms_gateway.catalog.access.roles import RoleRows
from hms_gateway.composition.demo import DATABASE, TABLE, load_demo
from hms_gateway.composition.main import Metastore, build, build_metastore
from hms_gateway.gateway.http.http_protocol import BoundedConfig, BoundedHttpProtocol
from hms_gateway.gateway.logins import ensure_first_user
from hms_gateway.gateway.server import Server
from hms_gateway.metastore.ports.store import Transaction
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    METHODS,
    HiveObjectType,
    PrincipalType,
    Role,
    RolePrincipalGrant,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from hms_gateway.rpc.wire import MessageType
from hms_gateway.runtime.door import Serial, ShownCertificate
from hms_gateway.runtime.settings import Settings
from hms_gateway.runtime.settings_reading import load_settings
from tests.support.client_authority import ClientAuthority

ROLES = 100
USER = "admin"
TABLES_AT_ONCE = 5_000
ISSUER = "https://issuer.example"
CERTIFICATE = ShownCertificate(USER, time.time() + 3600, Serial(b"", 0))


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
        uvloop.run(_compare_logins(Path(folder, "logins"), arguments.runs, arguments.calls))
        _list_names(on, arguments.tables, arguments.seen)


def _settings(folder: Path, authorization: str, **more: Any) -> Settings:
    values: dict[str, Any] = {"tls": False, "authorization": authorization, **more}
    settings = load_settings(
        data_dir=folder,
        port=0,
        admin_password=PASSWORD,
        administrators=["root"],
        file_systems={"file": "ignore"},
        **values,
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
            role_id = RoleRows(tx).insert(Role(f"role_{number}", 0, "root"))
            RoleRows(tx).insert_grant(role_id, RolePrincipalGrant(f"role_{number}", USER, PrincipalType.USER, False, 0))
        table = tx.table(DATABASE, TABLE)
        assert table is not None
        on = GrantObject(HiveObjectType.TABLE, table_id=table.table_id)
        GrantRows(tx).insert(
            [
                Grant(on, Grantee(f"role_{number % ROLES}", int(PrincipalType.ROLE)), f"p{number}", 0, False)
                for number in range(grants)
            ]
        )
        GrantRows(tx).insert([Grant(on, Grantee("role_7", int(PrincipalType.ROLE)), "SELECT", 0, False)])

    metastore.store.write(work)
    metastore.store.close()


async def _compare(off: Settings, on: Settings, runs: int, calls: int) -> None:
    prepared = {"off": await _linked(await _server(off)), f"grants, {ROLES} roles": await _linked(await _server(on))}
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


async def _compare_logins(folder: Path, runs: int, calls: int) -> None:
    """One gateway with all three, each on connections of its own."""
    folder.mkdir()
    key = RSAKey.generate_key(2048, {"kid": "a"})
    keys, authority = folder / "keys.json", folder / "authority.pem"
    keys.write_bytes(msgspec.json.encode(KeySet([key]).as_dict(private=False)))
    authority.write_bytes(ClientAuthority(folder).pem)
    issuer = {"issuer": ISSUER, "audience": ["hms"], "keys_file": str(keys), "groups_claim": "groups"}
    settings = _settings(
        folder / "data",
        "off",
        tls=True,
        token_issuers={"a": issuer},
        client_certificates={"authority": str(authority)},
        users_by_other_logins=[USER],
    )
    _fill(settings, 0)
    claims = {"iss": ISSUER, "aud": "hms", "sub": USER, "exp": int(time.time()) + 3600, "groups": ["etl", "sales"]}
    token = jwt.encode({"alg": "RS256", "kid": "a"}, claims, key)
    kind = "Content-Type: application/x-thrift"
    # To parse a longer request takes longer, whatever it proves.
    ignored = b"\r\nX-Ignored: %s\r\nContent-Type:" % (b"x" * len(token))
    requests = {
        "password": REQUEST,
        "password, and as much in another header": REQUEST.replace(b"\r\nContent-Type:", ignored),
        f"signed token, {len(token)} bytes": http_request(PATH, BODY, f"Authorization: Bearer {token}", kind),
        "client certificate": http_request(PATH, BODY, kind),
    }
    server = await _server(settings)
    prepared = {name: await _linked(server, request) for name, request in requests.items()}
    measured: dict[str, list[float]] = {name: [] for name in prepared}
    for _ in range(runs):
        for name, made in prepared.items():
            measured[name].append(await seconds_per_call(made, calls, requests[name]))
    print_table(
        "CPU time of a cached get_table without sockets, by what was verified before",
        ["login", "median", "best"],
        [
            [name, *(f"{it * 1e6:.1f} µs" for it in (statistics.median(times), min(times)))]
            for name, times in measured.items()
        ],
    )


async def _server(settings: Settings) -> Server:
    server = Server(build(settings))
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    return server


async def _linked(server: Server, request: bytes = REQUEST) -> list[Link]:
    config = server.config
    assert isinstance(config, BoundedConfig)

    made = links(config, lambda: BoundedHttpProtocol(config, server.server_state, {}, Uncounted()))
    if b"\r\nAuthorization: " not in request:
        for protocol, _ in made:
            # There is no TLS here, which would have verified it.
            protocol._certificate = CERTIFICATE  # type: ignore[attr-defined]
    await first_answer(made[0], request)
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
        to = Grantee("alice", int(PrincipalType.USER))
        for number in range(0, tables, max(1, tables // seen)):
            table = tx.table(DATABASE, f"t{number:07}")
            assert table is not None
            GrantRows(tx).insert(
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
