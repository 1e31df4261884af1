"""One call of every method that changes something, each in a catalog prepared for it.

A row prepares what it needs and gives the call's arguments. `World.db` is a name of its own for each run of a row: of a
database with the tables `t`, and `p` and `q` with partition keys `ds` and `hr`, `p` with two partitions.
"""

from collections.abc import Callable
from typing import Any

from hms_gateway.rpc.structs import (
    AbortCompactionRequest,
    AbortTxnRequest,
    AbortTxnsRequest,
    AddCheckConstraintRequest,
    AddDefaultConstraintRequest,
    AddDynamicPartitions,
    AddForeignKeyRequest,
    AddNotNullConstraintRequest,
    AddPartitionsRequest,
    AddPrimaryKeyRequest,
    AddUniqueConstraintRequest,
    AllocateTableWriteIdsRequest,
    AlterCatalogRequest,
    AlterDatabaseRequest,
    AlterPartitionsRequest,
    AlterTableRequest,
    AppendPartitionsRequest,
    CacheFileMetadataRequest,
    Catalog,
    CheckLockRequest,
    ClearFileMetadataRequest,
    CmRecycleRequest,
    ColumnStatistics,
    ColumnStatistics_v4,
    ColumnStatisticsData,
    ColumnStatisticsData_v4,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    ColumnStatisticsObj_v4,
    CommitTxnRequest,
    CompactionInfoStruct,
    CompactionRequest,
    CompactionType,
    CreateCatalogRequest,
    CreateDatabaseRequest,
    CreateTableRequest,
    Database,
    DataOperationType,
    DeleteColumnStatisticsRequest,
    DropCatalogRequest,
    DropConstraintRequest,
    DropDatabaseRequest,
    DropPartitionRequest,
    DropPartitionsRequest,
    DropTableRequest,
    EnvironmentContext,
    FieldSchema,
    FindNextCompactRequest,
    FireEventRequest,
    FireEventRequestData,
    Function,
    FunctionType,
    GrantRevokePrivilegeRequest,
    GrantRevokeRoleRequest,
    GrantRevokeType,
    HeartbeatRequest,
    HeartbeatTxnRangeRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    Index,
    InsertEventRequestData,
    InsertEventRequestData_v4,
    LeaseObject,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    LongColumnStatsData,
    LongColumnStatsData_v4,
    OpenTxnRequest,
    PartitionEventType,
    PartitionListComposingSpec,
    PartitionSpec,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    PropertySetRequest,
    PutFileMetadataRequest,
    RenamePartitionRequest,
    ReplTblWriteIdStateRequest,
    RequestPartsSpec,
    Role,
    SeedTableWriteIdsRequest,
    SeedTxnIdRequest,
    SetPartitionsStatsRequest,
    SetPartitionsStatsRequest_v4,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
    Table,
    TruncateTableRequest,
    Type,
    UnlockRequest,
    WriteNotificationLogBatchRequest,
    WriteNotificationLogRequest,
)
from tests.bridge.bridge_process import ApacheClient
from tests.comparison.objects import SOME_KEYS, database, partition, table
from tests.faults.changing_engine_calls import ENGINE_ROWS

Arguments = tuple[Any, ...]
ENVIRONMENT = EnvironmentContext({"a": "b"})


