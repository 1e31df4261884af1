"""What threads hand to an event loop."""

import asyncio

import pytest

from hms_gateway.runtime.suspension import call_in_loop


def test_only_a_closed_loop_is_excused() -> None:
    class Broken(asyncio.SelectorEventLoop):
        def call_soon_threadsafe(self, *arguments: object, **options: object) -> asyncio.Handle:
            raise RuntimeError("broken")

    loop = Broken()
    with pytest.raises(RuntimeError, match="broken"):
        call_in_loop(loop, print)
    loop.close()
    assert not call_in_loop(loop, print)
