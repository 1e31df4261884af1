"""Iceberg's REST catalog over the rows of the metastore: metadata files as values, rows, operations, routes.

The names are here, since a gateway that is never asked loads nothing else of it.
"""

from typing import Final

# Of the operations of the OpenAPI document, as logs and metrics have them.
METHODS: Final = frozenset(
    f"iceberg.{name}"
    for name in (
        *("getConfig", "getToken", "listNamespaces", "createNamespace", "loadNamespaceMetadata", "namespaceExists"),
        *("dropNamespace", "updateProperties", "registerTable", "registerView", "listTables", "createTable"),
        *("loadTable", "updateTable", "tableExists", "dropTable", "unregisterTable", "reportMetrics", "renameTable"),
        *("commitTransaction", "listViews", "createView", "loadView", "replaceView", "viewExists", "dropView"),
        "renameView",
    )
)
