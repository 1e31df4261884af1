"""Work of `hms-gateway pipeline`: a command's options become those of a job, whose result is printed."""

import contextlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from hms_gateway.cli.calls import targets
from hms_gateway.cli.calls.targets import TargetLogin, login_of
from hms_gateway.cli.terminal.commands import rows_form
from hms_gateway.cli.terminal.formats import write_rows
from hms_gateway.cli.terminal.output import err, fail, first_line
from hms_gateway.client.metastore_client import ClientError
from hms_gateway.rpc.structs import ThriftException
from hms_gateway.rpc.wire import ApplicationError
from hms_gateway.storage.files.places import StorageFileError, read_storage_options

if TYPE_CHECKING:
    from hms_gateway.pipeline.connection import Connection
    from hms_gateway.pipeline.jobs.options import JobOptions
    from hms_gateway.pipeline.jobs.progress import Progress

SOURCE_PASSWORD_VARIABLE: Final = "HMS_GATEWAY_SOURCE_PASSWORD"
_RUN_HEADER: Final = ("run", "status", "began", "ended", "metastore")


class JobCommand:
    """The options of every job, as words, and the form of the result."""

    def __init__(self, target: Mapping[str, Any], words: dict[str, Any]) -> None:
        """Ends the command without Spark."""
        need_spark()
        self.as_json: bool = words.pop("as_json")
        self._target, self.words = target, words

    @cached_property
    def options(self) -> "JobOptions":
        """The options as values; asks for the password where nothing gives it."""
        from hms_gateway.pipeline.jobs.options import JobOptions

        words = {**self.words, "conf": settings_of(self.words["conf"]), "storage": _storage(self.words["storage"])}
        login = login_of(**self._target, find=self._password)
        return JobOptions(connection=connection_of(login, **self._target), **words)

    def _password(self, user: str, file: Path | None, *, from_stdin: bool) -> str:
        """Ask, unless spark-submit has been told, or Thrift over TCP has no logins."""
        if self._target["url"].startswith("thrift:"):
            return ""
        return _submitted_password() or targets.find_password(user, file, from_stdin=from_stdin)

    def run(self, kind: str, given: Mapping[str, Any]) -> None:
        """Run a job of a kind with fields of its arguments; print its result, and end with its exit status."""
        work, arguments = job_of(kind)
        self.run_with(self.options, work, arguments(**given), show_of(kind))

    def run_with(
        self, options: "JobOptions", work: Callable[..., Any], arguments: Any, show: Callable[[Any], None]
    ) -> None:
        """Run a job; print its result with `show`, or as JSON; end with its exit status."""
        with failures():
            result = work(options, arguments, progress=_progress(is_quiet=self.as_json and is_submitted()))
        if self.as_json:
            print(result.as_json())
        else:
            show(result)
            if result.passed_over:
                print(
                    f"passed over {result.passed_over:,} tables and partitions: outside of the roots, or not readable"
                )
        raise click.exceptions.Exit(result.exit_status)


def job_of(kind: str) -> tuple[Any, Any]:
    """The function of a job and the class of its arguments. Raises AttributeError."""
    from hms_gateway import pipeline

    return getattr(pipeline, f"run_{kind}"), getattr(pipeline, f"{kind.capitalize()}Arguments")


def show_of(kind: str) -> Callable[[Any], None]:
    """The function that prints the result of a job of a kind."""
    from hms_gateway.cli.pipeline import results

    shown: Callable[[Any], None] = getattr(results, kind)
    return shown


def run_named(job: JobCommand, **given: Any) -> None:
    """Run the job that has the command's name."""
    job.run(str(click.get_current_context().command.name), given)


def compact(job: JobCommand, *, clean: bool, grace: int, **given: Any) -> None:
    """Run `compact`, or `clean`."""
    job.run("clean" if clean else "compact", {"grace_seconds": grace} if clean else given)


