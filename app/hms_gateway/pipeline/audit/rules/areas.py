"""Which area a location is in, and which part of it: what is compared together, in one task."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from hms_gateway.pipeline.audit.rules.shapes import is_hidden
from hms_gateway.pipeline.audit.rules.values import Area, Place, Storage, below


class Group(msgspec.Struct, frozen=True):
    """`part` is a directory of the area, or empty: for the area's own, and for all of one that is not partitioned."""

    area: str | None
    part: str = ""


class Areas:
    """The directories of all tables and databases. Made on the driver, used on executors.

    Only what lies in a partitioned table's or a database's directory is cut into parts, so that no part is a large
    share of the catalog; whatever has to be compared is in one part.
    """

    def __init__(self, tables: Iterable[Place], databases: Mapping[str, Sequence[str]]) -> None:
        """`databases` has the locations of each, as `location_of` makes them."""
        self._tables: dict[str, list[Place]] = {}
        for table in tables:
            self._tables.setdefault(table.location, []).append(table)
        self._databases = {location: name for name, locations in databases.items() for location in locations}
        self._known = frozenset(_with_ancestors(self._tables))

    def group_of(self, location: str) -> Group | None:
        """None for what lies in no known directory."""
        area = self._innermost(location)
        if area is None:
            return None
        if area in self._tables and not any(_is_cut(table) for table in self._tables[area]):
            return Group(area)
        return Group(area, (below(area, location) or "").partition("/")[0])

    def area(self, location: str) -> Area:
        """The area that `group_of` names."""
        tables = self._tables.get(location, [])
        table = next(filter(_is_cut, tables), tables[0] if tables else None)
        database = table.database if table else self._databases.get(location, "")
        return Area(location, table, database, self._around(location) if table else (), self._known)

    def leads_to_areas(self, location: str) -> bool:
        """Whether the directory of a table is at or below a location."""
        return location in self._known

    def _innermost(self, location: str) -> str | None:
        while location not in self._tables and location not in self._databases:
            if "/" not in location:
                return None
            location = location.rpartition("/")[0]
        return location

    def _around(self, location: str) -> tuple[Place, ...]:
        """The tables of the innermost directory of a table around another one."""
        while "/" in location:
            location = location.rpartition("/")[0]
            if location in self._tables:
                return tuple(self._tables[location])
        return ()


def _is_cut(table: Place) -> bool:
    return table.is_partitioned and table.storage is not Storage.LOGGED


def _with_ancestors(locations: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for location in locations:
        while location not in found:
            found.add(location)
            if "/" not in location:
                break
            location = location.rpartition("/")[0]
    return found


class Roots:
    """Directories that are listed."""

    def __init__(self, locations: Iterable[str]) -> None:
        self._locations = frozenset(locations)

    def group_of(self, location: str) -> Group | None:
        """The innermost of them that a location lies in."""
        while location not in self._locations:
            if "/" not in location:
                return None
            location = location.rpartition("/")[0]
        return Group(location)

    def reach(self, location: str) -> bool:
        """Whether a location is listed with one of them: what lies in hidden directories is not."""
        root = self.group_of(location)
        names = (below(root.area or "", location) or "").split("/") if root else []
        return root is not None and not any(map(is_hidden, names))


def outermost(locations: Iterable[str]) -> list[str]:
    """Without those that lie below others."""
    kept: list[str] = []
    # A slash sorts before most characters: what lies below a location need not follow it without one.
    for location in sorted(set(locations), key=lambda one: f"{one}/"):
        if not kept or below(kept[-1], location) is None:
            kept.append(location)
    return kept
