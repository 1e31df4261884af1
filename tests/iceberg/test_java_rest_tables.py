"""Iceberg's RESTCatalog for Java at the gateway: namespaces, tables, conflicts, transactions.

The cases are those of Iceberg's compatibility kit (`CatalogTests`), which drives the same client.
"""

import os
import subprocess
from pathlib import Path

import pytest

from tests.iceberg.java_library import refused
from tests.support.patience import until
from tests.support.server import COMMAND, USER

pytestmark = [pytest.mark.iceberg, pytest.mark.java, pytest.mark.slow, pytest.mark.whole]

FIELDS = ((3, "id", "int"), (4, "data", "string"))
OTHER = ((2, "id", "int"), (3, "day", "date"))
TABLE = "table"


@pytest.fixture
def schema(java):
    return java.schema(*FIELDS, doc="unique 🤪")


@pytest.fixture
def name(java, namespace):
    return java.name(namespace, TABLE)


@pytest.fixture
def table(rest, name, schema):
    return rest.buildTable(name, schema).create()


def paths(table):
    """The data files of a table, without folder and ending."""
    planned = table.newScan().planFiles()
    tasks, found = planned.iterator(), set()
    while tasks.hasNext():
        found.add(Path(str(tasks.next().file().location())).stem)
    planned.close()
    return found


def columns(table):
    return [(field.name(), str(field.type())) for field in table.schema().columns()]


def spec_of(table):
    return [(field.name(), str(field.transform()), field.fieldId()) for field in table.spec().fields()]


def append(java, table, *names):
    for each in names:
        table.newFastAppend().appendFile(java.file(each)).commit()


# Namespaces.


def test_a_namespace_is_made_once(java, rest, namespace):
    space = java.namespace(namespace)
    assert rest.namespaceExists(space)
    with refused("AlreadyExistsException", f"Namespace already exists: {namespace}"):
        rest.createNamespace(space)
    assert not rest.namespaceExists(java.namespace("java_gone"))


def test_properties_of_a_namespace(java, rest, namespace):
    space, kept = java.namespace("java_described"), {"owner": "apache", "purpose": "sample"}
    rest.createNamespace(space, java.map({**kept, "old": "1"}))
    assert rest.loadNamespaceMetadata(space).get("purpose") == "sample"
    assert rest.setProperties(space, java.map({"new": "2"}))
    # It tells only of properties that were set.
    assert not rest.removeProperties(space, java.set("old", "never"))
    found = rest.loadNamespaceMetadata(space)
    assert {key: found.get(key) for key in (*kept, "new", "old")} == {**kept, "new": "2", "old": None}
    assert str(found.get("location")).startswith("file:")
    gone = java.namespace("java_gone")
    for change in (
        lambda: rest.setProperties(gone, java.map({"a": "b"})),
        lambda: rest.removeProperties(gone, java.set("a")),
        lambda: rest.loadNamespaceMetadata(gone),
        lambda: rest.listTables(gone),
        lambda: rest.listNamespaces(gone),
    ):
        with refused("NoSuchNamespaceException", "Namespace does not exist: java_gone"):
            change()


def test_a_namespace_is_dropped_when_it_is_empty(java, rest, namespace, name, table):
    with refused("NamespaceNotEmptyException", f"Namespace {namespace} is not empty"):
        rest.dropNamespace(java.namespace(namespace))
    assert rest.dropTable(name)
    assert rest.dropNamespace(java.namespace(namespace))
    assert not rest.dropNamespace(java.namespace(namespace))


def test_namespaces_are_listed(java, rest, namespace):
    rest.createNamespace(java.namespace("java_another"))
    listed = {str(each) for each in rest.listNamespaces()}
    assert listed >= {namespace, "java_another"}
    assert list(rest.listNamespaces(java.namespace(namespace))) == []


def test_a_nested_namespace_is_refused(java, rest, namespace):
    with refused("BadRequestException", "is not of one level"):
        rest.createNamespace(java.namespace(namespace, "inner"))
    assert not rest.namespaceExists(java.namespace("java_gone"))


@pytest.mark.parametrize("odd", ["with.dot", "with space", "with+plus", "with&ämpersand"])
def test_names_that_the_metastore_does_not_have(java, rest, schema, namespace, odd):
    with refused("BadRequestException", "is not a valid"):
        rest.createNamespace(java.namespace(odd))
    with refused("BadRequestException", "is not a valid"):
        rest.buildTable(java.name(namespace, odd), schema).create()
    assert not rest.tableExists(java.name(namespace, odd))


