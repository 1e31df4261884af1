"""A small job over a real gateway: plan, batches, lease, resume, and what is refused."""

import dataclasses
import sys

import msgspec
import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from pyspark import cloudpickle

from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.errors import CallsRefused, JobFailed, LeaseLost, TablesHeld, UsageRefused
from hms_gateway.pipeline.jobs import records
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.jobs.state import State
from hms_gateway.rpc.structs import LeaseObject, NotificationEventRequest
from tests.pipeline.content import make_table
from tests.pipeline.jobs import toy as toys
from tests.pipeline.jobs.toy import ToyArguments, toy, toy_together

pytestmark = [pytest.mark.spark, pytest.mark.slow]
# Executors have the package, not the tests.
cloudpickle.register_pickle_by_value(toys)
cloudpickle.register_pickle_by_value(sys.modules[__name__])

TABLES = ("one", "two", "three", "four", "five")


@pytest.fixture(scope="module", autouse=True)
def tables(gateway):
    with gateway.client() as client:
        for table in TABLES:
            make_table(client, "stock", f"toy_{table}")


@pytest.fixture
def options(gateway, tmp_path):
    return JobOptions(connection=Connection.of(gateway.options), state=str(tmp_path / "state"), patience_seconds=20)


def arguments(value, *more):
    return ToyArguments(database="stock", values={f"toy_{table}": value for table in (*TABLES, *more)})


def values_in(gateway):
    with gateway.client() as client:
        return [client.call("get_table", "stock", f"toy_{table}").parameters.get("toy") for table in TABLES]


def changes_since(gateway, event):
    with gateway.client() as client:
        return len(client.call("get_next_notification", NotificationEventRequest(lastEvent=event)).events)


def leases(gateway):
    with gateway.client() as client:
        return client.call("list_lease", [])


def runs_in(options, tmp_path):
    return [path.name for path in (tmp_path / "state").iterdir()]


def failing_at(table, error):
    """The step, with something that is in the way of one table's batch."""

    def step(client, batch):
        if any(row["table"] == f"toy_{table}" for row in batch.rows()):
            raise error
        return toys.set_parameter(client, batch)

    return step


def test_every_row_is_done_once_and_what_is_refused_is_named(spark, gateway, options):
    result = toy(options, arguments("1", "missing"), spark=spark)
    assert values_in(gateway) == ["1"] * 5
    assert result.counts == {"set": 5}
    assert list(result.refusals) == ["stock.toy_missing"]
    assert (result.status, result.refused, result.exit_status) == ("done", 1, 1)
    assert leases(gateway) == []


def test_a_dry_run_makes_the_plan_which_a_resume_does(spark, gateway, options):
    before = values_in(gateway)
    planned = toy(dataclasses.replace(options, dry_run=True), arguments("2"), spark=spark)
    assert (planned.status, planned.counts, values_in(gateway)) == ("planned", {"planned": 5}, before)
    done = toy(dataclasses.replace(options, resume=planned.run), arguments("2"), spark=spark)
    assert (done.run, done.status, values_in(gateway)) == (planned.run, "done", ["2"] * 5)


def test_a_resume_does_only_what_is_missing(spark, gateway, options, tmp_path):
    failure = JobFailed("the table three is not to be touched", "wait")
    with pytest.raises(JobFailed, match="three is not to be touched") as caught:
        toy(options, arguments("3"), spark=spark, step=failing_at("three", failure))
    assert caught.value.hint == "wait"
    [run] = runs_in(options, tmp_path)
    record = msgspec.json.decode((tmp_path / "state" / run / "run.json").read_bytes())
    assert (record["status"], record["error"]) == ("failed", "the table three is not to be touched")
    assert record["ended"] >= record["began"]
    missing = sum(value != "3" for value in values_in(gateway))
    assert 0 < missing < 5
    with gateway.client() as client:
        before = client.call("get_current_notificationEventId").eventId
    result = toy(dataclasses.replace(options, resume=run), arguments("3"), spark=spark)
    assert (values_in(gateway), result.counts) == (["3"] * 5, {"set": 5})
    assert changes_since(gateway, before) == missing


def test_a_batch_is_done_as_soon_as_it_is_made_where_calls_suffice_for_all_processors(spark, gateway, options):
    """Tasks begin in their order, on two processors: before the last one all but one have ended."""
    result = toy_together(options, arguments("20"), spark=spark)
    assert (values_in(gateway), result.counts) == (["20"] * 5, {"set": 5})
    assert result.refusals["toy_five"] >= 3
    alone = toy_together(dataclasses.replace(options, calls=1), arguments("21"), spark=spark)
    assert (values_in(gateway), alone.counts) == (["21"] * 5, {"set": 5})
    assert set(alone.refusals.values()) == {0}


