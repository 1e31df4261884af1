"""What happens to connections on their way from the listening socket to a protocol."""

import asyncio

import pytest

from hms_gateway.gateway.server import Server
from tests.gateway.serving import ANSWER, CALL, post, read_all, read_response, running
from tests.support.patience import until


def test_a_connection_that_is_cut_while_its_protocol_is_connected_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when others need its place in that moment; the server would wait for it when it stops."""
    make, arrivals = Server._connection, []

    def cut_soon(server, arrival):
        if not arrivals:
            # Before the event loop calls `connection_made`, and too late to keep it from that.
            asyncio.get_running_loop().call_soon(arrival.cut)
        arrivals.append(arrival)
        return make(server, arrival)

    monkeypatch.setattr(Server, "_connection", cut_soon)
    with running() as server:
        with server.connect() as cut:
            cut.sendall(b"P")
            assert read_all(cut) == b""
        assert arrivals[0].protocol is not None
        until(lambda: not server.server.server_state.connections)
        with server.connect() as other:
            other.sendall(post(CALL))
            assert read_response(other)[2] == ANSWER
