"""The options that every job has, and how a job is run from the command line."""

import contextlib
import functools
import importlib.util
import inspect
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hms_gateway.cli.calls.target_options import FILE, check_words, login_options
from hms_gateway.cli.terminal.groups import Option
from hms_gateway.cli.terminal.output import err, fail, find_token
from hms_gateway.runtime.logins.login_tokens import TokenCommand

if TYPE_CHECKING:
    from hms_gateway.pipeline.connection import Connection
    from hms_gateway.pipeline.jobs.options import JobOptions, JobResult
    from hms_gateway.pipeline.jobs.progress import Progress

DEFAULT_STATE: Final = "var/pipeline"

_job_option: Final = functools.partial(click.option, cls=Option, section="Job options")
state_option = _job_option(
    "--state",
    envvar="HMS_GATEWAY_PIPELINE_STATE",
    show_envvar=True,
    default=DEFAULT_STATE,
    metavar="PLACE",
    help="Folder or fsspec URL for plans and results; on a cluster, one that all machines share.",
)
json_option = _job_option("--json", "as_json", is_flag=True, help="Print the result as one JSON document.")
master_option = _job_option("--master", default="", show_default="local[*]", metavar="URL", help="Spark's master.")
conf_option = _job_option(
    "--conf", multiple=True, metavar="KEY=VALUE", help="Configuration of the Spark session; repeatable."
)
_OPTIONS: Final = (
    state_option,
    master_option,
    conf_option,
    _job_option("--resume", metavar="RUN", help="Go on with a run, with the arguments that it began with."),
    _job_option("--dry-run", is_flag=True, help="Make the plan and print it; --resume carries it out."),
    _job_option(
        "--only", multiple=True, metavar="'DB.TABLE'", help="Tables to work on, * stands for any text; repeatable."
    ),
    _job_option(
        "--where",
        default="",
        show_default=False,
        metavar="FILTER",
        help="Partitions to work on, such as \"ds >= '2026-01-01'\".",
    ),
    _job_option("--calls", type=click.IntRange(1, 64), default=4, help="Most calls at a time that change something."),
    _job_option(
        "--patience",
        type=click.FloatRange(min=0),
        default=300.0,
        metavar="SECONDS",
        help="How long to wait for a gateway that does not answer.",
    ),
    _job_option(
        "--storage",
        type=FILE,
        metavar="FILE",
        help="TOML file with a table for each scheme: options of fsspec, such as endpoint_url and key.",
    ),
    _job_option(
        "--root",
        multiple=True,
        metavar="PLACE",
        help="Folder or URL below which the job may touch files, besides the gateway's roots; repeatable.",
    ),
    _job_option("--yes", "-y", is_flag=True, help="Do what needs a confirmation, such as many drops."),
    json_option,
)


def with_job_options(command: Callable[..., None]) -> Callable[..., None]:
    """`command(job: "Job", **own options)` with the options of every job added to its own."""

    @functools.wraps(command)
    def called(make: "Callable[[], JobCommand]", *, state: str, as_json: bool, **given: Any) -> None:
        command(make(), **given)

    return with_late_job_options(called)


def with_late_job_options(command: Callable[..., None]) -> Callable[..., None]:
    """The same for `command(make: Callable[[], Job], ...)`, which may have no use for a connection."""
    own, of_target = (inspect.signature(maker).parameters for maker in (make_options, connect))

    @functools.wraps(command)
    def called(**given: Any) -> None:
        check_words(given)
        need_spark()
        words = {name: given.pop(name) for name in own if name != "target"}
        target = {name: given.pop(name) for name in of_target}
        as_json = given.pop("as_json")
        command(
            lambda: JobCommand(make_options(target, **words), as_json=as_json),
            state=words["state"],
            as_json=as_json,
            **given,
        )

    for option in reversed(_OPTIONS):
        called = option(called)
    return login_options(called)


