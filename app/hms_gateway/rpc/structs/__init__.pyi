# Written by `python -m tools stubs` from schema/hive_metastore.thrift; do not edit.
from enum import IntEnum

from hms_gateway.rpc.idl import Idl
from hms_gateway.rpc.structs.base import Encoded as Encoded
from hms_gateway.rpc.structs.base import EncodedList as EncodedList
from hms_gateway.rpc.structs.base import Method as Method
from hms_gateway.rpc.structs.base import Struct as Struct
from hms_gateway.rpc.structs.base import StructClass
from hms_gateway.rpc.structs.base import ThriftException as ThriftException

IDL: Idl
STRUCTS: dict[str, StructClass]
ENUMS: dict[str, type[IntEnum]]
METHODS: dict[str, Method]

class fb_status(IntEnum):
    DEAD = 0
    STARTING = 1
    ALIVE = 2
    STOPPING = 3
    STOPPED = 4
    WARNING = 5

class PrincipalType(IntEnum):
    USER = 1
    ROLE = 2
    GROUP = 3

class ClientCapability(IntEnum):
    TEST_CAPABILITY = 1
    INSERT_ONLY_TABLES = 2

class HiveObjectType(IntEnum):
    GLOBAL = 1
    DATABASE = 2
    TABLE = 3
    PARTITION = 4
    COLUMN = 5
    DATACONNECTOR = 6

class GrantRevokeType(IntEnum):
    GRANT = 1
    REVOKE = 2

class DatabaseType(IntEnum):
    NATIVE = 1
    REMOTE = 2

class SerdeType(IntEnum):
    HIVE = 1
    SCHEMA_REGISTRY = 2

class GetTablesExtRequestFields(IntEnum):
    ACCESS_TYPE = 1
    PROCESSOR_CAPABILITIES = 2
    ALL = 2147483647

class PartitionFilterMode(IntEnum):
    BY_NAMES = 0
    BY_VALUES = 1
    BY_EXPR = 2

class PartitionEventType(IntEnum):
    LOAD_DONE = 1

class FunctionType(IntEnum):
    JAVA = 1

class ResourceType(IntEnum):
    JAR = 1
    FILE = 2
    ARCHIVE = 3

class TxnState(IntEnum):
    COMMITTED = 1
    ABORTED = 2
    OPEN = 3

class TxnType(IntEnum):
    DEFAULT = 0
    REPL_CREATED = 1
    READ_ONLY = 2
    COMPACTION = 3
    MATER_VIEW_REBUILD = 4
    SOFT_DELETE = 5
    REBALANCE_COMPACTION = 6

class DataOperationType(IntEnum):
    SELECT = 1
    INSERT = 2
    UPDATE = 3
    DELETE = 4
    UNSET = 5
    NO_TXN = 6

class LockLevel(IntEnum):
    DB = 1
    TABLE = 2
    PARTITION = 3

class LockState(IntEnum):
    ACQUIRED = 1
    WAITING = 2
    ABORT = 3
    NOT_ACQUIRED = 4

class LockType(IntEnum):
    SHARED_READ = 1
    SHARED_WRITE = 2
    EXCLUSIVE = 3
    EXCL_WRITE = 4

class CompactionType(IntEnum):
    MINOR = 1
    MAJOR = 2
    REBALANCE = 3
    ABORT_TXN_CLEANUP = 4

class EventRequestType(IntEnum):
    INSERT = 1
    UPDATE = 2
    DELETE = 3

class FileMetadataExprType(IntEnum):
    ORC_SARG = 1

class WMResourcePlanStatus(IntEnum):
    ACTIVE = 1
    ENABLED = 2
    DISABLED = 3

class WMPoolSchedulingPolicy(IntEnum):
    FAIR = 1
    FIFO = 2

class SchemaType(IntEnum):
    HIVE = 1
    AVRO = 2

class SchemaCompatibility(IntEnum):
    NONE = 1
    BACKWARD = 2
    FORWARD = 3
    BOTH = 4

class SchemaValidation(IntEnum):
    LATEST = 1
    ALL = 2

class SchemaVersionState(IntEnum):
    INITIATED = 1
    START_REVIEW = 2
    CHANGES_REQUIRED = 3
    REVIEWED = 4
    ENABLED = 5
    DISABLED = 6
    ARCHIVED = 7
    DELETED = 8

class ScheduledQueryMaintenanceRequestType(IntEnum):
    CREATE = 1
    ALTER = 2
    DROP = 3

class QueryState(IntEnum):
    INITED = 0
    EXECUTING = 1
    FAILED = 2
    FINISHED = 3
    TIMED_OUT = 4
    AUTO_DISABLED = 5

class MetaException(ThriftException):
    def __init__(
        self,
        message: str | None = None,
    ) -> None: ...

class UnknownTableException(ThriftException):
    def __init__(
        self,
        message: str | None = None,
    ) -> None: ...

class UnknownDBException(ThriftException):
    def __init__(
        self,
        message: str | None = None,
    ) -> None: ...

class AlreadyExistsException(ThriftException):
    def __init__(
        self,
        message: str | None = None,
    ) -> None: ...

class InvalidPartitionException(ThriftException):
    def __init__(
        self,
        message: str | None = None,
    ) -> None: ...

class UnknownPartitionException(ThriftException):
    def __init__(
        self,
        message: str | None = None,
    ) -> None: ...

class InvalidObjectException(ThriftException):
    def __init__(
        self,
        message: str | None = None,
    ) -> None: ...

class NoSuchObjectException(ThriftException):
    def __init__(
        self,
        message: str | None = None,
    ) -> None: ...

class IndexAlreadyExistsException(ThriftException):
    def __init__(
        self,
        message: str | None = None,
    ) -> None: ...

class InvalidOperationException(ThriftException):
    def __init__(
        self,
        message: str | None = None,
    ) -> None: ...

class ConfigValSecurityException(ThriftException):
    def __init__(
        self,
        message: str | None = None,
    ) -> None: ...

class InvalidInputException(ThriftException):
    def __init__(
        self,
        message: str | None = None,
    ) -> None: ...

class NoSuchTxnException(ThriftException):
    def __init__(
        self,
        message: str | None = None,
    ) -> None: ...

class TxnAbortedException(ThriftException):
    def __init__(
        self,
        message: str | None = None,
    ) -> None: ...

class TxnOpenException(ThriftException):
    def __init__(
        self,
        message: str | None = None,
    ) -> None: ...

class NoSuchLockException(ThriftException):
    def __init__(
        self,
        message: str | None = None,
    ) -> None: ...

class CompactionAbortedException(ThriftException):
    def __init__(
        self,
        message: str | None = None,
    ) -> None: ...

class NoSuchCompactionException(ThriftException):
    def __init__(
        self,
        message: str | None = None,
    ) -> None: ...

class Version(Struct):
    version: str | None
    comments: str | None
    def __init__(
        self,
        version: str | None = None,
        comments: str | None = None,
    ) -> None: ...

class EnvironmentContext(Struct):
    properties: dict[str, str] | None
    def __init__(
        self,
        properties: dict[str, str] | None = None,
    ) -> None: ...

class ClientCapabilities(Struct):
    values: list[int] | None
    def __init__(
        self,
        values: list[int] | None = None,
    ) -> None: ...

class GetProjectionsSpec(Struct):
    fieldList: list[str] | None
    includeParamKeyPattern: str | None
    excludeParamKeyPattern: str | None
    def __init__(
        self,
        fieldList: list[str] | None = None,
        includeParamKeyPattern: str | None = None,
        excludeParamKeyPattern: str | None = None,
    ) -> None: ...

class PropertySetRequest(Struct):
    nameSpace: str | None
    propertyMap: dict[str, str] | None
    def __init__(
        self,
        nameSpace: str | None = None,
        propertyMap: dict[str, str] | None = None,
    ) -> None: ...

class PropertyGetRequest(Struct):
    nameSpace: str | None
    mapPrefix: str | None
    mapPredicate: str | None
    mapSelection: list[str] | None
    def __init__(
        self,
        nameSpace: str | None = None,
        mapPrefix: str | None = None,
        mapPredicate: str | None = None,
        mapSelection: list[str] | None = None,
    ) -> None: ...

class PropertyGetResponse(Struct):
    properties: dict[str, dict[str, str]] | None
    def __init__(
        self,
        properties: dict[str, dict[str, str]] | None = None,
    ) -> None: ...

class HiveObjectRef(Struct):
    objectType: int | None
    dbName: str | None
    objectName: str | None
    partValues: list[str] | None
    columnName: str | None
    catName: str | None
    def __init__(
        self,
        objectType: int | None = None,
        dbName: str | None = None,
        objectName: str | None = None,
        partValues: list[str] | None = None,
        columnName: str | None = None,
        catName: str | None = None,
    ) -> None: ...

class PrivilegeGrantInfo(Struct):
    privilege: str | None
    createTime: int | None
    grantor: str | None
    grantorType: int | None
    grantOption: bool | None
    def __init__(
        self,
        privilege: str | None = None,
        createTime: int | None = None,
        grantor: str | None = None,
        grantorType: int | None = None,
        grantOption: bool | None = None,
    ) -> None: ...

class HiveObjectPrivilege(Struct):
    hiveObject: HiveObjectRef | None
    principalName: str | None
    principalType: int | None
    grantInfo: PrivilegeGrantInfo | None
    authorizer: str | None
    def __init__(
        self,
        hiveObject: HiveObjectRef | Encoded | None = None,
        principalName: str | None = None,
        principalType: int | None = None,
        grantInfo: PrivilegeGrantInfo | Encoded | None = None,
        authorizer: str | None = None,
    ) -> None: ...

class PrivilegeBag(Struct):
    privileges: list[HiveObjectPrivilege] | None
    def __init__(
        self,
        privileges: list[HiveObjectPrivilege] | EncodedList | None = None,
    ) -> None: ...

class PrincipalPrivilegeSet(Struct):
    userPrivileges: dict[str, list[PrivilegeGrantInfo]] | None
    groupPrivileges: dict[str, list[PrivilegeGrantInfo]] | None
    rolePrivileges: dict[str, list[PrivilegeGrantInfo]] | None
    def __init__(
        self,
        userPrivileges: dict[str, list[PrivilegeGrantInfo]] | None = None,
        groupPrivileges: dict[str, list[PrivilegeGrantInfo]] | None = None,
        rolePrivileges: dict[str, list[PrivilegeGrantInfo]] | None = None,
    ) -> None: ...

class GrantRevokePrivilegeRequest(Struct):
    requestType: int | None
    privileges: PrivilegeBag | None
    revokeGrantOption: bool | None
    def __init__(
        self,
        requestType: int | None = None,
        privileges: PrivilegeBag | Encoded | None = None,
        revokeGrantOption: bool | None = None,
    ) -> None: ...

class GrantRevokePrivilegeResponse(Struct):
    success: bool | None
    def __init__(
        self,
        success: bool | None = None,
    ) -> None: ...

class Role(Struct):
    roleName: str | None
    createTime: int | None
    ownerName: str | None
    def __init__(
        self,
        roleName: str | None = None,
        createTime: int | None = None,
        ownerName: str | None = None,
    ) -> None: ...

class RolePrincipalGrant(Struct):
    roleName: str | None
    principalName: str | None
    principalType: int | None
    grantOption: bool | None
    grantTime: int | None
    grantorName: str | None
    grantorPrincipalType: int | None
    def __init__(
        self,
        roleName: str | None = None,
        principalName: str | None = None,
        principalType: int | None = None,
        grantOption: bool | None = None,
        grantTime: int | None = None,
        grantorName: str | None = None,
        grantorPrincipalType: int | None = None,
    ) -> None: ...

class GetRoleGrantsForPrincipalRequest(Struct):
    principal_name: str | None
    principal_type: int | None
    def __init__(
        self,
        principal_name: str | None = None,
        principal_type: int | None = None,
    ) -> None: ...

class GetRoleGrantsForPrincipalResponse(Struct):
    principalGrants: list[RolePrincipalGrant] | None
    def __init__(
        self,
        principalGrants: list[RolePrincipalGrant] | EncodedList | None = None,
    ) -> None: ...

class GetPrincipalsInRoleRequest(Struct):
    roleName: str | None
    def __init__(
        self,
        roleName: str | None = None,
    ) -> None: ...

class GetPrincipalsInRoleResponse(Struct):
    principalGrants: list[RolePrincipalGrant] | None
    def __init__(
        self,
        principalGrants: list[RolePrincipalGrant] | EncodedList | None = None,
    ) -> None: ...

class GrantRevokeRoleRequest(Struct):
    requestType: int | None
    roleName: str | None
    principalName: str | None
    principalType: int | None
    grantor: str | None
    grantorType: int | None
    grantOption: bool | None
    def __init__(
        self,
        requestType: int | None = None,
        roleName: str | None = None,
        principalName: str | None = None,
        principalType: int | None = None,
        grantor: str | None = None,
        grantorType: int | None = None,
        grantOption: bool | None = None,
    ) -> None: ...

class GrantRevokeRoleResponse(Struct):
    success: bool | None
    def __init__(
        self,
        success: bool | None = None,
    ) -> None: ...

class Catalog(Struct):
    name: str | None
    description: str | None
    locationUri: str | None
    createTime: int | None
    def __init__(
        self,
        name: str | None = None,
        description: str | None = None,
        locationUri: str | None = None,
        createTime: int | None = None,
    ) -> None: ...

class CreateCatalogRequest(Struct):
    catalog: Catalog | None
    def __init__(
        self,
        catalog: Catalog | Encoded | None = None,
    ) -> None: ...

class AlterCatalogRequest(Struct):
    name: str | None
    newCat: Catalog | None
    def __init__(
        self,
        name: str | None = None,
        newCat: Catalog | Encoded | None = None,
    ) -> None: ...

class GetCatalogRequest(Struct):
    name: str | None
    def __init__(
        self,
        name: str | None = None,
    ) -> None: ...

class GetCatalogResponse(Struct):
    catalog: Catalog | None
    def __init__(
        self,
        catalog: Catalog | Encoded | None = None,
    ) -> None: ...

class GetCatalogsResponse(Struct):
    names: list[str] | None
    def __init__(
        self,
        names: list[str] | None = None,
    ) -> None: ...

class DropCatalogRequest(Struct):
    name: str | None
    def __init__(
        self,
        name: str | None = None,
    ) -> None: ...

class Database(Struct):
    name: str | None
    description: str | None
    locationUri: str | None
    parameters: dict[str, str] | None
    privileges: PrincipalPrivilegeSet | None
    ownerName: str | None
    ownerType: int | None
    catalogName: str | None
    createTime: int | None
    managedLocationUri: str | None
    type: int | None
    connector_name: str | None
    remote_dbname: str | None
    def __init__(
        self,
        name: str | None = None,
        description: str | None = None,
        locationUri: str | None = None,
        parameters: dict[str, str] | None = None,
        privileges: PrincipalPrivilegeSet | Encoded | None = None,
        ownerName: str | None = None,
        ownerType: int | None = None,
        catalogName: str | None = None,
        createTime: int | None = None,
        managedLocationUri: str | None = None,
        type: int | None = None,
        connector_name: str | None = None,
        remote_dbname: str | None = None,
    ) -> None: ...

class GetDatabaseRequest(Struct):
    name: str | None
    catalogName: str | None
    processorCapabilities: list[str] | None
    processorIdentifier: str | None
    def __init__(
        self,
        name: str | None = None,
        catalogName: str | None = None,
        processorCapabilities: list[str] | None = None,
        processorIdentifier: str | None = None,
    ) -> None: ...

class GetDatabaseObjectsRequest(Struct):
    catalogName: str | None
    pattern: str | None
    def __init__(
        self,
        catalogName: str | None = None,
        pattern: str | None = None,
    ) -> None: ...

class GetDatabaseObjectsResponse(Struct):
    databases: list[Database] | None
    def __init__(
        self,
        databases: list[Database] | EncodedList | None = None,
    ) -> None: ...

