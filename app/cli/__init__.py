"""The command line. Nothing heavy is imported before a command needs it."""

from app.cli.importing import uncollected


def main() -> None:
    """Entry point of `hms-gateway` and of `python -m app`."""
    with uncollected():
        from app.cli.application import application

    application(prog_name="hms-gateway")
