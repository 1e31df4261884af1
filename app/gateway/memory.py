"""Memory that the C library keeps for whoever wants some next, and when it is given back. For glibc: it keeps much."""

import contextlib
import ctypes
from functools import cache

# Below what hashing a password takes (`users`), above what replies are sent in.
LARGE_BLOCK_BYTES = 16 * 1024 * 1024
# The numbers of malloc.h.
MALLOC_TRIM_THRESHOLD, MALLOC_MMAP_THRESHOLD = -1, -3


def keep_no_large_blocks() -> None:
    """From now on give every large block back at once, such as the 19 MiB of a password's hash.

    glibc would keep them for the next one in each thread, for ever.
    """
    with contextlib.suppress(AttributeError, OSError):
        glibc = _c_library()
        glibc.mallopt(MALLOC_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)
        glibc.mallopt(MALLOC_TRIM_THRESHOLD, 2 * LARGE_BLOCK_BYTES)


def return_free_memory() -> None:
    """Give back whole free pages between the smaller blocks, in the arenas of all threads.

    By itself glibc gives back only the end of an arena. Takes a millisecond for ten MiB, and next to none for nothing;
    threads that want memory of the same arena wait.
    """
    with contextlib.suppress(AttributeError, OSError):
        _c_library().malloc_trim(0)


@cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)
