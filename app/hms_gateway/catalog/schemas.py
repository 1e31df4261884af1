"""The schema registry of 3.1 and later: serdes by name, schemas of databases, and their versions."""

from typing import Any, Final, NewType

import msgspec
from sqlalchemy import bindparam, delete, func, insert, select, update

from hms_gateway.catalog.arguments import in_catalog, with_fields
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.ports.store import Snapshot, Store, Transaction
from hms_gateway.metastore.vocabulary.names import DatabaseId, normalize
from hms_gateway.metastore.vocabulary.texts import shown
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    AlterISchemaRequest,
    FindSchemasByColsResp,
    FindSchemasByColsRqst,
    GetSerdeRequest,
    InvalidOperationException,
    ISchema,
    ISchemaName,
    MapSchemaVersionToSerdeRequest,
    MetaException,
    NoSuchObjectException,
    SchemaVersion,
    SchemaVersionDescriptor,
    SchemaVersionState,
    SerDeInfo,
    SetSchemaVersionStateRequest,
)
from hms_gateway.rpc.structs.catalogs import DEFAULT_CATALOG
from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.schema.catalog import DATABASES, REGISTRY_COLUMNS, REGISTRY_SCHEMAS, REGISTRY_VERSIONS, SERDES
from hms_gateway.storage.sql.fragments import decode_struct, encode_struct, text_hash
from hms_gateway.storage.sql.repository import AggregateRows, is_storable

SchemaId = NewType("SchemaId", int)


class StoredSchema(msgspec.Struct, frozen=True):
    schema_id: SchemaId
    schema: ISchema


_SCHEMA: Final = (
    select(REGISTRY_SCHEMAS.c.schema_id, REGISTRY_SCHEMAS.c.content, DATABASES.c.name.label("db_name"))
    .join(DATABASES, DATABASES.c.database_id == REGISTRY_SCHEMAS.c.database_id)
    .where(DATABASES.c.name == bindparam("the_db"), REGISTRY_SCHEMAS.c.name_hash == bindparam("the_hash"))
)
_VERSIONS: Final = select(REGISTRY_VERSIONS.c.content).where(REGISTRY_VERSIONS.c.schema_id == bindparam("the_schema"))
_IS_VERSION: Final = (
    REGISTRY_VERSIONS.c.schema_id == bindparam("the_schema"),
    REGISTRY_VERSIONS.c.version == bindparam("the_version"),
)
_WITH_COLUMN: Final = (
    select(REGISTRY_COLUMNS.c.schema_id, REGISTRY_COLUMNS.c.version, REGISTRY_SCHEMAS.c.content, DATABASES.c.name)
    .distinct()
    .join(REGISTRY_SCHEMAS, REGISTRY_SCHEMAS.c.schema_id == REGISTRY_COLUMNS.c.schema_id)
    .join(DATABASES, DATABASES.c.database_id == REGISTRY_SCHEMAS.c.database_id)
    .order_by(REGISTRY_COLUMNS.c.schema_id, REGISTRY_COLUMNS.c.version)
)