def test_a_table_with_a_slash_in_its_name(java, rest, schema, namespace):
    name, target = java.name(namespace, "with/slash"), java.name(namespace, "and/another")
    append(java, rest.buildTable(name, schema).create(), "a")
    assert [str(each) for each in rest.listTables(java.namespace(namespace))] == [str(name)]
    rest.renameTable(name, target)
    assert paths(rest.loadTable(target)) == {"a"}
    assert rest.dropTable(target, True)


# Tables.


def test_a_table_is_made_once(rest, name, schema, table, namespace):
    assert rest.tableExists(name)
    assert columns(table) == [("id", "int"), ("data", "string")]
    assert [field.fieldId() for field in table.schema().columns()] == [1, 2]
    assert table.schema().findField("id").doc() == "unique 🤪"
    assert spec_of(table) == []
    assert not table.sortOrder().isSorted()
    assert table.currentSnapshot() is None
    with refused("AlreadyExistsException", f"Table already exists: {namespace}.table"):
        rest.buildTable(name, schema).create()


def test_a_table_with_everything(java, rest, name, schema, warehouse):
    place = f"file:{warehouse}/elsewhere/complete"
    builder = rest.buildTable(name, schema).withLocation(place).withPartitionSpec(java.bucketed(schema))
    properties = java.map({"user": "someone", "created-at": "2024-01-15T00:00:01", "format-version": "2"})
    made = builder.withSortOrder(java.ordered(schema, "id")).withProperties(properties).create()
    assert str(made.location()) == place
    assert spec_of(made) == [("id_bucket", "bucket[16]", 1000)]
    assert [each.sourceId() for each in made.sortOrder().fields()] == [1]
    found = dict(made.properties())
    assert (found["user"], found["created-at"]) == ("someone", "2024-01-15T00:00:01")
    assert "format-version" not in found
    loaded = rest.loadTable(name)
    assert java.metadata(loaded) == java.metadata(made)
    assert str(loaded.uuid()) == str(made.uuid())
    assert str(loaded.name()) == f"lake.{name}"


def test_properties_that_the_catalog_gives(java, iceberg_gateway, namespace, schema):
    given = {"table-default.k1": "default", "table-default.k2": "default", "table-override.k3": "override"}
    catalog = java.rest_catalog(iceberg_gateway, **given)
    made = catalog.buildTable(java.name(namespace, TABLE), schema).withProperties(java.map({"k2": "own", "k3": "own"}))
    found = dict(made.create().properties())
    assert [found[key] for key in ("k1", "k2", "k3")] == ["default", "own", "override"]
    catalog.close()


def test_tables_that_are_missing(java, rest, namespace, schema, table):
    gone, nowhere = java.name(namespace, "gone"), java.name("java_gone", TABLE)
    for each in (gone, nowhere):
        assert not rest.tableExists(each)
        assert not rest.dropTable(each)
        with refused("NoSuchTableException", f"Table does not exist: {each}"):
            rest.loadTable(each)
    with refused("NoSuchNamespaceException", "Namespace does not exist: java_gone"):
        rest.buildTable(nowhere, schema).create()
    with refused("NoSuchTableException", "Table does not exist"):
        rest.renameTable(gone, java.name(namespace, "new"))
    with refused("NoSuchNamespaceException", "Namespace does not exist: java_gone"):
        rest.renameTable(java.name(namespace, TABLE), nowhere)


def test_metadata_tables(java, rest, name, table, namespace):
    append(java, table, "a", "b")
    for each in ("files", "snapshots", "history", "entries", "manifests", "refs", "partitions", "all_manifests"):
        inner = java.iceberg.catalog.TableIdentifier.of(java.texts(namespace, TABLE, each))
        found = rest.loadTable(inner)
        assert str(found.name()) == f"lake.{name}.{each}"
    with refused("NoSuchTableException", "Table does not exist"):
        rest.loadTable(java.iceberg.catalog.TableIdentifier.of(java.texts(namespace, "gone", "files")))


