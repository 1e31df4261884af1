"""A request is answered the same, to the byte, whichever adapter brings it to the endpoint, and read only once."""

import asyncio
import contextlib
import gzip
import json
import re
import threading
from collections.abc import Iterator

import pytest

from hms_gateway.gateway.admission.identity import Identity, Refused, RequestHead
from hms_gateway.gateway.admission.proxies import Proxies
from hms_gateway.gateway.application import Gateway
from hms_gateway.gateway.http.endpoint import Endpoint
from hms_gateway.gateway.http.exchange import Exchange, Response
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.wire import make_codecs
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Settings
from tests.gateway.serving import (
    ANSWER,
    CALL,
    DATABASES,
    PATH,
    SECONDS_TO_SEND,
    Anybody,
    CannedProcessor,
    FakeCache,
    Running,
    is_closed_after_a_line_end,
    post,
    read_response,
    running,
)
from tests.support.patience import PATIENCE_SECONDS, until

LARGE = b'{"0":{"str":"' + b"a" * 20_000 + b'"}}'
KNOWN = {
    ("tjson", "2.3", "get_all_databases", b"{}"): DATABASES,
    ("tjson", "4", "get_all_databases", b"{}"): DATABASES,
    ("binary", "2.3", "get_all_databases", b"\x00"): b"\x00",
    ("tjson", "2.3", "large", b"{}"): LARGE,
}
CODECS = make_codecs(Limits())
BINARY_CALL = b"\x80\x01\x00\x01\x00\x00\x00\x11get_all_databases\x00\x00\x00\x01\x00"
LARGE_CALL = b'[1,"large",1,1,{}]'


class Stranger(Anybody):
    """Recognizes no sender, and refuses each."""

    def remembered(self, head):
        return None

    async def authenticate(self, head):
        raise Refused(401, "who are you?")


class CountingAnybody(Anybody):
    """Counts how often it is asked who sends a request."""

    asked = 0

    def remembered(self, head):
        self.asked += 1
        return super().remembered(head)


class CountingCache(FakeCache):
    """Counts how often it is asked."""

    asked = 0

    def lookup(self, key):
        self.asked += 1
        return super().lookup(key)


def test_a_known_reply_is_there_at_once_and_counted():
    metrics = Metrics({"get_all_databases"})
    endpoint = Endpoint(
        Settings(),
        codecs=CODECS,
        processor=CannedProcessor(),
        cache=FakeCache(KNOWN),
        authenticator=Anybody(),
        proxies=Proxies(),
        metrics=metrics,
        sinks=[metrics.served.add],
    )
    exchange = Exchange(RequestHead({b"x-request-id": b"r-1"}, [], b"", "127.0.0.1"), Dialect.HIVE_2_3)
    response = endpoint.answer_whole(exchange, CALL)
    assert isinstance(response, Response)
    assert exchange.whole(response, b"today") == (
        b"HTTP/1.1 200 OK\r\ndate: today\r\nx-request-id: r-1\r\ncontent-type: application/vnd.apache.thrift.json\r\n"
        b"content-length: %d\r\n\r\n%b" % (len(ANSWER), ANSWER)
    )
    endpoint.record(exchange)
    assert metrics.cache_hits == 1
    assert metrics.calls_by_method() == {"get_all_databases": 1}


def test_every_path_is_known_with_its_endings_before_the_request_line_is_decoded():
    with running() as server:
        settings = Settings(paths={"/a/b": "4"})
        gateway = Gateway(server.asgi_endpoint, settings, connections=None, ready=lambda: None)
    assert gateway.dialect_of_url == dict.fromkeys((b"/a/b", b"/a/b/", b"/a/b/*"), Dialect.HIVE_4)


@contextlib.contextmanager
def by_asgi(*arguments: object, **options: object) -> Iterator[Running]:
    """As `running`; no request is small enough for the short way."""
    with running(*arguments, **options) as server:
        server.server.config.whole_body_bytes_max = -1
        yield server


