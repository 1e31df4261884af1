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
                "get_materialization_invalidation_info update_creation_metadata",
            ),
            *_because(
                "write notifications and statistics of transactions: not implemented yet",
                "get_all_write_event_info update_transaction_statistics",
            ),
            *_because(
                "compaction: which columns have statistics is not told yet",
                "find_columns_with_stats",
            ),
            *_because(
                "serdes, triggers and schema versions: none of the known clients calls them",
                "add_serde get_serde get_triggers_for_resourceplan get_schema_latest_version get_schema_all_versions"
                " get_schemas_by_cols",
            ),
        ]
    )
)
