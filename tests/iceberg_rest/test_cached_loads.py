"""Loads from memory: what a cache of replies gives is what the catalog would answer, to those who may see it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from hms_gateway.cache import ReplyCache
from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.gateway.admission.identity import Identity
from hms_gateway.iceberg.routes import routed
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import (
    METHODS,
    AlterTableRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
)
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Settings
from tests.gateway.serving import Anybody, Running, running
from tests.handlers.peers import Peer
from tests.iceberg_rest.conftest import SCHEMA, USER, Rest
from tests.support.kept_store import empty_database

pytestmark = pytest.mark.slow

TABLE = "/iceberg/v1/namespaces/sales/tables/orders"


class Named(Anybody):
    """Believes what a header says of the sender."""

    def remembered(self, head):
        return Identity(head.headers.get(b"user", USER.encode()).decode(), head.peer)


class Catalog:
    """A gateway over a metastore, and a client of it on one connection."""

    def __init__(self, server: Running, client: httpx.Client) -> None:
        self.server = server
        self._client = client

    def load(self, url: str = TABLE, **headers: str) -> tuple[httpx.Response, bool]:
        """The answer, and whether it came from memory."""
        hits = self.server.metrics.cache_hits
        answer = self._client.get(url, headers={name.replace("_", "-"): value for name, value in headers.items()})
        return answer, self.server.metrics.cache_hits > hits

    def create(self, name: str, properties: dict[str, str]) -> Any:
        body = {"name": name, "schema": SCHEMA, "properties": properties}
        return self._client.post("/iceberg/v1/namespaces/sales/tables", json=body).raise_for_status().json()

    def commit(self, value: str, table: str = TABLE) -> None:
        update = {"action": "set-properties", "updates": {"written": value}}
        self._client.post(table, json={"requirements": [], "updates": [update]}).raise_for_status()


def served(metastore: Metastore, is_short: bool = True, **more: Any) -> Iterator[Catalog]:
    generation = None if metastore.rights is None else metastore.rights.rules.look
    cache = ReplyCache(metastore.store, Limits(), generation=generation)
    with running(cache=cache, authenticator=Named(), iceberg=metastore.iceberg, **more) as server:
        if not is_short:
            server.server.config.paths_of_loads = ()
        with httpx.Client(base_url=server.root, timeout=60) as client:
            # A connection counts as its user's from its first answer on.
            client.get("/iceberg/v1/config").raise_for_status()
            yield Catalog(server, client)


@pytest.fixture(params=[True, False], ids=["short way", "asgi"])
def catalog(request, metastore: Metastore, rest: Rest) -> Iterator[Catalog]:
    rest.table(properties={"filler": "x" * 20_000})
    yield from served(metastore, request.param)


def shown(answer: httpx.Response) -> tuple[int, dict[str, str], bytes]:
    """What of an answer is the same each time."""
    headers = {name: value for name, value in answer.headers.items() if name not in ("date", "x-request-id")}
    return answer.status_code, headers, answer.content


def written(answer: httpx.Response) -> str:
    found: str = answer.json()["metadata"]["properties"].get("written", "")
    return found


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_a_load_is_answered_from_memory_until_the_table_changes(catalog, coding):
    first, was_known = catalog.load(accept_encoding=coding)
    assert (first.status_code, was_known) == (200, False)
    assert first.headers.get("content-encoding") == ("gzip" if coding == "gzip" else None)
    again, was_known = catalog.load(accept_encoding=coding)
    assert was_known
    assert shown(again) == shown(first)
    catalog.commit("a")
    after, was_known = catalog.load(accept_encoding=coding)
    assert (written(after), was_known) == ("a", False)
    assert after.headers["etag"] != first.headers["etag"]
    assert catalog.load(accept_encoding=coding)[1]


def test_an_odd_spelling_of_a_name_is_answered_as_the_table_is_now(catalog):
    for spelling in (
        "/SALES/tables/ORDERS",
        "/sales/tables/%20orders",
        "/%20Sales/tables/%6frders",
        "/sales/tables/orders%20",
    ):
        url = TABLE.replace("/sales/tables/orders", spelling)
        assert catalog.load(url)[0].status_code == 200
        catalog.commit(spelling)
        assert written(catalog.load(url)[0]) == spelling


def test_what_a_client_holds_is_304_until_the_table_changes(catalog):
    tag = catalog.load()[0].headers["etag"]
    for was_known in (False, True):
        answer, from_memory = catalog.load(if_none_match=tag)
        assert (answer.status_code, answer.content, answer.headers["etag"], from_memory) == (304, b"", tag, was_known)
    assert catalog.load(f"{TABLE}?snapshots=refs", if_none_match=tag)[0].status_code == 200
    catalog.commit("a")
    answer, _ = catalog.load(if_none_match=tag)
    assert (answer.status_code, written(answer)) == (200, "a")
    assert catalog.load(if_none_match=answer.headers["etag"])[0].status_code == 304


def test_requests_that_say_more_and_refused_ones_are_not_kept(catalog):
    catalog.load()
    assert not catalog.load(x_hms_lease_id="1")[1]
    for path in ("/iceberg/v1/namespaces/sales/tables/missing", f"{TABLE}?snapshots=some", "/iceberg/v1/namespaces"):
        statuses = {catalog.load(path)[0].status_code for _ in range(2)}
        assert (len(statuses), catalog.load(path)[1]) == (1, False)


def test_records_of_answers_from_memory_are_those_of_others(catalog):
    for _ in range(2):
        catalog.load(user="bella")
    catalog.server.stop()
    lines = [line for line in catalog.server.log_lines() if line["method"] == "iceberg.loadTable"]
    assert [line["cached"] for line in lines] == [False, True]
    for line in lines:
        for name in ("timestamp", "request_id", "ms", "cached"):
            line.pop(name, None)
    assert lines[0] == lines[1]
    assert lines[0]["user"] == "bella"


def peer(metastore: Metastore) -> Peer:
    """A client of Thrift."""
    return Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4, USER)


def alter(metastore: Metastore, **parameters: str) -> None:
    row = peer(metastore).ask("get_table", "sales", "orders")
    row.parameters.update(parameters)
    peer(metastore).ask("alter_table_req", AlterTableRequest(dbName="sales", tableName="orders", table=row))


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_changes_of_another_replica_are_seen_at_once(request, tmp_path, database):
    if database == "sqlite":
        (tmp_path / DATABASE_FILE).write_bytes(empty_database())
    url = None if database == "sqlite" else request.getfixturevalue("migrated_postgres_database")
    one, other = (build_metastore(Settings(data_dir=tmp_path, database_url=url)) for _ in range(2))
    try:
        assert other.iceberg is not None
        rest = Rest(other.iceberg())
        assert rest.post("namespaces", {"namespace": ["sales"]})[0] == 200
        rest.table()
        for catalog in served(one):
            for before, after in ("", "a"), ("a", "b"), ("b", "c"):
                while not (found := catalog.load())[1]:
                    assert written(found[0]) == before
                assert written(found[0]) == before
                assert rest.commit("orders", {"action": "set-properties", "updates": {"written": after}})[0] == 200
            assert written(catalog.load()[0]) == "c"
            alter(other, comment="by Thrift")
            assert not catalog.load()[1]
            assert rest.send("DELETE", "namespaces/sales/tables/orders")[0] == 204
            assert catalog.load()[0].status_code == 404
    finally:
        one.store.close()
        other.store.close()


def test_a_file_at_the_place_of_no_table_is_not_kept(metastore, rest, tmp_path):
    """Whether it lies in the place of another table may change without a change of this one."""
    made = rest.table()
    file = Path(made["metadata-location"].removeprefix("file:"))
    elsewhere = tmp_path / "warehouse/elsewhere/metadata" / file.name
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_bytes(file.read_bytes())
    assert metastore.iceberg is not None
    request, call = routed("GET", b"/v1/namespaces/sales/tables/orders", b"", None), Call(USER, dialect=Dialect.HIVE_4)
    kept = metastore.iceberg().process(request, call).arguments
    assert kept == METHODS["get_table"].arguments("sales", "orders")
    alter(metastore, metadata_location=f"file:{elsewhere}", previous_metadata_location=made["metadata-location"])
    moved = metastore.iceberg().process(request, call)
    assert (moved.outcome, moved.arguments) == ("ok", None)


@pytest.mark.parametrize("is_short", [True, False])
def test_nobody_gets_what_another_one_may_see(tmp_path, is_short):
    (tmp_path / DATABASE_FILE).write_bytes(empty_database())
    metastore = build_metastore(Settings(data_dir=tmp_path, authorization="grants", administrators=[USER]))
    table = HiveObjectRef(HiveObjectType.TABLE, "sales", "orders", None, None)
    info = PrivilegeGrantInfo("SELECT", 0, USER, PrincipalType.USER, False)
    bag = PrivilegeBag([HiveObjectPrivilege(table, "bella", PrincipalType.USER, info)])
    try:
        assert metastore.iceberg is not None
        rest = Rest(metastore.iceberg())
        assert rest.post("namespaces", {"namespace": ["sales"]})[0] == 200
        rest.table()
        for catalog in served(metastore, is_short):

            def loads(user: str, catalog: Catalog = catalog) -> list[tuple[int, bool]]:
                return [(answer.status_code, known) for answer, known in (catalog.load(user=user) for _ in range(3))]

            assert loads(USER)[1:] == [(200, True)] * 2
            assert loads("bella") == [(404, False)] * 3
            peer(metastore).ask("grant_privileges", bag)
            # The first answer was read before the cache has seen the event.
            assert loads("bella") == [(200, False), (200, False), (200, True)]
            peer(metastore).ask("revoke_privileges", bag)
            assert loads("bella") == [(404, False)] * 3
    finally:
        metastore.store.close()


def test_a_long_answer_comes_in_chunks_and_is_not_kept(metastore, rest):
    filler = {f"p{number}": "x" * 100_000 for number in range(45)}
    for catalog in served(metastore):
        made = catalog.create("orders", filler)
        for coding in ("gzip", "identity"):
            answers = [catalog.load(accept_encoding=coding) for _ in range(2)]
            assert [was_known for _, was_known in answers] == [False, False]
            for answer, _ in answers:
                assert answer.headers["transfer-encoding"] == "chunked"
                assert answer.json()["metadata"]["properties"] == filler
        tag = answer.headers["etag"]
        assert catalog.load(if_none_match=tag)[0].status_code == 304
        assert made == answer.json()