class RegistryRows(AggregateRows):
    """Serdes, schemas and their versions. Names are normalised by the caller where they are to be."""

    def serde(self, name: str) -> SerDeInfo | None:
        statement = select(SERDES.c.content).where(SERDES.c.name_hash == text_hash(name))
        content = self._connection.execute(statement).scalar()
        return None if content is None else decode_struct(SerDeInfo, content)

    def schema(self, db_name: str, name: str) -> StoredSchema | None:
        if not is_storable(db_name):
            return None
        row = self._connection.execute(_SCHEMA, {"the_db": db_name, "the_hash": text_hash(name)}).first()
        return None if row is None else _stored_schema(row)

    def version(self, schema_id: SchemaId, version: int) -> SchemaVersion | None:
        """Without the name of its schema, as all versions here."""
        statement = select(REGISTRY_VERSIONS.c.content).where(*_IS_VERSION)
        content = self._connection.execute(statement, {"the_schema": schema_id, "the_version": version}).scalar()
        return None if content is None else decode_struct(SchemaVersion, content)

    def latest_version(self, schema_id: SchemaId) -> SchemaVersion | None:
        newest = (
            select(func.max(REGISTRY_VERSIONS.c.version))
            .where(REGISTRY_VERSIONS.c.schema_id == bindparam("the_schema"))
            .scalar_subquery()
        )
        statement = _VERSIONS.where(REGISTRY_VERSIONS.c.version == newest)
        content = self._connection.execute(statement, {"the_schema": schema_id}).scalar()
        return None if content is None else decode_struct(SchemaVersion, content)

    def versions(self, schema_id: SchemaId) -> list[SchemaVersion]:
        """In order of their numbers."""
        statement = _VERSIONS.order_by(REGISTRY_VERSIONS.c.version.desc())
        contents = self._connection.execute(statement, {"the_schema": schema_id}).scalars()
        return [decode_struct(SchemaVersion, content) for content in contents]

    def versions_with_column(
        self, name: str | None, namespace: str | None, type: str | None
    ) -> list[SchemaVersionDescriptor]:
        """The versions with a column for which all that is given holds; names of columns without regard to case."""
        statement = _WITH_COLUMN
        if name is not None:
            statement = statement.where(REGISTRY_COLUMNS.c.name_hash == text_hash(name.lower()))
        if namespace is not None:
            statement = statement.where(REGISTRY_COLUMNS.c.namespace_hash == text_hash(namespace))
        if type is not None:
            statement = statement.where(REGISTRY_COLUMNS.c.type_hash == text_hash(type))
        return [
            SchemaVersionDescriptor(
                ISchemaName(DEFAULT_CATALOG, db_name, decode_struct(ISchema, content).name), version
            )
            for _, version, content, db_name in self._connection.execute(statement)
        ]

    def insert_serde(self, serde: SerDeInfo) -> bool:
        """False when there is one of its name; then nothing changes."""
        name = serde.name or ""
        if self.serde(name) is not None:
            return False
        values = {"name_hash": text_hash(name), "content": encode_struct(serde)}
        self._connection.execute(insert(SERDES).values(values))
        return True

    def insert_schema(self, database_id: DatabaseId, schema: ISchema) -> bool:
        """False when the database has one of its name."""
        hashed = text_hash(schema.name or "")
        known = select(REGISTRY_SCHEMAS.c.schema_id).where(
            REGISTRY_SCHEMAS.c.database_id == database_id, REGISTRY_SCHEMAS.c.name_hash == hashed
        )
        if self._connection.execute(known).first() is not None:
            return False
        values = {"database_id": database_id, "name_hash": hashed, "content": encode_struct(schema)}
        self._connection.execute(insert(REGISTRY_SCHEMAS).values(values))
        return True

    def update_schema(self, schema_id: SchemaId, schema: ISchema) -> None:
        statement = update(REGISTRY_SCHEMAS).where(REGISTRY_SCHEMAS.c.schema_id == schema_id)
        self._connection.execute(statement.values(content=encode_struct(schema)))

    def delete_schema(self, schema_id: SchemaId) -> None:
        """Delete the schema with its versions."""
        for table in (REGISTRY_COLUMNS, REGISTRY_VERSIONS, REGISTRY_SCHEMAS):
            self._connection.execute(delete(table).where(table.c.schema_id == schema_id))

    def insert_version(self, schema_id: SchemaId, version: SchemaVersion) -> bool:
        """False when the schema has it already."""
        number = version.version or 0
        if self.version(schema_id, number) is not None:
            return False
        row = {"schema_id": schema_id, "version": number}
        self._connection.execute(insert(REGISTRY_VERSIONS).values({**row, "content": _content(version)}))
        columns = [
            {
                **row,
                "position": position,
                "name_hash": text_hash((column.name or "").lower()),
                "namespace_hash": text_hash(column.comment or ""),
                "type_hash": text_hash(column.type or ""),
            }
            for position, column in enumerate(version.cols or ())
        ]
        if columns:
            self._connection.execute(insert(REGISTRY_COLUMNS), columns)
        return True

    def update_version(self, schema_id: SchemaId, version: SchemaVersion) -> None:
        """Its columns stay as they are."""
        of_version = {"the_schema": schema_id, "the_version": version.version}
        self._connection.execute(
            update(REGISTRY_VERSIONS).where(*_IS_VERSION).values(content=bindparam("new_content")),
            {**of_version, "new_content": _content(version)},
        )

    def delete_version(self, schema_id: SchemaId, version: int) -> None:
        of_version = {"the_schema": schema_id, "the_version": version}
        self._connection.execute(
            delete(REGISTRY_COLUMNS).where(
                REGISTRY_COLUMNS.c.schema_id == schema_id, REGISTRY_COLUMNS.c.version == version
            )
        )
        self._connection.execute(delete(REGISTRY_VERSIONS).where(*_IS_VERSION), of_version)


