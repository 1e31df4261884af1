"""Audits of a real gateway and a real tree: all that was planted, nothing else, and nothing fixable after `apply`."""

import dataclasses
from collections import Counter
from random import Random

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.pipeline.audit.apply_job import ApplyArguments, apply
from hms_gateway.pipeline.audit.job import AuditArguments, audit
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.jobs.state import State
from hms_gateway.pipeline.jobs.stored import Stored
from hms_gateway.rpc.structs import Catalog, CreateCatalogRequest, Database
from tests.pipeline.audit import world as worlds
from tests.pipeline.audit.realizing import realize
from tests.pipeline.audit.world import SMALL_BYTES, SMALL_FILES_MIN, healthy
from tests.pipeline.content import add_partitions, filled_gateway, make_table
from tests.support.sample import sample

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# A world of 16 tables has room for each kind of defect.
TABLES = sample(16, of=40)
WORLDS = sample(1, of=10)
# Worlds that are audited at once: what Spark takes for a job counts once for them.
TOGETHER = 10
ARGUMENTS = AuditArguments(small_bytes=SMALL_BYTES, small_files=SMALL_FILES_MIN)


@pytest.fixture
def options(gateway, tmp_path):
    return JobOptions(connection=Connection.of(gateway.options), state=str(tmp_path / "state"), patience_seconds=20)


def found(options, result):
    """Every finding of a run."""
    stored = Stored.find(State.of(options.state, {}), f"{result.run}/plan/findings")
    rows = []
    for row in stored:
        name = f"{row['database']}.{row['table']}" if row["table"] else row["database"]
        full = name if row["partition"] is None else f"{name}/{row['partition']}"
        rows.append((row["kind"], row["severity"], full, row["location"], row["fix"]))
    return Counter(rows)


def wanted(expected):
    return Counter((one.kind, one.severity, one.name, one.location, one.fix) for one in expected)


def planted(gateway, seed, prefix, tables=TABLES):
    """A world with one of each defect, as far as there is room, where the gateway manages directories."""
    world = healthy(f"file:{gateway.server.data_dir}/warehouse/{prefix}world", Random(seed), prefix, tables)
    plants = [one for one in worlds.PLANTS if one is not worlds.unreadable]
    world.random.shuffle(plants)
    return world, [one for plant in plants for one in plant(world)]


@pytest.mark.parametrize("first", range(0, WORLDS, TOGETHER))
def test_all_that_was_planted_is_found_and_what_can_be_fixed_is_fixed(spark, gateway, options, tmp_path, first):
    expected, only = [], []
    for seed in range(first, min(first + TOGETHER, WORLDS)):
        world, of_world = planted(gateway, seed, f"audit{seed}_")
        assert len({one.kind for one in of_world}) == 10
        with gateway.client() as client:
            realize(world, client)
        expected += of_world
        only.append(f"audit{seed}_*.*")
    options = dataclasses.replace(options, only=tuple(only), yes=True)
    plan = str(tmp_path / "plan.jsonl")
    arguments = dataclasses.replace(ARGUMENTS, fix=plan, html=str(tmp_path / "page.html"), delete_orphans=True)
    first = audit(options, arguments, spark=spark)
    assert found(options, first) == wanted(expected)
    assert (first.exit_status, first.actions) == (1, sum(one.fix is not None for one in expected))

    done = apply(options, ApplyArguments(plan=plan), spark=spark)
    assert (done.refused, list(done.refusals)) == (0, [])
    again = audit(options, arguments, spark=spark)
    assert found(options, again) == wanted(one for one in expected if one.fix is None)
    assert again.actions == 0


def test_directories_of_another_catalog_are_known(spark, tmp_path):
    """They lie in the warehouse, and its tables are no tables of the default catalog."""
    with filled_gateway(tmp_path) as gateway:
        warehouse = gateway.server.data_dir / "warehouse"
        connection = Connection.of(gateway.options, {})
        with gateway.client() as client:
            client.call("create_catalog", CreateCatalogRequest(Catalog("lake", None, f"file:{warehouse}/lake")))
        with PatientClient(dataclasses.replace(connection, catalog="lake"), 20) as client:
            client.call("create_database", Database(name="shop"))
            make_table(client, "shop", "orders", ("day", "string"))
            add_partitions(client, "shop", "orders", [["a"]])
        (warehouse / "lake" / "shop.db" / "orders" / "day=a" / "part-0").write_text("1")
        (warehouse / "stray.db").mkdir()
        (warehouse / "stray.db" / "part-0").write_text("1")
        options = JobOptions(connection=connection, state=str(tmp_path / "state"), patience_seconds=20)
        rows = found(options, audit(options, dataclasses.replace(ARGUMENTS, delete_orphans=True), spark=spark))
    places = [location for _, _, _, location, _ in rows]
    assert any("stray.db" in place for place in places)
    assert not any("/lake" in place for place in places)
