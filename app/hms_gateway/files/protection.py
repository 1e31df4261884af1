"""What never lies inside a root: the data folder with its files, and the program with its environment."""

import os
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from hms_gateway.files.places import parse_place
from hms_gateway.metastore.ports.store import FileSystemError

_CODE: Final = ("stdlib", "platstdlib", "purelib", "platlib", "scripts")


class RootRefused(Exception):
    """A root would open what it must not; the text is meant for the operator and begins with the root."""


class Protected(msgspec.Struct, frozen=True):
    """A file or folder, by a name for the operator. No root may lie around it, nor in it unless it `may_hold_roots`."""

    path: Path
    name: str
    may_hold_roots: bool = False


def program_folders() -> list[Protected]:
    """Where the code comes from that this process runs."""
    paths = sysconfig.get_paths()
    folders = [Protected(Path(__file__).parent.parent, "the program's own folder")]
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
