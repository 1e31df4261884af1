"""Each changing method under implicit locks: another holds what it changes, or it changes nothing that can be held."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.composition.main import build_metastore
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.idl.method_facts import method_facts
from hms_gateway.rpc.structs import (
    AddCheckConstraintRequest,
    AddDefaultConstraintRequest,
    AddForeignKeyRequest,
    AddNotNullConstraintRequest,
    AddPartitionsRequest,
    AddPrimaryKeyRequest,
    AddUniqueConstraintRequest,
    AlterDatabaseRequest,
    AlterPartitionsRequest,
    AlterTableRequest,
    AppendPartitionsRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CreateDatabaseRequest,
    CreateTableRequest,
    CreationMetadata,
    Database,
    DeleteColumnStatisticsRequest,
    DropConstraintRequest,
    DropDatabaseRequest,
    DropPartitionRequest,
    DropPartitionsRequest,
    DropTableRequest,
    EnvironmentContext,
    Index,
    InvalidOperationException,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    LongColumnStatsData,
    MetaException,
    Partition,
    PartitionListComposingSpec,
    PartitionSpec,
    RenamePartitionRequest,
    RequestPartsSpec,
    SerDeInfo,
    SetPartitionsStatsRequest,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
    StorageDescriptor,
    TruncateTableRequest,
)
from hms_gateway.runtime.settings import Settings
from tests.handlers.peers import Peer
from tests.support.catalog import columns, new_table

# Transactions, locks, leases, roles, grants, functions, resource plans and what else has no place in a table of locks.
OF_NO_OBJECT = """
    abort_Compactions abort_txn abort_txns add_dynamic_partitions add_master_key add_replication_metrics
    add_runtime_stats add_schema_version add_serde add_token add_write_ids_to_min_history add_write_notification_log
    add_write_notification_log_in_batch allocate_table_write_ids alter_catalog alter_function alter_ischema
    alter_resource_plan alter_wm_pool alter_wm_trigger cache_file_metadata cancel_delegation_token check_lock
    clear_file_metadata cm_recycle commit_txn compact compact2 create_catalog create_function create_ischema
    create_or_drop_wm_trigger_to_pool_mapping create_or_update_wm_mapping create_resource_plan create_role create_type
    create_wm_pool create_wm_trigger drop_catalog drop_function drop_ischema drop_lease drop_resource_plan drop_role
    drop_schema_version drop_type drop_wm_mapping drop_wm_pool drop_wm_trigger extend_lease find_next_compact
    find_next_compact2 fire_listener_event flushCache force_drop_lease force_release_lock get_delegation_token
    get_lock_materialization_rebuild grab_lease grant_privileges grant_revoke_privileges grant_revoke_role grant_role
    heartbeat heartbeat_lock_materialization_rebuild heartbeat_txn_range lock map_schema_version_to_serde mark_cleaned
    mark_compacted mark_failed mark_refused markPartitionForEvent open_txns put_file_metadata refresh_privileges
    reinitialize remove_master_key remove_token renew_delegation_token repl_tbl_writeid_state revoke_privileges
    revoke_role scheduled_query_maintenance scheduled_query_poll scheduled_query_progress seed_txn_id seed_write_id
    set_hadoop_jobid set_properties set_schema_version_state setMetaConf setOption shutdown submit_for_cleanup unlock
    update_compactor_state update_master_key update_transaction_statistics
