import pytest

from hms_gateway.rpc.wire import MessageType, NotThrift, make_codecs
from hms_gateway.runtime.limits import Limits

CODECS = make_codecs(Limits())


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'[1,"m",1,1,{}]', "tjson"),
        (b' \n[1,"m",1,1,{}]', "tjson"),
        (b'\xef\xbb\xbf[1,"m",1,1,{}]', "tjson"),
        (b'\xef\xbb\xbf \n [1,"m",1,1,{}]', "tjson"),
        (b"[", "tjson"),
        (b"\x80\x01\0\x01\0\0\0\x01m\0\0\0\x01\0", "binary"),
        (b"\0\0\0\x01m\x01\0\0\0\x01\0", "binary"),
        (b"\x82\x21\x01\x01m\0", "compact"),
    ],
)
def test_the_first_bytes_tell_the_protocol(body, name):
    assert CODECS.sniff(body).name == name


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "the body is empty"),
        (b" \r\n", "the body is empty"),
        (b"\0\0\0\x0e\x80\x01\0\x01\0\0\0\x01m\0\0\0\x01\0", "framed Thrift"),
        (b"\0\0\x40\x0e\x80\x01\0\x01\0\0\0\x01m\0\0\0\x01\0", "framed Thrift"),
        (b"\0\0\0\x06\x82\x21\x01\x01m\0", "framed Thrift"),
        (b'\0\0\0\x0e[1,"m",1,1,{}]', "framed Thrift"),
        (b'{"name":"get_table"}', "JSON object"),
        (b"GET / HTTP/1.1\r\n", "HTTP"),
        (b"\x16\x03\x01", "TLS"),
        (b"hello", "begins with b'hello'"),
        (b"\x80\x02\0\x01", "not a Thrift message"),
        (b"\0\0\0\0", "not a Thrift message"),
    ],
)
def test_what_is_no_thrift_is_described(body, reason):
    with pytest.raises(NotThrift, match=reason):
        CODECS.sniff(body)


def test_names_and_media_types():
    assert [(codec.name, codec.content_type) for codec in (CODECS.tjson, CODECS.binary, CODECS.compact)] == [
        ("tjson", "application/vnd.apache.thrift.json"),
        ("binary", "application/x-thrift"),
        ("compact", "application/x-thrift"),
    ]


@pytest.mark.parametrize("codec", [CODECS.tjson, CODECS.binary, CODECS.compact], ids=["tjson", "binary", "compact"])
def test_each_codec_recognises_its_own_envelope(codec):
    before, after = codec.envelope("m", MessageType.CALL, 1)
    assert CODECS.sniff(before + after) is codec