@pytest.mark.parametrize("calls", [1, 4])
def test_what_was_made_and_not_done_is_done_by_a_resume(spark, gateway, options, tmp_path, calls):
    """Also with as many processors that what was made is done apart: batches are the same ones."""
    value = f"22 {calls}"
    failing = failing_at("three", JobFailed("the table three is not to be touched"))
    with pytest.raises(JobFailed, match="not to be touched"):
        toy_together(options, arguments(value), spark=spark, step=failing)
    [run] = runs_in(options, tmp_path)
    missing = sum(each != value for each in values_in(gateway))
    assert 0 < missing < 5
    with gateway.client() as client:
        before = client.call("get_current_notificationEventId").eventId
    resumed = dataclasses.replace(options, resume=run, calls=calls)
    result = toy_together(resumed, arguments(value), spark=spark)
    assert (values_in(gateway), result.counts) == ([value] * 5, {"set": 5})
    assert changes_since(gateway, before) == missing


def test_an_unexpected_error_of_a_step_ends_the_job_with_its_last_line(spark, options):
    with pytest.raises(JobFailed, match=r"toy: set failed in Spark: .*ZeroDivisionError: division"):
        toy(options, arguments("4"), spark=spark, step=failing_at("one", ZeroDivisionError("division")))


def test_a_resume_with_other_arguments_names_them(spark, options):
    run = toy(options, arguments("5"), spark=spark).run
    resumed = dataclasses.replace(options, resume=run)
    with pytest.raises(UsageRefused, match=r"was begun with values \{'toy_one': '5'"):
        toy(resumed, arguments("6"), spark=spark)
    with pytest.raises(UsageRefused, match=r"was begun with only \[\], not \['stock\.\*'\]"):
        toy(dataclasses.replace(resumed, only=("stock.*",)), arguments("5"), spark=spark)
    with pytest.raises(UsageRefused, match="run toy-1 is not in "):
        toy(dataclasses.replace(options, resume="toy-1"), arguments("5"), spark=spark)


def test_a_table_that_another_holds_is_left_alone(spark, gateway, options):
    with gateway.client() as client:
        lease = client.call("grab_lease", [LeaseObject("stock", "toy_two", None, "x")], 600, 0)
        before = values_in(gateway)
        with pytest.raises(TablesHeld, match=f"conflicts with exclusive lease {lease} of admin on stock.toy_two"):
            toy(options, arguments("7"), spark=spark)
        # What a run that was killed has noted.
        state = State.of(options.state, {})
        killed = records.new("toy", options, arguments("7"))
        records.note(state, killed, status="running", lease=lease)
        with pytest.raises(TablesHeld, match=rf"on stock\.toy_two: run {killed['run']}$") as caught:
            toy(options, arguments("7"), spark=spark)
        assert caught.value.hint.endswith(f"--resume {killed['run']}")
        client.call("drop_lease", lease, [])
    assert values_in(gateway) == before


def test_a_lost_lease_ends_the_run_and_a_resume_goes_on(spark, gateway, options, tmp_path):
    def step(client, batch):
        if not mark.exists():
            mark.touch()
            with connection.open() as other:
                other.call("drop_lease", client.lease_id, [])
        return toys.set_parameter(client, batch)

    mark, connection = tmp_path / "mark", options.connection
    with pytest.raises(LeaseLost, match=r"lease \d+ is lost: Refused: lease \d+ is not held any more"):
        toy(options, arguments("8"), spark=spark, step=step)
    [run] = runs_in(options, tmp_path)
    toy(dataclasses.replace(options, resume=run), arguments("8"), spark=spark)
    assert values_in(gateway) == ["8"] * 5


def test_a_wrong_password_is_said_at_once(spark, gateway, options):
    connection = dataclasses.replace(options.connection, password="wrong")
    with pytest.raises(CallsRefused, match="answers 401"):
        toy(dataclasses.replace(options, connection=connection), arguments("9"), spark=spark)


def test_no_file_of_a_run_holds_the_password(spark, gateway, options, tmp_path):
    toy(options, arguments("10"), spark=spark)
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert len(files) > 5
    assert not [path for path in files if gateway.server.password.encode() in path.read_bytes()]
