"""The levels of a tree, without Spark."""

import contextlib
import os
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

import pyarrow

from hms_gateway.pipeline.crawl import steps as walking
from hms_gateway.pipeline.crawl.steps import DATA, TO_LIST, Walk, to_list
from hms_gateway.pipeline.crawl.tables import (
    CANONICAL,
    NO_PARTITION,
    OTHER,
    SHAPES,
    CrawledTable,
    Names,
    PartitionsOf,
    ShapesOf,
    merged,
)
from hms_gateway.pipeline.jobs.stored import ROWS_OF_A_KIND, pieces
from hms_gateway.pipeline.storage import Storage

DISKS = Storage(roots=("file:/",))

TARGET = CrawledTable("sales", "orders", "file:/lake/orders", (("ds", "string"), ("hr", "int")))


def make(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.write_bytes(b"PAR1")


def walk(folder, tables=None):
    """Rows with data, and what is refused, by paths below the folder."""
    known = {f"{folder}/{path}": keys for path, keys in (tables or {}).items()}
    step = Walk(str(folder), DISKS, known)
    rows, found, refused = [to_list("", str(folder))], {}, {}
    while rows:
        batch = pyarrow.Table.from_batches(pieces(rows, walking.LEVEL))
        listed = [row for piece in step(batch) for row in piece.to_pylist()]
        rows = [to_list(row["root"], row["relative"]) for row in listed if row["kind"] == TO_LIST]
        for row in listed:
            path = os.path.relpath(walking.joined(row["root"], row["relative"]), folder)
            if row["kind"] == DATA:
                found[path] = (os.path.relpath(row["root"], folder), row["relative"], row["files"])
            elif row["kind"] != TO_LIST:
                refused[path] = row["reason"]
    return found, refused


def test_tables_are_found_where_their_partitions_or_files_begin(tmp_path):
    make(
        tmp_path,
        "sales.db/orders/ds=1/hr=1/a",
        "sales.db/orders/ds=1/hr=2/a",
        "sales.db/orders/ds=1/hr=2/b",
        "sales.db/customers/a",
        "plain/a",
        "empty/",
    )
    found, refused = walk(tmp_path)
    assert found == {
        "sales.db/orders/ds=1/hr=1": ("sales.db/orders", "ds=1/hr=1", 1),
        "sales.db/orders/ds=1/hr=2": ("sales.db/orders", "ds=1/hr=2", 2),
        "sales.db/customers": ("sales.db/customers", "", 1),
        "plain": ("plain", "", 1),
    }
    assert refused == {}


def test_the_keys_of_a_known_table_say_how_deep_its_partitions_lie(tmp_path):
    make(tmp_path, "t/ds=1/part=2/a", "u/ds=1/a", "v/a", "w/ds=1/a")
    found, refused = walk(tmp_path, {"t": 1, "u": 1, "v": 0, "w": None})
    assert found == {"t/ds=1": ("t", "ds=1", 1), "u/ds=1": ("u", "ds=1", 1), "v": ("v", "", 1)}
    assert refused == {}


def test_a_table_inside_of_another_is_one_of_its_own(tmp_path):
    make(tmp_path, "t/ds=1/a", "t/ds=2/h=1/a")
    found, _ = walk(tmp_path, {"t": 1, "t/ds=2": 1})
    assert found == {"t/ds=1": ("t", "ds=1", 1), "t/ds=2/h=1": ("t/ds=2", "h=1", 1)}


def test_what_is_in_the_way_is_named_and_the_rest_done(tmp_path):
    make(tmp_path, "t/ds=1/a", "t/other/a", "t/loose", "t/_temporary/ds=9/a", "README", "t/.hidden/a")
    (tmp_path / "t" / "ds=3").write_bytes(b"")
    os.mkdir(os.fsencode(tmp_path / "t") + b"/ds=\xff")
    os.symlink(tmp_path / "absent", tmp_path / "t" / "ds=4")
    found, refused = walk(tmp_path)
    assert list(found) == ["t/ds=1"]
    assert refused == {
        "README": "is a file beside directories; it belongs to no table",
        "t": "has 2 files beside partitions; no reader of the table sees them",
        "t/other": "is not key=value, between the partitions of a table",
        "t/ds=\\udcff": "has a name that is not UTF-8",
    }


@pytest.mark.parametrize(
    ("mark", "owner"),
    [
        ("_delta_log/0.json", "Delta Lake"),
        (".hoodie/x", "Hudi"),
        ("metadata/v1.metadata.json", "Iceberg"),
        ("_versions/1.manifest", "Lance"),
    ],
)
def test_tables_of_other_formats_are_left_alone(tmp_path, mark, owner):
    make(tmp_path, f"t/{mark}", "t/data/ds=1/a", "t/ds=1/a", "u/ds=1/a")
    found, refused = walk(tmp_path)
    assert list(found) == ["u/ds=1"]
    assert refused["t"].startswith(f"is a table of {owner}, which alone knows its files")


def test_a_directory_with_files_of_several_formats_is_named(tmp_path):
    make(tmp_path, "t/ds=1/a", "t/ds=1/b", "t/ds=2/a", "t/ds=2/sub/b", "u/a", "u/b", "v/a", "v/_b")
    for name in ("t/ds=2/sub/b", "u/b", "v/_b"):
        (tmp_path / name).write_bytes(b"id,note\n")
    for known in ({}, {"t": 1, "u": 0}):
        found, refused = walk(tmp_path, known)
        assert sorted(found) == ["t/ds=1", "v"]
        assert set(refused) == {"t/ds=2", "u"}
        assert "a is parquet" in refused["t/ds=2"]
        assert "sub/b is text" in refused["t/ds=2"]


def test_a_directory_that_vanishes_between_two_levels_is_named(tmp_path):
    make(tmp_path, "t/ds=1/a")
    step = Walk(str(tmp_path), DISKS, {f"{tmp_path}/t": 1})
    batch = pyarrow.Table.from_batches(
        pieces([to_list(f"{tmp_path}/t", "ds=1"), to_list(f"{tmp_path}/t", "ds=2")], walking.LEVEL)
    )
    rows = [row for piece in step(batch) for row in piece.to_pylist()]
    assert [(row["kind"], row["relative"], row["reason"]) for row in rows] == [
        (DATA, "ds=1", ""),
        (walking.REFUSED, "ds=2", "is not there (any more)"),
    ]


def test_a_subtree_without_permission_is_named():
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        make(folder, "t/ds=1/a", "t/ds=2/a")
        folder.chmod(0o755)
        (folder / "t" / "ds=2").chmod(0)
        with unprivileged():
            found, refused = walk(folder)
        (folder / "t" / "ds=2").chmod(0o700)
    assert (list(found), refused) == (["t/ds=1"], {"t/ds=2": "may not be listed: permission denied"})


@contextlib.contextmanager
def unprivileged():
    """As an account that may not list everything, where the tests run as root."""
    own = os.geteuid()
    if own == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(own)


def test_pieces_have_one_kind_and_a_bounded_size():
    rows = [to_list("", str(at)) if at % 2 else walking.refused("", str(at), "x") for at in range(20_001)]
    made = list(pieces(rows, walking.LEVEL))
    assert sum(map(len, made)) == len(rows)
    assert all(len(piece) <= ROWS_OF_A_KIND for piece in made)
    assert all(len(set(piece.column("kind").to_pylist())) == 1 for piece in made)


def directories(*rows):
    listed = [walking.data(root, relative, walking.Folded(2, 7, "f", 4)) for root, relative in rows]
    return pyarrow.Table.from_batches(pieces(listed, walking.LEVEL))


def test_directories_become_partitions_of_their_tables():
    batch = directories(
        ("/lake/orders", "ds=a:b/hr=1"),
        ("/lake/orders", "ds=x/hr=01"),
        ("/lake/orders", "ds=x/hr=y"),
        ("/lake/orders", "ds=x"),
        ("/lake/unknown", "ds=x"),
    )
    rows = [row for piece in PartitionsOf({"/lake/orders": TARGET})(batch) for row in piece.to_pylist()]
    assert [(row["state"], row["name"], row["location"]) for row in rows] == [
        (CANONICAL, "ds=a%3Ab/hr=1", "file:/lake/orders/ds=a:b/hr=1"),
        (OTHER, "ds=x/hr=01", "file:/lake/orders/ds=x/hr=01"),
        (NO_PARTITION, "ds=x/hr=y", "file:/lake/orders/ds=x/hr=y"),
        (NO_PARTITION, "ds=x", "file:/lake/orders/ds=x"),
    ]
    assert [row["reason"] for row in rows[2:]] == [
        "has the value 'y' for the key hr, which is not a int",
        "has 1 of the 2 keys ds, hr",
    ]
    assert (rows[1]["same"], rows[0]["values"], rows[0]["bytes"]) == ("ds=x/hr=1", ["a:b", "1"], 7)


def test_the_shape_of_a_new_table_is_that_of_most_directories():
    relatives = [f"ds=2026-01-{day:02}/hr={day}" for day in range(1, 29)]
    batch = directories(
        *(("/lake/t", relative) for relative in [*relatives, "dt=1"]), ("/lake/u", ""), ("/lake/k", "a=1")
    )
    rows = [
        row
        for part in (batch.slice(0, 9), batch.slice(9))
        for piece in ShapesOf(frozenset({"/lake/k"}))(part)
        for row in piece.to_pylist()
    ]
    found = merged(rows)
    usual = found["/lake/t"].usual()
    assert (usual.keys, usual.types(), usual.directories) == (("ds", "hr"), ["date", "int"], 28)
    samples = found["/lake/t"].samples[usual.keys]
    assert sorted(samples) == [f"{relative}/f" for relative in relatives]
    assert found["/lake/u"].usual().keys == ()
    assert set(found) == {"/lake/t", "/lake/u"}
    assert pyarrow.RecordBatch.from_pylist(rows, SHAPES).num_rows == 4


def test_of_many_files_some_tell_the_columns():
    listed = [walking.data("/lake/t", f"d={day}", walking.Folded(2, 7, "f", 4)) for day in range(200)]
    listed.append(walking.data("/lake/u", "", walking.Folded(200, 700, "7", 4, tuple(map(str, range(200))))))
    batch = pyarrow.Table.from_batches(pieces(listed, walking.LEVEL))
    found = merged(row for piece in ShapesOf(frozenset())(batch) for row in piece.to_pylist())
    of_days, of_files = found["/lake/t"].samples[("d",)], found["/lake/u"].samples[()]
    assert len(of_days) == walking.SAMPLES_MAX
    assert walking.SAMPLES_MAX // 2 < len(of_files) <= walking.SAMPLES_MAX


@pytest.mark.parametrize(
    ("root", "name"),
    [
        ("/lake/sales.db/orders", ("sales", "orders")),
        ("/lake/Web Logs", ("default", "web_logs")),
        ("/lake/Café.db/Ünïcode 日", ("cafe", "unicode__")),
        ("/lake/a.db/b.db/t-1", ("b", "t_1")),
        ("/lake", ("default", "given")),
    ],
)
def test_a_new_table_has_the_name_of_its_directory(root, name):
    assert Names("/lake", "default", "given", False).of(root) == name


@pytest.mark.parametrize(
    ("root", "name", "is_changed"),
    [
        ("/lake/sales/visits", ("sales", "visits"), False),
        ("/lake/eu/Web Shop/visits", ("web_shop", "visits"), True),
        ("/lake/a.db/b/t", ("a", "t"), False),
        ("/lake/visits", ("default", "visits"), False),
        ("/lake", ("default", "given"), False),
    ],
)
def test_the_folder_around_a_table_names_its_database_on_request(root, name, is_changed):
    names = Names("/lake", "default", "given", True)
    assert (names.of(root), names.is_changed(root)) == (name, is_changed)
