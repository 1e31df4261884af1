"""MSCK REPAIR TABLE by the job `crawl` of the pipeline, over the location of one table."""

import importlib.util
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

from hms_gateway.cli.calls.targets import CallTarget, TargetLogin
from hms_gateway.cli.hiveql.session import Repair
from hms_gateway.cli.hiveql.shell_state import CommandRefused, ResultRows, ShellState
from hms_gateway.rpc.structs.catalogs import catalog_of, plain_name


def repairing(target: CallTarget, words: Mapping[str, Any]) -> Callable[[Repair, ShellState], ResultRows] | None:
    """The function that does REPAIR, None where Spark is not installed. `words` are the options of the target."""
    if importlib.util.find_spec("pyspark") is None or importlib.util.find_spec("pyarrow") is None:
        return None
    return lambda statement, state: _repair(statement, state, target, words)


def _repair(statement: Repair, state: ShellState, target: CallTarget, words: Mapping[str, Any]) -> ResultRows:
    """Raises Refused."""
    if not statement.is_adding:
        raise CommandRefused("DROP PARTITIONS alone is not supported; SYNC PARTITIONS adds and drops")
    table = state.table(statement.table)
    location = table.sd and table.sd.location
    if not location or not table.partitionKeys:
        raise CommandRefused(
            f"table {statement.table} is not partitioned, or has no location; there is nothing to repair"
        )
    from hms_gateway.cli.pipeline.jobs import connection_of
    from hms_gateway.pipeline.crawl.job import CrawlArguments, crawl
    from hms_gateway.pipeline.errors import JobFailed
    from hms_gateway.pipeline.jobs.options import JobOptions

    name = statement.table
    if name.db_name.startswith("@"):
        words = {**words, "catalog": catalog_of(name.db_name)}
    login = TargetLogin(target.user, target.password, target.token, target.negotiates)
    arguments = CrawlArguments(
        location=location,
        database=plain_name(name.db_name),
        table=name.table_name,
        prune=statement.is_dropping,
        is_vouched_for=False,
    )
    with tempfile.TemporaryDirectory(prefix="hms-gateway-repair") as folder:
        options = JobOptions(connection=connection_of(login, **words, environment={}), state=folder, yes=True)
        try:
            counts = crawl(options, arguments).counts
        except JobFailed as error:
            raise CommandRefused(f"{error}; {error.hint}" if error.hint else str(error)) from error
    return ResultRows(("partitions_added", "partitions_dropped"), [(counts["partitions"], counts["dropped"])])