class World:
    """What a row finds: a client, and a database that nobody else uses."""

    def __init__(self, client: ApacheClient, db: str) -> None:
        self.client = client
        self.db = db
        client.create_database(database(db))
        client.create_table(table(db, "t"))
        for name in ("p", "q"):
            client.create_table(table(db, name, SOME_KEYS))
        client.add_partitions([self.partition("a", "1"), self.partition("b", "2")])

    def partition(self, *values: str, table_name: str = "p") -> Any:
        return partition(self.db, table_name, values)

    def changed_table(self) -> Any:
        changed = self.client.get_table(self.db, "t")
        changed.parameters = {"changed": "yes"}
        return changed

    def changed_partition(self) -> Any:
        changed = self.client.get_partition(self.db, "p", ["a", "1"])
        changed.parameters = {"changed": "yes"}
        return changed

    def txn(self) -> int:
        opened: int = self.client.open_txns(OpenTxnRequest(1, "ann", "host")).txn_ids[0]
        return opened

    def lock(self) -> int:
        held: int = self.client.lock(self.lock_request()).lockid
        return held

    def lock_request(self) -> LockRequest:
        component = LockComponent(LockType.SHARED_READ, LockLevel.TABLE, self.db, "t")
        return LockRequest([component], user="ann", hostname="host")

    def lease(self) -> int:
        granted: int = self.client.grab_lease(self.lease_objects(), 60, 0)
        return granted

    def lease_objects(self) -> list[LeaseObject]:
        return [LeaseObject(db_name=self.db, lease_type="x")]

    def function(self) -> Function:
        return Function("f", self.db, "org.example.F", "ann", PrincipalType.USER, 0, FunctionType.JAVA, [])

    def make_function(self) -> None:
        self.client.create_function(self.function())

    def index(self) -> Index:
        t = self.client.get_table(self.db, "t")
        return Index("i", "org.example.I", self.db, "t", 0, 0, f"{self.db}__t_i__", t.sd, {}, False)

    def index_table(self) -> Table:
        return Table(f"{self.db}__t_i__", self.db, sd=self.index().sd, tableType="INDEX_TABLE")

    def make_index(self) -> None:
        self.client.add_index(self.index(), self.index_table())

    def make_role(self) -> None:
        self.client.create_role(Role(self.db, 0, "ann"))

    def privileges(self) -> PrivilegeBag:
        grant = PrivilegeGrantInfo("SELECT", 0, "ann", PrincipalType.USER, False)
        place = HiveObjectRef(HiveObjectType.TABLE, self.db, "t", None, None)
        return PrivilegeBag([HiveObjectPrivilege(place, "bob", PrincipalType.USER, grant, "SQL")])

    def make_privileges(self) -> None:
        self.client.grant_privileges(self.privileges())

    def statistics(self, part_name: str | None = None) -> ColumnStatistics:
        described = ColumnStatisticsDesc(part_name is None, self.db, "t" if part_name is None else "p", part_name)
        values = ColumnStatisticsData(longStats=LongColumnStatsData(1, 9, 0, 5))
        return ColumnStatistics(described, [ColumnStatisticsObj("id", "bigint", values)])

    def statistics_v4(self, part_name: str | None = None) -> SetPartitionsStatsRequest_v4:
        described = ColumnStatisticsDesc(part_name is None, self.db, "t" if part_name is None else "p", part_name)
        values = ColumnStatisticsData_v4(
            longStats=LongColumnStatsData_v4(lowValue=1, highValue=9, numNulls=0, numDVs=5)
        )
        return SetPartitionsStatsRequest_v4(
            [ColumnStatistics_v4(described, [ColumnStatisticsObj_v4("id", "bigint", values)])]
        )

    def make_statistics(self) -> None:
        self.client.update_table_column_statistics(self.statistics())
        self.client.update_partition_column_statistics(self.statistics("ds=a/hr=1"))

    def primary_key(self, table_name: str = "t") -> SQLPrimaryKey:
        return SQLPrimaryKey(self.db, table_name, "id", 1, f"pk_{table_name}", True, False, False)

    def master_key(self) -> int:
        number: int = self.client.add_master_key("secret")
        return number

    def compaction_request(self) -> CompactionRequest:
        return CompactionRequest(self.db, "t", None, CompactionType.MAJOR)

    def queue_nothing_else(self) -> None:
        """Whoever asks for work next gets this world's."""
        while (found := self.client.find_next_compact("cleaner").ci) is not None:
            self.client.mark_failed(found)

    def queued(self) -> int:
        self.queue_nothing_else()
        number: int = self.client.compact2(self.compaction_request()).id
        return number

    def worked_on(self) -> CompactionInfoStruct:
        self.queued()
        found: CompactionInfoStruct = self.client.find_next_compact("worker").ci
        return found

    def compacted(self) -> CompactionInfoStruct:
        found = self.worked_on()
        self.client.mark_compacted(found)
        return found

    def after(self, prepare: Callable[[], Any], *arguments: Any) -> Arguments:
        prepare()
        return arguments

    def write_notification(self) -> WriteNotificationLogRequest:
        added = InsertEventRequestData_v4(filesAdded=["file:/a"])
        return WriteNotificationLogRequest(self.txn(), 1, self.db, "t", added)


