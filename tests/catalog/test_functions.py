"""Functions, row by row of semantics §2.14, and by their Thrift methods."""

from collections.abc import Callable
from typing import Any

import pytest

from hms_gateway.catalog.functions import Functions
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    Database,
    Function,
    FunctionType,
    GetAllFunctionsResponse,
    GetFunctionsRequest,
    GetFunctionsResponse,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
    ResourceType,
    ResourceUri,
    ThriftException,
)
from tests.support.catalog import NOW, Catalog

CALL = Call("tester")
NEWER = Call("tester", dialect=Dialect.HIVE_4)
JAR = ResourceUri(ResourceType.JAR, "hdfs://nn/a b.jar")


@pytest.fixture
def functions(catalog: Catalog) -> Functions:
    return catalog.functions


def refusal(action: Callable[[], object]) -> ThriftException:
    with pytest.raises(ThriftException) as raised:
        action()
    return raised.value


def function(name: str | None = "f1", **fields: Any) -> Function:
    return Function(
        **{"functionName": name, "dbName": "default", "className": "org.example.F", "ownerName": "nobody", **fields}
    )


def test_everything_of_a_function_comes_back(functions: Functions) -> None:
    given = function(
        ownerType=PrincipalType.ROLE,
        createTime=5,
        functionType=FunctionType.JAVA,
        resourceUris=[JAR, JAR],
        catName="hive",
    )
    functions.create_function(CALL, given)
    expected = function(
        ownerType=PrincipalType.ROLE, createTime=NOW, functionType=FunctionType.JAVA, resourceUris=[JAR, JAR]
    )
    assert functions.get_function(CALL, "default", "f1") == expected
    assert given.createTime == 5


def test_what_is_left_out_has_defaults(functions: Functions) -> None:
    functions.create_function(CALL, function())
    found = functions.get_function(CALL, "default", "f1")
    assert (found.ownerType, found.functionType, found.resourceUris) == (PrincipalType.USER, FunctionType.JAVA, [])


def test_names_are_lower_cased_and_found_however_they_are_spelled(functions: Functions) -> None:
    functions.create_function(CALL, function("FUp", dbName=" DEFAULT "))
    assert functions.get_functions(CALL, "Default", "F*") == ["fup"]
    assert functions.get_function(CALL, " DEFAULT\t", " fuP ").functionName == "fup"
    assert refusal(lambda: functions.create_function(CALL, function("fUP"))) == AlreadyExistsException(
        "Function fUP already exists"
    )
    functions.drop_function(CALL, "default", "FUP")
    assert functions.get_all_functions(CALL).functions == []


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (function(""), InvalidObjectException(" is not a valid object name")),
        (function("a/b"), InvalidObjectException("a/b is not a valid object name")),
        (function("größe"), InvalidObjectException("größe is not a valid object name")),
        (function("a\0b"), InvalidObjectException("a\0b is not a valid object name")),
        (function("a b"), InvalidObjectException("a b is not a valid object name")),
        (function(className=None), InvalidObjectException("Function class name cannot be null")),
        (function("a/b", className=None), InvalidObjectException("a/b is not a valid object name")),
        (function(dbName="missing"), NoSuchObjectException("missing")),
        (function(dbName=""), NoSuchObjectException("")),
        (function(dbName="a\0"), NoSuchObjectException("a\0")),
    ],
)
def test_what_cannot_be_created(functions: Functions, given: Function, error: ThriftException) -> None:
    assert refusal(lambda: functions.create_function(CALL, given)) == error
    assert functions.get_all_functions(CALL).functions == []


@pytest.mark.parametrize(
    "given",
    [
        None,
        function(None),
        function(dbName=None),
        function("n" * 3000),
        function(resourceUris=[ResourceUri(None, "file:/a")]),
        function(resourceUris=[None]),
    ],
)
def test_what_is_missing_or_too_long_is_a_meta_exception(functions: Functions, given: Function | None) -> None:
    assert isinstance(refusal(lambda: functions.create_function(CALL, given)), MetaException)


