"""Values that are already encoded, and lists that are read while the reply is sent (design D5)."""

from collections.abc import Iterator

import msgspec
import pytest

from hms_gateway.rpc.structs import (
    METHODS,
    FieldSchema,
    GetTableResult,
    MetaException,
    Partition,
    PartitionListComposingSpec,
    PartitionsByExprResult,
    PartitionSpec,
    PartitionSpecWithSharedSD,
    StorageDescriptor,
    Table,
)
from hms_gateway.rpc.wire import make_codecs
from hms_gateway.runtime.limits import Limits

CODECS = make_codecs(Limits())
PARTITIONS = [Partition([str(number)], sd=StorageDescriptor([FieldSchema("a", "int")])) for number in range(5)]
GET_PARTITIONS = METHODS["get_partitions"].result

every_codec = pytest.mark.parametrize(
    "codec", [CODECS.tjson, CODECS.binary, CODECS.compact], ids=["tjson", "binary", "compact"]
)


class Ready:
    """A struct that is encoded already."""

    def __init__(self, struct):
        self._struct = struct

    def tjson(self):
        return CODECS.tjson.encode(self._struct)

    def struct(self):
        return self._struct


class Stream:
    """A list in chunks of two that remembers whether it was closed."""

    def __init__(self, partitions, fail_at=None):
        self._partitions = partitions
        self._fail_at = fail_at
        self.closed = False

    def __len__(self):
        return len(self._partitions)

    def struct_chunks(self):
        for start in range(0, len(self._partitions), 2):
            assert not self.closed
            if start == self._fail_at:
                raise ConnectionError("the database went away")
            yield self._partitions[start : start + 2]

    def tjson_chunks(self):
        for chunk in self.struct_chunks():
            yield b",".join(CODECS.tjson.encode(partition) for partition in chunk)

    def close(self):
        self.closed = True


def encoded(codec, value):
    """The whole text, however it comes."""
    written = codec.encode(value)
    return written if isinstance(written, bytes) else b"".join(written)


@every_codec
def test_an_encoded_struct_stands_where_a_struct_may(codec):
    plain = METHODS["get_partition"].result(PARTITIONS[0])
    assert encoded(codec, METHODS["get_partition"].result(Ready(PARTITIONS[0]))) == encoded(codec, plain)
    assert encoded(codec, Ready(PARTITIONS[0])) == encoded(codec, PARTITIONS[0])


@every_codec
def test_an_encoded_struct_inside_a_struct(codec):
    table = Table(tableName="t")
    method = METHODS["get_table_req"].result
    spliced = method(success=GetTableResult(table=Ready(table)))
    assert encoded(codec, spliced) == encoded(codec, method(success=GetTableResult(table=table)))
    assert isinstance(codec.encode(spliced), bytes)


@every_codec
def test_encoded_structs_among_the_elements_of_a_list(codec):
    mixed = [PARTITIONS[0], *map(Ready, PARTITIONS[1:])]
    assert encoded(codec, GET_PARTITIONS(mixed)) == encoded(codec, GET_PARTITIONS(PARTITIONS))


@every_codec
def test_a_streamed_list_comes_in_chunks_and_is_closed_at_the_end(codec):
    stream = Stream(PARTITIONS)
    chunks = codec.encode(GET_PARTITIONS(stream))
    assert isinstance(chunks, Iterator)
    next(chunks)
    assert not stream.closed
    rest = list(chunks)
    assert len(rest) >= 3
    assert stream.closed
    assert encoded(codec, GET_PARTITIONS(Stream(PARTITIONS))) == encoded(codec, GET_PARTITIONS(PARTITIONS))


@every_codec
def test_a_streamed_list_between_other_fields(codec):
    method = METHODS["get_partitions_by_expr"].result
    text = encoded(codec, method(success=PartitionsByExprResult(Stream(PARTITIONS), True)))
    plain = method(success=PartitionsByExprResult(PARTITIONS, True))
    assert codec.decode(method, text) == plain
    assert text == encoded(codec, plain)