def test_a_table_is_renamed(java, rest, name, table, namespace, schema):
    target = java.name(namespace, "new")
    append(java, table, "a")
    rest.renameTable(name, target)
    assert not rest.tableExists(name)
    assert paths(rest.loadTable(target)) == {"a"}
    assert str(rest.loadTable(target).uuid()) == str(table.uuid())
    again = rest.buildTable(name, schema).create()
    with refused("AlreadyExistsException", "Table already exists"):
        rest.renameTable(name, target)
    assert str(again.uuid()) == str(rest.loadTable(name).uuid())


def test_a_table_is_renamed_into_another_namespace(java, rest, name, table):
    rest.createNamespace(java.namespace("java_target"))
    target = java.name("java_target", "moved")
    rest.renameTable(name, target)
    append(java, rest.loadTable(target), "a")
    assert not rest.tableExists(name)
    assert str(rest.loadTable(target).location()) == str(table.location())


def test_a_drop_after_a_rename_and_a_new_table_of_the_name(java, rest, name, table, namespace, schema):
    target = java.name(namespace, "new")
    rest.renameTable(name, target)
    second = rest.buildTable(name, schema).create()
    append(java, second, "a")
    assert rest.dropTable(target, True)
    assert paths(rest.loadTable(name)) == {"a"}


@pytest.mark.parametrize("purges", [True, False])
def test_a_table_is_dropped(rest, name, table, purges):
    place = Path(str(table.location()).removeprefix("file:"))
    assert rest.dropTable(name, purges)
    assert not rest.tableExists(name)
    assert not rest.dropTable(name, purges)
    assert place.exists() is not purges
    with refused("NoSuchTableException", "Table does not exist"):
        table.refresh()


def test_tables_are_listed(java, rest, namespace, schema):
    assert list(rest.listTables(java.namespace(namespace))) == []
    for each in ("one", "two"):
        rest.buildTable(java.name(namespace, each), schema).create()
    assert sorted(map(str, rest.listTables(java.namespace(namespace)))) == [f"{namespace}.one", f"{namespace}.two"]


def test_lists_in_pages(java, rest, namespace, schema, iceberg_gateway):
    paged = java.rest_catalog(iceberg_gateway, **{"rest-page-size": "2"})
    names = ["a", "b", "c", "d", "e"]
    for each in names:
        rest.buildTable(java.name(namespace, each), schema).create()
    assert [each.name() for each in paged.listTables(java.namespace(namespace))] == names
    assert {str(each) for each in paged.listNamespaces()} == {str(each) for each in rest.listNamespaces()}
    paged.close()


# Changes of schema, partition spec and sort order.


def schema_change(table):
    return table.updateSchema().addColumn("new_col", string(table))


def string(table):
    """The type string; a type of the table's own."""
    return table.schema().findType("data")


def spec_change(java, table):
    return table.updateSpec().addField("shard", java.iceberg.expressions.Expressions.bucket("id", 16))


def order_change(java, table):
    column = java.iceberg.expressions.Expressions.ref("id")
    return table.replaceSortOrder().asc(column, java.iceberg.NullOrder.NULLS_FIRST)


def test_changes_are_committed(java, rest, name, table):
    schema_change(table).commit()
    spec_change(java, table).commit()
    order_change(java, table).commit()
    found = rest.loadTable(name)
    assert columns(found) == [("id", "int"), ("data", "string"), ("new_col", "string")]
    assert spec_of(found) == [("shard", "bucket[16]", 1000)]
    assert [each.sourceId() for each in found.sortOrder().fields()] == [1]
    assert java.metadata(found) == java.metadata(table)


def test_a_change_of_another_part_does_not_conflict(java, rest, name, table):
    """A change that was prepared before another one is sent as it is: its requirements still hold at the server."""
    changes = [
        schema_change(rest.loadTable(name)),
        spec_change(java, rest.loadTable(name)),
        order_change(java, rest.loadTable(name)),
        rest.loadTable(name).updateProperties().set("a", "b"),
    ]
    for change in changes:
        change.commit()
    found = rest.loadTable(name)
    assert [each for each, _ in columns(found)] == ["id", "data", "new_col"]
    assert (len(spec_of(found)), len(found.sortOrder().fields()), dict(found.properties())["a"]) == (1, 1, "b")


