"""Finds the root a location lies below: nothing outside the roots is made, moved, deleted, listed or measured (D12).

For traces, directories note what calls do with them. Locations are not noted: some hold credentials.
"""

import errno
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from hms_gateway.metastore.ports.store import DirectoryNotMade, FileSystemAway, FileSystemError, Reach, Tree
from hms_gateway.runtime.call_record import current_notes
from hms_gateway.runtime.presented import is_recorded
from hms_gateway.storage.files.local import LocalDirectories
from hms_gateway.storage.files.places import (
    FileLocation,
    FilePolicy,
    options_of,
    parse_place,
    policy_of,
)

if TYPE_CHECKING:
    from hms_gateway.storage.files.buckets import BucketDirectories, Copied

_log = logging.getLogger(__name__)

# What below a root has to be taken apart to know where it leads; libraries for remote ones read more into a path.
_IS_UNUSUAL: Final = re.compile(r"(?:^|/)\.{0,2}(?:/|$)|\0").search
_IS_UNUSUAL_REMOTE: Final = re.compile(r"(?:^|/)\.{0,2}(?:/|$)|\0|::|%").search
_AWAY: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ESTALE, errno.ETIMEDOUT)
_MAKING: Final = "make_directory"
_REACH: Final = {
    FilePolicy.MANAGE: Reach.OUTSIDE,
    FilePolicy.IGNORE: Reach.IGNORED,
    FilePolicy.REFUSE: Reach.REFUSED,
}


class Backend(Protocol):
    """The directories below one root, by paths relative to it."""

    def is_directory(self, path: str) -> bool: ...

    def exists(self, path: str) -> bool: ...

    def make(self, path: str) -> bool: ...

    def maker(self) -> Callable[[str], bool]:
        """`make` for many paths, which may remember what it has seen of the parents they share."""

    def delete(self, path: str) -> None: ...

    def delete_if_empty(self, path: str) -> bool: ...

    def move(self, source: str, target_root: Any, target: str) -> "Copied | None": ...

    def file_sizes(self, path: str) -> Iterator[tuple[str, int]]: ...

    def read(self, path: str, bytes_max: int) -> bytes:
        """The beginning of a file, one byte more than the bound of a longer one."""

    def write(self, path: str, content: bytes) -> None:
        """A new file, and the directories above it."""

    def delete_file(self, path: str) -> None: ...


class _Root:
    """A location below which directories are managed; `places` are its spellings, through links and without."""

    def __init__(self, place: FileLocation, open_backend: Callable[[FileLocation], Backend]) -> None:
        self._open = open_backend
        self._opening = threading.Lock()
        self._backend: Backend | None = None
        self.places = [place]
        if place.is_local:
            self._backend = local = LocalDirectories(place.path or "/")
            self.places.append(place._replace(path=local.root.rstrip("/")))

    @property
    def backend(self) -> Backend:
        if self._backend is None:
            with self._opening:
                self._backend = self._backend or self._open(self.places[0])
        return self._backend

    def relative(self, place: FileLocation) -> str | None:
        """The path of a place below this root, None where it lies elsewhere."""
        for root in self.places:
            if root.file_system == place.file_system and (path := place.below(root.path)) is not None:
                return path
        return None

    def is_at_or_below(self, place: FileLocation) -> bool:
        return any(root.file_system == place.file_system and root.below(place.path) is not None for root in self.places)


