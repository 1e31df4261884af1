// The wire of hms-gateway: every struct, exception and method a client of a Hive Metastore may use.
//
// It is the union of the dialects. The base is the 2.3 interface of [MS-HMSHTTP]; on top of it stand the methods and
// fields of 3.1 and 4.x under their real ids, and the lease service. Thrift peers skip what they do not know, so one
// description serves them all, with these rules:
//
// * A field that 3.1 or 4.x made `required` in a struct 2.3 already had is `optional` here: older callers lack it.
// * An argument list that grew has its longest form; arguments an older caller leaves out arrive unset.
// * Where a field changed its type or meaning, the struct has the 2.3 shape and a second one, named with the suffix
//   `_v4`, has the shape of 3.1 and later. In the dialect of 4 `X_v4` stands wherever this file says `X`
//   (semantics §10.1). Where only newer clients call a method, it names the `_v4` struct itself.
// * The i64 defaults of 4.x (-1, or 0 for a txnId) are left out: unset means the same, and JavaScript made from them
//   writes `-000000000001`, which is no JSON, into every Table.
// * A method that declares its exceptions differently in 4 keeps those of 2.3; a comment shows the others.
//
// Left out: data connectors, stored procedures and packages of 4.x, which no known client needs.

include "fb303.thrift"

namespace java org.apache.hadoop.hive.metastore.api
namespace php metastore
namespace cpp Apache.Hadoop.Hive
namespace py hive_metastore
// Without a namespace the generated script would replace the page's own Date and Function (clients §7.2).
namespace js HMS

// ------------------------------------------------------------
// Keys of table and partition parameters
// ------------------------------------------------------------
// Seconds since the epoch; set to the current time when a caller leaves it out.
const string DDL_TIME = "transient_lastDdlTime"
// "true" on a partition whose files were packed away; ORIGINAL_LOCATION remembers where they were.
const string IS_ARCHIVED = "is_archived"
const string ORIGINAL_LOCATION = "original_location"
// "true" forbids appending.
const string IS_IMMUTABLE = "immutable"
const string TABLE_IS_TRANSACTIONAL = "transactional"
const string TABLE_TRANSACTIONAL_PROPERTIES = "transactional_properties"
const string TABLE_NO_AUTO_COMPACT = "no_auto_compaction"
const string META_TABLE_STORAGE = "storage_handler"

// ------------------------------------------------------------
// Keys of the flat properties form of a table
// ------------------------------------------------------------
const string META_TABLE_COLUMNS = "columns"
const string META_TABLE_COLUMN_TYPES = "columns.types"
const string BUCKET_FIELD_NAME = "bucket_field_name"
const string BUCKET_COUNT = "bucket_count"
const string FIELD_TO_DIMENSION = "field_to_dimension"
const string META_TABLE_NAME = "name"
const string META_TABLE_DB = "db"
const string META_TABLE_LOCATION = "location"
const string META_TABLE_SERDE = "serde"
const string META_TABLE_PARTITION_COLUMNS = "partition_columns"
const string META_TABLE_PARTITION_COLUMN_TYPES = "partition_columns.types"
const string FILE_INPUT_FORMAT = "file.inputformat"
const string FILE_OUTPUT_FORMAT = "file.outputformat"

// ------------------------------------------------------------
// Words of the table filter, and of the compare-and-set in an environment context
// ------------------------------------------------------------
// Left sides of get_table_names_by_filter; the name of a parameter follows HIVE_FILTER_FIELD_PARAMS directly.
const string HIVE_FILTER_FIELD_OWNER = "hive_filter_field_owner__"
const string HIVE_FILTER_FIELD_PARAMS = "hive_filter_field_params__"
const string HIVE_FILTER_FIELD_LAST_ACCESS = "hive_filter_field_last_access__"
const string HIVE_FILTER_FIELD_TABLE_NAME = "hive_filter_field_tableName__"
const string HIVE_FILTER_FIELD_TABLE_TYPE = "hive_filter_field_tableType__"
// Environment context of alter_table: refuse unless the stored parameter has the expected value.
const string EXPECTED_PARAMETER_KEY = "expected_parameter_key"
const string EXPECTED_PARAMETER_VALUE = "expected_parameter_value"

// ------------------------------------------------------------
// Exceptions
// ------------------------------------------------------------

exception MetaException {
  1: string message,
}

exception UnknownTableException {
  1: string message,
}

exception UnknownDBException {
  1: string message,
}

exception AlreadyExistsException {
  1: string message,
}

exception InvalidPartitionException {
  1: string message,
}

exception UnknownPartitionException {
  1: string message,
}

exception InvalidObjectException {
  1: string message,
}

exception NoSuchObjectException {
  1: string message,
}

// 2.3 only.
exception IndexAlreadyExistsException {
  1: string message,
}

exception InvalidOperationException {
  1: string message,
}

exception ConfigValSecurityException {
  1: string message,
}

exception InvalidInputException {
  1: string message,
}

exception NoSuchTxnException {
  1: string message,
}

exception TxnAbortedException {
  1: string message,
}

exception TxnOpenException {
  1: string message,
}

exception NoSuchLockException {
  1: string message,
}

exception CompactionAbortedException {
  1: string message,
}

exception NoSuchCompactionException {
  1: string message,
}

// ------------------------------------------------------------
// Common
// ------------------------------------------------------------

enum PrincipalType {
  USER = 1,
  ROLE = 2,
  GROUP = 3,
}

struct Version {
  1: string version,
  2: string comments,
}

struct EnvironmentContext {
  1: map<string, string> properties,
}

// TEST_CAPABILITY is for tests of the client.
enum ClientCapability {
  TEST_CAPABILITY = 1,
  INSERT_ONLY_TABLES = 2,
}

struct ClientCapabilities {
  1: required list<ClientCapability> values,
}

// Dotted names of the wanted fields, all when empty; the patterns select parameters with % and _.
struct GetProjectionsSpec {
  1: list<string> fieldList,
  2: string includeParamKeyPattern,
  3: string excludeParamKeyPattern,
}

struct PropertySetRequest {
  1: required string nameSpace,
  2: map<string, string> propertyMap,
}

struct PropertyGetRequest {
  1: required string nameSpace,
  2: string mapPrefix,
  3: optional string mapPredicate,
  4: optional list<string> mapSelection,
}

struct PropertyGetResponse {
  1: map<string, map<string, string>> properties,
}

// ------------------------------------------------------------
// Privileges and roles
// ------------------------------------------------------------

enum HiveObjectType {
  GLOBAL = 1,
  DATABASE = 2,
  TABLE = 3,
  PARTITION = 4,
  COLUMN = 5,
  DATACONNECTOR = 6,
}

enum GrantRevokeType {
  GRANT = 1,
  REVOKE = 2,
}

// What a privilege is on; objectType says which of the names count.
struct HiveObjectRef {
  1: HiveObjectType objectType,
  2: string dbName,
  3: string objectName,
  4: list<string> partValues,
  5: string columnName,
  6: optional string catName,
}

struct PrivilegeGrantInfo {
  1: string privilege,
  2: i32 createTime,
  3: string grantor,
  4: PrincipalType grantorType,
  5: bool grantOption,
}

struct HiveObjectPrivilege {
  1: HiveObjectRef hiveObject,
  2: string principalName,
  3: PrincipalType principalType,
  4: PrivilegeGrantInfo grantInfo,
  5: string authorizer,
}

struct PrivilegeBag {
  1: list<HiveObjectPrivilege> privileges,
}

// Each map goes from the name of a user, group or role to what it was granted.
struct PrincipalPrivilegeSet {
  1: map<string, list<PrivilegeGrantInfo>> userPrivileges,
  2: map<string, list<PrivilegeGrantInfo>> groupPrivileges,
  3: map<string, list<PrivilegeGrantInfo>> rolePrivileges,
}

struct GrantRevokePrivilegeRequest {
  1: GrantRevokeType requestType,
  2: PrivilegeBag privileges,
  3: optional bool revokeGrantOption,  // for revoking only
}

struct GrantRevokePrivilegeResponse {
  1: optional bool success,
}

struct Role {
  1: string roleName,
  2: i32 createTime,
  3: string ownerName,
}

struct RolePrincipalGrant {
  1: string roleName,
  2: string principalName,
  3: PrincipalType principalType,
  4: bool grantOption,
  5: i32 grantTime,
  6: string grantorName,
  7: PrincipalType grantorPrincipalType,
}

struct GetRoleGrantsForPrincipalRequest {
  1: required string principal_name,
  2: required PrincipalType principal_type,
}

struct GetRoleGrantsForPrincipalResponse {
  1: required list<RolePrincipalGrant> principalGrants,
}

struct GetPrincipalsInRoleRequest {
  1: required string roleName,
}

struct GetPrincipalsInRoleResponse {
  1: required list<RolePrincipalGrant> principalGrants,
}

struct GrantRevokeRoleRequest {
  1: GrantRevokeType requestType,
  2: string roleName,
  3: string principalName,
  4: PrincipalType principalType,
  5: optional string grantor,  // for granting
  6: optional PrincipalType grantorType,  // for granting
  7: optional bool grantOption,
}

struct GrantRevokeRoleResponse {
  1: optional bool success,
}

// ------------------------------------------------------------
// Catalogs
// ------------------------------------------------------------

struct Catalog {
  1: string name,
  2: optional string description,
  3: string locationUri,
  4: optional i32 createTime,
}

struct CreateCatalogRequest {
  1: Catalog catalog,
}

struct AlterCatalogRequest {
  1: string name,
  2: Catalog newCat,
}

struct GetCatalogRequest {
  1: string name,
}

struct GetCatalogResponse {
  1: Catalog catalog,
}

struct GetCatalogsResponse {
  1: list<string> names,
}

struct DropCatalogRequest {
  1: string name,
}

// ------------------------------------------------------------
// Databases
// ------------------------------------------------------------

enum DatabaseType {
  NATIVE = 1,
  REMOTE = 2,
}

// createTime in seconds.
struct Database {
  1: string name,
  2: string description,
  3: string locationUri,
  4: map<string, string> parameters,
  5: optional PrincipalPrivilegeSet privileges,
  6: optional string ownerName,
  7: optional PrincipalType ownerType,
  8: optional string catalogName,
  9: optional i32 createTime,
  10: optional string managedLocationUri,
  11: optional DatabaseType type,
  12: optional string connector_name,
  13: optional string remote_dbname,
}

struct GetDatabaseRequest {
  1: optional string name,
  2: optional string catalogName,
  3: optional list<string> processorCapabilities,
  4: optional string processorIdentifier,
}

struct GetDatabaseObjectsRequest {
  1: optional string catalogName,
  2: optional string pattern,
}

struct GetDatabaseObjectsResponse {
  1: required list<Database> databases,
}

// `type` is text in the beta of 4.0, where no method takes this struct.
struct CreateDatabaseRequest {
  1: required string databaseName,
  2: optional string description,
  3: optional string locationUri,
  4: optional map<string, string> parameters,
  5: optional PrincipalPrivilegeSet privileges,
  6: optional string ownerName,
  7: optional PrincipalType ownerType,
  8: optional string catalogName,
  9: optional i32 createTime,
  10: optional string managedLocationUri,
  11: optional DatabaseType type,
  12: optional string dataConnectorName,
  13: optional string remote_dbname,
}

struct AlterDatabaseRequest {
  1: required string oldDbName,
  2: required Database newDb,
}

struct DropDatabaseRequest {
  1: required string name,
  2: optional string catalogName,
  3: required bool ignoreUnknownDb,
  4: required bool deleteData,
  5: required bool cascade,
  6: optional bool softDelete = false,
  7: optional i64 txnId,
  8: optional bool deleteManagedDir = true,
  9: optional string id,
  10: optional bool asyncDrop,
  11: optional bool cancel,
}

// Answer of the newest drop calls; `finished` is always true here.
struct AsyncOperationResp {
  1: required string id,
  2: optional string message,
  3: optional bool finished,
}

// ------------------------------------------------------------
// Types and columns
// ------------------------------------------------------------

// A column; `type` is a type string such as `map<string, int>`.
struct FieldSchema {
  1: string name,
  2: string type,
  3: string comment,
}

// `type1` and `type2` are element, key and value types; `fields` those of a user-defined type.
struct Type {
  1: string name,
  2: optional string type1,
  3: optional string type2,
  4: optional list<FieldSchema> fields,
}

struct Schema {
  1: list<FieldSchema> fieldSchemas,
  2: map<string, string> properties,
}

struct GetFieldsRequest {
  1: optional string catName,
  2: required string dbName,
  3: required string tblName,
  4: optional EnvironmentContext envContext,
  5: optional string validWriteIdList,
  6: optional i64 id,
}

struct GetFieldsResponse {
  1: required list<FieldSchema> fields,
}

struct GetSchemaRequest {
  1: optional string catName,
  2: required string dbName,
  3: required string tblName,
  4: optional EnvironmentContext envContext,
  5: optional string validWriteIdList,
  6: optional i64 id,
}

struct GetSchemaResponse {
  1: required list<FieldSchema> fields,
}

// ------------------------------------------------------------
// Storage
// ------------------------------------------------------------

enum SerdeType {
  HIVE = 1,
  SCHEMA_REGISTRY = 2,
}

struct SerDeInfo {
  1: string name,
  2: string serializationLib,
  3: map<string, string> parameters,
  4: optional string description,
  5: optional string serializerClass,
  6: optional string deserializerClass,
  7: optional SerdeType serdeType,
}

struct GetSerdeRequest {
  1: string serdeName,
}

// order: 1 ascending, 0 descending.
struct Order {
  1: string col,
  2: i32 order,
}

// The location map is keyed by a list of values, which JSON cannot express (clients §A.5).
struct SkewedInfo {
  1: list<string> skewedColNames,
  2: list<list<string>> skewedColValues,
  3: map<list<string>, string> skewedColValueLocationMaps,
}

struct StorageDescriptor {
  1: list<FieldSchema> cols,
  2: string location,
  3: string inputFormat,
  4: string outputFormat,
  5: bool compressed,
  6: i32 numBuckets,
  7: SerDeInfo serdeInfo,
  8: list<string> bucketCols,
  9: list<Order> sortCols,
  10: map<string, string> parameters,
  11: optional SkewedInfo skewedInfo,
  12: optional bool storedAsSubDirectories,
}

struct FileMetadata {
  1: byte type = 1,
  2: byte version = 1,
  3: list<binary> data,
}

struct ObjectDictionary {
  1: required map<string, list<binary>> values,
}

// ------------------------------------------------------------
// Column statistics
// ------------------------------------------------------------

struct BooleanColumnStatsData {
  1: required i64 numTrues,
  2: required i64 numFalses,
  3: required i64 numNulls,
  4: optional string bitVectors,
}

