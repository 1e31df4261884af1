"""What is answered when: clients §10 row by row, over real sockets."""

import gzip
import io
import json
import threading

import httpx
import pytest

from hms_gateway.cache.replies import CurrentAnswer
from hms_gateway.gateway.admission.identity import Refused
from hms_gateway.gateway.admission.proxies import Proxies
from hms_gateway.gateway.observability.call_logs import AuditLog
from hms_gateway.rpc.call import Dialect, Unavailable
from hms_gateway.rpc.wire import MessageType, make_codecs
from hms_gateway.runtime.limits import Limits
from tests.gateway.serving import (
    ANSWER,
    CALL,
    DATABASES,
    PATH,
    Anybody,
    CannedProcessor,
    FakeCache,
    parse_head,
    post,
    read_response,
    running,
)
from tests.support.patience import until

TJSON_TYPE = "application/vnd.apache.thrift.json"
CODECS = make_codecs(Limits())


class Nobody(Anybody):
    """Refuses everybody as a password check does."""

    def remembered(self, head):
        return None

    async def authenticate(self, head):
        raise Refused(401, "Authentication is required", headers=((b"www-authenticate", b'Basic realm="x"'),))


@pytest.fixture(scope="module")
def server():
    with running() as it:
        yield it


@pytest.fixture(scope="module")
def client():
    with httpx.Client() as it:
        yield it


def binary_call(name="get_all_databases", type=MessageType.CALL, seqid=1, codec=CODECS.binary):
    before, after = codec.envelope(name, type, seqid)
    return before + b"\x00" + after


def exception(body):
    """The application exception of a TJSON body: name, seqid, text, type."""
    version, name, type, seqid, payload = json.loads(body)
    assert (version, type) == (1, 3)
    return name, seqid, payload["1"]["str"], payload["2"]["i32"]


def test_a_call_is_answered_with_200_in_its_own_protocol(server, client):
    reply = client.post(server.url, content=CALL)
    assert (reply.status_code, reply.content) == (200, ANSWER)
    assert reply.headers["content-type"] == TJSON_TYPE
    assert reply.headers["content-length"] == str(len(ANSWER))


def test_binary_and_compact_come_back_as_x_thrift(client):
    with running(CannedProcessor(get_all_databases=b"\x00")) as server:
        for codec in (CODECS.binary, CODECS.compact):
            reply = client.post(server.url, content=binary_call(codec=codec))
            assert (reply.status_code, reply.headers["content-type"]) == (200, "application/x-thrift")
            assert codec.read_message(reply.content)[:3] == ("get_all_databases", MessageType.REPLY, 1)


def test_an_unknown_method_is_an_application_exception_with_200(server, client):
    reply = client.post(server.url, content=b'[1,"get_everything",1,-7,{}]')
    assert reply.status_code == 200
    assert exception(reply.content) == ("get_everything", -7, "Invalid method name: 'get_everything'", 1)


@pytest.mark.parametrize(
    ("body", "addressee", "kind"),
    [
        (b'[2,"get_table",1,3,{}]', ("get_table", 3), 7),
        (b'[1,"get_table",9,3,{}]', ("get_table", 3), 2),
        (b'[1,"get_table",1,9999999999,{}]', ("get_table", 0), 7),
        (b'[1,"get_table",1,{}]', ("get_table", 0), 7),
        (b'[1,"get_table",1,3,{', ("get_table", 3), 7),
        (b'[1,"get_ta', ("", 0), 7),
    ],
)
def test_an_envelope_is_refused_with_400_whatever_is_wrong_with_it(server, client, body, addressee, kind):
    reply = client.post(server.url, content=body)
    assert (reply.status_code, reply.headers["content-type"]) == (400, TJSON_TYPE)
    assert exception(reply.content)[:2] == addressee
    assert exception(reply.content)[3] == kind


def test_so_is_one_of_the_binary_protocol(server, client):
    reply = client.post(server.url, content=binary_call().replace(b"\x80\x01\x00\x01", b"\x80\x01\x00\x09"))
    assert (reply.status_code, reply.headers["content-type"]) == (400, "text/plain; charset=utf-8")


