"""File systems of the pipeline: this machine's disks and everything fsspec speaks, below the roots of a job only.

The catalog has locations that any user may have recorded, and a job acts with the rights of its user. On this
machine's disks directories are reached by handle, and links below a root are not followed, as by the gateway.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import fsspec
import msgspec

from hms_gateway.metastore.ports.store import FileSystemError
from hms_gateway.metastore.vocabulary.locations import file_system_of
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.storage.files.handles import LISTING, REACHING, Handle, open_top
from hms_gateway.storage.files.local import LocalDirectories
from hms_gateway.storage.files.places import FileLocation, options_of, parse_place
from hms_gateway.storage.files.remote import is_pattern

# By scheme, options of fsspec; `implementation` names a class of one's own, "package.module.Class".
StorageOptions = Mapping[str, Mapping[str, Any]]

OUTSIDE: Final = "is passed over: it lies outside of the gateway's roots; --root PLACE takes it in"
_LOCAL: Final = ("", "file", "local")


@dataclass(frozen=True)
class Storage:
    """The storage that a job may touch: everything below `roots`, opened with fsspec's `options`. Picklable."""

    options: StorageOptions = field(default_factory=dict, repr=False)
    roots: tuple[str, ...] = ()

    def check(self, location: str) -> None:
        """Raises OptionError for a location outside of the roots, and for one that may mean another place."""
        place = place_of(location)
        for root, _ in _opened_roots(self.roots):
            if root.file_system == place.file_system and place.below(root.path) is not None:
                return
        raise OptionError(OUTSIDE)

    def refusal(self, location: str) -> str:
        """The reason to do nothing at a location; empty where it lies below the roots and its file system opens."""
        try:
            self.check(location)
            if scheme := scheme_of(location):
                open_files(scheme, self.options)
        except OptionError as error:
            return str(error)
        return ""

    def local(self, path: str) -> tuple[LocalDirectories, str]:
        """The innermost root around a path of this machine, and the path's rest below it. Raises OSError."""
        if ".." not in path.split("/"):
            for root, directories in _opened_roots(self.roots):
                if (
                    directories is not None
                    and (rest := FileLocation("file", "", path.rstrip("/")).below(root.path)) is not None
                ):
                    return directories, rest
        raise OSError(errno.EXDEV, OUTSIDE)


def place_of(location: str) -> FileLocation:
    """A location in the form in which they are compared: `s3a` is `s3`. Raises OptionError."""
    try:
        place = parse_place(location)
    except FileSystemError as error:
        raise OptionError(str(error)) from error
    return place._replace(scheme=file_system_of(place.scheme))


@cache
def _opened_roots(roots: tuple[str, ...]) -> tuple[tuple[FileLocation, LocalDirectories | None], ...]:
    """The innermost first; those of this machine also as they are spelled without links."""
    found: list[tuple[FileLocation, LocalDirectories | None]] = []
    for place in map(place_of, roots):
        directories = LocalDirectories(place.path or "/") if place.is_local and not place.is_elsewhere else None
        found.append((place, directories))
        if directories is not None:
            found.append((place._replace(path=directories.root.rstrip("/")), directories))
    return tuple(sorted(found, key=lambda root: -len(root[0].path)))


def absolute(location: str) -> str:
    """A path of this machine in full, and any other location as it is: executors have another working directory."""
    if scheme_of(location) or location.startswith("file:"):
        return location
    return str(Path(location).absolute())


def scheme_of(location: str) -> str:
    """The scheme of a location, empty for one of this machine's disks."""
    head, colon, _ = location.partition(":")
    scheme = head.lower() if colon and "/" not in head else ""
    return "" if scheme in _LOCAL else scheme


def local_path(location: str) -> str:
    """The path of a location on this machine's disks: of `/a`, `file:/a` and `file:///a`. Raises OptionError."""
    head, colon, rest = location.partition(":")
    path = rest if colon and "/" not in head else location
    if path.startswith("//"):
        authority, slash, path = path[2:].partition("/")
        if authority.lower() not in ("", "localhost"):
            raise OptionError(f"location {location} is on the disk of {authority}; give a path of this machine")
        path = slash + path
    if not path.startswith("/"):
        raise OptionError(f"location {location} is not absolute; begin it with a slash or a scheme")
    return path.rstrip("/") or "/"