// bitVectors became binary in 3.1. TJSON writes that as base64, and sketches are no valid text.
struct BooleanColumnStatsData_v4 {
  1: required i64 numTrues,
  2: required i64 numFalses,
  3: required i64 numNulls,
  4: optional binary bitVectors,
}

struct DoubleColumnStatsData {
  1: optional double lowValue,
  2: optional double highValue,
  3: required i64 numNulls,
  4: required i64 numDVs,
  5: optional string bitVectors,
  6: optional binary histogram,
}

struct DoubleColumnStatsData_v4 {
  1: optional double lowValue,
  2: optional double highValue,
  3: required i64 numNulls,
  4: required i64 numDVs,
  5: optional binary bitVectors,
  6: optional binary histogram,
}

struct LongColumnStatsData {
  1: optional i64 lowValue,
  2: optional i64 highValue,
  3: required i64 numNulls,
  4: required i64 numDVs,
  5: optional string bitVectors,
  6: optional binary histogram,
}

struct LongColumnStatsData_v4 {
  1: optional i64 lowValue,
  2: optional i64 highValue,
  3: required i64 numNulls,
  4: required i64 numDVs,
  5: optional binary bitVectors,
  6: optional binary histogram,
}

struct StringColumnStatsData {
  1: required i64 maxColLen,
  2: required double avgColLen,
  3: required i64 numNulls,
  4: required i64 numDVs,
  5: optional string bitVectors,
}

struct StringColumnStatsData_v4 {
  1: required i64 maxColLen,
  2: required double avgColLen,
  3: required i64 numNulls,
  4: required i64 numDVs,
  5: optional binary bitVectors,
}

struct BinaryColumnStatsData {
  1: required i64 maxColLen,
  2: required double avgColLen,
  3: required i64 numNulls,
  4: optional string bitVectors,
}

struct BinaryColumnStatsData_v4 {
  1: required i64 maxColLen,
  2: required double avgColLen,
  3: required i64 numNulls,
  4: optional binary bitVectors,
}

// unscaled is the two-complement big-endian integer; the value is unscaled * 10^-scale.
struct Decimal {
  1: required binary unscaled,
  3: required i16 scale,
}

struct DecimalColumnStatsData {
  1: optional Decimal lowValue,
  2: optional Decimal highValue,
  3: required i64 numNulls,
  4: required i64 numDVs,
  5: optional string bitVectors,
  6: optional binary histogram,
}

struct DecimalColumnStatsData_v4 {
  1: optional Decimal lowValue,
  2: optional Decimal highValue,
  3: required i64 numNulls,
  4: required i64 numDVs,
  5: optional binary bitVectors,
  6: optional binary histogram,
}

struct Date {
  1: required i64 daysSinceEpoch,
}

struct DateColumnStatsData {
  1: optional Date lowValue,
  2: optional Date highValue,
  3: required i64 numNulls,
  4: required i64 numDVs,
  5: optional string bitVectors,
  6: optional binary histogram,
}

struct DateColumnStatsData_v4 {
  1: optional Date lowValue,
  2: optional Date highValue,
  3: required i64 numNulls,
  4: required i64 numDVs,
  5: optional binary bitVectors,
  6: optional binary histogram,
}

struct Timestamp {
  1: required i64 secondsSinceEpoch,
}

struct TimestampColumnStatsData {
  1: optional Timestamp lowValue,
  2: optional Timestamp highValue,
  3: required i64 numNulls,
  4: required i64 numDVs,
  5: optional binary bitVectors,
  6: optional binary histogram,
}

union ColumnStatisticsData {
  1: BooleanColumnStatsData booleanStats,
  2: LongColumnStatsData longStats,
  3: DoubleColumnStatsData doubleStats,
  4: StringColumnStatsData stringStats,
  5: BinaryColumnStatsData binaryStats,
  6: DecimalColumnStatsData decimalStats,
  7: DateColumnStatsData dateStats,
  8: TimestampColumnStatsData timestampStats,
}

union ColumnStatisticsData_v4 {
  1: BooleanColumnStatsData_v4 booleanStats,
  2: LongColumnStatsData_v4 longStats,
  3: DoubleColumnStatsData_v4 doubleStats,
  4: StringColumnStatsData_v4 stringStats,
  5: BinaryColumnStatsData_v4 binaryStats,
  6: DecimalColumnStatsData_v4 decimalStats,
  7: DateColumnStatsData_v4 dateStats,
  8: TimestampColumnStatsData timestampStats,
}

struct ColumnStatisticsObj {
  1: required string colName,
  2: required string colType,
  3: required ColumnStatisticsData statsData,
}

struct ColumnStatisticsObj_v4 {
  1: required string colName,
  2: required string colType,
  3: required ColumnStatisticsData_v4 statsData,
}

// lastAnalyzed in seconds.
struct ColumnStatisticsDesc {
  1: required bool isTblLevel,
  2: required string dbName,
  3: required string tableName,
  4: optional string partName,
  5: optional i64 lastAnalyzed,
  6: optional string catName,
}

struct ColumnStatistics {
  1: required ColumnStatisticsDesc statsDesc,
  2: required list<ColumnStatisticsObj> statsObj,
  3: optional bool isStatsCompliant,
  4: optional string engine,
}

struct ColumnStatistics_v4 {
  1: required ColumnStatisticsDesc statsDesc,
  2: required list<ColumnStatisticsObj_v4> statsObj,
  3: optional bool isStatsCompliant,
  4: optional string engine,
}

struct AggrStats {
  1: required list<ColumnStatisticsObj> colStats,
  2: required i64 partsFound,  // partitions that have statistics
  3: optional bool isStatsCompliant,
}

struct AggrStats_v4 {
  1: required list<ColumnStatisticsObj_v4> colStats,
  2: required i64 partsFound,
  3: optional bool isStatsCompliant,
}

// `engine` of the statistics requests is required in 4.0; left out it means `hive`.
struct SetPartitionsStatsRequest {
  1: required list<ColumnStatistics> colStats,
  2: optional bool needMerge,  // with what is stored
  3: optional i64 writeId,
  4: optional string validWriteIdList,
  5: optional string engine,
}

struct SetPartitionsStatsRequest_v4 {
  1: required list<ColumnStatistics_v4> colStats,
  2: optional bool needMerge,
  3: optional i64 writeId,
  4: optional string validWriteIdList,
  5: optional string engine,
}

struct SetPartitionsStatsResponse {
  1: required bool result,
}

struct TableStatsRequest {
  1: required string dbName,
  2: required string tblName,
  3: required list<string> colNames,
  4: optional string catName,
  5: optional string validWriteIdList,
  6: optional string engine,
  7: optional i64 id,  // of the table
}

struct TableStatsResult {
  1: required list<ColumnStatisticsObj> tableStats,
  2: optional bool isStatsCompliant,
}

struct TableStatsResult_v4 {
  1: required list<ColumnStatisticsObj_v4> tableStats,
  2: optional bool isStatsCompliant,
}

struct PartitionsStatsRequest {
  1: required string dbName,
  2: required string tblName,
  3: required list<string> colNames,
  4: required list<string> partNames,
  5: optional string catName,
  6: optional string validWriteIdList,
  7: optional string engine,
}

struct PartitionsStatsResult {
  1: required map<string, list<ColumnStatisticsObj>> partStats,
  2: optional bool isStatsCompliant,
}

struct PartitionsStatsResult_v4 {
  1: required map<string, list<ColumnStatisticsObj_v4>> partStats,
  2: optional bool isStatsCompliant,
}

struct DeleteColumnStatisticsRequest {
  1: optional string cat_name,
  2: required string db_name,
  3: required string tbl_name,
  4: optional list<string> part_names,
  5: optional list<string> col_names,
  6: optional string engine,
  7: optional bool tableLevel = false,
}

struct UpdateTransactionalStatsRequest {
  1: required i64 tableId,
  2: required i64 insertCount,
  3: required i64 updatedCount,
  4: required i64 deletedCount,
}

// ------------------------------------------------------------
// Constraints
// ------------------------------------------------------------

struct SQLPrimaryKey {
  1: string table_db,
  2: string table_name,
  3: string column_name,
  4: i32 key_seq,  // from 1, place in the key
  5: string pk_name,
  6: bool enable_cstr,
  7: bool validate_cstr,
  8: bool rely_cstr,
  9: optional string catName,
}

struct SQLForeignKey {
  1: string pktable_db,
  2: string pktable_name,
  3: string pkcolumn_name,
  4: string fktable_db,
  5: string fktable_name,
  6: string fkcolumn_name,
  7: i32 key_seq,  // from 1, place in the key
  8: i32 update_rule,
  9: i32 delete_rule,
  10: string fk_name,
  11: string pk_name,
  12: bool enable_cstr,
  13: bool validate_cstr,
  14: bool rely_cstr,
  15: optional string catName,
}

struct SQLUniqueConstraint {
  1: string catName,
  2: string table_db,
  3: string table_name,
  4: string column_name,
  5: i32 key_seq,
  6: string uk_name,
  7: bool enable_cstr,
  8: bool validate_cstr,
  9: bool rely_cstr,
}

struct SQLNotNullConstraint {
  1: string catName,
  2: string table_db,
  3: string table_name,
  4: string column_name,
  5: string nn_name,
  6: bool enable_cstr,
  7: bool validate_cstr,
  8: bool rely_cstr,
}

struct SQLDefaultConstraint {
  1: string catName,
  2: string table_db,
  3: string table_name,
  4: string column_name,
  5: string default_value,
  6: string dc_name,
  7: bool enable_cstr,
  8: bool validate_cstr,
  9: bool rely_cstr,
}

struct SQLCheckConstraint {
  1: string catName,
  2: string table_db,
  3: string table_name,
  4: string column_name,
  5: string check_expression,
  6: string dc_name,
  7: bool enable_cstr,
  8: bool validate_cstr,
  9: bool rely_cstr,
}

struct SQLAllTableConstraints {
  1: optional list<SQLPrimaryKey> primaryKeys,
  2: optional list<SQLForeignKey> foreignKeys,
  3: optional list<SQLUniqueConstraint> uniqueConstraints,
  4: optional list<SQLNotNullConstraint> notNullConstraints,
  5: optional list<SQLDefaultConstraint> defaultConstraints,
  6: optional list<SQLCheckConstraint> checkConstraints,
}

struct PrimaryKeysRequest {
  1: required string db_name,
  2: required string tbl_name,
  3: optional string catName,
  4: optional string validWriteIdList,
  5: optional i64 tableId,
}

struct PrimaryKeysResponse {
  1: required list<SQLPrimaryKey> primaryKeys,
}

struct ForeignKeysRequest {
  1: string parent_db_name,
  2: string parent_tbl_name,
  3: string foreign_db_name,
  4: string foreign_tbl_name,
  5: optional string catName,
  6: optional string validWriteIdList,
  7: optional i64 tableId,
}

struct ForeignKeysResponse {
  1: required list<SQLForeignKey> foreignKeys,
}

struct UniqueConstraintsRequest {
  1: required string catName,
  2: required string db_name,
  3: required string tbl_name,
  4: optional string validWriteIdList,
  5: optional i64 tableId,
}

struct UniqueConstraintsResponse {
  1: required list<SQLUniqueConstraint> uniqueConstraints,
}

struct NotNullConstraintsRequest {
  1: required string catName,
  2: required string db_name,
  3: required string tbl_name,
  4: optional string validWriteIdList,
  5: optional i64 tableId,
}

struct NotNullConstraintsResponse {
  1: required list<SQLNotNullConstraint> notNullConstraints,
}

struct DefaultConstraintsRequest {
  1: required string catName,
  2: required string db_name,
  3: required string tbl_name,
  4: optional string validWriteIdList,
  5: optional i64 tableId,
}

struct DefaultConstraintsResponse {
  1: required list<SQLDefaultConstraint> defaultConstraints,
}

struct CheckConstraintsRequest {
  1: required string catName,
  2: required string db_name,
  3: required string tbl_name,
  4: optional string validWriteIdList,
  5: optional i64 tableId,
}

struct CheckConstraintsResponse {
  1: required list<SQLCheckConstraint> checkConstraints,
}

struct AllTableConstraintsRequest {
  1: required string dbName,
  2: required string tblName,
  3: required string catName,
  4: optional string validWriteIdList,
  5: optional i64 tableId,
}

struct AllTableConstraintsResponse {
  1: required SQLAllTableConstraints allTableConstraints,
}

struct AddPrimaryKeyRequest {
  1: required list<SQLPrimaryKey> primaryKeyCols,
}

struct AddForeignKeyRequest {
  1: required list<SQLForeignKey> foreignKeyCols,
}

struct AddUniqueConstraintRequest {
  1: required list<SQLUniqueConstraint> uniqueConstraintCols,
}

struct AddNotNullConstraintRequest {
  1: required list<SQLNotNullConstraint> notNullConstraintCols,
}

struct AddDefaultConstraintRequest {
  1: required list<SQLDefaultConstraint> defaultConstraintCols,
}

struct AddCheckConstraintRequest {
  1: required list<SQLCheckConstraint> checkConstraintCols,
}

struct DropConstraintRequest {
  1: required string dbname,
  2: required string tablename,
  3: required string constraintname,
  4: optional string catName,
}

// ------------------------------------------------------------
// Tables
// ------------------------------------------------------------

// What a materialized view was built from.
struct CreationMetadata {
  1: required string catName,
  2: required string dbName,
  3: required string tblName,
  4: required set<string> tablesUsed,
  5: optional string validTxnList,
  6: optional i64 materializationTime,
  7: optional list<SourceTable> sourceTables,
}

// createTime and lastAccessTime in seconds.
struct Table {
  1: string tableName,
  2: string dbName,
  3: string owner,
  4: i32 createTime,
  5: i32 lastAccessTime,
  6: i32 retention,
  7: StorageDescriptor sd,
  8: list<FieldSchema> partitionKeys,
  9: map<string, string> parameters,
  10: string viewOriginalText,
  11: string viewExpandedText,
  12: string tableType,
  13: optional PrincipalPrivilegeSet privileges,
  14: optional bool temporary = false,
  15: optional bool rewriteEnabled,
  16: optional CreationMetadata creationMetadata,
  17: optional string catName,
  18: optional PrincipalType ownerType = PrincipalType.USER,
  19: optional i64 writeId,
  20: optional bool isStatsCompliant,
  21: optional ColumnStatistics_v4 colStats,
  22: optional byte accessType,
  23: optional list<string> requiredReadCapabilities,
  24: optional list<string> requiredWriteCapabilities,
  25: optional i64 id,
  26: optional FileMetadata fileMetadata,
  27: optional ObjectDictionary dictionary,
  28: optional i64 txnId,
}

