"""Steps of executors, in this process: from one gateway to another, without Spark's session."""

import os

import pyarrow
import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.errors import JobFailed
from hms_gateway.pipeline.jobs.batches import RowBatch
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.migrate.job import ALL_KINDS
from hms_gateway.pipeline.migrate.sides import Sides
from hms_gateway.pipeline.migrate.steps import Compare, CopyTables, Refresh
from hms_gateway.rpc.structs import Database
from tests.pipeline.content import Metastore, add_partitions, make_table
from tests.support.server import GatewayServer


def started(folder) -> Metastore:
    server = GatewayServer(folder).start()
    options = {"url": server.url, "user": server.user, "password": server.password, "verify": "false"}
    return Metastore(options, server)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    sides = [started(tmp_path_factory.mktemp(name)) for name in ("source", "target")]
    yield sides
    for side in sides:
        side.server.stop()


@pytest.fixture
def source(both):
    """With one table, `d.t`, of two partitions; the target is empty."""
    for side in both:
        with side.client() as client:
            if "d" in client.call("get_all_databases"):
                client.call("drop_database", "d", False, True)
            client.call("create_database", Database(name="d"))
    with both[0].client() as client:
        make_table(client, "d", "t", ("k", "string"))
        add_partitions(client, "d", "t", [["1"], ["2"]])
    return both[0]


@pytest.fixture
def target(both, source):
    return both[1]


def ran(step, target, *rows, scope="a"):
    client = PatientClient(Connection.of(target.options, {}), 5)
    # Of this test: tables that two tests make in the same second are equal, and so would be the keys of the calls.
    scope = f"{os.environ['PYTEST_CURRENT_TEST']} {scope}"
    return step(client.begin(scope), RowBatch("name", "1", pyarrow.Table.from_pylist(list(rows))))


def sides(source, on_conflict="skip"):
    return Sides(Connection.of(source.options, {}), True, on_conflict, frozenset(ALL_KINDS), 5, 5)


def row(table="t", existed=False, names=None):
    return {"database": "d", "table": table, "existed": existed, "names": names}


def tables(side):
    with side.client() as client:
        return client.call("get_all_tables", "d")


def same(source, target):
    return ran(Compare(sides(source)), target, row()).counts["differences"] == 0


def test_a_batch_that_is_done_again_changes_nothing(source, target):
    for scope in ("a", "a", "b"):
        found = ran(CopyTables(sides(source)), target, row(), scope=scope)
        assert (found.counts["tables"], found.refused) == (1, [])
        assert same(source, target)


def test_a_table_that_is_gone_is_passed_over(source, target):
    assert ran(CopyTables(sides(source)), target, row("gone")).counts == {}
    assert tables(target) == []


def test_a_table_that_was_dropped_goes_when_the_run_has_brought_it(source, target):
    ran(CopyTables(sides(source)), target, row())
    with source.client() as client:
        client.call("drop_table", "d", "t", False)
    kept = ran(Refresh(sides(source), frozenset([("d", "t")])), target, row(), scope="b")
    assert [one.reason for one in kept.refused] == ["the source has dropped it; it was in the target before, and stays"]
    assert tables(target) == ["t"]
    assert ran(Refresh(sides(source)), target, row(), scope="c").counts == {"dropped tables": 1}
    assert tables(target) == []


@pytest.mark.parametrize(("on_conflict", "is_same"), [("skip", False), ("replace", True)])
def test_a_table_that_differs_is_left_or_replaced(source, target, on_conflict, is_same):
    with target.client() as client:
        make_table(client, "d", "t", ("other", "int"))
    found = ran(CopyTables(sides(source, on_conflict)), target, row(existed=True))
    assert [one.item for one in found.refused] == ([] if is_same else ["d.t"])
    assert same(source, target) is is_same


def test_a_conflict_can_end_the_run(source, target):
    with target.client() as client:
        make_table(client, "d", "t", ("k", "string"))
    with pytest.raises(JobFailed, match=r"d\.t: it is in the target and differs from the source") as caught:
        ran(CopyTables(sides(source, "fail")), target, row(existed=True))
    assert "--on-conflict" in caught.value.hint


def test_only_the_partitions_of_a_row_are_brought_up_to_date(source, target):
    ran(CopyTables(sides(source)), target, row())
    with source.client() as client:
        add_partitions(client, "d", "t", [["3"], ["4"]])
        client.call("drop_partition_by_name", "d", "t", "k=1", False)
        client.call("drop_partition_by_name", "d", "t", "k=2", False)
    ran(Refresh(sides(source)), target, row(names=["k=1", "k=3"]), scope="b")
    with target.client() as client:
        assert client.call("get_partition_names", "d", "t", -1) == ["k=2", "k=3"]
    ran(Refresh(sides(source)), target, row(), scope="c")
    assert same(source, target)
