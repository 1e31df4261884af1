"""Methods that read functions. None can be created yet, so the catalog of functions is empty (semantics §2.14)."""

from app.handlers.arguments import database_name
from app.metastore.errors import required
from app.metastore.names import display_name
from app.rpc.call import Call
from app.structs import (
    Function,
    GetAllFunctionsResponse,
    GetFunctionsRequest,
    GetFunctionsResponse,
    NoSuchObjectException,
)


class Functions:
    def get_functions(self, call: Call, dbName: str, pattern: str) -> list[str]:
        required(database_name(dbName), "database name")
        return []

    def get_functions_req(self, call: Call, request: GetFunctionsRequest) -> GetFunctionsResponse:
        if required(request, "request").returnNames is False:
            return GetFunctionsResponse(functions=[])
        return GetFunctionsResponse(function_names=[])

    def get_function(self, call: Call, dbName: str, funcName: str) -> Function:
        raise NoSuchObjectException(f"Function {display_name(database_name(dbName), funcName)} does not exist")

    def get_all_functions(self, call: Call) -> GetAllFunctionsResponse:
        return GetAllFunctionsResponse([])
