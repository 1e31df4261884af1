"""Finds the file system of a location, and keeps every change inside the configured roots (design D12)."""

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from app.files.local import LocalDirectories
from app.files.policy import FilePolicy, policy_of
from app.metastore.ports import DirectoryNotMade, FileSystemError

_log = logging.getLogger(__name__)

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Backend(Protocol):
    """One file system, by plain paths."""

    def is_directory(self, path: str) -> bool: ...

    def exists(self, path: str) -> bool: ...

    def make(self, path: str) -> bool: ...

    def maker(self) -> Callable[[str], bool]:
        """`make` for many paths, which may remember what it has seen of the parents they share."""

    def delete(self, path: str) -> None: ...

    def delete_if_empty(self, path: str) -> bool: ...

    def move(self, source: str, target: str) -> None: ...

    def file_sizes(self, path: str) -> Iterator[tuple[str, int]]: ...

    def resolve(self, path: str) -> str: ...


class _Place(NamedTuple):
    """A location taken apart."""

    scheme: str
    authority: str
    path: str

    @property
    def is_top(self) -> bool:
        return not self.path.strip("/")

    @property
    def parent(self) -> "_Place":
        return self._replace(path=self.path.rpartition("/")[0] or "/")


class Directories:
    """The `FileSystem` of `app.metastore.ports`.

    policies   what to do with each scheme; see `FilePolicy`
    default    what to do with schemes not among them; None for the rule of `policy_of`
    roots      locations under which everything lies that may be made, moved or deleted; none means no such bound
    options    by scheme, what fsspec wants to know (endpoint, credentials, ...)

    Where a scheme is ignored every change is a no-op and nothing exists. Raises FileSystemError.
    """

    def __init__(
        self,
        policies: Mapping[str, FilePolicy] = MappingProxyType({}),
        roots: Sequence[str] = (),
        options: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
        default: FilePolicy | None = None,
    ) -> None:
        self._policies = policies
        self._default = default
        self._options = options
        self._backends: dict[tuple[str, str], Backend] = {}
        self._opening = threading.Lock()
        self._roots = [self._resolved(_parse(root)) for root in roots]

    def manages(self, location: str) -> bool:
        return self._manages(_parse(location))

    def is_directory(self, location: str) -> bool:
        place = _parse(location)
        with _translated(location):
            return self._manages(place) and self._backend(place).is_directory(place.path)

    def exists(self, location: str) -> bool:
        place = _parse(location)
        with _translated(location):
            return self._manages(place) and self._backend(place).exists(place.path)

    def make_directory(self, location: str) -> bool:
        """Raises DirectoryNotMade when a file is in the way or the file system refuses."""
        return self.directory_maker()(location) or False

    def directory_maker(self) -> Callable[[str], bool | None]:
        makers: dict[tuple[str, str], Callable[[str], bool]] = {}

        def make(location: str) -> bool | None:
            place = self._changeable(location)
            if place is None:
                return None
            try:
                maker = makers.get(place[:2])
                if maker is None:
                    maker = makers.setdefault(place[:2], self._backend(place).maker())
                return maker(place.path)
            except OSError as error:
                # The clients' text is Hive's and gives no reason; who runs the server needs one.
                _log.warning("the directory %s cannot be made: %s", location, error)
                raise DirectoryNotMade(f"{location} is not a directory or unable to create one") from error
            except Exception:
                with _translated(location):
                    raise

        return make

    def delete_directory(self, location: str) -> None:
        place = self._changeable(location)
        if place is None:
            return
        if place.is_top or self._resolved(place) in self._roots:
            raise FileSystemError(f"{location} is the top of a file system or a configured root and is not deleted")
        with _translated(location):
            self._backend(place).delete(place.path)

    def delete_empty_parents(self, location: str, levels: int) -> None:
        place = _parse(location)
        for _ in range(levels):
            place = place.parent
            if place.is_top or not self._manages(place) or not self._is_strictly_inside(place):
                return
            with _translated(location):
                if not self._backend(place).delete_if_empty(place.path):
                    return

    def move_directory(self, source: str, target: str) -> None:
        origin, destination = self._changeable(source), self._changeable(target)
        if origin is None or destination is None:
            return
        if origin[:2] != destination[:2]:
            raise FileSystemError(f"{target} is on a different file system than {source}")
        with _translated(source):
            self._backend(origin).move(origin.path, destination.path)

    def quick_statistics(self, location: str) -> tuple[int, int]:
        place = _parse(location)
        if not self._manages(place):
            return 0, 0
        with _translated(location):
            sizes = [size for name, size in self._backend(place).file_sizes(place.path) if not _is_hidden(name)]
        return len(sizes), sum(sizes)

    def _manages(self, place: _Place) -> bool:
        match policy_of(place.scheme, self._policies, self._default):
            case FilePolicy.MANAGE:
                return True
            case FilePolicy.IGNORE:
                return False
            case FilePolicy.REFUSE:
                raise _no_file_system(place.scheme)

    def _changeable(self, location: str) -> _Place | None:
        """Where to make a change; None where the scheme is left alone. Raises FileSystemError outside the roots."""
        place = _parse(location)
        if not self._manages(place):
            return None
        if not self._is_inside(place):
            raise FileSystemError(f"{location} is outside the directories this server may change (file_roots)")
        return place

    def _is_inside(self, place: _Place) -> bool:
        return not self._roots or self._resolved(place) in self._roots or self._is_strictly_inside(place)

    def _is_strictly_inside(self, place: _Place) -> bool:
        if not self._roots:
            return True
        resolved = self._resolved(place)
        return any(
            resolved[:2] == root[:2] and resolved.path.startswith(root.path.rstrip("/") + "/") and resolved != root
            for root in self._roots
        )

    def _resolved(self, place: _Place) -> _Place:
        if place.scheme != "file":
            return place
        with _translated(place.path):
            return place._replace(path=self._backend(place).resolve(place.path))

    def _backend(self, place: _Place) -> Backend:
        key = (place.scheme, place.authority)
        backend = self._backends.get(key)
        if backend is None:
            with self._opening:
                backend = self._backends.setdefault(key, self._open(place))
        return backend

    def _open(self, place: _Place) -> Backend:
        if place.scheme == "file":
            return LocalDirectories()
        # Only here, since what speaks other schemes is not small.
        from app.files.remote import RemoteDirectories, UnknownFileSystem

        try:
            return RemoteDirectories(place.scheme, place.authority, self._options.get(place.scheme, _NOTHING))
        except UnknownFileSystem as error:
            raise _no_file_system(place.scheme) from error


