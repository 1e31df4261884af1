"""A plugin of pytest: several processes take test files from one list; each reads and runs the next when it is done.

So it does not matter how long a file takes, and no process reads what another runs.
"""

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO

import pytest

# Not yet read, by path.
MODULES = pytest.StashKey[dict[str, pytest.Module]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--take-from", type=Path, help="file with a test file in each line; lines that are taken go away")


def pytest_collection(session: pytest.Session) -> bool:
    """Reads folders and their conftest.py, once: pytest knows fixtures by the objects that it makes of folders here."""
    with _locked(_list(session)) as file:
        files = file.read().split()
    modules = [node for node in session.perform_collect(files, genitems=False) if isinstance(node, pytest.Module)]
    session.stash[MODULES] = {str(node.path.relative_to(session.config.rootpath)): node for node in modules}
    return True


def pytest_runtestloop(session: pytest.Session) -> bool:
    dealt = _dealt(session)
    items = next(dealt, ())
    while items:
        for item, following in pairwise(items):
            _run(session, item, following)
        # What the session shares stays between files: pytest must see which test is next.
        last, items = items[-1], next(dealt, ())
        _run(session, last, items[0] if items else None)
    return True


def _dealt(session: pytest.Session) -> Iterator[Sequence[pytest.Item]]:
    """The tests of one file after the other."""
    hook = session.config.hook
    while (file := take(_list(session))) is not None:
        items = list(session.genitems(session.stash[MODULES][file]))
        hook.pytest_collection_modifyitems(session=session, config=session.config, items=items)
        hook.pytest_collection_finish(session=session)
        # The exit status depends on it.
        session.testscollected += len(items)
        if items:
            yield items


def _run(session: pytest.Session, item: pytest.Item, following: pytest.Item | None) -> None:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


def _list(session: pytest.Session) -> Path:
    path: Path = session.config.getoption("--take-from")
    return path


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
