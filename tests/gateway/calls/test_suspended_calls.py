"""Calls that need no thread are begun once, however the request is answered in the end, and answered as by a thread."""

import asyncio
import queue
import re
import socket

import pytest

from hms_gateway.gateway.admission.identity import Identity, Refused
from hms_gateway.metastore.ports.store import StoreUnavailable
from hms_gateway.rpc.call import Unavailable
from hms_gateway.rpc.processor import Reply
from hms_gateway.rpc.repeatable import RepeatableProcessor
from hms_gateway.rpc.wire import MessageType
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.suspension import Deferred, Result, call_in_loop
from tests.gateway.serving import SECONDS_TO_SEND, Anybody, post, read_all, read_response, running
from tests.support.patience import PATIENCE_SECONDS, until

LOCK = b'[1,"lock",1,7,{}]'
READ = b'[1,"get_all_databases",1,8,{}]'
GRANTED = b'{"0":{"rec":{"1":{"i64":1}}}}'
LOCKED = b'[1,"lock",2,7,' + GRANTED + b"]"
READ_ANSWER = b'[1,"get_all_databases",2,8,{}]'


class Store:
    """Takes units of work and commits them when the test says so."""

    def __init__(self) -> None:
        self.begun: queue.SimpleQueue = queue.SimpleQueue()

    def start(self, work, done) -> None:
        loop = asyncio.get_running_loop()
        self.begun.put(lambda given: call_in_loop(loop, done, given))

    def next(self):
        return self.begun.get(timeout=PATIENCE_SECONDS)

    def commit(self, value: object = GRANTED) -> None:
        self.next()(Result(value))

    def fail(self, failure: BaseException) -> None:
        self.next()(Result(None, failure))


