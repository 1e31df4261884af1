"""Logging as it was before: what a test configures must not reach the next one, whose output it would change."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import structlog


@contextmanager
def kept_logging() -> Iterator[None]:
    """Afterwards handlers, levels and structlog's configuration are those of before."""
    root = logging.getLogger()
    loggers = [root, logging.getLogger("uvicorn")]
    handlers, levels = root.handlers[:], [logger.level for logger in loggers]
    configuration = structlog.get_config()
    try:
        yield
    finally:
        structlog.configure(**configuration)
        root.handlers[:] = handlers
        for logger, level in zip(loggers, levels, strict=True):
            # Setting it takes from all loggers what they remember.
            if logger.level != level:
                logger.setLevel(level)