class Directories:
    """Directories by location (`file:/a/b`, `hdfs://nn/a`). Raises FileSystemError with Hive's text.

    Only what is MANAGED is ever looked at. To make, move or delete what is OUTSIDE is an error; what is IGNORED is left
    alone silently.

    policies   what to do with each scheme; see `FilePolicy`
    roots      locations below which directories are managed; of a scheme without any nothing is touched
    default    what to do with schemes not among the policies; None for the rule of `policy_of`
    options    by scheme, options of fsspec (endpoint, credentials, ...)

    For a call that records what another metastore knows, what is managed is ignored.
    """

    def __init__(
        self,
        policies: Mapping[str, FilePolicy] = MappingProxyType({}),
        roots: Sequence[str] = (),
        options: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
        default: FilePolicy | None = None,
    ) -> None:
        self._policies = {scheme.lower(): policy for scheme, policy in policies.items()}
        self._default = default
        self._options = options
        places = dict.fromkeys(map(parse_place, roots))
        # Of roots within each other the inner one counts: it may be a symbolic link that the operator vouches for.
        self._roots = [_Root(place, self._opened) for place in sorted(places, key=lambda place: -len(place.path))]
        # How most locations begin, which then need not be taken apart.
        self._beginnings = {
            f"{place}/": (root, _IS_UNUSUAL if place.is_local else _IS_UNUSUAL_REMOTE)
            for root in self._roots
            for place in root.places
            if self._policy(place.scheme) is FilePolicy.MANAGE and not place.is_elsewhere
        }
        self._tops = {beginning.rstrip("/") for beginning in self._beginnings}

    @property
    def beginnings(self) -> list[str]:
        """How locations below the roots begin; there may be more in other spellings."""
        return list(self._beginnings)

    def reach(self, location: str) -> Reach:
        if self._usual(location) is not None:
            return Reach.MANAGED
        place = parse_place(location)
        reach = _REACH[self._policy(place.scheme)]
        return Reach.MANAGED if reach is Reach.OUTSIDE and self._found(place) else reach

    def manages(self, location: str) -> bool:
        """True if the location is MANAGED. Raises FileSystemError where it is REFUSED."""
        return self._managed(location) is not None

    def is_directory(self, location: str) -> bool:
        managed = self._managed(location)
        with _translated("is_directory", location):
            return managed is not None and managed[0].backend.is_directory(managed[1])

    def exists(self, location: str) -> bool:
        managed = self._managed(location)
        with _translated("exists", location):
            return managed is not None and managed[0].backend.exists(managed[1])

    def make_directory(self, location: str) -> bool:
        """Raises DirectoryNotMade when a file is in the way or the file system refuses."""
        changeable = self._changeable(location)
        if changeable is None:
            return False
        root, path = changeable
        with _translated_making(location):
            return root.backend.make(path)

    def directory_maker(self) -> Callable[[str], bool | None]:
        """`make_directory` for many locations, cheaper than one by one; None for what is not MANAGED."""
        makers: dict[_Root, Callable[[str], bool]] = {}

        def make(location: str) -> bool | None:
            managed = self._managed(location)
            if managed is None:
                return None
            root, path = managed
            notes, begin = current_notes(), time.perf_counter()
            try:
                maker = makers.get(root)
                if maker is None:
                    maker = makers.setdefault(root, root.backend.maker())
                made = maker(path)
            except Exception:
                with _translated_making(location):
                    raise
            if notes is not None:
                notes.add(f"files {_MAKING}", begin)
            return made

        return make

    def delete_directory(self, location: str) -> None:
        """Delete it with all that is in it. A missing one is ignored."""
        changeable = self._changeable(location)
        if changeable is None:
            return
        self._check_free_of_roots(location, "deleted")
        root, path = changeable
        with _translated("delete_directory", location):
            root.backend.delete(path)

    def delete_empty_parents(self, location: str, levels: int) -> None:
        """Remove up to `levels` parents of `location`, upwards, as long as they are empty."""
        place = parse_place(location)
        with _translated("delete_empty_parents", location):
            for _ in range(levels):
                place = place._replace(path=place.path.rpartition("/")[0])
                managed = self._managed_place(place)
                if managed is None or self._holds_root(place) or not managed[0].backend.delete_if_empty(managed[1]):
                    return

    def move_directory(self, source: str, target: str) -> "Copied | None":
        """Within one file system; the target's parents are made, and nothing that is there is replaced.

        In a bucket it is copied: the original stays until the returned `Copied` is finished or undone.
        """
        origin, destination = self._changeable(source), self._changeable(target)
        if origin is None or destination is None:
            return None
        if parse_place(source).file_system != parse_place(target).file_system:
            raise FileSystemError(f"{target} is on a different file system than {source}")
        self._check_free_of_roots(source, "moved")
        self._check_free_of_roots(target, "replaced")
        with _translated("move_directory", source):
            return origin[0].backend.move(origin[1], destination[0].backend, destination[1])

    def copies(self, location: str) -> bool:
        """True if a move of it is a copy that has to be finished."""
        return self._bucket(location) is not None

    def put_back(self, source: str, target: str) -> bool:
        """End the move of a process that is gone, so that the directory is at `source`. True if objects stay behind."""
        origin, destination = self._bucket(source), self._bucket(target)
        if origin is not None and destination is not None:
            return destination[0].delete_older(destination[1], *origin)
        if self.exists(target) and not self.exists(source):
            self.move_directory(target, source)
        return False

    def _bucket(self, location: str) -> "tuple[BucketDirectories, str] | None":
        """The bucket's directories and the path in them; None for any other file system."""
        managed = self._managed(location)
        if managed is None or managed[0].places[0].file_system[0] != "s3":
            return None
        backend: Any = managed[0].backend
        return backend, managed[1]

    def quick_statistics(self, location: str) -> tuple[int, int]:
        """Number and total bytes of the visible files below (semantics §3.6)."""
        managed = self._managed(location)
        if managed is None:
            return 0, 0
        root, path = managed
        with _translated("quick_statistics", location):
            sizes = [size for name, size in root.backend.file_sizes(path) if not _is_hidden(name)]
        return len(sizes), sum(sizes)

    def file_names(self, location: str) -> list[str]:
        """Names of the files directly in it, without hidden ones; of what is not MANAGED there are none."""
        managed = self._managed(location)
        if managed is None:
            return []
        root, path = managed
        with _translated("file_names", location):
            return [name for name, _ in root.backend.file_sizes(path) if "/" not in name and not _is_hidden(name)]

    def read_file(self, location: str, bytes_max: int) -> bytes:
        """The content of a file below a root, or one byte more than `bytes_max` of it. Raises FileSystemError."""
        root, path = self._within(location)
        with _translated("read_file", location):
            return root.backend.read(path, bytes_max)

    def write_file(self, location: str, content: bytes) -> None:
        """Make a file below a root, on disk when this returns. Raises FileSystemError."""
        root, path = self._within(location)
        with _translated("write_file", location):
            root.backend.write(path, content)

    def delete_file(self, location: str) -> None:
        """A missing one is ignored."""
        root, path = self._within(location)
        with _translated("delete_file", location):
            root.backend.delete_file(path)

    def _within(self, location: str) -> tuple[_Root, str]:
        managed = self._managed(location)
        if managed is None or not managed[1]:
            raise FileSystemError(f"{location} is outside the directories this server manages (file_roots)")
        return managed

    def roots(self) -> list[str]:
        return [str(root.places[0]) for root in self._roots]

    def real_location(self, location: str) -> str:
        """The same for all spellings of a location, and for all links that lead to it on this machine."""
        place = parse_place(location)
        if place.is_local and not place.is_elsewhere:
            return f"file:{_real_path(place.path)}"
        return str(place._replace(scheme=place.file_system[0]))

    def is_local(self, location: str) -> bool:
        """True if it is below a root on this machine; of other locations there is nothing to see here."""
        return self._local(location) is not None

    def names_below(self, location: str) -> Iterator[str]:
        """Names of the directories directly below, read as they are asked for."""
        local = self._local(location)
        with _translated("names_below", location):
            yield from () if local is None else local[0].names(local[1])

    def measure(self, location: str) -> Tree | None:
        """None for a directory that does not exist. Raises where part of it cannot be read."""
        local = self._local(location)
        with _translated("measure", location):
            return None if local is None else local[0].measure(local[1])

    def delete_directories(self, location: str) -> bool:
        """Delete it and the directories in it; False when there is more than directories."""
        local = self._local(location)
        self._check_free_of_roots(location, "deleted")
        with _translated("delete_directories", location):
            return local is not None and local[0].delete_directories(local[1])

    def _local(self, location: str) -> tuple[LocalDirectories, str] | None:
        managed = self._managed(location)
        if managed is None:
            return None
        root, path = managed
        return (root.backend, path) if isinstance(root.backend, LocalDirectories) else None

    def _policy(self, scheme: str) -> FilePolicy:
        policy = policy_of(scheme, self._policies, self._default)
        return FilePolicy.IGNORE if policy is FilePolicy.MANAGE and is_recorded() else policy

    def _usual(self, location: str) -> tuple[_Root, str] | None:
        if is_recorded():
            return None
        for beginning, (root, is_unusual) in self._beginnings.items():
            if location.startswith(beginning):
                path = location[len(beginning) :]
                return None if is_unusual(path) or location in self._tops else (root, path)
        return None

    def _managed(self, location: str) -> tuple[_Root, str] | None:
        """The root and the path below it, None for what is not managed. Raises FileSystemError for what is refused."""
        return self._usual(location) or self._managed_place(parse_place(location))

    def _managed_place(self, place: FileLocation) -> tuple[_Root, str] | None:
        match self._policy(place.scheme):
            case FilePolicy.MANAGE:
                return self._found(place)
            case FilePolicy.IGNORE:
                return None
            case FilePolicy.REFUSE:
                raise _no_file_system(place.scheme)

    def _changeable(self, location: str) -> tuple[_Root, str] | None:
        """Where to make a change; None where the scheme is left alone. Raises FileSystemError outside the roots."""
        managed = self._managed(location)
        if managed is None and self.reach(location) is Reach.OUTSIDE:
            raise FileSystemError(f"{location} is outside the directories this server manages (file_roots)")
        return managed

    def _found(self, place: FileLocation) -> tuple[_Root, str] | None:
        if place.is_elsewhere:
            return None
        for root in self._roots:
            if (path := root.relative(place)) is not None:
                return root, path
        return None

    def _holds_root(self, place: FileLocation) -> bool:
        return any(root.is_at_or_below(place) for root in self._roots)

    def _check_free_of_roots(self, location: str, done: str) -> None:
        if self._holds_root(parse_place(location)):
            raise FileSystemError(f"{location} is the warehouse or one of file_roots, or holds one, and is not {done}")

    def _opened(self, place: FileLocation) -> Backend:
        # Only here, since what speaks other schemes is not small.
        from hms_gateway.storage.files.remote import RemoteDirectories, UnknownFileSystem

        options = options_of(place.scheme, self._options)
        try:
            if place.file_system[0] == "s3":
                from hms_gateway.storage.files.buckets import BucketDirectories

                return BucketDirectories(place.authority, place.path, options)
            return RemoteDirectories(place.scheme, place.authority, place.path, options)
        except UnknownFileSystem as error:
            raise _no_file_system(place.scheme) from error


