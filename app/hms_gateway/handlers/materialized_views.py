"""Methods on materialized views: what they were built from, and whether that has changed (3.1 and later)."""

from hms_gateway.catalog.arguments import in_catalog, table_in, with_fields
from hms_gateway.catalog.tables.materialized_views import MaterializedViewService
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.ports.registry import ChangeCounts
from hms_gateway.metastore.vocabulary.names import DEFAULT_CATALOG
from hms_gateway.rpc.call import Call
from hms_gateway.structs import CreationMetadata, Materialization, Table, UpdateTransactionalStatsRequest
from hms_gateway.txn.services.materialized_views import ViewFreshnessService


class MaterializedViews:
    def __init__(self, views: MaterializedViewService, freshness: ViewFreshnessService) -> None:
        self._views = views
        self._freshness = freshness

    def get_all_materialized_view_objects_for_rewriting(self, call: Call) -> list[Table]:
        return [with_fields(table, catName=DEFAULT_CATALOG) for table in self._views.objects_for_rewriting()]

    def get_materialized_views_for_rewriting(self, call: Call, db_name: str) -> list[str]:
        return self._views.names_for_rewriting(in_catalog(None, db_name))

    def get_materialization_invalidation_info(
        self, call: Call, creation_metadata: CreationMetadata, validTxnList: str
    ) -> Materialization:
        given = required(creation_metadata, "creation metadata")
        tables = [required(name, "name of a table used") for name in given.tablesUsed or ()]
        found = self._freshness.invalidation(tables, given.validTxnList, validTxnList)
        return Materialization(found.is_changed, found.is_compacted)

    def update_creation_metadata(
        self, call: Call, catName: str, dbname: str, tbl_name: str, creation_metadata: CreationMetadata
    ) -> None:
        self._views.set_creation_metadata(table_in(catName, dbname, tbl_name), creation_metadata)

    def update_transaction_statistics(self, call: Call, req: UpdateTransactionalStatsRequest) -> None:
        request = required(req, "req")
        counts = ChangeCounts(request.insertCount or 0, request.updatedCount or 0, request.deletedCount or 0)
        self._views.add_changes(request.tableId, counts)