struct SourceTable {
  1: required Table table,
  2: required i64 insertedCount,
  3: required i64 updatedCount,
  4: required i64 deletedCount,
}

// Both fields are always set in answers.
struct Materialization {
  1: required bool sourceTablesUpdateDeleteModified,
  2: optional bool sourceTablesCompacted,
}

struct TableMeta {
  1: required string dbName,
  2: required string tableName,
  3: required string tableType,
  4: optional string comments,
  5: optional string catName,
  6: optional string ownerName,
  7: optional PrincipalType ownerType,
}

// Id 5 was never used.
struct GetTableRequest {
  1: required string dbName,
  2: required string tblName,
  3: optional ClientCapabilities capabilities,
  4: optional string catName,
  6: optional string validWriteIdList,
  7: optional bool getColumnStats,
  8: optional list<string> processorCapabilities,
  9: optional string processorIdentifier,
  10: optional string engine,
  11: optional i64 id,
}

struct GetTableResult {
  1: required Table table,
  2: optional bool isStatsCompliant,
}

struct GetTablesRequest {
  1: required string dbName,
  2: optional list<string> tblNames,
  3: optional ClientCapabilities capabilities,
  4: optional string catName,
  5: optional list<string> processorCapabilities,
  6: optional string processorIdentifier,
  7: optional GetProjectionsSpec projectionSpec,
  8: optional string tablesPattern,
}

struct GetTablesResult {
  1: required list<Table> tables,
}

enum GetTablesExtRequestFields {
  ACCESS_TYPE = 1,
  PROCESSOR_CAPABILITIES = 2,
  ALL = 2147483647,
}

// requestedFields is a sum of GetTablesExtRequestFields.
struct GetTablesExtRequest {
  1: required string catalog,
  2: required string database,
  3: required string tableNamePattern,
  4: required i32 requestedFields,
  5: optional i32 limit,
  6: optional list<string> processorCapabilities,
  7: optional string processorIdentifier,
}

struct ExtendedTableInfo {
  1: required string tblName,
  2: optional i32 accessType,
  3: optional list<string> requiredReadCapabilities,
  4: optional list<string> requiredWriteCapabilities,
}

struct CreateTableRequest {
  1: required Table table,
  2: optional EnvironmentContext envContext,
  3: optional list<SQLPrimaryKey> primaryKeys,
  4: optional list<SQLForeignKey> foreignKeys,
  5: optional list<SQLUniqueConstraint> uniqueConstraints,
  6: optional list<SQLNotNullConstraint> notNullConstraints,
  7: optional list<SQLDefaultConstraint> defaultConstraints,
  8: optional list<SQLCheckConstraint> checkConstraints,
  9: optional list<string> processorCapabilities,
  10: optional string processorIdentifier,
}

struct AlterTableRequest {
  1: optional string catName,
  2: required string dbName,
  3: required string tableName,
  4: required Table table,
  5: optional EnvironmentContext environmentContext,
  6: optional i64 writeId,
  7: optional string validWriteIdList,
  8: optional list<string> processorCapabilities,
  9: optional string processorIdentifier,
  10: optional string expectedParameterKey,
  11: optional string expectedParameterValue,
}

struct AlterTableResponse {}

struct DropTableRequest {
  1: optional string catalogName,
  2: required string dbName,
  3: required string tableName,
  4: optional bool deleteData,
  5: optional EnvironmentContext envContext,
  6: optional bool dropPartitions,
  7: optional string id,
  8: optional bool asyncDrop,
  9: optional bool cancel,
}

struct TruncateTableRequest {
  1: required string dbName,
  2: required string tableName,
  3: optional list<string> partNames,
  4: optional i64 writeId,
  5: optional string validWriteIdList,
  6: optional EnvironmentContext environmentContext,
}

struct TruncateTableResponse {}

// ------------------------------------------------------------
// Partitions
// ------------------------------------------------------------

// `values` in the order of the partition keys. Times in seconds.
struct Partition {
  1: list<string> values,
  2: string dbName,
  3: string tableName,
  4: i32 createTime,
  5: i32 lastAccessTime,
  6: StorageDescriptor sd,
  7: map<string, string> parameters,
  8: optional PrincipalPrivilegeSet privileges,
  9: optional string catName,
  10: optional i64 writeId,
  11: optional bool isStatsCompliant,
  12: optional ColumnStatistics_v4 colStats,
  13: optional FileMetadata fileMetadata,
}

// A partition under the storage descriptor it shares; relativePath is below the shared location.
struct PartitionWithoutSD {
  1: list<string> values,
  2: i32 createTime,
  3: i32 lastAccessTime,
  4: string relativePath,
  5: map<string, string> parameters,
  6: optional PrincipalPrivilegeSet privileges,
}

struct PartitionSpecWithSharedSD {
  1: list<PartitionWithoutSD> partitions,
  2: StorageDescriptor sd,
}

struct PartitionListComposingSpec {
  1: list<Partition> partitions,
}

// Partitions of one table, under one shared descriptor or listed whole; rootPath is the common location.
struct PartitionSpec {
  1: string dbName,
  2: string tableName,
  3: string rootPath,
  4: optional PartitionSpecWithSharedSD sharedSDPartitionSpec,
  5: optional PartitionListComposingSpec partitionList,
  6: optional string catName,
  7: optional i64 writeId,
  8: optional bool isStatsCompliant,
}

struct AddPartitionsRequest {
  1: required string dbName,
  2: required string tblName,
  3: required list<Partition> parts,
  4: required bool ifNotExists,
  5: optional bool needResult = true,
  6: optional string catName,
  7: optional string validWriteIdList,
  8: optional bool skipColumnSchemaForPartition,
  9: optional list<FieldSchema> partitionColSchema,
  10: optional EnvironmentContext environmentContext,
}

struct AddPartitionsResult {
  1: optional list<Partition> partitions,
  2: optional bool isStatsCompliant,
  3: optional list<FieldSchema> partitionColSchema,
}

struct AppendPartitionsRequest {
  1: optional string catalogName,
  2: required string dbName,
  3: required string tableName,
  4: optional string name,
  5: optional list<string> partVals,
  6: optional EnvironmentContext environmentContext,
}

struct DropPartitionRequest {
  1: optional string catName,
  2: required string dbName,
  3: required string tblName,
  4: optional string partName,
  5: optional list<string> partVals,
  6: optional bool deleteData,
  7: optional EnvironmentContext environmentContext,
}

struct DropPartitionsExpr {
  1: required binary expr,
  2: optional i32 partArchiveLevel,
}

union RequestPartsSpec {
  1: list<string> names,
  2: list<DropPartitionsExpr> exprs,
}

struct DropPartitionsRequest {
  1: required string dbName,
  2: required string tblName,
  3: required RequestPartsSpec parts,
  4: optional bool deleteData,
  5: optional bool ifExists = true,  // 2.3 leaves the check to its client
  6: optional bool ignoreProtection,
  7: optional EnvironmentContext environmentContext,
  8: optional bool needResult = true,
  9: optional string catName,
  10: optional bool skipColumnSchemaForPartition,
}

struct DropPartitionsResult {
  1: optional list<Partition> partitions,
}

struct GetPartitionRequest {
  1: optional string catName,
  2: required string dbName,
  3: required string tblName,
  4: required list<string> partVals,
  5: optional string validWriteIdList,
  6: optional i64 id,
}

struct GetPartitionResponse {
  1: required Partition partition,
}

struct PartitionsRequest {
  1: optional string catName,
  2: required string dbName,
  3: required string tblName,
  4: optional i16 maxParts = -1,
  5: optional string validWriteIdList,
  6: optional i64 id,
  7: optional bool skipColumnSchemaForPartition,
  8: optional string includeParamKeyPattern,
  9: optional string excludeParamKeyPattern,
}

struct PartitionsResponse {
  1: required list<Partition> partitions,
}

struct PartitionsByExprRequest {
  1: required string dbName,
  2: required string tblName,
  3: required binary expr,
  4: optional string defaultPartitionName,
  5: optional i16 maxParts = -1,
  6: optional string catName,
  7: optional string order,
  8: optional string validWriteIdList,
  9: optional i64 id,
  10: optional bool skipColumnSchemaForPartition,
  11: optional string includeParamKeyPattern,
  12: optional string excludeParamKeyPattern,
}

struct PartitionsByExprResult {
  1: required list<Partition> partitions,
  2: required bool hasUnknownPartitions,  // some of them may not match
}

struct PartitionsSpecByExprResult {
  1: required list<PartitionSpec> partitionsSpec,
  2: required bool hasUnknownPartitions,
}

struct GetPartitionsByNamesRequest {
  1: required string db_name,
  2: required string tbl_name,
  3: optional list<string> names,
  4: optional bool get_col_stats,
  5: optional list<string> processorCapabilities,
  6: optional string processorIdentifier,
  7: optional string engine,
  8: optional string validWriteIdList,
  9: optional bool getFileMetadata,
  10: optional i64 id,
  11: optional bool skipColumnSchemaForPartition,
  12: optional string includeParamKeyPattern,
  13: optional string excludeParamKeyPattern,
}

struct GetPartitionsByNamesResult {
  1: required list<Partition> partitions,
  2: optional ObjectDictionary dictionary,
}

struct GetPartitionsByFilterRequest {
  1: optional string catName,
  2: string dbName,
  3: string tblName,
  4: string filter,
  5: optional i16 maxParts = -1,
  6: optional bool skipColumnSchemaForPartition,
  7: optional string includeParamKeyPattern,
  8: optional string excludeParamKeyPattern,
}

struct GetPartitionNamesPsRequest {
  1: optional string catName,
  2: required string dbName,
  3: required string tblName,
  4: optional list<string> partValues,
  5: optional i16 maxParts = -1,
  6: optional string validWriteIdList,
  7: optional i64 id,
}

struct GetPartitionNamesPsResponse {
  1: required list<string> names,
}

struct GetPartitionsPsWithAuthRequest {
  1: optional string catName,
  2: required string dbName,
  3: required string tblName,
  4: optional list<string> partVals,
  5: optional i16 maxParts = -1,
  6: optional string userName,
  7: optional list<string> groupNames,
  8: optional string validWriteIdList,
  9: optional i64 id,
  10: optional bool skipColumnSchemaForPartition,
  11: optional string includeParamKeyPattern,
  12: optional string excludeParamKeyPattern,
  13: optional list<string> partNames,
}

struct GetPartitionsPsWithAuthResponse {
  1: required list<Partition> partitions,
}

enum PartitionFilterMode {
  BY_NAMES = 0,
  BY_VALUES = 1,
  BY_EXPR = 2,
}

// `filters` are names, values or expressions as filterMode says. The ids start at 7.
struct GetPartitionsFilterSpec {
  7: optional PartitionFilterMode filterMode,
  8: optional list<string> filters,
}

struct GetPartitionsRequest {
  1: optional string catName,
  2: string dbName,
  3: string tblName,
  4: optional bool withAuth,
  5: optional string user,
  6: optional list<string> groupNames,
  7: GetProjectionsSpec projectionSpec,
  8: GetPartitionsFilterSpec filterSpec,
  9: optional list<string> processorCapabilities,
  10: optional string processorIdentifier,
  11: optional string validWriteIdList,
}

struct GetPartitionsResponse {
  1: list<PartitionSpec> partitionSpec,
}

struct PartitionValuesRequest {
  1: required string dbName,
  2: required string tblName,
  3: required list<FieldSchema> partitionKeys,
  4: optional bool applyDistinct = true,
  5: optional string filter,
  6: optional list<FieldSchema> partitionOrder,
  7: optional bool ascending = true,
  8: optional i64 maxParts,
  9: optional string catName,
  10: optional string validWriteIdList,
}

struct PartitionValuesRow {
  1: required list<string> row,
}

struct PartitionValuesResponse {
  1: required list<PartitionValuesRow> partitionValues,
}

struct AlterPartitionsRequest {
  1: optional string catName,
  2: required string dbName,
  3: required string tableName,
  4: required list<Partition> partitions,
  5: optional EnvironmentContext environmentContext,
  6: optional i64 writeId,
  7: optional string validWriteIdList,
  8: optional bool skipColumnSchemaForPartition,
  9: optional list<FieldSchema> partitionColSchema,
}

struct AlterPartitionsResponse {}

struct RenamePartitionRequest {
  1: optional string catName,
  2: required string dbName,
  3: required string tableName,
  4: required list<string> partVals,
  5: required Partition newPart,
  6: optional string validWriteIdList,
  7: optional i64 txnId,
  8: optional bool clonePart,
}

struct RenamePartitionResponse {}

enum PartitionEventType {
  LOAD_DONE = 1,
}

// ------------------------------------------------------------
// Indexes
// ------------------------------------------------------------
// Gone from 3.0 on, kept for 2.3.

struct Index {
  1: string indexName,
  2: string indexHandlerClass,
  3: string dbName,
  4: string origTableName,
  5: i32 createTime,
  6: i32 lastAccessTime,
  7: string indexTableName,
  8: StorageDescriptor sd,
  9: map<string, string> parameters,
  10: bool deferredRebuild,
}

// ------------------------------------------------------------
// Functions
// ------------------------------------------------------------

enum FunctionType {
  JAVA = 1,
}

enum ResourceType {
  JAR = 1,
  FILE = 2,
  ARCHIVE = 3,
}

struct ResourceUri {
  1: ResourceType resourceType,
  2: string uri,
}

struct Function {
  1: string functionName,
  2: string dbName,
  3: string className,
  4: string ownerName,
  5: PrincipalType ownerType,
  6: i32 createTime,
  7: FunctionType functionType,
  8: list<ResourceUri> resourceUris,
  9: optional string catName,
}

struct GetAllFunctionsResponse {
  1: optional list<Function> functions,
}

struct GetFunctionsRequest {
  1: required string dbName,
  2: optional string catalogName,
  3: optional string pattern,
  4: optional bool returnNames = true,
}

struct GetFunctionsResponse {
  1: optional list<string> function_names,
  2: optional list<Function> functions,
}

// ------------------------------------------------------------
// Transactions and write ids
// ------------------------------------------------------------

enum TxnState {
  COMMITTED = 1,
  ABORTED = 2,
  OPEN = 3,
}

enum TxnType {
  DEFAULT = 0,
  REPL_CREATED = 1,
  READ_ONLY = 2,
  COMPACTION = 3,
  MATER_VIEW_REBUILD = 4,
  SOFT_DELETE = 5,
  REBALANCE_COMPACTION = 6,
}

// UNSET tells a caller that does not know the field from one that left it null.
enum DataOperationType {
  SELECT = 1,
  INSERT = 2,
  UPDATE = 3,
  DELETE = 4,
  UNSET = 5,
  NO_TXN = 6,  // drop table, insert overwrite and the like
}