@pytest.mark.parametrize("body", [b"", b"hello", b"<html>", b"\x00", b"{}", b"\xff\xfe"])
def test_what_is_no_thrift_message_is_400_with_a_text(server, client, body):
    reply = client.post(server.url, content=body)
    assert (reply.status_code, reply.headers["content-type"]) == (400, "text/plain; charset=utf-8")
    assert 0 < len(reply.text) < 300


def test_a_refused_tjson_call_gets_401_with_an_application_exception(client):
    with running(authenticator=Nobody()) as server:
        reply = client.post(server.url, content=b'[1,"get_table",1,5,{"1":{"str":"a"}}]')
        assert reply.status_code == 401
        assert reply.headers["www-authenticate"] == 'Basic realm="x"'
        assert reply.headers["content-type"] == TJSON_TYPE
        assert exception(reply.content)[:3] == ("get_table", 5, "Authentication is required")


def test_a_refused_binary_call_gets_401_with_a_text(client):
    with running(authenticator=Nobody()) as server:
        reply = client.post(server.url, content=binary_call())
        assert (reply.status_code, reply.text) == (401, "Authentication is required\n")


def test_a_refused_large_body_is_read_so_that_the_answer_arrives_and_the_method_is_echoed():
    with running(authenticator=Nobody()) as server, server.connect() as connection:
        body = b'[1,"add_partitions",1,5,{"1":{"str":"' + b"a" * 300_000 + b'"}}]'
        connection.sendall(post(body))
        status, headers, answer = read_response(connection)
        assert (status, headers["connection"]) == (401, "close")
        assert exception(answer)[:2] == ("add_partitions", 5)


def test_a_refused_call_keeps_the_connection_when_its_body_was_read():
    with running(authenticator=Nobody()) as server, server.connect() as connection:
        for _ in range(2):
            connection.sendall(post(CALL))
            assert read_response(connection)[0] == 401


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "PATCH"])
def test_other_methods_are_405_and_name_what_is_allowed(server, client, method):
    reply = client.request(method, server.url)
    assert (reply.status_code, reply.headers["allow"]) == (405, "POST, OPTIONS")


def test_options_is_204_with_cors_headers_and_needs_no_credentials(client):
    with running(authenticator=Nobody()) as server:
        reply = client.options(
            server.url,
            headers={
                "Origin": "https://page.example",
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "authorization,content-type",
            },
        )
        assert (reply.status_code, reply.content) == (204, b"")
        assert reply.headers["access-control-allow-origin"] == "*"
        assert "POST" in reply.headers["access-control-allow-methods"]
        assert {"authorization", "content-type", "accept", "idempotency-key", "x-hms-lease-id"} <= set(
            reply.headers["access-control-allow-headers"].split(", ")
        )
        assert "access-control-allow-credentials" not in reply.headers


def test_replies_to_pages_carry_cors_headers_and_others_do_not(server, client):
    reply = client.post(server.url, content=CALL, headers={"Origin": "https://page.example"})
    assert reply.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-origin" not in client.post(server.url, content=CALL).headers


def test_configured_origins_are_echoed_and_others_are_refused(client):
    with running(origins=("https://good.example",)) as server:
        good = client.post(server.url, content=CALL, headers={"Origin": "https://good.example"})
        other = client.post(server.url, content=CALL, headers={"Origin": "https://other.example"})
        assert good.headers["access-control-allow-origin"] == "https://good.example"
        assert "access-control-allow-origin" not in other.headers
        assert other.status_code == 403
        assert "https://other.example" in other.text
        assert "cors_origins" in other.text
        assert server.metrics.refusals == {"cross_site": 1}
    assert [line["outcome"] for line in server.log_lines()] == ["ok", "cross_site"]


def test_an_announced_body_that_is_too_large_is_413_before_it_is_sent():
    with running(limits=Limits(body_bytes_max=1000)) as server, server.connect() as connection:
        connection.sendall(post(b'[1,"get_table",1,9,{', length=10**9))
        status, headers, body = read_response(connection)
        assert (status, headers["connection"]) == (413, "close")
        assert exception(body)[:2] == ("get_table", 9)
        assert "body_bytes_max" in exception(body)[2]


