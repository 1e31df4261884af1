"""Methods on functions."""

from hms_gateway.handlers.arguments import database_name, in_catalog, is_newer, with_fields
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.registry.functions import FunctionService
from hms_gateway.metastore.vocabulary.names import DEFAULT_CATALOG
from hms_gateway.rpc.call import Call
from hms_gateway.structs import Function, GetAllFunctionsResponse, GetFunctionsRequest, GetFunctionsResponse


class Functions:
    def __init__(self, functions: FunctionService) -> None:
        self._functions = functions

    def create_function(self, call: Call, func: Function) -> None:
        self._functions.create(_plain(func))

    def drop_function(self, call: Call, dbName: str, funcName: str) -> None:
        self._functions.drop(database_name(dbName), funcName)

    def alter_function(self, call: Call, dbName: str, funcName: str, newFunc: Function) -> None:
        self._functions.alter(database_name(dbName), funcName, _plain(newFunc))

    def get_functions(self, call: Call, dbName: str, pattern: str) -> list[str]:
        return self._functions.names(database_name(dbName), pattern)

    def get_functions_req(self, call: Call, request: GetFunctionsRequest) -> GetFunctionsResponse:
        """`returnNames` is on unless the caller turns it off."""
        request = required(request, "request")
        db_name = in_catalog(request.catalogName, request.dbName)
        if request.returnNames is not None and not request.returnNames:
            found = self._functions.objects(db_name, request.pattern)
            return GetFunctionsResponse(functions=[_in_default_catalog(function) for function in found])
        return GetFunctionsResponse(function_names=self._functions.names(db_name, request.pattern))

    def get_function(self, call: Call, dbName: str, funcName: str) -> Function:
        function = self._functions.get(database_name(dbName), funcName)
        return _in_default_catalog(function) if is_newer(call, dbName) else function

    def get_all_functions(self, call: Call) -> GetAllFunctionsResponse:
        found = self._functions.all()
        return GetAllFunctionsResponse([_in_default_catalog(one) for one in found] if is_newer(call) else found)


def _plain(function: Function | None) -> Function | None:
    """A new function in the database it names within the one catalog."""
    if function is None or function.dbName is None:
        return function
    return with_fields(function, dbName=in_catalog(function.catName, function.dbName))


def _in_default_catalog(function: Function) -> Function:
    return with_fields(function, catName=DEFAULT_CATALOG)
