"""Lists of partitions and of their names that are read while they are sent: memory stays flat at any length (D5)."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Protocol, Self, TypeVar

import msgspec
from sqlalchemy import Connection

from hms_gateway.storage.dialects.errors import translated
from hms_gateway.storage.partitions.rows import Descriptor, PartitionRow, StructRows, TjsonRows
from hms_gateway.structs import Struct, Table

CHUNK_ROWS: Final = 100
# Lists up to here are read at once: they cost little memory and need not keep a snapshot open for a slow client.
ROWS_AT_ONCE: Final = 1_000
# The same for names. Whole replies can be cached.
NAMES_AT_ONCE: Final = 50_000
_CHUNK_NAMES: Final = 2_000
_DESCRIPTORS_KEPT: Final = 1_000

T = TypeVar("T")


class SharedSnapshot:
    """Keeps a snapshot's connection for as long as it is read from."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._holders = 1
        self._lock = threading.Lock()

    def retain(self) -> None:
        with self._lock:
            self._holders += 1

    def release(self) -> None:
        """When the last holder does it, the transaction ends and the connection goes back to the pool."""
        with self._lock:
            self._holders -= 1
            is_last = self._holders == 0
        if is_last:
            self.end()

    def end(self) -> None:
        """End the snapshot under everybody's feet; harmless when it has ended."""
        self.connection.close()


class Rows:
    """Rows of one query: the first ones are here already, the others come from `cursor` on demand."""

    def __init__(self, first: Sequence[Any], cursor: Any = None, chunk_rows: int = CHUNK_ROWS) -> None:
        self._first = first
        self._cursor = cursor
        self._chunk_rows = chunk_rows

    def chunks(self) -> Iterator[Sequence[Any]]:
        for start in range(0, len(self._first), self._chunk_rows):
            yield self._first[start : start + self._chunk_rows]
        self._first = ()
        while self._cursor is not None and (rows := self._cursor.fetchmany(self._chunk_rows)):
            yield rows

    def close(self) -> None:
        self._first = ()
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None


class _LeasedRows:
    """Rows that are read while they are sent; until then they keep the snapshot they come from."""

    def __init__(self, connection: Connection, count: int, rows: Rows, shared: SharedSnapshot | None) -> None:
        self._engine = connection.engine
        self._count = count
        self._rows = rows
        self._shared = shared
        if shared is not None:
            shared.retain()

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        shared, self._shared = self._shared, None
        try:
            self._rows.close()
        finally:
            if shared is not None:
                shared.release()

    def __del__(self) -> None:
        # A caller should not forget to close; a forgotten list must not keep a connection for ever.
        if getattr(self, "_shared", None) is not None:
            self.close()

    def _each(self, convert: Callable[[Sequence[Any]], T], prepare: Callable[[Sequence[Any]], None]) -> Iterator[T]:
        """What `convert` makes of each chunk; `prepare` may ask the database before."""
        try:
            chunks = self._rows.chunks()
            while True:
                with translated(self._engine):
                    rows = next(chunks, None)
                    if rows is None:
                        return
                    prepare(rows)
                yield convert(rows)
        finally:
            self.close()


class PartitionNames(_LeasedRows):
    """An EncodedTexts over the rows of one query, each a name."""

    def __init__(
        self, connection: Connection, count: int, first: Sequence[Any], cursor: Any, shared: SharedSnapshot
    ) -> None:
        super().__init__(connection, count, Rows(first, cursor, _CHUNK_NAMES), shared)

    def tjson_chunks(self) -> Iterator[bytes]:
        return self._each(lambda rows: msgspec.json.encode([row[0] for row in rows])[1:-1], lambda rows: None)

    def text_chunks(self) -> Iterator[list[str]]:
        return self._each(lambda rows: [row[0] for row in rows], lambda rows: None)


class _RowDecoder(Protocol):
    def learn(self, descriptors: Iterable[Descriptor]) -> None: ...

    def forget(self) -> None: ...


class PartitionList(_LeasedRows):
    """An EncodedList over the rows of one query."""

    def __init__(
        self,
        connection: Connection,
        table: Table,
        count: int,
        rows: Rows,
        load_descriptors: Callable[[Iterable[int]], list[Descriptor]],
        shared: SharedSnapshot | None,
    ) -> None:
        super().__init__(connection, count, rows, shared)
        self._table = table
        self._load_descriptors = load_descriptors
        self._known: set[int | None] = {None}

    def without_columns(self) -> Self:
        """This list, without the columns of the storage descriptors: in TJSON that is less work than with them."""
        load = self._load_descriptors
        self._load_descriptors = lambda ids: [descriptor.without_columns() for descriptor in load(ids)]
        return self

    def tjson_chunks(self) -> Iterator[bytes]:
        encoder = TjsonRows(self._table)
        return self._each(encoder.encode, lambda rows: self._learn(encoder, rows))

    def struct_chunks(self) -> Iterator[list[Struct]]:
        builder = StructRows(self._table)
        return self._each(lambda rows: list[Struct](builder.build(rows)), lambda rows: self._learn(builder, rows))

    def _learn(self, decoder: _RowDecoder, rows: Sequence[PartitionRow]) -> None:
        used = {row[1] for row in rows}
        missing = used - self._known
        if not missing:
            return
        if len(self._known) > _DESCRIPTORS_KEPT:
            decoder.forget()
            self._known, missing = {None}, used - {None}
        decoder.learn(self._load_descriptors(descriptor for descriptor in missing if descriptor is not None))
        self._known |= missing
