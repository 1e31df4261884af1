"""`python -m app` is the command `hms-gateway`."""

from app.cli import main

main()
