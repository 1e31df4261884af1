"""Functions, row by row of semantics §2.14."""

from collections.abc import Callable
from typing import Any

import pytest

from hms_gateway.structs import (
    AlreadyExistsException,
    Database,
    Function,
    FunctionType,
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

JAR = ResourceUri(ResourceType.JAR, "hdfs://nn/a b.jar")


def refusal(action: Callable[[], object]) -> ThriftException:
    with pytest.raises(ThriftException) as raised:
        action()
    return raised.value


def function(name: str | None = "f1", **fields: Any) -> Function:
    return Function(
        **{"functionName": name, "dbName": "default", "className": "org.example.F", "ownerName": "nobody", **fields}
    )


def test_everything_of_a_function_comes_back(catalog: Catalog) -> None:
    given = function(
        ownerType=PrincipalType.ROLE, createTime=5, functionType=FunctionType.JAVA, resourceUris=[JAR, JAR], catName="x"
    )
    catalog.functions.create(given)
    expected = function(
        ownerType=PrincipalType.ROLE, createTime=NOW, functionType=FunctionType.JAVA, resourceUris=[JAR, JAR]
    )
    assert catalog.functions.get("default", "f1") == expected
    assert given.createTime == 5


def test_what_is_left_out_has_defaults(catalog: Catalog) -> None:
    catalog.functions.create(function())
    found = catalog.functions.get("default", "f1")
    assert (found.ownerType, found.functionType, found.resourceUris) == (PrincipalType.USER, FunctionType.JAVA, [])


def test_names_are_lower_cased_and_found_however_they_are_spelled(catalog: Catalog) -> None:
    catalog.functions.create(function("FUp", dbName=" DEFAULT "))
    assert catalog.functions.names("Default", "F*") == ["fup"]
    assert catalog.functions.get(" DEFAULT\t", " fuP ").functionName == "fup"
    assert refusal(lambda: catalog.functions.create(function("fUP"))) == AlreadyExistsException(
        "Function fUP already exists"
    )
    catalog.functions.drop("default", "FUP")
    assert catalog.functions.all() == []


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
def test_what_cannot_be_created(catalog: Catalog, given: Function, error: ThriftException) -> None:
    assert refusal(lambda: catalog.functions.create(given)) == error
    assert catalog.functions.all() == []


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
def test_what_is_missing_or_too_long_is_a_meta_exception(catalog: Catalog, given: Function | None) -> None:
    assert isinstance(refusal(lambda: catalog.functions.create(given)), MetaException)


def test_unusual_texts_are_kept(catalog: Catalog) -> None:
    odd = '\0"\\\u2603\x7f'
    catalog.functions.create(function(className=odd, ownerName=odd, resourceUris=[ResourceUri(3, odd)]))
    found = catalog.functions.get("default", "f1")
    assert (found.className, found.ownerName, found.resourceUris) == (odd, odd, [ResourceUri(3, odd)])


def test_a_function_that_is_missing(catalog: Catalog) -> None:
    assert refusal(lambda: catalog.functions.get("Sp1", "F1")) == NoSuchObjectException(
        "Function Sp1.F1 does not exist"
    )
    for name in ("F1", "", "\0", "é", "n" * 3000):
        assert refusal(lambda name=name: catalog.functions.drop("missing", name)) == NoSuchObjectException(
            f"Function {name} does not exist"
        )
        assert isinstance(refusal(lambda name=name: catalog.functions.get("default", name)), NoSuchObjectException)
    error = MetaException("function F1 doesn't exist")
    assert refusal(lambda: catalog.functions.alter("default", "F1", function())) == error


def test_a_name_left_out_is_a_meta_exception(catalog: Catalog) -> None:
    for action in (
        lambda: catalog.functions.get(None, "f1"),
        lambda: catalog.functions.get("default", None),
        lambda: catalog.functions.drop(None, "f1"),
        lambda: catalog.functions.drop("default", None),
        lambda: catalog.functions.names(None, "*"),
        lambda: catalog.functions.objects(None, "*"),
        lambda: catalog.functions.alter(None, "f1", function()),
        lambda: catalog.functions.alter("default", "f1", None),
    ):
        assert isinstance(refusal(action), MetaException)


def test_alter_replaces_all_but_resources_and_creation_time(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="other"))
    catalog.functions.create(function(resourceUris=[JAR]))
    catalog.clock.advance(10)
    changed = Function("F2", "Other", "org.example.G", "somebody", PrincipalType.GROUP, 1, FunctionType.JAVA, [])
    catalog.functions.alter("DEFAULT", "F1", changed)
    assert catalog.functions.names("default", None) == []
    assert catalog.functions.get("other", "f2") == Function(
        "f2", "other", "org.example.G", "somebody", PrincipalType.GROUP, NOW, FunctionType.JAVA, [JAR]
    )


