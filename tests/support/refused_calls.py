"""System calls that the kernel refuses with EPERM: to the calling thread and those it starts, or to a program.

    python tests/support/refused_calls.py setpriority,sched_setaffinity COMMAND…

A filter (seccomp) is all it takes, without a library; it stays until its threads and processes have ended.
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Sequence

NUMBERS = {
    "x86_64": {"sched_setaffinity": 203, "sched_getaffinity": 204, "setpriority": 141},
    "aarch64": {"sched_setaffinity": 122, "sched_getaffinity": 123, "setpriority": 140},
}.get(platform.machine(), {})
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
# Of the language of the filter: load the number of the call, skip the next instruction if it is another, return.
LOAD_NUMBER, SKIP_UNLESS, RETURN = 0x20, 0x15, 0x06
REFUSE, ALLOW = 0x0005_0000 | errno.EPERM, 0x7FFF_0000
CANNOT_FILTER = "needs Linux and a known processor" if sys.platform != "linux" or not NUMBERS else ""


def refuse(calls: Sequence[str]) -> None:
    """Raises OSError where the kernel has no filters."""
    program = [(LOAD_NUMBER, 0, 0, 0)]
    for call in calls:
        program += [(SKIP_UNLESS, 0, 1, NUMBERS[call]), (RETURN, 0, 0, REFUSE)]
    program.append((RETURN, 0, 0, ALLOW))
    instructions = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
    described = ctypes.create_string_buffer(struct.pack("HP", len(program), ctypes.addressof(instructions)))
    library = ctypes.CDLL(None, use_errno=True)
    nothing = ctypes.c_ulong(0)
    for arguments in (
        (PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), nothing, nothing, nothing),
        (PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), ctypes.byref(described), nothing, nothing),
    ):
        if library.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    refuse(sys.argv[1].split(","))
    os.execvp(sys.argv[2], sys.argv[2:])