def test_a_schema_that_another_has_changed(rest, name, table):
    other, late = rest.loadTable(name), schema_change(table)
    other.updateSchema().deleteColumn("data").commit()
    with refused("CommitFailedException", "Requirement failed: current schema changed: expected id 0 != 1"):
        late.commit()
    assert [each for each, _ in columns(rest.loadTable(name))] == ["id"]


def test_a_field_id_that_another_has_given_away(rest, name, table):
    late, transaction = schema_change(table), rest.loadTable(name).newTransaction()
    transaction.updateSchema().addColumn("another_col", string(table)).commit()
    transaction.updateSchema().deleteColumn("another_col").commit()
    transaction.commitTransaction()
    assert columns(rest.loadTable(name)) == columns(table)
    with refused("CommitFailedException", "Requirement failed: last assigned field id changed: expected id 2 != 3"):
        late.commit()


def test_a_schema_that_goes_back(java, rest, name, table):
    schema_change(table).commit()
    assert columns(table)[-1] == ("new_col", "string")
    table.updateSchema().deleteColumn("new_col").commit()
    found = java.metadata(rest.loadTable(name))
    assert (found["current-schema-id"], len(found["schemas"]), found["last-column-id"]) == (0, 2, 3)


def test_a_spec_that_another_has_changed(java, rest, name, schema):
    table = rest.buildTable(name, schema).withPartitionSpec(java.bucketed(schema, "data")).create()
    late = spec_change(java, table)
    rest.loadTable(name).updateSpec().removeField("data_bucket").commit()
    with refused("CommitFailedException", "Requirement failed: default partition spec changed: expected id 0 != 1"):
        late.commit()
    assert spec_of(rest.loadTable(name)) == []


def test_a_partition_id_that_another_has_given_away(java, rest, name, table):
    late, transaction = spec_change(java, table), rest.loadTable(name).newTransaction()
    transaction.updateSpec().addField("another", java.iceberg.expressions.Expressions.truncate("data", 4)).commit()
    transaction.updateSpec().removeField("another").commit()
    transaction.commitTransaction()
    expected = "Requirement failed: last assigned partition id changed: expected id 999 != 1000"
    with refused("CommitFailedException", expected):
        late.commit()
    assert spec_of(rest.loadTable(name)) == []


def test_a_spec_that_goes_back(java, rest, name, table):
    spec_change(java, table).commit()
    table.updateSpec().removeField("shard").commit()
    found = java.metadata(rest.loadTable(name))
    assert (found["default-spec-id"], len(found["partition-specs"]), found["last-partition-id"]) == (0, 2, 1000)


def test_an_order_that_goes_back(java, rest, name, table):
    order_change(java, table).commit()
    table.replaceSortOrder().commit()
    found = java.metadata(rest.loadTable(name))
    assert (found["default-sort-order-id"], len(found["sort-orders"])) == (0, 2)


def test_a_name_that_is_another_table_now(rest, name, table, schema):
    change = schema_change(table)
    rest.dropTable(name)
    again = rest.buildTable(name, schema).create()
    with refused("CommitFailedException", "Requirement failed: UUID does not match"):
        change.commit()
    assert columns(rest.loadTable(name)) == columns(again)


def test_a_table_that_was_dropped_before_the_commit(rest, name, table):
    change = schema_change(table)
    rest.dropTable(name)
    with refused("NoSuchTableException", "Table does not exist"):
        change.commit()


# Data.


def test_appends(java, rest, name, table):
    append(java, table, "a", "b")
    assert paths(rest.loadTable(name)) == {"a", "b"}
    found = java.metadata(rest.loadTable(name))
    assert [each["sequence-number"] for each in found["snapshots"]] == [1, 2]
    assert found["snapshots"][1]["summary"]["total-records"] == "4"


@pytest.mark.parametrize("before", [(), ("before",)])
def test_appends_at_once(java, rest, name, table, before):
    append(java, table, *before)
    late = rest.loadTable(name).newFastAppend().appendFile(java.file("late"))
    late.apply()
    append(java, rest.loadTable(name), "soon")
    late.commit()
    assert paths(rest.loadTable(name)) == {*before, "soon", "late"}