class CreateDatabaseRequest(Struct):
    databaseName: str | None
    description: str | None
    locationUri: str | None
    parameters: dict[str, str] | None
    privileges: PrincipalPrivilegeSet | None
    ownerName: str | None
    ownerType: int | None
    catalogName: str | None
    createTime: int | None
    managedLocationUri: str | None
    type: int | None
    dataConnectorName: str | None
    remote_dbname: str | None
    def __init__(
        self,
        databaseName: str | None = None,
        description: str | None = None,
        locationUri: str | None = None,
        parameters: dict[str, str] | None = None,
        privileges: PrincipalPrivilegeSet | Encoded | None = None,
        ownerName: str | None = None,
        ownerType: int | None = None,
        catalogName: str | None = None,
        createTime: int | None = None,
        managedLocationUri: str | None = None,
        type: int | None = None,
        dataConnectorName: str | None = None,
        remote_dbname: str | None = None,
    ) -> None: ...

class AlterDatabaseRequest(Struct):
    oldDbName: str | None
    newDb: Database | None
    def __init__(
        self,
        oldDbName: str | None = None,
        newDb: Database | Encoded | None = None,
    ) -> None: ...

class DropDatabaseRequest(Struct):
    name: str | None
    catalogName: str | None
    ignoreUnknownDb: bool | None
    deleteData: bool | None
    cascade: bool | None
    softDelete: bool | None
    txnId: int | None
    deleteManagedDir: bool | None
    id: str | None
    asyncDrop: bool | None
    cancel: bool | None
    def __init__(
        self,
        name: str | None = None,
        catalogName: str | None = None,
        ignoreUnknownDb: bool | None = None,
        deleteData: bool | None = None,
        cascade: bool | None = None,
        softDelete: bool | None = None,
        txnId: int | None = None,
        deleteManagedDir: bool | None = None,
        id: str | None = None,
        asyncDrop: bool | None = None,
        cancel: bool | None = None,
    ) -> None: ...

class AsyncOperationResp(Struct):
    id: str | None
    message: str | None
    finished: bool | None
    def __init__(
        self,
        id: str | None = None,
        message: str | None = None,
        finished: bool | None = None,
    ) -> None: ...

class FieldSchema(Struct):
    name: str | None
    type: str | None
    comment: str | None
    def __init__(
        self,
        name: str | None = None,
        type: str | None = None,
        comment: str | None = None,
    ) -> None: ...

class Type(Struct):
    name: str | None
    type1: str | None
    type2: str | None
    fields: list[FieldSchema] | None
    def __init__(
        self,
        name: str | None = None,
        type1: str | None = None,
        type2: str | None = None,
        fields: list[FieldSchema] | EncodedList | None = None,
    ) -> None: ...

class Schema(Struct):
    fieldSchemas: list[FieldSchema] | None
    properties: dict[str, str] | None
    def __init__(
        self,
        fieldSchemas: list[FieldSchema] | EncodedList | None = None,
        properties: dict[str, str] | None = None,
    ) -> None: ...

class GetFieldsRequest(Struct):
    catName: str | None
    dbName: str | None
    tblName: str | None
    envContext: EnvironmentContext | None
    validWriteIdList: str | None
    id: int | None
    def __init__(
        self,
        catName: str | None = None,
        dbName: str | None = None,
        tblName: str | None = None,
        envContext: EnvironmentContext | Encoded | None = None,
        validWriteIdList: str | None = None,
        id: int | None = None,
    ) -> None: ...

class GetFieldsResponse(Struct):
    fields: list[FieldSchema] | None
    def __init__(
        self,
        fields: list[FieldSchema] | EncodedList | None = None,
    ) -> None: ...

class GetSchemaRequest(Struct):
    catName: str | None
    dbName: str | None
    tblName: str | None
    envContext: EnvironmentContext | None
    validWriteIdList: str | None
    id: int | None
    def __init__(
        self,
        catName: str | None = None,
        dbName: str | None = None,
        tblName: str | None = None,
        envContext: EnvironmentContext | Encoded | None = None,
        validWriteIdList: str | None = None,
        id: int | None = None,
    ) -> None: ...

class GetSchemaResponse(Struct):
    fields: list[FieldSchema] | None
    def __init__(
        self,
        fields: list[FieldSchema] | EncodedList | None = None,
    ) -> None: ...

class SerDeInfo(Struct):
    name: str | None
    serializationLib: str | None
    parameters: dict[str, str] | None
    description: str | None
    serializerClass: str | None
    deserializerClass: str | None
    serdeType: int | None
    def __init__(
        self,
        name: str | None = None,
        serializationLib: str | None = None,
        parameters: dict[str, str] | None = None,
        description: str | None = None,
        serializerClass: str | None = None,
        deserializerClass: str | None = None,
        serdeType: int | None = None,
    ) -> None: ...

class GetSerdeRequest(Struct):
    serdeName: str | None
    def __init__(
        self,
        serdeName: str | None = None,
    ) -> None: ...

class Order(Struct):
    col: str | None
    order: int | None
    def __init__(
        self,
        col: str | None = None,
        order: int | None = None,
    ) -> None: ...

class SkewedInfo(Struct):
    skewedColNames: list[str] | None
    skewedColValues: list[list[str]] | None
    skewedColValueLocationMaps: dict[tuple[str, ...], str] | None
    def __init__(
        self,
        skewedColNames: list[str] | None = None,
        skewedColValues: list[list[str]] | None = None,
        skewedColValueLocationMaps: dict[tuple[str, ...], str] | None = None,
    ) -> None: ...

class StorageDescriptor(Struct):
    cols: list[FieldSchema] | None
    location: str | None
    inputFormat: str | None
    outputFormat: str | None
    compressed: bool | None
    numBuckets: int | None
    serdeInfo: SerDeInfo | None
    bucketCols: list[str] | None
    sortCols: list[Order] | None
    parameters: dict[str, str] | None
    skewedInfo: SkewedInfo | None
    storedAsSubDirectories: bool | None
    def __init__(
        self,
        cols: list[FieldSchema] | EncodedList | None = None,
        location: str | None = None,
        inputFormat: str | None = None,
        outputFormat: str | None = None,
        compressed: bool | None = None,
        numBuckets: int | None = None,
        serdeInfo: SerDeInfo | Encoded | None = None,
        bucketCols: list[str] | None = None,
        sortCols: list[Order] | EncodedList | None = None,
        parameters: dict[str, str] | None = None,
        skewedInfo: SkewedInfo | Encoded | None = None,
        storedAsSubDirectories: bool | None = None,
    ) -> None: ...

class FileMetadata(Struct):
    type: int | None
    version: int | None
    data: list[bytes] | None
    def __init__(
        self,
        type: int | None = None,
        version: int | None = None,
        data: list[bytes] | None = None,
    ) -> None: ...

class ObjectDictionary(Struct):
    values: dict[str, list[bytes]] | None
    def __init__(
        self,
        values: dict[str, list[bytes]] | None = None,
    ) -> None: ...

class BooleanColumnStatsData(Struct):
    numTrues: int | None
    numFalses: int | None
    numNulls: int | None
    bitVectors: str | None
    def __init__(
        self,
        numTrues: int | None = None,
        numFalses: int | None = None,
        numNulls: int | None = None,
        bitVectors: str | None = None,
    ) -> None: ...

class BooleanColumnStatsData_v4(Struct):
    numTrues: int | None
    numFalses: int | None
    numNulls: int | None
    bitVectors: bytes | None
    def __init__(
        self,
        numTrues: int | None = None,
        numFalses: int | None = None,
        numNulls: int | None = None,
        bitVectors: bytes | None = None,
    ) -> None: ...

class DoubleColumnStatsData(Struct):
    lowValue: float | None
    highValue: float | None
    numNulls: int | None
    numDVs: int | None
    bitVectors: str | None
    histogram: bytes | None
    def __init__(
        self,
        lowValue: float | None = None,
        highValue: float | None = None,
        numNulls: int | None = None,
        numDVs: int | None = None,
        bitVectors: str | None = None,
        histogram: bytes | None = None,
    ) -> None: ...

class DoubleColumnStatsData_v4(Struct):
    lowValue: float | None
    highValue: float | None
    numNulls: int | None
    numDVs: int | None
    bitVectors: bytes | None
    histogram: bytes | None
    def __init__(
        self,
        lowValue: float | None = None,
        highValue: float | None = None,
        numNulls: int | None = None,
        numDVs: int | None = None,
        bitVectors: bytes | None = None,
        histogram: bytes | None = None,
    ) -> None: ...

class LongColumnStatsData(Struct):
    lowValue: int | None
    highValue: int | None
    numNulls: int | None
    numDVs: int | None
    bitVectors: str | None
    histogram: bytes | None
    def __init__(
        self,
        lowValue: int | None = None,
        highValue: int | None = None,
        numNulls: int | None = None,
        numDVs: int | None = None,
        bitVectors: str | None = None,
        histogram: bytes | None = None,
    ) -> None: ...

class LongColumnStatsData_v4(Struct):
    lowValue: int | None
    highValue: int | None
    numNulls: int | None
    numDVs: int | None
    bitVectors: bytes | None
    histogram: bytes | None
    def __init__(
        self,
        lowValue: int | None = None,
        highValue: int | None = None,
        numNulls: int | None = None,
        numDVs: int | None = None,
        bitVectors: bytes | None = None,
        histogram: bytes | None = None,
    ) -> None: ...

class StringColumnStatsData(Struct):
    maxColLen: int | None
    avgColLen: float | None
    numNulls: int | None
    numDVs: int | None
    bitVectors: str | None
    def __init__(
        self,
        maxColLen: int | None = None,
        avgColLen: float | None = None,
        numNulls: int | None = None,
        numDVs: int | None = None,
        bitVectors: str | None = None,
    ) -> None: ...

class StringColumnStatsData_v4(Struct):
    maxColLen: int | None
    avgColLen: float | None
    numNulls: int | None
    numDVs: int | None
    bitVectors: bytes | None
    def __init__(
        self,
        maxColLen: int | None = None,
        avgColLen: float | None = None,
        numNulls: int | None = None,
        numDVs: int | None = None,
        bitVectors: bytes | None = None,
    ) -> None: ...

class BinaryColumnStatsData(Struct):
    maxColLen: int | None
    avgColLen: float | None
    numNulls: int | None
    bitVectors: str | None
    def __init__(
        self,
        maxColLen: int | None = None,
        avgColLen: float | None = None,
        numNulls: int | None = None,
        bitVectors: str | None = None,
    ) -> None: ...

class BinaryColumnStatsData_v4(Struct):
    maxColLen: int | None
    avgColLen: float | None
    numNulls: int | None
    bitVectors: bytes | None
    def __init__(
        self,
        maxColLen: int | None = None,
        avgColLen: float | None = None,
        numNulls: int | None = None,
        bitVectors: bytes | None = None,
    ) -> None: ...

class Decimal(Struct):
    unscaled: bytes | None
    scale: int | None
    def __init__(
        self,
        unscaled: bytes | None = None,
        scale: int | None = None,
    ) -> None: ...

class DecimalColumnStatsData(Struct):
    lowValue: Decimal | None
    highValue: Decimal | None
    numNulls: int | None
    numDVs: int | None
    bitVectors: str | None
    histogram: bytes | None
    def __init__(
        self,
        lowValue: Decimal | Encoded | None = None,
        highValue: Decimal | Encoded | None = None,
        numNulls: int | None = None,
        numDVs: int | None = None,
        bitVectors: str | None = None,
        histogram: bytes | None = None,
    ) -> None: ...

class DecimalColumnStatsData_v4(Struct):
    lowValue: Decimal | None
    highValue: Decimal | None
    numNulls: int | None
    numDVs: int | None
    bitVectors: bytes | None
    histogram: bytes | None
    def __init__(
        self,
        lowValue: Decimal | Encoded | None = None,
        highValue: Decimal | Encoded | None = None,
        numNulls: int | None = None,
        numDVs: int | None = None,
        bitVectors: bytes | None = None,
        histogram: bytes | None = None,
    ) -> None: ...

class Date(Struct):
    daysSinceEpoch: int | None
    def __init__(
        self,
        daysSinceEpoch: int | None = None,
    ) -> None: ...

class DateColumnStatsData(Struct):
    lowValue: Date | None
    highValue: Date | None
    numNulls: int | None
    numDVs: int | None
    bitVectors: str | None
    histogram: bytes | None
    def __init__(
        self,
        lowValue: Date | Encoded | None = None,
        highValue: Date | Encoded | None = None,
        numNulls: int | None = None,
        numDVs: int | None = None,
        bitVectors: str | None = None,
        histogram: bytes | None = None,
    ) -> None: ...

class DateColumnStatsData_v4(Struct):
    lowValue: Date | None
    highValue: Date | None
    numNulls: int | None
    numDVs: int | None
    bitVectors: bytes | None
    histogram: bytes | None
    def __init__(
        self,
        lowValue: Date | Encoded | None = None,
        highValue: Date | Encoded | None = None,
        numNulls: int | None = None,
        numDVs: int | None = None,
        bitVectors: bytes | None = None,
        histogram: bytes | None = None,
    ) -> None: ...

class Timestamp(Struct):
    secondsSinceEpoch: int | None
    def __init__(
        self,
        secondsSinceEpoch: int | None = None,
    ) -> None: ...

class TimestampColumnStatsData(Struct):
    lowValue: Timestamp | None
    highValue: Timestamp | None
    numNulls: int | None
    numDVs: int | None
    bitVectors: bytes | None
    histogram: bytes | None
    def __init__(
        self,
        lowValue: Timestamp | Encoded | None = None,
        highValue: Timestamp | Encoded | None = None,
        numNulls: int | None = None,
        numDVs: int | None = None,
        bitVectors: bytes | None = None,
        histogram: bytes | None = None,
    ) -> None: ...

class ColumnStatisticsData(Struct):
    booleanStats: BooleanColumnStatsData | None
    longStats: LongColumnStatsData | None
    doubleStats: DoubleColumnStatsData | None
    stringStats: StringColumnStatsData | None
    binaryStats: BinaryColumnStatsData | None
    decimalStats: DecimalColumnStatsData | None
    dateStats: DateColumnStatsData | None
    timestampStats: TimestampColumnStatsData | None
    def __init__(
        self,
        booleanStats: BooleanColumnStatsData | Encoded | None = None,
        longStats: LongColumnStatsData | Encoded | None = None,
        doubleStats: DoubleColumnStatsData | Encoded | None = None,
        stringStats: StringColumnStatsData | Encoded | None = None,
        binaryStats: BinaryColumnStatsData | Encoded | None = None,
        decimalStats: DecimalColumnStatsData | Encoded | None = None,
        dateStats: DateColumnStatsData | Encoded | None = None,
        timestampStats: TimestampColumnStatsData | Encoded | None = None,
    ) -> None: ...

class ColumnStatisticsData_v4(Struct):
    booleanStats: BooleanColumnStatsData_v4 | None
    longStats: LongColumnStatsData_v4 | None
    doubleStats: DoubleColumnStatsData_v4 | None
    stringStats: StringColumnStatsData_v4 | None
    binaryStats: BinaryColumnStatsData_v4 | None
    decimalStats: DecimalColumnStatsData_v4 | None
    dateStats: DateColumnStatsData_v4 | None
    timestampStats: TimestampColumnStatsData | None
    def __init__(
        self,
        booleanStats: BooleanColumnStatsData_v4 | Encoded | None = None,
        longStats: LongColumnStatsData_v4 | Encoded | None = None,
        doubleStats: DoubleColumnStatsData_v4 | Encoded | None = None,
        stringStats: StringColumnStatsData_v4 | Encoded | None = None,
        binaryStats: BinaryColumnStatsData_v4 | Encoded | None = None,
        decimalStats: DecimalColumnStatsData_v4 | Encoded | None = None,
        dateStats: DateColumnStatsData_v4 | Encoded | None = None,
        timestampStats: TimestampColumnStatsData | Encoded | None = None,
    ) -> None: ...

class ColumnStatisticsObj(Struct):
    colName: str | None
    colType: str | None
    statsData: ColumnStatisticsData | None
    def __init__(
        self,
        colName: str | None = None,
        colType: str | None = None,
        statsData: ColumnStatisticsData | Encoded | None = None,
    ) -> None: ...

class ColumnStatisticsObj_v4(Struct):
    colName: str | None
    colType: str | None
    statsData: ColumnStatisticsData_v4 | None
    def __init__(
        self,
        colName: str | None = None,
        colType: str | None = None,
        statsData: ColumnStatisticsData_v4 | Encoded | None = None,
    ) -> None: ...

