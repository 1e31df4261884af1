"""Manifest lists that are damaged, or made to take memory."""

import io
import json
import zlib

import fastavro
import pytest

from hms_gateway.iceberg import manifest_lists
from hms_gateway.iceberg.errors import IcebergError
from hms_gateway.iceberg.manifest_lists import (
    LIST_BYTES_MAX,
    block_of,
    list_of_blocks,
    read_manifests,
)
from hms_gateway.rpc.call import Unavailable
from tests.iceberg_rest.test_appends import manifest, written_manifests

MARK = b"m" * 16


def number(value):
    value, found = (value << 1) ^ (value >> 63), b""
    while value > 0x7F:
        value, found = value >> 7, found + bytes([value & 0x7F | 0x80])
    return found + bytes([value])


def text(value):
    return number(len(value)) + value


def avro_file(fields, count, block, codec=b"null"):
    schema = json.dumps({"type": "record", "name": "manifest_file", "fields": fields}).encode()
    head = number(2) + text(b"avro.schema") + text(schema) + text(b"avro.codec") + text(codec) + number(0)
    return b"Obj\x01" + head + MARK + number(count) + text(block) + MARK


def refuse(size_bytes):
    raise Unavailable(f"{size_bytes} bytes are too many")


def deflated(content):
    return zlib.compress(content, 1)[2:-4]


PATH = [
    {"name": "manifest_path", "type": "bytes", "field-id": 500},
    *({"name": name, "type": "long", "field-id": number} for name, number in (("l", 501), ("s", 502), ("a", 503))),
]
NUMBERS = number(3) * 3
HAS_NULL = {"type": "record", "name": "s", "fields": [{"name": "contains_null", "type": "boolean", "field-id": 509}]}
TINY = [*PATH, {"name": "partitions", "type": {"type": "array", "items": HAS_NULL}, "field-id": 507}]
NOTHING = {"type": "record", "name": "nothing", "fields": []}
PARTS = [*PATH, {"name": "partitions", "type": {"type": "array", "items": NOTHING}, "field-id": 507}]
LONG = number(LIST_BYTES_MAX) + bytes(LIST_BYTES_MAX)


@pytest.mark.parametrize(
    "content",
    [
        avro_file([], 2**60, b""),
        avro_file([{"name": "x", "type": "null"}], 2**60, b""),
        avro_file(PARTS, 1, text(b"x") + NUMBERS + number(2**60) + number(0)),
        avro_file(PATH, 1, deflated(LONG), b"deflate"),
        avro_file(PATH, 1, LONG),
        avro_file(PATH, 1, deflated(LONG), b"bzip2"),
        avro_file(PATH, 1, text(b"x") + NUMBERS)[:-17],
        avro_file(PATH, 2, text(b"x") + NUMBERS),
        avro_file(PATH[1:], 1, NUMBERS),
        avro_file([{**PATH[0], "doc": "x" * 100_000}, *PATH[1:]], 1, text(b"x") + NUMBERS),
        avro_file(PATH, 1, text(b"x") + NUMBERS).replace(b"Obj", b"OBJ"),
        avro_file(PATH, 1, text(b"x" * 300_000) + NUMBERS),
    ],
    ids=[
        *("no field", "null", "no field in a list", "deflated", "long", "codec", "cut", "count", "no path"),
        *("long head", "no Avro", "long entry"),
    ],
)
def test_a_list_that_is_none_is_refused_at_once(content):
    with pytest.raises(IcebergError):
        read_manifests(content)


@pytest.mark.parametrize(
    ("objects_max", "content"),
    [
        (300, avro_file(PATH, 301, deflated(bytes(1204)), b"deflate")),
        (300, avro_file(TINY, 2, deflated((text(b"x") + NUMBERS + number(150) + bytes(151)) * 2), b"deflate")),
        # It is refused before its end, so that the summaries of one entry take no memory first.
        (20_000, avro_file(TINY, 1, deflated(text(b"x") + NUMBERS + number(5000) + bytes(5001)), b"deflate")),
    ],
    ids=["entries", "summaries", "summaries in one entry"],
)
def test_a_short_list_of_many_objects_is_refused(monkeypatch, objects_max, content):
    assert read_manifests(content)
    monkeypatch.setattr(manifest_lists, "OBJECTS_MAX", objects_max)
    monkeypatch.setattr(manifest_lists, "_WINDOW_BYTES", 4096)
    with pytest.raises(IcebergError, match="more than"):
        read_manifests(content)


def test_the_memory_of_file_texts_and_objects_is_counted(monkeypatch):
    monkeypatch.setattr(manifest_lists, "_WINDOW_BYTES", 2000)
    one = text(b"x" * 1500) + NUMBERS + number(2) + bytes(3)
    content = avro_file(TINY, 2, deflated(one * 2), b"deflate")
    held = []
    assert len(read_manifests(content, held.append)) == 2
    assert held == []
    monkeypatch.setattr(manifest_lists, "_UNCOUNTED_BYTES", 0)
    read_manifests(content, held.append)
    unpacked = len(content) + 2 * len(one)
    assert held == [len(content), unpacked + 3 * 1024, unpacked + 6 * 1024]
    with pytest.raises(Unavailable):
        read_manifests(content, refuse)


def test_a_list_is_read_as_it_was_written():
    entries = [manifest(f"m{each}", each, each) for each in range(1, 3000)]
    assert read_manifests(written_manifests(entries, 2, {"snapshot-id": 1, "sequence-number": 1})) == entries
    plain = avro_file(PATH, 2, text(b"a") + NUMBERS + text(b"b" * 200_000) + NUMBERS)
    assert [one["manifest_path"] for one in read_manifests(plain)] == [b"a", b"b" * 200_000]
    long = avro_file(PATH, 3, (text(b"a" * 200_000) + NUMBERS) * 3)
    assert [len(one["manifest_path"]) for one in read_manifests(long)] == [200_000] * 3


def test_windows_may_end_anywhere_in_an_entry(monkeypatch):
    entries = [manifest("m", 2**61 + each, 2**40, manifest_length=70_000) for each in range(20)]
    content = written_manifests(entries, 2, {"snapshot-id": 1, "sequence-number": 1})
    for window_bytes in range(200, 300):
        monkeypatch.setattr(manifest_lists, "_WINDOW_BYTES", window_bytes)
        assert read_manifests(content) == entries


def test_a_list_has_the_entries_of_its_blocks():
    parts = [[manifest(f"m{number}-{each}", 1) for each in range(count)] for number, count in enumerate((70, 1, 0))]
    content = list_of_blocks([block_of(each, 3) for each in parts], 3, {"snapshot-id": 1, "sequence-number": 1})
    written = list(fastavro.reader(io.BytesIO(content)))
    assert written == [{**each, "first_row_id": None} for part in parts for each in part]
