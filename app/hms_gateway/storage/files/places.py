"""Locations taken apart, as the file systems and their roots see them, and the operator's policy for each scheme.

The data folder with its files, and the program with its environment, never lie inside a root.
"""

import os
import sys
import sysconfig
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from hms_gateway.metastore.ports.store import FileSystemError
from hms_gateway.metastore.vocabulary.locations import FILE_SYSTEMS, file_system_of

LOCAL_SCHEMES = frozenset({"file", "local"})
"""Both are this machine's disks, so that one set of rules holds for both."""

_HERE = ("", "localhost")


class FileLocation(NamedTuple):
    """A location; `path` begins with a slash, has no slash at its end and no empty names: the top is `""`."""

    scheme: str
    authority: str
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}:{f'//{self.authority}' if self.authority else ''}{self.path}"

    @property
    def is_local(self) -> bool:
        return self.scheme in LOCAL_SCHEMES

    @property
    def is_elsewhere(self) -> bool:
        """Whether it names the disk of another machine, of which there is nothing here."""
        return self.is_local and self.authority != ""

    @property
    def file_system(self) -> tuple[str, str]:
        return ("file" if self.is_local else file_system_of(self.scheme)), self.authority

    def below(self, path: str) -> str | None:
        """The rest of this path below another one, `""` where they are the same; None where it does not lie there."""
        if self.path == path:
            return ""
        return self.path[len(path) + 1 :] if self.path.startswith(f"{path}/") else None


def parse_place(location: str) -> FileLocation:
    """Raises FileSystemError for what could mean another place than it seems to."""
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        scheme, rest = "file", location
    scheme = scheme.lower()
    authority = ""
    if rest.startswith("//"):
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest or "/"
    if not rest.startswith("/"):
        raise FileSystemError(f"Relative path in absolute URI: {location}")
    names = [name for name in rest.split("/") if name not in ("", ".")]
    if ".." in names:
        raise FileSystemError(f"{location} has a '..' in it")
    if "\0" in location:
        raise FileSystemError("A location must not contain the character NUL")
    if scheme in LOCAL_SCHEMES:
        authority = "" if authority.lower() in _HERE else authority
    else:
        _check_remote(location, authority, names)
    return FileLocation(scheme, authority, "".join(f"/{name}" for name in names))


def _check_remote(location: str, authority: str, names: list[str]) -> None:
    """Libraries read more into a path than names: chains of schemes, and encoded slashes and dots."""
    if "::" in authority or "%" in authority or any("::" in name for name in names):
        raise FileSystemError(f"{location} has a '::' in it or a '%' in its authority; name one file system and a path")
    for name in names:
        decoded = unquote(name)
        if decoded in (".", "..") or "/" in decoded:
            raise FileSystemError(f"{location} has an encoded '/', '.' or '..' in it; write the path itself")


class FilePolicy(StrEnum):
    """MANAGE makes, moves and deletes directories below the roots; IGNORE leaves them to others; REFUSE takes none."""

    MANAGE = "manage"
    IGNORE = "ignore"
    REFUSE = "refuse"


# Schemes that some client can read. Anything else is most likely a mistake, which Hive refuses too (semantics §3.1).
# fmt: off
_KNOWN_SCHEMES: Final = frozenset({
    "hdfs", "viewfs", "webhdfs", "swebhdfs", "har", "ofs", "o3fs", "maprfs", "jfs", "alluxio",
    "s3", "s3a", "s3n", "abfs", "abfss", "adl", "wasb", "wasbs", "gs", "oss", "obs", "cos", "cosn", "tos", "bos",
    "ks3", "oci", "swift", "dbfs", "ftp", "sftp", "http", "https",
})
# fmt: on


def policy_of(scheme: str, policies: Mapping[str, FilePolicy], default: FilePolicy | None = None) -> FilePolicy:
    """The operator's choice, else: manage `file`, ignore the other known schemes, refuse the unknown."""
    if scheme in policies:
        return policies[scheme]
    if default is not None:
        return default
    if scheme == "file":
        return FilePolicy.MANAGE
    return FilePolicy.IGNORE if scheme in _KNOWN_SCHEMES else FilePolicy.REFUSE


class StorageFileError(Exception):
    """A file of storage options cannot be used; the text is meant for the operator and begins with the file."""


def read_storage_options(file: Path) -> dict[str, dict[str, Any]]:
    """The TOML file of `storage_file` and `--storage`: fsspec's options in a table for each scheme.

    Raises StorageFileError.
    """
    try:
        values: dict[str, dict[str, Any]] = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise StorageFileError(f"{file} cannot be read: {error}") from error
    if not all(isinstance(of, dict) for of in values.values()):
        raise StorageFileError(f"{file} has a line outside of a table; a table is for a scheme, such as [s3]")
    return values


def options_of(scheme: str, options: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """The options of a scheme; without a table of its own those of fsspec's name for it, then of another spelling."""
    name = file_system_of(scheme)
    spellings = (scheme, name, *(other for other, one in FILE_SYSTEMS.items() if one == name))
    return next((options[each] for each in spellings if options.get(each)), {})


_CODE: Final = ("stdlib", "platstdlib", "purelib", "platlib", "scripts")


class RootRefused(Exception):
    """A root would open what it must not; the text is meant for the operator and begins with the root."""


class Protected(msgspec.Struct, frozen=True):
    """A file or folder, by a name for the operator. No root may lie around it, nor in it unless it `may_hold_roots`."""

    path: Path
    name: str
    may_hold_roots: bool = False


def program_folders() -> list[Protected]:
    """Folders of the code that this process runs."""
    paths = sysconfig.get_paths()
    folders = [Protected(Path(__file__).parents[2], "the program's own folder")]
    folders += [Protected(Path(paths[name]), "the Python environment") for name in _CODE if name in paths]
    is_own = sys.prefix != sys.base_prefix
    folders += [Protected(Path(sys.prefix), "the Python environment", may_hold_roots=not is_own)]
    # A folder that modules are looked for in may be a checkout, whose folder `var` holds the warehouse.
    folders += [Protected(Path(path or os.curdir), "the Python path", may_hold_roots=True) for path in sys.path]
    return folders


def check_roots(roots: Sequence[str], protected: Iterable[Protected]) -> None:
    """Raises RootRefused for a root that is, holds or lies in what is protected, through symbolic links or not."""
    real = [(one, path) for one in protected for path in {os.path.realpath(one.path), os.path.abspath(one.path)}]
    for root in roots:
        try:
            place = parse_place(root)
        except FileSystemError as error:
            raise RootRefused(f"{error}; write a location such as file:/srv/tables") from error
        if place.is_elsewhere:
            raise RootRefused(f"{root} is on another machine ({place.authority}); write file:/path for a folder here")
        if not place.is_local:
            continue
        try:
            path = os.path.realpath(place.path or "/")
        except OSError as error:
            # A link that only its owner may follow, as in /proc: where it leads cannot be compared with anything.
            raise RootRefused(
                f"{root} cannot be followed ({error.strerror}); name a folder and no link to one"
            ) from error
        for one, real_path in real:
            if _is_at_or_below(real_path, path):
                raise RootRefused(f"{root} holds {one.name} {one.path}; name a folder for tables and nothing else")
            if not one.may_hold_roots and _is_at_or_below(path, real_path):
                raise RootRefused(f"{root} lies in {one.name} {one.path}; name a folder outside of it")


def _is_at_or_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