@pytest.mark.parametrize("way", [running, by_asgi])
@pytest.mark.parametrize("known", [KNOWN, {}])
def test_a_request_is_authenticated_looked_up_and_called_once(way, known):
    sender, cache, processor = CountingAnybody(), CountingCache(known), CannedProcessor()
    with way(processor, authenticator=sender, cache=cache) as server, server.connect() as connection:
        connection.sendall(post(CALL))
        assert read_response(connection)[2] == ANSWER
        assert (sender.asked, cache.asked, len(processor.calls)) == (1, 1, 0 if known else 1)


@pytest.mark.parametrize("way", [running, by_asgi])
def test_the_memory_of_passwords_is_asked_once_for_a_sender_that_it_does_not_know(way):
    class Forgetful(CountingAnybody):
        def remembered(self, head):
            super().remembered(head)

        async def authenticate(self, head):
            return Identity(self.user, head.peer)

    sender = Forgetful()
    with way(authenticator=sender) as server, server.connect() as connection:
        connection.sendall(post(CALL))
        assert read_response(connection)[2] == ANSWER
    assert sender.asked == 1


@pytest.fixture(scope="module", params=["at once", "later"])
def from_the_cache(request):
    with running(cache=FakeCache(KNOWN, awaitable=request.param == "later")) as server:
        yield server


@pytest.fixture(scope="module")
def by_the_endpoint():
    with by_asgi(cache=FakeCache(KNOWN)) as server:
        yield server


def without_date(raw: bytes) -> bytes:
    return re.sub(rb"\r\ndate: [^\r]*", b"", raw)


def http_1_0(*headers: str) -> bytes:
    return post(CALL, "X-Request-Id: r", *headers).replace(b"HTTP/1.1", b"HTTP/1.0")


REQUESTS = {
    "plain": post(CALL, "X-Request-Id: r"),
    "hive 4": post(CALL, "X-Request-Id: r", path="/metastore"),
    "binary": post(BINARY_CALL, "X-Request-Id: r"),
    "keep-alive": post(CALL, "X-Request-Id: r", "Connection: keep-alive"),
    "origin": post(CALL, "X-Request-Id: r", "Origin: https://page.example"),
    "query": post(CALL, "X-Request-Id: r", path=f"{PATH}?a=b"),
    "star": post(CALL, "X-Request-Id: r", path="/metastore/*"),
    "doubled slashes": post(CALL, "X-Request-Id: r", path="//metastore//"),
    "escaped path": post(CALL, "X-Request-Id: r", path="/metastor%65"),
    "large": post(LARGE_CALL, "X-Request-Id: r"),
    "large, gzip": post(LARGE_CALL, "X-Request-Id: r", "Accept-Encoding: gzip"),
    "compressed": post(gzip.compress(CALL, mtime=0), "X-Request-Id: r", "Content-Encoding: gzip"),
    "chunked": post(b"%x\r\n%b\r\n0\r\n\r\n" % (len(CALL), CALL), "X-Request-Id: r", "Transfer-Encoding: chunked"),
    "expect": post(CALL, "X-Request-Id: r", "Expect: 100-continue"),
    "form encoded": post(b"%5B1%2C%22get_all_databases%22%2C1%2C1%2C%7B%7D%5D", "X-Request-Id: r"),
    "1.0": http_1_0(),
    "1.0 keep-alive": http_1_0("Connection: keep-alive"),
    "oneway": post(b'[1,"shutdown",4,1,{}]', "X-Request-Id: r"),
    "unknown method": post(b'[1,"nope",1,1,{}]', "X-Request-Id: r"),
    "no thrift": post(b"hello", "X-Request-Id: r"),
    "put": post(CALL, "X-Request-Id: r").replace(b"POST", b"PUT"),
    "damaged": b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
}
LAST = post(CALL, "X-Request-Id: last", "Connection: close")


@pytest.mark.parametrize("request_bytes", REQUESTS.values(), ids=REQUESTS)
def test_a_response_is_the_same_by_either_way(from_the_cache, by_the_endpoint, request_bytes):
    raw, expected = (server.exchange(request_bytes + LAST) for server in (from_the_cache, by_the_endpoint))
    assert without_date(raw) == without_date(expected)
    assert raw.count(b"\r\ndate: ") == expected.count(b"\r\ndate: ")


