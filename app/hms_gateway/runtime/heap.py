"""Settings of the C library's malloc for processes that serve: little free memory stays with them."""

import asyncio
import contextlib
import ctypes
from functools import cache
from typing import Any, Final

# Below what hashing a password and a large body take, above what replies are sent in. While 40 clients repeat uploads
# of 32 MiB, 343 MiB are resident (peak 702); with 16 MiB here it was 510 (peak 728). Long replies cost the same.
LARGE_BLOCK_BYTES: Final = 4 * 1024 * 1024
# glibc gives threads arenas of their own, eight for each core, and what is freed in one helps no other: after 200,000
# mutated messages 292 MiB stayed, with one arena 135. Threads that hold Python's lock have nothing to gain from more.
ARENAS_MAX: Final = 2
# uvloop has a buffer of this size for each connection with TLS.
UVLOOP_BUFFER_BYTES: Final = 256 * 1024
# The numbers of malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8


@cache
def _library() -> Any:
    """The C library, with types for addresses."""
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    library.malloc.argtypes = [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    return library


def keep_little_free_memory() -> None:
    """From now on give every large block back at once, such as the 19 MiB of a password's hash, and share the rest.

    glibc would keep both for the next call in each thread, for ever.
    """
    with contextlib.suppress(AttributeError, OSError):
        glibc = _library()
        glibc.mallopt(_ARENA_MAX, ARENAS_MAX)
        glibc.mallopt(_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)
        glibc.mallopt(_TRIM_THRESHOLD, 2 * LARGE_BLOCK_BYTES)


def keep_place_for_handshake(loop: asyncio.AbstractEventLoop) -> None:
    """Reserve memory for a handshake that begins in the loop's next turn, before uvloop takes its buffer in this one.

    Else the buffer, of which little is ever used, gets the memory that the handshake before has used and freed, and the
    next one needs new memory: 50 KiB stay for each idle connection, and with this 28.
    """
    with contextlib.suppress(AttributeError, OSError):
        loop.call_soon(_library().free, _library().malloc(UVLOOP_BUFFER_BYTES))