class ColumnStatisticsDesc(Struct):
    isTblLevel: bool | None
    dbName: str | None
    tableName: str | None
    partName: str | None
    lastAnalyzed: int | None
    catName: str | None
    def __init__(
        self,
        isTblLevel: bool | None = None,
        dbName: str | None = None,
        tableName: str | None = None,
        partName: str | None = None,
        lastAnalyzed: int | None = None,
        catName: str | None = None,
    ) -> None: ...

class ColumnStatistics(Struct):
    statsDesc: ColumnStatisticsDesc | None
    statsObj: list[ColumnStatisticsObj] | None
    isStatsCompliant: bool | None
    engine: str | None
    def __init__(
        self,
        statsDesc: ColumnStatisticsDesc | Encoded | None = None,
        statsObj: list[ColumnStatisticsObj] | EncodedList | None = None,
        isStatsCompliant: bool | None = None,
        engine: str | None = None,
    ) -> None: ...

class ColumnStatistics_v4(Struct):
    statsDesc: ColumnStatisticsDesc | None
    statsObj: list[ColumnStatisticsObj_v4] | None
    isStatsCompliant: bool | None
    engine: str | None
    def __init__(
        self,
        statsDesc: ColumnStatisticsDesc | Encoded | None = None,
        statsObj: list[ColumnStatisticsObj_v4] | EncodedList | None = None,
        isStatsCompliant: bool | None = None,
        engine: str | None = None,
    ) -> None: ...

class AggrStats(Struct):
    colStats: list[ColumnStatisticsObj] | None
    partsFound: int | None
    isStatsCompliant: bool | None
    def __init__(
        self,
        colStats: list[ColumnStatisticsObj] | EncodedList | None = None,
        partsFound: int | None = None,
        isStatsCompliant: bool | None = None,
    ) -> None: ...

class AggrStats_v4(Struct):
    colStats: list[ColumnStatisticsObj_v4] | None
    partsFound: int | None
    isStatsCompliant: bool | None
    def __init__(
        self,
        colStats: list[ColumnStatisticsObj_v4] | EncodedList | None = None,
        partsFound: int | None = None,
        isStatsCompliant: bool | None = None,
    ) -> None: ...

class SetPartitionsStatsRequest(Struct):
    colStats: list[ColumnStatistics] | None
    needMerge: bool | None
    writeId: int | None
    validWriteIdList: str | None
    engine: str | None
    def __init__(
        self,
        colStats: list[ColumnStatistics] | EncodedList | None = None,
        needMerge: bool | None = None,
        writeId: int | None = None,
        validWriteIdList: str | None = None,
        engine: str | None = None,
    ) -> None: ...

class SetPartitionsStatsRequest_v4(Struct):
    colStats: list[ColumnStatistics_v4] | None
    needMerge: bool | None
    writeId: int | None
    validWriteIdList: str | None
    engine: str | None
    def __init__(
        self,
        colStats: list[ColumnStatistics_v4] | EncodedList | None = None,
        needMerge: bool | None = None,
        writeId: int | None = None,
        validWriteIdList: str | None = None,
        engine: str | None = None,
    ) -> None: ...

class SetPartitionsStatsResponse(Struct):
    result: bool | None
    def __init__(
        self,
        result: bool | None = None,
    ) -> None: ...

class TableStatsRequest(Struct):
    dbName: str | None
    tblName: str | None
    colNames: list[str] | None
    catName: str | None
    validWriteIdList: str | None
    engine: str | None
    id: int | None
    def __init__(
        self,
        dbName: str | None = None,
        tblName: str | None = None,
        colNames: list[str] | None = None,
        catName: str | None = None,
        validWriteIdList: str | None = None,
        engine: str | None = None,
        id: int | None = None,
    ) -> None: ...

class TableStatsResult(Struct):
    tableStats: list[ColumnStatisticsObj] | None
    isStatsCompliant: bool | None
    def __init__(
        self,
        tableStats: list[ColumnStatisticsObj] | EncodedList | None = None,
        isStatsCompliant: bool | None = None,
    ) -> None: ...

class TableStatsResult_v4(Struct):
    tableStats: list[ColumnStatisticsObj_v4] | None
    isStatsCompliant: bool | None
    def __init__(
        self,
        tableStats: list[ColumnStatisticsObj_v4] | EncodedList | None = None,
        isStatsCompliant: bool | None = None,
    ) -> None: ...

class PartitionsStatsRequest(Struct):
    dbName: str | None
    tblName: str | None
    colNames: list[str] | None
    partNames: list[str] | None
    catName: str | None
    validWriteIdList: str | None
    engine: str | None
    def __init__(
        self,
        dbName: str | None = None,
        tblName: str | None = None,
        colNames: list[str] | None = None,
        partNames: list[str] | None = None,
        catName: str | None = None,
        validWriteIdList: str | None = None,
        engine: str | None = None,
    ) -> None: ...

class PartitionsStatsResult(Struct):
    partStats: dict[str, list[ColumnStatisticsObj]] | None
    isStatsCompliant: bool | None
    def __init__(
        self,
        partStats: dict[str, list[ColumnStatisticsObj]] | None = None,
        isStatsCompliant: bool | None = None,
    ) -> None: ...

class PartitionsStatsResult_v4(Struct):
    partStats: dict[str, list[ColumnStatisticsObj_v4]] | None
    isStatsCompliant: bool | None
    def __init__(
        self,
        partStats: dict[str, list[ColumnStatisticsObj_v4]] | None = None,
        isStatsCompliant: bool | None = None,
    ) -> None: ...

class DeleteColumnStatisticsRequest(Struct):
    cat_name: str | None
    db_name: str | None
    tbl_name: str | None
    part_names: list[str] | None
    col_names: list[str] | None
    engine: str | None
    tableLevel: bool | None
    def __init__(
        self,
        cat_name: str | None = None,
        db_name: str | None = None,
        tbl_name: str | None = None,
        part_names: list[str] | None = None,
        col_names: list[str] | None = None,
        engine: str | None = None,
        tableLevel: bool | None = None,
    ) -> None: ...

class UpdateTransactionalStatsRequest(Struct):
    tableId: int | None
    insertCount: int | None
    updatedCount: int | None
    deletedCount: int | None
    def __init__(
        self,
        tableId: int | None = None,
        insertCount: int | None = None,
        updatedCount: int | None = None,
        deletedCount: int | None = None,
    ) -> None: ...

class SQLPrimaryKey(Struct):
    table_db: str | None
    table_name: str | None
    column_name: str | None
    key_seq: int | None
    pk_name: str | None
    enable_cstr: bool | None
    validate_cstr: bool | None
    rely_cstr: bool | None
    catName: str | None
    def __init__(
        self,
        table_db: str | None = None,
        table_name: str | None = None,
        column_name: str | None = None,
        key_seq: int | None = None,
        pk_name: str | None = None,
        enable_cstr: bool | None = None,
        validate_cstr: bool | None = None,
        rely_cstr: bool | None = None,
        catName: str | None = None,
    ) -> None: ...

class SQLForeignKey(Struct):
    pktable_db: str | None
    pktable_name: str | None
    pkcolumn_name: str | None
    fktable_db: str | None
    fktable_name: str | None
    fkcolumn_name: str | None
    key_seq: int | None
    update_rule: int | None
    delete_rule: int | None
    fk_name: str | None
    pk_name: str | None
    enable_cstr: bool | None
    validate_cstr: bool | None
    rely_cstr: bool | None
    catName: str | None
    def __init__(
        self,
        pktable_db: str | None = None,
        pktable_name: str | None = None,
        pkcolumn_name: str | None = None,
        fktable_db: str | None = None,
        fktable_name: str | None = None,
        fkcolumn_name: str | None = None,
        key_seq: int | None = None,
        update_rule: int | None = None,
        delete_rule: int | None = None,
        fk_name: str | None = None,
        pk_name: str | None = None,
        enable_cstr: bool | None = None,
        validate_cstr: bool | None = None,
        rely_cstr: bool | None = None,
        catName: str | None = None,
    ) -> None: ...

class SQLUniqueConstraint(Struct):
    catName: str | None
    table_db: str | None
    table_name: str | None
    column_name: str | None
    key_seq: int | None
    uk_name: str | None
    enable_cstr: bool | None
    validate_cstr: bool | None
    rely_cstr: bool | None
    def __init__(
        self,
        catName: str | None = None,
        table_db: str | None = None,
        table_name: str | None = None,
        column_name: str | None = None,
        key_seq: int | None = None,
        uk_name: str | None = None,
        enable_cstr: bool | None = None,
        validate_cstr: bool | None = None,
        rely_cstr: bool | None = None,
    ) -> None: ...

class SQLNotNullConstraint(Struct):
    catName: str | None
    table_db: str | None
    table_name: str | None
    column_name: str | None
    nn_name: str | None
    enable_cstr: bool | None
    validate_cstr: bool | None
    rely_cstr: bool | None
    def __init__(
        self,
        catName: str | None = None,
        table_db: str | None = None,
        table_name: str | None = None,
        column_name: str | None = None,
        nn_name: str | None = None,
        enable_cstr: bool | None = None,
        validate_cstr: bool | None = None,
        rely_cstr: bool | None = None,
    ) -> None: ...

class SQLDefaultConstraint(Struct):
    catName: str | None
    table_db: str | None
    table_name: str | None
    column_name: str | None
    default_value: str | None
    dc_name: str | None
    enable_cstr: bool | None
    validate_cstr: bool | None
    rely_cstr: bool | None
    def __init__(
        self,
        catName: str | None = None,
        table_db: str | None = None,
        table_name: str | None = None,
        column_name: str | None = None,
        default_value: str | None = None,
        dc_name: str | None = None,
        enable_cstr: bool | None = None,
        validate_cstr: bool | None = None,
        rely_cstr: bool | None = None,
    ) -> None: ...

class SQLCheckConstraint(Struct):
    catName: str | None
    table_db: str | None
    table_name: str | None
    column_name: str | None
    check_expression: str | None
    dc_name: str | None
    enable_cstr: bool | None
    validate_cstr: bool | None
    rely_cstr: bool | None
    def __init__(
        self,
        catName: str | None = None,
        table_db: str | None = None,
        table_name: str | None = None,
        column_name: str | None = None,
        check_expression: str | None = None,
        dc_name: str | None = None,
        enable_cstr: bool | None = None,
        validate_cstr: bool | None = None,
        rely_cstr: bool | None = None,
    ) -> None: ...

class SQLAllTableConstraints(Struct):
    primaryKeys: list[SQLPrimaryKey] | None
    foreignKeys: list[SQLForeignKey] | None
    uniqueConstraints: list[SQLUniqueConstraint] | None
    notNullConstraints: list[SQLNotNullConstraint] | None
    defaultConstraints: list[SQLDefaultConstraint] | None
    checkConstraints: list[SQLCheckConstraint] | None
    def __init__(
        self,
        primaryKeys: list[SQLPrimaryKey] | EncodedList | None = None,
        foreignKeys: list[SQLForeignKey] | EncodedList | None = None,
        uniqueConstraints: list[SQLUniqueConstraint] | EncodedList | None = None,
        notNullConstraints: list[SQLNotNullConstraint] | EncodedList | None = None,
        defaultConstraints: list[SQLDefaultConstraint] | EncodedList | None = None,
        checkConstraints: list[SQLCheckConstraint] | EncodedList | None = None,
    ) -> None: ...

class PrimaryKeysRequest(Struct):
    db_name: str | None
    tbl_name: str | None
    catName: str | None
    validWriteIdList: str | None
    tableId: int | None
    def __init__(
        self,
        db_name: str | None = None,
        tbl_name: str | None = None,
        catName: str | None = None,
        validWriteIdList: str | None = None,
        tableId: int | None = None,
    ) -> None: ...

class PrimaryKeysResponse(Struct):
    primaryKeys: list[SQLPrimaryKey] | None
    def __init__(
        self,
        primaryKeys: list[SQLPrimaryKey] | EncodedList | None = None,
    ) -> None: ...

class ForeignKeysRequest(Struct):
    parent_db_name: str | None
    parent_tbl_name: str | None
    foreign_db_name: str | None
    foreign_tbl_name: str | None
    catName: str | None
    validWriteIdList: str | None
    tableId: int | None
    def __init__(
        self,
        parent_db_name: str | None = None,
        parent_tbl_name: str | None = None,
        foreign_db_name: str | None = None,
        foreign_tbl_name: str | None = None,
        catName: str | None = None,
        validWriteIdList: str | None = None,
        tableId: int | None = None,
    ) -> None: ...

class ForeignKeysResponse(Struct):
    foreignKeys: list[SQLForeignKey] | None
    def __init__(
        self,
        foreignKeys: list[SQLForeignKey] | EncodedList | None = None,
    ) -> None: ...

class UniqueConstraintsRequest(Struct):
    catName: str | None
    db_name: str | None
    tbl_name: str | None
    validWriteIdList: str | None
    tableId: int | None
    def __init__(
        self,
        catName: str | None = None,
        db_name: str | None = None,
        tbl_name: str | None = None,
        validWriteIdList: str | None = None,
        tableId: int | None = None,
    ) -> None: ...

class UniqueConstraintsResponse(Struct):
    uniqueConstraints: list[SQLUniqueConstraint] | None
    def __init__(
        self,
        uniqueConstraints: list[SQLUniqueConstraint] | EncodedList | None = None,
    ) -> None: ...

class NotNullConstraintsRequest(Struct):
    catName: str | None
    db_name: str | None
    tbl_name: str | None
    validWriteIdList: str | None
    tableId: int | None
    def __init__(
        self,
        catName: str | None = None,
        db_name: str | None = None,
        tbl_name: str | None = None,
        validWriteIdList: str | None = None,
        tableId: int | None = None,
    ) -> None: ...

class NotNullConstraintsResponse(Struct):
    notNullConstraints: list[SQLNotNullConstraint] | None
    def __init__(
        self,
        notNullConstraints: list[SQLNotNullConstraint] | EncodedList | None = None,
    ) -> None: ...

class DefaultConstraintsRequest(Struct):
    catName: str | None
    db_name: str | None
    tbl_name: str | None
    validWriteIdList: str | None
    tableId: int | None
    def __init__(
        self,
        catName: str | None = None,
        db_name: str | None = None,
        tbl_name: str | None = None,
        validWriteIdList: str | None = None,
        tableId: int | None = None,
    ) -> None: ...

class DefaultConstraintsResponse(Struct):
    defaultConstraints: list[SQLDefaultConstraint] | None
    def __init__(
        self,
        defaultConstraints: list[SQLDefaultConstraint] | EncodedList | None = None,
    ) -> None: ...

class CheckConstraintsRequest(Struct):
    catName: str | None
    db_name: str | None
    tbl_name: str | None
    validWriteIdList: str | None
    tableId: int | None
    def __init__(
        self,
        catName: str | None = None,
        db_name: str | None = None,
        tbl_name: str | None = None,
        validWriteIdList: str | None = None,
        tableId: int | None = None,
    ) -> None: ...

class CheckConstraintsResponse(Struct):
    checkConstraints: list[SQLCheckConstraint] | None
    def __init__(
        self,
        checkConstraints: list[SQLCheckConstraint] | EncodedList | None = None,
    ) -> None: ...

class AllTableConstraintsRequest(Struct):
    dbName: str | None
    tblName: str | None
    catName: str | None
    validWriteIdList: str | None
    tableId: int | None
    def __init__(
        self,
        dbName: str | None = None,
        tblName: str | None = None,
        catName: str | None = None,
        validWriteIdList: str | None = None,
        tableId: int | None = None,
    ) -> None: ...

class AllTableConstraintsResponse(Struct):
    allTableConstraints: SQLAllTableConstraints | None
    def __init__(
        self,
        allTableConstraints: SQLAllTableConstraints | Encoded | None = None,
    ) -> None: ...

class AddPrimaryKeyRequest(Struct):
    primaryKeyCols: list[SQLPrimaryKey] | None
    def __init__(
        self,
        primaryKeyCols: list[SQLPrimaryKey] | EncodedList | None = None,
    ) -> None: ...

