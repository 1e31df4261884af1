"""The end of a reply is found wherever the pieces it comes in are cut."""

import random

import pytest

from benchmarks.peer.speech import CODECS, Binary, CallFailed, Reply, Speech, Tjson
from hms_gateway.rpc.structs import METHODS, LockResponse, LockState, OpenTxnsResponse
from hms_gateway.rpc.wire import MessageType

TJSON = Tjson("/path", "Basic nobody")
NAMES = [f"name={number:03}" for number in range(300)]


def message(codec: object, method: str, success: object) -> bytes:
    before, after = codec.envelope(method, MessageType.REPLY, 1)
    return before + codec.encode(METHODS[method].result(success=success)) + after


def http(body: bytes, chunk_bytes: int | None) -> bytes:
    if chunk_bytes is None:
        return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    chunks = [body[at : at + chunk_bytes] for at in range(0, len(body), chunk_bytes)]
    framed = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    return b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + framed + b"0\r\n\r\n"


def fed(reply: Reply, data: bytes, dice: random.Random, largest: int) -> None:
    """Feed all of `data`; only the last piece may complete the reply."""
    # The server sends the line end behind the last chunk along with it.
    last = len(data) - 5
    at = 0
    while at < last:
        piece = data[at : min(last, at + dice.randint(1, largest))]
        assert not reply.feed(piece)
        at += len(piece)
    assert reply.feed(data[last:])


@pytest.mark.parametrize("largest", [1, 3, 50, 4000])
@pytest.mark.parametrize("chunk_bytes", [None, 1, 64, 1000])
def test_answers_of_http(largest: int, chunk_bytes: int | None) -> None:
    body = message(CODECS.tjson, "get_all_tables", NAMES)
    reply = TJSON.reply(keeps=True)
    fed(reply, http(body, chunk_bytes), random.Random(largest), largest)
    assert TJSON.value("get_all_tables", reply.whole()) == NAMES
    assert TJSON.count_in(reply.head) == len(NAMES)


@pytest.mark.parametrize("largest", [1, 3, 50, 4000])
@pytest.mark.parametrize("is_known", [False, True])
def test_unframed_replies(largest: int, is_known: bool) -> None:
    body = message(CODECS.binary, "get_all_tables", NAMES)
    reply = Binary().reply(len(body) if is_known else None, keeps=True)
    fed(reply, body, random.Random(largest), largest)
    assert Binary().value("get_all_tables", reply.whole()) == NAMES
    assert Binary().count_in(reply.head) == len(NAMES)


@pytest.mark.parametrize("speech", [Binary(), TJSON])
def test_ids_of_replies(speech: Speech) -> None:
    codec = CODECS.binary if isinstance(speech, Binary) else CODECS.tjson
    assert speech.id_in(message(codec, "lock", LockResponse(77, LockState.ACQUIRED))) == 77
    assert speech.id_in(message(codec, "open_txns", OpenTxnsResponse([78]))) == 78


def test_an_exception_is_no_result() -> None:
    before, after = CODECS.binary.envelope("get_all_tables", MessageType.EXCEPTION, 1)
    with pytest.raises(CallFailed):
        Binary().reply().feed(before + b"\0" + after)
    with pytest.raises(CallFailed):
        TJSON.reply().feed(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n")
