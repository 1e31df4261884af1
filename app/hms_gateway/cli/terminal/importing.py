"""Importing much at once, and without what nobody needs."""

import contextlib
import gc
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Import inside it without the garbage collector, which then leaves out for ever what was made.

    Modules are hundreds of thousands of objects that stay; looking through them again and again is a fifth of a start.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def import_structlog() -> None:
    """Import structlog without rich, which it takes along if it can: a server prints no tables and no colours."""
    missing = "rich" not in sys.modules
    if missing:
        sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        import structlog  # noqa: F401
    finally:
        if missing:
            del sys.modules["rich"]