// Times in milliseconds.
struct TxnInfo {
  1: required i64 id,
  2: required TxnState state,
  3: required string user,  // shown to administrators
  4: required string hostname,
  5: optional string agentInfo = "Unknown",
  6: optional i32 heartbeatCount = 0,
  7: optional string metaInfo,
  8: optional i64 startedTime,
  9: optional i64 lastHeartbeatTime,
}

struct BasicTxnInfo {
  1: required bool isnull,
  2: optional i64 time,
  3: optional i64 txnid,
  4: optional string dbname,
  5: optional string tablename,
  6: optional string partitionname,
}

struct GetOpenTxnsRequest {
  1: optional list<TxnType> excludeTxnTypes,
}

// open_txns also holds the aborted ones; `min_open_txn` is the lowest open one.
struct GetOpenTxnsResponse {
  1: required i64 txn_high_water_mark,
  2: required set<i64> open_txns,
  3: optional i64 min_open_txn,
}

// A list in order, and one bit for each that says whether it is aborted.
struct GetOpenTxnsResponse_v4 {
  1: required i64 txn_high_water_mark,
  2: required list<i64> open_txns,
  3: optional i64 min_open_txn,
  4: required binary abortedBits,
}

struct GetOpenTxnsInfoResponse {
  1: required i64 txn_high_water_mark,
  2: required list<TxnInfo> open_txns,
}

struct OpenTxnRequest {
  1: required i32 num_txns,
  2: required string user,
  3: required string hostname,
  4: optional string agentInfo = "Unknown",
  5: optional string replPolicy,
  6: optional list<i64> replSrcTxnIds,
  7: optional TxnType txn_type = TxnType.DEFAULT,
}

struct OpenTxnsResponse {
  1: required list<i64> txn_ids,
}

struct AbortTxnRequest {
  1: required i64 txnid,
  2: optional string replPolicy,
  3: optional TxnType txn_type,
  4: optional i64 errorCode,
}

struct AbortTxnsRequest {
  1: required list<i64> txn_ids,
  2: optional i64 errorCode,
}

struct WriteEventInfo {
  1: required i64 writeId,
  2: required string database,
  3: required string table,
  4: required string files,
  5: optional string partition,
  6: optional string tableObj,
  7: optional string partitionObj,
}

struct ReplLastIdInfo {
  1: required string database,
  2: required i64 lastReplId,
  3: optional string table,
  4: optional string catalog,
  5: optional list<string> partitionList,
}

struct CommitTxnKeyValue {
  1: required i64 tableId,
  2: required string key,
  3: required string value,
}

struct CommitTxnRequest {
  1: required i64 txnid,
  2: optional string replPolicy,
  3: optional list<WriteEventInfo> writeEventInfos,
  4: optional ReplLastIdInfo replLastIdInfo,
  5: optional CommitTxnKeyValue keyValue,
  6: optional bool exclWriteEnabled = true,
  7: optional TxnType txn_type,
  // A design for caches named it without ever giving it a number, so this one is far from those that Hive gives out.
  100: optional bool writemanaged,
}

struct GetAllWriteEventInfoRequest {
  1: required i64 txnId,
  2: optional string dbName,
  3: optional string tableName,
}

struct ReplTblWriteIdStateRequest {
  1: required string validWriteIdlist,
  2: required string user,
  3: required string hostName,
  4: required string dbName,
  5: required string tableName,
  6: optional list<string> partNames,
}

// validTxnList is required in 3.1.
struct GetValidWriteIdsRequest {
  1: required list<string> fullTableNames,
  2: optional string validTxnList,
  3: optional i64 writeId,
  // Of hms-gateway: whether the answer says the tables' ids.
  100: optional bool withTableIds,
}

// fullTableName is `database.table`; bit n of abortedBits belongs to invalidWriteIds[n].
struct TableValidWriteIds {
  1: required string fullTableName,
  2: required i64 writeIdHighWaterMark,
  3: required list<i64> invalidWriteIds,
  4: optional i64 minOpenWriteId,
  5: required binary abortedBits,
  // Of hms-gateway: a table that is made again under the name has another one.
  100: optional i64 tableId,
}

struct GetValidWriteIdsResponse {
  1: required list<TableValidWriteIds> tblValidWriteIds,
}

struct TxnToWriteId {
  1: required i64 txnId,
  2: required i64 writeId,
}

struct AllocateTableWriteIdsRequest {
  1: required string dbName,
  2: required string tableName,
  3: optional list<i64> txnIds,
  4: optional string replPolicy,
  5: optional list<TxnToWriteId> srcTxnToWriteIdList,
  6: optional bool reallocate = false,
}

struct AllocateTableWriteIdsResponse {
  1: required list<TxnToWriteId> txnToWriteIds,
}

struct MaxAllocatedTableWriteIdRequest {
  1: required string dbName,
  2: required string tableName,
}

struct MaxAllocatedTableWriteIdResponse {
  1: required i64 maxWriteId,
}

struct SeedTableWriteIdsRequest {
  1: required string dbName,
  2: required string tableName,
  3: required i64 seedWriteId,
}

struct SeedTxnIdRequest {
  1: required i64 seedTxnId,
}

struct HeartbeatRequest {
  1: optional i64 lockid,
  2: optional i64 txnid,
}

struct HeartbeatTxnRangeRequest {
  1: required i64 min,
  2: required i64 max,
}

struct HeartbeatTxnRangeResponse {
  1: required set<i64> aborted,
  2: required set<i64> nosuch,
}

struct AddDynamicPartitions {
  1: required i64 txnid,
  2: required string dbname,
  3: required string tablename,
  4: required list<string> partitionnames,
  5: optional DataOperationType operationType = DataOperationType.UNSET,
}

// writeid moved the others by one; the type of field 2 tells the shapes apart.
struct AddDynamicPartitions_v4 {
  1: required i64 txnid,
  2: required i64 writeid,
  3: required string dbname,
  4: required string tablename,
  5: required list<string> partitionnames,
  6: optional DataOperationType operationType = DataOperationType.UNSET,
}

// ------------------------------------------------------------
// Locks
// ------------------------------------------------------------

enum LockLevel {
  DB = 1,
  TABLE = 2,
  PARTITION = 3,
}

// NOT_ACQUIRED never goes to a client older than 4.
enum LockState {
  ACQUIRED = 1,
  WAITING = 2,  // ask again with check_lock
  ABORT = 3,  // timed out or its transaction was aborted
  NOT_ACQUIRED = 4,
}

// EXCL_WRITE never goes to a client older than 4.
enum LockType {
  SHARED_READ = 1,
  SHARED_WRITE = 2,
  EXCLUSIVE = 3,
  EXCL_WRITE = 4,
}

// isAcid is called isTransactional from 3.1 on.
struct LockComponent {
  1: required LockType type,
  2: required LockLevel level,
  3: required string dbname,
  4: optional string tablename,
  5: optional string partitionname,
  6: optional DataOperationType operationType = DataOperationType.UNSET,
  7: optional bool isAcid = false,
  8: optional bool isDynamicPartitionWrite = false,
}

struct LockRequest {
  1: required list<LockComponent> component,
  2: optional i64 txnid,
  3: required string user,
  4: required string hostname,
  5: optional string agentInfo = "Unknown",
  6: optional bool zeroWaitReadEnabled = false,
  7: optional bool exclusiveCTAS = false,
  8: optional bool locklessReadsEnabled = false,
}

struct LockResponse {
  1: required i64 lockid,
  2: required LockState state,
  3: optional string errorMessage,
}

// Only lockid counts.
struct CheckLockRequest {
  1: required i64 lockid,
  2: optional i64 txnid,
  3: optional i64 elapsed_ms,
}

struct UnlockRequest {
  1: required i64 lockid,
}

struct ShowLocksRequest {
  1: optional string dbname,
  2: optional string tablename,
  3: optional string partname,
  4: optional bool isExtended = false,
  5: optional i64 txnid,
}

// Times in milliseconds; lockIdInternal numbers the components of a lock.
struct ShowLocksResponseElement {
  1: required i64 lockid,
  2: required string dbname,
  3: optional string tablename,
  4: optional string partname,
  5: required LockState state,
  6: required LockType type,
  7: optional i64 txnid,
  8: required i64 lastheartbeat,
  9: optional i64 acquiredat,
  10: required string user,
  11: required string hostname,
  12: optional i32 heartbeatCount = 0,
  13: optional string agentInfo,
  14: optional i64 blockedByExtId,
  15: optional i64 blockedByIntId,
  16: optional i64 lockIdInternal,
}

struct ShowLocksResponse {
  1: list<ShowLocksResponseElement> locks,
}

// ------------------------------------------------------------
// Compaction
// ------------------------------------------------------------

enum CompactionType {
  MINOR = 1,
  MAJOR = 2,
  REBALANCE = 3,
  ABORT_TXN_CLEANUP = 4,
}

struct CompactionRequest {
  1: required string dbname,
  2: required string tablename,
  3: optional string partitionname,
  4: required CompactionType type,
  5: optional string runas,
  6: optional map<string, string> properties,
  7: optional string initiatorId,
  8: optional string initiatorVersion,
  9: optional string poolName,
  10: optional i32 numberOfBuckets,
  11: optional string orderByClause,
}

struct CompactionResponse {
  1: required i64 id,
  2: required string state,
  3: required bool accepted,
  4: optional string errormessage,
}

// A queue entry as workers see it. Times in milliseconds.
struct CompactionInfoStruct {
  1: required i64 id,
  2: required string dbname,
  3: required string tablename,
  4: optional string partitionname,
  5: required CompactionType type,
  6: optional string runas,
  7: optional string properties,
  8: optional bool toomanyaborts,
  9: optional string state,
  10: optional string workerId,
  11: optional i64 start,
  12: optional i64 highestWriteId,
  13: optional string errorMessage,
  14: optional bool hasoldabort,
  15: optional i64 enqueueTime,
  16: optional i64 retryRetention,
  17: optional string poolname,
  18: optional i32 numberOfBuckets,
  19: optional string orderByClause,
}

struct OptionalCompactionInfoStruct {
  1: optional CompactionInfoStruct ci,
}

struct FindNextCompactRequest {
  1: optional string workerId,
  2: optional string workerVersion,
  3: optional string poolName,
}

struct ShowCompactRequest {
  1: optional i64 id,
  2: optional string poolName,
  3: optional string dbName,
  4: optional string tbName,
  5: optional string partName,
  6: optional CompactionType type,
  7: optional string state,
  8: optional i64 limit,
  9: optional string order,
}

// Times in milliseconds. The misspelt names are those of the wire.
struct ShowCompactResponseElement {
  1: required string dbname,
  2: required string tablename,
  3: optional string partitionname,
  4: required CompactionType type,
  5: required string state,
  6: optional string workerid,
  7: optional i64 start,
  8: optional string runAs,
  9: optional i64 hightestTxnId,
  10: optional string metaInfo,
  11: optional i64 endTime,
  12: optional string hadoopJobId = "None",
  13: optional i64 id,
  14: optional string errorMessage,
  15: optional i64 enqueueTime,
  16: optional string workerVersion,
  17: optional string initiatorId,
  18: optional string initiatorVersion,
  19: optional i64 cleanerStart,
  20: optional string poolName,
  21: optional i64 nextTxnId,
  22: optional i64 txnId,
  23: optional i64 commitTime,
  24: optional i64 hightestWriteId,
}

struct ShowCompactResponse {
  1: required list<ShowCompactResponseElement> compacts,
}

struct AbortCompactionRequest {
  1: required list<i64> compactionIds,
  2: optional string type,
  3: optional string poolName,
}

struct AbortCompactionResponseElement {
  1: required i64 compactionId,
  2: optional string status,
  3: optional string message,
}

struct AbortCompactResponse {
  1: required map<i64, AbortCompactionResponseElement> abortedcompacts,
}

struct GetLatestCommittedCompactionInfoRequest {
  1: required string dbname,
  2: required string tablename,
  3: optional list<string> partitionnames,
  4: optional i64 lastCompactionId,
}

struct GetLatestCommittedCompactionInfoResponse {
  1: required list<CompactionInfoStruct> compactions,
}

// ------------------------------------------------------------
// Notifications
// ------------------------------------------------------------

enum EventRequestType {
  INSERT = 1,
  UPDATE = 2,
  DELETE = 3,
}

// Events after lastEvent; maxEvents unset, 0 or below means all.
struct NotificationEventRequest {
  1: required i64 lastEvent,
  2: optional i32 maxEvents,
  3: optional list<string> eventTypeSkipList,
  4: optional string catName,
  5: optional string dbName,
  6: optional list<string> tableNames,
  7: optional list<string> eventTypeList,
  // Of hms-gateway: whether the events come with empty messages, for a list of which few are opened.
  100: optional bool withoutMessages,
}

// eventTime in seconds; eventIds have no gaps.
struct NotificationEvent {
  1: required i64 eventId,
  2: required i32 eventTime,
  3: required string eventType,
  4: optional string dbName,
  5: optional string tableName,
  6: required string message,
  7: optional string messageFormat,
  8: optional string catName,
}

struct NotificationEventResponse {
  1: required list<NotificationEvent> events,
}

struct CurrentNotificationEventId {
  1: required i64 eventId,
}

struct NotificationEventsCountRequest {
  1: required i64 fromEventId,
  2: required string dbName,
  3: optional string catName,
  4: optional i64 toEventId,
  5: optional i64 limit,
  6: optional list<string> tableNames,
}

struct NotificationEventsCountResponse {
  1: required i64 eventsCount,
}

// Hive has field 1 as required. Here it is not, since the newer shape, read as this one, comes without it.
struct InsertEventRequestData {
  1: optional list<string> filesAdded,
  2: optional list<string> filesAddedChecksum,
}

// `replace` moved the others by one. Read as the older shape, field 1 has the wrong type and is skipped, and the files
// are in field 2; that tells the shapes apart.
struct InsertEventRequestData_v4 {
  1: optional bool replace,
  2: required list<string> filesAdded,
  3: optional list<string> filesAddedChecksum,
  4: optional list<string> subDirectoryList,
  5: optional list<string> partitionVal,
}

// insertDatas is for several partitions at once, from 4 on.
union FireEventRequestData {
  1: InsertEventRequestData insertData,
  2: list<InsertEventRequestData_v4> insertDatas,
  3: bool refreshEvent,
}

struct FireEventRequest {
  1: required bool successful,
  2: required FireEventRequestData data,
  3: optional string dbName,
  4: optional string tableName,
  5: optional list<string> partitionVals,
  6: optional string catName,
  7: optional map<string, string> tblParams,
  8: optional list<list<string>> batchPartitionValsForRefresh,
}