def test_an_unknown_path_is_404_and_the_root_is_no_endpoint(server, client):
    assert client.post(f"{server.root}/", content=CALL).status_code == 404
    assert client.post(f"{server.root}/gateway", content=CALL).status_code == 404


@pytest.mark.parametrize(
    ("path", "dialect"),
    [
        (PATH, Dialect.HIVE_2_3),
        (f"{PATH}/", Dialect.HIVE_2_3),
        ("/metastore", Dialect.HIVE_4),
        ("/metastore/", Dialect.HIVE_4),
        ("/metastore/*", Dialect.HIVE_4),
    ],
)
def test_the_path_decides_the_dialect(client, path, dialect):
    processor = CannedProcessor()
    with running(processor) as server:
        assert client.post(server.root + path, content=CALL).content == ANSWER
        assert processor.calls[0][1].dialect is dialect


def test_a_oneway_call_gets_an_empty_200_with_a_length(server, client):
    reply = client.post(server.url, content=b'[1,"shutdown",4,1,{}]')
    assert (reply.status_code, reply.content, reply.headers["content-length"]) == (200, b"", "0")


def test_too_many_calls_in_flight_are_503_with_retry_after(client):
    go = threading.Event()
    processor = CannedProcessor(get_all_databases=lambda message, call: go.wait() and DATABASES)
    with running(processor, limits=Limits(calls_in_flight_max=1)) as server:
        with server.connect() as waiting:
            waiting.sendall(post(CALL))
            until(lambda: processor.calls)
            refused = client.post(server.url, content=CALL)
            go.set()
            assert read_response(waiting)[2] == ANSWER
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert "calls_in_flight_max" in exception(refused.content)[2]
        assert client.post(server.url, content=CALL).content == ANSWER


def test_one_user_cannot_take_all_calls(client):
    go = threading.Event()
    processor = CannedProcessor(get_all_databases=lambda message, call: go.wait() and DATABASES)
    user = Anybody()
    with running(processor, authenticator=user, limits=Limits(calls_in_flight_max=3)) as server:
        with server.connect() as waiting, server.connect() as other:
            waiting.sendall(post(CALL))
            until(lambda: processor.calls)
            refused = client.post(server.url, content=CALL)
            user.user = "bob"
            other.sendall(post(CALL))
            until(lambda: len(processor.calls) == 2)
            go.set()
            assert read_response(other)[0] == 200
        assert refused.status_code == 503
        assert "share_per_user of calls_in_flight_max" in exception(refused.content)[2]


def test_an_unavailable_store_is_503_in_words_that_no_client_takes_for_a_lost_connection(client):
    unavailable = Unavailable("the database does not answer", limit="write_queue_max")
    with running(CannedProcessor(get_all_databases=unavailable)) as server:
        reply = client.post(server.url, content=CALL)
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")
        name, seqid, text, type = exception(reply.content)
        assert (name, seqid, type) == ("get_all_databases", 1, 6)
        assert not any(word in text for word in ("TTransport", "TProtocol", "JDO"))
        binary = client.post(server.url, content=binary_call())
        assert (binary.status_code, binary.headers["content-type"]) == (503, "text/plain; charset=utf-8")
        assert server.metrics.limited == {"write_queue_max": 2}


@pytest.mark.slow
def test_an_unforeseen_error_is_500_that_shows_nothing_of_it(client):
    with running(CannedProcessor(get_all_databases=ValueError("secret inside"))) as server:
        reply = client.post(server.url, content=CALL)
        assert reply.status_code == 500
        assert exception(reply.content) == (
            "get_all_databases",
            1,
            "Internal error processing get_all_databases",
            6,
        )


def test_a_call_that_takes_too_long_is_given_up_with_503(client):
    go = threading.Event()
    processor = CannedProcessor(get_all_databases=lambda message, call: go.wait() and DATABASES)
    with running(processor, call_seconds_max=0.02) as server:
        reply = client.post(server.url, content=CALL)
        go.set()
        assert reply.status_code == 503
        assert "may still take effect" in exception(reply.content)[2]


