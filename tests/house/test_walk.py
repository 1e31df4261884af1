"""How far a reader walks: the functions on the stack wherever an uncached get_table does something."""

import asyncio
import sys
import threading
from collections.abc import Callable
from types import FrameType

from hms_gateway.cache import ReplyCache
from hms_gateway.composition.demo import load_demo
from hms_gateway.composition.main import build, build_metastore
from hms_gateway.gateway import Server, ServerOptions, ensure_first_user
from hms_gateway.gateway.auth.authentication import KnownHeaders
from hms_gateway.gateway.calls.worker_threads import WorkerThreads
from hms_gateway.gateway.http.http_protocol import BoundedHttpProtocol
from hms_gateway.gateway.observability.access_log import AccessLog
from hms_gateway.runtime.settings import load_settings
from hms_gateway.wire.tjson_codec import TJsonCodec
from tests.gateway.http.test_http_protocol import MemoryTransport, Uncounted
from tests.gateway.serving import post
from tests.support.patience import PATIENCE_SECONDS

PACKAGE = "/app/hms_gateway/"
# From the bytes of the request to its SQL and back to the bytes of the response. Lower them when the walk gets shorter.
FUNCTIONS_MAX, FILES_MAX = 30, 18
GATEWAY_FUNCTIONS_MAX, GATEWAY_FILES_MAX = 18, 8
AUTHORIZATION = "Authorization: Basic YWRtaW46c2VjcmV0"
# Where something is done for the call; beside these the SQL itself.
STATIONS = {
    KnownHeaders.find.__code__: "sender recognized",
    TJsonCodec.read_message.__code__: "message read",
    ReplyCache.lookup.__code__: "cache looked up",
    WorkerThreads.submit.__code__: "handed to a thread",
    MemoryTransport.write.__code__: "response written",
    AccessLog.write.__code__: "call recorded",
}

Walk = dict[tuple[str, str], str]


def test_the_walk_of_an_uncached_call_is_short(tmp_path):
    walk: Walk = {}
    settings = load_settings(data_dir=tmp_path, port=0, tls=False, admin_password="secret", access_log=True)
    ensure_first_user(settings)
    metastore = build_metastore(settings)
    load_demo(metastore.store, metastore.events)
    metastore.store.close()
    threading.setprofile(recorder(walk))
    try:
        asyncio.run(scenario(settings, walk))
    finally:
        threading.setprofile(None)
    assert {*STATIONS.values(), "SQL"} == set(walk.values())
    assert_short(set(walk), FUNCTIONS_MAX, FILES_MAX)
    assert_short({it for it in walk if it[0].startswith("gateway/")}, GATEWAY_FUNCTIONS_MAX, GATEWAY_FILES_MAX)


def assert_short(functions: set[tuple[str, str]], functions_max: int, files_max: int) -> None:
    files = {file for file, _ in functions}
    shown = "\n".join(f"{file} {function}" for file, function in sorted(functions))
    assert len(functions) <= functions_max, shown
    assert len(files) <= files_max, shown


async def scenario(settings, walk: Walk) -> None:
    gateway = build(settings)
    server = Server(gateway, ServerOptions(), settings.limits)
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    protocol, transport = BoundedHttpProtocol(server.config, server.server_state, {}, Uncounted()), MemoryTransport()
    protocol.connection_made(transport)

    async def call(table: bytes) -> None:
        transport.written.clear()
        body = b'[1,"get_table",1,1,{"1":{"str":"hmshttptestdatabase"},"2":{"str":"%b"}}]' % table
        protocol.data_received(post(body, AUTHORIZATION))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not transport.written:
                await asyncio.sleep(0.001)
        assert transport.written[0].startswith(b"HTTP/1.1 200 "), transport.written

    # The first checks the password and makes what is made once.
    await call(b"test_table")
    walk.clear()
    sys.setprofile(recorder(walk))
    try:
        # To the cache another name.
        await call(b"TEST_TABLE")
    finally:
        sys.setprofile(None)
    protocol.connection_lost(None)
    gateway._close()


def recorder(walk: Walk) -> Callable[[FrameType, str, object], None]:
    def record(frame: FrameType, event: str, called: object) -> None:
        station = STATIONS.get(frame.f_code) if event == "call" else None
        if event == "c_call" and getattr(called, "__name__", "") == "execute":
            # The dialect itself begins the transaction.
            station = None if frame.f_code.co_name == "run_on_driver" else "SQL"
        if station is not None:
            add_stack(walk, frame, station)

    return record


def add_stack(walk: Walk, frame: FrameType | None, station: str) -> None:
    while frame is not None:
        _, package, file = frame.f_code.co_filename.partition(PACKAGE)
        if package:
            walk.setdefault((file, frame.f_code.co_qualname), station)
        frame = frame.f_back
