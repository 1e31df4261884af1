"""Methods on constraints: the IDL's methods in its order, each one call of the service."""

from collections.abc import Sequence
from typing import Any, TypeVar

from hms_gateway.catalog.arguments import in_catalog, is_newer, table_in, with_fields
from hms_gateway.catalog.tables.constraints import ConstraintService
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.ports.values import ConstraintKind
from hms_gateway.metastore.vocabulary.names import DEFAULT_CATALOG
from hms_gateway.rpc.call import Call, Uncacheable
from hms_gateway.structs import (
    AddCheckConstraintRequest,
    AddDefaultConstraintRequest,
    AddForeignKeyRequest,
    AddNotNullConstraintRequest,
    AddPrimaryKeyRequest,
    AddUniqueConstraintRequest,
    AllTableConstraintsRequest,
    AllTableConstraintsResponse,
    CheckConstraintsRequest,
    CheckConstraintsResponse,
    DefaultConstraintsRequest,
    DefaultConstraintsResponse,
    DropConstraintRequest,
    ForeignKeysRequest,
    ForeignKeysResponse,
    NotNullConstraintsRequest,
    NotNullConstraintsResponse,
    PrimaryKeysRequest,
    PrimaryKeysResponse,
    SQLAllTableConstraints,
    UniqueConstraintsRequest,
    UniqueConstraintsResponse,
)

T = TypeVar("T")

_DATABASE_FIELDS = ("table_db", "fktable_db", "pktable_db")


class Constraints:
    """Kinds that came with 3.1 always say the catalog, those of 2.3 to newer callers only."""

    def __init__(self, constraints: ConstraintService) -> None:
        self._constraints = constraints

    def get_primary_keys(self, call: Call, request: PrimaryKeysRequest) -> PrimaryKeysResponse:
        request = required(request, "request")
        table = table_in(request.catName, request.db_name, request.tbl_name)
        keys = self._constraints.of_table(table, ConstraintKind.PRIMARY_KEY)
        if is_newer(call, request.db_name) or request.catName is not None:
            keys = _in_default_catalog(keys)
        return PrimaryKeysResponse(primaryKeys=keys)

    def get_foreign_keys(
        self, call: Call, request: ForeignKeysRequest
    ) -> ForeignKeysResponse | Uncacheable[ForeignKeysResponse]:
        """2.3 asks whose keys; newer callers may ask for all that refer to a table."""
        request = required(request, "request")
        newer = is_newer(call, request.foreign_db_name) or request.catName is not None
        if not newer:
            required(request.foreign_db_name, "foreign_db_name")
            required(request.foreign_tbl_name, "foreign_tbl_name")
        keys = self._constraints.foreign_keys(
            table_in(request.catName, request.parent_db_name, request.parent_tbl_name),
            table_in(request.catName, request.foreign_db_name, request.foreign_tbl_name),
        )
        response = ForeignKeysResponse(foreignKeys=_in_default_catalog(keys) if newer else keys)
        return _of_two_tables(response) if keys else response

    def get_unique_constraints(self, call: Call, request: UniqueConstraintsRequest) -> UniqueConstraintsResponse:
        return UniqueConstraintsResponse(uniqueConstraints=self._of_kind(request, ConstraintKind.UNIQUE))

    def get_not_null_constraints(self, call: Call, request: NotNullConstraintsRequest) -> NotNullConstraintsResponse:
        return NotNullConstraintsResponse(notNullConstraints=self._of_kind(request, ConstraintKind.NOT_NULL))

    def get_default_constraints(self, call: Call, request: DefaultConstraintsRequest) -> DefaultConstraintsResponse:
        return DefaultConstraintsResponse(defaultConstraints=self._of_kind(request, ConstraintKind.DEFAULT))

    def get_check_constraints(self, call: Call, request: CheckConstraintsRequest) -> CheckConstraintsResponse:
        return CheckConstraintsResponse(checkConstraints=self._of_kind(request, ConstraintKind.CHECK))

    def get_all_table_constraints(
        self, call: Call, request: AllTableConstraintsRequest
    ) -> AllTableConstraintsResponse | Uncacheable[AllTableConstraintsResponse]:
        request = required(request, "request")
        found = self._constraints.all_of_table(table_in(request.catName, request.dbName, request.tblName))
        lists: dict[str, Any] = {
            field.name: _in_default_catalog(getattr(found, field.name)) for field in found.definition.fields
        }
        response = AllTableConstraintsResponse(allTableConstraints=SQLAllTableConstraints(**lists))
        return _of_two_tables(response) if lists["foreignKeys"] else response

    def add_primary_key(self, call: Call, req: AddPrimaryKeyRequest) -> None:
        self._constraints.add(plain(required(req, "req").primaryKeyCols))

    def add_foreign_key(self, call: Call, req: AddForeignKeyRequest) -> None:
        self._constraints.add(plain(required(req, "req").foreignKeyCols))

    def add_unique_constraint(self, call: Call, req: AddUniqueConstraintRequest) -> None:
        self._constraints.add(plain(required(req, "req").uniqueConstraintCols))

    def add_not_null_constraint(self, call: Call, req: AddNotNullConstraintRequest) -> None:
        self._constraints.add(plain(required(req, "req").notNullConstraintCols))

    def add_default_constraint(self, call: Call, req: AddDefaultConstraintRequest) -> None:
        self._constraints.add(plain(required(req, "req").defaultConstraintCols))

    def add_check_constraint(self, call: Call, req: AddCheckConstraintRequest) -> None:
        self._constraints.add(plain(required(req, "req").checkConstraintCols))

    def drop_constraint(self, call: Call, req: DropConstraintRequest) -> None:
        request = required(req, "req")
        table = table_in(request.catName, request.dbname, request.tablename)
        self._constraints.drop(table, request.constraintname)

    def _of_kind(self, request: Any, kind: ConstraintKind) -> list[Any]:
        request = required(request, "request")
        table = table_in(request.catName, request.db_name, request.tbl_name)
        return _in_default_catalog(self._constraints.of_table(table, kind))


def plain(columns: Any) -> list[Any] | None:
    """Constraints sent by a client, their databases under the names they have within the one catalog."""
    return None if columns is None else [_plain(required(column, "constraint")) for column in columns]


def _plain(column: Any) -> Any:
    names = {
        field: in_catalog(column.catName, name)
        for field in _DATABASE_FIELDS
        if (name := getattr(column, field, None)) is not None
    }
    return with_fields(column, **names, catName=None)


def _of_two_tables(response: T) -> Uncacheable[T]:
    """A foreign key also names the table that it refers to, which may be renamed or dropped without it."""
    return Uncacheable(response)


def _in_default_catalog(columns: Sequence[Any]) -> list[Any]:
    return [with_fields(column, catName=DEFAULT_CATALOG) for column in columns]
