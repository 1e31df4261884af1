"""One class for each aggregate, one method for each IDL method; and the list of what nobody handles yet."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType


def _because(reason: str, methods: str) -> Iterator[tuple[str, str]]:
    return ((name, reason) for name in methods.split())


# Methods without a handler answer as unknown methods, which clients take as a sign to try another one. The list only
# shrinks.
UNSUPPORTED: Mapping[str, str] = MappingProxyType(
    dict(
        [
            *_because(
                "materialized views: their freshness needs transactions, which are not implemented yet",
                "get_materialization_invalidation_info update_creation_metadata get_lock_materialization_rebuild"
                " heartbeat_lock_materialization_rebuild",
            ),
            *_because(
                "constraints: not implemented yet",
                "get_primary_keys get_foreign_keys get_unique_constraints get_not_null_constraints"
                " get_default_constraints get_check_constraints get_all_table_constraints add_primary_key"
                " add_foreign_key add_unique_constraint add_not_null_constraint add_default_constraint"
                " add_check_constraint drop_constraint",
            ),
            *_because(
                "roles and privileges: not implemented yet",
                "create_role drop_role get_role_names grant_role revoke_role list_roles grant_revoke_role"
                " get_principals_in_role get_role_grants_for_principal get_privilege_set list_privileges"
                " grant_privileges revoke_privileges grant_revoke_privileges refresh_privileges",
            ),
            *_because(
                "transactions and write ids: not implemented yet",
                "update_transaction_statistics get_open_txns get_open_txns_req get_open_txns_info abort_txn abort_txns"
                " commit_txn"
                " get_latest_txnid_in_conflict heartbeat_txn_range seed_txn_id get_all_write_event_info"
                " repl_tbl_writeid_state get_valid_write_ids allocate_table_write_ids"
                " get_max_allocated_table_write_id add_write_ids_to_min_history seed_write_id"
                " add_dynamic_partitions",
            ),
            *_because(
                "compaction: not implemented yet",
                "compact compact2 show_compact submit_for_cleanup abort_Compactions"
                " get_latest_committed_compaction_info find_next_compact find_next_compact2 update_compactor_state"
                " find_columns_with_stats mark_cleaned mark_compacted mark_failed mark_refused set_hadoop_jobid",
            ),
            *_because(
                "serdes, triggers and schema versions: none of the known clients calls them",
                "add_serde get_serde get_triggers_for_resourceplan get_schema_latest_version get_schema_all_versions"
                " get_schemas_by_cols",
            ),
            *_because(
                "leases: not implemented yet",
                "grab_lease list_lease extend_lease drop_lease force_drop_lease",
            ),
        ]
    )
)
