"""Files of a directory written as fewer ones: rows, order and physical columns stay as they are."""

import random
from datetime import date, datetime
from decimal import Decimal

import pytest

pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

import pyarrow
import pyarrow.orc
import pyarrow.parquet

from hms_gateway.pipeline.compact import text_files
from hms_gateway.pipeline.compact.rewriting import Rewriting
from hms_gateway.pipeline.compact.rules import DataFile, NotPlain, bins, data_files, fingerprint, gain
from hms_gateway.pipeline.storage import Storage, files_of

DISKS = Storage(roots=("file:/",))

TARGET = 1 << 20


def table(seed, rows=50, **types):
    chance = random.Random(seed)
    values = {
        "id": ([chance.randrange(10**9) for _ in range(rows)], pyarrow.int64()),
        "note": ([chance.choice((None, "", "é", "x" * 9)) for _ in range(rows)], pyarrow.string()),
        "at": ([datetime(2024, 1, 1, chance.randrange(24)) for _ in range(rows)], pyarrow.timestamp("us")),
        "day": ([date(1500 + chance.randrange(900), 1, 1) for _ in range(rows)], pyarrow.date32()),
        "price": ([Decimal(chance.randrange(10**6)).scaleb(-2) for _ in range(rows)], pyarrow.decimal128(9, 2)),
        "tags": ([["a", None][: chance.randrange(3)] for _ in range(rows)], pyarrow.list_(pyarrow.string())),
    }
    return pyarrow.table({name: pyarrow.array(one, types.get(name, type)) for name, (one, type) in values.items()})


def rewritten(tmp_path, format, target_bytes=TARGET):
    source, target = tmp_path / "k=1", tmp_path / ".hms-compact" / "run" / "k=1"
    filing = files_of(f"file:{source}", DISKS)
    files = data_files(filing, str(source))
    rewriting = Rewriting(filing, format, str(source), str(target), "run", target_bytes, lambda: None)
    return rewriting.write(files), sorted(target.iterdir()) if target.exists() else []


def folder(tmp_path):
    found = tmp_path / "k=1"
    found.mkdir()
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_deprecated_int96_timestamps": True, "version": "1.0"},
        {"store_schema": False, "compression": "gzip", "use_dictionary": False},
        {"store_decimal_as_integer": True, "compression": "none"},
    ],
)
def test_parquet_keeps_rows_and_physical_columns(tmp_path, options):
    place, parts = folder(tmp_path), [table(seed) for seed in range(5)]
    for number, part in enumerate(parts):
        with pyarrow.parquet.ParquetWriter(place / f"{number}", part.schema, **options) as writer:
            writer.write_table(part)
            writer.add_key_value_metadata({"written": "by a test"})
    (place / "_SUCCESS").touch()
    (place / "5").touch()
    written, [file] = rewritten(tmp_path, "parquet")
    assert written == (1, file.stat().st_size, 250)
    before, after = pyarrow.parquet.ParquetFile(place / "0"), pyarrow.parquet.ParquetFile(file)
    assert after.read().equals(pyarrow.concat_tables(parts).cast(before.schema_arrow))
    assert after.schema.equals(before.schema)
    assert after.metadata.row_group(0).column(0).compression == before.metadata.row_group(0).column(0).compression
    assert after.metadata.metadata[b"written"] == b"by a test"


def test_int96_keeps_the_name_of_its_writer_and_what_pyarrow_cannot_write_is_left(tmp_path):
    from hms_gateway.pipeline.compact.parquet_files import _signed

    place = folder(tmp_path)
    for number in range(3):
        pyarrow.parquet.write_table(table(number), place / f"{number}", use_deprecated_int96_timestamps=True)
        content = (place / f"{number}").read_bytes()
        (place / f"{number}").write_bytes(_signed(content, "parquet-mr version 1.13.1 (build of a test)" * 4))
    _, [file] = rewritten(tmp_path, "parquet")
    written = pyarrow.parquet.ParquetFile(file)
    assert written.metadata.created_by == "parquet-mr version 1.13.1 (build of a test)" * 4
    assert written.read().equals(pyarrow.concat_tables(table(number) for number in range(3)).cast(written.schema_arrow))


def test_int96_beyond_nanoseconds_is_left(tmp_path):
    place = folder(tmp_path)
    for number in range(3):
        times = pyarrow.table({"at": pyarrow.array([datetime(1, 1, 1 + number)], pyarrow.timestamp("us"))})
        pyarrow.parquet.write_table(times, place / f"{number}", use_deprecated_int96_timestamps=True)
    with pytest.raises(NotPlain, match="INT96 timestamps before 1677"):
        rewritten(tmp_path, "parquet")