def _real_path(path: str) -> str:
    folder, _, name = path.rpartition("/")
    real = f"{_real_folder(folder or '/').rstrip('/')}/{name}"
    return os.path.realpath(real) if os.path.islink(real) else real


@lru_cache(maxsize=4_096)
def _real_folder(path: str) -> str:
    return os.path.realpath(path)


def _is_hidden(relative_path: str) -> bool:
    return any(part[:1] in ("_", ".") for part in relative_path.split("/"))


def _no_file_system(scheme: str) -> FileSystemError:
    return FileSystemError(
        f'Got exception: org.apache.hadoop.fs.UnsupportedFileSystemException No FileSystem for scheme "{scheme}"'
    )


@contextmanager
def _translated_making(location: str) -> Iterator[None]:
    try:
        with _translated(_MAKING, location):
            yield
    except FileSystemError as error:
        cause = error.__cause__
        if not isinstance(cause, OSError):
            raise
        # The clients' text is Hive's and gives no reason; who runs the server needs one.
        _log.warning("the directory %s cannot be made: %s", location, cause)
        raise DirectoryNotMade(f"{location} is not a directory or unable to create one") from cause


@contextmanager
def _translated(operation: str, location: str) -> Iterator[None]:
    """Note the operation; foreign errors become ours. fsspec's libraries raise anything, so anything is caught."""
    notes, begin = current_notes(), time.perf_counter()
    try:
        yield
    except FileSystemError:
        raise
    except FileNotFoundError as error:
        raise FileSystemError(f"File {location} does not exist") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            text = "leads through a symbolic link, which is not followed below a root; name the link in file_roots"
            raise FileSystemError(f"{location} {text}") from error
        reason = os.strerror(error.errno) if error.errno else str(error)
        kind = FileSystemAway if error.errno in _AWAY else FileSystemError
        raise kind(f"Got exception: {type(error).__name__} {location}: {reason}") from error
    except Exception as error:
        raise FileSystemError(f"Got exception: {type(error).__name__} {location}: {error}") from error
    finally:
        if notes is not None:
            notes.add(f"files {operation}", begin)
