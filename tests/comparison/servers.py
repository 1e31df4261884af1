"""One interface to both metastores: the same TJSON bytes are posted to the real one and to ours."""

import http.client
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from hms_gateway.composition.main import Metastore as InProcess
from hms_gateway.composition.main import build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import (
    METHODS,
    AbortTxnRequest,
    Database,
    DropCatalogRequest,
    OpenTxnRequest,
    ShowLocksRequest,
    TxnState,
    UnlockRequest,
)
from hms_gateway.rpc.wire import make_codecs
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Settings
from tests.comparison.ids import Ids, lock
from tests.comparison.replies import NotAsDeclared, Reply, Surroundings, read_arguments, read_reply
from tests.oracle.peer import RealMetastore
from tests.oracle.third_peer import ThirdMetastore
from tests.support.catalog import place_empty_database
from tests.support.server import API_PATH, METASTORE_PATH, USER, GatewayServer, basic

TJSON = make_codecs(Limits()).tjson
CALL = 1
ANSWER_SECONDS_MAX = 120
BUILT_IN_ROLES = ("admin", "public")


@dataclass(frozen=True, slots=True)
class Step:
    """One call: the method and its arguments as TJSON, folders as placeholders."""

    method: str
    request: Mapping[str, Any]

    @property
    def arguments(self) -> dict[str, Any]:
        return read_arguments(self.method, self.request)

    def __str__(self) -> str:
        return f"{self.method} {json.dumps(self.request, ensure_ascii=False)}"


def call(method: str, *values: Any, **fields: Any) -> Step:
    """The step that calls `method` with these arguments, None for those not sent."""
    arguments = METHODS[method].arguments(*values, **fields)
    encoded = TJSON.encode(arguments)
    assert isinstance(encoded, bytes)
    return Step(method, json.loads(encoded))


