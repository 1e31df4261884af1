"""Exceptions that Hive's IDL declares and its metastore does not throw, with the reason.

`test_coverage.py` fails for an exception that is neither recorded nor here, and for one that is both.
"""

from collections.abc import Iterator, Mapping

_REASONS: Mapping[str, Mapping[str, str]] = {
    "never constructed anywhere in its server": {
        "InvalidInputException": "delete_partition_column_statistics delete_table_column_statistics"
        " exchange_partition exchange_partitions get_partition_column_statistics get_table_column_statistics"
        " set_aggr_stats_for"
        " update_partition_column_statistics update_table_column_statistics",
        "UnknownPartitionException": "isPartitionMarkedForEvent markPartitionForEvent",
        "UnknownDBException": "get_fields get_fields_with_environment_context get_schema"
        " get_schema_with_environment_context isPartitionMarkedForEvent markPartitionForEvent",
        "NoSuchLockException": "unlock",
    },
    "thrown inside, where another exception, or none that is declared, takes its place": {
        "NoSuchObjectException": "add_foreign_key add_primary_key alter_database drop_constraint"
        " drop_type"
        " exchange_partition exchange_partitions get_partitions_with_auth isPartitionMarkedForEvent"
        " markPartitionForEvent update_master_key",
        "InvalidObjectException": "exchange_partition exchange_partitions get_partition_column_statistics"
        " get_table_column_statistics update_table_column_statistics delete_table_column_statistics",
        "InvalidOperationException": "alter_function",
        "NoSuchTxnException": "abort_txns",
    },
    "what is missing is an empty answer": {
        "NoSuchObjectException": "get_foreign_keys get_indexes get_primary_keys",
    },
    "a database that is missing is an invalid object": {
        "NoSuchObjectException": "create_table create_table_with_constraints create_table_with_environment_context",
    },
    "the locks of a transaction end with it, so one that can be checked has an open transaction": {
        "NoSuchTxnException": "check_lock",
        "TxnAbortedException": "check_lock",
    },
    "only a setting makes values invalid": {
        "MetaException": "partition_name_has_valid_characters",
    },
    "only when its own database fails: null names end in an internal error, or are nobody's": {
        "MetaException": "add_master_key alter_database delete_table_column_statistics drop_constraint drop_function"
        " get_all_databases get_all_functions get_database get_partition_names get_partitions get_partitions_pspec"
        " get_primary_keys get_privilege_set get_role_names get_table_column_statistics get_table_meta"
        " get_table_objects_by_name get_table_objects_by_name_req get_table_req get_table_statistics_req"
        " grant_privileges grant_revoke_privileges grant_revoke_role list_privileges list_roles partition_name_to_spec"
        " partition_name_to_vals revoke_privileges revoke_role set_ugi",
    },
}


def unreached() -> Iterator[tuple[str, str]]:
    """Method and exception."""
    for of_reason in _REASONS.values():
        for exception, methods in of_reason.items():
            for method in methods.split():
                yield method, exception
