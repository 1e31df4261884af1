"""A gateway of an account without rights, as started by other programs: nice, unshare, taskset and the like."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import GatewayServer

ACCOUNT = 10_001
IS_ROOT = os.geteuid() == 0
# Ends what is put before a command. Where the tests have no rights, their own account is as good.
AS_ACCOUNT = ("setpriv", f"--reuid={ACCOUNT}", f"--regid={ACCOUNT}", "--clear-groups") if IS_ROOT else ()


class OrdinaryServer(GatewayServer):
    """Started by `under`, which changes to the account; the data folder, and nothing else, is the account's."""

    def __init__(self, data_dir: Path, under: Sequence[str]) -> None:
        super().__init__(data_dir)
        self._under = under

    def _command(self) -> list[str]:
        if IS_ROOT:
            for path in (self.data_dir, *self.data_dir.rglob("*")):
                os.chown(path, ACCOUNT, ACCOUNT)
        return [*self._under, *super()._command()]


@contextmanager
def data_folder() -> Iterator[Path]:
    """One of the account, on a disk. pytest's own are closed to it whenever another run of tests begins."""
    with tempfile.TemporaryDirectory(prefix="hms-account-", dir="/var/tmp") as name:
        if IS_ROOT:
            os.chown(name, ACCOUNT, ACCOUNT)
        yield Path(name)


def skip_unless_possible(under: Sequence[str]) -> None:
    """Skip the test where `under` does not start our Python."""
    for program in under:
        if program in ("nice", "setpriv", "taskset", "unshare") and not shutil.which(program):
            pytest.skip(f"needs {program}")
    tried = subprocess.run([*under, sys.executable, "-c", ""], capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    if tried.returncode:
        pytest.skip(f"not possible here: {tried.stderr.strip()}")