def test_a_request_that_offers_another_protocol_is_answered_as_the_endpoint_does(from_the_cache, by_the_endpoint):
    bodies = []
    for server in (from_the_cache, by_the_endpoint):
        with server.connect() as connection:
            connection.sendall(post(CALL, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"))
            bodies.append(read_response(connection)[2])
    assert bodies[0] == bodies[1]


def test_a_request_in_two_pieces_is_answered_wherever_it_is_cut(from_the_cache):
    with from_the_cache.connect() as connection:
        request = post(CALL)
        for cut in range(1, len(request), 7):
            connection.sendall(request[:cut])
            connection.sendall(request[cut:])
            assert read_response(connection)[2] == ANSWER


def test_the_log_lines_are_the_same_by_either_way():
    logs = []
    for way, awaitable in ((running, False), (by_asgi, False), (running, True)):
        with way(cache=FakeCache(KNOWN, awaitable=awaitable)) as server:
            for request in (REQUESTS["plain"], REQUESTS["binary"], REQUESTS["large"], REQUESTS["unknown method"]):
                server.exchange(request + LAST)
        lines = server.log_lines()
        assert all(line.pop("ms") > 0 for line in lines)
        assert all(line.pop("timestamp") for line in lines)
        logs.append(lines)
        assert (server.metrics.cache_hits, server.metrics.cache_misses) == (7, 1)
    assert logs[0] == logs[1] == logs[2]
    assert logs[0][0]["cached"] is True


REFUSALS = {
    "tjson": post(b'[1,"get_table",1,5,{"1":{"str":"a"}}]', "X-Request-Id: r"),
    "binary": post(BINARY_CALL, "X-Request-Id: r"),
    "no thrift": post(b"hello", "X-Request-Id: r"),
    "empty": post(b"", "X-Request-Id: r"),
}


@pytest.mark.parametrize("request_bytes", REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_is_the_same_by_either_way(request_bytes):
    answers = []
    for way in (running, by_asgi):
        with way(authenticator=Stranger()) as server:
            answers.append(without_date(server.exchange(request_bytes + LAST)))
        lines = server.log_lines()
        for line in lines:
            line.pop("ms"), line.pop("timestamp")
        answers.append(lines)
    assert answers[:2] == answers[2:]
    assert answers[0].startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("way", [running, by_asgi])
def test_requests_that_share_a_refusal_are_answered_each_by_its_own_name_and_seqid(way):
    """Those with the same Authorization header wait for one check of its password."""

    class Full(Stranger):
        refusal = Refused(503, "There are too many passwords to check")

        async def authenticate(self, head):
            raise self.refusal

    with way(authenticator=Full()) as server, server.connect() as connection:
        for name, seqid in (("get_table", 5), ("get_all_databases", 6)):
            connection.sendall(post(b'[1,"%b",1,%d,{}]' % (name.encode(), seqid)))
            status, _, body = read_response(connection)
            assert (status, json.loads(body)[1:4]) == (503, [name, 3, seqid])
    assert [line["method"] for line in server.log_lines()] == ["get_table", "get_all_databases"]


@pytest.mark.slow
@pytest.mark.parametrize("way", [running, by_asgi])
def test_a_failure_of_ours_is_500_and_recorded(way):
    class Broken(Anybody):
        def remembered(self, head):
            raise OSError("gone")

    with way(authenticator=Broken()) as server, server.connect() as connection:
        connection.sendall(post(CALL))
        assert read_response(connection)[0] == 500
    assert [(line["status"], line["outcome"]) for line in server.log_lines()] == [(500, "internal_error")]


def test_a_wrong_password_gets_nothing_of_the_cache():
    with running(authenticator=Stranger(), cache=FakeCache(KNOWN)) as server, server.connect() as connection:
        connection.sendall(post(CALL))
        assert read_response(connection)[0] == 401


def test_a_body_over_the_limit_is_413_although_its_reply_is_known():
    limits = Limits(body_bytes_max=10)
    with running(cache=FakeCache(KNOWN), limits=limits) as server, server.connect() as connection:
        connection.sendall(post(CALL))
        assert read_response(connection)[0] == 413


@pytest.mark.parametrize("later", [False, True])
def test_answers_of_the_cache_and_others_keep_the_order_of_pipelined_requests(later):
    processor = CannedProcessor(**{f"slow_{number}": DATABASES for number in range(20)})
    with running(processor, cache=FakeCache(KNOWN, awaitable=later)) as server:
        requests = []
        for number in range(20):
            requests += [
                CALL.replace(b",1,1,", b",1,%d," % (100 + number)),
                b'[1,"slow_%d",1,%d,{}]' % (number, number),
            ]
        raw = server.exchange(b"".join(map(post, requests)) + LAST)
    seqids = [int(found) for found in re.findall(rb'\r\n\r\n\[1,"[a-z_0-9]+",2,([0-9]+),', raw)]
    assert seqids == [it for number in range(20) for it in (100 + number, number)] + [1]


@pytest.mark.parametrize("later", [False, True])
def test_a_connection_that_was_answered_from_the_cache_is_closed_when_it_falls_silent(later):
    with (
        running(cache=FakeCache(KNOWN, awaitable=later), idle_seconds_max=0.05) as server,
        server.connect() as connection,
    ):
        connection.sendall(post(CALL))
        read_response(connection)
        assert connection.recv(1) == b""


def test_line_ends_after_an_answer_at_once_do_not_keep_a_connection():
    with running(cache=FakeCache(KNOWN), header_seconds_max=SECONDS_TO_SEND) as server:
        until(lambda: is_closed_after_a_line_end(server))


def test_stopping_closes_a_connection_that_was_answered_at_once_and_finishes_the_call_of_another():
    go = threading.Event()
    processor = CannedProcessor(slow=lambda message, call: go.wait() and DATABASES)
    with running(processor, cache=FakeCache(KNOWN)) as server, server.connect() as quick, server.connect() as busy:
        busy.sendall(post(b'[1,"slow",1,1,{}]'))
        for _ in range(3):
            quick.sendall(post(CALL))
            assert read_response(quick)[2] == ANSWER
        server.server.stop()
        assert quick.recv(1) == b""
        go.set()
        status, headers, _ = read_response(busy)
        assert (status, headers["connection"]) == (200, "close")


class HoldingCache(FakeCache):
    """Answers later, when the test says so."""

    def __init__(self) -> None:
        super().__init__(KNOWN)
        self.is_asked = threading.Event()

    def lookup(self, key):
        loop = asyncio.get_running_loop()
        found = loop.create_future()
        self.answer = lambda payload: loop.call_soon_threadsafe(lambda: found.done() or found.set_result(payload))
        self.is_asked.set()
        return found

    def wait(self):
        """What answers the question that was put last."""
        assert self.is_asked.wait(PATIENCE_SECONDS)
        self.is_asked.clear()
        return self.answer


def test_what_turns_out_not_to_be_current_is_called():
    cache, processor = HoldingCache(), CannedProcessor()
    with running(processor, cache=cache) as server, server.connect() as connection:
        connection.sendall(post(CALL, "X-Request-Id: r"))
        cache.wait()(None)
        assert read_response(connection)[2] == ANSWER
        assert (server.metrics.cache_hits, len(processor.calls)) == (0, 1)


def test_a_client_that_goes_before_its_answer_does_no_harm():
    cache = HoldingCache()
    with running(cache=cache) as server:
        with server.connect() as connection:
            connection.sendall(post(CALL))
            first = cache.wait()
        with server.connect() as connection:
            connection.sendall(post(CALL))
            second = cache.wait()
            first(DATABASES)
            second(DATABASES)
            assert read_response(connection)[2] == ANSWER


def test_stopping_answers_the_call_that_waits_for_the_cache():
    cache = HoldingCache()
    with running(cache=cache) as server, server.connect() as connection, server.connect() as silent:
        connection.sendall(post(CALL))
        answer = cache.wait()
        server.server.stop()
        assert silent.recv(1) == b""
        answer(DATABASES)
        status, headers, body = read_response(connection)
        assert (status, headers["connection"], body) == (200, "close", ANSWER)
