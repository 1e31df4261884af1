"""Compacting partitions of a real gateway, without Spark: what others do meanwhile, and what a killed run leaves."""

import time
from functools import partial

import pyarrow
import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")

from hms_gateway.pipeline.compact import rewriting
from hms_gateway.pipeline.compact import step as stepping
from hms_gateway.pipeline.compact.looking import CANDIDATE, LEFT, LEFTOVERS, NAMES, Look, RemoveLeftovers
from hms_gateway.pipeline.compact.rules import left_alone
from hms_gateway.pipeline.compact.step import CleanStep, CompactStep
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.errors import LeaseLost
from hms_gateway.pipeline.jobs.batches import RowBatch
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.options import PartitionNames
from hms_gateway.pipeline.storage import Storage
from hms_gateway.rpc.structs import (
    DataOperationType,
    LeaseObject,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    MetaException,
    Partition,
    UnlockRequest,
)
from tests.pipeline.compact.warehouse import (
    FILES,
    ROWS,
    add_partitions,
    data_files,
    fill,
    leftovers,
    make_table,
    partitions,
    path,
    rows,
)

DISKS = Storage(roots=("file:/",))

pytestmark = pytest.mark.slow

TARGET = 1 << 20


@pytest.fixture
def connection(gateway):
    return Connection.of(gateway.options)


@pytest.fixture
def client(connection):
    with PatientClient(connection, 5) as client:
        yield client


@pytest.fixture
def table(client, request):
    """Two partitions with small files."""
    name = f"t_{abs(hash(request.node.name))}"
    found = make_table(client, name)
    add_partitions(client, found, "1", "2")
    for number, one in enumerate(partitions(client, found).values()):
        fill(one.sd.location, seed=number)
    yield found
    client.call("drop_table", "lake", name, True)


def found(connection, table, run="compact-1"):
    """What a look finds, by kind."""
    given = pyarrow.table({"database": ["lake"], "table": [table.tableName]})
    by_kind = {}
    for names in PartitionNames(partial(PatientClient, connection, 5), NAMES, "", left_alone)(given):
        for piece in Look(partial(PatientClient, connection, 5), run, TARGET, DISKS)(
            pyarrow.Table.from_batches([names])
        ):
            for row in piece.to_pylist():
                by_kind.setdefault(row["what"], []).append(row)
    return by_kind


def compact(client, connection, table, run="compact-1", *, locks=False, client_of_run=None):
    candidates = pyarrow.Table.from_pylist(found(connection, table, run).get(CANDIDATE, []))
    step = CompactStep(run, TARGET, locks, DISKS)
    return step((client_of_run or client).begin(run), RowBatch("compact", "0", candidates))


def clean(client, connection, table, *, grace=0.0, shared=False):
    left = [{**row, "shared": shared} for row in found(connection, table).get(LEFT, [])]
    return CleanStep(grace, DISKS)(
        client.begin(f"clean {time.time()}"), RowBatch("clean", "0", pyarrow.Table.from_pylist(left))
    )


def content(client, table):
    return {value: rows(one.sd.location) for value, one in partitions(client, table).items()}


def test_rows_stay_and_files_become_fewer(client, connection, table):
    before, content_before = partitions(client, table), content(client, table)
    done = compact(client, connection, table)
    assert (done.refused, done.counts["compacted"], done.counts["rows"]) == ([], 2, 2 * FILES * ROWS)
    assert (done.counts["files_before"], done.counts["files_after"]) == (2 * FILES, 2)
    after = partitions(client, table)
    assert content(client, table) == content_before
    for value, one in after.items():
        [file] = data_files(one.sd.location)
        assert one.sd.location == f"{table.sd.location}/.hms-compact/compact-1/ds={value}"
        parameters = one.parameters
        assert (parameters["numFiles"], parameters["totalSize"]) == ("1", str(file.stat().st_size))
        assert (parameters["numRows"], parameters["n"]) == (str(FILES * ROWS), "1")
        assert parameters["hms.compact.replaces"] == before[value].sd.location
        assert len(data_files(before[value].sd.location)) == FILES
    assert found(connection, table).keys() == {LEFT}
    assert compact(client, connection, table, "compact-2").counts == {}