class Schemas:
    """Methods on serdes and schemas. There is one catalog; names of others are not found.

    Names of schemas count without case, those of serdes as they are.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def create_ischema(self, call: Call, schema: ISchema) -> None:
        given = required(schema, "schema")
        db_name = in_catalog(given.catName, given.dbName)
        name = _schema_key(given.name)

        def work(tx: Transaction) -> bool:
            database = tx.database(normalize(required(db_name, "database name")))
            if database is None:
                raise NoSuchObjectException(shown(db_name))
            return RegistryRows(tx).insert_schema(database.database_id, _new(given, name))

        if not self._store.write(work):
            raise AlreadyExistsException(f"Schema with name {shown(db_name)}.{shown(given.name)} already exists")

    def alter_ischema(self, call: Call, rqst: AlterISchemaRequest) -> None:
        """Change everything but name, place and kind."""
        request = required(rqst, "rqst")
        name = _plain(request.name)
        given = required(request.newSchema, "new schema")

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
            RegistryRows(tx).update_schema(found.schema_id, changed)

        self._store.write(work)

    def get_ischema(self, call: Call, name: ISchemaName) -> ISchema:
        plain = _plain(name)
        return self._store.read(lambda snapshot: _load(snapshot, plain)).schema

    def drop_ischema(self, call: Call, name: ISchemaName) -> None:
        """Refused while it has a version."""
        plain = _plain(name)

        def work(tx: Transaction) -> None:
            found, rows = _load(tx, plain), RegistryRows(tx)
            if rows.latest_version(found.schema_id) is not None:
                raise InvalidOperationException(
                    f"Schema {_shown_schema(plain)} cannot be dropped, it has at least one valid version"
                )
            rows.delete_schema(found.schema_id)

        self._store.write(work)

    def add_schema_version(self, call: Call, schemaVersion: SchemaVersion) -> None:
        given = required(schemaVersion, "schemaVersion")
        name = _plain(given.schema)
        number = required(given.version, "version")
        columns = [required(column, "column") for column in required(given.cols, "columns")]
        new = with_fields(given, schema=name, cols=columns, createdAt=given.createdAt or self._clock.seconds())

        def work(tx: Transaction) -> bool:
            return RegistryRows(tx).insert_version(_load(tx, name).schema_id, new)

        if not self._store.write(work):
            raise AlreadyExistsException(f"Schema version {_shown_schema(name)} {number} already exists")

    def get_schema_version(self, call: Call, schemaVersion: SchemaVersionDescriptor) -> SchemaVersion:
        which = _plain_version(schemaVersion)
        return self._store.read(lambda snapshot: _load_version(snapshot, which)[1])

    def get_schema_latest_version(self, call: Call, schemaName: ISchemaName) -> SchemaVersion:
        """The one with the highest number."""
        name = _plain(schemaName)

        def work(snapshot: Snapshot) -> SchemaVersion:
            found = _load(snapshot, name)
            version = RegistryRows(snapshot).latest_version(found.schema_id)
            if version is None:
                raise _no_versions(name)
            return _named(found, version)

        return self._store.read(work)

    def get_schema_all_versions(self, call: Call, schemaName: ISchemaName) -> list[SchemaVersion]:
        """The latest first."""
        name = _plain(schemaName)

        def work(snapshot: Snapshot) -> list[SchemaVersion]:
            found = _load(snapshot, name)
            versions = RegistryRows(snapshot).versions(found.schema_id)
            if not versions:
                raise _no_versions(name)
            return [_named(found, version) for version in versions]

        return self._store.read(work)

    def drop_schema_version(self, call: Call, schemaVersion: SchemaVersionDescriptor) -> None:
        which = _plain_version(schemaVersion)

        def work(tx: Transaction) -> None:
            found, version = _load_version(tx, which)
            RegistryRows(tx).delete_version(found.schema_id, version.version or 0)

        self._store.write(work)

    def get_schemas_by_cols(self, call: Call, rqst: FindSchemasByColsRqst) -> FindSchemasByColsResp:
        """The versions with a column for which all that is given holds."""
        wanted = required(rqst, "rqst")
        if wanted.colName is None and wanted.colNamespace is None:
            raise MetaException("a column name or a column namespace is needed, all would be too many")
        return FindSchemasByColsResp(
            self._store.read(
                lambda snapshot: RegistryRows(snapshot).versions_with_column(
                    wanted.colName, wanted.colNamespace, wanted.type
                )
            )
        )

    def map_schema_version_to_serde(self, call: Call, rqst: MapSchemaVersionToSerdeRequest) -> None:
        """Let a version be read with a serde."""
        request = required(rqst, "rqst")
        which = _plain_version(request.schemaVersion)
        key = required(request.serdeName, "name of the serde")

        def work(tx: Transaction) -> None:
            found, version = _load_version(tx, which)
            serde = RegistryRows(tx).serde(key)
            if serde is None:
                raise NoSuchObjectException(f"No serde named {shown(key)} exists")
            RegistryRows(tx).update_version(found.schema_id, msgspec.structs.replace(version, serDe=serde))

        self._store.write(work)

    def set_schema_version_state(self, call: Call, rqst: SetSchemaVersionStateRequest) -> None:
        request = required(rqst, "rqst")
        which = _plain_version(request.schemaVersion)
        try:
            known = SchemaVersionState(required(request.state, "state"))
        except ValueError:
            raise MetaException(f"{request.state} is not a state of a schema version") from None

        def work(tx: Transaction) -> None:
            found, version = _load_version(tx, which)
            RegistryRows(tx).update_version(found.schema_id, msgspec.structs.replace(version, state=known))

        self._store.write(work)

    def add_serde(self, call: Call, serde: SerDeInfo) -> None:
        new = required(serde, "serde")
        if not required(new.name, "name of the serde"):
            raise MetaException("the name of a serde must not be empty")
        if not self._store.write(lambda tx: RegistryRows(tx).insert_serde(new)):
            raise AlreadyExistsException(f"Serde with name {shown(new.name)} already exists")

    def get_serde(self, call: Call, rqst: GetSerdeRequest) -> SerDeInfo:
        key = required(required(rqst, "rqst").serdeName, "name of the serde")
        found = self._store.read(lambda snapshot: RegistryRows(snapshot).serde(key))
        if found is None:
            raise NoSuchObjectException(f"No serde named {shown(key)} exists")
        return found


def _new(given: ISchema, name: str) -> ISchema:
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
    found = RegistryRows(snapshot).schema(db_name, key)
    if found is None:
        raise NoSuchObjectException(f"No schema named {_shown_schema(given)} exists")
    return found


def _load_version(snapshot: Snapshot, which: SchemaVersionDescriptor | None) -> tuple[StoredSchema, SchemaVersion]:
    given = required(which, "schema version")
    number = required(given.version, "version")
    found = _load(snapshot, given.schema)
    version = RegistryRows(snapshot).version(found.schema_id, number)
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


def _plain(name: ISchemaName | None) -> ISchemaName | None:
    return None if name is None else with_fields(name, dbName=in_catalog(name.catName, name.dbName))


def _plain_version(which: SchemaVersionDescriptor | None) -> SchemaVersionDescriptor | None:
    return None if which is None else with_fields(which, schema=_plain(which.schema))


def _content(version: SchemaVersion) -> str:
    return encode_struct(msgspec.structs.replace(version, schema=None))


def _stored_schema(row: Any) -> StoredSchema:
    schema = decode_struct(ISchema, row.content)
    return StoredSchema(
        SchemaId(row.schema_id), msgspec.structs.replace(schema, catName=DEFAULT_CATALOG, dbName=row.db_name)
    )
