"""Several Parquet files as one: the same rows in the same order, in the same physical columns."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, Final

import pyarrow
import pyarrow.parquet

from hms_gateway.pipeline.compact.content import RowContent, content_of
from hms_gateway.pipeline.compact.rules import NotPlain
from hms_gateway.pipeline.storage import Files

_BATCH_ROWS: Final = 16_384
_GROUP_BYTES: Final = 128 << 20
_CODECS: Final = {"SNAPPY": "snappy", "GZIP": "gzip", "ZSTD": "zstd", "BROTLI": "brotli", "UNCOMPRESSED": "none"}
# What pyarrow writes for itself.
_ARROW_SCHEMA: Final = b"ARROW:schema"
_INT96: Final = "INT96"
# How the field `created_by` begins in Thrift's compact protocol: a text, one or two ids behind the field before.
_CREATED_BY_FIELD: Final = b"\x18\x28"
_OWN_NAME: Final = b"parquet-cpp-arrow version "
_MAGIC: Final = b"PAR1"
_TRAILER: Final = b"size" + _MAGIC


@contextmanager
def opened(filing: Files, path: str, unit: str = "ns") -> Iterator[pyarrow.parquet.ParquetFile]:
    """Raises NotPlain for what is not a Parquet file that can be read."""
    with filing.reading(path) as file:
        try:
            yield pyarrow.parquet.ParquetFile(file, coerce_int96_timestamp_unit=unit)
        except pyarrow.ArrowException as error:
            raise NotPlain(f"has a file that cannot be read as Parquet, {_name(path)}: {error}") from error


def kind_of(filing: Files, path: str) -> bytes:
    """The features that files of one kind share: physical columns, and their writers' statements about them."""
    with opened(filing, path) as file:
        said = {key: value for key, value in (file.metadata.metadata or {}).items() if key != _ARROW_SCHEMA}
        has_int96 = _has_int96(file)
        writer = file.metadata.created_by if has_int96 else ""
        return repr((str(file.schema).partition("\n")[2], sorted(said.items()), writer)).encode()


def merge(filing: Files, paths: Sequence[str], target: str) -> RowContent:
    """Write the rows of files of one kind to a new file; their content. Raises NotPlain, OSError."""
    with opened(filing, paths[0]) as first:
        content = RowContent()
        with filing.writing(target) as out:
            held = _HeldFooter(out)
            writer = _writer(first, held)
            _copy(_batches(filing, paths), writer, content)
            held.hold()
            writer.close()
            out.write(_signed(held.footer, first.metadata.created_by) if _has_int96(first) else held.footer)
        _check_alike(filing, first, target)
    return content


def content(filing: Files, paths: Iterable[str], unit: str = "ns") -> RowContent:
    """The content of files in their order."""
    return content_of(_batches(filing, paths, unit))


def has_times_to_compare(filing: Files, path: str) -> bool:
    """True if there are INT96 timestamps: those beyond 1677 to 2262 are read wrong in nanoseconds."""
    with opened(filing, path) as file:
        return _has_int96(file)


def _batches(filing: Files, paths: Iterable[str], unit: str = "ns") -> Iterator[pyarrow.RecordBatch]:
    for path in paths:
        with opened(filing, path, unit) as file:
            yield from file.iter_batches(_BATCH_ROWS)


def _copy(batches: Iterable[pyarrow.RecordBatch], writer: Any, content: RowContent) -> None:
    """Row groups of a bounded size."""
    kept: list[pyarrow.RecordBatch] = []
    size = 0
    for batch in batches:
        content.add(batch)
        kept.append(batch)
        size += batch.nbytes
        if size >= _GROUP_BYTES:
            _write(writer, kept)
            kept, size = [], 0
    if kept:
        _write(writer, kept)


def _write(writer: Any, batches: list[pyarrow.RecordBatch]) -> None:
    table = pyarrow.Table.from_batches(batches)
    writer.write_table(table, row_group_size=max(1, len(table)))


def _writer(first: pyarrow.parquet.ParquetFile, out: Any) -> pyarrow.parquet.ParquetWriter:
    found, said = first.metadata, dict(first.metadata.metadata or {})
    chunk = found.row_group(0).column(0) if found.num_row_groups and found.num_columns else None
    writer = pyarrow.parquet.ParquetWriter(
        out,
        first.schema_arrow.remove_metadata(),
        version="1.0" if found.format_version == "1.0" else "2.6",
        compression=_CODECS.get(chunk.compression if chunk else "", "snappy"),
        use_deprecated_int96_timestamps=_has_int96(first),
        store_decimal_as_integer=_has_integer_decimals(first),
        store_schema=_ARROW_SCHEMA in said,
    )
    writer.add_key_value_metadata({key: value for key, value in said.items() if key != _ARROW_SCHEMA})
    return writer


def _columns(file: pyarrow.parquet.ParquetFile) -> Iterator[Any]:
    return (file.schema.column(number) for number in range(len(file.schema)))


def _has_int96(file: pyarrow.parquet.ParquetFile) -> bool:
    return any(column.physical_type == _INT96 for column in _columns(file))


def _has_integer_decimals(file: pyarrow.parquet.ParquetFile) -> bool:
    decimals = (column for column in _columns(file) if column.logical_type.type == "DECIMAL")
    return any(column.physical_type in ("INT32", "INT64") for column in decimals)


def _check_alike(filing: Files, first: pyarrow.parquet.ParquetFile, target: str) -> None:
    with opened(filing, target) as written:
        for before, after in zip(_columns(first), _columns(written), strict=True):
            if _described(before) != _described(after):
                raise NotPlain(f"has the column {before.path}, which pyarrow would write as another kind of column")
        if _has_int96(first) and written.metadata.created_by != first.metadata.created_by:
            raise NotPlain("has timestamps whose time zone follows from the writer, which cannot be kept")


def _described(column: Any) -> tuple[Any, ...]:
    levels = (column.max_definition_level, column.max_repetition_level)
    return (column.path, column.physical_type, column.converted_type, *levels, column.precision, column.scale)


class _HeldFooter:
    """A file for pyarrow to write to; from `hold` on it keeps what comes, which is the footer."""

    def __init__(self, out: BinaryIO) -> None:
        self._out, self._at, self._is_held, self.footer, self.closed = out, 0, False, b"", False

    def hold(self) -> None:
        self._is_held = True

    def write(self, data: Any) -> int:
        piece = bytes(data)
        if self._is_held:
            self.footer += piece
        else:
            self._out.write(piece)
        self._at += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        """The file below is flushed when it is whole."""

    def close(self) -> None:
        self.closed = True


def _signed(tail: bytes, created_by: str) -> bytes:
    """The end of a file with another writer's name in its footer: the field `created_by`, which is a text.

    From it readers take in which time zone INT96 timestamps are: Hive takes those of parquet-mr for UTC.
    """
    footer = tail[: -len(_TRAILER)]
    at = footer.rfind(_OWN_NAME)
    if at < 2 or footer[at - 2] not in _CREATED_BY_FIELD or footer[at - 1] >= 128:
        return tail
    name = created_by.encode()
    signed = footer[: at - 1] + _varint(len(name)) + name + footer[at + footer[at - 1] :]
    length = int.from_bytes(tail[-8:-4], "little") + len(signed) - len(footer)
    return signed + length.to_bytes(4, "little") + _MAGIC


def _varint(number: int) -> bytes:
    found = bytearray()
    while number >= 128:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _name(path: str) -> str:
    return path.rpartition("/")[2]