"""
T, PLACE, CONTEXT = ("d", "t"), "file:/elsewhere", EnvironmentContext({})


def partition(value: str = "3", location: str | None = None) -> Partition:
    descriptor = StorageDescriptor(cols=columns("a int"), location=location, serdeInfo=SerDeInfo())
    return Partition([value], *T, sd=descriptor)


def statistics(part_name: str | None = None) -> ColumnStatistics:
    data = ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=1, numDVs=2))
    described = ColumnStatisticsDesc(part_name is None, "d", "u" if part_name is None else "t", part_name)
    return ColumnStatistics(described, [ColumnStatisticsObj("a", "int", data)])


TABLE = new_table("t", "d", keys=columns("p string"), parameters={"a": "1"})
NEW_TABLE = new_table("v", "d")
INDEX = Index(
    "i", "handler", "d", "u", 0, 0, "i_table", StorageDescriptor(cols=columns("a int"), serdeInfo=SerDeInfo()), {}
)
REFUSED: dict[str, tuple[Any, ...]] = {
    "add_check_constraint": (
        AddCheckConstraintRequest([SQLCheckConstraint("hive", "d", "u", "a", "a > 0", "c", True, True, True)]),
    ),
    "add_default_constraint": (
        AddDefaultConstraintRequest([SQLDefaultConstraint("hive", "d", "u", "a", "0", "c", True, True, True)]),
    ),
    "add_foreign_key": (
        AddForeignKeyRequest([SQLForeignKey("d", "k", "a", "d", "u", "a", 1, 0, 0, "f", "pk", True, True, True)]),
    ),
    "add_index": (INDEX, new_table("i_table", "d", table_type="INDEX_TABLE")),
    "add_not_null_constraint": (
        AddNotNullConstraintRequest([SQLNotNullConstraint("hive", "d", "u", "a", "c", True, True, True)]),
    ),
    "add_partition": (partition(),),
    "add_partition_with_environment_context": (partition(), CONTEXT),
    "add_partitions": ([partition()],),
    "add_partitions_pspec": ([PartitionSpec(*T, "", partitionList=PartitionListComposingSpec([partition()]))],),
    "add_partitions_req": (AddPartitionsRequest(*T, [partition()], False),),
    "add_primary_key": (AddPrimaryKeyRequest([SQLPrimaryKey("d", "u", "a", 1, "k", True, True, True)]),),
    "add_unique_constraint": (
        AddUniqueConstraintRequest([SQLUniqueConstraint("hive", "d", "u", "a", 1, "c", True, True, True)]),
    ),
    "alter_database": ("d", Database("d", "changed")),
    "alter_database_req": (AlterDatabaseRequest("d", Database("d", "changed")),),
    "alter_index": ("d", "u", "held", INDEX),
    "alter_partition": (*T, partition("1", PLACE)),
    "alter_partition_with_environment_context": (*T, partition("1", PLACE), CONTEXT),
    "alter_partitions": (*T, [partition("1", PLACE)]),
    "alter_partitions_req": (AlterPartitionsRequest(None, *T, [partition("1", PLACE)]),),
    "alter_partitions_with_environment_context": (*T, [partition("1", PLACE)], CONTEXT),
    "alter_table": (*T, TABLE),
    "alter_table_req": (AlterTableRequest(None, *T, TABLE),),
    "alter_table_with_cascade": (*T, TABLE, False),
    "alter_table_with_environment_context": (*T, TABLE, CONTEXT),
    "append_partition": (*T, ["3"]),
    "append_partition_by_name": (*T, "p=3"),
    "append_partition_by_name_with_environment_context": (*T, "p=3", CONTEXT),
    "append_partition_req": (AppendPartitionsRequest(None, *T, partVals=["3"]),),
    "append_partition_with_environment_context": (*T, ["3"], CONTEXT),
    # Of another name the locks of others cannot be; of this one they were there before it.
    "create_database": (Database("new"),),
    "create_database_req": (CreateDatabaseRequest("new"),),
    "create_table": (NEW_TABLE,),
    "create_table_req": (CreateTableRequest(NEW_TABLE),),
    "create_table_with_constraints": (NEW_TABLE, [], [], [], [], [], []),
    "create_table_with_environment_context": (NEW_TABLE, CONTEXT),
    "delete_column_statistics_req": (DeleteColumnStatisticsRequest(None, "d", "u", None, ["a"], tableLevel=True),),
    "delete_partition_column_statistics": (*T, "p=1", "a", "hive"),
    "delete_table_column_statistics": ("d", "u", "a", "hive"),
    "drop_constraint": (DropConstraintRequest("d", "k", "pk"),),
    "drop_database": ("d", False, True),
    "drop_database_req": (DropDatabaseRequest("d", None, False, False, True),),
    "drop_index_by_name": ("d", "u", "held", False),
    "drop_partition": (*T, ["1"], False),
    "drop_partition_by_name": (*T, "p=1", False),
    "drop_partition_by_name_with_environment_context": (*T, "p=1", False, CONTEXT),
    "drop_partition_req": (DropPartitionRequest(None, *T, partVals=["1"]),),
    "drop_partition_with_environment_context": (*T, ["1"], False, CONTEXT),
    "drop_partitions_req": (DropPartitionsRequest(*T, RequestPartsSpec(names=["p=1"])),),
    "drop_table": (*T, False),
    "drop_table_req": (DropTableRequest(None, *T),),
    "drop_table_with_environment_context": (*T, False, CONTEXT),
    "exchange_partition": ({"p": "1"}, *T, "d", "x"),
    "exchange_partitions": ({"p": "1"}, *T, "d", "x"),
    "rename_partition": (*T, ["1"], partition("4", PLACE)),
    "rename_partition_req": (RenamePartitionRequest(None, *T, ["1"], partition("4", PLACE)),),
    "set_aggr_stats_for": (SetPartitionsStatsRequest([statistics("p=1")]),),
    "truncate_table": (*T, None),
    "truncate_table_req": (TruncateTableRequest(*T),),
    "update_creation_metadata": ("hive", "d", "m", CreationMetadata("hive", "d", "m", {"d.u"})),
    "update_partition_column_statistics": (statistics("p=1"),),
    "update_partition_column_statistics_req": (SetPartitionsStatsRequest([statistics("p=1")]),),
    "update_table_column_statistics": (statistics(),),
    "update_table_column_statistics_req": (SetPartitionsStatsRequest([statistics()]),),
}


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Peer, Peer]]:
    """Ann holds the databases d and new, of which d has one of everything."""
    folder: Path = tmp_path_factory.mktemp("locked")
    settings = Settings(data_dir=folder, file_systems={"file": "ignore"}, locks_implicit="deny")
    metastore = build_metastore(settings)
    ann, bob = (Peer(metastore, metastore.codecs.binary, Dialect.HIVE_2_3, name) for name in ("ann", "bob"))
    ann.ask("create_database", Database("d"))
    for name in ("t", "x"):
        ann.ask("create_table", new_table(name, "d", keys=columns("p string")))
    for name in ("u", "k"):
        ann.ask("create_table", new_table(name, "d"))
    ann.ask("create_table", new_table("m", "d", table_type="MATERIALIZED_VIEW"))
    ann.ask("add_partition", partition("1"))
    ann.ask("update_table_column_statistics", statistics())
    ann.ask("update_partition_column_statistics", statistics("p=1"))
    ann.ask("add_primary_key", AddPrimaryKeyRequest([SQLPrimaryKey("d", "k", "a", 1, "pk", True, True, True)]))
    held = Index("held", "handler", "d", "u", 0, 0, "held_table", INDEX.sd, {})
    ann.ask("add_index", held, new_table("held_table", "d", table_type="INDEX_TABLE"))
    components = [LockComponent(LockType.EXCLUSIVE, LockLevel.DB, name) for name in ("d", "new")]
    assert ann.ask("lock", LockRequest(components, 0, "ann", "etl-9")).state == LockState.ACQUIRED
    yield ann, bob
    metastore.store.close()


def test_every_changing_method_is_here() -> None:
    changing = {name for name, facts in method_facts().items() if facts.changes}
    assert REFUSED.keys() | set(OF_NO_OBJECT.split()) == changing
    assert REFUSED.keys().isdisjoint(OF_NO_OBJECT.split())


@pytest.mark.slow
@pytest.mark.parametrize("method", REFUSED)
def test_a_change_of_what_another_holds_is_refused(peers: tuple[Peer, Peer], method: str) -> None:
    _, bob = peers
    before = bob.ask("get_current_notificationEventId").eventId
    with pytest.raises((InvalidOperationException, MetaException), match="is locked: user ann on etl-9 holds"):
        bob.ask(method, *REFUSED[method])
    assert bob.ask("get_current_notificationEventId").eventId == before
