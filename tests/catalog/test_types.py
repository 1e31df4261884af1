"""The old type registry, row by row of semantics §2.4."""

import pytest

from hms_gateway.catalog.types import Types
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    FieldSchema,
    InvalidObjectException,
    NoSuchObjectException,
    Type,
)
from tests.support.catalog import Catalog

CALL = Call("tester")


def test_a_type_is_made_once_and_dropped_as_often_as_one_likes(catalog: Catalog) -> None:
    types = Types(catalog.store)
    new = Type("Point", "a", "b", [FieldSchema("x", "int", "c")])
    types.create_type(CALL, new)
    assert types.get_type(CALL, " Point ") == new
    with pytest.raises(AlreadyExistsException) as raised:
        types.create_type(CALL, new)
    assert raised.value == AlreadyExistsException("Type Point already exists")
    for _ in range(2):
        types.drop_type(CALL, "Point")
    with pytest.raises(NoSuchObjectException) as missing:
        types.get_type(CALL, "Point")
    assert missing.value == NoSuchObjectException('Type "Point" not found.')


@pytest.mark.parametrize("name", ["", "a b", "é", "a\0", "a/b"])
def test_names_that_are_no_names(catalog: Catalog, name: str) -> None:
    types = Types(catalog.store)
    with pytest.raises(InvalidObjectException) as raised:
        types.create_type(CALL, Type(name))
    assert raised.value == InvalidObjectException("Invalid type name")
    types.drop_type(CALL, name)
    with pytest.raises(NoSuchObjectException):
        types.get_type(CALL, name)


def test_primitives_are_not_found_either(catalog: Catalog) -> None:
    with pytest.raises(NoSuchObjectException, match='Type "int" not found'):
        Types(catalog.store).get_type(CALL, "int")