def audit(job: JobCommand, *, quiet_hours: float, fail_on: str, **given: Any) -> None:
    """Run `audit`."""
    from hms_gateway.pipeline.audit.places import Severity

    job.run("audit", {**given, "quiet_seconds": quiet_hours * 3_600, "fail_on": Severity(fail_on)})


def stats(job: JobCommand, *, from_footers: bool, is_all: bool, report: Path | None) -> None:
    """Run `stats`, and write a page about it."""
    work, arguments = job_of("stats")

    def done(*given: Any, **named: Any) -> Any:
        result = work(*given, **named)
        if report is not None:
            _write(result, report)
        return result

    job.run_with(job.options, done, arguments(is_full=not from_footers, is_all=is_all), show_of("stats"))


def _write(result: Any, file: Path) -> None:
    from hms_gateway.pipeline.stats.job import page_of

    try:
        file.write_text(page_of(result), encoding="utf-8")
    except OSError as error:
        fail(f"report {file} cannot be written: {error.strerror}", "the statistics are written; give another --report")


def migrate(job: JobCommand, *, without: tuple[str, ...], **given: Any) -> None:
    """Run `migrate`."""
    from hms_gateway.pipeline.migrate.job import ALL_KINDS

    of_source = {name: given.pop(name) for name in list(given) if name.startswith("source")}
    url = of_source.pop("source")
    source = source_of(url=url, **{name.removeprefix("source_"): value for name, value in of_source.items()})
    kinds = tuple(kind for kind in ALL_KINDS if kind not in without)
    job.run("migrate", {**given, "source": source, "kinds": kinds})


def source_of(
    *,
    url: str,
    user: str,
    password_file: Path | None,
    negotiate: bool,
    certificate: Path | None,
    key: Path | None,
    insecure: bool,
    cacert: Path | None,
    framed: bool,
    catalog: str,
) -> "Connection":
    """The metastore to read. Ends the command when the options are wrong."""
    from hms_gateway.pipeline.connection import Connection
    from hms_gateway.pipeline.errors import OptionError

    password = "" if certificate is not None else os.environ.get(SOURCE_PASSWORD_VARIABLE, "")
    if password_file is not None:
        password = first_line("password file", password_file)
    given = {
        "url": url,
        "user": targets.find_ticket(url) if negotiate else user,
        "password": password,
        "auth": "kerberos" if negotiate else "password",
        "verify": "false" if insecure else "true",
        "certificate": str(certificate or ""),
        "key": str(key or ""),
        "framed": "true" if framed else "false",
        "cafile": "" if cacert is None else str(cacert),
    }
    if url.startswith("http") and not negotiate and certificate is None and not (user and password):
        fail(
            "the source needs a user and a password, or a certificate",
            f"give --source-user, and {SOURCE_PASSWORD_VARIABLE} or --source-password-file; or --source-certificate",
        )
    try:
        return replace(
            Connection.of(given, {}),
            option_prefix="--source-",
            catalog=targets.named_catalog("--source-catalog", catalog),
        )
    except OptionError as error:
        fail(f"--source: {error}")


