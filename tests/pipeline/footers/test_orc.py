"""Tails of ORC files say what pyarrow counts in the data."""

import random

import pyarrow
import pytest
from pyarrow import compute, orc

from hms_gateway.pipeline.footers.reading import read_footer
from tests.pipeline.footers.content import HIVE, TYPES, counted, random_table, reading

# What the file has for these is milliseconds with a rest that the writer may leave out.
TIMES = ("moment", "exact")


def footer(path):
    return read_footer(str(path), path.stat().st_size, reading(str(path)))


@pytest.mark.parametrize("seed", range(25))
def test_figures_are_those_of_the_data(tmp_path, seed):
    source = random.Random(seed)
    table = random_table(source, source.choice((1, 7, 60)))
    path = tmp_path / "file.orc"
    compression = source.choice(("uncompressed", "zlib", "snappy", "lz4", "zstd"))
    orc.write_table(table, path, compression=compression, compression_block_size=source.choice((65536, 262144)))
    found = footer(path)
    assert found.rows == len(table)
    assert [(column.name, column.type) for column in found.columns] == list(HIVE.items())
    for name in TYPES:
        figures, wanted = found.figures[name], counted(table[name])
        assert (figures.rows, figures.nulls) == (len(table), wanted["nulls"]), name
        if figures.is_exact and name not in ("note", "data"):
            assert (figures.low, figures.high) == (wanted["low"], wanted["high"]), name
        elif figures.has_bounds and figures.low is not None and name in TIMES:
            assert figures.low <= wanted["low"]
            assert wanted["high"] <= figures.high < wanted["high"] + 1_000_000
        if wanted["bytes"] is not None:
            assert figures.byte_count == wanted["bytes"], name
            assert figures.longest <= wanted["longest"]
        if name == "flag":
            assert figures.trues == table[name].to_pylist().count(True)
        if figures.distinct is not None:
            assert figures.distinct == compute.count_distinct(table[name]).as_py(), name


def test_nested_columns_have_hives_types(tmp_path):
    inner = pyarrow.struct(
        [("X", pyarrow.list_(pyarrow.int32())), ("y", pyarrow.map_(pyarrow.string(), pyarrow.date32()))]
    )
    path = tmp_path / "file.orc"
    orc.write_table(pyarrow.table({"Top": pyarrow.array([None, {"X": [1], "y": []}], inner)}), path)
    found = footer(path)
    assert [(column.name, column.type) for column in found.columns] == [
        ("top", "struct<x:array<int>,y:map<string,date>>")
    ]
    assert found.figures["top"].nulls == 1
