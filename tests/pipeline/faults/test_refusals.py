"""What ends every job before it does anything: a wrong password, other arguments than those of the run."""

import dataclasses
from hashlib import sha256
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.pipeline.audit.apply_job import ApplyArguments, apply
from hms_gateway.pipeline.audit.applying import PlanHead, write_plan
from hms_gateway.pipeline.audit.job import AuditArguments, audit
from hms_gateway.pipeline.compact.job import CleanArguments, CompactArguments, clean, compact
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.crawl.job import CrawlArguments, crawl
from hms_gateway.pipeline.errors import CallsRefused, UsageRefused
from hms_gateway.pipeline.jobs import records
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.jobs.state import State
from hms_gateway.pipeline.migrate.job import MigrateArguments, migrate
from hms_gateway.pipeline.snapshot.job import SnapshotArguments, snapshot
from hms_gateway.pipeline.stats.job import StatsArguments, stats

SOURCE = Connection.of({"url": "https://elsewhere", "user": "admin", "password": "x"}, {})
# A job, what it is given, and an argument of it with another value.
JOBS = {
    "crawl": (crawl, CrawlArguments(location="file:/"), {"prune": True}),
    "stats": (stats, StatsArguments(), {"is_full": True}),
    "audit": (audit, AuditArguments(), {"delete_orphans": True}),
    "apply": (apply, ApplyArguments(plan="plan.jsonl"), {"plan": "other.jsonl"}),
    "compact": (compact, CompactArguments(), {"target_bytes": 1 << 20}),
    "clean": (clean, CleanArguments(), {"grace_seconds": 1.0}),
    "migrate": (migrate, MigrateArguments(source=SOURCE), {"on_conflict": "replace"}),
    "snapshot": (snapshot, SnapshotArguments(path="one"), {"path": "other"}),
}


@pytest.fixture
def options(gateway, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("plan.jsonl", "other.jsonl"):
        write_plan(name, PlanHead(url=gateway.options["url"], run="", event=1, quiet_seconds=0), [])
    return JobOptions(connection=Connection.of(gateway.options), state=str(tmp_path / "state"), patience_seconds=20)


@pytest.mark.slow
@pytest.mark.parametrize("kind", JOBS)
def test_a_wrong_password_is_said_at_once_and_leaves_nothing(options, kind):
    job, arguments, _ = JOBS[kind]
    wrong = dataclasses.replace(options, connection=dataclasses.replace(options.connection, password="wrong"))
    with pytest.raises(CallsRefused, match="401") as caught:
        job(wrong, arguments)
    assert "password" in f"{caught.value} {caught.value.hint}"
    assert not Path(options.state).exists()


@pytest.mark.parametrize("kind", JOBS)
def test_a_resume_with_other_arguments_names_what_differs(options, kind):
    job, arguments, other = JOBS[kind]
    state = State.of(options.state, {})
    record = records.new(kind, options, arguments)
    if kind == "migrate":
        # The login of the source is not noted.
        record["arguments"] |= {"source": SOURCE.url}
        record["arguments"].pop("last")
    if kind == "apply":
        record["arguments"]["digest"] = sha256(Path("plan.jsonl").read_bytes()).hexdigest()
    records.note(state, record, status="failed")
    again = dataclasses.replace(options, resume=record["run"])
    [name] = other
    with pytest.raises(UsageRefused, match=f"run {record['run']} was begun with {name} ") as caught:
        job(again, dataclasses.replace(arguments, **other))
    assert caught.value.hint == "resume it with the same arguments, or begin a new run"
    with pytest.raises(UsageRefused, match=r"was begun with only \[\], not \['a\.b'\]"):
        job(dataclasses.replace(again, only=("a.b",)), arguments)
    others = next(each for each in JOBS if each != kind)
    with pytest.raises(UsageRefused, match=f"is a run of {kind}, not of {others}"):
        JOBS[others][0](again, JOBS[others][1])
    assert state.read_json(f"{record['run']}/run.json") == record