union FireEventRequestData_v4 {
  1: InsertEventRequestData_v4 insertData,
  2: list<InsertEventRequestData_v4> insertDatas,
  3: bool refreshEvent,
}

struct FireEventRequest_v4 {
  1: required bool successful,
  2: required FireEventRequestData_v4 data,
  3: optional string dbName,
  4: optional string tableName,
  5: optional list<string> partitionVals,
  6: optional string catName,
  7: optional map<string, string> tblParams,
  8: optional list<list<string>> batchPartitionValsForRefresh,
}

struct FireEventResponse {
  1: list<i64> eventIds,
}

struct WriteNotificationLogRequest {
  1: required i64 txnId,
  2: required i64 writeId,
  3: required string db,
  4: required string table,
  5: required InsertEventRequestData_v4 fileInfo,
  6: optional list<string> partitionVals,
}

struct WriteNotificationLogResponse {}

struct WriteNotificationLogBatchRequest {
  1: required string catalog,
  2: required string db,
  3: required string table,
  4: required list<WriteNotificationLogRequest> requestList,
}

struct WriteNotificationLogBatchResponse {}

struct CmRecycleRequest {
  1: required string dataPath,
  2: required bool purge,
}

struct CmRecycleResponse {}

// ------------------------------------------------------------
// File metadata
// ------------------------------------------------------------

enum FileMetadataExprType {
  ORC_SARG = 1,
}

struct MetadataPpdResult {
  1: optional binary metadata,
  2: optional binary includeBitset,
}

struct GetFileMetadataByExprRequest {
  1: required list<i64> fileIds,
  2: required binary expr,
  3: optional bool doGetFooters,
  4: optional FileMetadataExprType type,
}

struct GetFileMetadataByExprResult {
  1: required map<i64, MetadataPpdResult> metadata,
  2: required bool isSupported,
}

struct GetFileMetadataRequest {
  1: required list<i64> fileIds,
}

struct GetFileMetadataResult {
  1: required map<i64, binary> metadata,
  2: required bool isSupported,
}

struct PutFileMetadataRequest {
  1: required list<i64> fileIds,
  2: required list<binary> metadata,
  3: optional FileMetadataExprType type,
}

struct PutFileMetadataResult {}

struct ClearFileMetadataRequest {
  1: required list<i64> fileIds,
}

struct ClearFileMetadataResult {}

struct CacheFileMetadataRequest {
  1: required string dbName,
  2: required string tblName,
  3: optional string partName,
  4: optional bool isAllParts,
}

struct CacheFileMetadataResult {
  1: required bool isSupported,
}

// ------------------------------------------------------------
// Workload management (3.1 and later)
// ------------------------------------------------------------
// Resource plans share a cluster out between queries. `ns` is the namespace of a plan, "default" when unset.

enum WMResourcePlanStatus {
  ACTIVE = 1,
  ENABLED = 2,
  DISABLED = 3,
}

enum WMPoolSchedulingPolicy {
  FAIR = 1,
  FIFO = 2,
}

struct WMResourcePlan {
  1: required string name,
  2: optional WMResourcePlanStatus status,
  3: optional i32 queryParallelism,
  4: optional string defaultPoolPath,
  5: optional string ns,
}

// A change of a plan: what isSet… marks is changed, to nothing when the value is unset. Id 3 was never used.
struct WMNullableResourcePlan {
  1: optional string name,
  2: optional WMResourcePlanStatus status,
  4: optional i32 queryParallelism,
  5: optional bool isSetQueryParallelism,
  6: optional string defaultPoolPath,
  7: optional bool isSetDefaultPoolPath,
  8: optional string ns,
}

struct WMPool {
  1: required string resourcePlanName,
  2: required string poolPath,
  3: optional double allocFraction,
  4: optional i32 queryParallelism,
  5: optional string schedulingPolicy,
  6: optional string ns,
}

struct WMNullablePool {
  1: required string resourcePlanName,
  2: required string poolPath,
  3: optional double allocFraction,
  4: optional i32 queryParallelism,
  5: optional string schedulingPolicy,
  6: optional bool isSetSchedulingPolicy,
  7: optional string ns,
}

struct WMTrigger {
  1: required string resourcePlanName,
  2: required string triggerName,
  3: optional string triggerExpression,
  4: optional string actionExpression,
  5: optional bool isInUnmanaged,
  6: optional string ns,
}

struct WMMapping {
  1: required string resourcePlanName,
  2: required string entityType,
  3: required string entityName,
  4: optional string poolPath,
  5: optional i32 ordering,
  6: optional string ns,
}

struct WMPoolTrigger {
  1: required string pool,
  2: required string trigger,
  3: optional string ns,
}

struct WMFullResourcePlan {
  1: required WMResourcePlan plan,
  2: required list<WMPool> pools,
  3: optional list<WMMapping> mappings,
  4: optional list<WMTrigger> triggers,
  5: optional list<WMPoolTrigger> poolTriggers,
}

struct WMCreateResourcePlanRequest {
  1: optional WMResourcePlan resourcePlan,
  2: optional string copyFrom,
}

struct WMCreateResourcePlanResponse {
}

struct WMGetResourcePlanRequest {
  1: optional string resourcePlanName,
  2: optional string ns,
}

struct WMGetResourcePlanResponse {
  1: optional WMFullResourcePlan resourcePlan,
}

struct WMGetActiveResourcePlanRequest {
  1: optional string ns,
}

struct WMGetActiveResourcePlanResponse {
  1: optional WMFullResourcePlan resourcePlan,
}

struct WMGetAllResourcePlanRequest {
  1: optional string ns,
}

struct WMGetAllResourcePlanResponse {
  1: optional list<WMResourcePlan> resourcePlans,
}

struct WMAlterResourcePlanRequest {
  1: optional string resourcePlanName,
  2: optional WMNullableResourcePlan resourcePlan,
  3: optional bool isEnableAndActivate,
  4: optional bool isForceDeactivate,
  5: optional bool isReplace,
  6: optional string ns,
}

// The whole plan when the call has activated it.
struct WMAlterResourcePlanResponse {
  1: optional WMFullResourcePlan fullResourcePlan,
}

struct WMValidateResourcePlanRequest {
  1: optional string resourcePlanName,
  2: optional string ns,
}

struct WMValidateResourcePlanResponse {
  1: optional list<string> errors,
  2: optional list<string> warnings,
}

struct WMDropResourcePlanRequest {
  1: optional string resourcePlanName,
  2: optional string ns,
}

struct WMDropResourcePlanResponse {
}

struct WMCreateTriggerRequest {
  1: optional WMTrigger trigger,
}

struct WMCreateTriggerResponse {
}

struct WMAlterTriggerRequest {
  1: optional WMTrigger trigger,
}

struct WMAlterTriggerResponse {
}

struct WMDropTriggerRequest {
  1: optional string resourcePlanName,
  2: optional string triggerName,
  3: optional string ns,
}

struct WMDropTriggerResponse {
}

struct WMGetTriggersForResourePlanRequest {
  1: optional string resourcePlanName,
  2: optional string ns,
}

struct WMGetTriggersForResourePlanResponse {
  1: optional list<WMTrigger> triggers,
}

struct WMCreatePoolRequest {
  1: optional WMPool pool,
}

struct WMCreatePoolResponse {
}

// poolPath is the pool's present path; the one in the pool is its new one.
struct WMAlterPoolRequest {
  1: optional WMNullablePool pool,
  2: optional string poolPath,
}

struct WMAlterPoolResponse {
}

struct WMDropPoolRequest {
  1: optional string resourcePlanName,
  2: optional string poolPath,
  3: optional string ns,
}

struct WMDropPoolResponse {
}

struct WMCreateOrUpdateMappingRequest {
  1: optional WMMapping mapping,
  2: optional bool update,
}

struct WMCreateOrUpdateMappingResponse {
}

struct WMDropMappingRequest {
  1: optional WMMapping mapping,
}

struct WMDropMappingResponse {
}

struct WMCreateOrDropTriggerToPoolMappingRequest {
  1: optional string resourcePlanName,
  2: optional string triggerName,
  3: optional string poolPath,
  4: optional bool drop,
  5: optional string ns,
}

struct WMCreateOrDropTriggerToPoolMappingResponse {
}

// ------------------------------------------------------------
// Schema registry (3.1 and later)
// ------------------------------------------------------------

enum SchemaType {
  HIVE = 1,
  AVRO = 2,
}

enum SchemaCompatibility {
  NONE = 1,
  BACKWARD = 2,
  FORWARD = 3,
  BOTH = 4,
}

enum SchemaValidation {
  LATEST = 1,
  ALL = 2,
}

struct ISchema {
  1: SchemaType schemaType,
  2: string name,
  3: string catName,
  4: string dbName,
  5: SchemaCompatibility compatibility,
  6: SchemaValidation validationLevel,
  7: bool canEvolve,
  8: optional string schemaGroup,
  9: optional string description,
}

struct ISchemaName {
  1: string catName,
  2: string dbName,
  3: string schemaName,
}

// Id 2 was never used.
struct AlterISchemaRequest {
  1: ISchemaName name,
  3: ISchema newSchema,
}

enum SchemaVersionState {
  INITIATED = 1,
  START_REVIEW = 2,
  CHANGES_REQUIRED = 3,
  REVIEWED = 4,
  ENABLED = 5,
  DISABLED = 6,
  ARCHIVED = 7,
  DELETED = 8,
}

struct SchemaVersion {
  1: ISchemaName schema,
  2: i32 version,
  3: i64 createdAt,
  4: list<FieldSchema> cols,
  5: optional SchemaVersionState state,
  6: optional string description,
  7: optional string schemaText,
  8: optional string fingerprint,
  9: optional string name,
  10: optional SerDeInfo serDe,
}

struct SchemaVersionDescriptor {
  1: ISchemaName schema,
  2: i32 version,
}

// All that are set must hold for one column; its namespace is kept in its comment.
struct FindSchemasByColsRqst {
  1: optional string colName,
  2: optional string colNamespace,
  3: optional string type,
}

struct FindSchemasByColsResp {
  1: list<SchemaVersionDescriptor> schemaVersions,
}

struct MapSchemaVersionToSerdeRequest {
  1: SchemaVersionDescriptor schemaVersion,
  2: string serdeName,
}

struct SetSchemaVersionStateRequest {
  1: SchemaVersionDescriptor schemaVersion,
  2: SchemaVersionState state,
}

// ------------------------------------------------------------
// Notes that query engines keep in the metastore
// ------------------------------------------------------------

// What an engine learned while running queries, for its optimizer; opaque here. createTime is set by the server.
struct RuntimeStat {
  1: optional i32 createTime,
  2: required i32 weight,
  3: required binary payload,
}

struct GetRuntimeStatsRequest {
  1: required i32 maxWeight,
  2: required i32 maxCreateTime,
}

// The progress of replication policies (4.x); metadata and progress are texts of the engine.
struct ReplicationMetrics {
  1: required i64 scheduledExecutionId,
  2: required string policy,
  3: required i64 dumpExecutionId,
  4: optional string metadata,
  5: optional string progress,
  6: optional string messageFormat,
}

struct ReplicationMetricList {
  1: required list<ReplicationMetrics> replicationMetricList,
}

struct GetReplicationMetricsRequest {
  1: optional i64 scheduledExecutionId,
  2: optional string policy,
  3: optional i64 dumpExecutionId,
}

// Queries that engines run by a schedule (4.x). The schedule is a cron expression of six or seven fields; times in
// seconds. Id 3 was never used.
struct ScheduledQueryKey {
  1: required string scheduleName,
  2: required string clusterNamespace,
}

struct ScheduledQuery {
  1: required ScheduledQueryKey scheduleKey,
  2: optional bool enabled,
  4: optional string schedule,
  5: optional string user,
  6: optional string query,
  7: optional i32 nextExecution,
}

struct ScheduledQueryPollRequest {
  1: required string clusterNamespace,
}

// Nothing set when nothing is due.
struct ScheduledQueryPollResponse {
  1: optional ScheduledQueryKey scheduleKey,
  2: optional i64 executionId,
  3: optional string query,
  4: optional string user,
}

enum ScheduledQueryMaintenanceRequestType {
  CREATE = 1,
  ALTER = 2,
  DROP = 3,
}

struct ScheduledQueryMaintenanceRequest {
  1: required ScheduledQueryMaintenanceRequestType type,
  2: required ScheduledQuery scheduledQuery,
}

enum QueryState {
  INITED = 0,
  EXECUTING = 1,
  FAILED = 2,
  FINISHED = 3,
  TIMED_OUT = 4,
  AUTO_DISABLED = 5,
}

struct ScheduledQueryProgressInfo {
  1: required i64 scheduledExecutionId,
  2: required QueryState state,
  3: required string executorQueryId,
  4: optional string errorMessage,
}

