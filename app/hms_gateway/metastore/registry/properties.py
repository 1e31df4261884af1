"""Properties that clients of 4 keep in the metastore, and the metastore's own ones (semantics §2.21, §10.3)."""

import uuid
from collections.abc import Collection, Mapping
from typing import Final

from hms_gateway.metastore.checks.errors import required, unstorable_as_meta
from hms_gateway.metastore.ports.store import Snapshot, Store, Transaction
from hms_gateway.structs import MetaException, NoSuchObjectException

# No caller can name this namespace.
_OWN: Final = ""
_UUID: Final = "uuid"
_AUTHORIZATION: Final = "authorization"


class PropertyService:
    """A property's path is the name of a map, a dot, and the property's own name, which has no dot."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def metastore_uuid(self) -> str:
        """The same for every replica, and for ever."""
        found = self._store.read(lambda snapshot: snapshot.properties.get(_OWN, _UUID))
        if found is not None:
            return found
        new = str(uuid.uuid4())

        def work(tx: Transaction) -> str:
            first = tx.properties.get(_OWN, _UUID)
            if first is not None:
                return first
            tx.properties.put(_OWN, _UUID, new)
            return new

        return self._store.write(work)

    def authorization(self) -> str:
        """The authorization where no setting names one: `grants` in a catalog that began so, as an empty one does."""
        return self._store.read(_authorization)

    def begin(self) -> str:
        """The same; that an empty catalog begins with it is noted, for every gateway of the catalog and for ever."""

        def work(tx: Transaction) -> str:
            found = _authorization(tx)
            if found == "grants":
                tx.properties.put(_OWN, _AUTHORIZATION, found)
            return found

        return self._store.write(work) if self._store.version() == 0 else self.authorization()

    def maps(
        self, namespace: str | None, prefix: str | None, predicate: str | None, names: Collection[str] | None
    ) -> dict[str, dict[str, str]]:
        """The maps whose names start with `prefix`, with the properties of these names, or all.

        Raises NoSuchObjectException for an empty namespace, MetaException.
        """
        place = _namespace(namespace)
        if predicate:
            raise MetaException("mapPredicate is a Java expression, which this server cannot evaluate")
        found = self._store.read(lambda snapshot: snapshot.properties.under(place, prefix or ""))
        wanted = frozenset(names or ())
        maps: dict[str, dict[str, str]] = {}
        for path, value in found.items():
            map_name, _, name = path.rpartition(".")
            if map_name.startswith(prefix or "") and (not wanted or name in wanted):
                maps.setdefault(map_name, {})[name] = value
        return maps

    def put(self, namespace: str | None, values: Mapping[str, str | None] | None) -> None:
        """Set each path to its value; without one it is removed. Raises NoSuchObjectException, MetaException."""
        place = _namespace(namespace)
        given = required(values, "propertyMap")

        def work(tx: Transaction) -> None:
            for path, value in given.items():
                if value is None:
                    tx.properties.delete(place, path)
                else:
                    tx.properties.put(place, path, value)

        with unstorable_as_meta():
            self._store.write(work)


def _authorization(snapshot: Snapshot) -> str:
    """Nothing has happened yet in an empty catalog, not even that the database `default` was made."""
    found = snapshot.properties.get(_OWN, _AUTHORIZATION)
    return found or ("grants" if snapshot.current_event_id() == 0 else "off")


def _namespace(given: str | None) -> str:
    if not required(given, "nameSpace"):
        raise NoSuchObjectException("the namespace of properties must not be empty")
    return given or ""