@pytest.mark.parametrize(
    "content_type",
    [
        TJSON_TYPE,
        "application/vnd.apache.thrift.json; charset=utf-8",
        "APPLICATION/X-THRIFT",
        "application/json",
        "text/plain",
        "application/octet-stream",
        "application/x-www-form-urlencoded",
        "nonsense",
    ],
)
def test_every_content_type_is_accepted(server, client, content_type):
    headers = {"Content-Type": content_type, "Accept": "application/x-thrift"}
    assert client.post(server.url, content=CALL, headers=headers).content == ANSWER


def test_no_content_type_and_two_of_them_are_accepted(server):
    with server.connect() as connection:
        connection.sendall(post(CALL))
        assert read_response(connection)[2] == ANSWER
        connection.sendall(post(CALL, "Content-Type: application/x-thrift", f"Content-Type: {TJSON_TYPE}"))
        assert read_response(connection)[2] == ANSWER


def test_a_form_encoded_body_of_a_trusted_proxy_is_decoded_once(server, client):
    body = b"%5B1%2C%22get_all_databases%22%2C1%2C1%2C%7B%7D%5D"
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    with running(proxies=Proxies(["127.0.0.1"])) as trusting:
        assert client.post(trusting.url, content=body, headers=headers).content == ANSWER
        assert client.post(trusting.url, content=body + b"=", headers=headers).content == ANSWER
        assert client.post(trusting.url, content=body).status_code == 400
        cut = client.post(trusting.url, content=body.replace(b"all", b"a=&ll"), headers=headers)
        assert (cut.status_code, "The body has an &" in cut.text) == (400, True)
    refused = client.post(server.url, content=body, headers=headers)
    assert (refused.status_code, "trusted_proxy.addresses" in refused.text) == (400, True)
    assert client.post(server.url, content=CALL, headers=headers).content == ANSWER


def test_expect_100_continue_is_answered_before_the_body_is_sent(server):
    with server.connect() as connection:
        head, _, body = post(CALL, "Expect: 100-continue").partition(b"\r\n\r\n")
        connection.sendall(head + b"\r\n\r\n")
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert read_response(connection)[2] == ANSWER


def test_a_refused_request_that_expects_continue_is_not_asked_for_its_body():
    with running(authenticator=Nobody()) as server, server.connect() as connection:
        head, _, _ = post(CALL, "Expect: 100-continue").partition(b"\r\n\r\n")
        connection.sendall(head + b"\r\n\r\n")
        status, headers, _ = read_response(connection)
        assert (status, headers["connection"]) == (401, "close")


def test_a_sane_request_id_is_echoed_and_others_are_replaced(server, client):
    echoed = client.post(server.url, content=CALL, headers={"X-Request-Id": "proxy-17"})
    replaced = client.post(server.url, content=CALL, headers={"X-Request-Id": "a b{}"})
    assert echoed.headers["x-request-id"] == "proxy-17"
    assert replaced.headers["x-request-id"] not in ("a b{}", "")
    assert replaced.headers["x-request-id"] != client.post(server.url, content=CALL).headers["x-request-id"]


def test_handlers_see_who_calls_and_what_marks_the_call(client):
    processor = CannedProcessor()
    headers = {"X-Request-Id": "r1", "Idempotency-Key": "k1", "X-Hms-Lease-Id": "7", "X-Hms-Recorded-At": "9"}
    with running(processor) as server:
        for given in (headers, {}):
            client.post(server.url, content=CALL, headers=given)
    call, other = (call for _, call in processor.calls)
    assert (call.principal, call.client_address) == ("ann", "127.0.0.1")
    assert (call.request_id, call.key, call.lease, call.recorded_at) == ("r1", "k1", "7", "9")
    assert (other.key, other.lease, other.recorded_at) == (None, None, None)


def test_large_replies_are_compressed_when_asked_only(client):
    large = b'{"0":{"str":"' + b"a" * 100_000 + b'"}}'
    with running(CannedProcessor(get_all_databases=large)) as server:
        plain = client.post(server.url, content=CALL, headers={"Accept-Encoding": "identity"})
        refused = client.post(server.url, content=CALL, headers={"Accept-Encoding": "gzip;q=0, br"})
        packed = client.post(server.url, content=CALL, headers={"Accept-Encoding": "br, gzip"})
        assert "content-encoding" not in plain.headers
        assert "content-encoding" not in refused.headers
        assert packed.headers["content-encoding"] == "gzip"
        assert int(packed.headers["content-length"]) < 5_000
        assert packed.content == plain.content