// The metastore. A method without `throws` can only fail with an application exception (semantics §0.1).
service ThriftHiveMetastore extends fb303.FacebookService {
  // Settings of the service.
  string getMetaConf(1: string key) throws (1: MetaException o1),
  void setMetaConf(1: string key, 2: string value) throws (1: MetaException o1),
  string get_config_value(1: string name, 2: string defaultValue) throws (1: ConfigValSecurityException o1),
  string get_metastore_db_uuid() throws (1: MetaException o1),
  PropertyGetResponse get_properties(1: PropertyGetRequest req)
      throws (1: MetaException e1, 2: NoSuchObjectException e2),
  bool set_properties(1: PropertySetRequest req) throws (1: MetaException e1, 2: NoSuchObjectException e2),
  void flushCache(),

  // Catalogs (3.1 and later).
  void create_catalog(1: CreateCatalogRequest catalog)
      throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3),
  void alter_catalog(1: AlterCatalogRequest rqst)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3),
  GetCatalogResponse get_catalog(1: GetCatalogRequest catName)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  GetCatalogsResponse get_catalogs() throws (1: MetaException o1),
  void drop_catalog(1: DropCatalogRequest catName)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3),

  // Databases.
  void create_database(1: Database database)
      throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3),
  void create_database_req(1: CreateDatabaseRequest createDatabaseRequest)
      throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3),
  Database get_database(1: string name) throws (1: NoSuchObjectException o1, 2: MetaException o2),
  Database get_database_req(1: GetDatabaseRequest request) throws (1: NoSuchObjectException o1, 2: MetaException o2),
  void drop_database(1: string name, 2: bool deleteData, 3: bool cascade)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3),
  // Declared void in 4.0; the newest clients read a response, and void readers skip it.
  AsyncOperationResp drop_database_req(1: DropDatabaseRequest req)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3),
  list<string> get_databases(1: string pattern) throws (1: MetaException o1),
  GetDatabaseObjectsResponse get_databases_req(1: GetDatabaseObjectsRequest request) throws (1: MetaException o1),
  list<string> get_all_databases() throws (1: MetaException o1),
  void alter_database(1: string dbname, 2: Database db) throws (1: MetaException o1, 2: NoSuchObjectException o2),
  void alter_database_req(1: AlterDatabaseRequest alterDbReq) throws (1: MetaException o1, 2: NoSuchObjectException o2),

  // Types.
  Type get_type(1: string name) throws (1: MetaException o1, 2: NoSuchObjectException o2),
  bool create_type(1: Type type)
      throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3),
  bool drop_type(1: string type) throws (1: MetaException o1, 2: NoSuchObjectException o2),
  map<string, Type> get_type_all(1: string name) throws (1: MetaException o2),

  // Columns of a table. `get_fields` has the data columns, `get_schema` the partition keys too.
  list<FieldSchema> get_fields(1: string db_name, 2: string table_name)
      throws (1: MetaException o1, 2: UnknownTableException o2, 3: UnknownDBException o3),
  list<FieldSchema> get_fields_with_environment_context(
      1: string db_name, 2: string table_name, 3: EnvironmentContext environment_context)
      throws (1: MetaException o1, 2: UnknownTableException o2, 3: UnknownDBException o3),
  GetFieldsResponse get_fields_req(1: GetFieldsRequest req)
      throws (1: MetaException o1, 2: UnknownTableException o2, 3: UnknownDBException o3),
  list<FieldSchema> get_schema(1: string db_name, 2: string table_name)
      throws (1: MetaException o1, 2: UnknownTableException o2, 3: UnknownDBException o3),
  list<FieldSchema> get_schema_with_environment_context(
      1: string db_name, 2: string table_name, 3: EnvironmentContext environment_context)
      throws (1: MetaException o1, 2: UnknownTableException o2, 3: UnknownDBException o3),
  GetSchemaResponse get_schema_req(1: GetSchemaRequest req)
      throws (1: MetaException o1, 2: UnknownTableException o2, 3: UnknownDBException o3),

  // Tables: create, drop, empty.
  void create_table(1: Table tbl)
      throws (
          1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3,
          4: NoSuchObjectException o4),
  void create_table_with_environment_context(1: Table tbl, 2: EnvironmentContext environment_context)
      throws (
          1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3,
          4: NoSuchObjectException o4),
  // 2.3 has the first three arguments.
  void create_table_with_constraints(
      1: Table tbl, 2: list<SQLPrimaryKey> primaryKeys, 3: list<SQLForeignKey> foreignKeys,
      4: list<SQLUniqueConstraint> uniqueConstraints, 5: list<SQLNotNullConstraint> notNullConstraints,
      6: list<SQLDefaultConstraint> defaultConstraints, 7: list<SQLCheckConstraint> checkConstraints)
      throws (
          1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3,
          4: NoSuchObjectException o4),
  void create_table_req(1: CreateTableRequest request)
      throws (
          1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3,
          4: NoSuchObjectException o4),
  Table translate_table_dryrun(1: CreateTableRequest request)
      throws (
          1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3,
          4: NoSuchObjectException o4),
  void drop_table(1: string dbname, 2: string name, 3: bool deleteData)
      throws (1: NoSuchObjectException o1, 2: MetaException o3),
  void drop_table_with_environment_context(
      1: string dbname, 2: string name, 3: bool deleteData, 4: EnvironmentContext environment_context)
      throws (1: NoSuchObjectException o1, 2: MetaException o3),
  // void in its first form, like drop_database_req.
  AsyncOperationResp drop_table_req(1: DropTableRequest dropTableReq)
      throws (1: NoSuchObjectException o1, 2: MetaException o3),
  void truncate_table(1: string dbName, 2: string tableName, 3: list<string> partNames) throws (1: MetaException o1),
  TruncateTableResponse truncate_table_req(1: TruncateTableRequest req) throws (1: MetaException o1),

  // Tables: read.
  list<string> get_tables(1: string db_name, 2: string pattern) throws (1: MetaException o1),
  list<string> get_tables_by_type(1: string db_name, 2: string pattern, 3: string tableType)
      throws (1: MetaException o1),
  list<TableMeta> get_table_meta(1: string db_patterns, 2: string tbl_patterns, 3: list<string> tbl_types)
      throws (1: MetaException o1),
  list<string> get_all_tables(1: string db_name) throws (1: MetaException o1),
  list<ExtendedTableInfo> get_tables_ext(1: GetTablesExtRequest req) throws (1: MetaException o1),
  Table get_table(1: string dbname, 2: string tbl_name) throws (1: MetaException o1, 2: NoSuchObjectException o2),
  GetTableResult get_table_req(1: GetTableRequest req) throws (1: MetaException o1, 2: NoSuchObjectException o2),
  // The protocol document's copy has no throws clause; running 2.3 servers declare and send these (semantics §2.6).
  list<Table> get_table_objects_by_name(1: string dbname, 2: list<string> tbl_names)
      throws (1: MetaException o1, 2: InvalidOperationException o2, 3: UnknownDBException o3),
  GetTablesResult get_table_objects_by_name_req(1: GetTablesRequest req)
      throws (1: MetaException o1, 2: InvalidOperationException o2, 3: UnknownDBException o3),
  list<string> get_table_names_by_filter(1: string dbname, 2: string filter, 3: i16 max_tables = -1)
      throws (1: MetaException o1, 2: InvalidOperationException o2, 3: UnknownDBException o3),

  // Tables: change.
  void alter_table(1: string dbname, 2: string tbl_name, 3: Table new_tbl)
      throws (1: InvalidOperationException o1, 2: MetaException o2),
  void alter_table_with_environment_context(
      1: string dbname, 2: string tbl_name, 3: Table new_tbl, 4: EnvironmentContext environment_context)
      throws (1: InvalidOperationException o1, 2: MetaException o2),
  void alter_table_with_cascade(1: string dbname, 2: string tbl_name, 3: Table new_tbl, 4: bool cascade)
      throws (1: InvalidOperationException o1, 2: MetaException o2),
  AlterTableResponse alter_table_req(1: AlterTableRequest req)
      throws (1: InvalidOperationException o1, 2: MetaException o2),

  // Materialized views.
  list<Table> get_all_materialized_view_objects_for_rewriting() throws (1: MetaException o1),
  list<string> get_materialized_views_for_rewriting(1: string db_name) throws (1: MetaException o1),
  Materialization get_materialization_invalidation_info(1: CreationMetadata creation_metadata, 2: string validTxnList)
      throws (1: MetaException o1, 2: InvalidOperationException o2, 3: UnknownDBException o3),
  void update_creation_metadata(
      1: string catName, 2: string dbname, 3: string tbl_name, 4: CreationMetadata creation_metadata)
      throws (1: MetaException o1, 2: InvalidOperationException o2, 3: UnknownDBException o3),
  LockResponse get_lock_materialization_rebuild(1: string dbName, 2: string tableName, 3: i64 txnId),
  bool heartbeat_lock_materialization_rebuild(1: string dbName, 2: string tableName, 3: i64 txnId),

  // Partitions: add.
  Partition add_partition(1: Partition new_part)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3),
  Partition add_partition_with_environment_context(1: Partition new_part, 2: EnvironmentContext environment_context)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3),
  i32 add_partitions(1: list<Partition> new_parts)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3),
  i32 add_partitions_pspec(1: list<PartitionSpec> new_parts)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3),
  AddPartitionsResult add_partitions_req(1: AddPartitionsRequest request)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3),
  Partition append_partition(1: string db_name, 2: string tbl_name, 3: list<string> part_vals)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3),
  Partition append_partition_with_environment_context(
      1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: EnvironmentContext environment_context)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3),
  Partition append_partition_req(1: AppendPartitionsRequest appendPartitionsReq)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3),
  Partition append_partition_by_name(1: string db_name, 2: string tbl_name, 3: string part_name)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3),
  Partition append_partition_by_name_with_environment_context(
      1: string db_name, 2: string tbl_name, 3: string part_name, 4: EnvironmentContext environment_context)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3),

  // Partitions: drop.
  bool drop_partition(1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: bool deleteData)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  bool drop_partition_with_environment_context(
      1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: bool deleteData,
      5: EnvironmentContext environment_context)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  bool drop_partition_req(1: DropPartitionRequest dropPartitionReq)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  bool drop_partition_by_name(1: string db_name, 2: string tbl_name, 3: string part_name, 4: bool deleteData)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  bool drop_partition_by_name_with_environment_context(
      1: string db_name, 2: string tbl_name, 3: string part_name, 4: bool deleteData,
      5: EnvironmentContext environment_context)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  DropPartitionsResult drop_partitions_req(1: DropPartitionsRequest req)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),

  // Partitions: read one.
  Partition get_partition(1: string db_name, 2: string tbl_name, 3: list<string> part_vals)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  GetPartitionResponse get_partition_req(1: GetPartitionRequest req)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  Partition get_partition_with_auth(
      1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: string user_name,
      5: list<string> group_names)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  Partition get_partition_by_name(1: string db_name, 2: string tbl_name, 3: string part_name)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),

  // Partitions: read many.
  list<Partition> get_partitions(1: string db_name, 2: string tbl_name, 3: i16 max_parts = -1)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  PartitionsResponse get_partitions_req(1: PartitionsRequest req)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  list<Partition> get_partitions_with_auth(
      1: string db_name, 2: string tbl_name, 3: i16 max_parts = -1, 4: string user_name, 5: list<string> group_names)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  list<PartitionSpec> get_partitions_pspec(1: string db_name, 2: string tbl_name, 3: i32 max_parts = -1)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  // 3.1 and later: throws (1: NoSuchObjectException o1, 2: MetaException o2), so id 1 has two meanings (semantics
  // §10.1).
  list<string> get_partition_names(1: string db_name, 2: string tbl_name, 3: i16 max_parts = -1)
      throws (1: MetaException o2),
  list<string> fetch_partition_names_req(1: PartitionsRequest partitionReq)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  PartitionValuesResponse get_partition_values(1: PartitionValuesRequest request)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),

  // Partitions: select. `_ps` takes a partial spec in which an empty string matches every value (semantics §4.6).
  list<Partition> get_partitions_ps(
      1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: i16 max_parts = -1)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  list<Partition> get_partitions_ps_with_auth(
      1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: i16 max_parts = -1, 5: string user_name,
      6: list<string> group_names)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  GetPartitionsPsWithAuthResponse get_partitions_ps_with_auth_req(1: GetPartitionsPsWithAuthRequest req)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  list<string> get_partition_names_ps(
      1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: i16 max_parts = -1)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  GetPartitionNamesPsResponse get_partition_names_ps_req(1: GetPartitionNamesPsRequest req)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  list<Partition> get_partitions_by_filter(
      1: string db_name, 2: string tbl_name, 3: string filter, 4: i16 max_parts = -1)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  list<Partition> get_partitions_by_filter_req(1: GetPartitionsByFilterRequest req)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  list<PartitionSpec> get_part_specs_by_filter(
      1: string db_name, 2: string tbl_name, 3: string filter, 4: i32 max_parts = -1)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  i32 get_num_partitions_by_filter(1: string db_name, 2: string tbl_name, 3: string filter)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  PartitionsByExprResult get_partitions_by_expr(1: PartitionsByExprRequest req)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  PartitionsSpecByExprResult get_partitions_spec_by_expr(1: PartitionsByExprRequest req)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  // Names of the partitions an expression selects; without one see fetch_partition_names_req.
  list<string> get_partition_names_req(1: PartitionsByExprRequest req)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  // 4.x also: 3: InvalidObjectException o3.
  list<Partition> get_partitions_by_names(1: string db_name, 2: string tbl_name, 3: list<string> names)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  GetPartitionsByNamesResult get_partitions_by_names_req(1: GetPartitionsByNamesRequest req)
      throws (1: MetaException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3),
  GetPartitionsResponse get_partitions_with_specs(1: GetPartitionsRequest request) throws (1: MetaException o1),

  // Partitions: change, rename, exchange.
  void alter_partition(1: string db_name, 2: string tbl_name, 3: Partition new_part)
      throws (1: InvalidOperationException o1, 2: MetaException o2),
  void alter_partitions(1: string db_name, 2: string tbl_name, 3: list<Partition> new_parts)
      throws (1: InvalidOperationException o1, 2: MetaException o2),
  void alter_partition_with_environment_context(
      1: string db_name, 2: string tbl_name, 3: Partition new_part, 4: EnvironmentContext environment_context)
      throws (1: InvalidOperationException o1, 2: MetaException o2),
  void alter_partitions_with_environment_context(
      1: string db_name, 2: string tbl_name, 3: list<Partition> new_parts, 4: EnvironmentContext environment_context)
      throws (1: InvalidOperationException o1, 2: MetaException o2),
  AlterPartitionsResponse alter_partitions_req(1: AlterPartitionsRequest req)
      throws (1: InvalidOperationException o1, 2: MetaException o2),
  void rename_partition(1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: Partition new_part)
      throws (1: InvalidOperationException o1, 2: MetaException o2),
  RenamePartitionResponse rename_partition_req(1: RenamePartitionRequest req)
      throws (1: InvalidOperationException o1, 2: MetaException o2),
  Partition exchange_partition(
      1: map<string, string> partitionSpecs, 2: string source_db, 3: string source_table_name, 4: string dest_db,
      5: string dest_table_name)
      throws (
          1: MetaException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3,
          4: InvalidInputException o4),
  list<Partition> exchange_partitions(
      1: map<string, string> partitionSpecs, 2: string source_db, 3: string source_table_name, 4: string dest_db,
      5: string dest_table_name)
      throws (
          1: MetaException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3,
          4: InvalidInputException o4),

  // Partition names and marks.
  bool partition_name_has_valid_characters(1: list<string> part_vals, 2: bool throw_exception)
      throws (1: MetaException o1),
  list<string> partition_name_to_vals(1: string part_name) throws (1: MetaException o1),
  map<string, string> partition_name_to_spec(1: string part_name) throws (1: MetaException o1),
  void markPartitionForEvent(
      1: string db_name, 2: string tbl_name, 3: map<string, string> part_vals, 4: PartitionEventType eventType)
      throws (
          1: MetaException o1, 2: NoSuchObjectException o2, 3: UnknownDBException o3, 4: UnknownTableException o4,
          5: UnknownPartitionException o5, 6: InvalidPartitionException o6),
  bool isPartitionMarkedForEvent(
      1: string db_name, 2: string tbl_name, 3: map<string, string> part_vals, 4: PartitionEventType eventType)
      throws (
          1: MetaException o1, 2: NoSuchObjectException o2, 3: UnknownDBException o3, 4: UnknownTableException o4,
          5: UnknownPartitionException o5, 6: InvalidPartitionException o6),

  // Indexes (2.3 only).
  Index add_index(1: Index new_index, 2: Table index_table)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3),
  void alter_index(1: string dbname, 2: string base_tbl_name, 3: string idx_name, 4: Index new_idx)
      throws (1: InvalidOperationException o1, 2: MetaException o2),
  bool drop_index_by_name(1: string db_name, 2: string tbl_name, 3: string index_name, 4: bool deleteData)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  Index get_index_by_name(1: string db_name, 2: string tbl_name, 3: string index_name)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  list<Index> get_indexes(1: string db_name, 2: string tbl_name, 3: i16 max_indexes = -1)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  list<string> get_index_names(1: string db_name, 2: string tbl_name, 3: i16 max_indexes = -1)
      throws (1: MetaException o2),

  // Constraints.
  PrimaryKeysResponse get_primary_keys(1: PrimaryKeysRequest request)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  ForeignKeysResponse get_foreign_keys(1: ForeignKeysRequest request)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  UniqueConstraintsResponse get_unique_constraints(1: UniqueConstraintsRequest request)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  NotNullConstraintsResponse get_not_null_constraints(1: NotNullConstraintsRequest request)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  DefaultConstraintsResponse get_default_constraints(1: DefaultConstraintsRequest request)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  CheckConstraintsResponse get_check_constraints(1: CheckConstraintsRequest request)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  AllTableConstraintsResponse get_all_table_constraints(1: AllTableConstraintsRequest request)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  void add_primary_key(1: AddPrimaryKeyRequest req) throws (1: NoSuchObjectException o1, 2: MetaException o2),
  void add_foreign_key(1: AddForeignKeyRequest req) throws (1: NoSuchObjectException o1, 2: MetaException o2),
  void add_unique_constraint(1: AddUniqueConstraintRequest req)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  void add_not_null_constraint(1: AddNotNullConstraintRequest req)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  void add_default_constraint(1: AddDefaultConstraintRequest req)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  void add_check_constraint(1: AddCheckConstraintRequest req) throws (1: NoSuchObjectException o1, 2: MetaException o2),
  void drop_constraint(1: DropConstraintRequest req) throws (1: NoSuchObjectException o1, 2: MetaException o3),

  // Column statistics.
  bool update_table_column_statistics(1: ColumnStatistics stats_obj)
      throws (
          1: NoSuchObjectException o1, 2: InvalidObjectException o2, 3: MetaException o3,
          4: InvalidInputException o4),
  bool update_partition_column_statistics(1: ColumnStatistics stats_obj)
      throws (
          1: NoSuchObjectException o1, 2: InvalidObjectException o2, 3: MetaException o3,
          4: InvalidInputException o4),
  SetPartitionsStatsResponse update_table_column_statistics_req(1: SetPartitionsStatsRequest_v4 req)
      throws (
          1: NoSuchObjectException o1, 2: InvalidObjectException o2, 3: MetaException o3,
          4: InvalidInputException o4),
  SetPartitionsStatsResponse update_partition_column_statistics_req(1: SetPartitionsStatsRequest_v4 req)
      throws (
          1: NoSuchObjectException o1, 2: InvalidObjectException o2, 3: MetaException o3,
          4: InvalidInputException o4),
  void update_transaction_statistics(1: UpdateTransactionalStatsRequest req) throws (1: MetaException o1),
  ColumnStatistics get_table_column_statistics(1: string db_name, 2: string tbl_name, 3: string col_name)
      throws (
          1: NoSuchObjectException o1, 2: MetaException o2, 3: InvalidInputException o3,
          4: InvalidObjectException o4),
  ColumnStatistics get_partition_column_statistics(
      1: string db_name, 2: string tbl_name, 3: string part_name, 4: string col_name)
      throws (
          1: NoSuchObjectException o1, 2: MetaException o2, 3: InvalidInputException o3,
          4: InvalidObjectException o4),
  TableStatsResult get_table_statistics_req(1: TableStatsRequest request)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  PartitionsStatsResult get_partitions_statistics_req(1: PartitionsStatsRequest request)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  AggrStats get_aggr_stats_for(1: PartitionsStatsRequest request)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  bool set_aggr_stats_for(1: SetPartitionsStatsRequest request)
      throws (
          1: NoSuchObjectException o1, 2: InvalidObjectException o2, 3: MetaException o3,
          4: InvalidInputException o4),
  // `engine` from 4.0 on.
  bool delete_partition_column_statistics(
      1: string db_name, 2: string tbl_name, 3: string part_name, 4: string col_name, 5: string engine)
      throws (
          1: NoSuchObjectException o1, 2: MetaException o2, 3: InvalidObjectException o3,
          4: InvalidInputException o4),
  // `engine` from 4.0 on.
  bool delete_table_column_statistics(1: string db_name, 2: string tbl_name, 3: string col_name, 4: string engine)
      throws (
          1: NoSuchObjectException o1, 2: MetaException o2, 3: InvalidObjectException o3,
          4: InvalidInputException o4),
  bool delete_column_statistics_req(1: DeleteColumnStatisticsRequest req)
      throws (
          1: NoSuchObjectException o1, 2: MetaException o2, 3: InvalidObjectException o3,
          4: InvalidInputException o4),

  // Functions.
  void create_function(1: Function func)
      throws (
          1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3,
          4: NoSuchObjectException o4),
  void drop_function(1: string dbName, 2: string funcName) throws (1: NoSuchObjectException o1, 2: MetaException o3),
  void alter_function(1: string dbName, 2: string funcName, 3: Function newFunc)
      throws (1: InvalidOperationException o1, 2: MetaException o2),
  list<string> get_functions(1: string dbName, 2: string pattern) throws (1: MetaException o1),
  GetFunctionsResponse get_functions_req(1: GetFunctionsRequest request) throws (1: MetaException o1),
  Function get_function(1: string dbName, 2: string funcName) throws (1: MetaException o1, 2: NoSuchObjectException o2),
  GetAllFunctionsResponse get_all_functions() throws (1: MetaException o1),

  // Roles.
  bool create_role(1: Role role) throws (1: MetaException o1),
  bool drop_role(1: string role_name) throws (1: MetaException o1),
  list<string> get_role_names() throws (1: MetaException o1),
  // Superseded by grant_revoke_role.
  bool grant_role(
      1: string role_name, 2: string principal_name, 3: PrincipalType principal_type, 4: string grantor,
      5: PrincipalType grantorType, 6: bool grant_option)
      throws (1: MetaException o1),
  bool revoke_role(1: string role_name, 2: string principal_name, 3: PrincipalType principal_type)
      throws (1: MetaException o1),
  list<Role> list_roles(1: string principal_name, 2: PrincipalType principal_type) throws (1: MetaException o1),
  GrantRevokeRoleResponse grant_revoke_role(1: GrantRevokeRoleRequest request) throws (1: MetaException o1),
  GetPrincipalsInRoleResponse get_principals_in_role(1: GetPrincipalsInRoleRequest request)
      throws (1: MetaException o1),
  GetRoleGrantsForPrincipalResponse get_role_grants_for_principal(1: GetRoleGrantsForPrincipalRequest request)
      throws (1: MetaException o1),

  // Privileges.
  PrincipalPrivilegeSet get_privilege_set(1: HiveObjectRef hiveObject, 2: string user_name, 3: list<string> group_names)
      throws (1: MetaException o1),
  list<HiveObjectPrivilege> list_privileges(
      1: string principal_name, 2: PrincipalType principal_type, 3: HiveObjectRef hiveObject)
      throws (1: MetaException o1),
  // Superseded by grant_revoke_privileges.
  bool grant_privileges(1: PrivilegeBag privileges) throws (1: MetaException o1),
  bool revoke_privileges(1: PrivilegeBag privileges) throws (1: MetaException o1),
  GrantRevokePrivilegeResponse grant_revoke_privileges(1: GrantRevokePrivilegeRequest request)
      throws (1: MetaException o1),
  GrantRevokePrivilegeResponse refresh_privileges(
      1: HiveObjectRef objToRefresh, 2: string authorizer, 3: GrantRevokePrivilegeRequest grantRequest)
      throws (1: MetaException o1),

  // Identity and tokens.
  // Answers the groups; over HTTP it never changes who the caller is (semantics §2.21).
  list<string> set_ugi(1: string user_name, 2: list<string> group_names) throws (1: MetaException o1),
  string get_delegation_token(1: string token_owner, 2: string renewer_kerberos_principal_name)
      throws (1: MetaException o1),
  i64 renew_delegation_token(1: string token_str_form) throws (1: MetaException o1),
  void cancel_delegation_token(1: string token_str_form) throws (1: MetaException o1),
  bool add_token(1: string token_identifier, 2: string delegation_token),
  bool remove_token(1: string token_identifier),
  string get_token(1: string token_identifier),
  list<string> get_all_token_identifiers(),
  i32 add_master_key(1: string key) throws (1: MetaException o1),
  void update_master_key(1: i32 seq_number, 2: string key) throws (1: NoSuchObjectException o1, 2: MetaException o2),
  bool remove_master_key(1: i32 key_seq),
  list<string> get_master_keys(),

  // Transactions.
  GetOpenTxnsResponse get_open_txns(),
  // 4.x only, hence the shape of 4 in every dialect.
  GetOpenTxnsResponse_v4 get_open_txns_req(1: GetOpenTxnsRequest getOpenTxnsRequest),
  GetOpenTxnsInfoResponse get_open_txns_info(),
  OpenTxnsResponse open_txns(1: OpenTxnRequest rqst),
  void abort_txn(1: AbortTxnRequest rqst) throws (1: NoSuchTxnException o1),
  void abort_txns(1: AbortTxnsRequest rqst) throws (1: NoSuchTxnException o1),
  void commit_txn(1: CommitTxnRequest rqst) throws (1: NoSuchTxnException o1, 2: TxnAbortedException o2),
  i64 get_latest_txnid_in_conflict(1: i64 txnId) throws (1: MetaException o1),
  void heartbeat(1: HeartbeatRequest ids)
      throws (1: NoSuchLockException o1, 2: NoSuchTxnException o2, 3: TxnAbortedException o3),
  HeartbeatTxnRangeResponse heartbeat_txn_range(1: HeartbeatTxnRangeRequest txns),
  void seed_txn_id(1: SeedTxnIdRequest rqst) throws (1: MetaException o1),
  list<WriteEventInfo> get_all_write_event_info(1: GetAllWriteEventInfoRequest request) throws (1: MetaException o1),

  // Write ids (3.1 and later).
  void repl_tbl_writeid_state(1: ReplTblWriteIdStateRequest rqst),
  GetValidWriteIdsResponse get_valid_write_ids(1: GetValidWriteIdsRequest rqst)
      throws (1: NoSuchTxnException o1, 2: MetaException o2),
  AllocateTableWriteIdsResponse allocate_table_write_ids(1: AllocateTableWriteIdsRequest rqst)
      throws (1: NoSuchTxnException o1, 2: TxnAbortedException o2, 3: MetaException o3),
  MaxAllocatedTableWriteIdResponse get_max_allocated_table_write_id(1: MaxAllocatedTableWriteIdRequest rqst)
      throws (1: MetaException o1),
  void add_write_ids_to_min_history(1: i64 txnId, 2: map<string, i64> writeIds) throws (1: MetaException o2),
  void seed_write_id(1: SeedTableWriteIdsRequest rqst) throws (1: MetaException o1),

  // Locks.
  LockResponse lock(1: LockRequest rqst) throws (1: NoSuchTxnException o1, 2: TxnAbortedException o2),
  LockResponse check_lock(1: CheckLockRequest rqst)
      throws (1: NoSuchTxnException o1, 2: TxnAbortedException o2, 3: NoSuchLockException o3),
  void unlock(1: UnlockRequest rqst) throws (1: NoSuchLockException o1, 2: TxnOpenException o2),
  ShowLocksResponse show_locks(1: ShowLocksRequest rqst),

  // Compaction.
  void compact(1: CompactionRequest rqst),
  CompactionResponse compact2(1: CompactionRequest rqst),
  ShowCompactResponse show_compact(1: ShowCompactRequest rqst),
  void add_dynamic_partitions(1: AddDynamicPartitions rqst)
      throws (1: NoSuchTxnException o1, 2: TxnAbortedException o2),
  bool submit_for_cleanup(1: CompactionRequest o1, 2: i64 o2, 3: i64 o3) throws (1: MetaException o1),
  AbortCompactResponse abort_Compactions(1: AbortCompactionRequest rqst),
  GetLatestCommittedCompactionInfoResponse get_latest_committed_compaction_info(
      1: GetLatestCommittedCompactionInfoRequest rqst),

  // Compaction, as its workers call it (4.x).
  // Superseded by find_next_compact2.
  OptionalCompactionInfoStruct find_next_compact(1: string workerId) throws (1: MetaException o1),
  OptionalCompactionInfoStruct find_next_compact2(1: FindNextCompactRequest rqst) throws (1: MetaException o1),
  void update_compactor_state(1: CompactionInfoStruct cr, 2: i64 txn_id),
  list<string> find_columns_with_stats(1: CompactionInfoStruct cr),
  void mark_cleaned(1: CompactionInfoStruct cr) throws (1: MetaException o1),
  void mark_compacted(1: CompactionInfoStruct cr) throws (1: MetaException o1),
  void mark_failed(1: CompactionInfoStruct cr) throws (1: MetaException o1),
  void mark_refused(1: CompactionInfoStruct cr) throws (1: MetaException o1),
  void set_hadoop_jobid(1: string jobId, 2: i64 cq_id),

  // Notifications.
  NotificationEventResponse get_next_notification(1: NotificationEventRequest rqst),
  CurrentNotificationEventId get_current_notificationEventId(),
  NotificationEventsCountResponse get_notification_events_count(1: NotificationEventsCountRequest rqst),
  FireEventResponse fire_listener_event(1: FireEventRequest rqst),
  WriteNotificationLogResponse add_write_notification_log(1: WriteNotificationLogRequest rqst),
  WriteNotificationLogBatchResponse add_write_notification_log_in_batch(1: WriteNotificationLogBatchRequest rqst),
  CmRecycleResponse cm_recycle(1: CmRecycleRequest request) throws (1: MetaException o1),

  // File metadata.
  GetFileMetadataByExprResult get_file_metadata_by_expr(1: GetFileMetadataByExprRequest req),
  GetFileMetadataResult get_file_metadata(1: GetFileMetadataRequest req),
  PutFileMetadataResult put_file_metadata(1: PutFileMetadataRequest req),
  ClearFileMetadataResult clear_file_metadata(1: ClearFileMetadataRequest req),
  CacheFileMetadataResult cache_file_metadata(1: CacheFileMetadataRequest req),

  // Workload management.
  WMCreateResourcePlanResponse create_resource_plan(1: WMCreateResourcePlanRequest request)
      throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3),
  WMGetResourcePlanResponse get_resource_plan(1: WMGetResourcePlanRequest request)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  WMGetActiveResourcePlanResponse get_active_resource_plan(1: WMGetActiveResourcePlanRequest request)
      throws (1: MetaException o2),
  WMGetAllResourcePlanResponse get_all_resource_plans(1: WMGetAllResourcePlanRequest request)
      throws (1: MetaException o1),
  WMAlterResourcePlanResponse alter_resource_plan(1: WMAlterResourcePlanRequest request)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3),
  WMValidateResourcePlanResponse validate_resource_plan(1: WMValidateResourcePlanRequest request)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  WMDropResourcePlanResponse drop_resource_plan(1: WMDropResourcePlanRequest request)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3),
  WMCreateTriggerResponse create_wm_trigger(1: WMCreateTriggerRequest request)
      throws (1: AlreadyExistsException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3,
              4: MetaException o4),
  WMAlterTriggerResponse alter_wm_trigger(1: WMAlterTriggerRequest request)
      throws (1: NoSuchObjectException o1, 2: InvalidObjectException o2, 3: MetaException o3),
  WMDropTriggerResponse drop_wm_trigger(1: WMDropTriggerRequest request)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3),
  WMGetTriggersForResourePlanResponse get_triggers_for_resourceplan(1: WMGetTriggersForResourePlanRequest request)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  WMCreatePoolResponse create_wm_pool(1: WMCreatePoolRequest request)
      throws (1: AlreadyExistsException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3,
              4: MetaException o4),
  WMAlterPoolResponse alter_wm_pool(1: WMAlterPoolRequest request)
      throws (1: AlreadyExistsException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3,
              4: MetaException o4),
  WMDropPoolResponse drop_wm_pool(1: WMDropPoolRequest request)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3),
  WMCreateOrUpdateMappingResponse create_or_update_wm_mapping(1: WMCreateOrUpdateMappingRequest request)
      throws (1: AlreadyExistsException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3,
              4: MetaException o4),
  WMDropMappingResponse drop_wm_mapping(1: WMDropMappingRequest request)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3),
  WMCreateOrDropTriggerToPoolMappingResponse create_or_drop_wm_trigger_to_pool_mapping(
      1: WMCreateOrDropTriggerToPoolMappingRequest request)
      throws (1: AlreadyExistsException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3,
              4: MetaException o4),

  // Schema registry.
  void create_ischema(1: ISchema schema)
      throws (1: AlreadyExistsException o1, 2: NoSuchObjectException o2, 3: MetaException o3),
  void alter_ischema(1: AlterISchemaRequest rqst) throws (1: NoSuchObjectException o1, 2: MetaException o2),
  ISchema get_ischema(1: ISchemaName name) throws (1: NoSuchObjectException o1, 2: MetaException o2),
  void drop_ischema(1: ISchemaName name)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3),
  void add_schema_version(1: SchemaVersion schemaVersion)
      throws (1: AlreadyExistsException o1, 2: NoSuchObjectException o2, 3: MetaException o3),
  SchemaVersion get_schema_version(1: SchemaVersionDescriptor schemaVersion)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  SchemaVersion get_schema_latest_version(1: ISchemaName schemaName)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  list<SchemaVersion> get_schema_all_versions(1: ISchemaName schemaName)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  void drop_schema_version(1: SchemaVersionDescriptor schemaVersion)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  FindSchemasByColsResp get_schemas_by_cols(1: FindSchemasByColsRqst rqst) throws (1: MetaException o1),
  void map_schema_version_to_serde(1: MapSchemaVersionToSerdeRequest rqst)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  void set_schema_version_state(1: SetSchemaVersionStateRequest rqst)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3),
  void add_serde(1: SerDeInfo serde) throws (1: AlreadyExistsException o1, 2: MetaException o2),
  SerDeInfo get_serde(1: GetSerdeRequest rqst) throws (1: NoSuchObjectException o1, 2: MetaException o2),

  // Notes of query engines.
  void add_runtime_stats(1: RuntimeStat stat) throws (1: MetaException o1),
  list<RuntimeStat> get_runtime_stats(1: GetRuntimeStatsRequest rqst) throws (1: MetaException o1),
  ScheduledQueryPollResponse scheduled_query_poll(1: ScheduledQueryPollRequest request) throws (1: MetaException o1),
  void scheduled_query_maintenance(1: ScheduledQueryMaintenanceRequest request)
      throws (1: MetaException o1, 2: NoSuchObjectException o2, 3: AlreadyExistsException o3,
              4: InvalidInputException o4),
  void scheduled_query_progress(1: ScheduledQueryProgressInfo info)
      throws (1: MetaException o1, 2: InvalidOperationException o2),
  ScheduledQuery get_scheduled_query(1: ScheduledQueryKey scheduleKey)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
  void add_replication_metrics(1: ReplicationMetricList replicationMetricList) throws (1: MetaException o1),
  ReplicationMetricList get_replication_metrics(1: GetReplicationMetricsRequest rqst) throws (1: MetaException o1),
}

