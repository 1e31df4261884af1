"""Files that cannot be read are named, whatever is wrong with them."""

import os
import pickle
import random

import fsspec
import pyarrow
import pytest
from pyarrow import orc, parquet

from hms_gateway.pipeline.footers.footer import FooterProblem
from hms_gateway.pipeline.footers.reading import read_footer
from hms_gateway.pipeline.storage import RemoteFiles
from tests.pipeline.footers.content import random_table, reading


def footer_of(data, path="/data/file"):
    return read_footer(path, len(data), lambda offset, length: data[offset : offset + length])


@pytest.fixture(params=["parquet", "orc"])
def written(request, tmp_path):
    path = tmp_path / "file"
    write = parquet.write_table if request.param == "parquet" else orc.write_table
    write(random_table(random.Random(3), 20), path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b"PAR1", "is neither a Parquet nor an ORC file"),
        (b"id,note\n1,one\n", "is neither a Parquet nor an ORC file"),
        (b"PAR1" + b"\xff\xff\xff\x7fPAR1", "it is to have 2147483647 bytes of a file of 12"),
        (b"PAR1" + b"\0\0\0\0PAR1", "it is to have 0 bytes"),
        (b"PAR1\x15\x02\x02\0\0\0PARE", "has an encrypted footer"),
        (b"\x08\xff\x01ORC\x06", "has a footer that cannot be read"),
    ],
)
def test_what_is_wrong_is_named_with_the_path(data, reason):
    with pytest.raises(FooterProblem) as caught:
        footer_of(data)
    assert caught.value.path == "/data/file"
    assert caught.value.reason.startswith(reason) or reason in caught.value.reason
    assert str(caught.value).startswith("/data/file ")


@pytest.mark.slow
def test_any_damage_is_a_footer_problem_or_a_footer(written):
    """Bytes changed, cut off and put in: nothing else is raised, and nothing takes long."""
    source = random.Random(11)
    problems = 0
    for _ in range(3_000):
        damaged = bytearray(written)
        for _ in range(source.choice((1, 1, 2, 8))):
            place = len(damaged) - 1 - min(len(damaged) - 1, int(source.expovariate(1 / 400)))
            damaged[place] = source.randrange(256)
        if source.random() < 0.2:
            del damaged[source.randrange(len(damaged)) :]
        try:
            footer_of(bytes(damaged))
        except FooterProblem:
            problems += 1
    assert problems > 300


@pytest.mark.slow
def test_a_long_footer_is_read_in_two_parts(tmp_path):
    table = pyarrow.table({f"column_{number:04}": [number] for number in range(2_000)})
    path = tmp_path / "wide.parquet"
    parquet.write_table(table, path)
    found = read_footer(str(path), path.stat().st_size, reading(str(path)))
    assert len(found.columns) == 2_000
    assert found.figures["column_1999"].high == 1999


def test_a_file_that_became_shorter_or_is_gone_is_named(tmp_path, written):
    path = tmp_path / "file2"
    path.write_bytes(written)
    with pytest.raises(FooterProblem, match="is shorter than its"):
        read_footer(str(path), len(written) + 50, reading(str(path)))
    path.unlink()
    with pytest.raises(FooterProblem, match="cannot be read: No such file or directory"):
        read_footer(str(path), len(written), reading(str(path)))


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(tmp_path, written):
    path = tmp_path / "file2"
    path.write_bytes(written)
    path.chmod(0)
    with pytest.raises(FooterProblem, match="cannot be read: Permission denied"):
        read_footer(str(path), len(written), reading(str(path)))


def test_any_file_system_of_fsspec_is_read(written):
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/stats/file", written)
    assert read_footer("memory:///stats/file", len(written), reading("memory:///stats/file")).rows == 20
    with pytest.raises(FooterProblem, match="cannot be read"):
        read_footer("memory:///stats/none", 100, reading("memory:///stats/none"))


def test_what_a_library_raises_is_a_problem_of_the_file():
    class Broken:
        def cat_file(self, path, start, end):
            raise RuntimeError("no credentials")

        def _strip_protocol(self, location):
            return location.removeprefix("s3://")

    files = RemoteFiles("s3", Broken(), ["s3://bucket"])
    with pytest.raises(FooterProblem, match="cannot be read: RuntimeError: no credentials"):
        read_footer("s3://bucket/file", 100, lambda *at: files.read("bucket/file", *at))


def test_a_problem_is_the_same_on_the_other_side_of_a_process():
    again = pickle.loads(pickle.dumps(FooterProblem("/a", "is empty")))
    assert (again.path, again.reason, str(again)) == ("/a", "is empty", "/a is empty")
