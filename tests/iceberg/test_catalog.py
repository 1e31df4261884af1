"""PyIceberg's HiveCatalog through the bridge, unchanged: all of its operations (clients §3)."""

import pyarrow as pa
import pytest
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.expressions import EqualTo
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from hms_gateway.rpc.structs import LockComponent, LockLevel, LockRequest, LockType, ShowLocksRequest, UnlockRequest

pytestmark = [pytest.mark.iceberg, pytest.mark.slow]

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "name", StringType(), required=False, doc='é "quoted"'),
)
EVERY_TYPE = Schema(
    NestedField(1, "day", DateType(), required=True),
    NestedField(2, "at", TimestampType()),
    NestedField(3, "at_zone", TimestamptzType()),
    NestedField(4, "time", TimeType()),
    NestedField(5, "price", DecimalType(20, 4)),
    NestedField(6, "uuid", UUIDType()),
    NestedField(7, "fixed", FixedType(4)),
    NestedField(8, "bytes", BinaryType()),
    NestedField(9, "list", ListType(10, LongType())),
    NestedField(11, "map", MapType(12, StringType(), 13, StructType(NestedField(14, "deep", StringType())))),
)


@pytest.fixture
def namespace(catalog, request):
    name = request.node.name.removeprefix("test_")[:60]
    catalog.create_namespace(name)
    yield name
    for table in catalog.list_tables(name):
        catalog.drop_table(table)
    catalog.drop_namespace(name)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array([f"row {number}" for number in ids])})


