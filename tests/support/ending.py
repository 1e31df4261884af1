"""How tests end the processes that they have started."""

import subprocess
from typing import Any, TypeAlias

from tests.support.warm_program import WarmProgram

Process: TypeAlias = "subprocess.Popen[bytes] | WarmProgram"


def end(process: "subprocess.Popen[Any] | WarmProgram", seconds_max: float) -> int:
    """Ask it to stop, and kill it after `seconds_max`; its exit status."""
    process.terminate()
    try:
        return process.wait(seconds_max)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
