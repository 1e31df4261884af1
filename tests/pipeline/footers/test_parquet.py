"""Footers of Parquet files say what pyarrow and DuckDB count in the data."""

import random
from datetime import datetime

import pyarrow
import pytest
from pyarrow import compute, parquet
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.transport.TTransport import TMemoryBuffer

from hms_gateway.pipeline.footers.footer import Column
from hms_gateway.pipeline.footers.parquet import parquet_footer
from hms_gateway.pipeline.footers.parquet_structs import FileMetaData, decode, schema_end
from hms_gateway.pipeline.footers.reading import read_footer
from tests.pipeline.footers.content import HIVE, TYPES, counted, random_table, reading

BOUNDED = [name for name in TYPES if name not in ("note", "data")]


def footer(path):
    return read_footer(str(path), path.stat().st_size, reading(str(path)))


def written(tmp_path, table, **options):
    path = tmp_path / "file.parquet"
    parquet.write_table(table, path, **options)
    return footer(path)


@pytest.mark.parametrize("seed", range(25))
def test_figures_are_those_of_the_data(tmp_path, seed):
    source = random.Random(seed)
    table = random_table(source, source.choice((1, 7, 60)))
    options = {"row_group_size": source.choice((1, 5, 100)), "data_page_version": source.choice(("1.0", "2.0"))}
    found = written(tmp_path, table, compression=source.choice(("none", "snappy", "zstd")), **options)
    assert found.rows == len(table)
    assert [(column.name, column.type) for column in found.columns] == list(HIVE.items())
    for name in TYPES:
        figures, wanted = found.figures[name], counted(table[name])
        assert (figures.rows, figures.nulls) == (len(table), wanted["nulls"]), name
        if figures.has_bounds and name in BOUNDED:
            assert (figures.low, figures.high) == (wanted["low"], wanted["high"]), name
            assert figures.is_exact
        elif name in BOUNDED:
            assert name in ("real", "wide"), "only NaN takes bounds away"
        if wanted["bytes"] is not None:
            assert figures.byte_count == wanted["bytes"], name
            assert figures.longest <= wanted["longest"]
            assert figures.longest == wanted["longest"] or not figures.longest_is_exact
        if figures.distinct is not None:
            assert figures.distinct == compute.count_distinct(table[name]).as_py(), name


@pytest.mark.parametrize("says", [None, False])
def test_bounds_of_strings_that_a_writer_may_have_shortened_are_not_exact(tmp_path, says):
    """Made of a file of Arrow, which does not shorten any: its bounds are as those of arrow-rs are, which does."""
    path = tmp_path / "file.parquet"
    parquet.write_table(pyarrow.table({"note": ["ü" * 200, "ü" * 200]}), path)
    found = decode(metadata_of(path))
    statistics = found.row_groups[0].columns[0].meta_data.statistics
    statistics.min_value, statistics.max_value = b"\xc3\xbc" * 8, b"\xc3\xbc" * 7 + b"\xc3\xbd"
    statistics.is_min_value_exact = statistics.is_max_value_exact = says
    figures = parquet_footer(encoded(found, path)).figures["note"]
    assert (figures.has_bounds, figures.is_exact, figures.distinct) == (True, False, None)
    assert (figures.byte_count, figures.longest, figures.longest_is_exact) == (800, 400, False)


def test_a_constant_string_is_known_by_its_exact_bounds(tmp_path):
    figures = written(tmp_path, pyarrow.table({"note": ["é", None, "é"]})).figures["note"]
    assert (figures.distinct, figures.byte_count, figures.longest, figures.longest_is_exact) == (1, 4, 2, True)


@pytest.mark.parametrize(("name", "values"), [("note", ["a", "z"]), ("big", [1, 9])])
def test_old_bounds_count_where_their_order_is_that_of_the_type(tmp_path, name, values):
    """Old writers compared signed bytes: their bounds of strings can be wrong."""
    path = tmp_path / "file.parquet"
    parquet.write_table(pyarrow.table({name: pyarrow.array(values, TYPES[name])}), path)
    found = decode(metadata_of(path))
    found.column_orders = None
    statistics = found.row_groups[0].columns[0].meta_data.statistics
    statistics.min, statistics.max = statistics.min_value, statistics.max_value
    figures = parquet_footer(encoded(found, path)).figures[name]
    assert (figures.low, figures.high) == ((1, 9) if name == "big" else (None, None))


def metadata_of(path):
    data = path.read_bytes()
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