def open_files(scheme: str, options: StorageOptions) -> Any:
    """fsspec's file system of a scheme, the same one for all who ask in this process. Raises OptionError."""
    found = _opened(scheme, msgspec.json.encode(dict(options_of(scheme, options))))
    if isinstance(found, OptionError):
        raise OptionError(str(found)) from found.__cause__
    return found


@cache
def _opened(scheme: str, encoded: bytes) -> Any:
    """The file system, or why there is none: a library that is missing is looked for once."""
    options: dict[str, Any] = msgspec.json.decode(encoded)
    name = file_system_of(scheme)
    implementation = options.pop("implementation", None)
    try:
        if implementation:
            fsspec.register_implementation(name, implementation, clobber=True)
        # A cached listing would hide what others do.
        return fsspec.filesystem(name, **{"use_listings_cache": False, "skip_instance_cache": True, **options})
    except Exception as error:  # Each library has exceptions of its own, of no common class.
        refused = OptionError(f"{scheme}: cannot be read here: {_said(error)}")
        refused.__cause__ = error
        return refused


def _said(error: Exception) -> str:
    """In one line: pyarrow names all places where it has looked for libraries."""
    text = str(error).strip()
    if "libhdfs" in text or "libjvm" in text:
        return "libhdfs does not load"
    first = (text.splitlines() or [type(error).__name__])[0]
    return f"{first}; install its fsspec library" if isinstance(error, ImportError | ValueError) else first


def same_file_system(one: str, other: str) -> bool:
    """True if two locations have the same scheme; `s3a` is `s3`."""
    return file_system_of(scheme_of(one)) == file_system_of(scheme_of(other))


# One directory: its entries with sizes and times. This machine's disks are read without fsspec, which is slower.
#
# Nothing outside of a job's roots is looked at (`Storage`).


# Directories or files of one task that are read at the same time, where each is a request.
_AT_ONCE: Final = 16
Item = TypeVar("Item")
Made = TypeVar("Made")
_TIMES: Final = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")
# Names of file systems for the version of a file or the time of its last change.
_VERSIONS: Final = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")