def test_a_transaction_of_everything(java, rest, name, table):
    transaction = table.newTransaction()
    transaction.updateSchema().addColumn("new", string(table)).commit()
    transaction.updateSpec().addField("shard", java.iceberg.expressions.Expressions.bucket("id", 16)).commit()
    order_change(java, transaction).commit()
    transaction.updateProperties().set("a", "b").commit()
    assert columns(rest.loadTable(name)) == columns(table)
    transaction.commitTransaction()
    found = rest.loadTable(name)
    assert ([each for each, _ in columns(found)], len(spec_of(found))) == (["id", "data", "new"], 1)
    assert dict(found.properties())["a"] == "b"


def test_branches_and_tags(java, rest, name, table):
    append(java, table, "a")
    first = table.currentSnapshot().snapshotId()
    table.manageSnapshots().createBranch("audit").createTag("first", first).setMaxRefAgeMs("first", 10**9).commit()
    table.newFastAppend().appendFile(java.file("b")).toBranch("audit").commit()
    append(java, table, "c")
    found = rest.loadTable(name)
    assert paths(found) == {"a", "c"}
    refs = java.metadata(found)["refs"]
    assert refs["first"] == {"snapshot-id": first, "type": "tag", "max-ref-age-ms": 10**9}
    table.manageSnapshots().rollbackTo(first).fastForwardBranch("main", "audit").removeTag("first").commit()
    assert paths(rest.loadTable(name)) == {"a", "b"}
    assert set(java.metadata(rest.loadTable(name))["refs"]) == {"main", "audit"}


def test_snapshots_expire_and_deletes_are_replaced(java, rest, name, table):
    append(java, table, "a", "b")
    table.newDelete().deleteFile(java.file("a")).commit()
    table.newOverwrite().deleteFile(java.file("b")).addFile(java.file("c")).commit()
    assert paths(rest.loadTable(name)) == {"c"}
    current = table.currentSnapshot().snapshotId()
    table.expireSnapshots().expireOlderThan(table.currentSnapshot().timestampMillis()).retainLast(1).cleanExpiredFiles(
        False
    ).commit()
    found = java.metadata(rest.loadTable(name))
    assert [each["snapshot-id"] for each in found["snapshots"]] == [current]
    assert [each["snapshot-id"] for each in found["snapshot-log"]] == [current]


def test_row_deltas_with_delete_files(java, rest, name, table):
    append(java, table, "a")
    spec = java.iceberg.PartitionSpec.unpartitioned()
    deletes = java.iceberg.FileMetadata.deleteFileBuilder(spec).ofPositionDeletes().withPath("/path/to/d.parquet")
    deletes = deletes.withFileSizeInBytes(10).withRecordCount(1).build()
    table.newRowDelta().addDeletes(deletes).commit()
    summary = java.metadata(rest.loadTable(name))["snapshots"][-1]["summary"]
    assert (summary["total-delete-files"], summary["total-position-deletes"]) == ("1", "1")


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_format_versions(java, rest, name, schema, version):
    made = rest.buildTable(name, schema).withProperty("format-version", version).create()
    append(java, made, "a")
    assert java.metadata(rest.loadTable(name))["format-version"] == int(version)
    for higher in range(int(version) + 1, 4):
        made.updateProperties().set("format-version", str(higher)).commit()
        append(java, made, str(higher))
        assert java.metadata(rest.loadTable(name))["format-version"] == higher
    assert len(paths(rest.loadTable(name))) == 4 - int(version)


def test_statistics(java, rest, name, table):
    append(java, table, "a")
    snapshot = table.currentSnapshot().snapshotId()
    empty = java.jvm.java.util.ArrayList()
    file = java.iceberg.GenericStatisticsFile(snapshot, f"{table.location()}/metadata/s.puffin", 4, 2, empty)
    table.updateStatistics().setStatistics(file).commit()
    assert java.metadata(rest.loadTable(name))["statistics"][0]["snapshot-id"] == snapshot
    table.updateStatistics().removeStatistics(snapshot).commit()
    assert java.metadata(rest.loadTable(name))["statistics"] == []


# Transactions that make and replace tables.


