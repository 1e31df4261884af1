"""Iceberg's RESTCatalog for Java at the gateway: views, alone and beside tables (`ViewCatalogTests` of its kit)."""

import pytest

from tests.iceberg.java_library import refused
from tests.iceberg.test_java_rest_tables import FIELDS

pytestmark = [pytest.mark.iceberg, pytest.mark.java, pytest.mark.slow, pytest.mark.whole]

SQL = "select * from ns.tbl"


@pytest.fixture
def schema(java):
    return java.schema(*FIELDS)


@pytest.fixture
def name(java, namespace):
    return java.name(namespace, "table")


@pytest.fixture
def building(java, rest, schema, namespace):
    """A builder of a view; `builder("v")` has all that it needs."""

    def build(view, sql=SQL, dialect="spark"):
        builder = rest.buildView(java.name(namespace, view)).withSchema(schema)
        return builder.withDefaultNamespace(java.namespace(namespace)).withQuery(dialect, sql)

    return build


def versions(view):
    return [(each.versionId(), [text.sql() for text in each.representations()]) for each in view.versions()]


def test_a_view_is_made_once(java, rest, namespace, building):
    view = java.name(namespace, "v")
    assert not rest.viewExists(view)
    made = building("v").create()
    assert rest.viewExists(view)
    assert str(made.name()) == f"lake.{view}"
    assert versions(made) == [(1, [SQL])]
    assert [each.versionId() for each in made.history()] == [1]
    assert (made.currentVersion().operation(), str(made.schema().schemaId())) == ("create", "0")
    assert java.metadata(rest.loadView(view)) == java.metadata(made)
    with refused("AlreadyExistsException", f"View already exists: {view}"):
        building("v").create()
    assert rest.dropView(view)
    assert not rest.viewExists(view)
    assert not rest.dropView(view)


def test_a_view_with_everything(java, rest, namespace, building, warehouse):
    place = f"file:{warehouse}/elsewhere/view"
    builder = building("v").withQuery("trino", "select * from ns.tbl using X").withDefaultCatalog("lake")
    made = builder.withLocation(place).withProperty("a", "1").withProperty("b", "2").create()
    assert str(made.location()) == place
    assert dict(made.properties()).items() >= {"a": "1", "b": "2"}.items()
    assert str(made.sqlFor("TRINO").sql()) == "select * from ns.tbl using X"
    assert made.currentVersion().defaultCatalog() == "lake"
    assert str(made.currentVersion().defaultNamespace()) == namespace
    assert java.metadata(rest.loadView(java.name(namespace, "v"))) == java.metadata(made)


def test_a_view_lies_in_a_namespace(java, rest, schema):
    space = java.namespace("java_gone")
    builder = rest.buildView(java.name("java_gone", "v")).withSchema(schema).withDefaultNamespace(space)
    with refused("NoSuchNamespaceException", "Namespace does not exist: java_gone"):
        builder.withQuery("spark", SQL).create()
    with refused("NoSuchNamespaceException", "Namespace does not exist: java_gone"):
        rest.listViews(space)
    with refused("NoSuchViewException", "View does not exist: java_gone.v"):
        rest.loadView(java.name("java_gone", "v"))


def test_two_texts_for_one_dialect(building):
    with refused("IllegalArgumentException", "Cannot add multiple queries for dialect spark"):
        building("v").withQuery("spark", "select 2").create()


def test_a_table_has_the_name(java, rest, name, schema, building):
    rest.buildTable(name, schema).create()
    expected = f"Table with same name already exists: {name}"
    for make in (building(name.name()).create, building(name.name()).createOrReplace, building(name.name()).replace):
        with refused("AlreadyExistsException", expected):
            make()
    assert not rest.viewExists(name)
    assert rest.tableExists(name)


def test_a_view_has_the_name(java, rest, namespace, schema, building):
    view = java.name(namespace, "v")
    transactions = [
        rest.buildTable(view, schema).createTransaction(),
        rest.buildTable(view, schema).createOrReplaceTransaction(),
    ]
    building("v").create()
    expected = f"View with same name already exists: {view}"
    with refused("AlreadyExistsException", expected):
        rest.buildTable(view, schema).create()
    for transaction in transactions:
        with refused("AlreadyExistsException", expected):
            transaction.commitTransaction()
    with refused("AlreadyExistsException", expected):
        rest.buildTable(view, schema).replaceTransaction()
    assert not rest.tableExists(view)
    assert not rest.dropTable(view)
    assert rest.viewExists(view)


def test_a_view_is_renamed(java, rest, namespace, building):
    view, target = java.name(namespace, "v"), java.name("java_views_target", "w")
    made = building("v").create()
    rest.createNamespace(java.namespace("java_views_target"))
    rest.renameView(view, target)
    assert not rest.viewExists(view)
    assert java.metadata(rest.loadView(target)) == java.metadata(made)
    with refused("NoSuchViewException", "View does not exist"):
        rest.renameView(view, target)
    with refused("NoSuchNamespaceException", "Namespace does not exist: java_gone"):
        rest.renameView(target, java.name("java_gone", "v"))