def _foreign_key(world: World) -> Arguments:
    world.client.create_table(table(world.db, "parent"))
    world.client.add_primary_key(AddPrimaryKeyRequest([world.primary_key("parent")]))
    key = SQLForeignKey(world.db, "parent", "id", world.db, "t", "id", 1, 0, 0, "fk_t", "pk_parent", True, False, False)
    return (AddForeignKeyRequest([key]),)


def _allocated(world: World) -> tuple[int, int]:
    """A transaction and its write id for `t`."""
    txn = world.txn()
    request = AllocateTableWriteIdsRequest(world.db, "t", [txn])
    return txn, world.client.allocate_table_write_ids(request).txnToWriteIds[0].writeId


def _dynamic_partitions(world: World) -> Arguments:
    txn = world.txn()
    component = LockComponent(
        LockType.SHARED_WRITE, LockLevel.TABLE, world.db, "p", operationType=DataOperationType.INSERT
    )
    world.client.lock(LockRequest([component], txn, "ann", "host"))
    return (AddDynamicPartitions(txn, world.db, "p", ["ds=a/hr=1"]),)


def _role_grant(world: World) -> GrantRevokeRoleRequest:
    world.make_role()
    return GrantRevokeRoleRequest(GrantRevokeType.GRANT, world.db, "bob", PrincipalType.USER, "ann", PrincipalType.USER)


def _given_role(world: World) -> Arguments:
    world.client.grant_revoke_role(_role_grant(world))
    return (world.db, "bob", PrincipalType.USER)


def _new_catalog(world: World) -> Catalog:
    return Catalog(world.db, "a catalog", "file:/nowhere")


def _partition_specs(world: World) -> Arguments:
    composed = PartitionListComposingSpec([world.partition("c", "3")])
    return ([PartitionSpec(world.db, "p", "", None, composed)],)


def _renamed(world: World) -> Any:
    renamed = world.client.get_partition(world.db, "p", ["a", "1"])
    renamed.values = ["c", "3"]
    return renamed


Row = Callable[[World], Arguments]

