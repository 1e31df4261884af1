"""Plans as files: what a person sees, and what is refused."""

import json

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")

from hms_gateway.pipeline.audit.applying import PlanHead, PlannedFix, action_of, read_actions, read_head, write_plan
from hms_gateway.pipeline.audit.places import Fix
from hms_gateway.pipeline.errors import StateFailed, UsageRefused

HEAD = PlanHead(url="https://metastore.example.org", run="audit-1", event=7, quiet_seconds=60.0)


def row(fix, **changed):
    values = {"database": "sales", "table": "orders", "partition": "ds=1", "location": "file:/w/ds=1"}
    return {"fix": fix, "files": 3, "total_bytes": 2_048, **values, **changed}


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (row("drop_partition"), "drop partition ds=1 of sales.orders from the catalog: file:/w/ds=1 does not exist"),
        (row("add_partition", files=1), "add partition ds=1 to sales.orders: file:/w/ds=1 has 1 file, 2 KiB"),
        (
            row("set_counts"),
            "set numFiles and totalSize of sales.orders/ds=1 to what is in file:/w/ds=1: 3 files, 2 KiB",
        ),
        (
            row("delete_leftover", partition=None, location="file:/w/_temporary"),
            "DELETE the leftover file:/w/_temporary of sales.orders: 3 files, 2 KiB",
        ),
        (
            row("delete_orphan", table="", partition=None, location="file:/w/gone"),
            "DELETE the orphan file:/w/gone in sales: 3 files, 2 KiB",
        ),
    ],
)
def test_each_line_says_what_it_does(found, says):
    assert action_of(found).says == says


def test_what_is_written_is_read_again(tmp_path):
    path = str(tmp_path / "plan.jsonl")
    actions = [action_of(row("drop_partition")), action_of(row("delete_orphan", table="", partition=None))]
    assert write_plan(path, HEAD, actions) == 2
    assert (read_head(path), list(read_actions(path))) == (HEAD, actions)
    lines = (tmp_path / "plan.jsonl").read_text().splitlines()
    assert [json.loads(line)["do"] for line in lines[1:]] == ["drop_partition", "delete_orphan"]
    (tmp_path / "plan.jsonl").write_text("\n\n".join([lines[0], lines[2]]))
    assert list(read_actions(path)) == actions[1:]


def test_the_lease_is_on_the_table_or_the_database():
    assert action_of(row("set_counts")).table_name == "sales.orders"
    assert PlannedFix(do=Fix.DELETE_ORPHAN, says="", database="sales", location="file:/x").table_name == "sales.*"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ('{"do": "drop_database"}', "line 2: Invalid enum value 'drop_database'"),
        ('{"do": "set_counts"}', "line 2: Object missing required field"),
        ("delete everything", "line 2: JSON is malformed"),
        ('{"do": "set_counts", "says": "", "database": 1, "location": ""}', "line 2: Expected `str`, got `int`"),
    ],
)
def test_a_line_that_is_no_action_is_named(tmp_path, line, error):
    path = tmp_path / "plan.jsonl"
    write_plan(str(path), HEAD, [])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(UsageRefused, match=error):
        list(read_actions(str(path)))


def test_files_that_are_no_plans_are_refused(tmp_path):
    path = tmp_path / "plan.jsonl"
    with pytest.raises(UsageRefused, match=r"cannot be read: No such file"):
        read_head(str(path))
    path.write_text("")
    with pytest.raises(UsageRefused, match="is empty"):
        read_head(str(path))
    write_plan(str(path), PlanHead(version=2, url="", run="", event=1, quiet_seconds=1.0), [])
    with pytest.raises(UsageRefused, match="is of version 2, not 1"):
        read_head(str(path))


def test_a_plan_that_cannot_be_written_leaves_the_one_before(tmp_path):
    path = tmp_path / "plan.jsonl"
    write_plan(str(path), HEAD, [])
    before = path.read_text()

    def broken():
        yield action_of(row("drop_partition"))
        raise OSError(28, "No space left on device")

    with pytest.raises(StateFailed, match="No space left on device"):
        write_plan(str(path), HEAD, broken())
    assert path.read_text() == before