@every_codec
def test_a_streamed_list_inside_an_element_of_a_list(codec):
    method = METHODS["get_partitions_pspec"].result

    def result(partitions):
        shared = PartitionSpecWithSharedSD(sd=StorageDescriptor(location="/t"))
        listed = PartitionListComposingSpec(partitions=partitions)
        return method([PartitionSpec("db", "t", "/t", shared), PartitionSpec("db", "t", "/t", None, listed)])

    stream = Stream(PARTITIONS)
    assert encoded(codec, result(stream)) == encoded(codec, result(PARTITIONS))
    assert stream.closed


@every_codec
def test_an_empty_streamed_list(codec):
    stream = Stream([])
    assert encoded(codec, GET_PARTITIONS(stream)) == encoded(codec, GET_PARTITIONS([]))
    assert stream.closed


@every_codec
def test_a_streamed_list_is_closed_when_nobody_reads_on_or_it_fails(codec):
    stream = Stream(PARTITIONS)
    chunks = codec.encode(GET_PARTITIONS(stream))
    next(chunks)
    chunks.close()
    assert stream.closed
    stream = Stream(PARTITIONS, fail_at=2)
    with pytest.raises(ConnectionError):
        encoded(codec, GET_PARTITIONS(stream))
    assert stream.closed


@every_codec
def test_a_streamed_list_is_closed_when_its_iterator_is_closed_before_it_began(codec):
    stream = Stream(PARTITIONS)
    codec.encode(GET_PARTITIONS(stream)).close()
    assert stream.closed


@every_codec
def test_a_streamed_list_is_closed_when_the_rest_cannot_be_encoded(codec):
    stream = Stream(PARTITIONS)
    with pytest.raises(UnicodeEncodeError):
        encoded(
            codec,
            METHODS["get_partitions_by_expr"].result(PartitionsByExprResult(stream, True), MetaException("\ud800")),
        )
    assert stream.closed


class Texts:
    """Names in chunks of two that remember whether they were closed."""

    def __init__(self, texts, fail_at=None):
        self._texts = texts
        self._fail_at = fail_at
        self.closed = False

    def __len__(self):
        return len(self._texts)

    def text_chunks(self):
        for start in range(0, len(self._texts), 2):
            assert not self.closed
            if start == self._fail_at:
                raise ConnectionError("the database went away")
            yield self._texts[start : start + 2]

    def tjson_chunks(self):
        for chunk in self.text_chunks():
            yield msgspec.json.encode(chunk)[1:-1]

    def close(self):
        self.closed = True


NAMES = ["ds=a", "ds=é", 'ds="', "ds=", "ds=😀"]
GET_NAMES = METHODS["get_partition_names"].result


@every_codec
def test_a_streamed_list_of_names_is_the_list_and_is_closed_at_the_end(codec):
    texts = Texts(NAMES)
    chunks = codec.encode(GET_NAMES(texts))
    assert isinstance(chunks, Iterator)
    next(chunks)
    assert not texts.closed
    assert len(list(chunks)) >= 3
    assert texts.closed
    assert encoded(codec, GET_NAMES(Texts(NAMES))) == encoded(codec, GET_NAMES(NAMES))


@every_codec
def test_a_streamed_list_without_names_is_closed_when_it_is_written(codec):
    texts = Texts([])
    assert encoded(codec, GET_NAMES(texts)) == encoded(codec, GET_NAMES([]))
    assert texts.closed


@every_codec
def test_names_that_cannot_be_read_to_the_end_are_closed(codec):
    texts = Texts(NAMES, fail_at=2)
    chunks = codec.encode(GET_NAMES(texts))
    with pytest.raises(ConnectionError):
        list(chunks)
    assert texts.closed


@every_codec
def test_names_nobody_reads_are_closed(codec):
    texts = Texts(NAMES)
    codec.encode(GET_NAMES(texts)).close()
    assert texts.closed