class Metastore:
    """A running metastore behind a connection that is kept."""

    def __init__(
        self,
        connection: http.client.HTTPConnection,
        path: str,
        headers: Mapping[str, str],
        warehouse: Path,
        elsewhere: Path,
        dialect: Dialect = Dialect.HIVE_2_3,
    ) -> None:
        """A server of `dialect`, which names the shapes of its answers."""
        self._dialect = dialect
        self._connection, self._path = connection, path
        self._headers = {"Content-Type": "application/x-thrift", **headers}
        self._folders = (warehouse, elsewhere)
        self._around = Surroundings(*self._folders)
        self._waiting = ""

    @classmethod
    def real(cls, peer: RealMetastore | ThirdMetastore) -> Self:
        connection = http.client.HTTPConnection("127.0.0.1", peer.http_port, timeout=ANSWER_SECONDS_MAX)
        dialect = Dialect.HIVE_4 if isinstance(peer, ThirdMetastore) else Dialect.HIVE_2_3
        return cls(connection, "/", {}, peer.warehouse, peer.folder / "elsewhere", dialect)

    @classmethod
    def ours(cls, server: GatewayServer, dialect: Dialect = Dialect.HIVE_2_3) -> Self:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=ANSWER_SECONDS_MAX)
        headers = basic(server.user, server.password)
        path = METASTORE_PATH if dialect is Dialect.HIVE_4 else API_PATH
        return cls(connection, path, headers, server.data_dir / "warehouse", server.data_dir / "elsewhere", dialect)

    @staticmethod
    def gateway(folder: Path, database: str | None = None) -> GatewayServer:
        """One that manages the scripts' second place too, as the real one manages any."""
        settings = {"file_roots": [f"file:{folder}/elsewhere"], "tls": False}
        return GatewayServer(folder, database=database, settings=settings)

    @classmethod
    @contextmanager
    def within(cls, folder: Path, dialect: Dialect) -> Iterator[Self]:
        """Ours in this process, without the edge: a call takes half of the CPU time."""
        place_empty_database(folder / DATABASE_FILE)
        roots = [f"file:{folder}/elsewhere"]
        metastore = build_metastore(Settings(data_dir=folder, authorization="off", file_roots=roots))
        connection: Any = _Within(metastore, Call(USER, dialect=dialect))
        try:
            yield cls(connection, "", {}, folder / "warehouse", folder / "elsewhere", dialect)
        finally:
            metastore.store.close()

    def ask(self, step: Step) -> Reply:
        self.send(step)
        return self.receive()

    def send(self, step: Step) -> None:
        """Post the call; `receive` waits for its answer, so that both servers work at the same time."""
        assert not self._waiting
        text = json.dumps(step.request, ensure_ascii=False, separators=(",", ":"))
        body = f'[1,"{step.method}",{CALL},1,{self._around.fill_in(text)}]'.encode()
        self._connection.request("POST", self._path, body, self._headers)
        self._waiting = step.method

    def receive(self) -> Reply:
        """The normalised reply. A server that has none (the real one may drop the connection) answered `closed`."""
        method, self._waiting = self._waiting, ""
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            return {"closed": f"{answer.status} {self._around.text(body.decode(errors='replace')).strip()}"}
        if not body and METHODS[method].oneway:
            return {}
        try:
            return read_reply(body, method, self._around, self._dialect)
        except (NotAsDeclared, ValueError) as problem:
            return {"unreadable": f"{type(problem).__name__}: {problem}", "body": body.decode(errors="replace")}

    def close(self) -> None:
        self._connection.close()

    def clean(self) -> None:
        """Remove everything a script may have left: objects first, then directories; and count ids from here on."""
        self._around.ids = Ids()
        for step in self._removals():
            self.ask(step)
        self._around.ids = Ids(self._newest_txn(), self._newest_event())
        for folder in self._folders:
            folder.mkdir(exist_ok=True)
            for left in folder.iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()

    def begin(self, number: int, *, counts: bool) -> None:
        """Give the next program names of its own; and where it `counts` ids, end what others left open.

        It is quicker than to remove what they made.
        """
        self._around.ids, self._around.own = Ids(), f"{number:07}_"
        if counts:
            for step in self._endings():
                self.ask(step)
            self._around.ids = Ids(self._newest_txn(), self._newest_event())

    def _removals(self) -> Iterator[Step]:
        yield from self._endings()
        if self._dialect is Dialect.HIVE_4:
            yield from self._catalogs()
        for name in self._own_databases():
            yield call("drop_database", name, True, True)
        # Hive cannot drop a database in which there is an index.
        for name in self._own_databases():
            yield from (call("drop_table", name, table, True) for table in self._names(call("get_all_tables", name)))
            yield call("drop_database", name, True, True)
        for name in self._names(call("get_all_tables", "default")):
            yield call("drop_table", "default", name, True)
        for name in self._names(call("get_functions", "default", "*")):
            yield call("drop_function", "default", name)
        for name in self._names(call("get_role_names")):
            if name not in BUILT_IN_ROLES:
                yield call("drop_role", name)
        for name in self._names(call("get_all_token_identifiers")):
            yield call("remove_token", name)

    def _catalogs(self) -> Iterator[Step]:
        for catalog in self.ask(call("get_catalogs"))["success"]["names"]:
            if catalog != "hive":
                for name in self._names(call("get_databases", f"@{catalog}#")):
                    yield call("drop_database", f"@{catalog}#{name}", True, True)
                yield call("drop_catalog", DropCatalogRequest(catalog))

    def _endings(self) -> Iterator[Step]:
        """What ends transactions that are open, and locks of none."""
        for one in self.ask(call("get_open_txns_info"))["success"]["open_txns"]:
            if one["state"] == TxnState.OPEN:
                yield call("abort_txn", AbortTxnRequest(_counted(one["id"])))
        held = self.ask(call("show_locks", ShowLocksRequest()))["success"]["locks"]
        for number in range(1, 1 + len({one["lockid"] for one in held})):
            yield call("unlock", UnlockRequest(lock(number)))

    def _newest_txn(self) -> int:
        """Never 0, which would mean none."""
        opened = self.ask(call("open_txns", OpenTxnRequest(1, "somebody", "somewhere")))["success"]["txn_ids"]
        newest = _counted(opened[0])
        self.ask(call("abort_txn", AbortTxnRequest(newest)))
        return newest

    def _newest_event(self) -> int:
        """Never 0, which would mean none."""
        newest = self.ask(call("get_current_notificationEventId"))["success"]["eventId"]
        if newest:
            return _counted(newest)
        for step in (call("create_database", Database("first")), call("drop_database", "first", True, True)):
            self.ask(step)
        return self._newest_event()

    def _own_databases(self) -> list[str]:
        return [name for name in self._names(call("get_all_databases")) if name != "default"]

    def _names(self, step: Step) -> list[str]:
        names = self.ask(step).get("success", [])
        assert isinstance(names, list)
        return names


def _counted(name: str) -> int:
    """The number of `{txn 7}`."""
    return int(name.strip("{}").split()[1])


def ask_both(theirs: Metastore, ours: Metastore, step: Step) -> tuple[Reply, Reply]:
    """Both answers to one call, asked at the same time."""
    theirs.send(step)
    ours.send(step)
    return theirs.receive(), ours.receive()


class _Within:
    """What is used of a connection, to a metastore in this process."""

    status = 200

    def __init__(self, metastore: InProcess, call: Call) -> None:
        self._metastore, self._call = metastore, call
        self._answer = b""

    def request(self, _method: str, _path: str, body: bytes, _headers: Mapping[str, str]) -> None:
        message = TJSON.read_message(body)
        reply = self._metastore.processor.process(TJSON, message, self._call)
        before, after = TJSON.envelope(message.name, reply.type, message.seqid)
        payload = reply.payload if isinstance(reply.payload, bytes | None) else b"".join(reply.payload)
        self._answer = b"" if payload is None else before + payload + after

    def getresponse(self) -> Self:
        return self

    def read(self) -> bytes:
        return self._answer

    def close(self) -> None:
        pass
