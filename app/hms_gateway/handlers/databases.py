"""Methods on databases."""

from hms_gateway.catalog.arguments import database_name, in_catalog, is_newer, with_fields
from hms_gateway.catalog.tables.databases import DatabaseService
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.vocabulary.names import DEFAULT_CATALOG
from hms_gateway.rpc.call import Call
from hms_gateway.structs import (
    AlterDatabaseRequest,
    AsyncOperationResp,
    CreateDatabaseRequest,
    Database,
    DropDatabaseRequest,
    GetDatabaseObjectsRequest,
    GetDatabaseObjectsResponse,
    GetDatabaseRequest,
    NoSuchObjectException,
)


class Databases:
    def __init__(self, databases: DatabaseService) -> None:
        self._databases = databases

    def create_database(self, call: Call, database: Database) -> None:
        newer = is_newer(call, None if database is None else database.name)
        self._databases.create(_plain(database), allows_hyphen=newer)

    def create_database_req(self, call: Call, createDatabaseRequest: CreateDatabaseRequest) -> None:
        request = required(createDatabaseRequest, "createDatabaseRequest")
        self._databases.create(
            Database(
                name=in_catalog(request.catalogName, request.databaseName),
                description=request.description,
                locationUri=request.locationUri,
                parameters=request.parameters,
                ownerName=request.ownerName,
                ownerType=request.ownerType,
                managedLocationUri=request.managedLocationUri,
                type=request.type,
                connector_name=request.dataConnectorName,
                remote_dbname=request.remote_dbname,
            ),
            allows_hyphen=True,
        )

    def get_database(self, call: Call, name: str) -> Database:
        """2.3 has no time of creation, so its callers are not sent one."""
        database = self._databases.get(database_name(name))
        return _in_default_catalog(database) if is_newer(call, name) else with_fields(database, createTime=None)

    def get_database_req(self, call: Call, request: GetDatabaseRequest) -> Database:
        request = required(request, "request")
        return _in_default_catalog(self._databases.get(in_catalog(request.catalogName, request.name)))

    def drop_database(self, call: Call, name: str, deleteData: bool, cascade: bool) -> None:
        self._databases.drop(database_name(name), bool(deleteData), bool(cascade))

    def drop_database_req(self, call: Call, req: DropDatabaseRequest) -> AsyncOperationResp:
        """Dropped at once, also when the caller would wait; `softDelete` and `deleteManagedDir` belong to ACID."""
        request = required(req, "req")
        name = in_catalog(request.catalogName, request.name)
        try:
            self._databases.drop(name, bool(request.deleteData), bool(request.cascade))
        except NoSuchObjectException:
            if not request.ignoreUnknownDb:
                raise
        return AsyncOperationResp(id=request.id or "", finished=True)

    def get_databases(self, call: Call, pattern: str) -> list[str]:
        return self._databases.names(database_name(pattern))

    def get_databases_req(self, call: Call, request: GetDatabaseObjectsRequest) -> GetDatabaseObjectsResponse:
        request = required(request, "request")
        pattern = None if request.pattern is None else in_catalog(request.catalogName, request.pattern)
        return GetDatabaseObjectsResponse([_in_default_catalog(found) for found in self._databases.objects(pattern)])

    def get_all_databases(self, call: Call) -> list[str]:
        return self._databases.names()

    def alter_database(self, call: Call, dbname: str, db: Database) -> None:
        self._databases.alter(database_name(dbname), db, changes_place=is_newer(call, dbname))

    def alter_database_req(self, call: Call, alterDbReq: AlterDatabaseRequest) -> None:
        request = required(alterDbReq, "alterDbReq")
        self._databases.alter(database_name(request.oldDbName), request.newDb, changes_place=True)


def _plain(database: Database | None) -> Database | None:
    """A new database under the name it has within the one catalog."""
    if database is None or database.name is None:
        return database
    return with_fields(database, name=in_catalog(database.catalogName, database.name))


def _in_default_catalog(database: Database) -> Database:
    return with_fields(database, catalogName=DEFAULT_CATALOG)