def test_a_table_made_in_a_transaction(java, rest, name, schema, warehouse):
    place = f"file:{warehouse}/elsewhere/in_transaction"
    builder = rest.buildTable(name, schema).withPartitionSpec(java.bucketed(schema)).withLocation(place)
    create = builder.withSortOrder(java.ordered(schema, "id")).withProperty("user", "someone").createTransaction()
    assert not rest.tableExists(name)
    assert str(create.table().location()) == place
    create.newFastAppend().appendFile(java.file("a", create.table().spec(), "id_bucket=0")).commit()
    create.updateSchema().addColumn("new", string(create.table())).commit()
    create.updateProperties().set("a", "b").commit()
    assert not rest.tableExists(name)
    create.commitTransaction()
    found = rest.loadTable(name)
    assert (paths(found), len(columns(found)), len(spec_of(found))) == ({"a"}, 3, 1)
    assert dict(found.properties()).items() >= {"user": "someone", "a": "b"}.items()
    metadata = java.metadata(found)
    assert (metadata["current-schema-id"], metadata["last-sequence-number"]) == (1, 1)
    assert str(found.uuid()) == str(create.table().uuid())


def test_two_transactions_that_make_one_table(rest, name, schema):
    create = rest.buildTable(name, schema).createTransaction()
    made = rest.buildTable(name, schema).create()
    with refused("AlreadyExistsException", "Requirement failed: table already exists"):
        create.commitTransaction()
    assert str(rest.loadTable(name).uuid()) == str(made.uuid())


@pytest.mark.parametrize("exists", [True, False])
def test_create_or_replace(java, rest, name, schema, exists):
    if exists:
        first = rest.buildTable(name, schema).withPartitionSpec(java.bucketed(schema)).create()
        first.newFastAppend().appendFile(java.file("old", first.spec(), "id_bucket=1")).commit()
    change = rest.buildTable(name, java.schema(*OTHER)).withProperty("b", "2").createOrReplaceTransaction()
    change.newFastAppend().appendFile(java.file("new")).commit()
    assert rest.tableExists(name) is exists
    change.commitTransaction()
    found = rest.loadTable(name)
    assert ([each for each, _ in columns(found)], spec_of(found)) == (["id", "day"], [])
    assert paths(found) == {"new"}
    assert len(java.metadata(found)["snapshots"]) == 1 + exists
    if exists:
        assert str(found.uuid()) == str(first.uuid())
        assert [field.fieldId() for field in found.schema().columns()] == [1, 3]


def test_create_or_replace_while_another_creates(java, rest, name, schema):
    change = rest.buildTable(name, schema).createOrReplaceTransaction()
    rest.buildTable(name, java.schema(*OTHER)).create()
    with refused("AlreadyExistsException", "Requirement failed: table already exists"):
        change.commitTransaction()
    assert [each for each, _ in columns(rest.loadTable(name))] == ["id", "day"]


def test_a_table_is_replaced_with_everything(java, rest, name, schema, warehouse):
    first = rest.buildTable(name, schema).withProperty("old", "1").create()
    append(java, first, "a")
    other, place = java.schema(*OTHER), f"file:{warehouse}/elsewhere/replaced"
    builder = rest.buildTable(name, other).withPartitionSpec(java.bucketed(other)).withLocation(place)
    replace = builder.withSortOrder(java.ordered(other, "id")).withProperty("new", "2").replaceTransaction()
    replace.newFastAppend().appendFile(java.file("b", replace.table().spec(), "id_bucket=0")).commit()
    assert paths(rest.loadTable(name)) == {"a"}
    replace.commitTransaction()
    found = rest.loadTable(name)
    assert (paths(found), str(found.location()), str(found.uuid())) == ({"b"}, place, str(first.uuid()))
    assert dict(found.properties()).items() >= {"old": "1", "new": "2"}.items()
    assert (len(spec_of(found)), len(found.sortOrder().fields())) == (1, 1)
    # The history of the table stays.
    assert len(java.metadata(found)["snapshot-log"]) == 2


def test_a_table_that_is_missing_is_not_replaced(java, rest, namespace, schema):
    gone = java.name(namespace, "gone")
    with refused("NoSuchTableException", f"Table does not exist: {gone}"):
        rest.buildTable(gone, schema).replaceTransaction()


def two_replacements(java, rest, name, first, second):
    """Two transactions from one state that replace a table, each with a file; the first is committed."""
    changes = [each(rest.buildTable(name, schema)).replaceTransaction() for schema, each in (first, second)]
    for number, change in enumerate(changes):
        change.newFastAppend().appendFile(java.file(str(number), change.table().spec())).commit()
    changes[0].commitTransaction()
    return changes[1]


