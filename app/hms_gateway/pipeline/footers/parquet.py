"""What the footer of a Parquet file says."""

import struct
from collections.abc import Sequence
from math import isnan
from typing import Final

from hms_gateway.pipeline.footers.figures import FooterFigures, Value, joined
from hms_gateway.pipeline.footers.footer import Column, Footer
from hms_gateway.pipeline.footers.parquet_schema import Leaf, Schema, SchemaColumn, schema_of
from hms_gateway.pipeline.footers.parquet_structs import (
    ColumnMetaData,
    FileMetaData,
    NotAFooter,
    RowGroup,
    SchemaElement,
    Statistics,
    decode,
)

FORMAT = "parquet"


class _LastSchema:
    """Files of a table mostly have the schema of the one before, which is made once."""

    def __init__(self) -> None:
        self._last: tuple[Sequence[SchemaElement], Schema] | None = None

    def of(self, elements: Sequence[SchemaElement]) -> Schema:
        """Raises NotAFooter."""
        last = self._last
        if last is None or last[0] != elements:
            last = self._last = elements, schema_of(elements)
        return last[1]


_LAST: Final = _LastSchema()


def parquet_footer(data: bytes) -> Footer:
    """`data` is a FileMetaData. Raises NotAFooter."""
    found = decode(data)
    if not found.schema:
        raise NotAFooter("it has no schema")
    schema = _LAST.of(found.schema)
    groups = found.row_groups or []
    for group in groups:
        if len(group.columns or ()) != schema.leaf_count:
            raise NotAFooter(f"a row group has {len(group.columns or ())} columns, its schema {schema.leaf_count}")
    rows = sum(group.num_rows or 0 for group in groups)
    if rows != (found.num_rows or 0) or any((group.num_rows or 0) < 0 for group in groups):
        raise NotAFooter(f"it counts {found.num_rows} rows, its row groups {rows}")
    return Footer(
        format=FORMAT,
        rows=rows,
        columns=tuple(Column(column.name, column.type) for column in schema.columns),
        figures=_figures(schema, found, groups),
        unread=schema.unread,
    )


def _figures(schema: Schema, found: FileMetaData, groups: Sequence[RowGroup]) -> dict[str, FooterFigures]:
    orders = found.column_orders or ()
    figures = {}
    for column in schema.columns:
        has_order = column.first < len(orders) and orders[column.first].TYPE_ORDER is not None
        parts = [_of_group(column, group, has_order) for group in groups]
        figures[column.name] = joined(parts) if parts else _nothing()
    return figures


def _nothing() -> FooterFigures:
    return FooterFigures(0, 0, None, None, True, True, 0, 0, True, 0, 0, 0)


def _of_group(column: SchemaColumn, group: RowGroup, has_order: bool) -> FooterFigures:
    rows = group.num_rows or 0
    chunks = (group.columns or ())[column.first : column.first + column.count]
    described = [chunk.meta_data for chunk in chunks if chunk.meta_data is not None]
    stored = sum(each.total_uncompressed_size or 0 for each in described)
    if column.leaf is None or not described:
        # Of nested columns the file knows single fields only; of encrypted ones nothing.
        return FooterFigures(rows, None, stored=stored)
    return _of_chunk(column.leaf, described[0], rows, has_order)


def _of_chunk(leaf: Leaf, chunk: ColumnMetaData, rows: int, has_order: bool) -> FooterFigures:
    statistics = chunk.statistics or Statistics()
    nulls = 0 if leaf.is_required else statistics.null_count
    if nulls is not None and not 0 <= nulls <= rows:
        nulls = None
    values = None if nulls is None else rows - nulls
    if rows == 0:
        values = nulls = 0
    stored = chunk.total_uncompressed_size
    if values == 0:
        return FooterFigures(rows, nulls, None, None, True, True, 0, 0, True, 0, 0, stored)
    low, high = _bounds(leaf, statistics, has_order)
    has_bounds = low is not None
    is_exact = has_bounds and _is_exact(leaf, statistics)
    is_one = is_exact and low == high and not isinstance(low, float)
    byte_count = _byte_count(leaf, chunk, values)
    longest = _longest(low, high, byte_count, values)
    if is_one and isinstance(low, bytes) and values is not None:
        byte_count = values * len(low)
    return FooterFigures(
        rows=rows,
        nulls=nulls,
        low=low,
        high=high,
        has_bounds=has_bounds,
        is_exact=is_exact,
        byte_count=byte_count,
        longest=leaf.width or longest,
        longest_is_exact=is_one or leaf.width is not None,
        trues=values * int(low == 1) if is_one and leaf.kind == "boolean" and values is not None else None,
        distinct=1 if is_one else None,
        stored=stored,
    )


def _bounds(leaf: Leaf, statistics: Statistics, has_order: bool) -> tuple[Value, Value] | tuple[None, None]:
    """None where they are missing, have another order than the type's, or are none of its values."""
    if leaf.read is None:
        return None, None
    low, high = (statistics.min_value, statistics.max_value) if has_order else (None, None)
    if low is None and high is None and leaf.is_signed:
        low, high = statistics.min, statistics.max
    if low is None or high is None:
        return None, None
    try:
        smallest, largest = leaf.read(low), leaf.read(high)
    except (ValueError, struct.error) as error:
        raise NotAFooter(f"a bound cannot be read: {error}") from error
    if isinstance(smallest, float) and isinstance(largest, float):
        if isnan(smallest) or isnan(largest):
            return None, None
        # Of the two zeros either may be written for the other.
        smallest, largest = smallest + 0.0, largest + 0.0
    return (smallest, largest) if smallest <= largest else (None, None)  # type: ignore[operator]


def _is_exact(leaf: Leaf, statistics: Statistics) -> bool:
    """Strings and binaries may be shortened: only a writer that says that they are not is believed."""
    flags = (statistics.is_min_value_exact, statistics.is_max_value_exact)
    return flags == (True, True) if leaf.is_shortened else False not in flags


def _byte_count(leaf: Leaf, chunk: ColumnMetaData, values: int | None) -> int | None:
    if leaf.width is not None:
        return None if values is None else values * leaf.width
    return chunk.size_statistics.unencoded_byte_array_data_bytes if chunk.size_statistics else None


def _longest(low: Value | None, high: Value | None, byte_count: int | None, values: int | None) -> int | None:
    """A length that some value has at least; a shortened bound is not longer than the value it was made from."""
    known = [len(bound) for bound in (low, high) if isinstance(bound, bytes)]
    if byte_count is not None and values:
        known.append(-(-byte_count // values))
    return max(known, default=None)