class ListingProblem(Exception):
    """A directory cannot be listed; `path` and `reason` are apart for reports."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} {reason}")
        self.path, self.reason = path, reason


class Entry(NamedTuple):
    """`modified_ms` is 0 where the file system does not know; `version` is another one when the content is.

    What is no file counts as a directory, such as a link, so that a look for files in it says that it is none.
    """

    name: str
    is_directory: bool
    bytes: int
    modified_ms: int
    is_link: bool = False
    version: Any = ""


def files_of(location: str, storage: Storage) -> "Files":
    """The file system of a location. Raises OptionError for one outside of the roots, or that does not open."""
    storage.check(location)
    scheme = scheme_of(location)
    if not scheme:
        return LocalFiles(storage)
    roots = [root for root in storage.roots if same_file_system(root, location)]
    return RemoteFiles(scheme, open_files(scheme, storage.options), roots)


def is_hidden(name: str, *, is_directory: bool) -> bool:
    """True for names that Hive and Spark ignore; a directory `_a=1` is a partition all the same."""
    return name.startswith(".") or (name.startswith("_") and not (is_directory and "=" in name))


def visible_files(files: "Files", top: str, below: str = "") -> Iterator[tuple[str, Entry]]:
    """The files in a directory and those below it, by their paths from there. Raises ListingProblem."""
    for entry in files.scan(f"{top}/{below}" if below else top):
        name = f"{below}/{entry.name}" if below else entry.name
        if not is_hidden(entry.name, is_directory=entry.is_directory):
            if entry.is_directory:
                yield from visible_files(files, top, name)
            else:
                yield name, entry


class LocalFiles:
    """This machine's disks, by handles of directories. Paths are those of `root`, without a slash at the end.

    Methods raise OSError; `scan` and `is_directory` raise ListingProblem. `waits` says that a listing mostly waits for
    a network, so that several at once are faster.
    """

    waits = False

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def root(self, location: str) -> str:
        return local_path(location)

    def location(self, path: str) -> str:
        """The location of a path, as a table has it."""
        return f"file:{path}"

    def scan(self, path: str) -> Iterator[Entry]:
        """The entries of a directory; one that vanishes meanwhile, or is a link to nowhere, is left out."""
        with (
            _translated(path, self.open, path, LISTING) as folder,
            _translated(path, os.scandir, folder.number) as entries,
        ):
            for entry in entries:
                try:
                    found = entry.stat(follow_symlinks=False)
                    is_link = stat.S_ISLNK(found.st_mode)
                    if is_link:
                        entry.stat()
                except OSError:
                    continue
                is_file, changed = stat.S_ISREG(found.st_mode), found.st_mtime_ns
                yield Entry(entry.name, not is_file, found.st_size, changed // 1_000_000, is_link, changed)

    def is_directory(self, path: str) -> bool:
        try:
            self.open(path).close()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise ListingProblem(path, _reason(error)) from error
        return True

    def size(self, path: str) -> int:
        with self.around(path) as (folder, name):
            return os.stat(name, dir_fd=folder.number, follow_symlinks=False).st_size

    def read(self, path: str, offset: int, length: int) -> bytes:
        """The bytes of a file, as many as there are."""
        file = self.open_file(path, os.O_RDONLY)
        try:
            return os.pread(file, length, offset)
        finally:
            os.close(file)

    def open_file(self, path: str, flags: int) -> int:
        """The number of a file that is opened or, with the flags for it, made. Raises OSError."""
        with self.around(path) as (folder, name):
            return os.open(name, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666, dir_fd=folder.number)

    def make(self, path: str) -> None:
        """A directory with those above it; one that is there is fine. Raises OSError."""
        directories, rest = self._storage.local(path)
        directories.make(rest)

    @contextmanager
    def reading(self, path: str) -> Iterator[Any]:
        with open(self.open_file(path, os.O_RDONLY), "rb") as file:
            yield file

    @contextmanager
    def writing(self, path: str) -> Iterator[Any]:
        """A new file; it is on the disk when the body has ended."""
        self.make(os.path.dirname(path))
        with open(self.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())

    def settle(self, path: str) -> None:
        """The names in a new directory are on the disk, and its own name is."""
        for folder in (path, os.path.dirname(path), os.path.dirname(os.path.dirname(path))):
            with self.open(folder, LISTING) as handle:
                os.fsync(handle.number)

    def remove_file(self, path: str) -> None:
        """One that is gone is fine."""
        with suppress(FileNotFoundError), self.around(path) as (folder, name):
            os.unlink(name, dir_fd=folder.number)

    def remove_if_empty(self, path: str) -> None:
        with suppress(OSError), self.around(path) as (folder, name):
            os.rmdir(name, dir_fd=folder.number)

    def delete(self, path: str) -> None:
        """A directory with everything in it."""
        directories, rest = self._storage.local(path)
        if not rest:
            raise OSError(errno.EPERM, "is a root, which is not deleted")
        directories.delete(rest)

    @contextmanager
    def around(self, path: str) -> Iterator[tuple[Handle, str]]:
        """The directory in which something lies, and its name there. Raises OSError."""
        folder, _, name = path.rpartition("/")
        with self.open(folder) as handle:
            yield handle, name

    def open(self, path: str, flags: int = REACHING) -> Handle:
        """A directory; a link on the way from the root is ELOOP. Raises OSError."""
        directories, rest = self._storage.local(path)
        # The root is without links already, so that one call does.
        return open_top(f"{directories.root.rstrip('/')}/{rest}", flags)


class RemoteFiles:
    """A file system that fsspec speaks, with the methods of LocalFiles; `system` is its own."""

    waits = True

    def __init__(self, scheme: str, system: Any, roots: list[str]) -> None:
        self._scheme, self.system = scheme, system
        self._tops = [self.root(location) for location in roots]

    def root(self, location: str) -> str:
        """The path with the authority, in fsspec's spelling; the top of an HDFS is empty."""
        path: str = self.system._strip_protocol(location)
        return path.rstrip("/")

    def location(self, path: str) -> str:
        return f"{self._scheme}://{path}"

    def checked(self, path: str) -> str:
        """A path below the roots. Raises OSError for another one."""
        if ".." in path.split("/") or not any(f"{path}/".startswith(f"{top}/") for top in self._tops):
            raise OSError(errno.EXDEV, OUTSIDE)
        return path

    def scan(self, path: str) -> Iterator[Entry]:
        for found in _translated(path, lambda: self.system.ls(self.checked(path), detail=True)):
            name = str(found["name"]).rstrip("/").rpartition("/")[2]
            # Object stores have an empty object for a directory, by its own name.
            if str(found["name"]).strip("/") != path.strip("/"):
                version = next((found[each] for each in _VERSIONS if found.get(each) is not None), "")
                size, is_directory = int(found.get("size") or 0), found["type"] == "directory"
                yield Entry(name, is_directory, size, _milliseconds(found), version=version)

    def is_directory(self, path: str) -> bool:
        return bool(_translated(path, lambda: self.system.isdir(self.checked(path))))

    def size(self, path: str) -> int:
        return int(_as_os_error(lambda: self.system.size(self.checked(path))))

    def read(self, path: str, offset: int, length: int) -> bytes:
        return bytes(_as_os_error(lambda: self.system.cat_file(self.checked(path), start=offset, end=offset + length)))

    @contextmanager
    def reading(self, path: str) -> Iterator[Any]:
        with self.system.open(self.checked(path), "rb") as file:
            yield file

    @contextmanager
    def writing(self, path: str) -> Iterator[Any]:
        with self.system.open(self.checked(path), "wb") as file:
            yield file

    def settle(self, path: str) -> None:
        """A file is there when it is closed."""

    def remove_file(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self.system.rm_file(self.checked(path))

    def remove_if_empty(self, path: str) -> None:
        """Object stores have no directories."""
        with suppress(OSError):
            self.system.rmdir(self.checked(path))

    def delete(self, path: str) -> None:
        if is_pattern(self._scheme, path):
            raise OSError(
                errno.EINVAL, "is not deleted: this file system's library takes '*', '?' and '[' for a pattern"
            )
        _as_os_error(lambda: self.system.rm(self.checked(path), recursive=True))


Files = LocalFiles | RemoteFiles


def _as_os_error(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except OSError:
        raise
    except Exception as error:  # Each library of fsspec has exceptions of its own, of no common class.
        raise OSError(f"{type(error).__name__}: {error}") from error


def _translated(path: str, call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except Exception as error:  # Each library of fsspec has exceptions of its own, of no common class.
        raise ListingProblem(path, _reason(error)) from error


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "is not there (any more)"
    if isinstance(error, NotADirectoryError):
        return "is not a directory (any more)"
    if isinstance(error, PermissionError):
        return "may not be listed: permission denied"
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return "leads through a symbolic link, which is not followed below a root; --root names the link itself"
    return f"cannot be listed: {getattr(error, 'strerror', None) or error or type(error).__name__}"


def _milliseconds(found: dict[str, Any]) -> int:
    for name in _TIMES:
        value = found.get(name)
        if isinstance(value, datetime):
            return int(value.timestamp() * 1000)
        if isinstance(value, int | float):
            return int(value * 1000)
    return 0


# The files of a directory in one row.


_DEPTH_MAX: Final = 32


class Folded(NamedTuple):
    """Files that are not hidden. `names` are paths of those that are not empty, `largest` is one of these paths."""

    files: int = 0
    bytes: int = 0
    largest: str = ""
    largest_bytes: int = 0
    names: tuple[str, ...] = ()


def fold(files: Files, path: str, entries: Iterable[Entry], depth: int = 0) -> Folded:
    """The files in a directory and those below it, hidden directories left out. Raises ListingProblem."""
    count = total = largest_bytes = 0
    largest, names = "", list[str]()
    for name, is_directory, size, _, _, _ in entries:
        if is_hidden(name, is_directory=is_directory):
            continue
        if is_directory:
            if depth >= _DEPTH_MAX:
                raise ListingProblem(f"{path}/{name}", f"lies more than {_DEPTH_MAX} directories below a table's")
            inner = fold(files, f"{path}/{name}", files.scan(f"{path}/{name}"), depth + 1)
            if not inner.files:
                continue
            count, total = count + inner.files, total + inner.bytes
            names += [f"{name}/{other}" for other in inner.names]
            size, name = inner.largest_bytes, f"{name}/{inner.largest}"
        else:
            count, total = count + 1, total + size
            if size:
                names.append(name)
        if size > largest_bytes or not largest:
            largest, largest_bytes = name, size
    return Folded(count, total, largest, largest_bytes, tuple(names))


# The format of a file, by how it begins.


HEAD_BYTES: Final = 8
# A version follows, which is not a letter: texts may begin with these as well.
_BEFORE_A_VERSION: Final = (b"SEQ", b"RCF")
_BEGINNINGS: Final = (
    (b"PAR1", "parquet"),
    (b"PARE", "parquet"),
    (b"ORC", "orc"),
    (b"Obj\x01", "avro"),
    (b"SEQ", "sequence"),
    (b"RCF", "rcfile"),
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\x28\xb5\x2f\xfd", "zstandard"),
)


# What a reader of texts reads.
_TEXTS: Final = ("text", "gzip", "bzip2", "zstandard")
# Where each look costs a request, so many files of a directory have to do.
_HEADS_A_REMOTE_DIRECTORY: Final = 3


def format_of(head: bytes) -> str:
    """`text` for everything that does not begin like a known format, `empty` for nothing."""
    if not head:
        return "empty"
    if head[:3] in _BEFORE_A_VERSION and head[3:4] >= b" ":
        return "text"
    return next((name for beginning, name in _BEGINNINGS if head.startswith(beginning)), "text")


def formats_in(files: Files, path: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Name and format of the files in a directory, or of some where the file system is away."""
    for name in _some(names) if files.waits else names:
        try:
            yield name, format_of(files.read(f"{path}/{name}", 0, HEAD_BYTES))
        except OSError:
            # It is gone, or cannot be read: footers say so where it matters.
            continue


def unlike(files: Files, path: str, names: Sequence[str]) -> tuple[tuple[str, str], tuple[str, str]] | None:
    """Two files of a directory, with their formats, that no reader reads both; None where there are none."""
    first: tuple[str, str] | None = None
    for found in formats_in(files, path, names) if len(names) > 1 else ():
        if first is not None and _reader_of(found) != _reader_of(first):
            return first, found
        first = first or found
    return None


def _reader_of(found: tuple[str, str]) -> str:
    return "text" if found[1] in _TEXTS else found[1]


def _some(names: Sequence[str]) -> Sequence[str]:
    """The first, the last and the one in the middle: files of one writer follow each other."""
    if len(names) <= _HEADS_A_REMOTE_DIRECTORY:
        return names
    ordered = sorted(names)
    return ordered[0], ordered[len(ordered) // 2], ordered[-1]


def at_once(function: Callable[[Item], Iterable[Made]], items: Iterable[Item], *, waits: bool) -> Iterator[Made]:
    """All that a function makes of each item, in their order; by several threads where it `waits` for a network."""
    if not waits:
        yield from chain.from_iterable(map(function, items))
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from chain.from_iterable(pool.map(lambda item: list(function(item)), items))


def is_text(path: str) -> bool:
    """False where a name is not UTF-8."""
    if path.isascii():
        return True
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(path: str) -> str:
    """A path as text, also where a name is not UTF-8."""
    return path.encode(errors="backslashreplace").decode()