def _parse(location: str) -> _Place:
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        scheme, rest = "file", location
    authority = ""
    if rest.startswith("//"):
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
    path = rest.rstrip("/") or "/"
    if not path.startswith("/"):
        raise FileSystemError(f"Relative path in absolute URI: {location}")
    if "/.." in path and ".." in path.split("/"):
        raise FileSystemError(f"{location} has a '..' in it")
    return _Place(scheme.lower(), authority, path)


def _is_hidden(relative_path: str) -> bool:
    return any(part[:1] in ("_", ".") for part in relative_path.split("/"))


def _no_file_system(scheme: str) -> FileSystemError:
    return FileSystemError(
        f'Got exception: org.apache.hadoop.fs.UnsupportedFileSystemException No FileSystem for scheme "{scheme}"'
    )


@contextmanager
def _translated(location: str) -> Iterator[None]:
    """Foreign errors become ours here. fsspec's libraries raise anything, so anything is caught."""
    try:
        yield
    except FileSystemError:
        raise
    except FileNotFoundError as error:
        raise FileSystemError(f"File {location} does not exist") from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise FileSystemError(f"Got exception: {type(error).__name__} {location}: {reason}") from error
    except Exception as error:
        raise FileSystemError(f"Got exception: {type(error).__name__} {location}: {error}") from error