def test_replacements_at_once(java, rest, name, schema):
    rest.buildTable(name, schema).withProperty("keep", "1").create()
    second = two_replacements(
        java,
        rest,
        name,
        (schema, lambda builder: builder.withProperty("a", "1")),
        (schema, lambda builder: builder.withProperty("b", "2")),
    )
    second.commitTransaction()
    found = rest.loadTable(name)
    assert paths(found) == {"1"}
    assert set(dict(found.properties())) >= {"keep", "a", "b"}


def test_replacements_at_once_with_one_new_schema(java, rest, name, schema):
    rest.buildTable(name, java.schema(*OTHER)).create()
    second = two_replacements(java, rest, name, (java.schema(*OTHER), same), (java.schema(*OTHER), same))
    second.commitTransaction()
    assert paths(rest.loadTable(name)) == {"1"}


def same(builder):
    return builder


def test_replacements_at_once_whose_fields_conflict(java, rest, name, schema):
    rest.buildTable(name, schema).create()
    second = two_replacements(java, rest, name, (java.schema(*OTHER), same), (java.schema(*OTHER), same))
    with refused("CommitFailedException", "Requirement failed: last assigned field id changed"):
        second.commitTransaction()
    assert paths(rest.loadTable(name)) == {"0"}


def test_replacements_at_once_with_one_old_spec(java, rest, name, schema):
    rest.buildTable(name, schema).create()
    second = two_replacements(
        java,
        rest,
        name,
        (schema, lambda builder: builder.withPartitionSpec(java.bucketed(schema))),
        (schema, same),
    )
    second.commitTransaction()
    found = rest.loadTable(name)
    assert (paths(found), spec_of(found)) == ({"1"}, [])


def test_replacements_at_once_whose_specs_conflict(java, rest, name, schema):
    rest.buildTable(name, schema).create()
    second = two_replacements(
        java,
        rest,
        name,
        (schema, lambda builder: builder.withPartitionSpec(java.bucketed(schema))),
        (schema, lambda builder: builder.withPartitionSpec(java.bucketed(schema, buckets=4))),
    )
    with refused("CommitFailedException", "Requirement failed: last assigned partition id changed"):
        second.commitTransaction()
    assert [each for _, each, _ in spec_of(rest.loadTable(name))] == ["bucket[16]"]


@pytest.mark.parametrize("second_has_order", [True, False])
def test_replacements_at_once_with_orders(java, rest, name, schema, second_has_order):
    """Orders have no ids that two writers could give away twice, so they never conflict."""
    rest.buildTable(name, schema).create()
    second = two_replacements(
        java,
        rest,
        name,
        (schema, lambda builder: builder.withSortOrder(java.ordered(schema, "id"))),
        (schema, (lambda builder: builder.withSortOrder(java.ordered(schema, "data"))) if second_has_order else same),
    )
    second.commitTransaction()
    order = rest.loadTable(name).sortOrder().fields()
    assert [each.sourceId() for each in order] == ([2] if second_has_order else [])


def test_a_replacement_of_a_table_that_is_gone(java, rest, name, schema, table):
    replace = rest.buildTable(name, schema).replaceTransaction()
    rest.dropTable(name)
    with refused("NoSuchTableException", "Table does not exist"):
        replace.commitTransaction()


def test_several_tables_change_together(java, rest, namespace, schema):
    names = [java.name(namespace, each) for each in ("one", "two")]
    for each in names:
        rest.buildTable(each, schema).create()

    def commits(*properties):
        found = java.jvm.java.util.ArrayList()
        for each, (key, kept) in zip(names, properties, strict=True):
            base = rest.loadTable(each).operations().current()
            updated = java.iceberg.TableMetadata.buildFrom(base).setProperties(java.map({key: kept})).build()
            found.add(java.iceberg.catalog.TableCommit.create(each, base, updated))
        return found

    rest.commitTransaction(commits(("a", "1"), ("b", "2")))
    assert [dict(rest.loadTable(each).properties()).get(key) for each, key in zip(names, "ab", strict=True)] == [
        "1",
        "2",
    ]
    late = commits(("c", "3"), ("d", "4"))
    rest.dropTable(names[1])
    with refused("NoSuchTableException", "Table does not exist"):
        rest.commitTransaction(late)
    assert dict(rest.loadTable(names[0]).properties()).get("c") is None


