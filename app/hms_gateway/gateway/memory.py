"""Returns freed memory to the operating system; glibc keeps large arenas otherwise."""

import contextlib
import ctypes
from functools import cache

# Below what hashing a password and a large body take, above what replies are sent in. While 40 clients repeat uploads
# of 32 MiB, 343 MiB are resident (peak 702); with 16 MiB here it was 510 (peak 728). Long replies cost the same.
LARGE_BLOCK_BYTES = 4 * 1024 * 1024
# glibc gives threads arenas of their own, eight for each core, and what is freed in one helps no other: after 200,000
# mutated messages 292 MiB stayed, with one arena 135. Threads that hold Python's lock have nothing to gain from more.
ARENAS_MAX = 2
# The numbers of malloc.h.
MALLOC_TRIM_THRESHOLD, MALLOC_MMAP_THRESHOLD, MALLOC_ARENA_MAX = -1, -3, -8


def keep_little_free_memory() -> None:
    """From now on give every large block back at once, such as the 19 MiB of a password's hash, and share the rest.

    glibc would keep both for the next call in each thread, for ever.
    """
    with contextlib.suppress(AttributeError, OSError):
        glibc = _c_library()
        glibc.mallopt(MALLOC_ARENA_MAX, ARENAS_MAX)
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