def test_files_of_other_columns_stay_apart(tmp_path):
    place = folder(tmp_path)
    for number in range(6):
        types = {"id": pyarrow.int32()} if number % 2 else {}
        pyarrow.parquet.write_table(table(number, **types), place / f"{number}")
    written, files = rewritten(tmp_path, "parquet")
    assert (written.files, written.rows) == (2, 300)
    assert [pyarrow.parquet.ParquetFile(file).schema_arrow.field("id").type for file in files] == ["int64", "int32"]
    for number in range(6):
        (place / f"{number}").unlink()
    pyarrow.parquet.write_table(table(1), place / "a")
    pyarrow.parquet.write_table(table(2, id=pyarrow.int32()), place / "b")
    with pytest.raises(NotPlain, match="cannot become fewer"):
        rewritten(tmp_path, "parquet")


def test_orc_keeps_rows_and_types(tmp_path):
    place, parts = folder(tmp_path), [table(seed) for seed in range(4)]
    for number, part in enumerate(parts):
        pyarrow.orc.write_table(part, place / f"{number}", compression="snappy")
    written, [file] = rewritten(tmp_path, "orc")
    assert written.rows == 200
    found, before = pyarrow.orc.ORCFile(file), pyarrow.orc.ORCFile(place / "0")
    assert found.compression == "SNAPPY"
    assert found.schema == before.schema
    assert found.read().equals(pyarrow.concat_tables([pyarrow.orc.read_table(place / f"{n}") for n in range(4)]))


def test_text_keeps_its_lines(tmp_path):
    place = folder(tmp_path)
    contents = [b"a,1\nb,2", b"\xef\xbb\xbfc,3\n", b"d,4\r", b"\n", b"e\r\nf\r\n", b"", b"x" * 3000]
    for number, content in enumerate(contents):
        (place / f"{number}").write_bytes(content)
    written, [file] = rewritten(tmp_path, "text")
    assert file.read_bytes() == b"a,1\nb,2\nc,3\nd,4\r\n\ne\r\nf\r\n" + b"x" * 3000 + b"\n"
    assert written.rows == 8


@pytest.mark.parametrize("cut", range(1, 9))
def test_lines_are_counted_in_any_pieces(cut):
    text, lines = b"a\r\nb\rc\n\r\n\nd\r\r\n", text_files.TextLines()
    for at in range(0, len(text), cut):
        lines.add(text[at : at + cut])
    assert lines.rows == 7


def test_what_is_not_to_be_joined_is_named(tmp_path):
    place = folder(tmp_path)
    for name in ("a.gz", "b.gz"):
        (place / name).write_bytes(b"\x1f\x8b..")
    with pytest.raises(NotPlain, match=r"a\.gz, which is compressed text"):
        rewritten(tmp_path, "text")
    with pytest.raises(NotPlain, match=r"cannot be read as Parquet, a\.gz"):
        rewritten(tmp_path, "parquet")
    (place / "deeper").mkdir()
    with pytest.raises(NotPlain, match="has the directory deeper in it"):
        rewritten(tmp_path, "text")


def files(*sizes):
    return [DataFile(f"{number:03}", size, 0) for number, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((), []),
        ((10,), [[10]]),
        ((0, 0), []),
        ((40, 40, 40), [[40, 40], [40]]),
        ((80, 10, 10), [[80], [10, 10]]),
        ((10, 80, 10, 10), [[10], [80], [10, 10]]),
        ((50, 50, 1), [[50, 50], [1]]),
        ((300, 1, 1), [[300], [1, 1]]),
    ],
)
def test_bins(sizes, expected):
    found = bins(files(*sizes), 100)
    assert [[file.bytes for file in one] for one in found] == expected


def test_only_fewer_files_are_worth_it():
    assert gain(files(10, 10), 100).is_worth_it
    assert gain(files(10, 0), 100).is_worth_it
    assert not gain(files(10), 100).is_worth_it
    assert not gain(files(80, 80, 10), 100).is_worth_it
    assert not gain([], 100).is_worth_it


def test_a_fingerprint_changes_with_the_files():
    one = files(1, 2)
    assert fingerprint(one) == fingerprint(one[::-1])
    others = [
        one[:1],
        [*one, DataFile("x", 0, 0)],
        [one[0], one[1]._replace(modified_ms=5)],
        [one[0]._replace(bytes=2), one[1]],
    ]
    assert len({fingerprint(each) for each in [one, *others]}) == 5
