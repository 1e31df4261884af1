"""Directories of this machine, below one root and through handles of directories only.

Not through fsspec: only `mkdir` itself shows which of two racing calls made a directory, and the loser must not
delete it; and only handles keep what is checked and what is used the same. Links below the root are never followed.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from hms_gateway.metastore.ports.store import Tree
from hms_gateway.runtime.file_versions import make_data_folder
from hms_gateway.storage.files.handles import (
    LISTING,
    REACHING,
    Handle,
    is_folder,
    is_there,
    open_below,
    open_top,
    rename_to_free_name,
)

# What is made is never open to every account, whatever the umask; whether a group may write is the umask's to say.
_MODE: Final = 0o775
_FILE_MODE: Final = 0o664
_ATTEMPTS: Final = 5
# Handles that one call keeps of the parents of directories it makes.
_KEPT_HANDLES_MAX: Final = 16
_NOT_EMPTY: Final = (errno.ENOTEMPTY, errno.EEXIST)


class LocalDirectories:
    """The `Backend` for `file:`. Raises OSError; where a symbolic link is in the way its number is ELOOP."""

    def __init__(self, root: str) -> None:
        """`root` is an absolute path. A symbolic link in it is the operator's and followed once, now."""
        self.root: Final = os.path.realpath(root)

    def open(self, path: str, flags: int = REACHING) -> Handle:
        """The directory `path` below the root, which is `""` itself."""
        # Anew for each use: a root that was removed and made again is a different directory.
        if not path:
            return open_top(self.root, flags)
        with open_top(self.root) as top:
            return open_below(top, path, flags)

    def is_directory(self, path: str) -> bool:
        try:
            self.open(path).close()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            if error.errno == errno.ELOOP:
                return False
            raise
        return True

    def exists(self, path: str) -> bool:
        folder, name = _split(path)
        try:
            with self.open(folder) as parent:
                return not name or is_there(parent, name)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def make(self, path: str) -> bool:
        """True when this call made it. A parent that is removed meanwhile is made again, a few times."""
        folder, name = _split(path)
        if not name:
            return self._make_root()
        for attempt in range(_ATTEMPTS):
            try:
                with self.open(folder) as parent:
                    os.mkdir(name, _MODE, dir_fd=parent.number)
                return True
            except FileExistsError:
                if self.is_directory(path):
                    return False
                raise
            except FileNotFoundError:
                if attempt == _ATTEMPTS - 1:
                    raise
                self._make_folders(folder)
        return False

    def maker(self) -> Callable[[str], bool]:
        """`make` for many paths, which keeps handles of parents; whatever is unusual goes to `make`.

        Of a new partition with three keys no more is asked than to make three directories and to open two.
        """
        handles: dict[str, Handle] = {}

        def make(path: str) -> bool:
            folder, name = _split(path)
            try:
                parent = handles.get(folder) or self._kept(handles, folder)
                try:
                    os.mkdir(name, _MODE, dir_fd=parent.number)
                    return True
                except FileExistsError:
                    return False if is_folder(parent, name) else self.make(path)
            except OSError:
                handles.clear()
                return self.make(path)

        return make

    def delete(self, path: str) -> None:
        folder, name = _split(path)
        try:
            parent = self.open(folder)
        except FileNotFoundError:
            return
        with parent:
            _delete(parent, name)

    def delete_if_empty(self, path: str) -> bool:
        folder, name = _split(path)
        try:
            with self.open(folder) as parent:
                os.rmdir(name, dir_fd=parent.number)
        except OSError:
            return False
        return True

    def move(self, source: str, target_root: "LocalDirectories", target: str) -> None:
        """Below this root or to another one. Raises FileExistsError for a target that is there, even an empty one."""
        folder, name = _split(source)
        new_folder, new_name = _split(target)
        with self.open(folder) as parent:
            if not is_there(parent, name):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
            with target_root._opened(new_folder) as new_parent:
                rename_to_free_name(parent, name, new_parent, new_name)

    def file_sizes(self, path: str) -> Iterator[tuple[str, int]]:
        """Path relative to `path`, and size, of every file below; of what is not a directory there are none."""
        try:
            top = self.open(path)
        except (FileNotFoundError, NotADirectoryError):
            return
        with top:
            for visit in _walk(top, (FileNotFoundError, PermissionError), skips_hidden=True):
                for entry in visit.files:
                    with suppress(FileNotFoundError):
                        yield f"{visit.folder}{entry.name}", entry.stat(follow_symlinks=False).st_size

    def read(self, path: str, bytes_max: int) -> bytes:
        folder, name = _split(path)
        with self.open(folder) as parent:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            with open(os.open(name, flags, dir_fd=parent.number), "rb") as file:
                return file.read(bytes_max + 1)

    def write(self, path: str, content: bytes) -> None:
        """A file that is there already stays as it is, which is FileExistsError."""
        folder, name = _split(path)
        with self._opened(folder) as parent:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(name, flags, _FILE_MODE, dir_fd=parent.number), "wb", buffering=0) as file:
                try:
                    view = memoryview(content)
                    while view:
                        view = view[file.write(view) :]
                    # What a commit points to is there also after the machine has lost its power.
                    os.fdatasync(file.fileno())
                except BaseException:
                    os.unlink(name, dir_fd=parent.number)
                    raise

    def delete_file(self, path: str) -> None:
        folder, name = _split(path)
        with suppress(FileNotFoundError), self.open(folder) as parent:
            os.unlink(name, dir_fd=parent.number)

    def names(self, path: str) -> Iterator[str]:
        """Names of the directories directly below, read as they are asked for; of what is not a directory none."""
        try:
            top = self.open(path, LISTING)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return
        with top, os.scandir(top.number) as entries:
            yield from (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))

    def measure(self, path: str) -> Tree | None:
        """The whole of a directory, hidden files too; None where there is none. Raises where part cannot be read."""
        tree = _Measured()
        try:
            with self.open(path) as top:
                for visit in _walk(top, FileNotFoundError):
                    tree.add(visit)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return tree.result()

    def delete_directories(self, path: str) -> bool:
        """Delete a directory and those below it; False when that stopped at one with something else in it."""
        folder, name = _split(path)
        try:
            with self.open(folder) as parent:
                with open_below(parent, name) as top:
                    _empty(top, keeps_files=True)
                os.rmdir(name, dir_fd=parent.number)
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno not in _NOT_EMPTY:
                raise
            return False
        return True

    def _make_root(self) -> bool:
        try:
            os.mkdir(self.root, _MODE)
            return True
        except FileExistsError:
            if self.is_directory(""):
                return False
            raise
        except FileNotFoundError:
            make_data_folder(Path(self.root).parent)
            return self._make_root()

    def _opened(self, folder: str) -> Handle:
        """The directory, which is made where it is missing."""
        try:
            return self.open(folder)
        except FileNotFoundError:
            self._make_folders(folder)
            return self.open(folder)

    def _make_folders(self, folder: str) -> None:
        self._make_root()
        handle = self.open("")
        for name in folder.split("/") if folder else ():
            handle = _made(handle, name)

    def _kept(self, handles: dict[str, Handle], folder: str) -> Handle:
        """The handle of a directory, which is made where it is missing; it and those above it are kept."""
        if len(handles) >= _KEPT_HANDLES_MAX:
            for kept in list(handles):
                if not folder.startswith(kept):
                    handles.pop(kept, None)
        missing: list[str] = []
        handle = handles.get(folder)
        while handle is None and folder:
            missing.append(folder)
            folder = _split(folder)[0]
            handle = handles.get(folder)
        if handle is None:
            handle = handles[""] = self.open("")
        for path in reversed(missing):
            if len(handles) >= _KEPT_HANDLES_MAX:
                handles.clear()
            handle = handles[path] = _made(handle, _split(path)[1])
        return handle


