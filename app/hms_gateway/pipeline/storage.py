"""File systems of the pipeline: this machine's disks, and everything fsspec speaks."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import fsspec
import msgspec

from hms_gateway.pipeline.errors import OptionError

# By scheme, options of fsspec; `implementation` names a class of one's own, "package.module.Class".
Storage = Mapping[str, Mapping[str, Any]]

_LOCAL: Final = ("", "file", "local")
_FSSPEC_NAMES: Final = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasb": "abfs", "wasbs": "abfs"}


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


def open_files(scheme: str, storage: Storage) -> Any:
    """fsspec's file system of a scheme, the same one for all who ask in this process. Raises OptionError."""
    options = dict(storage.get(scheme, {}))
    return _opened(scheme, msgspec.json.encode(options))


@cache
def _opened(scheme: str, encoded: bytes) -> Any:
    options: dict[str, Any] = msgspec.json.decode(encoded)
    name = _FSSPEC_NAMES.get(scheme, scheme)
    implementation = options.pop("implementation", None)
    try:
        if implementation:
            fsspec.register_implementation(name, implementation, clobber=True)
        # A cached listing would hide what others do.
        return fsspec.filesystem(name, **{"use_listings_cache": False, "skip_instance_cache": True, **options})
    except (ImportError, ValueError) as error:
        raise OptionError(f"location {scheme}:// cannot be opened: {error}; install its fsspec library") from error


def same_file_system(one: str, other: str) -> bool:
    """Whether two locations have the same scheme; `s3a` is `s3`."""
    first, second = scheme_of(one), scheme_of(other)
    return _FSSPEC_NAMES.get(first, first) == _FSSPEC_NAMES.get(second, second)
