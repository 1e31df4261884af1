"""Manifest lists: the Avro files that name a snapshot's manifests (Iceberg table spec, Manifest Lists).

fastavro is loaded with the first one, and comes with the extra `iceberg`.
"""

import io
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, Final

from hms_gateway.iceberg.errors import IcebergError, invalid

Manifest = dict[str, Any]
"""An entry by the names of the spec."""

_SUMMARY: Final = {
    "type": "record",
    "name": "r508",
    "fields": [
        {"name": "contains_null", "type": "boolean", "field-id": 509},
        {"name": "contains_nan", "type": ["null", "boolean"], "default": None, "field-id": 518},
        {"name": "lower_bound", "type": ["null", "bytes"], "default": None, "field-id": 510},
        {"name": "upper_bound", "type": ["null", "bytes"], "default": None, "field-id": 511},
    ],
}
_FIELDS: Final[tuple[tuple[str, Any, int], ...]] = (
    ("manifest_path", "string", 500),
    ("manifest_length", "long", 501),
    ("partition_spec_id", "int", 502),
    ("content", "int", 517),
    ("sequence_number", "long", 515),
    ("min_sequence_number", "long", 516),
    ("added_snapshot_id", "long", 503),
    ("added_files_count", "int", 504),
    ("existing_files_count", "int", 505),
    ("deleted_files_count", "int", 506),
    ("added_rows_count", "long", 512),
    ("existing_rows_count", "long", 513),
    ("deleted_rows_count", "long", 514),
    ("partitions", ["null", {"type": "array", "items": _SUMMARY, "element-id": 508}], 507),
    ("key_metadata", ["null", "bytes"], 519),
)
_FIRST_ROW_ID: Final = ("first_row_id", ["null", "long"], 520)
_NAME_OF_ID: Final = {number: name for name, _, number in (*_FIELDS, _FIRST_ROW_ID)}
_PART_OF_ID: Final = {field["field-id"]: field["name"] for field in _SUMMARY["fields"]}  # type: ignore[index]
# A block ends with the mark of its file; files of this process have the same, since blocks are in several of them.
_MARK_BYTES: Final = 16
_MARK: Final = os.urandom(_MARK_BYTES)
_MAGIC: Final = b"Obj\x01"
LIST_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bound on a manifest list, also unpacked: an entry has some hundred bytes, and takes ten times as many in memory."""
OBJECTS_MAX: Final = 250_000
"""Manifests and summaries of partitions in one list; the least has some bytes, and takes hundreds in memory."""
_OBJECT_BYTES: Final = 1024
_UNCOUNTED_BYTES: Final = 1024 * 1024
# The schema is some thousands of them.
_HEAD_BYTES_MAX: Final = 64 * 1024
_WINDOW_BYTES: Final = 256 * 1024
_NEEDED: Final = frozenset({"manifest_path", "manifest_length", "partition_spec_id", "added_snapshot_id"})
_WITH_BYTES: Final = frozenset({"boolean", "int", "long", "float", "double", "bytes", "string"})
# Of lists of format version 1, which have no such fields.
_ABSENT: Final = {
    **dict.fromkeys(("content", "sequence_number", "min_sequence_number"), 0),
    **dict.fromkeys(("partitions", "key_metadata"), None),
}


def _avro() -> Any:
    try:
        import fastavro
    except ImportError as error:
        text = "appends are not rebased here: install the extra iceberg (fastavro)"
        raise IcebergError("CommitFailedException", text) from error
    return fastavro


def read_manifests(content: bytes, hold: Callable[[int], None] | None = None) -> list[Manifest]:
    """The entries in their order. Raises IcebergError for what is no manifest list, or takes too much memory.

    `hold` is told the bytes that file, unpacked text and entries take so far, where they are many. What it raises is
    raised.
    """
    found: list[Manifest] = []
    objects = 0
    for unpacked, entries in _entries(content):
        found += entries
        objects += len(entries) + sum(len(one["partitions"] or ()) for one in entries)
        if objects > OBJECTS_MAX:
            raise invalid(f"the manifest list has more than {OBJECTS_MAX} manifests and summaries of partitions")
        size = len(content) + unpacked + objects * _OBJECT_BYTES
        if hold is not None and size > _UNCOUNTED_BYTES:
            hold(size)
    return found


def _entries(content: bytes) -> Iterator[tuple[int, list[Manifest]]]:
    """The bytes unpacked so far and entries, a bounded part at a time; at first none. Raises IcebergError."""
    yield 0, []
    avro = _avro()
    try:
        file = io.BytesIO(content[:_HEAD_BYTES_MAX])
        head = avro.schemaless_reader(file, _head_schema())
        names, parts, schema = _read_schema(head["meta"]["avro.schema"])
        codec = head["meta"].get("avro.codec", b"null")
        if head["magic"] != _MAGIC or codec not in (b"null", b"deflate"):
            raise invalid("the manifest list is no Avro file, or has a codec that is not read here")
        for unpacked, count, block in _blocks(content, file.tell(), is_packed=codec == b"deflate"):
            for records in _records(avro, schema, count, block):
                yield unpacked, [_entry(record, names, parts) for record in records]
    except IcebergError:
        raise
    except Exception as error:  # fastavro raises what its decoders run into.
        raise invalid(f"the manifest list cannot be read: {type(error).__name__}: {error}") from error


@lru_cache(maxsize=8)
def _read_schema(text: bytes) -> tuple[Mapping[str, str | None], Mapping[str, str], Any]:
    """Names of the fields of entries and of summaries by those in a file, and its schema. Raises IcebergError."""
    described = json.loads(text)
    schema = _avro().parse_schema(described)
    if not _takes_bytes(described):
        raise invalid("the manifest list has a schema that is not read here")
    names = {field["name"]: _NAME_OF_ID.get(field.get("field-id")) for field in described["fields"]}
    if missing := _NEEDED - {*names.values()}:
        raise invalid(f"the manifest list lacks {', '.join(sorted(missing))}")
    return names, _part_names(described), schema


def _blocks(content: bytes, position: int, *, is_packed: bool) -> Iterator[tuple[int, int, bytes]]:
    """The bytes unpacked so far, count and text of the records of each block.

    Raises IcebergError: a few bytes may be many when unpacked.
    """
    unpacked = 0
    while position < len(content):
        count, position = _long(content, position)
        length, position = _long(content, position)
        block = content[position : position + max(0, length)]
        if is_packed:
            block = zlib.decompressobj(-zlib.MAX_WBITS).decompress(block, LIST_BYTES_MAX + 1)
        unpacked += len(block)
        position += length + _MARK_BYTES
        if count < 0 or length < 0 or unpacked > LIST_BYTES_MAX or position > len(content):
            raise invalid(f"the manifest list is damaged, or longer than {LIST_BYTES_MAX} bytes unpacked")
        yield unpacked, count, block


def _records(avro: Any, schema: Any, count: int, block: bytes) -> Iterator[list[Mapping[str, Any]]]:
    """The records of a block, those of one window at a time: their values may take far more memory than their text."""
    begin, left = 0, count
    while left:
        found: list[Mapping[str, Any]] = []
        file, end = io.BytesIO(block[begin : begin + _WINDOW_BYTES]), 0
        try:
            while len(found) < left:
                found.append(avro.schemaless_reader(file, schema))
                end = file.tell()
        except Exception as error:
            # fastavro raises several kinds where a window ends inside an entry, with which the next window begins.
            if not found:
                text = f"the manifest list is damaged, or has an entry of more than {_WINDOW_BYTES} bytes"
                raise invalid(text) from error
        yield found
        begin, left = begin + end, left - len(found)


def _takes_bytes(kind: Any) -> bool:
    """True if each value of a type takes a byte at least, and so does each element of the lists in it."""
    match kind:
        case {"type": "record", "fields": list(fields)}:
            inside = [_takes_bytes(field["type"]) for field in fields]
            return any(inside) and all(inside)
        case {"type": "array", "items": inner} | {"type": "map", "values": inner}:
            return _takes_bytes(inner)
        case {"type": str(name)} | str(name):
            return name in _WITH_BYTES
        case list(kinds):
            return all(one == "null" or _takes_bytes(one) for one in kinds)
    return False


def _long(content: bytes, position: int) -> tuple[int, int]:
    """A number as Avro writes it, and the position behind it."""
    number = shift = 0
    while shift < 64:
        byte = content[position]
        position += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return (number >> 1) ^ -(number & 1), position


def _entry(record: Mapping[str, Any], names: Mapping[str, str | None], parts: Mapping[str, str]) -> Manifest:
    entry: Manifest = dict(_ABSENT)
    for sent, value in record.items():
        name = names.get(sent)
        if name is not None:
            entry[name] = value
    if entry["partitions"] is not None:
        entry["partitions"] = [
            {parts[key]: value for key, value in one.items() if key in parts} for one in entry["partitions"]
        ]
    return entry


def _part_names(schema: Mapping[str, Any]) -> dict[str, str]:
    """Names of the fields of a partition's summary, by those in the file."""
    for field in schema["fields"]:
        if field.get("field-id") == 507:
            kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
            items = next(kind["items"] for kind in kinds if isinstance(kind, dict))
            return {one["name"]: _PART_OF_ID.get(one.get("field-id"), one["name"]) for one in items["fields"]}
    return {}


