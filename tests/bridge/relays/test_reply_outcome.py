"""What the first bytes of a reply say."""

import pytest

from hms_gateway.bridge.relays.transcoding import reply_outcome
from hms_gateway.rpc.structs import METHODS, MetaException, NoSuchObjectException, Table
from hms_gateway.rpc.wire import MessageType, TApplicationException
from tests.bridge.thrift_bytes import BINARY, COMPACT


def reply(codec, name, type=MessageType.REPLY, seqid=300_000, **fields):
    before, after = codec.envelope(name, type, seqid)
    if type is MessageType.EXCEPTION:
        return before + codec.encode(TApplicationException("no", 6)) + after
    return before + codec.encode(METHODS[name].result(**fields)) + after


@pytest.mark.parametrize("codec", [BINARY, COMPACT], ids=lambda codec: codec.name)
@pytest.mark.parametrize(
    ("name", "fields", "outcome"),
    [
        ("get_table", {"success": Table(tableName="t")}, "ok"),
        ("get_table", {"o1": MetaException("x")}, "MetaException"),
        ("get_table", {"o2": NoSuchObjectException("x")}, "NoSuchObjectException"),
        ("drop_table", {}, "ok"),
        ("drop_table", {"o3": MetaException("x")}, "MetaException"),
        ("get_all_databases", {"success": []}, "ok"),
    ],
)
def test_results(codec, name, fields, outcome):
    assert reply_outcome(name, reply(codec, name, **fields), is_compact=codec is COMPACT) == outcome


@pytest.mark.parametrize("codec", [BINARY, COMPACT], ids=lambda codec: codec.name)
def test_application_exceptions_calls_and_halves(codec):
    exception = reply(codec, "get_table", MessageType.EXCEPTION)
    assert reply_outcome("get_table", exception, is_compact=codec is COMPACT) == "exception"
    whole = reply(codec, "get_table", o1=MetaException("x"))
    begin = len(codec.envelope("get_table", MessageType.REPLY, 300_000)[0])
    for cut in range(begin):
        with pytest.raises(ValueError):
            reply_outcome("get_table", whole[:cut], is_compact=codec is COMPACT)
    with pytest.raises(ValueError):
        reply_outcome("get_table", reply(codec, "get_table", MessageType.CALL), is_compact=codec is COMPACT)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"\x80\x01\x00\x02\x00\x00"])
def test_other_bytes(body):
    for is_compact in (True, False):
        with pytest.raises(ValueError):
            reply_outcome("get_table", body, is_compact=is_compact)
