"""Several ORC files as one: the same rows in the same order, in columns of the same types."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import pyarrow
import pyarrow.orc

from hms_gateway.pipeline.compact.content import RowContent, content_of
from hms_gateway.pipeline.compact.rules import NotPlain
from hms_gateway.pipeline.footers.footer import FooterProblem
from hms_gateway.pipeline.footers.reading import read_footer
from hms_gateway.pipeline.storage import Files

_CODECS: Final = {"UNCOMPRESSED": "uncompressed", "ZLIB": "zlib", "SNAPPY": "snappy", "ZSTD": "zstd"}
_BATCH_ROWS: Final = 1024


@contextmanager
def opened(filing: Files, path: str) -> Iterator[pyarrow.orc.ORCFile]:
    """Raises NotPlain for what is not an ORC file that can be read."""
    with filing.reading(path) as file:
        try:
            yield pyarrow.orc.ORCFile(file)
        except pyarrow.ArrowException as error:
            raise NotPlain(f"has a file that cannot be read as ORC, {path.rpartition('/')[2]}: {error}") from error


def kind_of(filing: Files, path: str) -> bytes:
    """The columns and their types, with the lengths of texts, which Arrow does not know."""
    return repr((_columns(filing, path), _schema(filing, path))).encode()


def _schema(filing: Files, path: str) -> str:
    with opened(filing, path) as file:
        return str(file.schema.remove_metadata())


def _columns(filing: Files, path: str) -> list[tuple[str, str]]:
    size = filing.size(path)
    try:
        footer = read_footer(path, size, lambda offset, length: filing.read(path, offset, length))
    except FooterProblem as problem:
        raise NotPlain(f"has a file that cannot be read: {problem}") from problem
    return [(column.name, column.type) for column in footer.columns]


def merge(filing: Files, paths: Sequence[str], target: str) -> RowContent:
    """Write the rows of files of one kind to a new file; their content. Raises NotPlain, OSError."""
    with opened(filing, paths[0]) as first, filing.writing(target) as out:
        compression = _CODECS.get(first.compression, "zlib")
        found = RowContent()
        with pyarrow.orc.ORCWriter(out, compression=compression) as writer:
            for batch in _batches(filing, paths):
                found.add(batch)
                writer.write(pyarrow.Table.from_batches([batch]))
            if not found.rows:
                writer.write(first.schema.remove_metadata().empty_table())
    before, after = _columns(filing, paths[0]), _columns(filing, target)
    for old, new in zip(before, after, strict=True):
        if old != new:
            raise NotPlain(f"has the column {old[0]} of type {old[1]}, which pyarrow would write as {new[1]}")
    return found


def content(filing: Files, paths: Iterable[str]) -> RowContent:
    """The content of files in their order."""
    return content_of(_batches(filing, paths))


def _batches(filing: Files, paths: Iterable[str]) -> Iterator[pyarrow.RecordBatch]:
    for path in paths:
        with opened(filing, path) as file:
            for stripe in range(file.nstripes):
                yield file.read_stripe(stripe)
