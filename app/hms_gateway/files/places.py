"""Locations taken apart, as the file systems and their roots see them."""

from typing import NamedTuple
from urllib.parse import unquote

from hms_gateway.metastore.ports.store import FileSystemError

LOCAL_SCHEMES = frozenset({"file", "local"})
"""Both are this machine's disks, so that one set of rules holds for both."""

_HERE = ("", "localhost")


class Place(NamedTuple):
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
        return ("file" if self.is_local else self.scheme), self.authority

    def below(self, path: str) -> str | None:
        """The rest of this path below another one, `""` where they are the same; None where it does not lie there."""
        if self.path == path:
            return ""
        return self.path[len(path) + 1 :] if self.path.startswith(f"{path}/") else None


def parse_place(location: str) -> Place:
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
    return Place(scheme, authority, "".join(f"/{name}" for name in names))


def _check_remote(location: str, authority: str, names: list[str]) -> None:
    """Libraries read more into a path than names: chains of schemes, and encoded slashes and dots."""
    if "::" in authority or "%" in authority or any("::" in name for name in names):
        raise FileSystemError(f"{location} has a '::' in it or a '%' in its authority; name one file system and a path")
    for name in names:
        decoded = unquote(name)
        if decoded in (".", "..") or "/" in decoded:
            raise FileSystemError(f"{location} has an encoded '/', '.' or '..' in it; write the path itself")