def test_small_replies_are_never_compressed(server, client):
    reply = client.post(server.url, content=CALL, headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in reply.headers


def test_compressed_requests_are_accepted_and_bounded(client):
    with running(limits=Limits(body_bytes_max=10_000)) as server:
        headers = {"Content-Encoding": "gzip"}
        assert client.post(server.url, content=gzip.compress(CALL), headers=headers).content == ANSWER
        two_members = gzip.compress(CALL[:10]) + gzip.compress(CALL[10:])
        assert client.post(server.url, content=two_members, headers=headers).content == ANSWER
        bomb = gzip.compress(b" " * 1_000_000)
        assert len(bomb) < 10_000
        assert client.post(server.url, content=bomb, headers=headers).status_code == 413
        assert client.post(server.url, content=gzip.compress(CALL)[:20], headers=headers).status_code == 400
        assert client.post(server.url, content=CALL, headers=headers).status_code == 400
        assert client.post(server.url, content=CALL, headers={"Content-Encoding": "br"}).status_code == 415


def test_pipelined_requests_are_answered_in_order(server):
    with server.connect() as connection:
        connection.sendall(post(CALL) + post(b'[1,"nope",1,2,{}]') + post(CALL, "Connection: close"))
        data = b""
        while piece := connection.recv(65536):
            data += piece
    assert data.count(b"HTTP/1.1 200 OK\r\n") == 3
    assert data.index(ANSWER) < data.index(b'"nope"') < data.rindex(ANSWER)


KEY = ("tjson", Dialect.HIVE_2_3, "get_all_databases", b"{}")


@pytest.mark.parametrize("awaitable", [False, True])
def test_a_known_reply_is_served_without_the_processor(client, awaitable):
    processor = CannedProcessor()
    with running(processor, cache=FakeCache({KEY: DATABASES}, awaitable)) as server:
        assert client.post(server.url, content=CALL).content == ANSWER
        assert processor.calls == []
        assert server.metrics.cache_hits == 1


def test_a_reply_is_remembered_with_the_ticket_of_before_and_failures_are_not(client):
    cache = FakeCache()
    with running(cache=cache) as server:
        client.post(server.url, content=CALL)
        client.post(server.url, content=b'[1,"nope",1,2,{}]')
        assert cache.remembered == [(KEY, DATABASES, 42)]


def test_a_oneway_message_is_never_answered_from_the_cache(client):
    processor = CannedProcessor()
    with running(processor, cache=FakeCache({KEY: DATABASES})) as server:
        client.post(server.url, content=b'[1,"get_all_databases",4,1,{}]')
        assert len(processor.calls) == 1


def test_a_cache_that_fails_leaves_the_call_to_the_processor(client):
    class Broken(FakeCache):
        def lookup(self, key):
            raise OSError("gone")

    with running(cache=Broken()) as server:
        assert client.post(server.url, content=CALL).content == ANSWER


class Lines(io.StringIO):
    """A destination of the audit log."""

    def open_again(self): ...

    def close(self): ...


def test_an_answer_that_the_client_has_is_in_the_audit_log_with_its_objects(client):
    lines = Lines()
    audit_log = AuditLog(lines)
    cache = FakeCache(held=CurrentAnswer(b'"made.7"', (("table", "sales", "orders"),)))
    with running(cache=cache, audit_log=audit_log) as server:
        answer = client.post(server.url, content=CALL, headers={"If-None-Match": '"made.7"'})
    audit_log.close()
    assert (answer.status_code, answer.headers["etag"], answer.content) == (304, '"made.7"', b"")
    line = json.loads(lines.getvalue())
    assert (line["objects"], line["status"], line["cached"]) == (["sales.orders"], 304, True)


def test_the_date_and_reason_phrase_are_sent(server):
    answer = server.exchange(post(CALL, "Connection: close"))
    head = answer.partition(b"\r\n\r\n")[0]
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert "date" in parse_head(head)[1]