def test_unusual_texts_are_kept(functions: Functions) -> None:
    odd = '\0"\\\u2603\x7f'
    functions.create_function(CALL, function(className=odd, ownerName=odd, resourceUris=[ResourceUri(3, odd)]))
    found = functions.get_function(CALL, "default", "f1")
    assert (found.className, found.ownerName, found.resourceUris) == (odd, odd, [ResourceUri(3, odd)])


def test_a_function_that_is_missing(functions: Functions) -> None:
    assert refusal(lambda: functions.get_function(CALL, "Sp1", "F1")) == NoSuchObjectException(
        "Function Sp1.F1 does not exist"
    )
    for name in ("F1", "", "\0", "é", "n" * 3000):
        assert refusal(lambda name=name: functions.drop_function(CALL, "missing", name)) == NoSuchObjectException(
            f"Function {name} does not exist"
        )
        assert isinstance(
            refusal(lambda name=name: functions.get_function(CALL, "default", name)), NoSuchObjectException
        )
    error = MetaException("function F1 doesn't exist")
    assert refusal(lambda: functions.alter_function(CALL, "default", "F1", function())) == error


def test_a_name_left_out_is_a_meta_exception(functions: Functions) -> None:
    for action in (
        lambda: functions.get_function(CALL, None, "f1"),
        lambda: functions.get_function(CALL, "default", None),
        lambda: functions.drop_function(CALL, None, "f1"),
        lambda: functions.drop_function(CALL, "default", None),
        lambda: functions.get_functions(CALL, None, "*"),
        lambda: _objects(functions, None, "*"),
        lambda: functions.alter_function(CALL, None, "f1", function()),
        lambda: functions.alter_function(CALL, "default", "f1", None),
    ):
        assert isinstance(refusal(action), MetaException)


def test_alter_looks_at_catalogs_first_then_at_names_left_out(functions: Functions) -> None:
    unmarked = function(dbName="@default")
    for db_name, given, text in [("@default", None, "catalog"), (None, unmarked, "catalog"), (None, None, "null")]:
        error = refusal(lambda db_name=db_name, given=given: functions.alter_function(CALL, db_name, None, given))
        assert isinstance(error, MetaException)
        assert text in str(error)


def test_alter_replaces_all_but_resources_and_creation_time(catalog: Catalog, functions: Functions) -> None:
    catalog.databases.create(Database(name="other"))
    functions.create_function(CALL, function(resourceUris=[JAR]))
    catalog.clock.advance(10)
    changed = Function("F2", "Other", "org.example.G", "somebody", PrincipalType.GROUP, 1, FunctionType.JAVA, [])
    functions.alter_function(CALL, "DEFAULT", "F1", changed)
    assert functions.get_functions(CALL, "default", None) == []
    assert functions.get_function(CALL, "other", "f2") == Function(
        "f2", "other", "org.example.G", "somebody", PrincipalType.GROUP, NOW, FunctionType.JAVA, [JAR]
    )


def test_what_alter_refuses(functions: Functions) -> None:
    for name in ("f1", "f2"):
        functions.create_function(CALL, function(name))
    for given, error in [
        (function("a/b"), InvalidObjectException("a/b is not a valid object name")),
        (function(className=None), InvalidObjectException("Function class name cannot be null")),
        (function(dbName="missing"), InvalidObjectException("missing")),
        (function("F2"), MetaException("Function F2 already exists")),
    ]:
        assert refusal(lambda given=given: functions.alter_function(CALL, "default", "f1", given)) == error
    assert isinstance(
        refusal(lambda: functions.alter_function(CALL, "default", "f1", function("n" * 3000))), MetaException
    )
    assert functions.get_functions(CALL, "default", None) == ["f1", "f2"]


