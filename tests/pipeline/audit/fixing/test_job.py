"""Job `apply` as a whole: what needs `yes`, and which plan a resumed run goes on with."""

import dataclasses
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.pipeline.audit.apply_job import ApplyArguments, apply
from hms_gateway.pipeline.audit.applying import PlanHead, action_of, write_plan
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.errors import UsageRefused
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.jobs.state import State
from hms_gateway.rpc.structs import Database
from tests.pipeline.content import add_partitions, make_table

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DAYS = [f"2024-01-{day:02}" for day in range(1, 21)]


@pytest.fixture
def options(gateway, tmp_path):
    return JobOptions(connection=Connection.of(gateway.options), state=str(tmp_path / "state"), patience_seconds=20)


@pytest.fixture
def table(gateway, request):
    """A table with twenty partitions, none of which has a directory any more."""
    name = request.node.name.partition("[")[0]
    with gateway.client() as client:
        if "plans" not in client.call("get_all_databases"):
            client.call("create_database", Database(name="plans"))
        make_table(client, "plans", name, ("ds", "string"))
        add_partitions(client, "plans", name, [[day] for day in DAYS])
        location = client.call("get_table", "plans", name).sd.location
    for day in DAYS:
        (Path(location.removeprefix("file:")) / f"ds={day}").rmdir()
    return name, location


def plan_of(options, path, *rows):
    head = PlanHead(url=options.connection.url, run="audit-1", event=1, quiet_seconds=60.0)
    write_plan(str(path), head, [action_of(row) for row in rows])
    return ApplyArguments(plan=str(path))


def drop(table, day):
    name, location = table
    of = {"database": "plans", "table": name, "partition": f"ds={day}", "location": f"{location}/ds={day}"}
    return {"fix": "drop_partition", "files": 0, "total_bytes": 0, **of}


def orphan(table, files, total_bytes):
    where = f"{table[1]}-gone"
    of = {"database": "plans", "table": "", "partition": None, "location": where}
    return {"fix": "delete_orphan", "files": files, "total_bytes": total_bytes, **of}


def partitions(gateway, table):
    with gateway.client() as client:
        return client.call("get_partition_names", "plans", table[0], -1)


def test_a_plan_above_a_threshold_does_nothing_without_yes(spark, gateway, options, table, tmp_path):
    cases = [
        ([drop(table, day) for day in DAYS[:2]], f"drops 2 of the 20 partitions of plans.{table[0]}"),
        ([orphan(table, 1_001, 10)], "deletes 1,001 files of 10 B"),
        ([orphan(table, 1, 10 * 1024**3 + 1)], "deletes 1 file of 10 GiB"),
    ]
    for number, (rows, text) in enumerate(cases):
        given = plan_of(options, tmp_path / f"{number}.jsonl", *rows)
        with pytest.raises(UsageRefused, match=f"^the plan {text}$") as refused:
            apply(options, given, spark=spark)
        assert refused.value.hint == "look at it, then give --yes"
    assert len(partitions(gateway, table)) == 20

    one = plan_of(options, tmp_path / "one.jsonl", drop(table, DAYS[0]))
    assert apply(options, one, spark=spark).counts["dropped"] == 1
    two = plan_of(options, tmp_path / "0.jsonl", *cases[0][0])
    assert apply(dataclasses.replace(options, yes=True), two, spark=spark).exit_status == 0
    assert partitions(gateway, table) == [f"ds={day}" for day in DAYS[2:]]


def test_a_run_is_not_resumed_with_other_lines_in_its_plan(spark, gateway, options, table, tmp_path):
    path = tmp_path / "plan.jsonl"
    planned = apply(
        dataclasses.replace(options, dry_run=True), plan_of(options, path, drop(table, DAYS[0])), spark=spark
    )
    resumed = dataclasses.replace(options, resume=planned.run)
    changed = plan_of(options, path, drop(table, DAYS[1]))
    with pytest.raises(UsageRefused, match=f"^run {planned.run} was begun with other lines in the plan$"):
        apply(resumed, changed, spark=spark)
    assert len(partitions(gateway, table)) == 20
    assert State.of(options.state, {}).read_json(f"{planned.run}/run.json")["status"] == "planned"
    before = plan_of(options, path, drop(table, DAYS[0]))
    assert apply(resumed, before, spark=spark).counts["dropped"] == 1
