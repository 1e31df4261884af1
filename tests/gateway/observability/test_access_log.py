"""One line per call."""

import base64
import io
import json

import httpx
import pytest

from hms_gateway.gateway.observability.call_logs import AccessLog
from hms_gateway.runtime.call_record import CallRecord
from tests.gateway.serving import ANSWER, CALL, record, running


def lines(*records: CallRecord, log_format="json") -> list[str]:
    stream = io.StringIO()
    log = AccessLog(log_format, stream)
    for it in records:
        log.write(it)
    log.close()
    return stream.getvalue().splitlines()


def test_a_line_is_one_json_object_with_every_field():
    (line,) = lines(record())
    assert json.loads(line) == {
        "timestamp": "1970-01-01T00:00:00.250000Z",
        "request_id": "id-1",
        "ms": 1.5,
        "method": "get_table",
        "user": "änn",
        "bytes_in": 10,
        "bytes_out": 20,
        "outcome": "ok",
        "status": 200,
        "address": "127.0.0.1",
        "cached": True,
        "level": "info",
        "event": "call",
    }


def test_nothing_a_client_sends_makes_a_second_line():
    (line,) = lines(record(method='x"\n{"event":"call"}', user="a\r\nb"))
    assert json.loads(line)["method"] == 'x"\n{"event":"call"}'


def test_absurdly_long_names_are_cut():
    (line,) = lines(record(method="x" * 100_000))
    assert len(line) < 1000
    assert json.loads(line)["method"].startswith("xxx")


def test_text_lines_are_for_people():
    (line,) = lines(record(), log_format="text")
    assert "änn get_table ok 200 1.5 ms 10+20 bytes cached id-1" in line


def test_lines_keep_their_order_and_closing_writes_all():
    written = lines(*(record(bytes_in=number) for number in range(1000)))
    assert [json.loads(line)["bytes_in"] for line in written] == list(range(1000))


def test_a_stream_that_fails_stops_nothing():
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(28, "No space left on device")

    log = AccessLog("json", Full())
    log.write(record())
    log.close()


@pytest.mark.slow
def test_a_call_is_logged_with_who_what_and_how_long_but_never_with_its_password():
    password = "correct horse"
    header = "Basic " + base64.b64encode(f"ann:{password}".encode()).decode()
    with running() as server:
        httpx.post(server.url, content=CALL, headers={"X-Request-Id": "r-7", "Authorization": header})
        httpx.post(server.url, content=b'[1,"nope",1,1,{}]')
        httpx.post(server.url, content=b"garbage")
    call, unknown, garbage = server.log_lines()
    assert call["ms"] > 0
    assert {
        name: call[name] for name in ("request_id", "method", "user", "outcome", "status", "address", "cached")
    } == {
        "request_id": "r-7",
        "method": "get_all_databases",
        "user": "ann",
        "outcome": "ok",
        "status": 200,
        "address": "127.0.0.1",
        "cached": False,
    }
    assert (call["bytes_in"], call["bytes_out"]) == (len(CALL), len(ANSWER))
    assert (unknown["method"], unknown["outcome"], unknown["status"]) == ("nope", "UNKNOWN_METHOD", 200)
    assert (garbage["method"], garbage["outcome"], garbage["status"]) == ("", "not_thrift", 400)
    assert password not in server.log.getvalue()
    assert header[6:] not in server.log.getvalue()