def test_a_name_is_not_taken_by_a_rename(java, rest, namespace, schema, building):
    table, view, other = (java.name(namespace, each) for each in ("t", "v", "w"))
    rest.buildTable(table, schema).create()
    building("v").create()
    building("w").create()
    with refused("AlreadyExistsException", f"Cannot rename {view} to {other}. View already exists"):
        rest.renameView(view, other)
    with refused("AlreadyExistsException", f"Cannot rename {view} to {table}. Table already exists"):
        rest.renameView(view, table)
    with refused("AlreadyExistsException", f"Cannot rename {table} to {view}. View already exists"):
        rest.renameTable(table, view)


def test_views_and_tables_are_listed_apart(java, rest, namespace, schema, building):
    space = java.namespace(namespace)
    rest.buildTable(java.name(namespace, "t"), schema).create()
    for each in ("v", "w"):
        building(each).create()
    assert [each.name() for each in rest.listTables(space)] == ["t"]
    assert sorted(each.name() for each in rest.listViews(space)) == ["v", "w"]


def test_a_view_is_replaced(java, rest, namespace, building):
    view = java.name(namespace, "v")
    with refused("NoSuchViewException", f"View does not exist: {view}"):
        building("v").replace()
    first = building("v").createOrReplace()
    second = building("v", "select 2").withProperty("a", "1").createOrReplace()
    assert str(second.uuid()) == str(first.uuid())
    assert versions(second) == [(1, [SQL]), (2, ["select 2"])]
    assert second.currentVersion().operation() == "replace"
    third = building("v").replace()
    # The text of the first version, whose number it takes again.
    assert dict(third.properties())["a"] == "1"
    assert len(list(rest.loadView(view).history())) == 3


def test_a_version_is_replaced(java, rest, namespace, building, schema):
    made = building("v").withProperty("replace.drop-dialect.allowed", "true").withQuery("trino", "select 1").create()
    space = java.namespace(namespace)
    made.replaceVersion().withQuery("spark", "select 2").withSchema(java.schema(*FIELDS[:1])).withDefaultNamespace(
        space
    ).withDefaultCatalog("other").commit()
    found = rest.loadView(java.name(namespace, "v"))
    assert [str(each.sql()) for each in found.currentVersion().representations()] == ["select 2"]
    assert (len(found.schemas()), len(found.schema().columns())) == (2, 1)
    assert found.currentVersion().defaultCatalog() == "other"


def test_dialects_that_a_replacement_would_lose(java, rest, namespace, building, schema):
    made = building("v").withProperty("replace.drop-dialect.allowed", "false").withQuery("trino", "select 1").create()
    replace = made.replaceVersion().withSchema(schema).withDefaultNamespace(java.namespace(namespace))
    with refused("IllegalStateException", "Cannot replace view due to loss of view dialects"):
        replace.withQuery("spark", "select 2").commit()


def test_properties_and_place_of_a_view(java, rest, namespace, building, warehouse):
    view = java.name(namespace, "v")
    made = building("v").withProperty("old", "1").create()
    late = rest.loadView(view)
    made.updateProperties().set("a", "1").remove("old").commit()
    late.updateProperties().set("b", "2").commit()
    place = f"file:{warehouse}/elsewhere/moved_view"
    made.updateLocation().setLocation(place).commit()
    found = rest.loadView(view)
    assert dict(found.properties()).items() >= {"a": "1", "b": "2"}.items()
    assert "old" not in dict(found.properties())
    assert (str(found.location()), str(found.uuid())) == (place, str(made.uuid()))


def test_changes_of_a_view_that_is_gone(java, rest, namespace, building, schema):
    view = java.name(namespace, "v")
    made = building("v").create()
    space = java.namespace(namespace)
    changes = [
        made.updateProperties().set("a", "1"),
        made.updateLocation().setLocation(f"{made.location()}2"),
        made.replaceVersion().withSchema(schema).withDefaultNamespace(space).withQuery("spark", "select 2"),
    ]
    replace = building("v", "select 3")
    rest.dropView(view)
    for change in changes:
        with refused("NoSuchViewException", f"View does not exist: {view}"):
            change.commit()
    with refused("NoSuchViewException", f"View does not exist: {view}"):
        replace.replace()


def test_versions_at_once(java, rest, namespace, building, schema):
    view = java.name(namespace, "v")
    building("v").create()
    changes = []
    for number in (2, 3):
        change = rest.loadView(view).replaceVersion().withSchema(schema)
        changes.append(change.withDefaultNamespace(java.namespace(namespace)).withQuery("spark", f"select {number}"))
    for change in changes:
        change.commit()
    assert versions(rest.loadView(view)) == [(1, [SQL]), (2, ["select 2"]), (3, ["select 3"])]


def test_old_versions_are_left_out(java, rest, namespace, building, schema):
    view = java.name(namespace, "v")
    made = building("v").withProperty("version.history.num-entries", "2").create()
    for number in range(4):
        change = made.replaceVersion().withSchema(schema).withDefaultNamespace(java.namespace(namespace))
        change.withQuery("spark", f"select {number}").commit()
    assert versions(rest.loadView(view)) == [(4, ["select 2"]), (5, ["select 3"])]
