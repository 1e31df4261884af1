"""The command line. Nothing heavy is imported before a command needs it."""


def main() -> None:
    """Entry point of `hms-gateway` and of `python -m app`."""
    from app.cli.application import application

    application(prog_name="hms-gateway")
