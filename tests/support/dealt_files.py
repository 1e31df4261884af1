"""A plugin of pytest: with `--processes N`, N processes take test files from one list.

Each reads and runs the next file when it is done with one. So it does not matter how long a file takes, and no process
reads what another runs. The process with the option reports for them: pytest's own lines, durations and exit status
are about all.
"""

import fcntl
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import IO, Any, Final

import pytest

# Rooms whose tests share something that takes seconds to start: one process runs all of a room.
SHARING_ROOMS: Final = ("comparison", "spark", "iceberg", "kerberos", "pipeline/cluster")
# What takes longest begins first, so that no process is left alone with it. Every process may have a Spark session.
LONGEST: Final = (
    "tests/comparison/",
    "tests/spark/",
    "tests/pipeline/cluster/",
    "tests/pipeline/migrate/test_migrate.py",
    "tests/pipeline/faults/",
    "tests/pipeline/compact/test_job.py",
    "tests/pipeline/snapshot/test_job.py",
    "tests/pipeline/",
    "tests/iceberg/",
    "tests/kerberos/",
    "tests/linearizability/",
    "tests/faults/",
    "tests/simulation/",
)
PROCESSES_MAX: Final = 4
LOOK_SECONDS: Final = 2.0  # between two looks whether a process has ended that keeps its end of the pipe open
BROKEN: Final = (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)
SEND_SECONDS: Final = 0.2
SHOWN_SECONDS_MIN: Final = 0.005  # --durations shows none shorter
CURRENT_BYTES: Final = 1_000
LOG_CHARACTERS_MAX: Final = 8_000
# Files in the folder that the processes share: what each argument asks of a file, files to take, a sign to stop.
ARGUMENTS, FILES, STOP = "arguments.json", "files", "stop"

Message = tuple[str, Any]
END: Final[list[Message]] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("processes")
    group.addoption(
        "--processes", type=_processes, default=0, help="so many take turns; auto: one more than cores, at most 4"
    )
    group.addoption("--part", help="what one of the processes is: its number, where it reports, the folder of all")


def pytest_configure(config: pytest.Config) -> None:
    if part := config.getoption("part"):
        # pytest's own plugins write no caches and reports of their own then.
        config.workerinput = {}  # type: ignore[attr-defined]
        config.pluginmanager.register(Part.of(config, part))
    elif (processes := config.getoption("processes")) and not (config.option.collectonly or config.option.usepdb):
        config.pluginmanager.register(Dealer(processes))


def _processes(text: str) -> int:
    if text != "auto":
        return int(text)
    # A quarter of the time of the tests is waiting for other programs, timeouts and locks.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores + 1, PROCESSES_MAX)


def shared_by(file: str) -> str:
    """A room of SHARING_ROOMS, or else the file."""
    return next((room for room in SHARING_ROOMS if file.startswith(f"tests/{room}/")), file)


def dealt(sizes: dict[str, int]) -> list[str]:
    """What a process takes at a time, files separated by spaces; in their order, large ones first."""
    groups: dict[str, list[str]] = {}
    for file in sorted(sizes):
        groups.setdefault(shared_by(file), []).append(file)

    def place(files: list[str]) -> tuple[int, int]:
        first = next((place for place, start in enumerate(LONGEST) if files[0].startswith(start)), len(LONGEST))
        return first, -sum(map(sizes.__getitem__, files))

    return [" ".join(files) for files in sorted(groups.values(), key=place)]


def take(files: Path) -> str | None:
    """The first line, which no other process gets then."""
    with _locked(files) as file:
        first, _, rest = file.read().partition("\n")
        file.seek(0)
        file.truncate()
        file.write(rest)
    return first or None


@contextmanager
def _locked(files: Path) -> Iterator[IO[str]]:
    """Nobody else reads or writes it until it is closed."""
    with files.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


