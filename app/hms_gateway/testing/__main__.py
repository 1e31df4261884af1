"""`python -m hms_gateway.testing`: the host of metastores, without what slows its start."""

from hms_gateway.cli.terminal.importing import gc_paused, import_structlog

with gc_paused():
    import_structlog()
    from hms_gateway.testing.host import main

if __name__ == "__main__":
    main()
