"""The state folder: files that appear whole, tables in batches, and what is said when there is no room."""

import os
import subprocess
import time

import fsspec
import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

import pyarrow

from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.errors import StateFailed, UsageRefused
from hms_gateway.pipeline.jobs import records
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.jobs.state import State
from hms_gateway.pipeline.jobs.stored import Cut, Stored, store

SCHEMA = pyarrow.schema([("table", pyarrow.string()), ("number", pyarrow.int64())])


@pytest.fixture(params=["local", "memory"])
def state(request, tmp_path):
    if request.param == "local":
        yield State.of(str(tmp_path / "state"), {})
        return
    yield State.of("memory://state", {})
    memory = fsspec.filesystem("memory")
    if memory.exists("/state"):
        memory.rm("/state", recursive=True)


def test_files_are_written_read_listed_and_removed(state):
    assert state.read_json("run/a.json") is None
    assert state.names("run") == []
    state.write_json("run/b.json", {"n": 1})
    state.write_json("run/a.json", [1])
    state.write_json("run/a.json", [2])
    assert (state.names("run"), state.read_json("run/a.json")) == (["a.json", "b.json"], [2])
    state.write("run/a.json", b'{"cut o')
    assert state.read_json("run/a.json") is None
    state.remove("run")
    state.remove("run")
    assert state.names("run") == []


def test_a_table_is_cut_into_batches_of_one_value(state):
    rows = [{"table": table, "number": number} for table in ("a", "b") for number in range(25)]
    stored = store(state, "plan", iter(rows), Cut(10, ("table",)), SCHEMA)
    assert [(batch.rows, batch.of) for batch in stored.batches] == [
        (10, ("a",)), (10, ("a",)), (5, ("a",)), (10, ("b",)), (10, ("b",)), (5, ("b",)),
    ]  # fmt: skip
    found = Stored.find(state, "plan")
    assert found == stored
    assert list(found) == rows
    only = found.where(lambda of: of == ("b",))
    assert (only.rows, next(iter(only))) == (25, {"table": "b", "number": 0})
    together = Stored.joined([only, stored])
    assert [row["table"] for row in together] == ["b"] * 25 + ["a"] * 25 + ["b"] * 25
    assert len({batch.id for batch in together.batches}) == 9


def test_a_table_without_rows_is_complete(state):
    stored = store(state, "plan", [], Cut(), SCHEMA)
    assert (stored.rows, list(stored), stored.schema) == (0, [], SCHEMA)
    assert Stored.find(state, "plan") == stored


def test_a_table_without_index_is_not_there(state):
    store(state, "plan", [{"table": "a", "number": 1}], Cut(), SCHEMA)
    state.remove("plan/index.json")
    assert Stored.find(state, "plan") is None


def test_pieces_of_any_size_become_batches_of_the_same_sizes():
    rows = [{"table": "a", "number": number} for number in range(1_000)]
    for size in (1, 7, 300, 1_000):
        pieces = [pyarrow.RecordBatch.from_pylist(rows[at : at + size], SCHEMA) for at in range(0, 1_000, size)]
        assert [len(batch) for batch in Cut(300).of(pieces)] == [300, 300, 300, 100]


def test_a_full_disk_is_named_and_nothing_half_written_counts(tmp_path):
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", tmp_path], capture_output=True)
    if mounted.returncode:
        pytest.skip("no right to mount a small file system")
    try:
        state = State.of(str(tmp_path), {})
        state.write_json("run/a.json", [1])
        with pytest.raises(StateFailed, match=r"run/a\.json cannot be written: No space left on device") as caught:
            state.write("run/a.json", bytes(100_000))
        assert "the run can be resumed" in caught.value.hint
        assert (state.read_json("run/a.json"), state.names("run")) == ([1], ["a.json"])
        rows = pyarrow.Table.from_pylist([{"table": os.urandom(9).hex(), "number": at} for at in range(20_000)], SCHEMA)
        with pytest.raises(StateFailed, match="No space left on device"):
            store(state, "run/plan", rows, Cut(), None)
        assert Stored.find(state, "run/plan") is None
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_scheme_without_its_library_is_named():
    with pytest.raises(StateFailed, match="nowhere: cannot be read here: Protocol not known"):
        State.of("nowhere://a", {}).read("x")


def begun(tmp_path, **beat):
    options = JobOptions(connection=Connection.of({"url": "https://gateway"}), state=str(tmp_path), resume="toy-1")
    state = State.of(options.state, {})
    state.write_json("toy-1/run.json", {**records.new("toy", options, {}), "run": "toy-1"})
    with records.beating(state, "toy-1"):
        sign = state.read_json("toy-1/driver.json")
    state.write_json("toy-1/driver.json", {**sign, **beat})
    return state, options


def test_runs_of_one_second_are_listed_in_their_order(tmp_path):
    options = JobOptions(connection=Connection.of({"url": "https://gateway"}), state=str(tmp_path))
    state, begun_in_order = State.of(options.state, {}), []
    for _ in range(20):
        record = records.new("toy", options, {})
        records.note(state, record)
        begun_in_order.append(record["run"])
    assert [record["run"] for record in records.records(state)] == begun_in_order


def test_a_run_that_runs_is_not_resumed(tmp_path):
    state, options = begun(tmp_path)
    with pytest.raises(UsageRefused, match=f"run toy-1 is running on .*, process {os.getpid()}"):
        records.found(state, "toy", options, {})


@pytest.mark.parametrize("beat", [{"started": "1"}, {"pid": 2**22 + 1}, {"at": time.time() - 60, "host": "far"}])
def test_a_run_whose_driver_is_gone_is_resumed(tmp_path, beat):
    state, options = begun(tmp_path, **beat)
    assert records.found(state, "toy", options, {})["run"] == "toy-1"


def test_a_run_on_another_machine_that_gave_a_sign_of_life_is_not_resumed(tmp_path):
    state, options = begun(tmp_path, host="far", pid=1)
    with pytest.raises(UsageRefused, match="run toy-1 is running on far, process 1"):
        records.found(state, "toy", options, {})
