"""Actions on a real gateway and a real tree: done once, and only while catalog and directory are as the plan says."""

import os
import time
from pathlib import Path

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

import pyarrow

from hms_gateway.pipeline.audit.applying import Applier, PlanHead, PlannedFix
from hms_gateway.pipeline.audit.places import Fix
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.jobs.batches import RowBatch
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.storage import Storage
from hms_gateway.rpc.structs import NoSuchObjectException
from tests.pipeline.content import add_partitions, make_table

DISKS = Storage(roots=("file:/", "nowhere://bucket"))

pytestmark = pytest.mark.slow

DAY = 86_400.0


class Table:
    """A table of its own, partitioned by `ds`, and what `apply` does with actions on it."""

    def __init__(self, client, name, *days, keys=(("ds", "string"),)):
        self.client, self.name = client, name
        make_table(self.client, "stock", name, *keys)
        if days:
            add_partitions(self.client, "stock", name, [[day] for day in days])
        self.location = self.client.call("get_table", "stock", name).sd.location
        self.folder = Path(self.location.removeprefix("file:"))
        self.event = self.client.call("get_current_notificationEventId").eventId

    def file(self, path, content=b"12345", age_seconds=2 * DAY):
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        when = time.time() - age_seconds
        for one in (file, *file.relative_to(self.folder).parents):
            os.utime(self.folder / one, (when, when))

    def action(self, do, day="1", path=None, **changed):
        partition = f"ds={day}" if path is None else None
        location = f"{self.location}/{path or partition}"
        values = {"says": "", "database": "stock", "table": self.name, "partition": partition, "location": location}
        return PlannedFix(do=do, **{**values, **changed})

    def apply(self, *actions, event=None):
        head = PlanHead(url="", run="", event=event or self.event, quiet_seconds=DAY)
        rows = pyarrow.Table.from_pylist([to_builtins(action) for action in actions])
        outcome = Applier(head, DISKS)(self.client, RowBatch("apply", "1", rows))
        return dict(outcome.counts), [one.reason for one in outcome.refused]

    def partitions(self):
        return self.client.call("get_partition_names", "stock", self.name, -1)

    def remove(self, path):
        for one in sorted((self.folder / path).rglob("*"), reverse=True):
            one.unlink()
        (self.folder / path).rmdir()


@pytest.fixture
def client(gateway):
    with PatientClient(Connection.of(gateway.options), 20, scope="applying") as opened:
        yield opened


def test_partitions_without_a_directory_are_dropped_once(client):
    table = Table(client, "drop_once", "1", "2", "3")
    table.remove("ds=1")
    table.remove("ds=2")
    actions = [table.action(Fix.DROP_PARTITION, day) for day in ("1", "2")]
    assert table.apply(*actions) == ({"dropped": 2}, [])
    assert table.partitions() == ["ds=3"]
    assert table.apply(*actions) == ({"done_before": 2}, [])


def test_a_partition_that_has_a_directory_again_or_elsewhere_stays(client):
    table = Table(client, "drop_not", "1", "2")
    table.remove("ds=2")
    assert table.apply(table.action(Fix.DROP_PARTITION, "1")) == ({}, ["exists again; the partition stays"])
    moved = table.action(Fix.DROP_PARTITION, "2", location=f"{table.location}/other")
    assert table.apply(moved) == ({}, ["is not the location of stock.drop_not ds=2 any more"])
    assert table.partitions() == ["ds=1", "ds=2"]


def test_what_the_catalog_does_not_have_any_more_is_named(client):
    table = Table(client, "gone", "1")
    table.client.call("drop_table", "stock", "gone", True)
    assert table.apply(table.action(Fix.DROP_PARTITION)) == ({"done_before": 1}, [])
    gone = ({}, ["its table is not in the catalog any more"])
    assert table.apply(table.action(Fix.ADD_PARTITION)) == gone
    assert table.apply(table.action(Fix.SET_COUNTS, path="x")) == gone
    assert table.apply(table.action(Fix.SET_COUNTS)) == ({}, ["its partition is not in the catalog any more"])


def test_partitions_of_directories_are_added_once_with_their_counts(client):
    table = Table(client, "add", "1")
    table.file("ds=2/a")
    table.file("ds=2/b")
    table.file("ds=2/_SUCCESS")
    table.file("ds=a%2Fb/a")
    (table.folder / "ds=4").mkdir()
    actions = [table.action(Fix.ADD_PARTITION, day) for day in ("2", "a%2Fb", "4")]
    assert table.apply(*actions) == ({"added": 2}, ["has no files any more; the partition is not added"])
    assert table.partitions() == ["ds=1", "ds=2", "ds=a%2Fb"]
    made = table.client.call("get_partition", "stock", "add", ["2"])
    assert (made.sd.location, made.parameters["numFiles"]) == (f"{table.location}/ds=2", "2")
    assert made.parameters["totalSize"] == "10"
    assert table.client.call("get_partition", "stock", "add", ["a/b"]).sd.location == f"{table.location}/ds=a%2Fb"
    assert table.apply(*actions[:2]) == ({"done_before": 2}, [])


def test_counts_are_those_of_now(client):
    table = Table(client, "counts", "1", "2")
    table.file("ds=1/a")
    table.file("ds=1/sub/b")
    table.file("ds=1/.hidden/c")
    actions = [table.action(Fix.SET_COUNTS, day) for day in ("1", "2")]
    assert table.apply(*actions)[1] == []
    found = [table.client.call("get_partition", "stock", "counts", [day]).parameters for day in ("1", "2")]
    assert [(one["numFiles"], one["totalSize"], one["n"]) for one in found] == [("2", "10", "1"), ("0", "0", "1")]
    assert table.apply(*actions) == ({"done_before": 2}, [])


