"""Serdes, schemas of the registry and their versions, as rows."""

from typing import Any, Final

import msgspec
from sqlalchemy import bindparam, delete, func, insert, select, update

from hms_gateway.metastore.ports.registry import SchemaId, StoredSchema
from hms_gateway.metastore.vocabulary.names import DEFAULT_CATALOG, DatabaseId
from hms_gateway.storage.schema.catalog import DATABASES, REGISTRY_COLUMNS, REGISTRY_SCHEMAS, REGISTRY_VERSIONS, SERDES
from hms_gateway.storage.sql.fragments import decode_struct, encode_struct, text_hash
from hms_gateway.storage.sql.repository import Repository
from hms_gateway.storage.sql.texts import is_storable
from hms_gateway.structs import ISchema, ISchemaName, SchemaVersion, SchemaVersionDescriptor, SerDeInfo

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


class RegistryRepository(Repository):
    """`registry_ports.RegistryWrites`."""

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
        statement = _VERSIONS.order_by(REGISTRY_VERSIONS.c.version.desc())
        contents = self._connection.execute(statement, {"the_schema": schema_id}).scalars()
        return [decode_struct(SchemaVersion, content) for content in contents]

    def versions_with_column(
        self, name: str | None, namespace: str | None, type: str | None
    ) -> list[SchemaVersionDescriptor]:
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
        name = serde.name or ""
        if self.serde(name) is not None:
            return False
        values = {"name_hash": text_hash(name), "content": encode_struct(serde)}
        self._connection.execute(insert(SERDES).values(values))
        return True

    def insert_schema(self, database_id: DatabaseId, schema: ISchema) -> bool:
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
        for table in (REGISTRY_COLUMNS, REGISTRY_VERSIONS, REGISTRY_SCHEMAS):
            self._connection.execute(delete(table).where(table.c.schema_id == schema_id))

    def insert_version(self, schema_id: SchemaId, version: SchemaVersion) -> bool:
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
        of_version = {"the_schema": schema_id, "the_version": version.version}
        self._connection.execute(
            update(REGISTRY_VERSIONS).where(*_IS_VERSION).values(content=bindparam("new_content")),
            {**of_version, "new_content": _content(version)},
        )

    def delete_version(self, schema_id: SchemaId, version: int) -> bool:
        of_version = {"the_schema": schema_id, "the_version": version}
        self._connection.execute(
            delete(REGISTRY_COLUMNS).where(
                REGISTRY_COLUMNS.c.schema_id == schema_id, REGISTRY_COLUMNS.c.version == version
            )
        )
        return self._connection.execute(delete(REGISTRY_VERSIONS).where(*_IS_VERSION), of_version).rowcount > 0


def _content(version: SchemaVersion) -> str:
    return encode_struct(msgspec.structs.replace(version, schema=None))


def _stored_schema(row: Any) -> StoredSchema:
    schema = decode_struct(ISchema, row.content)
    return StoredSchema(
        SchemaId(row.schema_id), msgspec.structs.replace(schema, catName=DEFAULT_CATALOG, dbName=row.db_name)
    )
