"""Methods on catalogs. There is one, and it stays as it is (semantics §1.4, §10.3)."""

from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.vocabulary.names import DEFAULT_CATALOG, InvalidName, check_catalog_name, normalize
from hms_gateway.rpc.call import Call
from hms_gateway.structs import (
    AlreadyExistsException,
    AlterCatalogRequest,
    Catalog,
    CreateCatalogRequest,
    DropCatalogRequest,
    GetCatalogRequest,
    GetCatalogResponse,
    GetCatalogsResponse,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
)


class Catalogs:
    def __init__(self, warehouse_root: str) -> None:
        self._catalog = Catalog(DEFAULT_CATALOG, "Default catalog for Hive", warehouse_root)

    def create_catalog(self, call: Call, catalog: CreateCatalogRequest) -> None:
        name = required(required(required(catalog, "catalog").catalog, "catalog").name, "catalog name")
        if normalize(name) == DEFAULT_CATALOG:
            raise AlreadyExistsException(f"Catalog {name} already exists")
        try:
            check_catalog_name(name)
        except InvalidName as error:
            raise InvalidObjectException(str(error)) from error
        raise MetaException(f"Can not create catalog {name}: this server has one catalog, {DEFAULT_CATALOG}")

    def alter_catalog(self, call: Call, rqst: AlterCatalogRequest) -> None:
        """Naming the catalog as it is changes nothing and is fine."""
        request = required(rqst, "rqst")
        _check_exists(request.name)
        new = required(request.newCat, "newCat")
        before = (DEFAULT_CATALOG, self._catalog.description, self._catalog.locationUri)
        after = (
            normalize(required(new.name, "catalog name")),
            before[1] if new.description is None else new.description,
            before[2] if new.locationUri is None else new.locationUri,
        )
        if after != before:
            raise InvalidOperationException(f"Catalog {DEFAULT_CATALOG} cannot be changed")

    def get_catalog(self, call: Call, catName: GetCatalogRequest) -> GetCatalogResponse:
        _check_exists(required(catName, "catName").name)
        return GetCatalogResponse(self._catalog)

    def get_catalogs(self, call: Call) -> GetCatalogsResponse:
        return GetCatalogsResponse([DEFAULT_CATALOG])

    def drop_catalog(self, call: Call, catName: DropCatalogRequest) -> None:
        _check_exists(required(catName, "catName").name)
        raise MetaException("Can not drop default catalog")


def _check_exists(name: str | None) -> None:
    if normalize(required(name, "catalog name")) != DEFAULT_CATALOG:
        raise NoSuchObjectException(f"No catalog {name}")