def ids(table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def no_locks(thrift_client) -> bool:
    return not thrift_client.show_locks(ShowLocksRequest()).locks


def test_namespaces(catalog, warehouse):
    catalog.create_namespace("spaces", {"comment": "ünïcode", "a": "b"})
    assert ("spaces",) in catalog.list_namespaces()
    assert catalog.list_namespaces("spaces") == []
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace("spaces")
    catalog.create_namespace_if_not_exists("spaces")
    location = f"file:{warehouse}/spaces.db"
    assert catalog.load_namespace_properties("spaces") == {"a": "b", "comment": "ünïcode", "location": location}
    summary = catalog.update_namespace_properties("spaces", {"a", "missing"}, {"c": "d"})
    assert (summary.removed, summary.updated, summary.missing) == (["a"], ["c"], ["missing"])
    assert catalog.load_namespace_properties("spaces")["c"] == "d"
    assert catalog.namespace_exists("spaces")
    assert catalog.list_tables("spaces") == []
    catalog.drop_namespace("spaces")
    assert not catalog.namespace_exists("spaces")
    for use in (catalog.drop_namespace, catalog.load_namespace_properties, catalog.update_namespace_properties):
        with pytest.raises(NoSuchNamespaceError):
            use("spaces")


def test_tables(catalog, namespace, warehouse):
    name = f"{namespace}.t"
    table = catalog.create_table(name, SCHEMA, properties={"p": "é\x01\n"})
    assert table.location() == f"file:{warehouse}/{namespace}.db/t"
    assert table.properties["p"] == "é\x01\n"
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table(name, SCHEMA)
    assert catalog.create_table_if_not_exists(name, SCHEMA).metadata == table.metadata
    assert catalog.list_tables(namespace) == [(namespace, "t")]
    assert catalog.table_exists(name)
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace(namespace)
    assert catalog.load_table(name).metadata == table.metadata
    catalog.drop_table(name)
    assert not catalog.table_exists(name)
    for use in (catalog.load_table, catalog.drop_table):
        with pytest.raises(NoSuchTableError):
            use(name)
    again = catalog.register_table(name, table.metadata_location)
    assert again.metadata == table.metadata
    with pytest.raises(TableAlreadyExistsError):
        catalog.register_table(name, table.metadata_location)


def test_commits(catalog, namespace, thrift_client):
    table = catalog.create_table(f"{namespace}.t", SCHEMA)
    table.append(rows(1, 2))
    table.append(rows(3))
    assert ids(table) == [1, 2, 3]
    table.overwrite(rows(4), EqualTo("id", 1))
    table.delete(EqualTo("id", 2))
    assert ids(catalog.load_table(f"{namespace}.t")) == [3, 4]
    with table.update_schema() as update:
        update.add_column("added", StringType(), "came later").rename_column("name", "label")
    with table.transaction() as transaction:
        transaction.set_properties(one="1", two="2")
        transaction.remove_properties("two")
    table.refresh()
    loaded = catalog.load_table(f"{namespace}.t")
    assert loaded.schema().column_names == ["id", "label", "added"]
    assert loaded.properties["one"] == "1"
    assert "two" not in loaded.properties
    stored = thrift_client.get_table(namespace, "t")
    assert [column.name for column in stored.sd.cols] == ["id", "label", "added"]
    assert stored.parameters["metadata_location"] == loaded.metadata_location
    assert stored.parameters["one"] == "1"
    assert "two" not in stored.parameters
    assert no_locks(thrift_client)


def test_every_type_and_partitions(catalog, namespace, thrift_client):
    spec = PartitionSpec(
        PartitionField(source_id=1, field_id=1000, transform=IdentityTransform(), name="day"),
        PartitionField(source_id=2, field_id=1001, transform=DayTransform(), name="at_day"),
    )
    table = catalog.create_table(f"{namespace}.t", EVERY_TYPE, partition_spec=spec)
    assert catalog.load_table(f"{namespace}.t").schema().as_struct() == table.schema().as_struct()
    types = {column.name: column.type for column in thrift_client.get_table(namespace, "t").sd.cols}
    assert types["at_zone"] == "timestamp with local time zone"
    assert types["map"] == "map<string,struct<deep:string>>"
    with table.transaction() as transaction:
        transaction.set_properties(after="alter")
    assert catalog.load_table(f"{namespace}.t").properties["after"] == "alter"


def test_a_table_made_in_a_transaction(catalog, namespace, thrift_client):
    transaction = catalog.create_table_transaction(f"{namespace}.t", SCHEMA)
    assert not catalog.table_exists(f"{namespace}.t")
    transaction.append(rows(1))
    transaction.commit_transaction()
    assert ids(catalog.load_table(f"{namespace}.t")) == [1]
    assert no_locks(thrift_client)


def test_renames(catalog, namespace):
    table = catalog.create_table(f"{namespace}.t", SCHEMA)
    table.append(rows(1))
    catalog.create_table(f"{namespace}.taken", SCHEMA)
    catalog.create_namespace("renames_other")
    assert ids(catalog.rename_table(f"{namespace}.t", "renames_other.u")) == [1]
    assert not catalog.table_exists(f"{namespace}.t")
    moved = catalog.load_table("renames_other.u")
    moved.append(rows(2))
    assert ids(moved) == [1, 2]
    with pytest.raises(TableAlreadyExistsError):
        catalog.rename_table("renames_other.u", f"{namespace}.taken")
    with pytest.raises(NoSuchNamespaceError):
        catalog.rename_table("renames_other.u", "nowhere.u")
    with pytest.raises(NoSuchTableError):
        catalog.rename_table(f"{namespace}.t", f"{namespace}.v")
    catalog.drop_table("renames_other.u")
    catalog.drop_namespace("renames_other")


def test_a_stale_commit_is_repeated_on_what_is_there(catalog, namespace, thrift_client):
    one = catalog.create_table(f"{namespace}.t", SCHEMA)
    other = catalog.load_table(f"{namespace}.t")
    one.append(rows(1))
    other.append(rows(2))
    assert ids(catalog.load_table(f"{namespace}.t")) == [1, 2]
    assert no_locks(thrift_client)


def test_a_lock_of_somebody_else_is_respected(open_catalog, namespace, thrift_client):
    catalog = open_catalog(**{"lock-check-retries": "2"})
    table = catalog.create_table(f"{namespace}.t", SCHEMA, properties={"commit.retry.num-retries": "1"})
    component = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, namespace, "t")
    held = thrift_client.lock(LockRequest([component], user="somebody", hostname="elsewhere"))
    with pytest.raises(CommitFailedException):
        table.append(rows(1))
    assert [lock.lockid for lock in thrift_client.show_locks(ShowLocksRequest()).locks] == [held.lockid]
    thrift_client.unlock(UnlockRequest(held.lockid))
    table.append(rows(2))
    assert ids(catalog.load_table(f"{namespace}.t")) == [2]


def test_a_user_with_groups_is_accepted(open_catalog):
    assert ("default",) in open_catalog(ugi="alice:staff").list_namespaces()