def test_counts_of_a_table(client):
    table = Table(client, "whole", keys=())
    table.file("a")
    action = table.action(Fix.SET_COUNTS, path="", location=table.location)
    assert table.apply(action) == ({"counted": 1}, [])
    found = client.call("get_table", "stock", "whole").parameters
    assert (found["numFiles"], found["totalSize"], found["made_by"]) == ("1", "5", "test")
    assert table.apply(action) == ({"done_before": 1}, [])


def leftover(table, path="ds=1/_temporary"):
    return table.action(Fix.DELETE_LEFTOVER, path=path)


def test_a_leftover_is_deleted_with_all_that_is_in_it_once(client):
    table = Table(client, "left", "1")
    table.file("ds=1/_temporary/0/a")
    table.file("ds=1/_temporary/0/_b")
    table.file("ds=1/data")
    assert table.apply(leftover(table)) == ({"deleted": 1, "files_deleted": 2}, [])
    assert [one.name for one in (table.folder / "ds=1").iterdir()] == ["data"]
    assert table.apply(leftover(table)) == ({"done_before": 1}, [])


def test_what_is_no_leftover_or_new_is_not_deleted(client):
    table = Table(client, "left_new", "1")
    table.file("ds=1/data")
    assert table.apply(leftover(table, "ds=1")) == ({}, ["does not have the name of a leftover; it stays"])
    table.file("ds=1/_temporary/a", age_seconds=60)
    assert table.apply(leftover(table)) == ({}, ["has changed lately; it stays"])
    table.file("ds=1/_temporary/a")
    table.file("ds=1/_temporary/.crc", age_seconds=60)
    assert table.apply(leftover(table)) == ({}, ["has changed lately; it stays"])
    assert (table.folder / "ds=1/_temporary/a").exists()


def orphan(table, path="backup", **changed):
    return replace(table.action(Fix.DELETE_ORPHAN, path=path), **{"files": 1, "total_bytes": 5, **changed})


def test_an_orphan_is_deleted_only_with_the_files_that_the_plan_names(client):
    table = Table(client, "orphans", "1")
    table.file("backup/deep/a")
    assert table.apply(orphan(table, files=2)) == ({}, ["has changed since the audit: 1 files of 5 bytes now"])
    assert table.apply(orphan(table)) == ({"deleted": 1, "files_deleted": 1}, [])
    assert not (table.folder / "backup").exists()


@pytest.mark.parametrize("where", ["backup", "backup/deep", ""])
def test_what_has_become_a_table_since_the_audit_is_not_deleted(client, where):
    table = Table(client, f"adopted{len(where)}", "1")
    table.file("backup/deep/a")
    adopter = f"adopter{len(where)}"
    make_table(table.client, "stock", adopter)
    made = table.client.call("get_table", "stock", adopter)
    place = f"{table.location}/{where}".rstrip("/")
    table.client.call("alter_table", "stock", adopter, replace(made, sd=replace(made.sd, location=place)))
    assert table.apply(orphan(table)) == ({}, [f"is a directory of stock.{adopter} since the audit"])
    table.client.call("drop_table", "stock", adopter, False)


def test_nothing_is_deleted_where_the_log_does_not_reach_back(client):
    table = Table(client, "no_log", "1")
    table.file("backup/deep/a")

    class Gap:
        """The log without its oldest events, as it is after a week."""

        def __getattr__(self, name):
            return getattr(client, name)

        def call(self, name, *arguments, **named):
            answer = client.call(name, *arguments, **named)
            if name == "get_next_notification":
                answer.events = answer.events[1:]
            return answer

    table.client.call("drop_partition_by_name", "stock", "no_log", "ds=1", False)
    add_partitions(table.client, "stock", "no_log", [["5"]])
    head = PlanHead(url="", run="", event=table.event, quiet_seconds=DAY)
    rows = pyarrow.Table.from_pylist([to_builtins(orphan(table))])
    outcome = Applier(head, DISKS)(Gap(), RowBatch("apply", "1", rows))
    assert [one.reason.partition(":")[0] for one in outcome.refused] == ["may be in use"]
    assert (table.folder / "backup/deep/a").exists()


def test_a_link_is_deleted_and_not_followed(client, tmp_path):
    table = Table(client, "links", "1")
    (tmp_path / "kept").write_bytes(b"kept")
    os.utime(tmp_path / "kept", (1, 1))
    os.utime(tmp_path, (1, 1))
    table.file("ds=1/_temporary/a")
    link = table.folder / "ds=1/_temporary/link"
    link.symlink_to(tmp_path)
    os.utime(link, (1, 1), follow_symlinks=False)
    os.utime(table.folder / "ds=1/_temporary", (1, 1))
    assert table.apply(leftover(table))[1] == []
    assert not (table.folder / "ds=1/_temporary").exists()
    assert (tmp_path / "kept").exists()


def test_what_cannot_be_looked_at_is_named(client):
    table = Table(client, "away", "1")
    away = table.action(Fix.DELETE_LEFTOVER, path="x", location="nowhere://bucket/_temporary")
    counts, [reason] = table.apply(away)
    assert counts == {}
    assert reason.startswith("cannot be looked at: nowhere: cannot be read here: ")
    with pytest.raises(NoSuchObjectException):
        table.client.call("get_table", "stock", "nothing")


def test_what_the_metastore_refuses_is_named(client):
    table = Table(client, "refused", "1")
    table.file("ds=2/a")
    wrong = replace(table.action(Fix.ADD_PARTITION, "2"), partition="ds=2/hr=1")
    counts, [reason] = table.apply(wrong)
    assert counts == {}
    assert reason.startswith("is refused: ")
