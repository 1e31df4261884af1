import struct

import pytest

from hms_gateway.rpc.structs import METHODS, FieldSchema, Partition, SkewedInfo, StorageDescriptor
from hms_gateway.rpc.wire import ApplicationErrorType, LimitExceeded, MessageType, ProtocolError, make_codecs
from hms_gateway.runtime.limits import Limits
from tests.support.apache import ApacheBinary

CODECS = make_codecs(Limits())
BINARY, COMPACT = CODECS.binary, CODECS.compact

both = pytest.mark.parametrize("codec", [BINARY, COMPACT], ids=["binary", "compact"])


def without_accelerator(codec):
    """The same codec as on a machine where the C part could not be built."""
    made = codec._protocol

    def protocol(data=None):
        plain = made(data)
        plain._fast_decode = plain._fast_encode = None
        return plain

    codec._protocol = protocol
    return codec


@both
def test_envelope_and_message(codec):
    before, after = codec.envelope("get_table", MessageType.REPLY, -9)
    message = codec.read_message(before + b"rest" + after)
    assert message == ("get_table", MessageType.REPLY, -9, b"rest")


def test_binary_headers_are_written_strict_and_read_both_ways():
    assert BINARY.envelope("m", MessageType.CALL, 7) == (b"\x80\x01\0\x01\0\0\0\x01m\0\0\0\x07", b"")
    assert BINARY.read_message(b"\0\0\0\x01m\x01\0\0\0\x07\0") == ("m", MessageType.CALL, 7, b"\0")


def test_the_compact_header():
    before, _ = COMPACT.envelope("m", MessageType.CALL, 7)
    assert before == b"\x82\x21\x07\x01m"


@both
def test_a_message_of_an_unknown_type(codec):
    before, _ = codec.envelope("m", 7, 3)
    with pytest.raises(ProtocolError) as caught:
        codec.read_message(before + b"\0")
    assert (caught.value.type, caught.value.name, caught.value.seqid) == (
        ApplicationErrorType.INVALID_MESSAGE_TYPE,
        "m",
        3,
    )


@pytest.mark.parametrize(
    "body", [b"\x80\x01", b"\x80\x02\0\x01\0\0\0\x01m\0\0\0\x07\0", b"\x80\x01\0\x01\x7f\xff\xff\xffm", b""]
)
def test_bad_binary_headers(body):
    with pytest.raises(ProtocolError, match="message: "):
        BINARY.read_message(body)


@both
def test_lists_as_map_keys_survive(codec):
    skewed = SkewedInfo(["a"], [["1"], ["2"]], {("1",): "x", ("2", "3"): "y", (): "z"})
    assert codec.decode(SkewedInfo, codec.encode(skewed)) == skewed


@both
def test_a_missing_required_field_is_named(codec):
    arguments = METHODS["add_partitions_req"].arguments
    request = next(field for field in arguments.definition.fields if field.name == "request")
    assert request.id == 1
    empty_struct = b"\x0c\0\x01\0\0" if codec is BINARY else b"\x1c\0\0"
    with pytest.raises(ProtocolError) as caught:
        codec.decode(arguments, empty_struct)
    assert caught.value.message == "Required field 'dbName' is unset! Struct:AddPartitionsRequest"


def test_unknown_fields_and_fields_of_another_type_are_skipped():
    unknown = b"\x0f\0\x63\x0c\0\0\0\x01\x08\0\x01\0\0\0\x05\0"
    other_type = b"\x08\0\x01\0\0\0\x05"
    name = b"\x0b\0\x02\0\0\0\x03int"
    assert BINARY.decode(FieldSchema, unknown + other_type + name + b"\0") == FieldSchema(type="int")


@pytest.mark.parametrize("text", [b"\xff", b"\xc3", b"\xed\xa0\x80"])
def test_strings_that_are_not_utf8(text):
    payload = b"\x0b\0\x01" + struct.pack(">I", len(text)) + text + b"\0"
    with pytest.raises(ProtocolError, match="FieldSchema: a string is not valid UTF-8"):
        BINARY.decode(FieldSchema, payload)


@both
def test_the_replacement_character_itself_is_a_character(codec):
    field = FieldSchema("a\ufffdb", "é")
    assert codec.decode(FieldSchema, codec.encode(field)) == field