def diff(*, master: str, conf: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Compare two snapshots."""
    need_spark()
    work, arguments = job_of("diff")
    with failures():
        result = work(arguments(**given), master=master, conf=settings_of(conf))
    if as_json:
        print(result.as_json())
    else:
        show_of("diff")(result)
    raise click.exceptions.Exit(result.exit_status)


def runs(job: JobCommand, *, of_metastore: bool, form: str | None) -> None:
    """Print the runs, or resume one."""
    if job.words["resume"]:
        _resume(job, job.words["resume"])
    from hms_gateway.pipeline.jobs.records import known_runs, records
    from hms_gateway.pipeline.jobs.state import State

    with failures():
        found = known_runs(job.options.connection) if of_metastore else records(State.of(job.words["state"], {}))
    if job.as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n")
        return
    rows = [tuple(str(each.get(name) or "") for name in ("run", "status", "began", "ended", "url")) for each in found]
    write_rows(sys.stdout, rows_form(form), _RUN_HEADER, rows)


def _resume(job: JobCommand, run: str) -> None:
    from hms_gateway.pipeline.jobs.records import options_of, record_of

    with failures():
        record = record_of(job.options)
    kind = record["kind"]
    try:
        work, arguments = job_of(kind)
    except AttributeError:
        fail(f"run {run} is of {kind}, which is not known here", f"hms-gateway pipeline {kind} --resume {run}")
    given = msgspec.convert(record["arguments"], arguments)
    job.run_with(options_of(job.options, record), work, given, show_of(kind))


def connection_of(
    login: TargetLogin,
    *,
    url: str,
    certificate: Path | None,
    key: Path | None,
    insecure: bool,
    cacert: Path | None,
    timeout: float,
    catalog: str = "",
    environment: Mapping[str, str] = os.environ,
    **_: Any,
) -> "Connection":
    """The metastore that the words of a command name, with a login; `environment` has the options not given."""
    from hms_gateway.pipeline.connection import Connection
    from hms_gateway.pipeline.errors import OptionError

    trusted = None if insecure else cacert or targets.own_certificate(url)
    shown = targets.named_certificate(url, certificate, key)
    given = {
        "url": url,
        "user": login.user,
        "password": login.password or "",
        "token": "" if login.token is None else login.token.text,
        "auth": "kerberos" if login.negotiates else "password",
        "certificate": "" if shown is None else str(certificate),
        "key": "" if shown is None or key is None else str(key),
        "verify": "false" if insecure else "true",
        "cafile": str(trusted or ""),
        "timeout": str(max(1, int(timeout))),
        "catalog": targets.named_catalog("--catalog", catalog),
    }
    try:
        return Connection.of({name: value for name, value in given.items() if value}, environment)
    except OptionError as error:
        fail(str(error))


def need_spark() -> None:
    """Ends the command where PySpark is missing."""
    if importlib.util.find_spec("pyspark") is None or importlib.util.find_spec("pyarrow") is None:
        fail(
            "PySpark or pyarrow is not installed",
            "pip install 'hms-gateway[spark]'; in a checkout pip install -e '.[spark]'",
        )


@contextlib.contextmanager
def failures() -> Iterator[None]:
    """A job that fails ends the command with its text, and exit status 2."""
    from hms_gateway.pipeline.errors import JobFailed

    try:
        yield
    except JobFailed as failed:
        fail(str(failed), failed.hint)
    except ClientError as failed:
        fail(str(failed), failed.hint)
    except ThriftException as refused:
        fail(f"{type(refused).__name__}: {refused.message or 'no message'}", "what is done stays; resume the run")
    except ApplicationError as refused:
        fail(f"{refused.type.name}: {refused}", "what is done stays; resume the run")
    except KeyboardInterrupt:
        fail("interrupted", "what is done stays; resume the run")


def _submitted_password() -> str:
    """The value of `spark.hms.password` in spark-submit's configuration, which Spark redacts."""
    if not is_submitted():
        return ""
    from pyspark import SparkConf, SparkContext

    # Without the JVM, which spark-submit has started, the configuration is empty.
    SparkContext._ensure_initialized()
    return str(SparkConf().get("spark.hms.password", ""))


def _storage(file: Path | None) -> dict[str, dict[str, Any]]:
    if file is None:
        return {}
    try:
        return read_storage_options(file)
    except StorageFileError as error:
        fail(f"--storage {error}")


def is_submitted() -> bool:
    """True if spark-submit runs this program; it joins standard error to standard output."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _progress(*, is_quiet: bool) -> "Progress":
    from hms_gateway.pipeline.jobs.progress import Lines, Progress, Terminal

    if is_quiet:
        return Progress()
    return Terminal(err) if err.is_terminal else Lines()


def settings_of(conf: tuple[str, ...]) -> dict[str, str]:
    """Read the words of --conf."""
    settings = {}
    for line in conf:
        name, equals, value = line.partition("=")
        if not equals or not name:
            fail(f"--conf {line!r} is not KEY=VALUE")
        settings[name] = value
    return settings
