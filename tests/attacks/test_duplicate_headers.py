"""Repeated Authorization or Host, and HTTP/1.1 without Host, are refused: which one counts is not guessed."""

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


def test_other_headers_may_be_repeated(server):
    assert server.exchange(post(CALL, CLOSE, basic("bob"), "Via: a", "Via: b")).startswith(b"HTTP/1.1 200 ")


def test_a_request_behind_a_good_one_is_refused_too(server):
    good, bad = post(CALL, basic("bob")), post(CALL, basic("admin"), basic("bob"))
    answers = server.exchange(good + bad)
    assert answers.index(b"HTTP/1.1 200 ") < answers.index(b"HTTP/1.1 400 ")
