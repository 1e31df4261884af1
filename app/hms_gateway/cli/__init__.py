"""The command line. Nothing heavy is imported before a command needs it."""

import contextlib
import os
import sys
from collections.abc import Iterator

from hms_gateway.cli.terminal.importing import gc_paused
from hms_gateway.cli.terminal.output import guard_terminals


def main() -> None:
    """Entry point of `hms-gateway` and of `python -m hms_gateway`."""
    with gc_paused():
        from hms_gateway.cli.application import application

    try:
        with _open_streams():
            guard_terminals()
            application(prog_name="hms-gateway")
    except OSError as error:
        from hms_gateway.cli.terminal.output import unwritten

        sys.exit(unwritten(error))


@contextlib.contextmanager
def _open_streams() -> Iterator[None]:
    """A job may be started without standard streams: it reads nothing then, and what it prints is lost."""
    with contextlib.ExitStack() as opened:
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            if getattr(sys, name) is None:
                setattr(sys, name, opened.enter_context(open(os.devnull, mode, encoding="utf-8")))
        try:
            yield
        finally:
            sys.stdout.flush()