ROWS: dict[str, Row] = {
    **ENGINE_ROWS,
    # Settings and catalogs.
    "setMetaConf": lambda w: ("metastore.partition.name.whitelist.pattern", ""),
    "set_properties": lambda w: (PropertySetRequest(w.db, {"a": "b"}),),
    "flushCache": lambda w: (),
    "create_catalog": lambda w: (CreateCatalogRequest(_new_catalog(w)),),
    "alter_catalog": lambda w: (AlterCatalogRequest(w.db, _new_catalog(w)),),
    "drop_catalog": lambda w: (DropCatalogRequest(w.db),),
    "setOption": lambda w: ("a", "b"),
    # Databases.
    "create_database": lambda w: (Database(f"{w.db}_new"),),
    "create_database_req": lambda w: (CreateDatabaseRequest(f"{w.db}_new"),),
    "drop_database": lambda w: (w.db, True, True),
    "drop_database_req": lambda w: (DropDatabaseRequest(w.db, None, False, True, True),),
    "alter_database": lambda w: (w.db, Database(w.db, parameters={"a": "b"})),
    "alter_database_req": lambda w: (AlterDatabaseRequest(w.db, Database(w.db, parameters={"a": "b"})),),
    # Types.
    "create_type": lambda w: (Type(w.db, None, None, [FieldSchema("a", "int")]),),
    "drop_type": lambda w: w.after(lambda: w.client.create_type(Type(w.db, None, None, [])), w.db),
    # Tables.
    "create_table": lambda w: (table(w.db, "new"),),
    "create_table_with_environment_context": lambda w: (table(w.db, "new"), ENVIRONMENT),
    "create_table_with_constraints": lambda w: (table(w.db, "new"), [w.primary_key("new")], [], [], [], [], []),
    "create_table_req": lambda w: (CreateTableRequest(table(w.db, "new")),),
    "drop_table": lambda w: (w.db, "p", True),
    "drop_table_with_environment_context": lambda w: (w.db, "p", True, ENVIRONMENT),
    "drop_table_req": lambda w: (DropTableRequest(None, w.db, "p", True),),
    "truncate_table": lambda w: (w.db, "p", ["ds=a/hr=1"]),
    "truncate_table_req": lambda w: (TruncateTableRequest(w.db, "p"),),
    "alter_table": lambda w: (w.db, "t", w.changed_table()),
    "alter_table_with_environment_context": lambda w: (w.db, "t", table(w.db, "renamed"), ENVIRONMENT),
    "alter_table_with_cascade": lambda w: (w.db, "t", w.changed_table(), True),
    "alter_table_req": lambda w: (AlterTableRequest(None, w.db, "t", w.changed_table()),),
    "get_lock_materialization_rebuild": lambda w: (w.db, "t", w.txn()),
    "heartbeat_lock_materialization_rebuild": lambda w: (w.db, "t", w.txn()),
    # Partitions.
    "add_partition": lambda w: (w.partition("c", "3"),),
    "add_partition_with_environment_context": lambda w: (w.partition("c", "3"), ENVIRONMENT),
    "add_partitions": lambda w: ([w.partition("c", "3"), w.partition("d", "4")],),
    "add_partitions_pspec": _partition_specs,
    "add_partitions_req": lambda w: (AddPartitionsRequest(w.db, "p", [w.partition("c", "3")], False),),
    "append_partition": lambda w: (w.db, "p", ["c", "3"]),
    "append_partition_with_environment_context": lambda w: (w.db, "p", ["c", "3"], ENVIRONMENT),
    "append_partition_req": lambda w: (AppendPartitionsRequest(None, w.db, "p", None, ["c", "3"]),),
    "append_partition_by_name": lambda w: (w.db, "p", "ds=c/hr=3"),
    "append_partition_by_name_with_environment_context": lambda w: (w.db, "p", "ds=c/hr=3", ENVIRONMENT),
    "drop_partition": lambda w: (w.db, "p", ["a", "1"], True),
    "drop_partition_with_environment_context": lambda w: (w.db, "p", ["a", "1"], True, ENVIRONMENT),
    "drop_partition_req": lambda w: (DropPartitionRequest(None, w.db, "p", None, ["a", "1"], True),),
    "drop_partition_by_name": lambda w: (w.db, "p", "ds=a/hr=1", True),
    "drop_partition_by_name_with_environment_context": lambda w: (w.db, "p", "ds=a/hr=1", True, ENVIRONMENT),
    "drop_partitions_req": lambda w: (DropPartitionsRequest(w.db, "p", RequestPartsSpec(names=["ds=a/hr=1"]), True),),
    "alter_partition": lambda w: (w.db, "p", w.changed_partition()),
    "alter_partitions": lambda w: (w.db, "p", [w.changed_partition()]),
    "alter_partition_with_environment_context": lambda w: (w.db, "p", w.changed_partition(), ENVIRONMENT),
    "alter_partitions_with_environment_context": lambda w: (w.db, "p", [w.changed_partition()], ENVIRONMENT),
    "alter_partitions_req": lambda w: (AlterPartitionsRequest(None, w.db, "p", [w.changed_partition()]),),
    "rename_partition": lambda w: (w.db, "p", ["a", "1"], _renamed(w)),
    "rename_partition_req": lambda w: (RenamePartitionRequest(None, w.db, "p", ["a", "1"], _renamed(w)),),
    "exchange_partition": lambda w: ({"ds": "a", "hr": "1"}, w.db, "p", w.db, "q"),
    "exchange_partitions": lambda w: ({"ds": "a", "hr": "1"}, w.db, "p", w.db, "q"),
    "markPartitionForEvent": lambda w: (w.db, "p", {"ds": "a", "hr": "1"}, PartitionEventType.LOAD_DONE),
    # Indexes and constraints.
    "add_index": lambda w: (w.index(), w.index_table()),
    "alter_index": lambda w: w.after(w.make_index, w.db, "t", "i", w.index()),
    "drop_index_by_name": lambda w: w.after(w.make_index, w.db, "t", "i", True),
    "add_primary_key": lambda w: (AddPrimaryKeyRequest([w.primary_key()]),),
    "add_foreign_key": _foreign_key,
    "add_unique_constraint": lambda w: (
        AddUniqueConstraintRequest([SQLUniqueConstraint("hive", w.db, "t", "id", 1, "uk", True, False, False)]),
    ),
    "add_not_null_constraint": lambda w: (
        AddNotNullConstraintRequest([SQLNotNullConstraint("hive", w.db, "t", "id", "nn", True, False, False)]),
    ),
    "add_default_constraint": lambda w: (
        AddDefaultConstraintRequest([SQLDefaultConstraint("hive", w.db, "t", "id", "1", "dc", True, False, False)]),
    ),
    "add_check_constraint": lambda w: (
        AddCheckConstraintRequest([SQLCheckConstraint("hive", w.db, "t", "id", "id > 0", "cc", True, False, False)]),
    ),
    "drop_constraint": lambda w: w.after(
        lambda: w.client.add_primary_key(AddPrimaryKeyRequest([w.primary_key()])),
        DropConstraintRequest(w.db, "t", "pk_t"),
    ),
    # Statistics.
    "update_table_column_statistics": lambda w: (w.statistics(),),
    "update_partition_column_statistics": lambda w: (w.statistics("ds=a/hr=1"),),
    "update_table_column_statistics_req": lambda w: (w.statistics_v4(),),
    "update_partition_column_statistics_req": lambda w: (w.statistics_v4("ds=a/hr=1"),),
    "set_aggr_stats_for": lambda w: (SetPartitionsStatsRequest([w.statistics("ds=a/hr=1")]),),
    "delete_partition_column_statistics": lambda w: w.after(w.make_statistics, w.db, "p", "ds=a/hr=1", "id"),
    "delete_table_column_statistics": lambda w: w.after(w.make_statistics, w.db, "t", "id"),
    "delete_column_statistics_req": lambda w: w.after(
        w.make_statistics, DeleteColumnStatisticsRequest(None, w.db, "t", tableLevel=True)
    ),
    # Functions.
    "create_function": lambda w: (w.function(),),
    "drop_function": lambda w: w.after(w.make_function, w.db, "f"),
    "alter_function": lambda w: w.after(w.make_function, w.db, "f", w.function()),
    # Roles and privileges.
    "create_role": lambda w: (Role(w.db, 0, "ann"),),
    "drop_role": lambda w: w.after(w.make_role, w.db),
    "grant_role": lambda w: w.after(w.make_role, w.db, "bob", PrincipalType.USER, "ann", PrincipalType.USER, False),
    "revoke_role": _given_role,
    "grant_revoke_role": lambda w: (_role_grant(w),),
    "grant_privileges": lambda w: (w.privileges(),),
    "revoke_privileges": lambda w: w.after(w.make_privileges, w.privileges()),
    "grant_revoke_privileges": lambda w: (GrantRevokePrivilegeRequest(GrantRevokeType.GRANT, w.privileges()),),
    "refresh_privileges": lambda w: (
        HiveObjectRef(HiveObjectType.TABLE, w.db, "t", None, None),
        "SQL",
        GrantRevokePrivilegeRequest(GrantRevokeType.GRANT, w.privileges()),
    ),
    # Tokens.
    "get_delegation_token": lambda w: ("ann", "bob"),
    # Refused without Kerberos, once as ever.
    "renew_delegation_token": lambda w: ("token",),
    "cancel_delegation_token": lambda w: ("token",),
    "add_token": lambda w: (w.db, "token"),
    "remove_token": lambda w: w.after(lambda: w.client.add_token(w.db, "token"), w.db),
    "add_master_key": lambda w: ("secret",),
    "update_master_key": lambda w: (w.master_key(), "other"),
    "remove_master_key": lambda w: (w.master_key(),),
    # Transactions.
    "open_txns": lambda w: (OpenTxnRequest(3, "ann", "host"),),
    "abort_txn": lambda w: (AbortTxnRequest(w.txn()),),
    "abort_txns": lambda w: (AbortTxnsRequest([w.txn(), w.txn()]),),
    "commit_txn": lambda w: (CommitTxnRequest(w.txn()),),
    "heartbeat": lambda w: (HeartbeatRequest(w.lock()),),
    "heartbeat_txn_range": lambda w: (HeartbeatTxnRangeRequest(w.txn(), w.txn()),),
    "seed_txn_id": lambda w: (SeedTxnIdRequest(w.txn() + 100),),
    "repl_tbl_writeid_state": lambda w: (ReplTblWriteIdStateRequest(f"{w.db}.t:5:5::", "ann", "host", w.db, "t"),),
    "allocate_table_write_ids": lambda w: (AllocateTableWriteIdsRequest(w.db, "t", [w.txn()]),),
    "add_write_ids_to_min_history": lambda w: (w.txn(), {f"{w.db}.t": 1}),
    "seed_write_id": lambda w: (SeedTableWriteIdsRequest(w.db, "t", 7),),
    "add_dynamic_partitions": _dynamic_partitions,
    # Locks.
    "lock": lambda w: (w.lock_request(),),
    "check_lock": lambda w: (CheckLockRequest(w.lock()),),
    "unlock": lambda w: (UnlockRequest(w.lock()),),
    # Compactions.
    "compact": lambda w: (w.compaction_request(),),
    "compact2": lambda w: (w.compaction_request(),),
    "submit_for_cleanup": lambda w: (w.compaction_request(), _allocated(w)[1], w.txn()),
    "abort_Compactions": lambda w: (AbortCompactionRequest([w.queued()]),),
    "find_next_compact": lambda w: w.after(w.queued, "worker"),
    "find_next_compact2": lambda w: w.after(w.queued, FindNextCompactRequest("worker")),
    "update_compactor_state": lambda w: (w.worked_on(), w.txn()),
    "mark_cleaned": lambda w: (w.compacted(),),
    "mark_compacted": lambda w: (w.worked_on(),),
    "mark_failed": lambda w: (w.worked_on(),),
    "mark_refused": lambda w: (w.worked_on(),),
    "set_hadoop_jobid": lambda w: ("job_1", w.worked_on().id),
    # Events and files.
    "fire_listener_event": lambda w: (
        FireEventRequest(True, FireEventRequestData(insertData=InsertEventRequestData(["file:/a"])), w.db, "t"),
    ),
    "add_write_notification_log": lambda w: (w.write_notification(),),
    "add_write_notification_log_in_batch": lambda w: (
        WriteNotificationLogBatchRequest("hive", w.db, "t", [w.write_notification()]),
    ),
    "cm_recycle": lambda w: (CmRecycleRequest("file:/nowhere", False),),
    "put_file_metadata": lambda w: (PutFileMetadataRequest([1], [b"x"]),),
    "clear_file_metadata": lambda w: (ClearFileMetadataRequest([1]),),
    "cache_file_metadata": lambda w: (CacheFileMetadataRequest(w.db, "t"),),
    # Locks of others, and leases.
    "force_release_lock": lambda w: (w.lock(), "its holder is gone"),
    "grab_lease": lambda w: (w.lease_objects(), 60, 0),
    "extend_lease": lambda w: (w.lease(), [], 90),
    "drop_lease": lambda w: (w.lease(), []),
    "force_drop_lease": lambda w: w.after(w.lease, w.lease_objects()),
}
"""By method. Oneway methods are missing: nobody waits for a reply that could be lost."""
