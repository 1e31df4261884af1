"""How much memory a message takes once it is decoded is found out before."""

from collections.abc import Iterator
from typing import Any

import pytest

from hms_gateway.rpc.structs import METHODS, FieldSchema, Partition, SkewedInfo, StorageDescriptor, Struct, Table
from hms_gateway.rpc.wire import ProtocolError, make_codecs
from hms_gateway.rpc.wire.message import STRUCT_BYTES, TooManyStructs, structs_in
from hms_gateway.runtime.limits import Limits
from tests.support.faker import Faker

CODECS = make_codecs(Limits())
ADDED = METHODS["add_partitions"].arguments
NO_BOUND = 1 << 60


def structs(value: Any) -> Iterator[Struct]:
    """Every struct in a value, itself included."""
    if isinstance(value, Struct):
        yield value
        for field in value.definition.fields:
            yield from structs(getattr(value, field.name))
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from structs(item)
    elif isinstance(value, dict):
        yield from structs(list(value.items()))


@pytest.mark.parametrize("codec", [CODECS.binary, CODECS.compact], ids=["binary", "compact"])
@pytest.mark.parametrize("method", ["add_partitions", "create_table", "update_table_column_statistics", "lock"])
@pytest.mark.parametrize("seed", range(5))
def test_every_struct_is_counted(codec: Any, method: str, seed: int) -> None:
    arguments = METHODS[method].arguments
    value = Faker(seed, list_keys=False).struct(arguments)
    payload = codec.encode(value)
    expected = len(list(structs(value))) - 1
    assert structs_in(lambda kind, spec: codec._read(payload, kind, spec), arguments, NO_BOUND) == expected
    assert codec.decoded_bytes(arguments, payload, NO_BOUND) >= expected * STRUCT_BYTES


@pytest.mark.slow
@pytest.mark.parametrize("codec", list(CODECS), ids=lambda codec: codec.name)
def test_small_bytes_that_become_much_count_as_much(codec: Any) -> None:
    empty = codec.encode(ADDED([Partition() for _ in range(50_000)]))
    assert len(empty) < 160_000
    assert codec.decoded_bytes(ADDED, empty, NO_BOUND) >= 10_000_000
    lists = codec.encode(METHODS["create_table"].arguments(table_of(SkewedInfo(None, [[] for _ in range(50_000)]))))
    assert codec.decoded_bytes(METHODS["create_table"].arguments, lists, NO_BOUND) >= (
        50_000 * 64 if codec is not CODECS.tjson else 0
    )


def table_of(skewed: SkewedInfo) -> Any:
    return Table("t", "d", sd=StorageDescriptor([FieldSchema("a", "int")], skewedInfo=skewed))


@pytest.mark.parametrize("codec", [CODECS.binary, CODECS.compact], ids=["binary", "compact"])
def test_counting_ends_at_the_bound(codec: Any) -> None:
    payload = codec.encode(ADDED([Partition() for _ in range(1_000)]))
    made: list[int] = []

    def read(kind: Any, spec: Any) -> None:
        try:
            codec._read(payload, kind, spec)
        except TooManyStructs:
            made.append(kind.made)
            raise

    with pytest.raises(TooManyStructs):
        structs_in(read, ADDED, 10)
    assert made == [12]
    assert codec.decoded_bytes(ADDED, payload, 10 * STRUCT_BYTES) == 10 * STRUCT_BYTES + 1


@pytest.mark.parametrize("codec", [CODECS.binary, CODECS.compact], ids=["binary", "compact"])
def test_what_cannot_be_decoded_cannot_be_counted(codec: Any) -> None:
    payload = codec.encode(ADDED([Partition(["x" * 1_000])]))
    with pytest.raises(ProtocolError, match="the bytes end inside a value"):
        codec.decoded_bytes(ADDED, payload[: len(payload) // 2], NO_BOUND)
