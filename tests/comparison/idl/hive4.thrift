// What a client of Hive 4 knows of a table and of open transactions, for the test of both dialects.

namespace py dialect4

struct FieldSchema { 1: string name, 2: string type, 3: string comment }
struct SerDeInfo {
  1: string name,
  2: string serializationLib,
  3: map<string, string> parameters,
  4: optional string description,
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
  10: map<string, string> parameters,
}
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
  12: string tableType,
  17: optional string catName,
  18: optional i32 ownerType = 1,
  19: optional i64 writeId = -1,
  20: optional bool isStatsCompliant,
  23: optional list<string> requiredReadCapabilities,
  25: optional i64 id,
}
struct Partition {
  1: list<string> values,
  2: string dbName,
  3: string tableName,
  4: i32 createTime,
  5: i32 lastAccessTime,
  6: StorageDescriptor sd,
  7: map<string, string> parameters,
  9: optional string catName,
  10: optional i64 writeId = -1,
}
struct GetTableRequest {
  1: required string dbName,
  2: required string tblName,
  4: optional string catName,
  6: optional string validWriteIdList,
  8: optional list<string> processorCapabilities,
  10: optional string engine,
  11: optional i64 id,
}
struct GetTableResult { 1: required Table table, 2: optional bool isStatsCompliant }
struct AlterTableRequest {
  1: optional string catName,
  2: required string dbName,
  3: required string tableName,
  4: required Table table,
  6: optional i64 writeId = -1,
}
struct AlterTableResponse {}
struct GetOpenTxnsResponse {
  1: required i64 txn_high_water_mark,
  2: required list<i64> open_txns,
  3: optional i64 min_open_txn,
  4: required binary abortedBits,
}

struct GetOpenTxnsRequest { 1: optional list<i32> excludeTxnTypes }
struct OpenTxnRequest { 1: required i32 num_txns, 2: required string user, 3: required string hostname }
struct OpenTxnsResponse { 1: required list<i64> txn_ids }
struct CommitTxnRequest { 1: required i64 txnid }
struct GetValidWriteIdsRequest {
  1: required list<string> fullTableNames,
  2: optional string validTxnList,
  3: optional i64 writeId,
}
struct TableValidWriteIds {
  1: required string fullTableName,
  2: required i64 writeIdHighWaterMark,
  3: required list<i64> invalidWriteIds,
  4: optional i64 minOpenWriteId,
  5: required binary abortedBits,
}
struct GetValidWriteIdsResponse { 1: required list<TableValidWriteIds> tblValidWriteIds }
struct TxnToWriteId { 1: required i64 txnId, 2: required i64 writeId }
struct AllocateTableWriteIdsRequest {
  1: required string dbName,
  2: required string tableName,
  3: optional list<i64> txnIds,
}
struct AllocateTableWriteIdsResponse { 1: required list<TxnToWriteId> txnToWriteIds }
struct GetPartitionNamesPsRequest {
  1: optional string catName,
  2: required string dbName,
  3: required string tblName,
  4: optional list<string> partValues,
  5: optional i16 maxParts = -1,
  6: optional string validWriteIdList,
  7: optional i64 id,
}
struct GetPartitionNamesPsResponse { 1: required list<string> names }

exception MetaException { 1: string message }
exception NoSuchObjectException { 1: string message }
exception InvalidOperationException { 1: string message }

exception AlreadyExistsException { 1: string message }
exception InvalidObjectException { 1: string message }

service Metastore {
  list<string> get_tables(1: string db_name, 2: string pattern) throws (1: MetaException o1),
  list<string> get_all_tables(1: string db_name) throws (1: MetaException o1),
  void create_table(1: Table tbl)
      throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3, 4: NoSuchObjectException o4),
  void alter_table(1: string dbname, 2: string tbl_name, 3: Table new_tbl)
      throws (1: InvalidOperationException o1, 2: MetaException o2),
  void drop_table(1: string dbname, 2: string name, 3: bool deleteData)
      throws (1: NoSuchObjectException o1, 2: MetaException o3),
  list<string> get_databases(1: string pattern) throws (1: MetaException o1),
  GetTableResult get_table_req(1: GetTableRequest req) throws (1: MetaException o1, 2: NoSuchObjectException o2),
  AlterTableResponse alter_table_req(1: AlterTableRequest req)
      throws (1: InvalidOperationException o1, 2: MetaException o2),
  Table get_table(1: string dbname, 2: string tbl_name) throws (1: MetaException o1, 2: NoSuchObjectException o2),
  list<string> get_partition_names(1: string db_name, 2: string tbl_name, 3: i16 max_parts)
      throws (1: NoSuchObjectException o1, 2: MetaException o2),
  GetOpenTxnsResponse get_open_txns(),
  GetOpenTxnsResponse get_open_txns_req(1: GetOpenTxnsRequest req),
  OpenTxnsResponse open_txns(1: OpenTxnRequest rqst),
  void commit_txn(1: CommitTxnRequest rqst),
  GetValidWriteIdsResponse get_valid_write_ids(1: GetValidWriteIdsRequest rqst),
  AllocateTableWriteIdsResponse allocate_table_write_ids(1: AllocateTableWriteIdsRequest rqst),
  Partition add_partition(1: Partition new_part)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3),
  GetPartitionNamesPsResponse get_partition_names_ps_req(1: GetPartitionNamesPsRequest req)
      throws (1: MetaException o1, 2: NoSuchObjectException o2),
}
