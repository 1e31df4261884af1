"""Manifest lists that are damaged, or made to take memory."""

import io
import json
import zlib

import fastavro
import pytest

from hms_gateway.iceberg.errors import IcebergError
from hms_gateway.iceberg.manifest_lists import (
    UNPACKED_BYTES_MAX,
    block_of,
    list_of_blocks,
    read_manifests,
)
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


def deflated(content):
    return zlib.compress(content, 1)[2:-4]


PATH = [{"name": "manifest_path", "type": "bytes", "field-id": 500}]
NOTHING = {"type": "record", "name": "nothing", "fields": []}
PARTS = [*PATH, {"name": "partitions", "type": {"type": "array", "items": NOTHING}, "field-id": 507}]
LONG = number(UNPACKED_BYTES_MAX) + bytes(UNPACKED_BYTES_MAX)


@pytest.mark.parametrize(
    "content",
    [
        avro_file([], 2**60, b""),
        avro_file([{"name": "x", "type": "null"}], 2**60, b""),
        avro_file(PARTS, 1, text(b"x") + number(2**60) + number(0)),
        avro_file(PATH, 1, deflated(LONG), b"deflate"),
        avro_file(PATH, 1, LONG),
        avro_file(PATH, 1, deflated(LONG), b"bzip2"),
        avro_file(PATH, 1, text(b"x"))[:-17],
    ],
    ids=["no field", "null", "no field in a list", "deflated", "long", "codec", "cut"],
)
def test_a_list_that_is_none_is_refused_at_once(content):
    with pytest.raises(IcebergError):
        read_manifests(content)


def test_a_list_is_read_as_it_was_written():
    entries = [manifest(f"m{each}", each, each) for each in range(1, 3000)]
    assert read_manifests(written_manifests(entries, 2, {"snapshot-id": 1, "sequence-number": 1})) == entries
    assert read_manifests(avro_file(PATH, 2, text(b"a") + text(b"b")))[1]["manifest_path"] == b"b"


def test_a_list_has_the_entries_of_its_blocks():
    parts = [[manifest(f"m{number}-{each}", 1) for each in range(count)] for number, count in enumerate((70, 1, 0))]
    content = list_of_blocks([block_of(each, 3) for each in parts], 3, {"snapshot-id": 1, "sequence-number": 1})
    written = list(fastavro.reader(io.BytesIO(content)))
    assert written == [{**each, "first_row_id": None} for part in parts for each in part]
