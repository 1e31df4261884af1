"""Repeated Authorization or Host, HTTP/1.1 without Host, and framing or versions that a proxy may read otherwise."""

import pytest

from tests.attacks.edge import basic, edge
from tests.gateway.serving import CALL, PATH, post

CLOSE = "Connection: close"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The reply is in the cache and bob's password verified, so that requests may be answered the short way."""
    with edge(tmp_path_factory.mktemp("duplicates"), cached=True) as it:
        for _ in range(2):
            assert it.server.exchange(post(CALL, CLOSE, basic("bob"))).startswith(b"HTTP/1.1 200 ")
        yield it.server


@pytest.mark.parametrize("path", [PATH, "/metastore", f"{PATH}?doAs=bob", "/metrics", "/healthz", "/nowhere"])
@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ([basic("admin"), basic("bob")], "Authorization is repeated"),
        ([basic("bob"), basic("bob")], "Authorization is repeated"),
        ([basic("bob"), "authorization:"], "Authorization is repeated"),
        ([basic("bob"), "Host: localhost"], "Host is repeated"),
        ([basic("bob"), "Host: other.example"], "Host is repeated"),
    ],
)
def test_a_repeated_header_is_400(server, path, lines, named):
    answer = server.exchange(post(CALL, *lines, path=path))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert named.encode() in answer
    assert b"connection: close" in answer


@pytest.mark.parametrize("path", [PATH, "/metastore", "/metrics"])
def test_http_1_1_without_a_host_is_400(server, path):
    request = post(CALL, basic("bob"), path=path).replace(b"Host: localhost\r\n", b"")
    answer = server.exchange(request)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"Host is missing" in answer


def test_http_1_0_needs_no_host(server):
    request = post(CALL, basic("bob")).replace(b"Host: localhost\r\n", b"").replace(b"HTTP/1.1", b"HTTP/1.0")
    assert server.exchange(request).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("path", [PATH, "/metastore", "/metrics", "/nowhere"])
@pytest.mark.parametrize("connection", ["close", "keep-alive"])
@pytest.mark.parametrize("version", ["2.0", "0.9"])
def test_another_version_in_the_request_line_is_505(server, path, connection, version):
    request = post(CALL, basic("bob"), f"Connection: {connection}", path=path).replace(
        b"HTTP/1.1", b"HTTP/" + version.encode()
    )
    answer = server.exchange(request)
    assert answer.startswith(b"HTTP/1.1 505 ")
    assert b"send HTTP/1.1" in answer
    assert b"connection: close" in answer


@pytest.mark.parametrize("path", [PATH, "/metrics"])
@pytest.mark.parametrize("connection", ["close", "keep-alive"])
def test_a_transfer_coding_in_http_1_0_is_400(server, path, connection):
    """A proxy that speaks 1.0 does not know it, and takes what follows for the next request."""
    lines = [basic("bob"), f"Connection: {connection}", "Transfer-Encoding: chunked"]
    head = post(b"", *lines, path=path).replace(b"HTTP/1.1", b"HTTP/1.0").replace(b"Content-Length: 0\r\n", b"")
    answer = server.exchange(head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(CALL), CALL))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"Transfer-Encoding is unknown in HTTP/1.0" in answer
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"transfer-encoding: chunked" not in answer


def test_other_headers_may_be_repeated(server):
    assert server.exchange(post(CALL, CLOSE, basic("bob"), "Via: a", "Via: b")).startswith(b"HTTP/1.1 200 ")


def test_a_request_behind_a_good_one_is_refused_too(server):
    good, bad = post(CALL, basic("bob")), post(CALL, basic("admin"), basic("bob"))
    answers = server.exchange(good + bad)
    assert answers.index(b"HTTP/1.1 200 ") < answers.index(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("path", [PATH, "/metastore", "/metrics", "/nowhere"])
@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["Transfer-Encoding: identity, chunked"], 501),
        (["Transfer-Encoding: gzip, chunked"], 501),
        (["Transfer-Encoding: identity", "Transfer-Encoding: chunked"], 501),
        (["Transfer-Encoding: chunked", "Expect: x"], 417),
        (["Transfer-Encoding: chunked", "Expect: 100-continue, x"], 417),
    ],
)
def test_another_transfer_coding_or_expectation_is_refused(server, path, lines, status):
    head = post(b"", *lines, basic("bob"), CLOSE, path=path).replace(b"Content-Length: 0\r\n", b"")
    answer = server.exchange(head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(CALL), CALL))
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b"connection: close" in answer


def test_what_clients_expect_and_the_one_coding_are_taken(server):
    head = post(b"", "Transfer-Encoding: Chunked", "Expect: 100-Continue", basic("bob"), CLOSE)
    head = head.replace(b"Content-Length: 0\r\n", b"")
    answer = server.exchange(head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(CALL), CALL))
    assert b"HTTP/1.1 200 " in answer