class AddForeignKeyRequest(Struct):
    foreignKeyCols: list[SQLForeignKey] | None
    def __init__(
        self,
        foreignKeyCols: list[SQLForeignKey] | EncodedList | None = None,
    ) -> None: ...

class AddUniqueConstraintRequest(Struct):
    uniqueConstraintCols: list[SQLUniqueConstraint] | None
    def __init__(
        self,
        uniqueConstraintCols: list[SQLUniqueConstraint] | EncodedList | None = None,
    ) -> None: ...

class AddNotNullConstraintRequest(Struct):
    notNullConstraintCols: list[SQLNotNullConstraint] | None
    def __init__(
        self,
        notNullConstraintCols: list[SQLNotNullConstraint] | EncodedList | None = None,
    ) -> None: ...

class AddDefaultConstraintRequest(Struct):
    defaultConstraintCols: list[SQLDefaultConstraint] | None
    def __init__(
        self,
        defaultConstraintCols: list[SQLDefaultConstraint] | EncodedList | None = None,
    ) -> None: ...

class AddCheckConstraintRequest(Struct):
    checkConstraintCols: list[SQLCheckConstraint] | None
    def __init__(
        self,
        checkConstraintCols: list[SQLCheckConstraint] | EncodedList | None = None,
    ) -> None: ...

class DropConstraintRequest(Struct):
    dbname: str | None
    tablename: str | None
    constraintname: str | None
    catName: str | None
    def __init__(
        self,
        dbname: str | None = None,
        tablename: str | None = None,
        constraintname: str | None = None,
        catName: str | None = None,
    ) -> None: ...

class CreationMetadata(Struct):
    catName: str | None
    dbName: str | None
    tblName: str | None
    tablesUsed: set[str] | None
    validTxnList: str | None
    materializationTime: int | None
    sourceTables: list[SourceTable] | None
    def __init__(
        self,
        catName: str | None = None,
        dbName: str | None = None,
        tblName: str | None = None,
        tablesUsed: set[str] | None = None,
        validTxnList: str | None = None,
        materializationTime: int | None = None,
        sourceTables: list[SourceTable] | EncodedList | None = None,
    ) -> None: ...

class Table(Struct):
    tableName: str | None
    dbName: str | None
    owner: str | None
    createTime: int | None
    lastAccessTime: int | None
    retention: int | None
    sd: StorageDescriptor | None
    partitionKeys: list[FieldSchema] | None
    parameters: dict[str, str] | None
    viewOriginalText: str | None
    viewExpandedText: str | None
    tableType: str | None
    privileges: PrincipalPrivilegeSet | None
    temporary: bool | None
    rewriteEnabled: bool | None
    creationMetadata: CreationMetadata | None
    catName: str | None
    ownerType: int | None
    writeId: int | None
    isStatsCompliant: bool | None
    colStats: ColumnStatistics_v4 | None
    accessType: int | None
    requiredReadCapabilities: list[str] | None
    requiredWriteCapabilities: list[str] | None
    id: int | None
    fileMetadata: FileMetadata | None
    dictionary: ObjectDictionary | None
    txnId: int | None
    def __init__(
        self,
        tableName: str | None = None,
        dbName: str | None = None,
        owner: str | None = None,
        createTime: int | None = None,
        lastAccessTime: int | None = None,
        retention: int | None = None,
        sd: StorageDescriptor | Encoded | None = None,
        partitionKeys: list[FieldSchema] | EncodedList | None = None,
        parameters: dict[str, str] | None = None,
        viewOriginalText: str | None = None,
        viewExpandedText: str | None = None,
        tableType: str | None = None,
        privileges: PrincipalPrivilegeSet | Encoded | None = None,
        temporary: bool | None = None,
        rewriteEnabled: bool | None = None,
        creationMetadata: CreationMetadata | Encoded | None = None,
        catName: str | None = None,
        ownerType: int | None = None,
        writeId: int | None = None,
        isStatsCompliant: bool | None = None,
        colStats: ColumnStatistics_v4 | Encoded | None = None,
        accessType: int | None = None,
        requiredReadCapabilities: list[str] | None = None,
        requiredWriteCapabilities: list[str] | None = None,
        id: int | None = None,
        fileMetadata: FileMetadata | Encoded | None = None,
        dictionary: ObjectDictionary | Encoded | None = None,
        txnId: int | None = None,
    ) -> None: ...

class SourceTable(Struct):
    table: Table | None
    insertedCount: int | None
    updatedCount: int | None
    deletedCount: int | None
    def __init__(
        self,
        table: Table | Encoded | None = None,
        insertedCount: int | None = None,
        updatedCount: int | None = None,
        deletedCount: int | None = None,
    ) -> None: ...

class Materialization(Struct):
    sourceTablesUpdateDeleteModified: bool | None
    sourceTablesCompacted: bool | None
    def __init__(
        self,
        sourceTablesUpdateDeleteModified: bool | None = None,
        sourceTablesCompacted: bool | None = None,
    ) -> None: ...

class TableMeta(Struct):
    dbName: str | None
    tableName: str | None
    tableType: str | None
    comments: str | None
    catName: str | None
    ownerName: str | None
    ownerType: int | None
    def __init__(
        self,
        dbName: str | None = None,
        tableName: str | None = None,
        tableType: str | None = None,
        comments: str | None = None,
        catName: str | None = None,
        ownerName: str | None = None,
        ownerType: int | None = None,
    ) -> None: ...

class GetTableRequest(Struct):
    dbName: str | None
    tblName: str | None
    capabilities: ClientCapabilities | None
    catName: str | None
    validWriteIdList: str | None
    getColumnStats: bool | None
    processorCapabilities: list[str] | None
    processorIdentifier: str | None
    engine: str | None
    id: int | None
    def __init__(
        self,
        dbName: str | None = None,
        tblName: str | None = None,
        capabilities: ClientCapabilities | Encoded | None = None,
        catName: str | None = None,
        validWriteIdList: str | None = None,
        getColumnStats: bool | None = None,
        processorCapabilities: list[str] | None = None,
        processorIdentifier: str | None = None,
        engine: str | None = None,
        id: int | None = None,
    ) -> None: ...

class GetTableResult(Struct):
    table: Table | None
    isStatsCompliant: bool | None
    def __init__(
        self,
        table: Table | Encoded | None = None,
        isStatsCompliant: bool | None = None,
    ) -> None: ...

class GetTablesRequest(Struct):
    dbName: str | None
    tblNames: list[str] | None
    capabilities: ClientCapabilities | None
    catName: str | None
    processorCapabilities: list[str] | None
    processorIdentifier: str | None
    projectionSpec: GetProjectionsSpec | None
    tablesPattern: str | None
    def __init__(
        self,
        dbName: str | None = None,
        tblNames: list[str] | None = None,
        capabilities: ClientCapabilities | Encoded | None = None,
        catName: str | None = None,
        processorCapabilities: list[str] | None = None,
        processorIdentifier: str | None = None,
        projectionSpec: GetProjectionsSpec | Encoded | None = None,
        tablesPattern: str | None = None,
    ) -> None: ...

class GetTablesResult(Struct):
    tables: list[Table] | None
    def __init__(
        self,
        tables: list[Table] | EncodedList | None = None,
    ) -> None: ...

class GetTablesExtRequest(Struct):
    catalog: str | None
    database: str | None
    tableNamePattern: str | None
    requestedFields: int | None
    limit: int | None
    processorCapabilities: list[str] | None
    processorIdentifier: str | None
    def __init__(
        self,
        catalog: str | None = None,
        database: str | None = None,
        tableNamePattern: str | None = None,
        requestedFields: int | None = None,
        limit: int | None = None,
        processorCapabilities: list[str] | None = None,
        processorIdentifier: str | None = None,
    ) -> None: ...

class ExtendedTableInfo(Struct):
    tblName: str | None
    accessType: int | None
    requiredReadCapabilities: list[str] | None
    requiredWriteCapabilities: list[str] | None
    def __init__(
        self,
        tblName: str | None = None,
        accessType: int | None = None,
        requiredReadCapabilities: list[str] | None = None,
        requiredWriteCapabilities: list[str] | None = None,
    ) -> None: ...

class CreateTableRequest(Struct):
    table: Table | None
    envContext: EnvironmentContext | None
    primaryKeys: list[SQLPrimaryKey] | None
    foreignKeys: list[SQLForeignKey] | None
    uniqueConstraints: list[SQLUniqueConstraint] | None
    notNullConstraints: list[SQLNotNullConstraint] | None
    defaultConstraints: list[SQLDefaultConstraint] | None
    checkConstraints: list[SQLCheckConstraint] | None
    processorCapabilities: list[str] | None
    processorIdentifier: str | None
    def __init__(
        self,
        table: Table | Encoded | None = None,
        envContext: EnvironmentContext | Encoded | None = None,
        primaryKeys: list[SQLPrimaryKey] | EncodedList | None = None,
        foreignKeys: list[SQLForeignKey] | EncodedList | None = None,
        uniqueConstraints: list[SQLUniqueConstraint] | EncodedList | None = None,
        notNullConstraints: list[SQLNotNullConstraint] | EncodedList | None = None,
        defaultConstraints: list[SQLDefaultConstraint] | EncodedList | None = None,
        checkConstraints: list[SQLCheckConstraint] | EncodedList | None = None,
        processorCapabilities: list[str] | None = None,
        processorIdentifier: str | None = None,
    ) -> None: ...

class AlterTableRequest(Struct):
    catName: str | None
    dbName: str | None
    tableName: str | None
    table: Table | None
    environmentContext: EnvironmentContext | None
    writeId: int | None
    validWriteIdList: str | None
    processorCapabilities: list[str] | None
    processorIdentifier: str | None
    expectedParameterKey: str | None
    expectedParameterValue: str | None
    def __init__(
        self,
        catName: str | None = None,
        dbName: str | None = None,
        tableName: str | None = None,
        table: Table | Encoded | None = None,
        environmentContext: EnvironmentContext | Encoded | None = None,
        writeId: int | None = None,
        validWriteIdList: str | None = None,
        processorCapabilities: list[str] | None = None,
        processorIdentifier: str | None = None,
        expectedParameterKey: str | None = None,
        expectedParameterValue: str | None = None,
    ) -> None: ...

class AlterTableResponse(Struct): ...

class DropTableRequest(Struct):
    catalogName: str | None
    dbName: str | None
    tableName: str | None
    deleteData: bool | None
    envContext: EnvironmentContext | None
    dropPartitions: bool | None
    id: str | None
    asyncDrop: bool | None
    cancel: bool | None
    def __init__(
        self,
        catalogName: str | None = None,
        dbName: str | None = None,
        tableName: str | None = None,
        deleteData: bool | None = None,
        envContext: EnvironmentContext | Encoded | None = None,
        dropPartitions: bool | None = None,
        id: str | None = None,
        asyncDrop: bool | None = None,
        cancel: bool | None = None,
    ) -> None: ...

class TruncateTableRequest(Struct):
    dbName: str | None
    tableName: str | None
    partNames: list[str] | None
    writeId: int | None
    validWriteIdList: str | None
    environmentContext: EnvironmentContext | None
    def __init__(
        self,
        dbName: str | None = None,
        tableName: str | None = None,
        partNames: list[str] | None = None,
        writeId: int | None = None,
        validWriteIdList: str | None = None,
        environmentContext: EnvironmentContext | Encoded | None = None,
    ) -> None: ...

class TruncateTableResponse(Struct): ...

class Partition(Struct):
    values: list[str] | None
    dbName: str | None
    tableName: str | None
    createTime: int | None
    lastAccessTime: int | None
    sd: StorageDescriptor | None
    parameters: dict[str, str] | None
    privileges: PrincipalPrivilegeSet | None
    catName: str | None
    writeId: int | None
    isStatsCompliant: bool | None
    colStats: ColumnStatistics_v4 | None
    fileMetadata: FileMetadata | None
    def __init__(
        self,
        values: list[str] | None = None,
        dbName: str | None = None,
        tableName: str | None = None,
        createTime: int | None = None,
        lastAccessTime: int | None = None,
        sd: StorageDescriptor | Encoded | None = None,
        parameters: dict[str, str] | None = None,
        privileges: PrincipalPrivilegeSet | Encoded | None = None,
        catName: str | None = None,
        writeId: int | None = None,
        isStatsCompliant: bool | None = None,
        colStats: ColumnStatistics_v4 | Encoded | None = None,
        fileMetadata: FileMetadata | Encoded | None = None,
    ) -> None: ...

class PartitionWithoutSD(Struct):
    values: list[str] | None
    createTime: int | None
    lastAccessTime: int | None
    relativePath: str | None
    parameters: dict[str, str] | None
    privileges: PrincipalPrivilegeSet | None
    def __init__(
        self,
        values: list[str] | None = None,
        createTime: int | None = None,
        lastAccessTime: int | None = None,
        relativePath: str | None = None,
        parameters: dict[str, str] | None = None,
        privileges: PrincipalPrivilegeSet | Encoded | None = None,
    ) -> None: ...

class PartitionSpecWithSharedSD(Struct):
    partitions: list[PartitionWithoutSD] | None
    sd: StorageDescriptor | None
    def __init__(
        self,
        partitions: list[PartitionWithoutSD] | EncodedList | None = None,
        sd: StorageDescriptor | Encoded | None = None,
    ) -> None: ...

class PartitionListComposingSpec(Struct):
    partitions: list[Partition] | None
    def __init__(
        self,
        partitions: list[Partition] | EncodedList | None = None,
    ) -> None: ...

class PartitionSpec(Struct):
    dbName: str | None
    tableName: str | None
    rootPath: str | None
    sharedSDPartitionSpec: PartitionSpecWithSharedSD | None
    partitionList: PartitionListComposingSpec | None
    catName: str | None
    writeId: int | None
    isStatsCompliant: bool | None
    def __init__(
        self,
        dbName: str | None = None,
        tableName: str | None = None,
        rootPath: str | None = None,
        sharedSDPartitionSpec: PartitionSpecWithSharedSD | Encoded | None = None,
        partitionList: PartitionListComposingSpec | Encoded | None = None,
        catName: str | None = None,
        writeId: int | None = None,
        isStatsCompliant: bool | None = None,
    ) -> None: ...

class AddPartitionsRequest(Struct):
    dbName: str | None
    tblName: str | None
    parts: list[Partition] | None
    ifNotExists: bool | None
    needResult: bool | None
    catName: str | None
    validWriteIdList: str | None
    skipColumnSchemaForPartition: bool | None
    partitionColSchema: list[FieldSchema] | None
    environmentContext: EnvironmentContext | None
    def __init__(
        self,
        dbName: str | None = None,
        tblName: str | None = None,
        parts: list[Partition] | EncodedList | None = None,
        ifNotExists: bool | None = None,
        needResult: bool | None = None,
        catName: str | None = None,
        validWriteIdList: str | None = None,
        skipColumnSchemaForPartition: bool | None = None,
        partitionColSchema: list[FieldSchema] | EncodedList | None = None,
        environmentContext: EnvironmentContext | Encoded | None = None,
    ) -> None: ...

class AddPartitionsResult(Struct):
    partitions: list[Partition] | None
    isStatsCompliant: bool | None
    partitionColSchema: list[FieldSchema] | None
    def __init__(
        self,
        partitions: list[Partition] | EncodedList | None = None,
        isStatsCompliant: bool | None = None,
        partitionColSchema: list[FieldSchema] | EncodedList | None = None,
    ) -> None: ...

class AppendPartitionsRequest(Struct):
    catalogName: str | None
    dbName: str | None
    tableName: str | None
    name: str | None
    partVals: list[str] | None
    environmentContext: EnvironmentContext | None
    def __init__(
        self,
        catalogName: str | None = None,
        dbName: str | None = None,
        tableName: str | None = None,
        name: str | None = None,
        partVals: list[str] | None = None,
        environmentContext: EnvironmentContext | Encoded | None = None,
    ) -> None: ...

