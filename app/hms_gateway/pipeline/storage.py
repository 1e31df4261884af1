"""File systems of the pipeline: this machine's disks and everything fsspec speaks, below the roots of a job only.

The catalog has locations that any user may have recorded, and a job acts with the rights of who runs it. On this
machine's disks directories are reached by handle, and links below a root are not followed, as by the gateway.
"""

import errno
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import fsspec
import msgspec

from hms_gateway.metastore.ports.store import FileSystemError
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.storage.files.local import LocalDirectories
from hms_gateway.storage.files.places import FileLocation, parse_place

# By scheme, options of fsspec; `implementation` names a class of one's own, "package.module.Class".
StorageOptions = Mapping[str, Mapping[str, Any]]

OUTSIDE: Final = "is passed over: it lies outside of the gateway's roots; --root PLACE takes it in"
_LOCAL: Final = ("", "file", "local")
_FSSPEC_NAMES: Final = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasb": "abfs", "wasbs": "abfs"}


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
    return place._replace(scheme=_FSSPEC_NAMES.get(place.scheme, place.scheme))


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
    found = _opened(scheme, msgspec.json.encode(dict(options.get(scheme, {}))))
    if isinstance(found, OptionError):
        raise OptionError(str(found)) from found.__cause__
    return found


@cache
def _opened(scheme: str, encoded: bytes) -> Any:
    """The file system, or why there is none: a library that is missing is looked for once."""
    options: dict[str, Any] = msgspec.json.decode(encoded)
    name = _FSSPEC_NAMES.get(scheme, scheme)
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
    """Whether two locations have the same scheme; `s3a` is `s3`."""
    first, second = scheme_of(one), scheme_of(other)
    return _FSSPEC_NAMES.get(first, first) == _FSSPEC_NAMES.get(second, second)
