"""MSCK REPAIR TABLE by the job `crawl` of the pipeline, over the location of one table."""

import importlib.util
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

from hms_gateway.cli.calls.targets import CallTarget, own_certificate
from hms_gateway.cli.hiveql.running.shell_state import CommandRefused, ResultRows, ShellState
from hms_gateway.cli.hiveql.statements import Repair


def repairing(target: CallTarget, words: Mapping[str, Any]) -> Callable[[Repair, ShellState], ResultRows] | None:
    """What does REPAIR, None where Spark is not installed. `words` are the options that made the target."""
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
    from hms_gateway.pipeline.crawl.job import CrawlArguments, crawl
    from hms_gateway.pipeline.errors import JobFailed
    from hms_gateway.pipeline.jobs.options import JobOptions

    name = statement.table
    arguments = CrawlArguments(
        location=location,
        database=name.db_name,
        table=name.table_name,
        prune=statement.is_dropping,
        is_vouched_for=False,
    )
    with tempfile.TemporaryDirectory(prefix="hms-gateway-repair") as folder:
        options = JobOptions(connection=_connection(target, words), state=folder, yes=True)
        try:
            counts = crawl(options, arguments).counts
        except JobFailed as error:
            raise CommandRefused(f"{error}; {error.hint}" if error.hint else str(error)) from error
    return ResultRows(("partitions_added", "partitions_dropped"), [(counts["partitions"], counts["dropped"])])


def _connection(target: CallTarget, words: Mapping[str, Any]) -> Any:
    from hms_gateway.pipeline.connection import Connection

    trusted = None if words["insecure"] else words["cacert"] or own_certificate(target.url)
    is_secure = target.url.lower().startswith("https:")
    given = {
        "url": target.url,
        "user": target.user,
        "timeout": str(max(1, int(target.timeout_seconds))),
        "verify": "false" if words["insecure"] else "true",
        "cafile": str(trusted or ""),
        "auth": "kerberos" if target.negotiates else "password",
        "password": target.password or "",
        "token": "" if target.token is None else target.token.text,
        "certificate": str(words["certificate"] or "") if is_secure else "",
        "key": str(words["key"] or "") if is_secure and words["certificate"] else "",
    }
    return Connection.of({name: value for name, value in given.items() if value}, {})