class DropPartitionRequest(Struct):
    catName: str | None
    dbName: str | None
    tblName: str | None
    partName: str | None
    partVals: list[str] | None
    deleteData: bool | None
    environmentContext: EnvironmentContext | None
    def __init__(
        self,
        catName: str | None = None,
        dbName: str | None = None,
        tblName: str | None = None,
        partName: str | None = None,
        partVals: list[str] | None = None,
        deleteData: bool | None = None,
        environmentContext: EnvironmentContext | Encoded | None = None,
    ) -> None: ...

class DropPartitionsExpr(Struct):
    expr: bytes | None
    partArchiveLevel: int | None
    def __init__(
        self,
        expr: bytes | None = None,
        partArchiveLevel: int | None = None,
    ) -> None: ...

class RequestPartsSpec(Struct):
    names: list[str] | None
    exprs: list[DropPartitionsExpr] | None
    def __init__(
        self,
        names: list[str] | None = None,
        exprs: list[DropPartitionsExpr] | EncodedList | None = None,
    ) -> None: ...

class DropPartitionsRequest(Struct):
    dbName: str | None
    tblName: str | None
    parts: RequestPartsSpec | None
    deleteData: bool | None
    ifExists: bool | None
    ignoreProtection: bool | None
    environmentContext: EnvironmentContext | None
    needResult: bool | None
    catName: str | None
    skipColumnSchemaForPartition: bool | None
    def __init__(
        self,
        dbName: str | None = None,
        tblName: str | None = None,
        parts: RequestPartsSpec | Encoded | None = None,
        deleteData: bool | None = None,
        ifExists: bool | None = None,
        ignoreProtection: bool | None = None,
        environmentContext: EnvironmentContext | Encoded | None = None,
        needResult: bool | None = None,
        catName: str | None = None,
        skipColumnSchemaForPartition: bool | None = None,
    ) -> None: ...

class DropPartitionsResult(Struct):
    partitions: list[Partition] | None
    def __init__(
        self,
        partitions: list[Partition] | EncodedList | None = None,
    ) -> None: ...

class GetPartitionRequest(Struct):
    catName: str | None
    dbName: str | None
    tblName: str | None
    partVals: list[str] | None
    validWriteIdList: str | None
    id: int | None
    def __init__(
        self,
        catName: str | None = None,
        dbName: str | None = None,
        tblName: str | None = None,
        partVals: list[str] | None = None,
        validWriteIdList: str | None = None,
        id: int | None = None,
    ) -> None: ...

class GetPartitionResponse(Struct):
    partition: Partition | None
    def __init__(
        self,
        partition: Partition | Encoded | None = None,
    ) -> None: ...

class PartitionsRequest(Struct):
    catName: str | None
    dbName: str | None
    tblName: str | None
    maxParts: int | None
    validWriteIdList: str | None
    id: int | None
    skipColumnSchemaForPartition: bool | None
    includeParamKeyPattern: str | None
    excludeParamKeyPattern: str | None
    def __init__(
        self,
        catName: str | None = None,
        dbName: str | None = None,
        tblName: str | None = None,
        maxParts: int | None = None,
        validWriteIdList: str | None = None,
        id: int | None = None,
        skipColumnSchemaForPartition: bool | None = None,
        includeParamKeyPattern: str | None = None,
        excludeParamKeyPattern: str | None = None,
    ) -> None: ...

class PartitionsResponse(Struct):
    partitions: list[Partition] | None
    def __init__(
        self,
        partitions: list[Partition] | EncodedList | None = None,
    ) -> None: ...

class PartitionsByExprRequest(Struct):
    dbName: str | None
    tblName: str | None
    expr: bytes | None
    defaultPartitionName: str | None
    maxParts: int | None
    catName: str | None
    order: str | None
    validWriteIdList: str | None
    id: int | None
    skipColumnSchemaForPartition: bool | None
    includeParamKeyPattern: str | None
    excludeParamKeyPattern: str | None
    def __init__(
        self,
        dbName: str | None = None,
        tblName: str | None = None,
        expr: bytes | None = None,
        defaultPartitionName: str | None = None,
        maxParts: int | None = None,
        catName: str | None = None,
        order: str | None = None,
        validWriteIdList: str | None = None,
        id: int | None = None,
        skipColumnSchemaForPartition: bool | None = None,
        includeParamKeyPattern: str | None = None,
        excludeParamKeyPattern: str | None = None,
    ) -> None: ...

class PartitionsByExprResult(Struct):
    partitions: list[Partition] | None
    hasUnknownPartitions: bool | None
    def __init__(
        self,
        partitions: list[Partition] | EncodedList | None = None,
        hasUnknownPartitions: bool | None = None,
    ) -> None: ...

class PartitionsSpecByExprResult(Struct):
    partitionsSpec: list[PartitionSpec] | None
    hasUnknownPartitions: bool | None
    def __init__(
        self,
        partitionsSpec: list[PartitionSpec] | EncodedList | None = None,
        hasUnknownPartitions: bool | None = None,
    ) -> None: ...

class GetPartitionsByNamesRequest(Struct):
    db_name: str | None
    tbl_name: str | None
    names: list[str] | None
    get_col_stats: bool | None
    processorCapabilities: list[str] | None
    processorIdentifier: str | None
    engine: str | None
    validWriteIdList: str | None
    getFileMetadata: bool | None
    id: int | None
    skipColumnSchemaForPartition: bool | None
    includeParamKeyPattern: str | None
    excludeParamKeyPattern: str | None
    def __init__(
        self,
        db_name: str | None = None,
        tbl_name: str | None = None,
        names: list[str] | None = None,
        get_col_stats: bool | None = None,
        processorCapabilities: list[str] | None = None,
        processorIdentifier: str | None = None,
        engine: str | None = None,
        validWriteIdList: str | None = None,
        getFileMetadata: bool | None = None,
        id: int | None = None,
        skipColumnSchemaForPartition: bool | None = None,
        includeParamKeyPattern: str | None = None,
        excludeParamKeyPattern: str | None = None,
    ) -> None: ...

class GetPartitionsByNamesResult(Struct):
    partitions: list[Partition] | None
    dictionary: ObjectDictionary | None
    def __init__(
        self,
        partitions: list[Partition] | EncodedList | None = None,
        dictionary: ObjectDictionary | Encoded | None = None,
    ) -> None: ...

class GetPartitionsByFilterRequest(Struct):
    catName: str | None
    dbName: str | None
    tblName: str | None
    filter: str | None
    maxParts: int | None
    skipColumnSchemaForPartition: bool | None
    includeParamKeyPattern: str | None
    excludeParamKeyPattern: str | None
    def __init__(
        self,
        catName: str | None = None,
        dbName: str | None = None,
        tblName: str | None = None,
        filter: str | None = None,
        maxParts: int | None = None,
        skipColumnSchemaForPartition: bool | None = None,
        includeParamKeyPattern: str | None = None,
        excludeParamKeyPattern: str | None = None,
    ) -> None: ...

class GetPartitionNamesPsRequest(Struct):
    catName: str | None
    dbName: str | None
    tblName: str | None
    partValues: list[str] | None
    maxParts: int | None
    validWriteIdList: str | None
    id: int | None
    def __init__(
        self,
        catName: str | None = None,
        dbName: str | None = None,
        tblName: str | None = None,
        partValues: list[str] | None = None,
        maxParts: int | None = None,
        validWriteIdList: str | None = None,
        id: int | None = None,
    ) -> None: ...

class GetPartitionNamesPsResponse(Struct):
    names: list[str] | None
    def __init__(
        self,
        names: list[str] | None = None,
    ) -> None: ...

class GetPartitionsPsWithAuthRequest(Struct):
    catName: str | None
    dbName: str | None
    tblName: str | None
    partVals: list[str] | None
    maxParts: int | None
    userName: str | None
    groupNames: list[str] | None
    validWriteIdList: str | None
    id: int | None
    skipColumnSchemaForPartition: bool | None
    includeParamKeyPattern: str | None
    excludeParamKeyPattern: str | None
    partNames: list[str] | None
    def __init__(
        self,
        catName: str | None = None,
        dbName: str | None = None,
        tblName: str | None = None,
        partVals: list[str] | None = None,
        maxParts: int | None = None,
        userName: str | None = None,
        groupNames: list[str] | None = None,
        validWriteIdList: str | None = None,
        id: int | None = None,
        skipColumnSchemaForPartition: bool | None = None,
        includeParamKeyPattern: str | None = None,
        excludeParamKeyPattern: str | None = None,
        partNames: list[str] | None = None,
    ) -> None: ...

class GetPartitionsPsWithAuthResponse(Struct):
    partitions: list[Partition] | None
    def __init__(
        self,
        partitions: list[Partition] | EncodedList | None = None,
    ) -> None: ...

class GetPartitionsFilterSpec(Struct):
    filterMode: int | None
    filters: list[str] | None
    def __init__(
        self,
        filterMode: int | None = None,
        filters: list[str] | None = None,
    ) -> None: ...

class GetPartitionsRequest(Struct):
    catName: str | None
    dbName: str | None
    tblName: str | None
    withAuth: bool | None
    user: str | None
    groupNames: list[str] | None
    projectionSpec: GetProjectionsSpec | None
    filterSpec: GetPartitionsFilterSpec | None
    processorCapabilities: list[str] | None
    processorIdentifier: str | None
    validWriteIdList: str | None
    def __init__(
        self,
        catName: str | None = None,
        dbName: str | None = None,
        tblName: str | None = None,
        withAuth: bool | None = None,
        user: str | None = None,
        groupNames: list[str] | None = None,
        projectionSpec: GetProjectionsSpec | Encoded | None = None,
        filterSpec: GetPartitionsFilterSpec | Encoded | None = None,
        processorCapabilities: list[str] | None = None,
        processorIdentifier: str | None = None,
        validWriteIdList: str | None = None,
    ) -> None: ...

class GetPartitionsResponse(Struct):
    partitionSpec: list[PartitionSpec] | None
    def __init__(
        self,
        partitionSpec: list[PartitionSpec] | EncodedList | None = None,
    ) -> None: ...

class PartitionValuesRequest(Struct):
    dbName: str | None
    tblName: str | None
    partitionKeys: list[FieldSchema] | None
    applyDistinct: bool | None
    filter: str | None
    partitionOrder: list[FieldSchema] | None
    ascending: bool | None
    maxParts: int | None
    catName: str | None
    validWriteIdList: str | None
    def __init__(
        self,
        dbName: str | None = None,
        tblName: str | None = None,
        partitionKeys: list[FieldSchema] | EncodedList | None = None,
        applyDistinct: bool | None = None,
        filter: str | None = None,
        partitionOrder: list[FieldSchema] | EncodedList | None = None,
        ascending: bool | None = None,
        maxParts: int | None = None,
        catName: str | None = None,
        validWriteIdList: str | None = None,
    ) -> None: ...

class PartitionValuesRow(Struct):
    row: list[str] | None
    def __init__(
        self,
        row: list[str] | None = None,
    ) -> None: ...

class PartitionValuesResponse(Struct):
    partitionValues: list[PartitionValuesRow] | None
    def __init__(
        self,
        partitionValues: list[PartitionValuesRow] | EncodedList | None = None,
    ) -> None: ...

class AlterPartitionsRequest(Struct):
    catName: str | None
    dbName: str | None
    tableName: str | None
    partitions: list[Partition] | None
    environmentContext: EnvironmentContext | None
    writeId: int | None
    validWriteIdList: str | None
    skipColumnSchemaForPartition: bool | None
    partitionColSchema: list[FieldSchema] | None
    def __init__(
        self,
        catName: str | None = None,
        dbName: str | None = None,
        tableName: str | None = None,
        partitions: list[Partition] | EncodedList | None = None,
        environmentContext: EnvironmentContext | Encoded | None = None,
        writeId: int | None = None,
        validWriteIdList: str | None = None,
        skipColumnSchemaForPartition: bool | None = None,
        partitionColSchema: list[FieldSchema] | EncodedList | None = None,
    ) -> None: ...

class AlterPartitionsResponse(Struct): ...

class RenamePartitionRequest(Struct):
    catName: str | None
    dbName: str | None
    tableName: str | None
    partVals: list[str] | None
    newPart: Partition | None
    validWriteIdList: str | None
    txnId: int | None
    clonePart: bool | None
    def __init__(
        self,
        catName: str | None = None,
        dbName: str | None = None,
        tableName: str | None = None,
        partVals: list[str] | None = None,
        newPart: Partition | Encoded | None = None,
        validWriteIdList: str | None = None,
        txnId: int | None = None,
        clonePart: bool | None = None,
    ) -> None: ...

class RenamePartitionResponse(Struct): ...

class Index(Struct):
    indexName: str | None
    indexHandlerClass: str | None
    dbName: str | None
    origTableName: str | None
    createTime: int | None
    lastAccessTime: int | None
    indexTableName: str | None
    sd: StorageDescriptor | None
    parameters: dict[str, str] | None
    deferredRebuild: bool | None
    def __init__(
        self,
        indexName: str | None = None,
        indexHandlerClass: str | None = None,
        dbName: str | None = None,
        origTableName: str | None = None,
        createTime: int | None = None,
        lastAccessTime: int | None = None,
        indexTableName: str | None = None,
        sd: StorageDescriptor | Encoded | None = None,
        parameters: dict[str, str] | None = None,
        deferredRebuild: bool | None = None,
    ) -> None: ...

class ResourceUri(Struct):
    resourceType: int | None
    uri: str | None
    def __init__(
        self,
        resourceType: int | None = None,
        uri: str | None = None,
    ) -> None: ...

class Function(Struct):
    functionName: str | None
    dbName: str | None
    className: str | None
    ownerName: str | None
    ownerType: int | None
    createTime: int | None
    functionType: int | None
    resourceUris: list[ResourceUri] | None
    catName: str | None
    def __init__(
        self,
        functionName: str | None = None,
        dbName: str | None = None,
        className: str | None = None,
        ownerName: str | None = None,
        ownerType: int | None = None,
        createTime: int | None = None,
        functionType: int | None = None,
        resourceUris: list[ResourceUri] | EncodedList | None = None,
        catName: str | None = None,
    ) -> None: ...

class GetAllFunctionsResponse(Struct):
    functions: list[Function] | None
    def __init__(
        self,
        functions: list[Function] | EncodedList | None = None,
    ) -> None: ...

class GetFunctionsRequest(Struct):
    dbName: str | None
    catalogName: str | None
    pattern: str | None
    returnNames: bool | None
    def __init__(
        self,
        dbName: str | None = None,
        catalogName: str | None = None,
        pattern: str | None = None,
        returnNames: bool | None = None,
    ) -> None: ...

class GetFunctionsResponse(Struct):
    function_names: list[str] | None
    functions: list[Function] | None
    def __init__(
        self,
        function_names: list[str] | None = None,
        functions: list[Function] | EncodedList | None = None,
    ) -> None: ...

class TxnInfo(Struct):
    id: int | None
    state: int | None
    user: str | None
    hostname: str | None
    agentInfo: str | None
    heartbeatCount: int | None
    metaInfo: str | None
    startedTime: int | None
    lastHeartbeatTime: int | None
    def __init__(
        self,
        id: int | None = None,
        state: int | None = None,
        user: str | None = None,
        hostname: str | None = None,
        agentInfo: str | None = None,
        heartbeatCount: int | None = None,
        metaInfo: str | None = None,
        startedTime: int | None = None,
        lastHeartbeatTime: int | None = None,
    ) -> None: ...

class BasicTxnInfo(Struct):
    isnull: bool | None
    time: int | None
    txnid: int | None
    dbname: str | None
    tablename: str | None
    partitionname: str | None
    def __init__(
        self,
        isnull: bool | None = None,
        time: int | None = None,
        txnid: int | None = None,
        dbname: str | None = None,
        tablename: str | None = None,
        partitionname: str | None = None,
    ) -> None: ...

class GetOpenTxnsRequest(Struct):
    excludeTxnTypes: list[int] | None
    def __init__(
        self,
        excludeTxnTypes: list[int] | None = None,
    ) -> None: ...

class GetOpenTxnsResponse(Struct):
    txn_high_water_mark: int | None
    open_txns: set[int] | None
    min_open_txn: int | None
    def __init__(
        self,
        txn_high_water_mark: int | None = None,
        open_txns: set[int] | None = None,
        min_open_txn: int | None = None,
    ) -> None: ...

