"""What happens to connections on their way from the listening socket to a protocol."""

import asyncio
import gc
from weakref import ref

import pytest

from hms_gateway.gateway.certificates.tls import ensure_certificate, server_context
from hms_gateway.gateway.server import Server
from hms_gateway.rpc.call import Unavailable
from tests.gateway.serving import ANSWER, CALL, CannedProcessor, post, read_all, read_response, running
from tests.support.patience import until
from tests.support.server import trusting


def test_a_connection_that_is_cut_while_its_protocol_is_connected_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when others need its place in that moment; the server would wait for it when it stops."""
    make, made = Server._connection, []

    def cut_soon(server, arrival):
        if not made:
            # Before the event loop calls `connection_made`, and too late to keep it from that.
            asyncio.get_running_loop().call_soon(arrival.cut)
        made.append(make(server, arrival))
        return made[-1]

    monkeypatch.setattr(Server, "_connection", cut_soon)
    with running() as server:
        with server.connect() as cut:
            cut.sendall(b"P")
            assert read_all(cut) == b""
        assert made[0].transport is not None
        until(lambda: not server.server.server_state.connections)
        with server.connect() as other:
            other.sendall(post(CALL))
            assert read_response(other)[2] == ANSWER


def test_nothing_of_a_lost_connection_waits_for_the_garbage_collector(tmp_path, monkeypatch) -> None:
    """Check where the gateway answered at once, where uvicorn brought the request, and where the call failed."""
    make, made = Server._connection, []

    def fails(message, call):
        failure = Unavailable("the database is away")
        raise failure

    def noted(server, arrival):
        protocol = make(server, arrival)
        made.append(ref(protocol))
        return protocol

    monkeypatch.setattr(Server, "_connection", noted)
    failing = post(b'[1,"get_all_functions",1,1,{}]')
    requests = [(post(CALL), 200), (b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n", 200), (failing, 503)]
    files = ensure_certificate(tmp_path / "var")
    gc.disable()
    try:
        processor = CannedProcessor(get_all_functions=fails)
        with running(processor, tls=server_context(files.certificate, files.key)) as server:
            for request, status in requests:
                with trusting().wrap_socket(server.connect()) as client:
                    client.sendall(request)
                    assert read_response(client)[0] == status
            until(lambda: [it() for it in made] == [None, None, None])
    finally:
        gc.enable()
