"""Calls from other threads into the thread of an event loop."""

import asyncio
from collections.abc import Callable
from typing import TypeVarTuple

Arguments = TypeVarTuple("Arguments")


def call_in_loop(
    loop: asyncio.AbstractEventLoop, function: Callable[[*Arguments], object], *arguments: *Arguments
) -> bool:
    """Have the loop call `function` soon, from any thread. False when it is closed: nothing waits there any more."""
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        if not loop.is_closed():
            raise
        return False
    return True