class GetOpenTxnsResponse_v4(Struct):
    txn_high_water_mark: int | None
    open_txns: list[int] | None
    min_open_txn: int | None
    abortedBits: bytes | None
    def __init__(
        self,
        txn_high_water_mark: int | None = None,
        open_txns: list[int] | None = None,
        min_open_txn: int | None = None,
        abortedBits: bytes | None = None,
    ) -> None: ...

class GetOpenTxnsInfoResponse(Struct):
    txn_high_water_mark: int | None
    open_txns: list[TxnInfo] | None
    def __init__(
        self,
        txn_high_water_mark: int | None = None,
        open_txns: list[TxnInfo] | EncodedList | None = None,
    ) -> None: ...

class OpenTxnRequest(Struct):
    num_txns: int | None
    user: str | None
    hostname: str | None
    agentInfo: str | None
    replPolicy: str | None
    replSrcTxnIds: list[int] | None
    txn_type: int | None
    def __init__(
        self,
        num_txns: int | None = None,
        user: str | None = None,
        hostname: str | None = None,
        agentInfo: str | None = None,
        replPolicy: str | None = None,
        replSrcTxnIds: list[int] | None = None,
        txn_type: int | None = None,
    ) -> None: ...

class OpenTxnsResponse(Struct):
    txn_ids: list[int] | None
    def __init__(
        self,
        txn_ids: list[int] | None = None,
    ) -> None: ...

class AbortTxnRequest(Struct):
    txnid: int | None
    replPolicy: str | None
    txn_type: int | None
    errorCode: int | None
    def __init__(
        self,
        txnid: int | None = None,
        replPolicy: str | None = None,
        txn_type: int | None = None,
        errorCode: int | None = None,
    ) -> None: ...

class AbortTxnsRequest(Struct):
    txn_ids: list[int] | None
    errorCode: int | None
    def __init__(
        self,
        txn_ids: list[int] | None = None,
        errorCode: int | None = None,
    ) -> None: ...

class WriteEventInfo(Struct):
    writeId: int | None
    database: str | None
    table: str | None
    files: str | None
    partition: str | None
    tableObj: str | None
    partitionObj: str | None
    def __init__(
        self,
        writeId: int | None = None,
        database: str | None = None,
        table: str | None = None,
        files: str | None = None,
        partition: str | None = None,
        tableObj: str | None = None,
        partitionObj: str | None = None,
    ) -> None: ...

class ReplLastIdInfo(Struct):
    database: str | None
    lastReplId: int | None
    table: str | None
    catalog: str | None
    partitionList: list[str] | None
    def __init__(
        self,
        database: str | None = None,
        lastReplId: int | None = None,
        table: str | None = None,
        catalog: str | None = None,
        partitionList: list[str] | None = None,
    ) -> None: ...

class CommitTxnKeyValue(Struct):
    tableId: int | None
    key: str | None
    value: str | None
    def __init__(
        self,
        tableId: int | None = None,
        key: str | None = None,
        value: str | None = None,
    ) -> None: ...

class CommitTxnRequest(Struct):
    txnid: int | None
    replPolicy: str | None
    writeEventInfos: list[WriteEventInfo] | None
    replLastIdInfo: ReplLastIdInfo | None
    keyValue: CommitTxnKeyValue | None
    exclWriteEnabled: bool | None
    txn_type: int | None
    writemanaged: bool | None
    def __init__(
        self,
        txnid: int | None = None,
        replPolicy: str | None = None,
        writeEventInfos: list[WriteEventInfo] | EncodedList | None = None,
        replLastIdInfo: ReplLastIdInfo | Encoded | None = None,
        keyValue: CommitTxnKeyValue | Encoded | None = None,
        exclWriteEnabled: bool | None = None,
        txn_type: int | None = None,
        writemanaged: bool | None = None,
    ) -> None: ...

class GetAllWriteEventInfoRequest(Struct):
    txnId: int | None
    dbName: str | None
    tableName: str | None
    def __init__(
        self,
        txnId: int | None = None,
        dbName: str | None = None,
        tableName: str | None = None,
    ) -> None: ...

class ReplTblWriteIdStateRequest(Struct):
    validWriteIdlist: str | None
    user: str | None
    hostName: str | None
    dbName: str | None
    tableName: str | None
    partNames: list[str] | None
    def __init__(
        self,
        validWriteIdlist: str | None = None,
        user: str | None = None,
        hostName: str | None = None,
        dbName: str | None = None,
        tableName: str | None = None,
        partNames: list[str] | None = None,
    ) -> None: ...

class GetValidWriteIdsRequest(Struct):
    fullTableNames: list[str] | None
    validTxnList: str | None
    writeId: int | None
    withTableIds: bool | None
    def __init__(
        self,
        fullTableNames: list[str] | None = None,
        validTxnList: str | None = None,
        writeId: int | None = None,
        withTableIds: bool | None = None,
    ) -> None: ...

class TableValidWriteIds(Struct):
    fullTableName: str | None
    writeIdHighWaterMark: int | None
    invalidWriteIds: list[int] | None
    minOpenWriteId: int | None
    abortedBits: bytes | None
    tableId: int | None
    def __init__(
        self,
        fullTableName: str | None = None,
        writeIdHighWaterMark: int | None = None,
        invalidWriteIds: list[int] | None = None,
        minOpenWriteId: int | None = None,
        abortedBits: bytes | None = None,
        tableId: int | None = None,
    ) -> None: ...

class GetValidWriteIdsResponse(Struct):
    tblValidWriteIds: list[TableValidWriteIds] | None
    def __init__(
        self,
        tblValidWriteIds: list[TableValidWriteIds] | EncodedList | None = None,
    ) -> None: ...

class TxnToWriteId(Struct):
    txnId: int | None
    writeId: int | None
    def __init__(
        self,
        txnId: int | None = None,
        writeId: int | None = None,
    ) -> None: ...

class AllocateTableWriteIdsRequest(Struct):
    dbName: str | None
    tableName: str | None
    txnIds: list[int] | None
    replPolicy: str | None
    srcTxnToWriteIdList: list[TxnToWriteId] | None
    reallocate: bool | None
    def __init__(
        self,
        dbName: str | None = None,
        tableName: str | None = None,
        txnIds: list[int] | None = None,
        replPolicy: str | None = None,
        srcTxnToWriteIdList: list[TxnToWriteId] | EncodedList | None = None,
        reallocate: bool | None = None,
    ) -> None: ...

class AllocateTableWriteIdsResponse(Struct):
    txnToWriteIds: list[TxnToWriteId] | None
    def __init__(
        self,
        txnToWriteIds: list[TxnToWriteId] | EncodedList | None = None,
    ) -> None: ...

class MaxAllocatedTableWriteIdRequest(Struct):
    dbName: str | None
    tableName: str | None
    def __init__(
        self,
        dbName: str | None = None,
        tableName: str | None = None,
    ) -> None: ...

class MaxAllocatedTableWriteIdResponse(Struct):
    maxWriteId: int | None
    def __init__(
        self,
        maxWriteId: int | None = None,
    ) -> None: ...

class SeedTableWriteIdsRequest(Struct):
    dbName: str | None
    tableName: str | None
    seedWriteId: int | None
    def __init__(
        self,
        dbName: str | None = None,
        tableName: str | None = None,
        seedWriteId: int | None = None,
    ) -> None: ...

class SeedTxnIdRequest(Struct):
    seedTxnId: int | None
    def __init__(
        self,
        seedTxnId: int | None = None,
    ) -> None: ...

class HeartbeatRequest(Struct):
    lockid: int | None
    txnid: int | None
    def __init__(
        self,
        lockid: int | None = None,
        txnid: int | None = None,
    ) -> None: ...

class HeartbeatTxnRangeRequest(Struct):
    min: int | None
    max: int | None
    def __init__(
        self,
        min: int | None = None,
        max: int | None = None,
    ) -> None: ...

class HeartbeatTxnRangeResponse(Struct):
    aborted: set[int] | None
    nosuch: set[int] | None
    def __init__(
        self,
        aborted: set[int] | None = None,
        nosuch: set[int] | None = None,
    ) -> None: ...

class AddDynamicPartitions(Struct):
    txnid: int | None
    dbname: str | None
    tablename: str | None
    partitionnames: list[str] | None
    operationType: int | None
    def __init__(
        self,
        txnid: int | None = None,
        dbname: str | None = None,
        tablename: str | None = None,
        partitionnames: list[str] | None = None,
        operationType: int | None = None,
    ) -> None: ...

class AddDynamicPartitions_v4(Struct):
    txnid: int | None
    writeid: int | None
    dbname: str | None
    tablename: str | None
    partitionnames: list[str] | None
    operationType: int | None
    def __init__(
        self,
        txnid: int | None = None,
        writeid: int | None = None,
        dbname: str | None = None,
        tablename: str | None = None,
        partitionnames: list[str] | None = None,
        operationType: int | None = None,
    ) -> None: ...

class LockComponent(Struct):
    type: int | None
    level: int | None
    dbname: str | None
    tablename: str | None
    partitionname: str | None
    operationType: int | None
    isAcid: bool | None
    isDynamicPartitionWrite: bool | None
    def __init__(
        self,
        type: int | None = None,
        level: int | None = None,
        dbname: str | None = None,
        tablename: str | None = None,
        partitionname: str | None = None,
        operationType: int | None = None,
        isAcid: bool | None = None,
        isDynamicPartitionWrite: bool | None = None,
    ) -> None: ...

class LockRequest(Struct):
    component: list[LockComponent] | None
    txnid: int | None
    user: str | None
    hostname: str | None
    agentInfo: str | None
    zeroWaitReadEnabled: bool | None
    exclusiveCTAS: bool | None
    locklessReadsEnabled: bool | None
    def __init__(
        self,
        component: list[LockComponent] | EncodedList | None = None,
        txnid: int | None = None,
        user: str | None = None,
        hostname: str | None = None,
        agentInfo: str | None = None,
        zeroWaitReadEnabled: bool | None = None,
        exclusiveCTAS: bool | None = None,
        locklessReadsEnabled: bool | None = None,
    ) -> None: ...

class LockResponse(Struct):
    lockid: int | None
    state: int | None
    errorMessage: str | None
    def __init__(
        self,
        lockid: int | None = None,
        state: int | None = None,
        errorMessage: str | None = None,
    ) -> None: ...

class CheckLockRequest(Struct):
    lockid: int | None
    txnid: int | None
    elapsed_ms: int | None
    def __init__(
        self,
        lockid: int | None = None,
        txnid: int | None = None,
        elapsed_ms: int | None = None,
    ) -> None: ...

class UnlockRequest(Struct):
    lockid: int | None
    def __init__(
        self,
        lockid: int | None = None,
    ) -> None: ...

class ShowLocksRequest(Struct):
    dbname: str | None
    tablename: str | None
    partname: str | None
    isExtended: bool | None
    txnid: int | None
    def __init__(
        self,
        dbname: str | None = None,
        tablename: str | None = None,
        partname: str | None = None,
        isExtended: bool | None = None,
        txnid: int | None = None,
    ) -> None: ...

class ShowLocksResponseElement(Struct):
    lockid: int | None
    dbname: str | None
    tablename: str | None
    partname: str | None
    state: int | None
    type: int | None
    txnid: int | None
    lastheartbeat: int | None
    acquiredat: int | None
    user: str | None
    hostname: str | None
    heartbeatCount: int | None
    agentInfo: str | None
    blockedByExtId: int | None
    blockedByIntId: int | None
    lockIdInternal: int | None
    def __init__(
        self,
        lockid: int | None = None,
        dbname: str | None = None,
        tablename: str | None = None,
        partname: str | None = None,
        state: int | None = None,
        type: int | None = None,
        txnid: int | None = None,
        lastheartbeat: int | None = None,
        acquiredat: int | None = None,
        user: str | None = None,
        hostname: str | None = None,
        heartbeatCount: int | None = None,
        agentInfo: str | None = None,
        blockedByExtId: int | None = None,
        blockedByIntId: int | None = None,
        lockIdInternal: int | None = None,
    ) -> None: ...

class ShowLocksResponse(Struct):
    locks: list[ShowLocksResponseElement] | None
    def __init__(
        self,
        locks: list[ShowLocksResponseElement] | EncodedList | None = None,
    ) -> None: ...

class CompactionRequest(Struct):
    dbname: str | None
    tablename: str | None
    partitionname: str | None
    type: int | None
    runas: str | None
    properties: dict[str, str] | None
    initiatorId: str | None
    initiatorVersion: str | None
    poolName: str | None
    numberOfBuckets: int | None
    orderByClause: str | None
    def __init__(
        self,
        dbname: str | None = None,
        tablename: str | None = None,
        partitionname: str | None = None,
        type: int | None = None,
        runas: str | None = None,
        properties: dict[str, str] | None = None,
        initiatorId: str | None = None,
        initiatorVersion: str | None = None,
        poolName: str | None = None,
        numberOfBuckets: int | None = None,
        orderByClause: str | None = None,
    ) -> None: ...

class CompactionResponse(Struct):
    id: int | None
    state: str | None
    accepted: bool | None
    errormessage: str | None
    def __init__(
        self,
        id: int | None = None,
        state: str | None = None,
        accepted: bool | None = None,
        errormessage: str | None = None,
    ) -> None: ...

class CompactionInfoStruct(Struct):
    id: int | None
    dbname: str | None
    tablename: str | None
    partitionname: str | None
    type: int | None
    runas: str | None
    properties: str | None
    toomanyaborts: bool | None
    state: str | None
    workerId: str | None
    start: int | None
    highestWriteId: int | None
    errorMessage: str | None
    hasoldabort: bool | None
    enqueueTime: int | None
    retryRetention: int | None
    poolname: str | None
    numberOfBuckets: int | None
    orderByClause: str | None
    def __init__(
        self,
        id: int | None = None,
        dbname: str | None = None,
        tablename: str | None = None,
        partitionname: str | None = None,
        type: int | None = None,
        runas: str | None = None,
        properties: str | None = None,
        toomanyaborts: bool | None = None,
        state: str | None = None,
        workerId: str | None = None,
        start: int | None = None,
        highestWriteId: int | None = None,
        errorMessage: str | None = None,
        hasoldabort: bool | None = None,
        enqueueTime: int | None = None,
        retryRetention: int | None = None,
        poolname: str | None = None,
        numberOfBuckets: int | None = None,
        orderByClause: str | None = None,
    ) -> None: ...

class OptionalCompactionInfoStruct(Struct):
    ci: CompactionInfoStruct | None
    def __init__(
        self,
        ci: CompactionInfoStruct | Encoded | None = None,
    ) -> None: ...

class FindNextCompactRequest(Struct):
    workerId: str | None
    workerVersion: str | None
    poolName: str | None
    def __init__(
        self,
        workerId: str | None = None,
        workerVersion: str | None = None,
        poolName: str | None = None,
    ) -> None: ...

class ShowCompactRequest(Struct):
    id: int | None
    poolName: str | None
    dbName: str | None
    tbName: str | None
    partName: str | None
    type: int | None
    state: str | None
    limit: int | None
    order: str | None
    def __init__(
        self,
        id: int | None = None,
        poolName: str | None = None,
        dbName: str | None = None,
        tbName: str | None = None,
        partName: str | None = None,
        type: int | None = None,
        state: str | None = None,
        limit: int | None = None,
        order: str | None = None,
    ) -> None: ...

class ShowCompactResponseElement(Struct):
    dbname: str | None
    tablename: str | None
    partitionname: str | None
    type: int | None
    state: str | None
    workerid: str | None
    start: int | None
    runAs: str | None
    hightestTxnId: int | None
    metaInfo: str | None
    endTime: int | None
    hadoopJobId: str | None
    id: int | None
    errorMessage: str | None
    enqueueTime: int | None
    workerVersion: str | None
    initiatorId: str | None
    initiatorVersion: str | None
    cleanerStart: int | None
    poolName: str | None
    nextTxnId: int | None
    txnId: int | None
    commitTime: int | None
    hightestWriteId: int | None
    def __init__(
        self,
        dbname: str | None = None,
        tablename: str | None = None,
        partitionname: str | None = None,
        type: int | None = None,
        state: str | None = None,
        workerid: str | None = None,
        start: int | None = None,
        runAs: str | None = None,
        hightestTxnId: int | None = None,
        metaInfo: str | None = None,
        endTime: int | None = None,
        hadoopJobId: str | None = None,
        id: int | None = None,
        errorMessage: str | None = None,
        enqueueTime: int | None = None,
        workerVersion: str | None = None,
        initiatorId: str | None = None,
        initiatorVersion: str | None = None,
        cleanerStart: int | None = None,
        poolName: str | None = None,
        nextTxnId: int | None = None,
        txnId: int | None = None,
        commitTime: int | None = None,
        hightestWriteId: int | None = None,
    ) -> None: ...

