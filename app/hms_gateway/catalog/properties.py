"""Properties that clients of 4 keep in the metastore, and the metastore's own ones (semantics §2.21, §10.3)."""

import uuid
from collections.abc import Mapping
from typing import Final

from sqlalchemy import delete, insert, select

from hms_gateway.metastore.checks.errors import required, unstorable_as_meta
from hms_gateway.metastore.ports.store import Snapshot, Store, Transaction
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    MetaException,
    NoSuchObjectException,
    PropertyGetRequest,
    PropertyGetResponse,
    PropertySetRequest,
)
from hms_gateway.storage.schema.catalog import PROPERTIES
from hms_gateway.storage.sql.fragments import encode_texts, text_hash
from hms_gateway.storage.sql.repository import AggregateRows, check_text, is_storable

# No caller can name this namespace.
_OWN: Final = ""
_UUID: Final = "uuid"
_AUTHORIZATION: Final = "authorization"


class PropertyRows(AggregateRows):
    """Texts by namespace and path, of the service rather than of an object in the catalog."""

    def get(self, namespace: str, path: str) -> str | None:
        condition = PROPERTIES.c.path_hash == _hash(namespace, path)
        return self._connection.execute(select(PROPERTIES.c.value).where(condition)).scalar()

    def under(self, namespace: str, prefix: str) -> dict[str, str]:
        """All whose path starts with `prefix`, ordered by path."""
        if not is_storable(namespace):
            return {}
        statement = select(PROPERTIES.c.path, PROPERTIES.c.value).where(PROPERTIES.c.namespace == namespace)
        rows = self._connection.execute(statement)
        return dict(sorted((path, value) for path, value in rows if path.startswith(prefix)))

    def put(self, namespace: str, path: str, value: str) -> None:
        for text in (namespace, path, value):
            check_text("property", text)
        self.delete(namespace, path)
        row = {"path_hash": _hash(namespace, path), "namespace": namespace, "path": path, "value": value}
        self._connection.execute(insert(PROPERTIES).values(row))

    def delete(self, namespace: str, path: str) -> None:
        """A missing one is ignored."""
        self._connection.execute(delete(PROPERTIES).where(PROPERTIES.c.path_hash == _hash(namespace, path)))


class Properties:
    """Methods on properties. The path of one is the name of a map, a dot, and its own name, which has no dot."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get_metastore_db_uuid(self, call: Call) -> str:
        """The same for every replica, and for ever."""
        found = self._store.read(lambda snapshot: PropertyRows(snapshot).get(_OWN, _UUID))
        if found is not None:
            return found
        new = str(uuid.uuid4())

        def work(tx: Transaction) -> str:
            rows = PropertyRows(tx)
            first = rows.get(_OWN, _UUID)
            if first is not None:
                return first
            rows.put(_OWN, _UUID, new)
            return new

        return self._store.write(work)

    def get_properties(self, call: Call, req: PropertyGetRequest) -> PropertyGetResponse:
        """The maps whose names start with the prefix, with the properties of the selected names, or all."""
        request = required(req, "req")
        place = _namespace(request.nameSpace)
        if request.mapPredicate:
            raise MetaException("mapPredicate is a Java expression, which this server cannot evaluate")
        prefix, wanted = request.mapPrefix or "", frozenset(request.mapSelection or ())
        maps: dict[str, dict[str, str]] = {}
        for path, value in self._store.read(lambda snapshot: PropertyRows(snapshot).under(place, prefix)).items():
            map_name, _, name = path.rpartition(".")
            if map_name.startswith(prefix) and (not wanted or name in wanted):
                maps.setdefault(map_name, {})[name] = value
        return PropertyGetResponse(maps)

    def set_properties(self, call: Call, req: PropertySetRequest) -> bool:
        """Set each path to its value; without one it is removed."""
        request = required(req, "req")
        place = _namespace(request.nameSpace)
        given: Mapping[str, str | None] = required(request.propertyMap, "propertyMap")

        def work(tx: Transaction) -> None:
            rows = PropertyRows(tx)
            for path, value in given.items():
                if value is None:
                    rows.delete(place, path)
                else:
                    rows.put(place, path, value)

        with unstorable_as_meta():
            self._store.write(work)
        return True


def kept_authorization(store: Store) -> str:
    """The authorization where no setting names one: `grants` in a catalog that began so, as an empty one does."""
    return store.read(_authorization)


def begun_authorization(store: Store) -> str:
    """The same; that an empty catalog begins with it is noted, for every gateway of the catalog and for ever."""

    def work(tx: Transaction) -> str:
        found = _authorization(tx)
        if found == "grants":
            PropertyRows(tx).put(_OWN, _AUTHORIZATION, found)
        return found

    return store.write(work) if store.version() == 0 else kept_authorization(store)


def _authorization(snapshot: Snapshot) -> str:
    """Nothing has happened yet in an empty catalog, not even that the database `default` was made."""
    found = PropertyRows(snapshot).get(_OWN, _AUTHORIZATION)
    return found or ("grants" if snapshot.current_event_id() == 0 else "off")


def _namespace(given: str | None) -> str:
    if not required(given, "nameSpace"):
        raise NoSuchObjectException("the namespace of properties must not be empty")
    return given or ""


def _hash(namespace: str, path: str) -> str:
    return text_hash(encode_texts([namespace, path]))
