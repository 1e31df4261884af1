"""Which generations of clients know a method."""

from collections.abc import Mapping

from hms_gateway.structs import Method

# The IDL is the union of the dialects and does not say who came when; these lists do (semantics, appendix B).
_ONLY_2_3 = "add_index alter_index drop_index_by_name get_index_by_name get_indexes get_index_names"
_SINCE_3_1 = """
    get_metastore_db_uuid create_catalog alter_catalog get_catalog get_catalogs drop_catalog truncate_table
    get_materialized_views_for_rewriting get_materialization_invalidation_info update_creation_metadata
    get_lock_materialization_rebuild heartbeat_lock_materialization_rebuild get_partition_values
    get_unique_constraints get_not_null_constraints get_default_constraints get_check_constraints
    add_unique_constraint add_not_null_constraint add_default_constraint add_check_constraint refresh_privileges
    repl_tbl_writeid_state get_valid_write_ids allocate_table_write_ids get_notification_events_count cm_recycle
    add_serde get_serde get_triggers_for_resourceplan get_schema_latest_version get_schema_all_versions
    get_schemas_by_cols create_ischema alter_ischema get_ischema drop_ischema add_schema_version get_schema_version
    drop_schema_version map_schema_version_to_serde set_schema_version_state create_resource_plan get_resource_plan
    get_active_resource_plan get_all_resource_plans alter_resource_plan validate_resource_plan drop_resource_plan
    create_wm_trigger alter_wm_trigger drop_wm_trigger create_wm_pool alter_wm_pool drop_wm_pool
    create_or_update_wm_mapping drop_wm_mapping create_or_drop_wm_trigger_to_pool_mapping add_runtime_stats
    get_runtime_stats
"""
_SINCE_4 = """
    get_properties set_properties create_database_req get_database_req get_databases_req alter_database_req
    drop_database_req get_fields_req get_schema_req create_table_req translate_table_dryrun drop_table_req
    truncate_table_req get_tables_ext alter_table_req get_all_materialized_view_objects_for_rewriting
    append_partition_req get_partition_req get_partitions_req get_partitions_ps_with_auth_req
    get_partition_names_ps_req get_partitions_by_filter_req get_partitions_spec_by_expr get_partition_names_req
    fetch_partition_names_req get_partitions_by_names_req get_partitions_with_specs drop_partition_req
    alter_partitions_req rename_partition_req get_all_table_constraints update_table_column_statistics_req
    update_partition_column_statistics_req delete_column_statistics_req update_transaction_statistics
    get_functions_req get_open_txns_req get_latest_txnid_in_conflict seed_txn_id get_all_write_event_info
    get_max_allocated_table_write_id add_write_ids_to_min_history seed_write_id submit_for_cleanup abort_Compactions
    get_latest_committed_compaction_info find_next_compact find_next_compact2 update_compactor_state
    find_columns_with_stats mark_cleaned mark_compacted mark_failed mark_refused set_hadoop_jobid
    add_write_notification_log add_write_notification_log_in_batch scheduled_query_poll scheduled_query_maintenance
    scheduled_query_progress get_scheduled_query add_replication_metrics get_replication_metrics
"""
ONLY_2_3, SINCE_3_1, SINCE_4 = (frozenset(names.split()) for names in (_ONLY_2_3, _SINCE_3_1, _SINCE_4))

# Methods of ours, which Hive does not have: by service, the name of their generation and the title of their section.
OWN_SERVICES: Mapping[str, tuple[str, str]] = {
    "HiveLease": ("lease", "Leases"),
    "HiveLock": ("lock", "Locks, for operators"),
}


def dialects_of(method: Method) -> str:
    """Which generations of clients know `method`."""
    name = method.name
    if method.service in OWN_SERVICES:
        return OWN_SERVICES[method.service][0]
    if name in ONLY_2_3:
        return "2.3"
    if name in SINCE_4:
        return "4"
    return "3.1, 4" if name in SINCE_3_1 else "2.3, 3.1, 4"