class ShowCompactResponse(Struct):
    compacts: list[ShowCompactResponseElement] | None
    def __init__(
        self,
        compacts: list[ShowCompactResponseElement] | EncodedList | None = None,
    ) -> None: ...

class AbortCompactionRequest(Struct):
    compactionIds: list[int] | None
    type: str | None
    poolName: str | None
    def __init__(
        self,
        compactionIds: list[int] | None = None,
        type: str | None = None,
        poolName: str | None = None,
    ) -> None: ...

class AbortCompactionResponseElement(Struct):
    compactionId: int | None
    status: str | None
    message: str | None
    def __init__(
        self,
        compactionId: int | None = None,
        status: str | None = None,
        message: str | None = None,
    ) -> None: ...

class AbortCompactResponse(Struct):
    abortedcompacts: dict[int, AbortCompactionResponseElement] | None
    def __init__(
        self,
        abortedcompacts: dict[int, AbortCompactionResponseElement] | None = None,
    ) -> None: ...

class GetLatestCommittedCompactionInfoRequest(Struct):
    dbname: str | None
    tablename: str | None
    partitionnames: list[str] | None
    lastCompactionId: int | None
    def __init__(
        self,
        dbname: str | None = None,
        tablename: str | None = None,
        partitionnames: list[str] | None = None,
        lastCompactionId: int | None = None,
    ) -> None: ...

class GetLatestCommittedCompactionInfoResponse(Struct):
    compactions: list[CompactionInfoStruct] | None
    def __init__(
        self,
        compactions: list[CompactionInfoStruct] | EncodedList | None = None,
    ) -> None: ...

class NotificationEventRequest(Struct):
    lastEvent: int | None
    maxEvents: int | None
    eventTypeSkipList: list[str] | None
    catName: str | None
    dbName: str | None
    tableNames: list[str] | None
    eventTypeList: list[str] | None
    withoutMessages: bool | None
    def __init__(
        self,
        lastEvent: int | None = None,
        maxEvents: int | None = None,
        eventTypeSkipList: list[str] | None = None,
        catName: str | None = None,
        dbName: str | None = None,
        tableNames: list[str] | None = None,
        eventTypeList: list[str] | None = None,
        withoutMessages: bool | None = None,
    ) -> None: ...

class NotificationEvent(Struct):
    eventId: int | None
    eventTime: int | None
    eventType: str | None
    dbName: str | None
    tableName: str | None
    message: str | None
    messageFormat: str | None
    catName: str | None
    def __init__(
        self,
        eventId: int | None = None,
        eventTime: int | None = None,
        eventType: str | None = None,
        dbName: str | None = None,
        tableName: str | None = None,
        message: str | None = None,
        messageFormat: str | None = None,
        catName: str | None = None,
    ) -> None: ...

class NotificationEventResponse(Struct):
    events: list[NotificationEvent] | None
    def __init__(
        self,
        events: list[NotificationEvent] | EncodedList | None = None,
    ) -> None: ...

class CurrentNotificationEventId(Struct):
    eventId: int | None
    def __init__(
        self,
        eventId: int | None = None,
    ) -> None: ...

class NotificationEventsCountRequest(Struct):
    fromEventId: int | None
    dbName: str | None
    catName: str | None
    toEventId: int | None
    limit: int | None
    tableNames: list[str] | None
    def __init__(
        self,
        fromEventId: int | None = None,
        dbName: str | None = None,
        catName: str | None = None,
        toEventId: int | None = None,
        limit: int | None = None,
        tableNames: list[str] | None = None,
    ) -> None: ...

class NotificationEventsCountResponse(Struct):
    eventsCount: int | None
    def __init__(
        self,
        eventsCount: int | None = None,
    ) -> None: ...

class InsertEventRequestData(Struct):
    filesAdded: list[str] | None
    filesAddedChecksum: list[str] | None
    def __init__(
        self,
        filesAdded: list[str] | None = None,
        filesAddedChecksum: list[str] | None = None,
    ) -> None: ...

class InsertEventRequestData_v4(Struct):
    replace: bool | None
    filesAdded: list[str] | None
    filesAddedChecksum: list[str] | None
    subDirectoryList: list[str] | None
    partitionVal: list[str] | None
    def __init__(
        self,
        replace: bool | None = None,
        filesAdded: list[str] | None = None,
        filesAddedChecksum: list[str] | None = None,
        subDirectoryList: list[str] | None = None,
        partitionVal: list[str] | None = None,
    ) -> None: ...

class FireEventRequestData(Struct):
    insertData: InsertEventRequestData | None
    insertDatas: list[InsertEventRequestData_v4] | None
    refreshEvent: bool | None
    def __init__(
        self,
        insertData: InsertEventRequestData | Encoded | None = None,
        insertDatas: list[InsertEventRequestData_v4] | EncodedList | None = None,
        refreshEvent: bool | None = None,
    ) -> None: ...

class FireEventRequest(Struct):
    successful: bool | None
    data: FireEventRequestData | None
    dbName: str | None
    tableName: str | None
    partitionVals: list[str] | None
    catName: str | None
    tblParams: dict[str, str] | None
    batchPartitionValsForRefresh: list[list[str]] | None
    def __init__(
        self,
        successful: bool | None = None,
        data: FireEventRequestData | Encoded | None = None,
        dbName: str | None = None,
        tableName: str | None = None,
        partitionVals: list[str] | None = None,
        catName: str | None = None,
        tblParams: dict[str, str] | None = None,
        batchPartitionValsForRefresh: list[list[str]] | None = None,
    ) -> None: ...

class FireEventRequestData_v4(Struct):
    insertData: InsertEventRequestData_v4 | None
    insertDatas: list[InsertEventRequestData_v4] | None
    refreshEvent: bool | None
    def __init__(
        self,
        insertData: InsertEventRequestData_v4 | Encoded | None = None,
        insertDatas: list[InsertEventRequestData_v4] | EncodedList | None = None,
        refreshEvent: bool | None = None,
    ) -> None: ...

class FireEventRequest_v4(Struct):
    successful: bool | None
    data: FireEventRequestData_v4 | None
    dbName: str | None
    tableName: str | None
    partitionVals: list[str] | None
    catName: str | None
    tblParams: dict[str, str] | None
    batchPartitionValsForRefresh: list[list[str]] | None
    def __init__(
        self,
        successful: bool | None = None,
        data: FireEventRequestData_v4 | Encoded | None = None,
        dbName: str | None = None,
        tableName: str | None = None,
        partitionVals: list[str] | None = None,
        catName: str | None = None,
        tblParams: dict[str, str] | None = None,
        batchPartitionValsForRefresh: list[list[str]] | None = None,
    ) -> None: ...

class FireEventResponse(Struct):
    eventIds: list[int] | None
    def __init__(
        self,
        eventIds: list[int] | None = None,
    ) -> None: ...

class WriteNotificationLogRequest(Struct):
    txnId: int | None
    writeId: int | None
    db: str | None
    table: str | None
    fileInfo: InsertEventRequestData_v4 | None
    partitionVals: list[str] | None
    def __init__(
        self,
        txnId: int | None = None,
        writeId: int | None = None,
        db: str | None = None,
        table: str | None = None,
        fileInfo: InsertEventRequestData_v4 | Encoded | None = None,
        partitionVals: list[str] | None = None,
    ) -> None: ...

class WriteNotificationLogResponse(Struct): ...

class WriteNotificationLogBatchRequest(Struct):
    catalog: str | None
    db: str | None
    table: str | None
    requestList: list[WriteNotificationLogRequest] | None
    def __init__(
        self,
        catalog: str | None = None,
        db: str | None = None,
        table: str | None = None,
        requestList: list[WriteNotificationLogRequest] | EncodedList | None = None,
    ) -> None: ...

class WriteNotificationLogBatchResponse(Struct): ...

class CmRecycleRequest(Struct):
    dataPath: str | None
    purge: bool | None
    def __init__(
        self,
        dataPath: str | None = None,
        purge: bool | None = None,
    ) -> None: ...

class CmRecycleResponse(Struct): ...

class MetadataPpdResult(Struct):
    metadata: bytes | None
    includeBitset: bytes | None
    def __init__(
        self,
        metadata: bytes | None = None,
        includeBitset: bytes | None = None,
    ) -> None: ...

class GetFileMetadataByExprRequest(Struct):
    fileIds: list[int] | None
    expr: bytes | None
    doGetFooters: bool | None
    type: int | None
    def __init__(
        self,
        fileIds: list[int] | None = None,
        expr: bytes | None = None,
        doGetFooters: bool | None = None,
        type: int | None = None,
    ) -> None: ...

class GetFileMetadataByExprResult(Struct):
    metadata: dict[int, MetadataPpdResult] | None
    isSupported: bool | None
    def __init__(
        self,
        metadata: dict[int, MetadataPpdResult] | None = None,
        isSupported: bool | None = None,
    ) -> None: ...

class GetFileMetadataRequest(Struct):
    fileIds: list[int] | None
    def __init__(
        self,
        fileIds: list[int] | None = None,
    ) -> None: ...

class GetFileMetadataResult(Struct):
    metadata: dict[int, bytes] | None
    isSupported: bool | None
    def __init__(
        self,
        metadata: dict[int, bytes] | None = None,
        isSupported: bool | None = None,
    ) -> None: ...

class PutFileMetadataRequest(Struct):
    fileIds: list[int] | None
    metadata: list[bytes] | None
    type: int | None
    def __init__(
        self,
        fileIds: list[int] | None = None,
        metadata: list[bytes] | None = None,
        type: int | None = None,
    ) -> None: ...

class PutFileMetadataResult(Struct): ...

class ClearFileMetadataRequest(Struct):
    fileIds: list[int] | None
    def __init__(
        self,
        fileIds: list[int] | None = None,
    ) -> None: ...

class ClearFileMetadataResult(Struct): ...

class CacheFileMetadataRequest(Struct):
    dbName: str | None
    tblName: str | None
    partName: str | None
    isAllParts: bool | None
    def __init__(
        self,
        dbName: str | None = None,
        tblName: str | None = None,
        partName: str | None = None,
        isAllParts: bool | None = None,
    ) -> None: ...

class CacheFileMetadataResult(Struct):
    isSupported: bool | None
    def __init__(
        self,
        isSupported: bool | None = None,
    ) -> None: ...

class WMResourcePlan(Struct):
    name: str | None
    status: int | None
    queryParallelism: int | None
    defaultPoolPath: str | None
    ns: str | None
    def __init__(
        self,
        name: str | None = None,
        status: int | None = None,
        queryParallelism: int | None = None,
        defaultPoolPath: str | None = None,
        ns: str | None = None,
    ) -> None: ...

class WMNullableResourcePlan(Struct):
    name: str | None
    status: int | None
    queryParallelism: int | None
    isSetQueryParallelism: bool | None
    defaultPoolPath: str | None
    isSetDefaultPoolPath: bool | None
    ns: str | None
    def __init__(
        self,
        name: str | None = None,
        status: int | None = None,
        queryParallelism: int | None = None,
        isSetQueryParallelism: bool | None = None,
        defaultPoolPath: str | None = None,
        isSetDefaultPoolPath: bool | None = None,
        ns: str | None = None,
    ) -> None: ...

class WMPool(Struct):
    resourcePlanName: str | None
    poolPath: str | None
    allocFraction: float | None
    queryParallelism: int | None
    schedulingPolicy: str | None
    ns: str | None
    def __init__(
        self,
        resourcePlanName: str | None = None,
        poolPath: str | None = None,
        allocFraction: float | None = None,
        queryParallelism: int | None = None,
        schedulingPolicy: str | None = None,
        ns: str | None = None,
    ) -> None: ...

class WMNullablePool(Struct):
    resourcePlanName: str | None
    poolPath: str | None
    allocFraction: float | None
    queryParallelism: int | None
    schedulingPolicy: str | None
    isSetSchedulingPolicy: bool | None
    ns: str | None
    def __init__(
        self,
        resourcePlanName: str | None = None,
        poolPath: str | None = None,
        allocFraction: float | None = None,
        queryParallelism: int | None = None,
        schedulingPolicy: str | None = None,
        isSetSchedulingPolicy: bool | None = None,
        ns: str | None = None,
    ) -> None: ...

class WMTrigger(Struct):
    resourcePlanName: str | None
    triggerName: str | None
    triggerExpression: str | None
    actionExpression: str | None
    isInUnmanaged: bool | None
    ns: str | None
    def __init__(
        self,
        resourcePlanName: str | None = None,
        triggerName: str | None = None,
        triggerExpression: str | None = None,
        actionExpression: str | None = None,
        isInUnmanaged: bool | None = None,
        ns: str | None = None,
    ) -> None: ...

class WMMapping(Struct):
    resourcePlanName: str | None
    entityType: str | None
    entityName: str | None
    poolPath: str | None
    ordering: int | None
    ns: str | None
    def __init__(
        self,
        resourcePlanName: str | None = None,
        entityType: str | None = None,
        entityName: str | None = None,
        poolPath: str | None = None,
        ordering: int | None = None,
        ns: str | None = None,
    ) -> None: ...

class WMPoolTrigger(Struct):
    pool: str | None
    trigger: str | None
    ns: str | None
    def __init__(
        self,
        pool: str | None = None,
        trigger: str | None = None,
        ns: str | None = None,
    ) -> None: ...

class WMFullResourcePlan(Struct):
    plan: WMResourcePlan | None
    pools: list[WMPool] | None
    mappings: list[WMMapping] | None
    triggers: list[WMTrigger] | None
    poolTriggers: list[WMPoolTrigger] | None
    def __init__(
        self,
        plan: WMResourcePlan | Encoded | None = None,
        pools: list[WMPool] | EncodedList | None = None,
        mappings: list[WMMapping] | EncodedList | None = None,
        triggers: list[WMTrigger] | EncodedList | None = None,
        poolTriggers: list[WMPoolTrigger] | EncodedList | None = None,
    ) -> None: ...

class WMCreateResourcePlanRequest(Struct):
    resourcePlan: WMResourcePlan | None
    copyFrom: str | None
    def __init__(
        self,
        resourcePlan: WMResourcePlan | Encoded | None = None,
        copyFrom: str | None = None,
    ) -> None: ...

class WMCreateResourcePlanResponse(Struct): ...

class WMGetResourcePlanRequest(Struct):
    resourcePlanName: str | None
    ns: str | None
    def __init__(
        self,
        resourcePlanName: str | None = None,
        ns: str | None = None,
    ) -> None: ...

class WMGetResourcePlanResponse(Struct):
    resourcePlan: WMFullResourcePlan | None
    def __init__(
        self,
        resourcePlan: WMFullResourcePlan | Encoded | None = None,
    ) -> None: ...

class WMGetActiveResourcePlanRequest(Struct):
    ns: str | None
    def __init__(
        self,
        ns: str | None = None,
    ) -> None: ...

class WMGetActiveResourcePlanResponse(Struct):
    resourcePlan: WMFullResourcePlan | None
    def __init__(
        self,
        resourcePlan: WMFullResourcePlan | Encoded | None = None,
    ) -> None: ...

class WMGetAllResourcePlanRequest(Struct):
    ns: str | None
    def __init__(
        self,
        ns: str | None = None,
    ) -> None: ...

class WMGetAllResourcePlanResponse(Struct):
    resourcePlans: list[WMResourcePlan] | None
    def __init__(
        self,
        resourcePlans: list[WMResourcePlan] | EncodedList | None = None,
    ) -> None: ...