def test_what_alter_refuses(catalog: Catalog) -> None:
    for name in ("f1", "f2"):
        catalog.functions.create(function(name))
    for given, error in [
        (function("a/b"), InvalidObjectException("a/b is not a valid object name")),
        (function(className=None), InvalidObjectException("Function class name cannot be null")),
        (function(dbName="missing"), InvalidObjectException("missing")),
        (function("F2"), MetaException("Function F2 already exists")),
    ]:
        assert refusal(lambda given=given: catalog.functions.alter("default", "f1", given)) == error
    assert isinstance(refusal(lambda: catalog.functions.alter("default", "f1", function("n" * 3000))), MetaException)
    assert catalog.functions.names("default", None) == ["f1", "f2"]


def test_types_that_are_not_sent_are_those_of_before(catalog: Catalog) -> None:
    catalog.functions.create(function("f1", ownerType=None, functionType=None))
    kinds = [(one.ownerType, one.functionType) for one in catalog.functions.all()]
    assert kinds == [(PrincipalType.USER, FunctionType.JAVA)]
    catalog.functions.alter("default", "f1", function("f1", ownerType=PrincipalType.ROLE))
    catalog.functions.alter("default", "f1", function("f1", ownerType=None, functionType=None))
    kinds = [(one.ownerType, one.functionType) for one in catalog.functions.all()]
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
def test_patterns(catalog: Catalog, pattern: str | None, names: list[str]) -> None:
    for name in ("FUp", "abc", "a_c"):
        catalog.functions.create(function(name))
    assert catalog.functions.names("DEFAULT", pattern) == names
    assert [found.functionName for found in catalog.functions.objects("default", pattern)] == names
    assert catalog.functions.names("missing", pattern) == []


def test_all_functions_are_ordered_by_database_and_name(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="a"))
    for db_name, name in (("default", "f1"), ("a", "z"), ("a", "b")):
        catalog.functions.create(function(name, dbName=db_name))
    assert [(found.dbName, found.functionName) for found in catalog.functions.all()] == [
        ("a", "b"), ("a", "z"), ("default", "f1"),
    ]  # fmt: skip


def test_every_change_is_in_the_log(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="other"))
    before = len(catalog.events())
    catalog.functions.create(function("F1"))
    event_type, db_name, table_name, message = catalog.last_event()
    assert (event_type, db_name, table_name) == ("CREATE_FUNCTION", "default", None)
    assert list(message) == ["server", "servicePrincipal", "db", "functionObjJson", "timestamp"]
    assert '"1":{"str":"f1"}' in message["functionObjJson"]

    catalog.functions.alter("default", "f1", function("f1", className="x"))
    assert (catalog.last_event()[0], catalog.events()[-1].event.renamed_from) == ("ALTER_FUNCTION", None)
    catalog.functions.alter("default", "f1", function("f2", dbName="other"))
    assert catalog.last_event()[:3] == ("ALTER_FUNCTION", "other", None)
    assert catalog.events()[-1].event.renamed_from == ("default", "")

    catalog.functions.drop("other", "F2")
    event_type, db_name, _, message = catalog.last_event()
    assert (event_type, db_name) == ("DROP_FUNCTION", "other")
    assert message == {
        "server": "", "servicePrincipal": "", "db": "other", "functionName": "f2", "timestamp": NOW,
    }  # fmt: skip
    assert len(catalog.events()) == before + 4


def test_a_database_with_functions_goes_only_with_cascade(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="sales"))
    catalog.functions.create(function("FUp", dbName="sales"))
    error = InvalidOperationException("Database sales is not empty. One or more functions exist.")
    assert refusal(lambda: catalog.databases.drop("Sales", True, False)) == error
    catalog.databases.drop("Sales", True, True)
    assert catalog.functions.all() == []