@dataclass(eq=False)
class Part:
    """One of the processes."""

    config: pytest.Config
    folder: Path
    dealer: Connection
    current: int  # descriptor of the file that names the test which runs
    nodes: dict[str, list[pytest.Item | pytest.Collector]] = field(default_factory=dict)
    unsent: list[Message] = field(default_factory=list)
    sent_at: float = 0.0

    @classmethod
    def of(cls, config: pytest.Config, text: str) -> "Part":
        descriptor, current, folder = text.split(":", 2)
        for inherited in (descriptor, current):
            os.set_inheritable(int(inherited), False)
        return cls(config, Path(folder), Connection(int(descriptor), readable=False), int(current))

    def pytest_collection(self, session: pytest.Session) -> bool:
        """Reads folders and their conftest.py, once: pytest knows fixtures by the objects it makes of folders here."""
        arguments: dict[str, list[str]] = json.loads((self.folder / ARGUMENTS).read_text())
        option = session.config.option
        # They choose tests. What is there now are files.
        chosen, option.keyword, option.markexpr = (option.keyword, option.markexpr), "", ""
        found = session.perform_collect([one for asked in arguments.values() for one in asked], genitems=False)
        option.keyword, option.markexpr = chosen
        for node in found:
            self.nodes.setdefault(str(node.path), []).append(node)
        return True

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        while (files := take(self.folder / FILES)) is not None:
            for file in files.split():
                self._run(session, str(session.config.rootpath / file))
                self._send(("file", file))
        return True

    def _run(self, session: pytest.Session, file: str) -> None:
        hook = session.config.hook
        items = [item for node in self.nodes.get(file, ()) for item in session.genitems(node)]
        hook.pytest_collection_modifyitems(session=session, config=session.config, items=items)
        hook.pytest_collection_finish(session=session)
        # The exit status depends on it.
        session.testscollected += len(items)
        # What the session shares stays between files, as if its next test were one of another file.
        for item, following in pairwise([*items, session]):
            hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if (self.folder / STOP).exists():
                raise session.Interrupted("another process has failed")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        yield  # ends what the session shares
        self._send(("ended", int(session.exitstatus)))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        # For the case that the process dies with it: a write costs less than a message.
        os.pwrite(self.current, nodeid.encode().ljust(CURRENT_BYTES)[:CURRENT_BYTES], 0)
        if time.monotonic() > self.sent_at + SEND_SECONDS:
            self._send()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed or report.duration > SHOWN_SECONDS_MIN:
            self.unsent.append(("report", self._data(report)))
        if report.failed:
            self._send()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self._send(("report", self._data(report)))

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, when: str, nodeid: str) -> None:
        place = warning_message.filename, warning_message.lineno
        text = f"{warning_message.category.__name__}: {warning_message.message}"
        self._send(("warning", (text, *place, when, nodeid)))

    def _send(self, *messages: Message) -> None:
        """With what came before it: one of several costs less."""
        self.dealer.send([*self.unsent, *messages])
        self.unsent.clear()
        self.sent_at = time.monotonic()

    def _data(self, report: pytest.TestReport | pytest.CollectReport) -> Any:
        return self.config.hook.pytest_report_to_serializable(config=self.config, report=report)


@dataclass
class Started:
    """A process as the dealer knows it."""

    process: subprocess.Popen[bytes]
    log: Path
    current: Path
    status: int | None = None