def test_old_files_go_after_the_grace_and_only_they(client, connection, table):
    before, content_before = partitions(client, table), content(client, table)
    compact(client, connection, table)
    assert clean(client, connection, table, grace=3600).counts["waiting"] == 2
    late = path(before["2"].sd.location) / "late"
    late.write_bytes(b"x")
    done = clean(client, connection, table)
    assert (done.counts["cleaned"], done.counts["files"]) == (1, FILES)
    [refused] = done.refused
    assert refused.item == f"lake.{table.tableName}/ds=2"
    assert "other files are than were compacted" in refused.reason
    assert not path(before["1"].sd.location).exists()
    assert len(data_files(before["2"].sd.location)) == FILES + 1
    late.unlink()
    assert clean(client, connection, table).counts["cleaned"] == 1
    assert not path(before["2"].sd.location).exists()
    assert content(client, table) == content_before
    assert not any("compact" in key for one in partitions(client, table).values() for key in one.parameters)
    assert found(connection, table).keys() == {"enough"}


def test_nothing_is_removed_where_something_else_lies(client, connection, table):
    before = partitions(client, table)
    compact(client, connection, table)
    done = clean(client, connection, table, shared=True)
    assert [refused.reason for refused in done.refused] == [
        f"was in {before[value].sd.location}, where something else lies now; nothing there is removed"
        for value in ("1", "2")
    ]
    assert len(data_files(before["1"].sd.location)) == FILES


