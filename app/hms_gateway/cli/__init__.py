"""The command line. Nothing heavy is imported before a command needs it."""

from hms_gateway.cli.terminal.importing import gc_paused


def main() -> None:
    """Entry point of `hms-gateway` and of `python -m hms_gateway`."""
    with gc_paused():
        from hms_gateway.cli.application import application

    application(prog_name="hms-gateway")