def encoded(found, path):
    """With the schema of a file, which has been read as a whole."""
    data = metadata_of(path)
    parquet_footer(data)
    protocol = TCompactProtocolAccelerated(TMemoryBuffer(), fallback=False)
    rest = protocol._fast_encode(found, [FileMetaData, FileMetaData.thrift_spec])
    # The first field says how far its number is from that of the one before, here of the schema.
    return data[: schema_end(data)] + bytes((rest[0] - 0x20,)) + rest[1:]


def test_unsigned_numbers_have_types_that_hold_them(tmp_path):
    highest = {"a": 2**8 - 1, "b": 2**16 - 1, "c": 2**32 - 1, "d": 2**64 - 1}
    kinds = (pyarrow.uint8(), pyarrow.uint16(), pyarrow.uint32(), pyarrow.uint64())
    table = pyarrow.table(
        {name: pyarrow.array([1, highest[name]], kind) for name, kind in zip(highest, kinds, strict=True)}
    )
    found = written(tmp_path, table)
    assert [column.type for column in found.columns] == ["smallint", "int", "bigint", "decimal(20,0)"]
    assert {name: int(figures.high) for name, figures in found.figures.items()} == highest


def test_nested_columns_have_hives_types(tmp_path):
    inner = pyarrow.struct(
        [("X", pyarrow.list_(pyarrow.int32())), ("y", pyarrow.map_(pyarrow.string(), pyarrow.date32()))]
    )
    table = pyarrow.table(
        {"Top": pyarrow.array([None], inner), "l": pyarrow.array([[[1]]], pyarrow.list_(pyarrow.list_(pyarrow.int8())))}
    )
    found = written(tmp_path, table)
    assert [(column.name, column.type) for column in found.columns] == [
        ("top", "struct<x:array<int>,y:map<string,date>>"),
        ("l", "array<array<tinyint>>"),
    ]
    assert found.figures["top"].nulls is None


def test_what_hive_does_not_have_is_left_out_and_named(tmp_path):
    wide = pyarrow.array([None], pyarrow.decimal256(50, 2))
    odd = pyarrow.array([None], pyarrow.struct([("a:b", pyarrow.int8())]))
    table = pyarrow.table([wide, odd, pyarrow.array([1]), pyarrow.array([2])], names=["wide", "odd", "id", "ID"])
    found = written(tmp_path, table)
    assert found.columns == (Column("id", "bigint"),)
    assert [name for name, _ in found.unread] == ["wide", "odd", "ID"]
    assert "decimal(50,2)" in found.unread[0][1]


def test_what_spark_does_not_read_is_named(tmp_path):
    at = datetime(2024, 1, 1)
    table = pyarrow.table(
        {
            "At": pyarrow.array([at], pyarrow.timestamp("ns")),
            "many": pyarrow.array([[at]], pyarrow.list_(pyarrow.timestamp("ns", "UTC"))),
            "half": pyarrow.array([1.0], pyarrow.float16()),
            "pair": pyarrow.StructArray.from_arrays([pyarrow.array([1])] * 2, names=["x", "X"]),
            "micro": pyarrow.array([at], pyarrow.timestamp("us")),
        }
    )
    found = written(tmp_path, table)
    assert [(column.name, column.type) for column in found.columns if column.name != "pair"] == [
        ("at", "timestamp"),
        ("many", "array<timestamp>"),
        ("half", "float"),
        ("micro", "timestamp"),
    ]
    assert found.unread == (
        ("At", "is a timestamp of nanoseconds; write microseconds"),
        ("many", "is a timestamp of nanoseconds; write microseconds"),
        ("half", "is a float of 16 bits; write 32"),
        ("pair", "has fields whose names differ in upper and lower case only"),
    )
    assert [name for name, _ in found.unread_without({"at", "many"})] == ["half", "pair"]


def test_partition_keys_are_left_out(tmp_path):
    found = written(tmp_path, pyarrow.table({"id": [1], "DS": ["2024"]}))
    assert found.columns_without({"ds"}) == (Column("id", "bigint"),)


def test_old_timestamps_have_no_bounds(tmp_path):
    table = pyarrow.table({"t": pyarrow.array([1, None], pyarrow.timestamp("ns"))})
    figures = written(tmp_path, table, use_deprecated_int96_timestamps=True).figures["t"]
    assert not figures.has_bounds
    assert figures.low is None


def test_a_file_without_statistics_says_so(tmp_path):
    found = written(tmp_path, pyarrow.table({"id": [1, 2]}), write_statistics=False)
    assert (found.rows, found.figures["id"].nulls, found.figures["id"].has_bounds) == (2, None, False)


def test_a_file_without_rows(tmp_path):
    found = written(tmp_path, pyarrow.table({"id": pyarrow.array([], pyarrow.int32())}))
    assert (found.rows, found.figures["id"].nulls, found.figures["id"].distinct) == (0, 0, 0)
