"""The client against a real HTTP server that answers what a test wants, and against ports where nobody is."""

import json
import socket

import pytest

from hms_gateway.client.metastore_client import MetastoreClient, NotAMetastore, NotAuthorized, NotReached, NotTrusted
from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import Database, NoSuchObjectException
from hms_gateway.rpc.wire import ApplicationError, ApplicationErrorType
from tests.support.answering import Answer, always, answering


def call(answer: Answer, name: str, *arguments, **named):
    with answering(answer) as url, MetastoreClient(url, ("alice", "secret")) as client:
        return client.call(name, *arguments, **named)


def test_the_request_is_the_documented_one_and_the_value_comes_back():
    seen = []

    def answer(body, headers):
        seen.append((json.loads(body), headers["Content-Type"], headers["Authorization"]))
        return 200, b'[1,"get_database",2,1,{"0":{"rec":{"1":{"str":"default"}}}}]'

    assert call(answer, "get_database", "default") == Database(name="default")
    assert seen == [
        ([1, "get_database", 1, 1, {"1": {"str": "default"}}], "application/vnd.apache.thrift.json",
         "Basic YWxpY2U6c2VjcmV0")
    ]  # fmt: skip


def test_calls_are_numbered_and_arguments_may_be_named():
    seen = []

    def answer(body, headers):
        seen.append(json.loads(body))
        return 200, b'[1,"get_all_tables",2,1,{"0":{"lst":["str",0]}}]'

    with answering(answer) as url, MetastoreClient(url) as client:
        client.call("get_all_tables", "a")
        assert client.call("get_all_tables", db_name="b") == []
    assert [(message[3], message[4]["1"]) for message in seen] == [(1, {"str": "a"}), (2, {"str": "b"})]


def test_headers_are_sent_along():
    seen = []

    def answer(body, headers):
        seen.append(headers["X-Tenant"])
        return 200, b'[1,"getName",2,1,{"0":{"str":"x"}}]'

    with answering(answer) as url, MetastoreClient(url, headers={"X-Tenant": "blue"}) as client:
        client.call("getName")
    assert seen == ["blue"]


def test_void_and_oneway_return_nothing():
    assert call(always(200, b'[1,"setMetaConf",2,1,{}]'), "setMetaConf", "a", "b") is None
    assert call(always(200, b""), "shutdown") is None


def test_declared_exceptions_are_raised_as_their_class():
    body = b'[1,"get_database",2,1,{"1":{"rec":{"1":{"str":"nowhere"}}}}]'
    with pytest.raises(NoSuchObjectException) as caught:
        call(always(200, body), "get_database", "nowhere")
    assert caught.value.message == "nowhere"


def test_application_exceptions_keep_their_type():
    body = b'[1,"get_database",3,1,{"1":{"str":"Invalid method name: \'get_database\'"},"2":{"i32":1}}]'
    with pytest.raises(ApplicationError, match="Invalid method name") as caught:
        call(always(200, body), "get_database", "x")
    assert caught.value.type is ApplicationErrorType.UNKNOWN_METHOD


def test_an_empty_result_is_an_error():
    with pytest.raises(ApplicationError, match="unknown result"):
        call(always(200, b'[1,"get_database",2,1,{}]'), "get_database", "x")


def test_a_wrong_password_is_told_as_such():
    with pytest.raises(NotAuthorized, match="401") as caught:
        call(always(401, b"no"), "getName")
    assert "password" in caught.value.hint


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "content", "text"),
    [
        (404, b"", "404"),
        (503, b'[1,"getName",3,1,{"1":{"str":"the database is away"},"2":{"i32":6}}]', "the database is away"),
        (500, b"plain words", "plain words"),
        (200, b"<html>hello</html>", "does not answer in Thrift JSON"),
        (200, b'[1,"getVersion",2,1,{"0":{"str":"x"}}]', "answers getVersion to a call of getName"),
        (200, b'[1,"getName",2,1,{"0":{"str":"x"}', "readable"),
    ],
)
def test_what_is_no_answer_of_a_metastore_is_told_as_such(status, content, text):
    with pytest.raises(NotAMetastore) as caught:
        call(always(status, content), "getName")
    assert text in f"{caught.value} {caught.value.hint}"


def test_nobody_listens():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with MetastoreClient(f"http://127.0.0.1:{port}/") as client, pytest.raises(NotReached, match="be reached"):
            client.call("getName")


@pytest.mark.slow
@pytest.mark.parametrize("url", ["localhost:30443", "nonsense://x/", "https://"])
def test_what_is_no_url(url):
    with MetastoreClient(url) as client, pytest.raises(NotReached):
        client.call("getName")


def test_a_certificate_of_nobody_is_not_trusted_until_it_is_given(tmp_path):
    answer = always(200, b'[1,"getName",2,1,{"0":{"str":"x"}}]')
    with answering(answer, tls_folder=tmp_path) as url:
        with MetastoreClient(url) as client, pytest.raises(NotTrusted) as caught:
            client.call("getName")
        assert "--cacert" in caught.value.hint
        with MetastoreClient(url, verify=False) as client:
            assert client.call("getName") == "x"


def test_progress_is_told_in_bytes():
    content = b'[1,"getName",2,1,{"0":{"str":"' + b"x" * 200_000 + b'"}}]'
    seen: list[tuple[int, int | None]] = []
    call(always(200, content), "getName", on_progress=lambda received, total: seen.append((received, total)))
    assert seen[-1] == (len(content), len(content))


def test_unknown_methods_and_arguments_are_mistakes_of_the_caller():
    with MetastoreClient("http://127.0.0.1:1/") as client:
        for name, arguments, named in [
            ("get_tabel", (), {}),
            ("getName", ("more",), {}),
            ("get_database", ("a",), {"name": "b"}),
            ("get_database", (), {"nam": "b"}),
        ]:
            with pytest.raises(TypeError):
                client.call(name, *arguments, **named)


def test_the_dialect_decides_the_shape():
    body = b'[1,"get_open_txns",2,1,{"0":{"rec":{"1":{"i64":7},"2":{"lst":["i64",1,5]},"4":{"str":"AA=="}}}}]'
    with answering(always(200, body)) as url, MetastoreClient(url, methods=methods_of(Dialect.HIVE_4)) as client:
        answer = client.call("get_open_txns")
    assert (answer.open_txns, answer.abortedBits) == ([5], b"\x00")


def test_a_key_is_sent_with_the_same_message_each_time():
    seen = []

    def answer(body, headers):
        seen.append((body, headers.get("Idempotency-Key")))
        return 200, b'[1,"setMetaConf",2,1,{}]'

    with answering(answer) as url, MetastoreClient(url) as client:
        client.call("setMetaConf", "a", "b")
        client.call("setMetaConf", "a", "b", idempotency_key="k1")
        client.call("setMetaConf", "a", "b", idempotency_key="k1")
    assert [key for _, key in seen] == [None, "k1", "k1"]
    assert seen[1] == seen[2]
