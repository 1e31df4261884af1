"""Java programs of tests, compiled once for each text of them: to compile one takes longer than most do their work."""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from tests.oracle.peer import SHORT_LIVES
from tests.support.patience import PATIENCE_SECONDS

KEPT: Final = Path(sys.prefix) / "java-classes"


def class_path(libraries: Path, *sources: Path) -> str:
    """The class path of programs that use the jars of a folder. Skips without a JDK."""
    javac = shutil.which("javac")
    if javac is None:
        pytest.skip("no JDK (command javac)")
    parts = [os.path.realpath(javac), *sorted(jar.name for jar in libraries.iterdir())]
    digest = hashlib.blake2b("\n".join([*parts, *(source.read_text("utf-8") for source in sources)]).encode())
    classes = KEPT / digest.hexdigest()[:32]
    if not classes.exists():
        KEPT.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=KEPT) as folder:
            made = Path(folder) / "classes"
            options = ("-nowarn", "-proc:none", "-Xlint:none", "-d", made, "-cp", f"{libraries}/*")
            subprocess.run(
                ["javac", *map(str, (*options, *sources))],
                check=True,
                timeout=PATIENCE_SECONDS,
                env=os.environ | SHORT_LIVES,
            )
            # Another process of the run may have made it meanwhile.
            with contextlib.suppress(OSError):
                made.rename(classes)
    return f"{classes}:{libraries}/*"