# Files.


def test_a_table_is_registered(java, rest, name, table, namespace):
    append(java, table, "a")
    place = table.operations().current().metadataFileLocation()
    with refused("AlreadyExistsException", f"Table already exists: {name}"):
        rest.registerTable(name, place)
    assert rest.dropTable(name, False)
    again = rest.registerTable(name, place)
    assert (paths(again), str(again.uuid())) == ({"a"}, str(table.uuid()))
    append(java, again, "b")
    assert rest.dropTable(name, False)
    with refused("NoSuchNamespaceException", "Namespace does not exist: java_gone"):
        rest.registerTable(java.name("java_gone", TABLE), place)
    with refused("NoSuchTableException", "cannot be read"):
        rest.registerTable(name, f"{place}.gone.metadata.json")


def test_old_metadata_files_are_deleted_where_the_table_asks(java, rest, name, schema):
    properties = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    made = rest.buildTable(name, schema).withProperties(java.map(properties)).create()
    folder = Path(str(made.location()).removeprefix("file:")) / "metadata"
    for number in range(4):
        made.updateProperties().set("a", str(number)).commit()
    assert len(list(folder.glob("*.metadata.json"))) == 2
    current = made.operations().current()
    assert next(str(each.file()) for each in current.previousFiles()).rpartition("/")[2] in os.listdir(folder)
    made.refresh()


@pytest.mark.parametrize("codec", ["gzip", "none"])
def test_compressed_metadata_files(java, rest, name, schema, codec):
    made = rest.buildTable(name, schema).withProperty("write.metadata.compression-codec", codec).create()
    append(java, made, "a")
    place = str(rest.loadTable(name).operations().current().metadataFileLocation())
    assert place.endswith(".gz.metadata.json") is (codec == "gzip")
    # As any client of Iceberg reads it.
    read = java.iceberg.TableMetadataParser.read(made.io(), place)
    assert str(read.uuid()) == str(made.uuid())


def test_an_empty_metadata_file_is_not_registered(java, rest, namespace, table):
    place = Path(str(table.location()).removeprefix("file:")) / "metadata" / "empty.metadata.json"
    place.write_text("")
    with refused("BadRequestException", "is no JSON"):
        rest.registerTable(java.name(namespace, "copy"), f"file:{place}")
    assert not rest.tableExists(java.name(namespace, "copy"))


def test_reports_of_scans_arrive(java, rest, name, table, iceberg_gateway):
    append(java, table, "a")
    assert paths(rest.loadTable(name)) == {"a"}

    def has_arrived():
        with iceberg_gateway.connection() as connection:
            connection.request("GET", "/metrics")
            return b'method="iceberg.reportMetrics",outcome="ok"' in connection.getresponse().read()

    until(has_arrived)


# Logins and other settings.


def test_a_token_as_login(java, iceberg_gateway, rest, name, table):
    command = [COMMAND, "token", "create", USER, "--data-dir", str(iceberg_gateway.data_dir)]
    token = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    by_header = {"rest.auth.type": "none", "header.Authorization": f"Bearer {token}"}
    for given in (by_header, {"rest.auth.type": "oauth2", "token": token}):
        catalog = java.rest_catalog(iceberg_gateway, **given)
        assert str(catalog.loadTable(name).uuid()) == str(table.uuid())
        catalog.close()


def test_refused_logins(java, iceberg_gateway):
    with refused("NotAuthorizedException", "Not authorized"):
        java.rest_catalog(iceberg_gateway, **{"rest.auth.basic.password": "wrong"})
    with refused("BadRequestException", "this server issues no tokens"):
        java.rest_catalog(iceberg_gateway, **{"rest.auth.type": "oauth2", "credential": "someone:secret"})
    with refused("RESTException", "Warehouse does not exist: java_gone"):
        java.rest_catalog(iceberg_gateway, warehouse="java_gone")


def test_snapshots_that_are_loaded_late(java, iceberg_gateway, rest, name, table):
    append(java, table, "a", "b", "c")
    late = java.rest_catalog(iceberg_gateway, **{"snapshot-loading-mode": "refs"})
    found = late.loadTable(name)
    append(java, found, "d")
    assert len(list(late.loadTable(name).snapshots())) == 4
    late.close()
