"""Properties of clients, and the metastore's own id."""

import uuid

import pytest

from hms_gateway.metastore.registry.properties import PropertyService
from hms_gateway.structs import MetaException, NoSuchObjectException
from tests.support.catalog import Catalog


@pytest.fixture
def properties(catalog: Catalog) -> PropertyService:
    return PropertyService(catalog.store)


def test_the_id_is_made_once(catalog: Catalog, properties: PropertyService) -> None:
    first = properties.metastore_uuid()
    assert str(uuid.UUID(first)) == first
    assert PropertyService(catalog.store).metastore_uuid() == first


def test_properties_are_maps_by_the_beginning_of_their_paths(properties: PropertyService) -> None:
    properties.put("hms", {"db.t.a": "1", "db.t.b": "2", "db.u.a": "3", "lone": "4"})
    properties.put("other", {"db.t.a": "5"})
    assert properties.maps("hms", "db.", None, None) == {"db.t": {"a": "1", "b": "2"}, "db.u": {"a": "3"}}
    assert properties.maps("hms", None, "", ["a"]) == {"db.t": {"a": "1"}, "db.u": {"a": "3"}}
    assert properties.maps("hms", "db.t.a", None, None) == {}
    assert properties.maps("hms", "", None, None)[""] == {"lone": "4"}
    properties.put("hms", {"db.t.a": None, "db.t.b": "", "db.missing": None})
    assert properties.maps("hms", "db.t", None, None) == {"db.t": {"b": ""}}


def test_what_is_refused(properties: PropertyService) -> None:
    for namespace, error in (("", NoSuchObjectException), (None, MetaException)):
        with pytest.raises(error):
            properties.maps(namespace, "", None, None)
        with pytest.raises(error):
            properties.put(namespace, {})
    with pytest.raises(MetaException, match="Java expression"):
        properties.maps("hms", "", "a == 1", None)
    for values in (None, {"a.b": "1", "a.c\0": "2"}, {"a.b": "\0"}):
        with pytest.raises(MetaException):
            properties.put("hms", values)
    assert properties.maps("hms", "", None, None) == {}
