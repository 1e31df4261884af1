"""A digest of rows in their order, whatever pieces they come in: validity, lengths and values of each column."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

import pyarrow
import pyarrow.compute


class RowContent:
    """The rows that were added: how many, and their digest."""

    def __init__(self) -> None:
        self.rows = 0
        self._hashes: dict[str, Any] = {}

    def add(self, batch: pyarrow.RecordBatch) -> None:
        self.rows += len(batch)
        for number, column in enumerate(batch.columns):
            self._feed(f"{number}", column)

    @property
    def digest(self) -> str:
        parts = [f"{path} {self._hashes[path].hexdigest()}" for path in sorted(self._hashes)]
        return sha256("\n".join([str(self.rows), *parts]).encode()).hexdigest()

    def _add(self, path: str, data: Any) -> None:
        if path not in self._hashes:
            self._hashes[path] = sha256()
        self._hashes[path].update(data)

    def _feed(self, path: str, array: pyarrow.Array) -> None:
        kind = array.type
        if pyarrow.types.is_dictionary(kind):
            array, kind = array.dictionary_decode(), kind.value_type
        self._add(f"{path} valid", _bytes_of(pyarrow.compute.is_valid(array).cast(pyarrow.uint8())))
        if pyarrow.types.is_struct(kind):
            for number, child in enumerate(array.flatten()):
                self._feed(f"{path}.{number}", child)
        elif pyarrow.types.is_nested(kind):
            present = _as_list(array.drop_null())
            self._lengths(path, pyarrow.compute.list_value_length(present))
            self._feed(f"{path}[]", present.flatten())
        elif not pyarrow.types.is_null(kind):
            self._values(path, array.drop_null())

    def _values(self, path: str, array: pyarrow.Array) -> None:
        kind = array.type
        if pyarrow.types.is_boolean(kind):
            array = array.cast(pyarrow.uint8())
        elif _has_lengths(kind):
            self._lengths(path, pyarrow.compute.binary_length(array))
            wide = pyarrow.large_binary()
            array = array.cast(wide) if kind != wide else array
            offsets = pyarrow.Array.from_buffers(
                pyarrow.int64(), len(array) + 1, [None, array.buffers()[1]], 0, array.offset
            )
            begin, end = offsets[0].as_py(), offsets[len(array)].as_py()
            self._add(path, memoryview(array.buffers()[2] or b"")[begin:end])
            return
        self._add(path, _bytes_of(array))

    def _lengths(self, path: str, lengths: pyarrow.Array) -> None:
        self._add(f"{path} length", _bytes_of(lengths.cast(pyarrow.int64())))


def content_of(batches: Iterable[pyarrow.RecordBatch]) -> RowContent:
    content = RowContent()
    for batch in batches:
        content.add(batch)
    return content


def _as_list(array: pyarrow.Array) -> pyarrow.Array:
    """A map as a list of keys with their values."""
    if not pyarrow.types.is_map(array.type):
        return array
    return array.cast(pyarrow.list_(pyarrow.struct([array.type.key_field, array.type.item_field])))


def _has_lengths(kind: pyarrow.DataType) -> bool:
    return bool(
        pyarrow.types.is_string(kind)
        or pyarrow.types.is_binary(kind)
        or pyarrow.types.is_large_string(kind)
        or pyarrow.types.is_large_binary(kind)
    )


def _bytes_of(array: pyarrow.Array) -> Any:
    """The bytes of values of one width, none of them null."""
    width = array.type.bit_width // 8
    buffer = array.buffers()[1]
    return memoryview(buffer or b"")[array.offset * width : (array.offset + len(array)) * width]