class Metastore:
    """`lock` does one unit of work, everything else none; it says under which call it was made."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.calls: list = []

    def process(self, codec, message, call) -> Reply:
        return Reply(MessageType.REPLY, b"{}", "ok")

    def answering(self, codec, message, call):
        self.calls.append(call)
        given = yield Deferred(self.store, None)
        try:
            return Reply(MessageType.REPLY, given.get(), "ok")
        except StoreUnavailable as error:
            raise Unavailable(str(error)) from error


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def metastore(store: Store) -> Metastore:
    return Metastore(store)


def processor(metastore: Metastore) -> RepeatableProcessor:
    return RepeatableProcessor(metastore, None)


def lines_of(server, method: str) -> list[dict]:
    return [line for line in server.log_lines() if line["method"] == method]


def test_it_is_answered_when_its_unit_of_work_is_committed(store, metastore):
    with running(processor(metastore)) as server, server.connect() as connection:
        for _ in range(2):
            connection.sendall(post(LOCK, "X-Request-Id: r", "X-Hms-Lease-Id: 3"))
            store.commit()
            status, headers, body = read_response(connection)
            assert (status, headers["x-request-id"], body) == (200, "r", LOCKED)
        server.stop()
        assert [line["outcome"] for line in lines_of(server, "lock")] == ["ok", "ok"]
        until(lambda: server.metrics.calls_in_flight == 0)
    assert [(call.principal, call.lease) for call in metastore.calls] == [("ann", "3")] * 2


def test_a_response_is_the_same_as_through_asgi(store, metastore):
    """A header that only the endpoint knows how to answer makes the other way."""
    answers = []
    with running(processor(metastore)) as server:
        for headers in ((), ("Transfer-Encoding: chunked",)):
            body = LOCK if not headers else b"%x\r\n%b\r\n0\r\n\r\n" % (len(LOCK), LOCK)
            with server.connect() as connection:
                connection.sendall(post(body, "X-Request-Id: r", *headers))
                store.commit()
                status, fields, answer = read_response(connection)
                fields.pop("date", None)
                answers.append((status, fields, answer))
        server.stop()
        first, second = lines_of(server, "lock")
        for line in (first, second):
            line.pop("ms"), line.pop("timestamp")
        assert first == second
    assert answers[0] == answers[1]


def test_the_next_request_of_the_connection_waits_and_the_call_is_made_once(store, metastore):
    with running(processor(metastore)) as server, server.connect() as connection:
        connection.sendall(post(LOCK, "X-Request-Id: r1") + post(READ) + post(LOCK) + post(READ, "Connection: close"))
        store.commit()
        store.commit()
        answers = re.findall(rb'\r\n\r\n\[1,"\w+",2,(\d+),', read_all(connection))
        assert answers == [b"7", b"8", b"7", b"8"]
        server.stop()
        assert lines_of(server, "lock")[0]["request_id"] == "r1"
    assert len(metastore.calls) == 2


def test_a_stopping_server_answers_what_has_begun(store, metastore):
    with running(processor(metastore)) as server, server.connect() as connection, server.connect() as silent:
        connection.sendall(post(LOCK))
        commit = store.next()
        server.server.stop()
        assert silent.recv(1) == b""
        commit(Result(GRANTED))
        status, headers, body = read_response(connection)
        assert (status, headers["connection"], body) == (200, "close", LOCKED)
    assert len(metastore.calls) == 1


def test_what_was_done_for_a_client_that_has_gone_is_logged(store, metastore):
    with running(processor(metastore)) as server:
        with server.connect() as connection:
            connection.sendall(post(LOCK))
            commit = store.next()
        with server.connect() as other:
            other.sendall(post(READ))
            assert read_response(other)[2] == READ_ANSWER
        commit(Result(GRANTED))
        server.stop()
        assert [line["outcome"] for line in lines_of(server, "lock")] == ["ok"]
        until(lambda: server.metrics.calls_in_flight == 0)


def test_a_store_that_fails_is_told_as_for_every_call(store, metastore):
    with running(processor(metastore)) as server, server.connect() as connection:
        connection.sendall(post(LOCK))
        store.fail(StoreUnavailable("the disk is full"))
        status, _, body = read_response(connection)
        assert status == 503
        assert b"the disk is full" in body
        connection.sendall(post(READ))
        assert read_response(connection)[2] == READ_ANSWER
    assert len(metastore.calls) == 1


def test_a_store_that_takes_nothing_is_told_too(store, metastore):
    def refuse(work, done) -> None:
        raise StoreUnavailable("the store is closed")

    store.start = refuse
    with running(processor(metastore)) as server, server.connect() as connection:
        connection.sendall(post(LOCK))
        status, _, body = read_response(connection)
        assert (status, b"the store is closed" in body) == (503, True)
        until(lambda: server.metrics.calls_in_flight == 0)


def test_a_call_that_takes_too_long_is_given_up_and_not_made_again(store, metastore):
    with running(processor(metastore), call_seconds_max=SECONDS_TO_SEND) as server, server.connect() as connection:
        connection.sendall(post(LOCK))
        status, _, body = read_response(connection)
        assert (status, b"it may still take effect" in body) == (503, True)
        store.commit()
        # It has as little time.
        until(lambda: answer_of(connection, READ) == READ_ANSWER)
        until(lambda: server.metrics.calls_in_flight == 0)
    assert len(metastore.calls) == 1


def answer_of(connection: socket.socket, call: bytes) -> bytes:
    connection.sendall(post(call))
    return read_response(connection)[2]


def test_too_many_calls_are_refused_and_not_made(store, metastore):
    limits = Limits(calls_in_flight_max=2)
    with running(processor(metastore), limits=limits) as server, server.connect() as first, server.connect() as second:
        first.sendall(post(LOCK))
        commit = store.next()
        second.sendall(post(LOCK))
        status, _, body = read_response(second)
        assert (status, b"share_per_user of calls_in_flight_max" in body) == (503, True)
        commit(Result(GRANTED))
        assert read_response(first)[2] == LOCKED
        second.sendall(post(LOCK))
        store.commit()
        assert read_response(second)[2] == LOCKED


def test_a_password_that_is_withdrawn_meanwhile_does_not_hide_what_was_done(store, metastore):
    """The request is handed over because another one follows, and is not authenticated again."""

    class Once(Anybody):
        asked = 0

        def remembered(self, head):
            self.asked += 1
            return Identity("ann", head.peer) if self.asked == 1 else None

        async def authenticate(self, head):
            raise Refused(401, "who are you?")

    with running(processor(metastore), authenticator=Once()) as server, server.connect() as connection:
        connection.sendall(post(LOCK) + post(READ, "Connection: close"))
        store.commit()
        answers = read_all(connection)
    assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"200", b"401"]
    assert LOCKED in answers
