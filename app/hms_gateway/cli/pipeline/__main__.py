"""The jobs as a program: `python -m hms_gateway.cli.pipeline crawl …`; spark-submit gets the path of this file."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # spark-submit puts this folder in front, whose modules are none of the top level.
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != Path(__file__).resolve().parent]
    from hms_gateway.cli.pipeline.commands import PIPELINE
    from hms_gateway.cli.terminal.output import guard_terminals

    guard_terminals()
    PIPELINE(prog_name="hms-gateway pipeline")