def test_types_that_are_not_sent_are_those_of_before(functions: Functions) -> None:
    functions.create_function(CALL, function("f1", ownerType=None, functionType=None))
    kinds = [(one.ownerType, one.functionType) for one in functions.get_all_functions(CALL).functions]
    assert kinds == [(PrincipalType.USER, FunctionType.JAVA)]
    functions.alter_function(CALL, "default", "f1", function("f1", ownerType=PrincipalType.ROLE))
    functions.alter_function(CALL, "default", "f1", function("f1", ownerType=None, functionType=None))
    kinds = [(one.ownerType, one.functionType) for one in functions.get_all_functions(CALL).functions]
    assert kinds == [(PrincipalType.ROLE, FunctionType.JAVA)]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (None, ["a_c", "abc", "fup"]),
        ("*", ["a_c", "abc", "fup"]),
        ("F*", ["fup"]),
        ("a.c", ["a_c", "abc"]),
        ("a_c", ["a_c"]),
        ("abc|F*|abc", ["abc", "fup"]),
        ("", []),
        ("%", []),
        ("\0", []),
        ("a\0*", []),
        ("\0F*\0", ["fup"]),
        ("é", []),
    ],
)
def test_patterns(functions: Functions, pattern: str | None, names: list[str]) -> None:
    for name in ("FUp", "abc", "a_c"):
        functions.create_function(CALL, function(name))
    assert functions.get_functions(CALL, "DEFAULT", pattern) == names
    assert [found.functionName for found in _objects(functions, "default", pattern)] == names
    assert functions.get_functions(CALL, "missing", pattern) == []


def test_all_functions_are_ordered_by_database_and_name(catalog: Catalog, functions: Functions) -> None:
    catalog.databases.create(Database(name="a"))
    for db_name, name in (("default", "f1"), ("a", "z"), ("a", "b")):
        functions.create_function(CALL, function(name, dbName=db_name))
    assert [(found.dbName, found.functionName) for found in functions.get_all_functions(CALL).functions] == [
        ("a", "b"), ("a", "z"), ("default", "f1"),
    ]  # fmt: skip


def test_every_change_is_in_the_log(catalog: Catalog, functions: Functions) -> None:
    catalog.databases.create(Database(name="other"))
    before = len(catalog.events())
    functions.create_function(CALL, function("F1"))
    event_type, db_name, table_name, message = catalog.last_event()
    assert (event_type, db_name, table_name) == ("CREATE_FUNCTION", "default", None)
    assert list(message) == ["server", "servicePrincipal", "db", "functionObjJson", "timestamp"]
    assert '"1":{"str":"f1"}' in message["functionObjJson"]

    functions.alter_function(CALL, "default", "f1", function("f1", className="x"))
    assert (catalog.last_event()[0], catalog.events()[-1].event.renamed_from) == ("ALTER_FUNCTION", None)
    functions.alter_function(CALL, "default", "f1", function("f2", dbName="other"))
    assert catalog.last_event()[:3] == ("ALTER_FUNCTION", "other", None)
    assert catalog.events()[-1].event.renamed_from == ("default", "")

    functions.drop_function(CALL, "other", "F2")
    event_type, db_name, _, message = catalog.last_event()
    assert (event_type, db_name) == ("DROP_FUNCTION", "other")
    assert message == {
        "server": "", "servicePrincipal": "", "db": "other", "functionName": "f2", "timestamp": NOW,
    }  # fmt: skip
    assert len(catalog.events()) == before + 4


def test_a_database_with_functions_goes_only_with_cascade(catalog: Catalog, functions: Functions) -> None:
    catalog.databases.create(Database(name="sales"))
    functions.create_function(CALL, function("FUp", dbName="sales"))
    error = InvalidOperationException("Database sales is not empty. One or more functions exist.")
    assert refusal(lambda: catalog.databases.drop("Sales", True, False)) == error
    catalog.databases.drop("Sales", True, True)
    assert functions.get_all_functions(CALL).functions == []


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


def _objects(functions: Functions, db_name: str | None, pattern: str | None) -> list[Function]:
    found = functions.get_functions_req(CALL, GetFunctionsRequest(db_name, None, pattern, False)).functions
    assert found is not None
    return found
