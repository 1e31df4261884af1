"""Methods that read catalogs; there is one (semantics §1.4)."""

from app.metastore.errors import required
from app.metastore.names import DEFAULT_CATALOG, normalize
from app.rpc.call import Call
from app.structs import Catalog, GetCatalogRequest, GetCatalogResponse, GetCatalogsResponse, NoSuchObjectException


class Catalogs:
    def __init__(self, warehouse_root: str) -> None:
        self._catalog = Catalog(DEFAULT_CATALOG, "Default catalog for Hive", warehouse_root)

    def get_catalog(self, call: Call, catName: GetCatalogRequest) -> GetCatalogResponse:
        name = required(required(catName, "catName").name, "catalog name")
        if normalize(name) != DEFAULT_CATALOG:
            raise NoSuchObjectException(f"No catalog {name}")
        return GetCatalogResponse(self._catalog)

    def get_catalogs(self, call: Call) -> GetCatalogsResponse:
        return GetCatalogsResponse([DEFAULT_CATALOG])
