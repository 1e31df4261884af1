"""Statements one after the other: read, run by a client that reconnects, and written; errors with their places."""

import contextlib
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import IO, Any, Final

from hms_gateway.cli.calls.calling import open_client
from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.cli.hiveql.shell_state import CommandRefused, QualifiedName, ResultRows, ShellState
from hms_gateway.cli.hiveql.statement_reader import parse_statement
from hms_gateway.cli.terminal.formats import write_rows, write_text
from hms_gateway.cli.terminal.output import err, hint, say
from hms_gateway.client.metastore_client import ClientError, MetastoreClient, NotReached
from hms_gateway.metastore.vocabulary.hiveql_tokens import (
    CommandError,
    is_leaving,
    line_and_column,
    pointed_at,
    split_statements,
    tokens_of,
)
from hms_gateway.rpc.idl.method_facts import changes_something
from hms_gateway.rpc.structs import ThriftException
from hms_gateway.rpc.structs.catalogs import catalog_of, plain_name
from hms_gateway.rpc.wire import ApplicationError

RETRY_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 4.0)


class ReconnectingClient:
    """Repeats calls that only read, and those not sent; `say` gets a line for the person at the terminal.

    A change whose answer is lost may have been made, so it is not repeated: NotReached says so.
    """

    def __init__(
        self, target: CallTarget, say: Callable[[str], None], pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._target = target
        self._say = say
        self._pause = pause
        self._client: MetastoreClient | None = None
        self._has_answered = False

    def call(self, name: str, /, *arguments: Any, **named: Any) -> Any:
        """See `MetastoreClient.call`."""
        for seconds in (*RETRY_SECONDS, None):
            if self._client is None:
                self._client = open_client(self._target)
            try:
                answer = self._client.call(name, *arguments, **named)
                self._has_answered = True
                return answer
            except NotReached as error:
                self.close()
                if error.was_sent and changes_something(name):
                    text = f"{error}; it is not known whether {name} was done, so look before you repeat it"
                    raise NotReached(text, error.hint, was_sent=True) from error
                if seconds is None or not error.may_pass or not self._has_answered:
                    raise
                self._say(f"connection lost ({error}); trying again in {seconds:g} s")
                self._pause(seconds)
        raise AssertionError("the last try returns or raises")

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(Exception):
                client.close()


Output = Callable[[], AbstractContextManager[IO[str]]]


class Unanswered(Exception):
    """A statement has got no answer of the metastore; it has been said already."""


class StatementFailed(Exception):
    """A statement was refused; it has been said already."""


class SqlSession:
    """`output` gives what gets the rows of a statement, and standard error gets everything else."""

    def __init__(
        self, client: ReconnectingClient, state: ShellState, form: str, *, output: Output | None = None
    ) -> None:
        self._client = client
        self.state = state
        self.form = form
        self._output = output or _standard_output

    def close(self) -> None:
        """Locks of the session have no one any more who keeps them alive."""
        if self.state.lock_ids:
            ids = " ".join(map(str, self.state.lock_ids))
            text = f"nothing keeps the locks {ids} alive now; hms-gateway locks release {ids} releases them at once"
            hint(text)
        self._client.close()

    def run_text(self, text: str, source: str = "", *, goes_on: bool = False) -> bool:
        """Run the statements of a text up to `exit`; whether none failed.

        Raises StatementFailed at the first one that is refused, unless `goes_on`, and Unanswered.
        """
        is_clean = True
        for statement, begin in split_statements(text):
            if is_leaving(statement):
                break
            try:
                self._run(statement, text, begin, source)
            except StatementFailed:
                if not goes_on:
                    raise
                is_clean = False
        return is_clean

    def _run(self, statement: str, text: str, begin: int, source: str) -> None:
        try:
            began = time.monotonic()
            found = parse_statement(statement, self.state.database).run(self.state)
            count, ended = self._write(found)
        except CommandError as error:
            _say_error(str(error), _place(source, text, begin + error.position))
            say(pointed_at(text, begin + error.position))
            raise StatementFailed from error
        except (CommandRefused, ThriftException, ApplicationError) as error:
            _say_error(_refusal(error), _place(source, text, begin + tokens_of(statement)[0].begin))
            raise StatementFailed from error
        except ClientError as error:
            _say_error(str(error), _place(source, text, begin + tokens_of(statement)[0].begin))
            if error.hint:
                hint(error.hint)
            raise Unanswered from error
        self._say_done(count, ended - began)

    def _write(self, found: ResultRows | None) -> tuple[int | None, float]:
        """Write the rows; their number, and the time before the person leaves the pager."""
        count = None
        if found is not None:
            with self._output() as stream:
                if found.is_text:
                    for cells in found.rows:
                        write_text(stream, self.form, found.columns, cells)
                else:
                    count = write_rows(stream, self.form, found.columns, found.rows)
                return count, time.monotonic()
        return count, time.monotonic()

    def _say_done(self, count: int | None, seconds: float) -> None:
        """For people, who see a table."""
        if self.form not in ("table", "vertical") or not err.is_terminal:
            return
        what = "OK" if count is None else "1 row" if count == 1 else f"{count:,} rows"
        hint(f"{what} ({seconds:.2f} s)")


def _standard_output() -> AbstractContextManager[IO[str]]:
    return nullcontext(sys.stdout)


def _place(source: str, text: str, position: int) -> str:
    if not source:
        return ""
    line, column = line_and_column(text, min(position, len(text.rstrip())))
    return f"{source}:{line}:{column}: "


def _refusal(error: CommandRefused | ThriftException | ApplicationError) -> str:
    if isinstance(error, ApplicationError):
        return f"{error.type.name}: {error}"
    if isinstance(error, CommandRefused):
        return str(error)
    text = error.message or "no message"
    return text if " " in text else f"{type(error).__name__}: {text}"


def _say_error(text: str, place: str) -> None:
    err.print("[bold red]error:[/bold red]", end=" ")
    say(f"{place}{text}")


def repairing(
    target: CallTarget, words: Mapping[str, Any]
) -> Callable[[ShellState, QualifiedName, bool, bool], ResultRows] | None:
    """The function that does REPAIR, by the job `crawl` over the location of one table; None without Spark.

    `words` are the options of the target.
    """
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
    """Raises CommandRefused."""
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

    if name.db_name.startswith("@"):
        words = {**words, "catalog": catalog_of(name.db_name)}
    arguments = CrawlArguments(
        location=location,
        database=plain_name(name.db_name),
        table=name.table_name,
        prune=is_dropping,
        is_vouched_for=False,
    )
    with tempfile.TemporaryDirectory(prefix="hms-gateway-repair") as folder:
        options = JobOptions(connection=connection_of(target, **words, environment={}), state=folder, yes=True)
        try:
            counts = crawl(options, arguments).counts
        except JobFailed as error:
            raise CommandRefused(f"{error}; {error.hint}" if error.hint else str(error)) from error
    return ResultRows(("partitions_added", "partitions_dropped"), [(counts["partitions"], counts["dropped"])])