// ------------------------------------------------------------
// Locks, for operators
// ------------------------------------------------------------
// What show_locks does not tell about a lock: when it is lost, and what waits for it. Times are milliseconds since the
// epoch by the clock of the database.

// last_heartbeat is that of the lock's transaction when it has one. Without another heartbeat it is lost at lost_at.
// blocked are the ids of requests that wait for it, the oldest first and not more than 100; blocked_count counts all,
// and blocked_since says since when each of them waits, in milliseconds, 0 where that is not known.
struct BlockingLock {
  1: required ShowLocksResponseElement lock,
  2: required i64 last_heartbeat,
  3: required i64 lost_at,
  4: required list<i64> blocked,
  5: required i32 blocked_count,
  6: optional list<i64> blocked_since,
}

service HiveLock {
  // Of the locks that show_locks would show those that others wait for, each component of a request for itself. A lock
  // that waits is in the way of what came later, since nobody overtakes.
  list<BlockingLock> list_blocking_locks(1: ShowLocksRequest rqst) throws (1: MetaException o1),

  // For administrators, o2 for others. Takes a lock, held or waiting, away from whoever has it, and answers what was
  // taken. A transaction's lock cannot go without its transaction, which is aborted with the reason.
  list<ShowLocksResponseElement> force_release_lock(1: i64 lockid, 2: string reason)
      throws (1: NoSuchLockException o1, 2: MetaException o2),
}

