"""The schema registry of 3.1 and later: serdes by name, schemas of databases, and their versions."""

import msgspec

from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.ports.registry import StoredSchema
from hms_gateway.metastore.ports.store import Snapshot, Store, Transaction
from hms_gateway.metastore.vocabulary.names import DEFAULT_CATALOG, normalize
from hms_gateway.metastore.vocabulary.texts import shown
from hms_gateway.runtime.clock import Clock
from hms_gateway.structs import (
    AlreadyExistsException,
    InvalidOperationException,
    ISchema,
    ISchemaName,
    MetaException,
    NoSuchObjectException,
    SchemaVersion,
    SchemaVersionDescriptor,
    SchemaVersionState,
    SerDeInfo,
)


class SchemaRegistryService:
    """Names of schemas count without case, those of serdes as they are. Databases come without catalog."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def add_serde(self, serde: SerDeInfo | None) -> None:
        """Raises AlreadyExistsException, MetaException."""
        new = required(serde, "serde")
        if not required(new.name, "name of the serde"):
            raise MetaException("the name of a serde must not be empty")
        if not self._store.write(lambda tx: tx.registry.insert_serde(new)):
            raise AlreadyExistsException(f"Serde with name {shown(new.name)} already exists")

    def serde(self, name: str | None) -> SerDeInfo:
        """Raises NoSuchObjectException, MetaException."""
        key = required(name, "name of the serde")
        found = self._store.read(lambda snapshot: snapshot.registry.serde(key))
        if found is None:
            raise NoSuchObjectException(f"No serde named {shown(key)} exists")
        return found

    def create(self, schema: ISchema | None) -> None:
        """Raises AlreadyExistsException, NoSuchObjectException for an unknown database, MetaException."""
        given = required(schema, "schema")
        name = _schema_key(given.name)

        def work(tx: Transaction) -> bool:
            key = normalize(required(given.dbName, "database name"))
            database = None if "\0" in key else tx.database(key)
            if database is None:
                raise NoSuchObjectException(shown(given.dbName))
            return tx.registry.insert_schema(database.database_id, _stored(given, name))

        if not self._store.write(work):
            raise AlreadyExistsException(f"Schema with name {shown(given.dbName)}.{shown(given.name)} already exists")

    def alter(self, name: ISchemaName | None, schema: ISchema | None) -> None:
        """Change everything but name, place and kind. Raises NoSuchObjectException, MetaException."""
        given = required(schema, "new schema")

        def work(tx: Transaction) -> None:
            found = _load(tx, name)
            changed = msgspec.structs.replace(
                found.schema,
                compatibility=given.compatibility,
                validationLevel=given.validationLevel,
                canEvolve=bool(given.canEvolve),
                schemaGroup=given.schemaGroup,
                description=given.description,
            )
            tx.registry.update_schema(found.schema_id, changed)

        self._store.write(work)

    def get(self, name: ISchemaName | None) -> ISchema:
        """Raises NoSuchObjectException, MetaException."""
        return self._store.read(lambda snapshot: _load(snapshot, name)).schema

    def drop(self, name: ISchemaName | None) -> None:
        """Raises NoSuchObjectException, InvalidOperationException while it has a version, MetaException."""

        def work(tx: Transaction) -> None:
            found = _load(tx, name)
            if tx.registry.latest_version(found.schema_id) is not None:
                raise InvalidOperationException(
                    f"Schema {_shown_schema(name)} cannot be dropped, it has at least one valid version"
                )
            tx.registry.delete_schema(found.schema_id)

        self._store.write(work)

    def add_version(self, version: SchemaVersion | None) -> None:
        """Raises AlreadyExistsException, NoSuchObjectException for an unknown schema, MetaException."""
        given = required(version, "schema version")
        number = required(given.version, "version")
        columns = [required(column, "column") for column in required(given.cols, "columns")]
        new = msgspec.structs.replace(given, cols=columns, createdAt=given.createdAt or self._clock.seconds())

        def work(tx: Transaction) -> bool:
            return tx.registry.insert_version(_load(tx, given.schema).schema_id, new)

        if not self._store.write(work):
            raise AlreadyExistsException(f"Schema version {_shown_schema(given.schema)} {number} already exists")

    def version(self, which: SchemaVersionDescriptor | None) -> SchemaVersion:
        """Raises NoSuchObjectException, MetaException."""
        return self._store.read(lambda snapshot: _load_version(snapshot, which)[1])

    def latest_version(self, name: ISchemaName | None) -> SchemaVersion:
        """The one with the highest number. Raises NoSuchObjectException, MetaException."""

        def work(snapshot: Snapshot) -> SchemaVersion:
            found = _load(snapshot, name)
            version = snapshot.registry.latest_version(found.schema_id)
            if version is None:
                raise _no_versions(name)
            return _named(found, version)

        return self._store.read(work)

    def versions(self, name: ISchemaName | None) -> list[SchemaVersion]:
        """All, the latest first. Raises NoSuchObjectException where there are none, MetaException."""

        def work(snapshot: Snapshot) -> list[SchemaVersion]:
            found = _load(snapshot, name)
            versions = snapshot.registry.versions(found.schema_id)
            if not versions:
                raise _no_versions(name)
            return [_named(found, version) for version in versions]

        return self._store.read(work)

    def drop_version(self, which: SchemaVersionDescriptor | None) -> None:
        """Raises NoSuchObjectException, MetaException."""

        def work(tx: Transaction) -> None:
            found, version = _load_version(tx, which)
            tx.registry.delete_version(found.schema_id, version.version or 0)

        self._store.write(work)

    def versions_with_column(
        self, name: str | None, namespace: str | None, type: str | None
    ) -> list[SchemaVersionDescriptor]:
        """The versions with a column for which all that is given holds. Raises MetaException."""
        if name is None and namespace is None:
            raise MetaException("a column name or a column namespace is needed, all would be too many")
        return self._store.read(lambda snapshot: snapshot.registry.versions_with_column(name, namespace, type))

    def map_to_serde(self, which: SchemaVersionDescriptor | None, serde_name: str | None) -> None:
        """Let a version be read with a serde. Raises NoSuchObjectException, MetaException."""
        key = required(serde_name, "name of the serde")

        def work(tx: Transaction) -> None:
            found, version = _load_version(tx, which)
            serde = tx.registry.serde(key)
            if serde is None:
                raise NoSuchObjectException(f"No serde named {shown(key)} exists")
            tx.registry.update_version(found.schema_id, msgspec.structs.replace(version, serDe=serde))

        self._store.write(work)

    def set_state(self, which: SchemaVersionDescriptor | None, state: int | None) -> None:
        """Raises NoSuchObjectException, MetaException."""
        try:
            known = SchemaVersionState(required(state, "state"))
        except ValueError:
            raise MetaException(f"{state} is not a state of a schema version") from None

        def work(tx: Transaction) -> None:
            found, version = _load_version(tx, which)
            tx.registry.update_version(found.schema_id, msgspec.structs.replace(version, state=known))

        self._store.write(work)


def _stored(given: ISchema, name: str) -> ISchema:
    return msgspec.structs.replace(given, name=name, catName=None, dbName=None, canEvolve=bool(given.canEvolve))


def _schema_key(name: str | None) -> str:
    key = normalize(required(name, "name of the schema"))
    if not key:
        raise MetaException("the name of a schema must not be empty")
    return key


def _load(snapshot: Snapshot, name: ISchemaName | None) -> StoredSchema:
    given = required(name, "name of the schema")
    db_name = normalize(required(given.dbName, "database name"))
    key = normalize(required(given.schemaName, "name of the schema"))
    found = None if "\0" in db_name else snapshot.registry.schema(db_name, key)
    if found is None:
        raise NoSuchObjectException(f"No schema named {_shown_schema(given)} exists")
    return found


def _load_version(snapshot: Snapshot, which: SchemaVersionDescriptor | None) -> tuple[StoredSchema, SchemaVersion]:
    given = required(which, "schema version")
    number = required(given.version, "version")
    found = _load(snapshot, given.schema)
    version = snapshot.registry.version(found.schema_id, number)
    if version is None:
        raise NoSuchObjectException(f"No schema version {_shown_schema(given.schema)} {number} exists")
    return found, _named(found, version)


def _named(schema: StoredSchema, version: SchemaVersion) -> SchemaVersion:
    name = ISchemaName(DEFAULT_CATALOG, schema.schema.dbName, schema.schema.name)
    return msgspec.structs.replace(version, schema=name)


def _no_versions(name: ISchemaName | None) -> NoSuchObjectException:
    return NoSuchObjectException(f"No versions of schema {_shown_schema(name)} exist")


def _shown_schema(name: ISchemaName | None) -> str:
    return "null" if name is None else f"{shown(name.dbName)}.{shown(name.schemaName)}"