def block_of(entries: Iterable[Manifest], format_version: int) -> bytes:
    """Entries as a block, which the lists of several snapshots may have. Raises IcebergError."""
    avro, file, count = _avro(), io.BytesIO(), 0
    try:
        for entry in entries:
            avro.schemaless_writer(file, _schema(format_version), entry)
            count += 1
    except Exception as error:  # fastavro raises what its encoders run into.
        raise invalid(f"the manifest list cannot be written: {type(error).__name__}: {error}") from error
    packed = zlib.compress(file.getvalue(), wbits=-zlib.MAX_WBITS)
    return b"".join((_long_bytes(count), _long_bytes(len(packed)), packed, _MARK)) if count else b""


def list_of_blocks(blocks: Iterable[bytes], format_version: int, about: Mapping[str, Any]) -> bytes:
    """A manifest list of blocks. `about` is its snapshot, for the head of the file."""
    file = io.BytesIO()
    head = {
        "snapshot-id": str(about["snapshot-id"]),
        "parent-snapshot-id": str(about.get("parent-snapshot-id", "null")),
        "sequence-number": str(about["sequence-number"]),
        "format-version": str(format_version),
    }
    _avro().writer(file, _schema(format_version), (), codec="deflate", metadata=head, sync_marker=_MARK)
    return b"".join((file.getvalue(), *blocks))


def _long_bytes(number: int) -> bytes:
    """A number from 0 on as Avro writes it."""
    left, found = number << 1, bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes((*found, left))


@cache
def _head_schema() -> Any:
    """The head of an Avro file (Avro specification, Object Container Files)."""
    kinds = (
        ("magic", {"type": "fixed", "name": "magic", "size": len(_MAGIC)}),
        ("meta", {"type": "map", "values": "bytes"}),
        ("sync", {"type": "fixed", "name": "sync", "size": _MARK_BYTES}),
    )
    return _avro().parse_schema(
        {"type": "record", "name": "head", "fields": [{"name": name, "type": kind} for name, kind in kinds]}
    )


@cache
def _schema(format_version: int) -> Any:
    fields = (*_FIELDS, _FIRST_ROW_ID) if format_version >= 3 else _FIELDS
    described = [
        {"name": name, "type": kind, "field-id": number, **({"default": None} if isinstance(kind, list) else {})}
        for name, kind, number in fields
    ]
    return _avro().parse_schema({"type": "record", "name": "manifest_file", "fields": described})