// ------------------------------------------------------------
// The catalog, for people
// ------------------------------------------------------------

// kind is DATABASE, FUNCTION, or the type of a table (MANAGED_TABLE, VIRTUAL_VIEW …). name is unset for a database.
// The others are set where details are asked for, of a table or view: rows and bytes are its parameters numRows and totalSize.
struct FoundName {
  1: required string db_name,
  2: optional string name,
  3: required string kind,
  4: optional string owner,
  5: optional string comment,
  6: optional i64 rows,
  7: optional i64 bytes,
  8: optional i64 partitions,
}

// How much is in a database. tables counts views as well. The others are set where details are asked for, which takes
// longer: how many of the tables are views, and the partitions of all of them.
struct DatabaseCounts {
  1: required string db_name,
  2: required i64 tables,
  3: required i64 functions,
  4: optional i64 views,
  5: optional i64 partitions,
}

// Partitions that have the same values of the first keys. example is the name of a partition with these values.
struct PartitionGroup {
  1: required string example,
  2: required i64 partitions,
}

// Snapshots and versions of an Iceberg table. Times are milliseconds since the epoch. A text of `fields` is a column with its
// type, or a partition field with its transform.
struct IcebergSnapshot {
  1: required i64 snapshot_id,
  2: optional i64 parent_id,
  3: required i64 committed_at,
  4: optional string operation,
  5: required map<string, string> summary,
}

// kind is `branch` or `tag`. The others say how long it and its snapshots are kept.
struct IcebergRef {
  1: required string name,
  2: required string kind,
  3: required i64 snapshot_id,
  4: optional i64 max_ref_age_ms,
  5: optional i64 min_snapshots_to_keep,
  6: optional i64 max_snapshot_age_ms,
}

struct IcebergVersion {
  1: required i32 id,
  2: required list<string> fields,
  3: required bool is_current,
}

struct IcebergHistory {
  1: required string metadata_location,
  2: required i32 format_version,
  3: required list<IcebergSnapshot> snapshots,
  4: required list<IcebergRef> refs,
  5: required list<IcebergVersion> schemas,
  6: required list<IcebergVersion> partition_specs,
}

service HivePeople {
  // Databases, tables, views and functions with `text` in their names, the best first: equal, beginning with it, short.
  // `a.b` is b in the database a, or else in those with a in their names; `*` is any run of characters. At most max_names, and never over 1000.
  list<FoundName> search_names(1: string text, 2: i32 max_names, 3: bool details) throws (1: MetaException o1),

  // How much is in each database, or in one, ordered by name. Databases in which the caller does not see everything are
  // left out.
  list<DatabaseCounts> count_objects(1: string db_name, 2: bool details) throws (1: MetaException o1),

  // The statement that makes the table or view as it is.
  string get_create_text(1: string db_name, 2: string tbl_name)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),

  // Names of the partitions that a filter selects ("" is all), in their order or against it, those behind `after` ("" is
  // from the beginning). At most max_names, and never over 10000.
  list<string> list_partition_names(1: string db_name, 2: string tbl_name, 3: string filter, 4: string after,
                                    5: bool descending, 6: i32 max_names)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),

  // How the partitions that a filter selects ("" is all) spread over the values of the first `keys` keys, 1 or 2, in
  // the order of these values. At most max_groups.
  list<PartitionGroup> count_partition_groups(1: string db_name, 2: string tbl_name, 3: string filter, 4: i32 keys,
                                              5: i32 max_groups)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),

  // A condition on partition keys, as WHERE of HiveQL has it, as a filter of get_partitions_by_filter and list_partition_names.
  // o2 where it is wrong: its text ends with "at character N", from 0.
  string translate_condition(1: string db_name, 2: string tbl_name, 3: string condition)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),

  // What the metadata file of an Iceberg table says about its history, the newest first: at most max_entries in each list,
  // and never over 10000. o2 for a table of another kind, and for a file that cannot be read.
  IcebergHistory get_iceberg_history(1: string db_name, 2: string tbl_name, 3: i32 max_entries)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
}

// ------------------------------------------------------------
// Who changed what
// ------------------------------------------------------------
// Times are seconds since the epoch by the clock of the gateway that made the change.

// One change, as its notification event names it. user is whose rights it used, real_user who logged in where that is
// another one; address is the client's, method and request_id are those of the call.
struct Change {
  1: required i64 event_id,
  2: required i64 event_time,
  3: required string event_type,
  4: required string user,
  5: optional string db_name,
  6: optional string table_name,
  7: optional string real_user,
  8: optional string address,
  9: optional string method,
  10: optional string request_id,
}

// What is not set does not matter. Times are both included; before_event_id is for the next page. limit is 100 where it
// is not set.
struct ChangesRequest {
  1: optional string user,
  2: optional string db_name,
  3: optional string table_name,
  4: optional i64 from_time,
  5: optional i64 until_time,
  6: optional i64 before_event_id,
  7: optional i32 limit,
}

// why is the grant, role, rule or ownership that gives the right, or that there is none; notes say what else matters.
struct RightAnswer {
  1: required bool is_allowed,
  2: required string why,
  3: required list<string> notes,
}

service HiveAudit {
  // For administrators, o1 for others. The newest first. Changes without an event, such as grants, are in the audit log.
  list<Change> list_changes(1: ChangesRequest rqst) throws (1: MetaException o1),

  // Whether the gateway's rights let a user do `action` with a table, with a database (no tbl_name) or with everything (no
  // db_name), whether they are enforced or not. groups are those that the login would prove, beside those of groups_file.
  // For administrators, o1 for others, and for an action that is not known.
  RightAnswer explain_right(1: string user, 2: list<string> groups, 3: string action, 4: string db_name, 5: string tbl_name)
      throws (1: MetaException o1),
}

// ------------------------------------------------------------
// Leases
// ------------------------------------------------------------
// After the lease note attached to HIVE-1293, with its holes closed (semantics §7). Times are seconds since the epoch
// in UTC by the clock of the database; a lease lives while now < end_utc.

exception LeaseAlreadyExistsException {
  1: string message,
}

exception InvalidArgumentsException {
  1: string message,
}

exception ExceedsMaxLeaseTimeException {
  1: string message,
}

// One object of a lease. Without table_name it is the whole database, without (or with an empty) partition_name the
// whole table. lease_type is "s" for shared (the default) or "x" for exclusive; listing, extending and dropping ignore
// it. Requests may leave out the rest, and it is ignored there, so a lease that was listed can be an argument. In answers
// partition_name is empty where the object is no partition, and start_utc stays when the lease is extended.
struct LeaseObject {
  1: required string db_name,
  2: optional string table_name,
  3: optional string partition_name,
  4: optional string lease_type,
  5: optional string user,
  6: optional i64 lease_id,
  7: optional i64 start_utc,
  8: optional i64 end_utc,
}

// Leases on databases, tables and partitions, which need not exist.
service HiveLease {
  // All objects or none. The answer is the lease id: it grows with every lease and serves as the fencing number.
  // Conflicts are waited for up to lease_wait_duration_sec, then o1.
  i64 grab_lease(1: list<LeaseObject> objs, 2: i64 lease_duration_sec, 3: i64 lease_wait_duration_sec)
      throws (1: LeaseAlreadyExistsException o1, 2: InvalidArgumentsException o2, 3: ExceedsMaxLeaseTimeException o3),

  // Live leases on the objects and below them; no objects means all.
  list<LeaseObject> list_lease(1: list<LeaseObject> objs) throws (1: InvalidArgumentsException o1),

  // Answers the new end_utc. No objects means the whole lease; lease_duration_sec left out or 0 means the duration it
  // was granted for. A lease that has expired is lost: o1.
  i64 extend_lease(1: i64 lease_id, 2: list<LeaseObject> objs, 3: i64 lease_duration_sec)
      throws (1: InvalidArgumentsException o1, 2: ExceedsMaxLeaseTimeException o2),

  // No objects means the whole lease. Dropping twice is no error.
  void drop_lease(1: i64 lease_id, 2: list<LeaseObject> objs) throws (1: InvalidArgumentsException o1),

  // For administrators, o2 for others. No objects means every lease there is.
  void force_drop_lease(1: list<LeaseObject> objs) throws (1: InvalidArgumentsException o1, 2: MetaException o2),
}
