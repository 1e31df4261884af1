// What a client of Hive 2.3 knows of a table and of open transactions, for the test of both dialects.

namespace py dialect2

struct FieldSchema { 1: string name, 2: string type, 3: string comment }
struct SerDeInfo { 1: string name, 2: string serializationLib, 3: map<string, string> parameters }
struct StorageDescriptor {
  1: list<FieldSchema> cols,
  2: string location,
  3: string inputFormat,
  4: string outputFormat,
  5: bool compressed,
  6: i32 numBuckets,
  7: SerDeInfo serdeInfo,
  10: map<string, string> parameters,
}
struct Database { 1: string name, 2: string description, 3: string locationUri, 4: map<string, string> parameters }
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
}
struct OpenTxnRequest { 1: required i32 num_txns, 2: required string user, 3: required string hostname }
struct OpenTxnsResponse { 1: required list<i64> txn_ids }
struct AbortTxnRequest { 1: required i64 txnid }
struct GetOpenTxnsResponse { 1: required i64 txn_high_water_mark, 2: required set<i64> open_txns }

exception MetaException { 1: string message }
exception NoSuchObjectException { 1: string message }
exception InvalidOperationException { 1: string message }
exception NoSuchTxnException { 1: string message }

service Metastore {
  void create_database(1: Database database) throws (1: MetaException o3),
  list<string> get_all_databases() throws (1: MetaException o1),
  void create_table(1: Table tbl) throws (3: MetaException o3),
  Table get_table(1: string dbname, 2: string tbl_name) throws (1: MetaException o1, 2: NoSuchObjectException o2),
  void alter_table(1: string dbname, 2: string tbl_name, 3: Table new_tbl)
      throws (1: InvalidOperationException o1, 2: MetaException o2),
  list<string> get_partition_names(1: string db_name, 2: string tbl_name, 3: i16 max_parts)
      throws (1: MetaException o2),
  OpenTxnsResponse open_txns(1: OpenTxnRequest rqst),
  void abort_txn(1: AbortTxnRequest rqst) throws (1: NoSuchTxnException o1),
  GetOpenTxnsResponse get_open_txns(),
}