class WMAlterResourcePlanRequest(Struct):
    resourcePlanName: str | None
    resourcePlan: WMNullableResourcePlan | None
    isEnableAndActivate: bool | None
    isForceDeactivate: bool | None
    isReplace: bool | None
    ns: str | None
    def __init__(
        self,
        resourcePlanName: str | None = None,
        resourcePlan: WMNullableResourcePlan | Encoded | None = None,
        isEnableAndActivate: bool | None = None,
        isForceDeactivate: bool | None = None,
        isReplace: bool | None = None,
        ns: str | None = None,
    ) -> None: ...

class WMAlterResourcePlanResponse(Struct):
    fullResourcePlan: WMFullResourcePlan | None
    def __init__(
        self,
        fullResourcePlan: WMFullResourcePlan | Encoded | None = None,
    ) -> None: ...

class WMValidateResourcePlanRequest(Struct):
    resourcePlanName: str | None
    ns: str | None
    def __init__(
        self,
        resourcePlanName: str | None = None,
        ns: str | None = None,
    ) -> None: ...

class WMValidateResourcePlanResponse(Struct):
    errors: list[str] | None
    warnings: list[str] | None
    def __init__(
        self,
        errors: list[str] | None = None,
        warnings: list[str] | None = None,
    ) -> None: ...

class WMDropResourcePlanRequest(Struct):
    resourcePlanName: str | None
    ns: str | None
    def __init__(
        self,
        resourcePlanName: str | None = None,
        ns: str | None = None,
    ) -> None: ...

class WMDropResourcePlanResponse(Struct): ...

class WMCreateTriggerRequest(Struct):
    trigger: WMTrigger | None
    def __init__(
        self,
        trigger: WMTrigger | Encoded | None = None,
    ) -> None: ...

class WMCreateTriggerResponse(Struct): ...

class WMAlterTriggerRequest(Struct):
    trigger: WMTrigger | None
    def __init__(
        self,
        trigger: WMTrigger | Encoded | None = None,
    ) -> None: ...

class WMAlterTriggerResponse(Struct): ...

class WMDropTriggerRequest(Struct):
    resourcePlanName: str | None
    triggerName: str | None
    ns: str | None
    def __init__(
        self,
        resourcePlanName: str | None = None,
        triggerName: str | None = None,
        ns: str | None = None,
    ) -> None: ...

class WMDropTriggerResponse(Struct): ...

class WMGetTriggersForResourePlanRequest(Struct):
    resourcePlanName: str | None
    ns: str | None
    def __init__(
        self,
        resourcePlanName: str | None = None,
        ns: str | None = None,
    ) -> None: ...

class WMGetTriggersForResourePlanResponse(Struct):
    triggers: list[WMTrigger] | None
    def __init__(
        self,
        triggers: list[WMTrigger] | EncodedList | None = None,
    ) -> None: ...

class WMCreatePoolRequest(Struct):
    pool: WMPool | None
    def __init__(
        self,
        pool: WMPool | Encoded | None = None,
    ) -> None: ...

class WMCreatePoolResponse(Struct): ...

class WMAlterPoolRequest(Struct):
    pool: WMNullablePool | None
    poolPath: str | None
    def __init__(
        self,
        pool: WMNullablePool | Encoded | None = None,
        poolPath: str | None = None,
    ) -> None: ...

class WMAlterPoolResponse(Struct): ...

class WMDropPoolRequest(Struct):
    resourcePlanName: str | None
    poolPath: str | None
    ns: str | None
    def __init__(
        self,
        resourcePlanName: str | None = None,
        poolPath: str | None = None,
        ns: str | None = None,
    ) -> None: ...

class WMDropPoolResponse(Struct): ...

class WMCreateOrUpdateMappingRequest(Struct):
    mapping: WMMapping | None
    update: bool | None
    def __init__(
        self,
        mapping: WMMapping | Encoded | None = None,
        update: bool | None = None,
    ) -> None: ...

class WMCreateOrUpdateMappingResponse(Struct): ...

class WMDropMappingRequest(Struct):
    mapping: WMMapping | None
    def __init__(
        self,
        mapping: WMMapping | Encoded | None = None,
    ) -> None: ...

class WMDropMappingResponse(Struct): ...

class WMCreateOrDropTriggerToPoolMappingRequest(Struct):
    resourcePlanName: str | None
    triggerName: str | None
    poolPath: str | None
    drop: bool | None
    ns: str | None
    def __init__(
        self,
        resourcePlanName: str | None = None,
        triggerName: str | None = None,
        poolPath: str | None = None,
        drop: bool | None = None,
        ns: str | None = None,
    ) -> None: ...

class WMCreateOrDropTriggerToPoolMappingResponse(Struct): ...

class ISchema(Struct):
    schemaType: int | None
    name: str | None
    catName: str | None
    dbName: str | None
    compatibility: int | None
    validationLevel: int | None
    canEvolve: bool | None
    schemaGroup: str | None
    description: str | None
    def __init__(
        self,
        schemaType: int | None = None,
        name: str | None = None,
        catName: str | None = None,
        dbName: str | None = None,
        compatibility: int | None = None,
        validationLevel: int | None = None,
        canEvolve: bool | None = None,
        schemaGroup: str | None = None,
        description: str | None = None,
    ) -> None: ...

class ISchemaName(Struct):
    catName: str | None
    dbName: str | None
    schemaName: str | None
    def __init__(
        self,
        catName: str | None = None,
        dbName: str | None = None,
        schemaName: str | None = None,
    ) -> None: ...

class AlterISchemaRequest(Struct):
    name: ISchemaName | None
    newSchema: ISchema | None
    def __init__(
        self,
        name: ISchemaName | Encoded | None = None,
        newSchema: ISchema | Encoded | None = None,
    ) -> None: ...

class SchemaVersion(Struct):
    schema: ISchemaName | None
    version: int | None
    createdAt: int | None
    cols: list[FieldSchema] | None
    state: int | None
    description: str | None
    schemaText: str | None
    fingerprint: str | None
    name: str | None
    serDe: SerDeInfo | None
    def __init__(
        self,
        schema: ISchemaName | Encoded | None = None,
        version: int | None = None,
        createdAt: int | None = None,
        cols: list[FieldSchema] | EncodedList | None = None,
        state: int | None = None,
        description: str | None = None,
        schemaText: str | None = None,
        fingerprint: str | None = None,
        name: str | None = None,
        serDe: SerDeInfo | Encoded | None = None,
    ) -> None: ...

class SchemaVersionDescriptor(Struct):
    schema: ISchemaName | None
    version: int | None
    def __init__(
        self,
        schema: ISchemaName | Encoded | None = None,
        version: int | None = None,
    ) -> None: ...

class FindSchemasByColsRqst(Struct):
    colName: str | None
    colNamespace: str | None
    type: str | None
    def __init__(
        self,
        colName: str | None = None,
        colNamespace: str | None = None,
        type: str | None = None,
    ) -> None: ...

class FindSchemasByColsResp(Struct):
    schemaVersions: list[SchemaVersionDescriptor] | None
    def __init__(
        self,
        schemaVersions: list[SchemaVersionDescriptor] | EncodedList | None = None,
    ) -> None: ...

class MapSchemaVersionToSerdeRequest(Struct):
    schemaVersion: SchemaVersionDescriptor | None
    serdeName: str | None
    def __init__(
        self,
        schemaVersion: SchemaVersionDescriptor | Encoded | None = None,
        serdeName: str | None = None,
    ) -> None: ...

class SetSchemaVersionStateRequest(Struct):
    schemaVersion: SchemaVersionDescriptor | None
    state: int | None
    def __init__(
        self,
        schemaVersion: SchemaVersionDescriptor | Encoded | None = None,
        state: int | None = None,
    ) -> None: ...

class RuntimeStat(Struct):
    createTime: int | None
    weight: int | None
    payload: bytes | None
    def __init__(
        self,
        createTime: int | None = None,
        weight: int | None = None,
        payload: bytes | None = None,
    ) -> None: ...

class GetRuntimeStatsRequest(Struct):
    maxWeight: int | None
    maxCreateTime: int | None
    def __init__(
        self,
        maxWeight: int | None = None,
        maxCreateTime: int | None = None,
    ) -> None: ...

class ReplicationMetrics(Struct):
    scheduledExecutionId: int | None
    policy: str | None
    dumpExecutionId: int | None
    metadata: str | None
    progress: str | None
    messageFormat: str | None
    def __init__(
        self,
        scheduledExecutionId: int | None = None,
        policy: str | None = None,
        dumpExecutionId: int | None = None,
        metadata: str | None = None,
        progress: str | None = None,
        messageFormat: str | None = None,
    ) -> None: ...

class ReplicationMetricList(Struct):
    replicationMetricList: list[ReplicationMetrics] | None
    def __init__(
        self,
        replicationMetricList: list[ReplicationMetrics] | EncodedList | None = None,
    ) -> None: ...

class GetReplicationMetricsRequest(Struct):
    scheduledExecutionId: int | None
    policy: str | None
    dumpExecutionId: int | None
    def __init__(
        self,
        scheduledExecutionId: int | None = None,
        policy: str | None = None,
        dumpExecutionId: int | None = None,
    ) -> None: ...

class ScheduledQueryKey(Struct):
    scheduleName: str | None
    clusterNamespace: str | None
    def __init__(
        self,
        scheduleName: str | None = None,
        clusterNamespace: str | None = None,
    ) -> None: ...

class ScheduledQuery(Struct):
    scheduleKey: ScheduledQueryKey | None
    enabled: bool | None
    schedule: str | None
    user: str | None
    query: str | None
    nextExecution: int | None
    def __init__(
        self,
        scheduleKey: ScheduledQueryKey | Encoded | None = None,
        enabled: bool | None = None,
        schedule: str | None = None,
        user: str | None = None,
        query: str | None = None,
        nextExecution: int | None = None,
    ) -> None: ...

class ScheduledQueryPollRequest(Struct):
    clusterNamespace: str | None
    def __init__(
        self,
        clusterNamespace: str | None = None,
    ) -> None: ...

class ScheduledQueryPollResponse(Struct):
    scheduleKey: ScheduledQueryKey | None
    executionId: int | None
    query: str | None
    user: str | None
    def __init__(
        self,
        scheduleKey: ScheduledQueryKey | Encoded | None = None,
        executionId: int | None = None,
        query: str | None = None,
        user: str | None = None,
    ) -> None: ...

class ScheduledQueryMaintenanceRequest(Struct):
    type: int | None
    scheduledQuery: ScheduledQuery | None
    def __init__(
        self,
        type: int | None = None,
        scheduledQuery: ScheduledQuery | Encoded | None = None,
    ) -> None: ...

class ScheduledQueryProgressInfo(Struct):
    scheduledExecutionId: int | None
    state: int | None
    executorQueryId: str | None
    errorMessage: str | None
    def __init__(
        self,
        scheduledExecutionId: int | None = None,
        state: int | None = None,
        executorQueryId: str | None = None,
        errorMessage: str | None = None,
    ) -> None: ...

class BlockingLock(Struct):
    lock: ShowLocksResponseElement | None
    last_heartbeat: int | None
    lost_at: int | None
    blocked: list[int] | None
    blocked_count: int | None
    blocked_since: list[int] | None
    def __init__(
        self,
        lock: ShowLocksResponseElement | Encoded | None = None,
        last_heartbeat: int | None = None,
        lost_at: int | None = None,
        blocked: list[int] | None = None,
        blocked_count: int | None = None,
        blocked_since: list[int] | None = None,
    ) -> None: ...

class FoundName(Struct):
    db_name: str | None
    name: str | None
    kind: str | None
    owner: str | None
    comment: str | None
    rows: int | None
    bytes: int | None
    partitions: int | None
    def __init__(
        self,
        db_name: str | None = None,
        name: str | None = None,
        kind: str | None = None,
        owner: str | None = None,
        comment: str | None = None,
        rows: int | None = None,
        bytes: int | None = None,
        partitions: int | None = None,
    ) -> None: ...

class DatabaseCounts(Struct):
    db_name: str | None
    tables: int | None
    functions: int | None
    views: int | None
    partitions: int | None
    def __init__(
        self,
        db_name: str | None = None,
        tables: int | None = None,
        functions: int | None = None,
        views: int | None = None,
        partitions: int | None = None,
    ) -> None: ...

class PartitionGroup(Struct):
    example: str | None
    partitions: int | None
    def __init__(
        self,
        example: str | None = None,
        partitions: int | None = None,
    ) -> None: ...

class IcebergSnapshot(Struct):
    snapshot_id: int | None
    parent_id: int | None
    committed_at: int | None
    operation: str | None
    summary: dict[str, str] | None
    def __init__(
        self,
        snapshot_id: int | None = None,
        parent_id: int | None = None,
        committed_at: int | None = None,
        operation: str | None = None,
        summary: dict[str, str] | None = None,
    ) -> None: ...

class IcebergRef(Struct):
    name: str | None
    kind: str | None
    snapshot_id: int | None
    max_ref_age_ms: int | None
    min_snapshots_to_keep: int | None
    max_snapshot_age_ms: int | None
    def __init__(
        self,
        name: str | None = None,
        kind: str | None = None,
        snapshot_id: int | None = None,
        max_ref_age_ms: int | None = None,
        min_snapshots_to_keep: int | None = None,
        max_snapshot_age_ms: int | None = None,
    ) -> None: ...

class IcebergVersion(Struct):
    id: int | None
    fields: list[str] | None
    is_current: bool | None
    def __init__(
        self,
        id: int | None = None,
        fields: list[str] | None = None,
        is_current: bool | None = None,
    ) -> None: ...

class IcebergHistory(Struct):
    metadata_location: str | None
    format_version: int | None
    snapshots: list[IcebergSnapshot] | None
    refs: list[IcebergRef] | None
    schemas: list[IcebergVersion] | None
    partition_specs: list[IcebergVersion] | None
    def __init__(
        self,
        metadata_location: str | None = None,
        format_version: int | None = None,
        snapshots: list[IcebergSnapshot] | EncodedList | None = None,
        refs: list[IcebergRef] | EncodedList | None = None,
        schemas: list[IcebergVersion] | EncodedList | None = None,
        partition_specs: list[IcebergVersion] | EncodedList | None = None,
    ) -> None: ...

class Change(Struct):
    event_id: int | None
    event_time: int | None
    event_type: str | None
    user: str | None
    db_name: str | None
    table_name: str | None
    real_user: str | None
    address: str | None
    method: str | None
    request_id: str | None
    def __init__(
        self,
        event_id: int | None = None,
        event_time: int | None = None,
        event_type: str | None = None,
        user: str | None = None,
        db_name: str | None = None,
        table_name: str | None = None,
        real_user: str | None = None,
        address: str | None = None,
        method: str | None = None,
        request_id: str | None = None,
    ) -> None: ...

class ChangesRequest(Struct):
    user: str | None
    db_name: str | None
    table_name: str | None
    from_time: int | None
    until_time: int | None
    before_event_id: int | None
    limit: int | None
    def __init__(
        self,
        user: str | None = None,
        db_name: str | None = None,
        table_name: str | None = None,
        from_time: int | None = None,
        until_time: int | None = None,
        before_event_id: int | None = None,
        limit: int | None = None,
    ) -> None: ...

class RightAnswer(Struct):
    is_allowed: bool | None
    why: str | None
    notes: list[str] | None
    def __init__(
        self,
        is_allowed: bool | None = None,
        why: str | None = None,
        notes: list[str] | None = None,
    ) -> None: ...

class LeaseAlreadyExistsException(ThriftException):
    def __init__(
        self,
        message: str | None = None,
    ) -> None: ...

class InvalidArgumentsException(ThriftException):
    def __init__(
        self,
        message: str | None = None,
    ) -> None: ...

class ExceedsMaxLeaseTimeException(ThriftException):
    def __init__(
        self,
        message: str | None = None,
    ) -> None: ...

class LeaseObject(Struct):
    db_name: str | None
    table_name: str | None
    partition_name: str | None
    lease_type: str | None
    user: str | None
    lease_id: int | None
    start_utc: int | None
    end_utc: int | None
    def __init__(
        self,
        db_name: str | None = None,
        table_name: str | None = None,
        partition_name: str | None = None,
        lease_type: str | None = None,
        user: str | None = None,
        lease_id: int | None = None,
        start_utc: int | None = None,
        end_utc: int | None = None,
    ) -> None: ...
