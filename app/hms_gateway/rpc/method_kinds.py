"""Which methods change something: they are repeated only under a key (design D11, clients §4.3).

The IDL does not say, the names do. A method nobody has classified counts as one that changes.
"""

from functools import lru_cache

_READING_PREFIXES = ("get_", "getC", "getM", "getN", "getO", "getS", "getV", "list_", "show_", "partition_name_")
_READING = frozenset(
    {
        "aliveSince",
        "fetch_partition_names_req",
        "find_columns_with_stats",
        "isPartitionMarkedForEvent",
        "set_ugi",
        "translate_table_dryrun",
        "validate_resource_plan",
    }
)
# Names that look like reading and are not: both hand out something that the next caller does not get.
_CHANGING = frozenset({"get_delegation_token", "get_lock_materialization_rebuild"})
_CHANGING_PREFIXES = (
    "abort_",
    "add_",
    "allocate_",
    "alter_",
    "append_",
    "cache_",
    "cancel_",
    "check_lock",
    "clear_",
    "cm_recycle",
    "commit_",
    "compact",
    "create_",
    "delete_",
    "drop_",
    "exchange_",
    "extend_",
    "find_next_compact",
    "fire_",
    "flushCache",
    "force_",
    "grab_",
    "grant_",
    "heartbeat",
    "lock",
    "map_schema",
    "mark",
    "open_",
    "put_",
    "refresh_",
    "reinitialize",
    "remove_",
    "rename_",
    "renew_",
    "repl_",
    "revoke_",
    "scheduled_query_",
    "seed_",
    "setMetaConf",
    "setOption",
    "set_aggr",
    "set_hadoop",
    "set_properties",
    "set_schema",
    "shutdown",
    "submit_",
    "truncate_",
    "unlock",
    "update_",
)


@lru_cache(maxsize=1024)
def changes_something(method: str) -> bool:
    """Whether repeating a call of `method` could do something twice."""
    return is_known_to_change(method) or not is_known_to_read(method)


def is_known_to_read(method: str) -> bool:
    return method not in _CHANGING and (method in _READING or method.startswith(_READING_PREFIXES))


def is_known_to_change(method: str) -> bool:
    return method in _CHANGING or method.startswith(_CHANGING_PREFIXES)