class Dealer:
    """Starts the processes, and reports for them."""

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._parts: dict[Connection, Started] = {}
        self._tests: set[str] = set()
        self._files_done = 0

    def pytest_collection(self) -> bool:
        return True

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        folder = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        files = self._write_list(session.config, folder)
        try:
            for number in range(min(self._processes, len(files))):
                self._start(session.config, folder, number)
            self._listen(session, folder, sum(len(line.split()) for line in files))
        except KeyboardInterrupt:
            # The terminal sends it to the others, too; they end what they share.
            self._listen(session, folder, len(files))
            raise
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if left := (folder / FILES).read_text().split():
            self._fail(session, "tests", f"nothing was left to run {' '.join(left)}")
        session.testscollected = len(self._tests)
        return True

    def _write_list(self, config: pytest.Config, folder: Path) -> list[str]:
        arguments: dict[str, list[str]] = {}
        sizes: dict[str, int] = {}
        here, root = config.invocation_params.dir, config.rootpath
        ignored = {(here / path).resolve() for path in config.getoption("ignore") or ()}
        for argument in config.args:
            name, colons, test = argument.partition("::")
            path = (here / name).resolve()
            if not path.exists():
                raise pytest.UsageError(f"file or directory not found: {argument}")
            for file in [path] if path.is_file() else sorted(path.rglob("test_*.py")):
                if ignored.isdisjoint([file, *file.parents]):
                    arguments.setdefault(str(file), []).append(f"{file}{colons}{test}")
                    sizes[str(file.relative_to(root))] = file.stat().st_size
        lines = dealt(sizes)
        (folder / ARGUMENTS).write_text(json.dumps(arguments))
        (folder / FILES).write_text("".join(f"{line}\n" for line in lines))
        return lines

    def _start(self, config: pytest.Config, folder: Path, number: int) -> None:
        reader, writer = Pipe(duplex=False)
        log, current = folder / f"log{number}", folder / f"current{number}"
        command = [sys.executable, "-m", "pytest", *config.invocation_params.args]
        # A folder for each: pytest removes what other processes of an account have left.
        command += [f"--basetemp={folder / f'part{number}'}"]
        with writer, log.open("wb") as output, current.open("wb") as test:
            process = subprocess.Popen(
                [*command, f"--part={writer.fileno()}:{test.fileno()}:{folder}"],
                cwd=config.invocation_params.dir,
                env={**os.environ, "TESTS_PROCESS": str(number), "TESTS_PROCESSES": str(self._processes)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[writer.fileno(), test.fileno()],
            )
        self._parts[reader] = Started(process, log, current)

    def _listen(self, session: pytest.Session, folder: Path, files: int) -> None:
        """Until all have ended."""
        while self._parts:
            ready = {one for one in wait(list(self._parts), LOOK_SECONDS) if isinstance(one, Connection)}
            # A program that outlives a process may hold its end of the pipe.
            gone = {one for one, part in self._parts.items() if part.process.poll() is not None} - ready
            for one in ready | gone:
                try:
                    messages: list[Message] = one.recv() if one in ready or one.poll() else END
                except EOFError:
                    messages = END
                for message in messages:
                    self._hear(session, self._parts[one], *message)
                if messages is END:
                    one.close()
                    self._ended(session, self._parts.pop(one))
            # pytest's percentage, which is of tests, is one of files: nobody has read those that are left.
            session.testscollected = len(self._tests) * files // max(self._files_done, 1)
            if session.shouldfail:
                (folder / STOP).touch()

    def _hear(self, session: pytest.Session, part: Started, kind: str, content: Any) -> None:
        hook = session.config.hook
        match kind:
            case "report":
                report = hook.pytest_report_from_serializable(config=session.config, data=content)
                if isinstance(report, pytest.TestReport):
                    self._tests.add(report.nodeid)
                    hook.pytest_runtest_logreport(report=report)
                else:
                    hook.pytest_collectreport(report=report)
            case "warning":
                text, filename, line, when, nodeid = content
                warning = warnings.WarningMessage(text, pytest.PytestWarning, filename, line)
                asked = {"warning_message": warning, "when": when, "nodeid": nodeid, "location": None}
                hook.pytest_warning_recorded.call_historic(kwargs=asked)
            case "file":
                self._files_done += 1
            case "ended":
                part.status = content

    def _ended(self, session: pytest.Session, part: Started) -> None:
        status = part.process.wait()
        if part.status != status or status in BROKEN:
            # It died, as one does whose test hangs.
            log = part.log.read_text(errors="replace")[-LOG_CHARACTERS_MAX:]
            self._fail(
                session,
                part.current.read_text(errors="replace").strip() or "tests",
                f"{log}\nits process ended with status {status}",
            )

    def _fail(self, session: pytest.Session, nodeid: str, text: str) -> None:
        place = nodeid.partition("::")[0], None, nodeid
        session.config.hook.pytest_runtest_logreport(
            report=pytest.TestReport(nodeid, place, keywords={}, outcome="failed", longrepr=text, when="call")
        )
