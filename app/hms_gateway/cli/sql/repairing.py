"""MSCK REPAIR TABLE by the job `crawl` of the pipeline, over the location of one table."""

import importlib.util
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.cli.hiveql.shell_state import CommandRefused, QualifiedName, ResultRows, ShellState


def repairing(
    target: CallTarget, words: Mapping[str, Any]
) -> Callable[[ShellState, QualifiedName, bool, bool], ResultRows] | None:
    """The function that does REPAIR, None where Spark is not installed. `words` are the options of the target."""
    if importlib.util.find_spec("pyspark") is None or importlib.util.find_spec("pyarrow") is None:
        return None
    return partial(_repair, target, words)


def _repair(
    target: CallTarget,
    words: Mapping[str, Any],
    state: ShellState,
    name: QualifiedName,
    is_adding: bool,
    is_dropping: bool,
) -> ResultRows:
    """Raises Refused."""
    if not is_adding:
        raise CommandRefused("DROP PARTITIONS alone is not supported; SYNC PARTITIONS adds and drops")
    table = state.table(name)
    location = table.sd and table.sd.location
    if not location or not table.partitionKeys:
        raise CommandRefused(f"table {name} is not partitioned, or has no location; there is nothing to repair")
    from hms_gateway.cli.pipeline.jobs import connection_of
    from hms_gateway.pipeline.crawl.job import CrawlArguments, crawl
    from hms_gateway.pipeline.errors import JobFailed
    from hms_gateway.pipeline.jobs.options import JobOptions

    arguments = CrawlArguments(
        location=location, database=name.db_name, table=name.table_name, prune=is_dropping, is_vouched_for=False
    )
    with tempfile.TemporaryDirectory(prefix="hms-gateway-repair") as folder:
        options = JobOptions(connection=connection_of(target, **words, environment={}), state=folder, yes=True)
        try:
            counts = crawl(options, arguments).counts
        except JobFailed as error:
            raise CommandRefused(f"{error}; {error.hint}" if error.hint else str(error)) from error
    return ResultRows(("partitions_added", "partitions_dropped"), [(counts["partitions"], counts["dropped"])])
