"""A small job: it sets a parameter of each of some tables. Other jobs have the same shape."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pyarrow

from hms_gateway.pipeline.jobs.batches import Refusal, StepOutcome
from hms_gateway.pipeline.jobs.options import JobResult
from hms_gateway.pipeline.jobs.run import Run
from hms_gateway.rpc.structs import NoSuchObjectException

SCHEMA = pyarrow.schema([("database", pyarrow.string()), ("table", pyarrow.string()), ("value", pyarrow.string())])


@dataclass(frozen=True, kw_only=True)
class ToyArguments:
    database: str
    values: Mapping[str, str]
    rows_a_batch: int = 2


@dataclass(frozen=True, kw_only=True)
class ToyResult(JobResult):
    refusals: dict[str, str] = field(default_factory=dict)


def toy(options, arguments, *, spark=None, progress=None, step=None):
    with Run.begin("toy", options, arguments, spark=spark, progress=progress) as run:
        rows = [
            {"database": arguments.database, "table": table, "value": value}
            for table, value in arguments.values.items()
            if options.wants(arguments.database, table)
        ]
        plan = run.store("tables", rows, rows_a_batch=arguments.rows_a_batch, schema=SCHEMA)
        if options.dry_run:
            return run.finish(ToyResult, counts={"planned": plan.rows})
        run.hold([f"{arguments.database}.{table}" for table in arguments.values])
        counts = run.batches(plan, step or set_parameter, name="set")
        refused = {each.item: each.reason for each in run.refusals("set")}
        return run.finish(ToyResult, counts=counts.counts, refused=counts.refused, refusals=refused)


def toy_together(options, arguments, *, spark=None, progress=None, step=None):
    """Sets the parameters as soon as a batch is made; what is made says how many batches were done by then."""
    with Run.begin("together", options, arguments, spark=spark, progress=progress) as run:
        rows = [
            {"database": arguments.database, "table": table, "value": value}
            for table, value in arguments.values.items()
        ]
        plan = run.store("tables", rows, rows_a_batch=1, schema=SCHEMA)
        run.hold([f"{arguments.database}.{table}" for table in arguments.values])
        done, step = Path(run.state.path(run.path("done/set"))), step or set_parameter

        def seeing(table):
            number = len(list(done.glob("*.json")))
            yield from table.append_column("done", pyarrow.array([number] * len(table))).to_batches()

        schema = SCHEMA.append(pyarrow.field("done", pyarrow.int64()))
        made = run.derive("made", plan, seeing, schema, rows_a_batch=1, then=("set", step))
        counts = run.batches(made, step, name="set")
        return run.finish(ToyResult, counts=counts.counts, refusals={row["table"]: row["done"] for row in made})


def set_parameter(client, batch):
    refused = []
    for row in batch.rows():
        try:
            table = client.call("get_table", row["database"], row["table"])
        except NoSuchObjectException as error:
            refused.append(Refusal(f"{row['database']}.{row['table']}", error.message))
            continue
        changed = msgspec.structs.replace(table, parameters={**table.parameters, "toy": row["value"]})
        client.call("alter_table", row["database"], row["table"], changed)
    return StepOutcome({"set": len(batch.table) - len(refused)}, refused)
