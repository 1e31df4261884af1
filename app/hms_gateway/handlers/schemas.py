"""Methods on serdes and the schema registry of 3.1 and later. There is one catalog; names of others are not found."""

from hms_gateway.catalog.arguments import in_catalog, with_fields
from hms_gateway.catalog.registry.schema_registry import SchemaRegistryService
from hms_gateway.metastore.checks.errors import required
from hms_gateway.rpc.call import Call
from hms_gateway.structs import (
    AlterISchemaRequest,
    FindSchemasByColsResp,
    FindSchemasByColsRqst,
    GetSerdeRequest,
    ISchema,
    ISchemaName,
    MapSchemaVersionToSerdeRequest,
    SchemaVersion,
    SchemaVersionDescriptor,
    SerDeInfo,
    SetSchemaVersionStateRequest,
)


class Schemas:
    def __init__(self, registry: SchemaRegistryService) -> None:
        self._registry = registry

    def create_ischema(self, call: Call, schema: ISchema) -> None:
        given = required(schema, "schema")
        self._registry.create(with_fields(given, dbName=in_catalog(given.catName, given.dbName)))

    def alter_ischema(self, call: Call, rqst: AlterISchemaRequest) -> None:
        request = required(rqst, "rqst")
        self._registry.alter(_plain(request.name), request.newSchema)

    def get_ischema(self, call: Call, name: ISchemaName) -> ISchema:
        return self._registry.get(_plain(name))

    def drop_ischema(self, call: Call, name: ISchemaName) -> None:
        self._registry.drop(_plain(name))

    def add_schema_version(self, call: Call, schemaVersion: SchemaVersion) -> None:
        given = required(schemaVersion, "schemaVersion")
        self._registry.add_version(with_fields(given, schema=_plain(given.schema)))

    def get_schema_version(self, call: Call, schemaVersion: SchemaVersionDescriptor) -> SchemaVersion:
        return self._registry.version(_plain_version(schemaVersion))

    def get_schema_latest_version(self, call: Call, schemaName: ISchemaName) -> SchemaVersion:
        return self._registry.latest_version(_plain(schemaName))

    def get_schema_all_versions(self, call: Call, schemaName: ISchemaName) -> list[SchemaVersion]:
        return self._registry.versions(_plain(schemaName))

    def drop_schema_version(self, call: Call, schemaVersion: SchemaVersionDescriptor) -> None:
        self._registry.drop_version(_plain_version(schemaVersion))

    def get_schemas_by_cols(self, call: Call, rqst: FindSchemasByColsRqst) -> FindSchemasByColsResp:
        request = required(rqst, "rqst")
        found = self._registry.versions_with_column(request.colName, request.colNamespace, request.type)
        return FindSchemasByColsResp(found)

    def map_schema_version_to_serde(self, call: Call, rqst: MapSchemaVersionToSerdeRequest) -> None:
        request = required(rqst, "rqst")
        self._registry.map_to_serde(_plain_version(request.schemaVersion), request.serdeName)

    def set_schema_version_state(self, call: Call, rqst: SetSchemaVersionStateRequest) -> None:
        request = required(rqst, "rqst")
        self._registry.set_state(_plain_version(request.schemaVersion), request.state)

    def add_serde(self, call: Call, serde: SerDeInfo) -> None:
        self._registry.add_serde(serde)

    def get_serde(self, call: Call, rqst: GetSerdeRequest) -> SerDeInfo:
        return self._registry.serde(required(rqst, "rqst").serdeName)


def _plain(name: ISchemaName | None) -> ISchemaName | None:
    return None if name is None else with_fields(name, dbName=in_catalog(name.catName, name.dbName))


def _plain_version(which: SchemaVersionDescriptor | None) -> SchemaVersionDescriptor | None:
    return None if which is None else with_fields(which, schema=_plain(which.schema))
