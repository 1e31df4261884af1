"""What lies in an area, sorted by what it belongs to: places, leftovers, and strays that belong to nothing."""

from collections.abc import Iterable, Sequence

import msgspec

from hms_gateway.pipeline.audit.rules.shapes import is_hidden, leftover_in
from hms_gateway.pipeline.audit.rules.values import Area, Directory, Place, Storage, below


class Heap(msgspec.Struct):
    """Directories that belong together."""

    files: int = 0
    total_bytes: int = 0
    newest_seconds: float = 0.0
    formats: dict[str, int] = msgspec.field(default_factory=dict)

    def add(self, one: Directory) -> None:
        self.files += one.files
        self.total_bytes += one.total_bytes
        self.newest_seconds = max(self.newest_seconds, one.newest_seconds)
        for name, count in one.formats.items():
            self.formats[name] = self.formats.get(name, 0) + count


class Content(msgspec.Struct):
    """What belongs to the places at one location.

    branches          names of directories below with files of the place, such as those of a UNION ALL
    has_unreadable    part of it could not be listed
    """

    heap: Heap = msgspec.field(default_factory=Heap)
    branches: set[str] = msgspec.field(default_factory=set)
    is_there: bool = False
    has_unreadable: bool = False


class Sorter:
    """Takes directories one by one. A directory belongs to the innermost place that it lies in."""

    def __init__(self, area: Area, places: Iterable[Place]) -> None:
        self.area = area
        self.places: dict[str, list[Place]] = {}
        for place in places:
            self.places.setdefault(place.location, []).append(place)
        self.contents = {location: Content() for location in self.places}
        self._above = _ancestors(self.places, area.location)
        self.leftovers: dict[str, Heap] = {}
        self.strays: list[Directory] = []
        self.unreadable: list[Directory] = []

    def add(self, directory: Directory) -> None:
        self._seen(directory)
        if directory.error:
            self.unreadable.append(directory)
            return
        owner = self.owner(directory.location)
        if owner is not None and not any(map(_is_of_directory, self.places[owner])):
            return
        path = names_below(self.area.location if owner is None else owner, directory.location)
        if (number := leftover_in(path)) is not None:
            top = "/".join([self.area.location if owner is None else owner, *path[:number]])
            self.leftovers.setdefault(top, Heap()).add(directory)
        elif directory.files and not any(map(is_hidden, path)):
            self._add_files(directory, owner, path)

    def owner(self, location: str) -> str | None:
        """The location of the innermost place that a location lies in, or is."""
        while location not in self.places:
            if location == self.area.location or "/" not in location:
                return None
            location = location.rpartition("/")[0]
        return location

    def holds_places(self, location: str) -> bool:
        """Whether a place lies below, here or in an area of its own."""
        return location in self._above or location in self.area.known

    def _seen(self, directory: Directory) -> None:
        """A directory is there when something in it is; object stores have no other sign of it."""
        location = directory.location
        while location != self.area.location and "/" in location:
            self._mark(location, directory)
            location = location.rpartition("/")[0]
        self._mark(location, directory)

    def _mark(self, location: str, directory: Directory) -> None:
        content = self.contents.get(location)
        if content is not None:
            content.is_there = True
            content.has_unreadable = content.has_unreadable or bool(directory.error)

    def _add_files(self, directory: Directory, owner: str | None, path: Sequence[str]) -> None:
        if owner is None or not any(_holds_files(place) for place in self.places[owner]):
            self.strays.append(directory)
            return
        content = self.contents[owner]
        content.heap.add(directory)
        if path:
            content.branches.add(path[0])


def names_below(parent: str, location: str) -> list[str]:
    """The names that lead from one location to another one in it."""
    rest = below(parent, location)
    return rest.split("/") if rest else []


def _is_of_directory(place: Place) -> bool:
    """Whether the names of directories say whose files they are; a log of the table's own says more."""
    return place.storage in (Storage.PLAIN, Storage.ACID)


def _holds_files(place: Place) -> bool:
    """What lies in the directory of a partitioned table is in no partition."""
    return not place.is_partitioned or place.storage is not Storage.PLAIN


def _ancestors(locations: Iterable[str], top: str) -> set[str]:
    """The locations that others lie below."""
    found: set[str] = set()
    for location in locations:
        while location != top and "/" in location:
            location = location.rpartition("/")[0]
            if location in found:
                break
            found.add(location)
    return found