class JobCommand:
    """What a command hands to its job, and what it does with the result."""

    def __init__(self, options: "JobOptions", *, as_json: bool) -> None:
        self.options, self.as_json = options, as_json

    def run(self, job: "Callable[..., JobResult]", arguments: Any, show: "Callable[[Any], None]") -> None:
        """Run a job; print its result with `show`, or as JSON; end with its exit status."""
        with failures():
            result = job(self.options, arguments, progress=_progress(is_quiet=self.as_json and is_submitted()))
        if self.as_json:
            print(result.as_json())
        else:
            show(result)
            if result.passed_over:
                print(
                    f"passed over {result.passed_over:,} tables and partitions: outside of the roots, or not readable"
                )
        raise click.exceptions.Exit(result.exit_status)


def make_options(
    target: Mapping[str, Any],
    *,
    state: str,
    master: str,
    conf: tuple[str, ...],
    resume: str | None,
    dry_run: bool,
    only: tuple[str, ...],
    where: str,
    calls: int,
    patience: float,
    storage: Path | None,
    root: tuple[str, ...],
    yes: bool,
) -> "JobOptions":
    """What the words of a command say, those for `connect` in `target`."""
    from hms_gateway.pipeline.jobs.options import JobOptions

    settings, of_storage = settings_of(conf), _storage(storage)
    return JobOptions(
        connection=connect(**target),
        state=state,
        master=master,
        conf=settings,
        resume=resume,
        dry_run=dry_run,
        only=only,
        where=where,
        calls=calls,
        yes=yes,
        patience_seconds=patience,
        storage=of_storage,
        roots=root,
    )


def connect(
    *,
    url: str,
    user: str,
    password_stdin: bool,
    password_file: Path | None,
    token_file: Path | None,
    token_command: TokenCommand | None,
    negotiate: bool,
    certificate: Path | None,
    key: Path | None,
    insecure: bool,
    cacert: Path | None,
    timeout: float,
) -> "Connection":
    """The metastore that the words of a command name; asks for the password where nothing gives it."""
    from hms_gateway.cli.calls import targets
    from hms_gateway.pipeline.connection import Connection
    from hms_gateway.pipeline.errors import OptionError

    given = {"url": url, "user": user, "timeout": str(max(1, int(timeout))), "verify": "false" if insecure else "true"}
    is_shown = targets.find_certificate(url, certificate, key) is not None
    if is_shown:
        given |= {"certificate": str(certificate), "key": "" if key is None else str(key)}
    source = token_file or token_command
    if source is not None:
        given["token"] = find_token(source).text
    elif negotiate:
        given |= {"auth": "kerberos", "user": targets.find_ticket(url)}
    elif not url.startswith("thrift:") and (not is_shown or password_file is not None or password_stdin):
        given["password"] = _submitted_password() or targets.find_password(
            user, password_file, from_stdin=password_stdin
        )
    trusted = cacert if cacert is not None or insecure else targets.own_certificate(url)
    if trusted is not None:
        given["cafile"] = str(trusted)
    try:
        return Connection.of(given)
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
    from hms_gateway.client.metastore_client import ClientError
    from hms_gateway.pipeline.errors import JobFailed
    from hms_gateway.rpc.structs import ThriftException
    from hms_gateway.rpc.wire import ApplicationError

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
    """What `spark.hms.password` of spark-submit's configuration says, which Spark redacts."""
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
        values: dict[str, dict[str, Any]] = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        fail(f"--storage {file} cannot be read: {error}")
    if not all(isinstance(of, dict) for of in values.values()):
        fail(f"--storage {file} has a line outside of a table", "a table is for a scheme, such as [s3]")
    return values


def is_submitted() -> bool:
    """Whether spark-submit runs this program; it joins standard error to standard output."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _progress(*, is_quiet: bool) -> "Progress":
    from hms_gateway.pipeline.jobs.progress import Lines, Progress, Terminal

    if is_quiet:
        return Progress()
    return Terminal(err) if err.is_terminal else Lines()


def settings_of(conf: tuple[str, ...]) -> dict[str, str]:
    """What the words of --conf say."""
    settings = {}
    for line in conf:
        name, equals, value = line.partition("=")
        if not equals or not name:
            fail(f"--conf {line!r} is not KEY=VALUE")
        settings[name] = value
    return settings
