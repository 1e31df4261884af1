"""Handles of directories, reached without following a symbolic link.

By `openat2` where the kernel has it, else step by step. What is checked through a handle is what is used through it,
whatever happens to the names meanwhile.
"""

import ctypes
import errno
import os
import platform
import stat
import sys
from functools import lru_cache
from typing import Final, Self

# A handle to reach names below it, and one to list them as well. Only Linux distinguishes the two.
REACHING: Final = getattr(os, "O_PATH", os.O_RDONLY)
LISTING: Final = os.O_RDONLY

_FLAGS: Final = os.O_DIRECTORY | os.O_CLOEXEC
# <linux/openat2.h>
_NO_SYMLINKS: Final = 0x04 | 0x02  # and RESOLVE_NO_MAGICLINKS
_BENEATH: Final = 0x08 | _NO_SYMLINKS
_WORKING_DIRECTORY: Final = -100  # AT_FDCWD, where a path is absolute
_ATTEMPTS: Final = 8
_NO_REPLACE: Final = 1  # RENAME_NOREPLACE

# The number of openat2, which is the same wherever calls were numbered together; elsewhere handles go step by step.
_OPENAT2: Final = 437
_MACHINES: Final = frozenset(
    {"x86_64", "i386", "i686", "aarch64", "armv7l", "armv8l", "riscv64", "ppc64", "ppc64le", "s390x", "loongarch64"}
)


class _How(ctypes.Structure):
    """`struct open_how`."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_LIBRARY: Final = ctypes.CDLL(None, use_errno=True)
_SYSTEM_CALL: Final = _LIBRARY.syscall
_SYSTEM_CALL.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t]
_SYSTEM_CALL.restype = ctypes.c_long
_HOWS: Final = {
    (flags, resolve): _How(flags | _FLAGS, 0, resolve)
    for flags in (REACHING, LISTING)
    for resolve in (_NO_SYMLINKS, _BENEATH)
}
_HOW_BYTES: Final = ctypes.sizeof(_How)


class Handle:
    """An open directory. It is closed by `with` or, where threads share it, when the last one forgets it."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def close(self) -> None:
        number, self.number = self.number, -1
        if number >= 0:
            os.close(number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


def open_top(path: str, flags: int = REACHING) -> Handle:
    """The directory of an absolute path that has no symbolic link and no `..` in it. Raises OSError."""
    if has_openat2():
        return Handle(_by_kernel(_WORKING_DIRECTORY, path, _HOWS[flags, _NO_SYMLINKS]))
    with Handle(os.open("/", REACHING | _FLAGS)) as top:
        return open_below(top, path.strip("/") or ".", flags)


def open_below(top: Handle, path: str, flags: int = REACHING) -> Handle:
    """The directory `path` below another one: names with `/` in between, none of them `..`. Raises OSError.

    A symbolic link on the way is ELOOP.
    """
    if "/" in path and has_openat2():
        return Handle(_by_kernel(top.number, path, _HOWS[flags, _BENEATH]))
    return _by_steps(top, path, flags)


def rename_to_free_name(source: Handle, name: str, target: Handle, new_name: str) -> None:
    """Raises FileExistsError where the new name is taken, and OSError."""
    if has_renameat2():
        if _LIBRARY.renameat2(source.number, os.fsencode(name), target.number, os.fsencode(new_name), _NO_REPLACE) == 0:
            return
        number = ctypes.get_errno()
        if number == errno.EEXIST:
            raise _taken(new_name)
        # Some file systems cannot promise that nothing is replaced.
        if number not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
            raise OSError(number, os.strerror(number), name, None, new_name)
    if is_there(target, new_name):
        raise _taken(new_name)
    os.rename(name, new_name, src_dir_fd=source.number, dst_dir_fd=target.number)


def is_there(parent: Handle, name: str) -> bool:
    """Whether anything has this name, be it a symbolic link that leads nowhere."""
    try:
        os.stat(name, dir_fd=parent.number, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def is_folder(parent: Handle, name: str) -> bool:
    """Whether a directory itself has this name, and not a link to one."""
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=parent.number, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _taken(name: str) -> FileExistsError:
    return FileExistsError(f"{name} exists already")


@lru_cache(maxsize=1)
def has_openat2() -> bool:
    """Whether this kernel has it and lets us call it: some containers forbid what they do not know."""
    if sys.platform != "linux" or platform.machine() not in _MACHINES:
        return False
    try:
        os.close(_by_kernel(_WORKING_DIRECTORY, "/", _HOWS[REACHING, _NO_SYMLINKS]))
    except OSError:
        return False
    return True


@lru_cache(maxsize=1)
def has_renameat2() -> bool:
    return sys.platform == "linux" and hasattr(_LIBRARY, "renameat2")


def _by_kernel(top: int, path: str, how: _How) -> int:
    text = os.fsencode(path)
    if b"\0" in text:
        raise ValueError("embedded null byte")
    number = errno.EAGAIN
    for _ in range(_ATTEMPTS):
        handle: int = _SYSTEM_CALL(_OPENAT2, top, text, ctypes.byref(how), _HOW_BYTES)
        if handle >= 0:
            return handle
        number = ctypes.get_errno()
        # The kernel gives up where directories are renamed while it looks.
        if number not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(number, os.strerror(number), path)


def _by_steps(top: Handle, path: str, flags: int) -> Handle:
    names = path.split("/")
    handle = top
    for name in names[:-1]:
        handle = _step(handle, name, REACHING)
    return _step(handle, names[-1], flags)


def _step(parent: Handle, name: str, flags: int) -> Handle:
    try:
        return Handle(os.open(name, flags | _FLAGS | os.O_NOFOLLOW, dir_fd=parent.number))
    except NotADirectoryError:
        # Which is how a symbolic link looks that is not followed.
        if stat.S_ISLNK(os.stat(name, dir_fd=parent.number, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise
