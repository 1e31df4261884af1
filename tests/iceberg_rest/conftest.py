"""A metastore without the edge, and a client of its REST catalog that sends requests past HTTP."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.iceberg.errors import IcebergError
from hms_gateway.iceberg.processor import RestProcessor, read_reply
from hms_gateway.iceberg.routes import failure, routed
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.runtime.settings import Settings
from hms_gateway.runtime.shares import Holder
from tests.support.kept_store import empty_database

USER = "rosa"
# Modules whose answers the database has a part in, and their tests that `make test` has on servers too.
ON_SERVERS = {"test_appends", "test_locks_and_pointers", "test_routes"}
SAMPLE = {
    *("test_every_append_of_many_writers_succeeds_once", "test_a_keyed_append_is_answered_as_the_first_time"),
    *("test_a_lock_of_hive_catalog_makes_a_commit_wait", "test_a_commit_over_several_tables_is_all_or_nothing"),
    *("test_two_tables_are_not_made_at_one_place_at_once", "test_a_rename_does_not_undo_a_faster_commit"),
    *("test_lists_come_in_pages", "test_views", "test_clients_that_change_properties_at_once_lose_none"),
}
SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "name", "required": False, "type": "string", "doc": "of the customer"},
    ],
}


class Rest:
    """Requests of one user, as JSON values: status and body of each answer."""

    def __init__(self, processor: RestProcessor, user: str = USER) -> None:
        self._processor = processor
        self._user = user
        self.headers: dict[str, str] = {}
        self.waited_seconds = 0.0

    def as_user(self, user: str) -> "Rest":
        return Rest(self._processor, user)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: dict[str, str] | None = None,
        key: str | None = None,
        held: str | None = None,
        content: bytes | None = None,
    ) -> tuple[int, Any]:
        sent = content if content is not None else b"" if body is None else msgspec.json.encode(body)
        try:
            request = routed(method, f"/v1/{path}".encode(), urlencode(query or {}).encode(), held)
        except IcebergError as error:
            answer = failure(error)
        else:
            holder = Holder(self._user, None)
            call = Call(self._user, dialect=Dialect.HIVE_4, key=key, client_address="192.0.2.1", holder=holder)
            call = msgspec.structs.replace(call, waited_seconds=self.waited_seconds)
            answer = read_reply(self._processor.process(request._replace(body=sent), call))
        self.headers = dict(answer.headers)
        return answer.status, None if answer.body is None else msgspec.json.decode(answer.body)

    def get(self, path: str, **more: Any) -> tuple[int, Any]:
        return self.send("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        return self.send("POST", path, body, **more)

    def table(self, name: str = "orders", **more: Any) -> dict[str, Any]:
        """The answer to the creation of a table in `sales`."""
        status, found = self.table_answer(name, **more)
        assert status == 200, found
        assert isinstance(found, dict)
        return found

    def table_answer(self, name: str, **more: Any) -> tuple[int, Any]:
        return self.post("namespaces/sales/tables", {"name": name, "schema": SCHEMA, **more})

    def commit(self, name: str, *updates: Any, requirements: Any = ()) -> tuple[int, Any]:
        body = {"requirements": list(requirements), "updates": list(updates)}
        return self.post(f"namespaces/sales/tables/{name}", body)


def kind_of(answer: tuple[int, Any]) -> tuple[int, str]:
    """Status and type of a refusal."""
    status, body = answer
    assert body["error"]["code"] == status
    return status, body["error"]["type"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "database" not in metafunc.fixturenames or metafunc.module.__name__.rpartition(".")[2] not in ON_SERVERS:
        return
    marks = () if metafunc.function.__name__ in SAMPLE else (pytest.mark.whole,)
    servers = [pytest.param(kind, marks=(getattr(pytest.mark, kind), *marks)) for kind in ("postgres", "mariadb")]
    metafunc.parametrize("database", ["sqlite", *servers], indirect=True)


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    """The URL of an empty database; None for SQLite's in the data folder."""
    kind = getattr(request, "param", "sqlite")
    if kind == "sqlite":
        (tmp_path / DATABASE_FILE).write_bytes(empty_database())
        return None
    url: str
    url, empty = request.getfixturevalue(f"emptied_{kind}")
    empty()
    return url


@pytest.fixture
def metastore(database: str | None, tmp_path: Path) -> Iterator[Metastore]:
    metastore = build_metastore(Settings(data_dir=tmp_path, database_url=database))
    yield metastore
    metastore.store.close()


@pytest.fixture
def anew(metastore: Metastore, database: str | None, tmp_path: Path) -> Iterator[Callable[[], Rest]]:
    """Makes a client of another gateway that has just been started on the same data."""
    with ExitStack() as opened:

        def start() -> Rest:
            started = build_metastore(Settings(data_dir=tmp_path, database_url=database))
            opened.callback(started.store.close)
            assert started.iceberg is not None
            return Rest(started.iceberg())

        yield start


@pytest.fixture
def rest(metastore: Metastore) -> Rest:
    """With a namespace `sales`."""
    assert metastore.iceberg is not None
    rest = Rest(metastore.iceberg())
    assert rest.post("namespaces", {"namespace": ["sales"]})[0] == 200
    return rest
