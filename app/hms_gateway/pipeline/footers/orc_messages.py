"""The protobuf messages of an ORC file's tail (orc_proto.proto): fields by number, and the blocks around them."""

import struct
import zlib
from collections.abc import Iterator
from typing import Final, TypeAlias

# Whole numbers, bytes (texts, messages, packed numbers) and 8 bytes of doubles: in the order of the file.
Fields: TypeAlias = dict[int, list[int | bytes]]

NONE, ZLIB, SNAPPY, LZO, LZ4, ZSTD = range(6)
_NAMES: Final = {LZO: "LZO", 6: "Brotli"}


class NotAMessage(ValueError):
    """The bytes are not what the format says."""


def message(data: bytes) -> Fields:
    """Raises NotAMessage."""
    fields: Fields = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        value: int | bytes
        if kind == 0:
            value, at = _varint(data, at)
        else:
            length = {1: 8, 5: 4}.get(kind)
            if length is None:
                if kind != 2:
                    raise NotAMessage(f"field {number} has the unknown kind {kind}")
                length, at = _varint(data, at)
            if at + length > len(data):
                raise NotAMessage(f"field {number} ends beyond its message")
            value, at = data[at : at + length], at + length
        if number == 0:
            raise NotAMessage("a field has the number 0")
        fields.setdefault(number, []).append(value)
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise NotAMessage("a number does not end")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def number(fields: Fields, field: int) -> int | None:
    """The last one counts, as protobuf says."""
    found = fields.get(field, (None,))[-1]
    return found if isinstance(found, int) else None


def int32(fields: Fields, field: int) -> int | None:
    """A number of the type int32, which has 64 bits where it is below zero."""
    found = number(fields, field)
    return found - (1 << 64) if found is not None and found >> 63 else found


def signed(fields: Fields, field: int) -> int | None:
    """A number of the types sint32 and sint64 (zigzag)."""
    found = number(fields, field)
    return None if found is None else (found >> 1) ^ -(found & 1)


def binary(fields: Fields, field: int) -> bytes | None:
    found = fields.get(field, (None,))[-1]
    return found if isinstance(found, bytes) else None


def text(fields: Fields, field: int) -> str | None:
    """Raises NotAMessage."""
    found = binary(fields, field)
    try:
        return None if found is None else found.decode()
    except UnicodeDecodeError as error:
        raise NotAMessage(f"field {field} is not UTF-8") from error


def double(fields: Fields, field: int) -> float | None:
    found = binary(fields, field)
    return float(struct.unpack("<d", found)[0]) if found is not None and len(found) == 8 else None


def numbers(fields: Fields, field: int) -> list[int]:
    """A repeated number, packed or not. Raises NotAMessage."""
    found = []
    for value in fields.get(field, ()):
        if isinstance(value, int):
            found.append(value)
        else:
            at = 0
            while at < len(value):
                one, at = _varint(value, at)
                found.append(one)
    return found


def unpacked(data: bytes, compression: int, bytes_max: int) -> bytes:
    """What is in the compressed blocks of a section. Raises NotAMessage."""
    if compression == NONE:
        return data
    if compression not in (ZLIB, SNAPPY, LZ4, ZSTD):
        raise NotAMessage(f"its compression {_NAMES.get(compression, compression)} is not known here")
    parts = []
    left = bytes_max
    for block, is_original in _blocks(data):
        part = block if is_original else _decompressed(block, compression, left)
        left -= len(part)
        if left < 0:
            raise NotAMessage(f"it has more than {bytes_max} bytes when it is unpacked")
        parts.append(part)
    return b"".join(parts)


def _blocks(data: bytes) -> Iterator[tuple[bytes, bool]]:
    at = 0
    while at < len(data):
        header = int.from_bytes(data[at : at + 3], "little")
        length = header >> 1
        at += 3
        if at + length > len(data):
            raise NotAMessage("a block ends beyond its section")
        yield data[at : at + length], bool(header & 1)
        at += length


def _decompressed(block: bytes, compression: int, bytes_max: int) -> bytes:
    if compression == LZ4:
        return _lz4(block, bytes_max)
    try:
        if compression == ZLIB:
            return zlib.decompressobj(-15).decompress(block, bytes_max + 1)
        return _by_arrow(block, compression, bytes_max)
    except (zlib.error, OSError) as error:
        raise NotAMessage(f"a block cannot be unpacked: {error}") from error


def _by_arrow(block: bytes, compression: int, bytes_max: int) -> bytes:
    import pyarrow

    if compression == ZSTD:
        with pyarrow.CompressedInputStream(pyarrow.BufferReader(block), "zstd") as stream:
            return bytes(stream.read(bytes_max + 1))
    length, _ = _varint(block, 0)
    if length > bytes_max:
        raise NotAMessage(f"it has more than {bytes_max} bytes when it is unpacked")
    return bytes(pyarrow.Codec("snappy").decompress(block, decompressed_size=length, asbytes=True))


def _lz4(block: bytes, bytes_max: int) -> bytes:
    """A bare block: Arrow wants to know its length, which ORC does not keep."""
    out = bytearray()
    at = 0
    try:
        while at < len(block):
            token = block[at]
            length, at = _lz4_length(block, at + 1, token >> 4)
            out += block[at : at + length]
            at += length
            if at >= len(block) or len(out) > bytes_max:
                break
            distance = int.from_bytes(block[at : at + 2], "little")
            length, at = _lz4_length(block, at + 2, token & 15)
            _repeat(out, distance, length + 4, bytes_max)
    except IndexError as error:
        raise NotAMessage("a block ends within its compressed data") from error
    return bytes(out)


def _lz4_length(block: bytes, at: int, length: int) -> tuple[int, int]:
    if length < 15:
        return length, at
    while (byte := block[at]) == 255:
        length += 255
        at += 1
    return length + byte, at + 1


def _repeat(out: bytearray, distance: int, length: int, bytes_max: int) -> None:
    if not 0 < distance <= len(out):
        raise NotAMessage("a block refers to what is before it")
    if len(out) + length > bytes_max:
        raise NotAMessage(f"it has more than {bytes_max} bytes when it is unpacked")
    begin = len(out) - distance
    if distance >= length:
        out += out[begin : begin + length]
    else:
        pattern = bytes(out[begin:])
        out += (pattern * (length // distance + 1))[:length]