def _split(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return folder, name


def _made(parent: Handle, name: str) -> Handle:
    with suppress(FileExistsError):
        os.mkdir(name, _MODE, dir_fd=parent.number)
    return open_below(parent, name)


def _delete(parent: Handle, name: str) -> None:
    """Delete what has this name, a directory with all below it, a symbolic link without what it leads to."""
    try:
        os.rmdir(name, dir_fd=parent.number)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=parent.number)
    except OSError as error:
        if error.errno not in _NOT_EMPTY:
            raise
        with open_below(parent, name) as top:
            _empty(top)
        os.rmdir(name, dir_fd=parent.number)


def _empty(top: Handle, *, keeps_files: bool = False) -> None:
    """Delete all below a directory, with few handles open however deep it is."""
    folders: list[str] = []
    for visit in _walk(top, FileNotFoundError):
        visit.directories[:] = [name for name in visit.directories if not _has_gone(visit.handle, name)]
        folders.extend(f"{visit.folder}{name}" for name in visit.directories)
        if keeps_files and visit.files:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), visit.folder)
        for entry in visit.files:
            with suppress(FileNotFoundError):
                os.unlink(entry.name, dir_fd=visit.handle.number)
    above, parent = "", top
    for path in reversed(folders):
        folder, name = _split(path)
        with suppress(FileNotFoundError):
            if folder != above:
                above, parent = folder, open_below(top, folder) if folder else top
            os.rmdir(name, dir_fd=parent.number)


def _has_gone(parent: Handle, name: str) -> bool:
    """Delete a directory that is empty, as those of many partitions are."""
    try:
        os.rmdir(name, dir_fd=parent.number)
    except OSError:
        return False
    return True


class _Visit(NamedTuple):
    """A directory as a walk finds it; `folder` is its path with a slash at the end, `""` for the first."""

    folder: str
    handle: Handle
    directories: list[str]
    files: list[os.DirEntry[str]]


class _Measured:
    """What walks over directories add up to."""

    def __init__(self) -> None:
        self._directories = -1  # the first one is what is measured
        self._files = self._bytes = 0
        self._newest_seconds = 0.0

    def add(self, visit: _Visit) -> None:
        self._directories += 1
        found = [os.fstat(visit.handle.number)]
        for entry in visit.files:
            with suppress(FileNotFoundError):
                found.append(entry.stat(follow_symlinks=False))
                self._files += 1
                self._bytes += found[-1].st_size
        self._newest_seconds = max(self._newest_seconds, *(one.st_mtime for one in found))

    def result(self) -> Tree:
        return Tree(self._directories, self._files, self._bytes, self._newest_seconds)


def _walk(
    top: Handle,
    passed_over: type[OSError] | tuple[type[OSError], ...] = (),
    *,
    skips_hidden: bool = False,
) -> Iterator[_Visit]:
    """A directory and those below it, each after the one it lies in, however they change meanwhile."""
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            handle = open_below(top, folder[:-1] or ".", LISTING)
        except passed_over:
            continue
        with handle:
            visit = _Visit(folder, handle, [], [])
            with os.scandir(handle.number) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        visit.directories.append(entry.name)
                    else:
                        visit.files.append(entry)
            yield visit
        pending += [f"{folder}{name}/" for name in visit.directories if not (skips_hidden and name[0] in "._")]
