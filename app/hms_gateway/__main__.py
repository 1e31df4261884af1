"""`python -m hms_gateway` is the command `hms-gateway`."""

from hms_gateway.cli import main

main()
