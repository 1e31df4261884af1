"""A second attack: 45 KB of gzip, ten million empty structs, took 1.4 GiB once decoded. Decoded bytes count now."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.rpc.call import Call, Unavailable
from hms_gateway.rpc.structs import METHODS, Partition
from hms_gateway.rpc.wire import Codec, MessageType
from hms_gateway.rpc.wire.binary import ApacheCodec
from hms_gateway.rpc.wire.tjson_codec import TJsonCodec
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Settings
from hms_gateway.runtime.shares import Holder
from tests.support.catalog import place_empty_database

LIMITS = Limits(decoded_bytes_max=60_000_000, share_per_address=0.5)


@pytest.fixture
def metastore(tmp_path: Path) -> Iterator[Metastore]:
    place_empty_database(tmp_path / DATABASE_FILE)
    metastore = build_metastore(Settings(data_dir=tmp_path, limits=LIMITS))
    yield metastore
    metastore.store.close()


def added(codec: Codec, partitions: int) -> bytes:
    before, after = codec.envelope("add_partitions", MessageType.CALL, 1)
    payload = codec.encode(METHODS["add_partitions"].arguments([Partition() for _ in range(partitions)]))
    assert isinstance(payload, bytes)
    return before + payload + after


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["tjson", "binary", "compact"])
def test_a_message_that_becomes_too_much_is_not_decoded(
    metastore: Metastore, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    codec: Codec = getattr(metastore.codecs, encoding)
    message = codec.read_message(added(codec, 300_000))
    for kind in (ApacheCodec, TJsonCodec):
        monkeypatch.setattr(kind, "decode", lambda *_: pytest.fail("it was decoded"))
    reply = metastore.processor.process(codec, message, Call("ann"))
    assert reply.outcome == "PROTOCOL_ERROR"
    assert isinstance(reply.payload, bytes)
    assert b"share_per_user of decoded_bytes_max = 30000000" in reply.payload


@pytest.mark.parametrize("encoding", ["tjson", "binary", "compact"])
def test_one_message_has_a_bound_of_its_own(tmp_path: Path, encoding: str) -> None:
    """While it is decoded no other call is answered."""
    place_empty_database(tmp_path / DATABASE_FILE)
    metastore = build_metastore(Settings(data_dir=tmp_path, limits=Limits(decoded_bytes_per_message_max=1_000_000)))
    codec: Codec = getattr(metastore.codecs, encoding)
    short, long = (codec.read_message(added(codec, partitions)) for partitions in (1_000, 80_000))
    try:
        assert metastore.processor.process(codec, short, Call("ann")).outcome == "MetaException"
        reply = metastore.processor.process(codec, long, Call("ann"))
    finally:
        metastore.store.close()
    assert reply.outcome == "PROTOCOL_ERROR"
    assert isinstance(reply.payload, bytes)
    assert b"decoded_bytes_per_message_max = 1000000" in reply.payload
    assert reply.limit == "decoded_bytes_per_message_max"


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["tjson", "binary", "compact"])
def test_the_messages_of_a_user_are_counted_together_and_given_back(metastore: Metastore, encoding: str) -> None:
    codec: Codec = getattr(metastore.codecs, encoding)
    # More than half of what one user may have, and short enough to be decoded beside others.
    message = codec.read_message(added(codec, 85_000))
    outcomes = []
    decode = type(codec).decode

    def decode_between_others(self: Codec, *arguments: object) -> object:
        if not outcomes:
            outcomes.append("the first is being decoded")
            with pytest.raises(Unavailable, match="raise share_per_user of decoded_bytes_max") as refused:
                metastore.processor.process(codec, message, Call("ann", holder=Holder("ann", None)))
            assert refused.value.limit == "share_per_user of decoded_bytes_max"
            with pytest.raises(Unavailable, match="raise share_per_address of decoded_bytes_max"):
                metastore.processor.process(codec, message, Call("bob", holder=Holder("bob", "192.0.2.1")))
            outcomes.append(metastore.processor.process(codec, message, Call("bob")).outcome)
        return decode(self, *arguments)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(codec), "decode", decode_between_others)
        outcomes.append(
            metastore.processor.process(codec, message, Call("ann", holder=Holder("ann", "192.0.2.1"))).outcome
        )
    outcomes.append(metastore.processor.process(codec, message, Call("ann", holder=Holder("ann", None))).outcome)
    assert outcomes == ["the first is being decoded", *["MetaException"] * 3]
