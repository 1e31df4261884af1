"""M5: replies out of the cache that clients did not read were kept for ever, and counted nowhere."""

import contextlib
import socket
import ssl

import pytest

from hms_gateway.gateway.certificates.tls import ensure_certificate, server_context
from hms_gateway.runtime.limits import Limits
from tests.gateway.serving import CALL, Anybody, CannedProcessor, FakeCache, Running, post, read_response, running
from tests.support.patience import until

pytestmark = pytest.mark.slow

MIB = 1024 * 1024
# More than the system takes for a client that does not read.
LONG = b"x" * (8 * MIB)
KNOWN = {("tjson", "2.3", "get_all_databases", b"{}"): LONG}
LIMITS = Limits(unread_reply_bytes_max=80 * MIB, share_per_user=0.125)
QUIET_CALL = b'[1,"get_table",1,1,{}]'


@pytest.fixture(params=["plain", "tls"])
def tls(request, tmp_path):
    if request.param == "plain":
        return None
    files = ensure_certificate(tmp_path)
    return server_context(files.certificate, files.key)


def connected(server: Running, stack: contextlib.ExitStack) -> socket.socket:
    connection = stack.enter_context(server.connect())
    if server.scheme == "http":
        return connection
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return stack.enter_context(context.wrap_socket(connection))


def test_what_a_user_does_not_read_is_bounded_and_others_are_answered(tls):
    user = Anybody("mallory")
    processor = CannedProcessor(get_table=b"{}")
    serving = running(processor, cache=FakeCache(KNOWN), authenticator=user, limits=LIMITS, tls=tls)
    with serving as server, contextlib.ExitStack() as stack:
        unread = server.server.unread_replies
        limited = server.metrics.limited
        for number in range(8):
            connected(server, stack).sendall(post(CALL))
            until(lambda number=number: number < 3 or limited["share_per_user of unread_reply_bytes_max"] >= number - 2)
            assert unread.ledger.taken <= 10 * MIB
        assert set(limited) == {"share_per_user of unread_reply_bytes_max"}
        user.user = "ann"
        quiet = connected(server, stack)
        quiet.sendall(post(QUIET_CALL))
        assert read_response(quiet)[0] == 200
        stack.close()
        until(lambda: unread.ledger.taken == 0)


def test_who_reads_gets_it_all_and_nothing_stays_counted(tls):
    serving = running(CannedProcessor(), cache=FakeCache(KNOWN), limits=LIMITS, tls=tls)
    with serving as server, contextlib.ExitStack() as stack:
        connection = connected(server, stack)
        for _ in range(2):
            connection.sendall(post(CALL))
            status, _, body = read_response(connection)
            assert (status, LONG in body) == (200, True)
        until(lambda: server.server.unread_replies.ledger.taken == 0)
        assert server.metrics.limited == {}


def test_a_client_that_takes_nothing_for_too_long_is_cut_off(tls):
    serving = running(CannedProcessor(), cache=FakeCache(KNOWN), tls=tls, write_stall_seconds_max=0.05)
    with serving as server, contextlib.ExitStack() as stack:
        connected(server, stack).sendall(post(CALL))
        until(lambda: server.metrics.limited["write_stall_seconds_max"] == 1)
        until(lambda: len(server.server._gateway.connections) == 0)
        assert server.server.unread_replies.ledger.taken == 0
