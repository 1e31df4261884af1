"""Random values of every struct of the IDL through our codecs, Apache's, and from one to the other."""

import pytest

from hms_gateway.rpc.structs import METHODS, STRUCTS
from hms_gateway.rpc.wire import TApplicationException, make_codecs
from hms_gateway.rpc.wire import tjson_codec as tjson
from hms_gateway.runtime.limits import Limits
from tests.support.apache import ApacheBinary, ApacheCompact, ApacheTJson
from tests.support.faker import Faker

CODECS = make_codecs(Limits())
CLASSES = [
    *STRUCTS.values(),
    TApplicationException,
    *(struct for method in METHODS.values() for struct in (method.arguments, method.result)),
]
SEEDS = range(4)


@pytest.mark.slow
def test_tjson_reads_what_it_writes():
    for seed in SEEDS:
        for struct_class in CLASSES:
            value = Faker(seed, list_keys=False).struct(struct_class)
            assert CODECS.tjson.decode(struct_class, CODECS.tjson.encode(value)) == value


@pytest.mark.slow
def test_apache_reads_our_tjson():
    for seed in SEEDS[:2]:
        for struct_class in CLASSES:
            value = Faker(seed, list_keys=False, depth=3).struct(struct_class)
            assert ApacheTJson.decode(struct_class, CODECS.tjson.encode(value)) == value


@pytest.mark.slow
def test_tjson_reads_what_apache_writes():
    for seed in SEEDS[:2]:
        for struct_class in CLASSES:
            value = Faker(seed, depth=3).struct(struct_class)
            assert CODECS.tjson.decode(struct_class, ApacheTJson.encode(value)) == value


@pytest.mark.parametrize(
    "name", ["Database", "Partition", "ColumnStatistics", "LockRequest", "PrivilegeBag", "Function"]
)
def test_the_scanner_is_not_needed_for_what_we_write(name, monkeypatch):
    monkeypatch.setattr("hms_gateway.rpc.wire.tjson_codec.scan_struct", lambda *_: pytest.fail("the fast path gave up"))
    for seed in range(20):
        value = Faker(seed, list_keys=False, depth=6).struct(STRUCTS[name])
        assert CODECS.tjson.decode(STRUCTS[name], CODECS.tjson.encode(value)) == value


@pytest.mark.slow
@pytest.mark.parametrize("codec", [CODECS.binary, CODECS.compact], ids=lambda codec: codec.name)
def test_binary_reads_what_it_writes(codec):
    for seed in SEEDS:
        for struct_class in CLASSES:
            value = Faker(seed).struct(struct_class)
            assert codec.decode(struct_class, codec.encode(value)) == value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("codec", "apache"),
    [(CODECS.binary, ApacheBinary), (CODECS.compact, ApacheCompact)],
    ids=["binary", "compact"],
)
def test_binary_and_apaches_python_code_read_each_other(codec, apache):
    for struct_class in CLASSES:
        value = Faker(7, depth=3).struct(struct_class)
        assert apache.decode(struct_class, codec.encode(value)) == value
        assert codec.decode(struct_class, apache.encode(value)) == value


@pytest.mark.slow
def test_bare_values_of_all_field_types():
    types = {field.type for struct_class in STRUCTS.values() for field in struct_class.definition.fields}
    for seed in SEEDS:
        for type in sorted(types, key=repr):
            value = Faker(seed, list_keys=False, depth=3).value(type)
            assert tjson.decode_value(type, tjson.encode_value(type, value)) == value