def test_a_killed_cleaning_goes_on(client, connection, table, monkeypatch):
    from hms_gateway.pipeline.storage import LocalFiles

    before = partitions(client, table)
    compact(client, connection, table)
    remove, calls = LocalFiles.remove_file, []

    def killed(self, name):
        calls.append(name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        remove(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(LocalFiles, "remove_file", killed)
        with pytest.raises(KeyboardInterrupt):
            clean(client, connection, table)
    assert len(data_files(before["1"].sd.location)) == FILES - 2
    done = clean(client, connection, table)
    assert (done.refused, done.counts["cleaned"], done.counts["files"]) == ([], 2, 2 * FILES - 2)


def meanwhile(monkeypatch, what):
    """Do something when the files of a partition have been written, before they are compared and swapped."""
    write = rewriting.Rewriting.write

    def written(self, files):
        found = write(self, files)
        what(self)
        return found

    monkeypatch.setattr(stepping.Rewriting, "write", written)


def test_a_partition_that_others_change_is_left_out(client, connection, table, monkeypatch):
    before, content_before = partitions(client, table), content(client, table)

    def changes(rewriting):
        if rewriting.source.endswith("ds=1"):
            changed = before["1"]
            changed.parameters = {**changed.parameters, "by": "others"}
            client.call("alter_partition", "lake", table.tableName, changed)

    meanwhile(monkeypatch, changes)
    done = compact(client, connection, table)
    [refused] = done.refused
    assert refused.item == f"lake.{table.tableName}/ds=1"
    assert refused.reason == "was changed by others while it was read; try again"
    assert done.counts["compacted"] == 1
    after = partitions(client, table)
    assert (after["1"].sd.location, after["1"].parameters["by"]) == (before["1"].sd.location, "others")
    assert content(client, table) == content_before
    assert all("ds=2" in name for name in leftovers(table))


def test_changes_of_other_partitions_do_not_matter(client, connection, table, monkeypatch):
    def changes(rewriting):
        add_partitions(client, table, f"9{rewriting.source[-1]}")

    meanwhile(monkeypatch, changes)
    assert compact(client, connection, table).counts["compacted"] == 2


def test_files_that_come_without_the_metastore_are_noticed(client, connection, table, monkeypatch):
    before = partitions(client, table)
    meanwhile(monkeypatch, lambda rewriting: fill(f"file:{rewriting.source}", seed=7, files=1))
    done = compact(client, connection, table)
    assert [refused.reason.partition(";")[0] for refused in done.refused] == [
        "has other files than when it was read"
    ] * 2
    assert partitions(client, table)["1"].sd.location == before["1"].sd.location
    assert leftovers(table) == []


def test_files_that_come_with_the_swap_bring_the_old_directory_back(client, connection, table, monkeypatch):
    before = partitions(client, table)
    alter, swaps = stepping.alter, []

    def late(client, row, after, event):
        alter(client, row, after, event)
        if not swaps:
            fill(before["1"].sd.location, seed=7, files=1)
        swaps.append(row["name"])

    monkeypatch.setattr(stepping, "alter", late)
    done = compact(client, connection, table)
    assert [refused.item.rpartition("/")[2] for refused in done.refused] == ["ds=1"]
    assert swaps == ["ds=1", "ds=1", "ds=2"]
    after = partitions(client, table)["1"]
    assert after.sd.location == before["1"].sd.location
    assert len(rows(after.sd.location)) == (FILES + 1) * ROWS
    assert not any("compact" in key for key in after.parameters)


@pytest.mark.parametrize("at", ["note", "files", "swap"])
def test_what_a_killed_run_leaves_is_removed_by_the_next(client, connection, table, monkeypatch, at):
    content_before = content(client, table)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        # A process that is killed does not tidy up.
        tidy = stepping.Note.remove_all
        patch.setattr(stepping.Note, "remove_all", lambda self: None if path(self.file).exists() else tidy(self))
        if at == "note":
            patch.setattr(stepping.Rewriting, "write", killed)
        elif at == "files":
            meanwhile(patch, killed)
        else:
            remove = stepping.Note.remove
            patch.setattr(stepping.Note, "remove", lambda self: killed() if path(self.path).exists() else remove(self))
        with pytest.raises(KeyboardInterrupt):
            compact(client, connection, table)
    assert content(client, table) == content_before
    rest = found(connection, table, "compact-2")
    assert LEFTOVERS in rest
    removed = RemoveLeftovers(DISKS)(client, RowBatch("leftovers", "0", pyarrow.Table.from_pylist(rest[LEFTOVERS])))
    assert removed.counts == {"leftovers": 0 if at == "swap" else 1}
    done = compact(client, connection, table, "compact-2")
    assert done.counts["compacted"] == (1 if at == "swap" else 2)
    assert content(client, table) == content_before
    assert not [name for name in leftovers(table) if name.endswith(".json")]
    assert LEFTOVERS not in found(connection, table, "compact-3")


def test_a_directory_that_a_partition_has_is_never_written_over(client, connection, table):
    compact(client, connection, table)
    for one in partitions(client, table).values():
        one.parameters = {}
        client.call("alter_partition", "lake", table.tableName, one)
        fill(one.sd.location, seed=8)
    before, content_before = partitions(client, table), content(client, table)
    done = compact(client, connection, table)
    assert [refused.reason.partition(" ")[0] for refused in done.refused] == ["would", "would"]
    assert (partitions(client, table), content(client, table)) == (before, content_before)
    assert compact(client, connection, table, "compact-2").counts["compacted"] == 2
    assert content(client, table) == content_before


def test_what_a_note_names_stays_where_a_partition_of_another_name_has_it(client, connection, table, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    remove = stepping.Note.remove
    with monkeypatch.context() as patch:
        patch.setattr(stepping.Note, "remove", lambda self: killed() if path(self.path).exists() else remove(self))
        with pytest.raises(KeyboardInterrupt):
            compact(client, connection, table)
    swapped = partitions(client, table)["1"]
    other = Partition(values=["9"], dbName="lake", tableName=table.tableName, sd=swapped.sd, parameters={})
    client.call("add_partitions", [other])
    client.call("drop_partition", "lake", table.tableName, ["1"], False)
    content_before = content(client, table)
    rest = found(connection, table, "compact-2")[LEFTOVERS]
    removed = RemoveLeftovers(DISKS)(client, RowBatch("leftovers", "0", pyarrow.Table.from_pylist(rest)))
    assert (removed.counts, content(client, table)) == ({"leftovers": 0}, content_before)


def test_a_swap_whose_answer_was_lost_counts(client, connection, table, monkeypatch):
    content_before, alter = content(client, table), stepping.alter

    def lost(*given):
        alter(*given)
        raise MetaException("the outcome is not known")

    monkeypatch.setattr(stepping, "alter", lost)
    done = compact(client, connection, table)
    assert (done.counts["compacted"], done.refused, content(client, table)) == (2, [], content_before)


def test_a_run_that_was_killed_after_a_swap_counts_it(client, connection, table, monkeypatch):
    planned = pyarrow.Table.from_pylist(found(connection, table)[CANDIDATE])
    step = CompactStep("compact-1", TARGET, False, DISKS)
    with monkeypatch.context() as patch:
        patch.setattr(stepping.Note, "remove", lambda self: None)
        first = step(client.begin("1"), RowBatch("compact", "0", planned))
    assert step(client.begin("1 again"), RowBatch("compact", "0", planned)).counts == first.counts
    assert not [name for name in leftovers(table) if name.endswith(".json")]


def test_a_lost_lease_ends_the_run_and_changes_nothing(client, connection, table, monkeypatch):
    before = partitions(client, table)
    lease = client.call("grab_lease", [LeaseObject("lake", table.tableName, None, "x")], 60, 0)
    meanwhile(monkeypatch, lambda _: client.call("drop_lease", lease, []))
    with PatientClient(connection, 5, lease_id=lease) as holder, pytest.raises(LeaseLost):
        compact(client, connection, table, client_of_run=holder)
    assert partitions(client, table) == before
    assert leftovers(table) == []


def test_a_locked_partition_is_left_out_where_locks_are_asked_for(client, connection, table):
    component = LockComponent(
        type=LockType.EXCL_WRITE,
        level=LockLevel.PARTITION,
        dbname="lake",
        tablename=table.tableName,
        partitionname="ds=1",
        operationType=DataOperationType.NO_TXN,
    )
    held = client.call("lock", LockRequest([component], user="bob", hostname="here")).lockid
    done = compact(client, connection, table, locks=True)
    assert [(refused.item[-4:], refused.reason[:19]) for refused in done.refused] == [("ds=1", "is locked by others")]
    assert done.counts["compacted"] == 1
    client.call("unlock", UnlockRequest(held))
    assert compact(client, connection, table, locks=True).counts["compacted"] == 1


@pytest.mark.parametrize("format", ["parquet", "orc", "text"])
def test_a_table_without_keys_moves_beside_itself(client, connection, format):
    table = make_table(client, f"whole_{format}", format, keys=())
    try:
        fill(table.sd.location, format)
        before = rows(table.sd.location, format)
        assert compact(client, connection, table).counts["compacted"] == 1
        after = client.call("get_table", "lake", table.tableName)
        base = table.sd.location.rpartition("/")[0]
        assert after.sd.location == f"{base}/.hms-compact/compact-1/whole_{format}"
        assert rows(after.sd.location, format) == before
        assert (after.parameters["numFiles"], after.parameters["numRows"]) == ("1", str(FILES * ROWS))
        assert clean(client, connection, table).counts["cleaned"] == 1
        assert not path(table.sd.location).exists()
        fill(after.sd.location, format, seed=2)
        more = rows(after.sd.location, format)
        assert compact(client, connection, table, "compact-2").counts["compacted"] == 1
        last = client.call("get_table", "lake", table.tableName)
        assert last.sd.location == f"{base}/.hms-compact/compact-2/whole_{format}"
        assert rows(last.sd.location, format) == more
        assert clean(client, connection, table).counts["cleaned"] == 1
        assert not path(after.sd.location).parent.exists()
    finally:
        client.call("drop_table", "lake", table.tableName, True)


LEFT_ALONE = [
    (
        {
            "parameters": {"transactional": "true", "bucketing_version": "2"},
            "format": "orc",
            "numBuckets": 2,
            "bucketCols": ["id"],
        },
        "is transactional",
    ),
    ({"parameters": {"table_type": "ICEBERG", "EXTERNAL": "TRUE"}}, "is kept by iceberg"),
    ({"parameters": {"storage_handler": "x.Y"}}, "is kept by x.Y"),
    ({"parameters": {"spark.sql.sources.provider": "delta"}}, "is kept by delta"),
    ({"parameters": {"table_type": "lance"}}, "is kept by lance"),
    ({"numBuckets": 4, "bucketCols": ["id"]}, "is bucketed: its files are its buckets"),
    ({"parameters": {"spark.sql.sources.provider": "parquet"}}, "is read by Spark without asking for its partitions"),
]


@pytest.mark.parametrize(("changed", "reason"), LEFT_ALONE, ids=[reason for _, reason in LEFT_ALONE])
def test_what_is_not_plain_is_never_touched(client, connection, changed, reason):
    table = make_table(client, "special", **changed)
    try:
        names = PartitionNames(partial(PatientClient, connection, 5), NAMES, "", left_alone)(
            pyarrow.table({"database": ["lake"], "table": ["special"]})
        )
        assert [row["reason"] for piece in names for row in piece.to_pylist()] == [reason]
        assert found(connection, table) == {}
        row = {"database": "lake", "table": "special", "name": "", "files": 2, "bytes": 2}
        done = CompactStep("compact-1", TARGET, False, DISKS)(
            client, RowBatch("compact", "0", pyarrow.Table.from_pylist([row]))
        )
        assert len(done.refused) == 1
        assert not done.counts
    finally:
        client.call("drop_table", "lake", "special", True)
