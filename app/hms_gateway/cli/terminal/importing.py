"""Importing much at once."""

import contextlib
import gc
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