@both
def test_numbers_that_look_like_the_replacement_character_are_numbers(codec):
    number = int.from_bytes("\ufffd\ufffd".encode()[:4], "big", signed=True)
    partition = Partition(["é"], createTime=number)
    assert codec.decode(Partition, codec.encode(partition)) == partition


@both
def test_a_text_that_is_not_ascii_is_not_checked_by_encoding_it_again(codec, monkeypatch):
    payload = codec.encode(FieldSchema("é", "ü"))
    monkeypatch.setattr(type(codec), "_struct", lambda *_: pytest.fail("it was encoded"))
    assert codec.decode(FieldSchema, payload) == FieldSchema("é", "ü")


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"\x0b\0\x01\xff\xff\xff\xffab", "negative"),
        (b"\x63\0\x01\0", "Unexpected TType"),
        (b"\x0b\0\x01\0\0\0\x09ab", "end inside a value"),
        (b"", "end inside a value"),
    ],
)
def test_bad_binary(payload, reason):
    with pytest.raises(ProtocolError, match=f"FieldSchema: .*{reason}"):
        BINARY.decode(FieldSchema, payload)


def test_elements_of_another_type():
    with pytest.raises(ProtocolError, match="Partition: "):
        BINARY.decode(Partition, b"\x0f\0\x01\x08\0\0\0\x01\0\0\0\x05\0")


@both
def test_sizes_are_limited(codec):
    limited = make_codecs(Limits(string_bytes_max=4, container_elements_max=3))
    codec = limited.binary if codec is BINARY else limited.compact
    assert codec.decode(Partition, codec.encode(Partition(["abcd"] * 3))).values == ["abcd"] * 3
    with pytest.raises(LimitExceeded, match="string_bytes_max = 4"):
        codec.decode(FieldSchema, codec.encode(FieldSchema("abcde")))
    with pytest.raises(LimitExceeded, match="container_elements_max = 3"):
        codec.decode(Partition, codec.encode(Partition(["a"] * 4)))
    with pytest.raises(LimitExceeded, match="container_elements_max = 3"):
        codec.decode(FieldSchema, codec.encode(Partition(["a"] * 4)).replace(b"\0\x01", b"\0\x63", 1))


@pytest.mark.parametrize("level", [b"\x0c\0\x63", b"\x0f\0\0\0\x01"])
def test_a_deep_bomb_ends_with_the_limit(level):
    head = b"" if level[0] == 0x0C else b"\x0f\0\x63"
    with pytest.raises(LimitExceeded, match="nesting_depth_max"):
        BINARY.decode(FieldSchema, head + level * 500_000)
    with pytest.raises(LimitExceeded, match="nesting_depth_max"):
        COMPACT.decode(FieldSchema, (b"\x5c" if level[0] == 0x0C else b"\x59" + b"\x19" * 9) * 500_000)


@both
def test_without_the_c_accelerator_everything_is_the_same(codec):
    plain = make_codecs(Limits())
    plain = without_accelerator(plain.binary if codec is BINARY else plain.compact)
    result = METHODS["get_partitions"].result
    value = result(
        [Partition(["a"], sd=StorageDescriptor([FieldSchema("é", "int")], skewedInfo=SkewedInfo({}, [], {})))]
    )
    value.success[0].sd.skewedInfo = SkewedInfo([], [], {("a",): "x"})
    assert plain.encode(value) == codec.encode(value)
    assert plain.decode(result, codec.encode(value)) == value
    with pytest.raises(ProtocolError, match="FieldSchema"):
        plain.decode(FieldSchema, b"\x0b\0\x01\0\0\0\x01\xff\0" if codec is BINARY else b"\x18\x01\xff\0")
    with pytest.raises(ProtocolError):
        plain.decode(FieldSchema, b"\x0b\0")


def test_bytes_behind_the_struct_are_ignored():
    assert BINARY.decode(FieldSchema, ApacheBinary.encode(FieldSchema("a")) + b"more") == FieldSchema("a")


def test_values_that_are_not_of_the_idl_cannot_be_written():
    for value in (FieldSchema("\ud800"), FieldSchema(5), Partition(createTime=2**31), Partition(sd=5)):
        with pytest.raises((TypeError, ValueError, OverflowError, AttributeError)):
            BINARY.encode(value)
