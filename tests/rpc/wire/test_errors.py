import pytest

from hms_gateway.rpc.wire import (
    ApplicationError,
    ApplicationErrorType,
    LimitExceeded,
    NotThrift,
    ProtocolError,
    TApplicationException,
    make_codecs,
)
from hms_gateway.runtime.limits import Limits

CODECS = make_codecs(Limits())


def test_an_application_error_as_the_peer_sees_it():
    error = ApplicationError("Invalid method name: 'x'", ApplicationErrorType.UNKNOWN_METHOD)
    assert CODECS.tjson.encode(error.payload()) == b'{"1":{"str":"Invalid method name: \'x\'"},"2":{"i32":1}}'


@pytest.mark.parametrize("codec", [CODECS.tjson, CODECS.binary, CODECS.compact], ids=["tjson", "binary", "compact"])
def test_a_received_application_exception(codec):
    sent = TApplicationException("text", int(ApplicationErrorType.INTERNAL_ERROR))
    received = codec.decode(TApplicationException, codec.encode(sent))
    assert (received.message, received.type) == ("text", 6)


def test_protocol_errors_are_of_type_7_unless_said_otherwise():
    assert ProtocolError("x").type is ApplicationErrorType.PROTOCOL_ERROR == 7
    assert NotThrift("x").type == 7
    assert ApplicationError("x").type is ApplicationErrorType.INTERNAL_ERROR


def test_a_limit_is_named():
    error = LimitExceeded("nesting_depth_max", 64, "Table.sd")
    assert (error.limit, str(error)) == ("nesting_depth_max", "Table.sd: over the limit nesting_depth_max = 64")
