"""The Thrift methods on functions."""

from collections.abc import Callable

import pytest

from hms_gateway.handlers.functions import Functions
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.structs import (
    Function,
    GetAllFunctionsResponse,
    GetFunctionsRequest,
    GetFunctionsResponse,
    MetaException,
    NoSuchObjectException,
    ThriftException,
)
from tests.support.catalog import Catalog

CALL = Call("tester")
NEWER = Call("tester", dialect=Dialect.HIVE_4)


@pytest.fixture
def functions(catalog: Catalog) -> Functions:
    return Functions(catalog.functions)


def refusal(action: Callable[[], object]) -> ThriftException:
    with pytest.raises(ThriftException) as raised:
        action()
    return raised.value


def function(name: str, **fields: str) -> Function:
    return Function(**{"functionName": name, "dbName": "default", "className": "org.example.F", **fields})


def test_what_spark_sends_for_create_function(functions: Functions) -> None:
    """Spark looks for this text before it creates one (clients §11.1)."""
    assert refusal(lambda: functions.get_function(CALL, "default", "f1")) == NoSuchObjectException(
        "Function default.f1 does not exist"
    )
    functions.create_function(CALL, function("f1"))
    assert functions.get_functions(CALL, "default", "*") == ["f1"]
    functions.alter_function(CALL, "default", "f1", function("f1", className="org.example.G"))
    assert functions.get_function(CALL, "default", "f1").className == "org.example.G"
    functions.drop_function(CALL, "default", "f1")
    assert functions.get_functions(CALL, "default", "*") == []


def test_an_empty_catalog_of_functions(functions: Functions) -> None:
    assert functions.get_all_functions(CALL) == GetAllFunctionsResponse([])
    assert functions.get_functions(CALL, "missing", "*") == []
    assert functions.get_functions_req(CALL, GetFunctionsRequest("default")) == GetFunctionsResponse(function_names=[])


def test_names_with_a_catalog(functions: Functions) -> None:
    functions.create_function(CALL, function("f1", dbName="@hive#default"))
    functions.create_function(CALL, function("f2", catName="Hive"))
    assert functions.get_functions(CALL, "@hive#default", "*") == ["f1", "f2"]
    functions.alter_function(CALL, "@hive#default", "f1", function("f3", catName="hive"))
    functions.drop_function(CALL, "@hive#default", "f3")
    assert functions.get_functions(CALL, "default", "*") == ["f2"]
    assert functions.get_functions(CALL, "@spark#default", "*") == []
    assert refusal(lambda: functions.create_function(CALL, function("f4", catName="spark"))) == NoSuchObjectException(
        "@spark#default"
    )
    assert isinstance(refusal(lambda: functions.get_functions(CALL, "@broken", "*")), MetaException)


def test_the_catalog_is_shown_to_newer_callers_only(functions: Functions) -> None:
    functions.create_function(CALL, function("f1", catName="hive"))
    assert functions.get_function(CALL, "default", "f1").catName is None
    assert functions.get_function(NEWER, "default", "f1").catName == "hive"
    assert functions.get_function(CALL, "@hive#default", "f1").catName == "hive"
    assert functions.get_all_functions(CALL).functions[0].catName is None
    assert functions.get_all_functions(NEWER).functions[0].catName == "hive"


def test_functions_by_request(functions: Functions) -> None:
    for name in ("f1", "g1"):
        functions.create_function(CALL, function(name))
    assert functions.get_functions_req(CALL, GetFunctionsRequest("default")).function_names == ["f1", "g1"]
    request = GetFunctionsRequest("default", "hive", "F*", False)
    response = functions.get_functions_req(CALL, request)
    assert response.function_names is None
    assert [(found.functionName, found.catName) for found in response.functions] == [("f1", "hive")]


def test_what_is_left_out_is_a_meta_exception(functions: Functions) -> None:
    for action in (
        lambda: functions.create_function(CALL, None),
        lambda: functions.alter_function(CALL, "default", "f1", None),
        lambda: functions.drop_function(CALL, None, None),
        lambda: functions.get_function(CALL, None, "f1"),
        lambda: functions.get_functions(CALL, None, "*"),
        lambda: functions.get_functions_req(CALL, None),
    ):
        assert isinstance(refusal(action), MetaException)
