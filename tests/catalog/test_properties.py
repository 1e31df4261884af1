"""Properties of clients, and the metastore's own id."""

import uuid

import pytest

from hms_gateway.catalog.properties import Properties
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import MetaException, NoSuchObjectException, PropertyGetRequest, PropertySetRequest
from tests.support.catalog import Catalog

CALL = Call("tester")


@pytest.fixture
def properties(catalog: Catalog) -> Properties:
    return Properties(catalog.store)


def maps(
    properties: Properties, namespace: str | None, prefix: str, predicate: str | None, names: list[str] | None
) -> dict[str, dict[str, str]]:
    return properties.get_properties(CALL, PropertyGetRequest(namespace, prefix, predicate, names)).properties


def test_the_id_is_made_once(catalog: Catalog, properties: Properties) -> None:
    first = properties.get_metastore_db_uuid(CALL)
    assert str(uuid.UUID(first)) == first
    assert Properties(catalog.store).get_metastore_db_uuid(CALL) == first


def test_properties_are_maps_by_the_beginning_of_their_paths(properties: Properties) -> None:
    properties.set_properties(
        CALL, PropertySetRequest("hms", {"db.t.a": "1", "db.t.b": "2", "db.u.a": "3", "lone": "4"})
    )
    properties.set_properties(CALL, PropertySetRequest("other", {"db.t.a": "5"}))
    assert maps(properties, "hms", "db.", None, None) == {"db.t": {"a": "1", "b": "2"}, "db.u": {"a": "3"}}
    assert maps(properties, "hms", None, "", ["a"]) == {"db.t": {"a": "1"}, "db.u": {"a": "3"}}
    assert maps(properties, "hms", "db.t.a", None, None) == {}
    assert maps(properties, "hms", "", None, None)[""] == {"lone": "4"}
    properties.set_properties(CALL, PropertySetRequest("hms", {"db.t.a": None, "db.t.b": "", "db.missing": None}))
    assert maps(properties, "hms", "db.t", None, None) == {"db.t": {"b": ""}}


def test_what_is_refused(properties: Properties) -> None:
    for namespace, error in (("", NoSuchObjectException), (None, MetaException)):
        with pytest.raises(error):
            maps(properties, namespace, "", None, None)
        with pytest.raises(error):
            properties.set_properties(CALL, PropertySetRequest(namespace, {}))
    with pytest.raises(MetaException, match="Java expression"):
        maps(properties, "hms", "", "a == 1", None)
    for values in (None, {"a.b": "1", "a.c\0": "2"}, {"a.b": "\0"}):
        with pytest.raises(MetaException):
            properties.set_properties(CALL, PropertySetRequest("hms", values))
    assert maps(properties, "hms", "", None, None) == {}
