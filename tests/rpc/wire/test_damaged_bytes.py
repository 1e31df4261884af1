"""Whatever arrives, reading it gives a value or a ProtocolError, never another exception."""

import random

import pytest

from hms_gateway.rpc.structs import METHODS, STRUCTS
from hms_gateway.rpc.wire import MessageType, ProtocolError, make_codecs
from hms_gateway.rpc.wire.tjson_scan import scan_struct
from hms_gateway.runtime.limits import Limits
from tests.support.apache import ApacheTJson
from tests.support.faker import Faker

LIMITS = Limits()
CODECS = make_codecs(LIMITS)
TOKENS = [b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"-", b"0", b"9" * 30, b"null", b"NaN", b"\0", b"\xff", b" "]

every_codec = pytest.mark.parametrize(
    "codec", [CODECS.tjson, CODECS.binary, CODECS.compact], ids=["tjson", "binary", "compact"]
)


def reads_or_refuses(body, struct_class):
    """True when the body can be read."""
    try:
        message = CODECS.sniff(body).read_message(body)
        CODECS.sniff(body).decode(struct_class, message.payload)
    except ProtocolError:
        return False
    return True


def message_of(codec, value):
    before, after = codec.envelope("alter_partition", MessageType.CALL, 1)
    return before + codec.encode(value) + after


def arguments(seed):
    return Faker(seed, list_keys=False, depth=5).struct(METHODS["alter_partition"].arguments)


@every_codec
def test_bytes_cut_at_every_position(codec):
    struct_class = METHODS["alter_partition"].arguments
    body = message_of(codec, arguments(3))
    assert reads_or_refuses(body, struct_class)
    readable = [length for length in range(len(body)) if reads_or_refuses(body[:length], struct_class)]
    # The missing last bracket of TJSON is forgiven, nothing else is.
    assert readable == ([len(body) - 1] if codec is CODECS.tjson else [])


@pytest.mark.slow
@every_codec
def test_random_damage(codec):
    struct_class = METHODS["alter_partition"].arguments
    randomness = random.Random(20)
    body = message_of(codec, arguments(3))
    for _ in range(2000):
        damaged = bytearray(body)
        for _ in range(randomness.randint(1, 4)):
            position = randomness.randrange(len(damaged))
            if randomness.random() < 0.5:
                damaged[position] = randomness.randrange(256)
            else:
                damaged[position : position + randomness.randrange(3)] = randomness.choice(TOKENS)
        reads_or_refuses(bytes(damaged), struct_class)


def test_random_bytes():
    randomness = random.Random(21)
    for start in (b"", b"[", b"[1,", b'[1,"m",1,1,{', b"\x80\x01\0\x01", b"\x82\x21", b"\0\0\0\x01"):
        for _ in range(300):
            reads_or_refuses(start + randomness.randbytes(randomness.randrange(60)), METHODS["get_table"].arguments)


@pytest.mark.slow
def test_the_scanner_reads_all_that_the_fast_path_reads_and_reads_it_the_same():
    for seed in range(3):
        for struct_class in STRUCTS.values():
            text = CODECS.tjson.encode(Faker(seed, list_keys=False, depth=3).struct(struct_class))
            assert scan_struct(struct_class, text, LIMITS) == CODECS.tjson.decode(struct_class, text)


@pytest.mark.slow
def test_damaged_text_is_read_the_same_by_the_scanner_and_the_fast_path():
    randomness = random.Random(22)
    struct_class = STRUCTS["Partition"]
    text = ApacheTJson.encode(Faker(5, list_keys=False, depth=5).struct(struct_class))
    for _ in range(700):
        position = randomness.randrange(len(text))
        damaged = text[:position] + randomness.choice(TOKENS) + text[position + randomness.randrange(3) :]
        assert read_or_error(CODECS.tjson.decode, struct_class, damaged) == read_or_error(
            lambda cls, payload: scan_struct(cls, payload, LIMITS), struct_class, damaged
        )


def read_or_error(decode, struct_class, payload):
    try:
        return decode(struct_class, payload)
    except ProtocolError as error:
        return str(error)
