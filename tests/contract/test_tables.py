"""Tables: the whole struct comes back, names, types and filters select, key types may change."""

import pytest

from hms_gateway.metastore.filters.table_filter import parse_table_filter
from hms_gateway.metastore.ports.store import DuplicateKey, Selection, UnstorableText
from hms_gateway.metastore.vocabulary.patterns import parse_pattern
from hms_gateway.rpc.structs import (
    CreationMetadata,
    FieldSchema,
    Order,
    PrincipalPrivilegeSet,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
    TableMeta,
)
from hms_gateway.storage.writing.store import SqlStore
from tests.contract.objects import bound, create, database, descriptor, get, keys, names, partition, table

EVERYTHING = table(
    sd=descriptor(
        cols=[FieldSchema("a", "int", ""), FieldSchema("b", "map<string,array<int>>", None), FieldSchema("c")],
        bucketCols=["a"],
        sortCols=[Order("a", 1), Order("b", 0)],
        parameters={"x": "y"},
        serdeInfo=SerDeInfo("name", "lib", {"\x01": "\x02"}, "words", "ser", "de", 1),
        skewedInfo=SkewedInfo(["a"], [["1"], ["2", "3"]], {("1",): "file:/x/a=1", ("2", "3"): "file:/x/b"}),
        storedAsSubDirectories=True,
        compressed=True,
    ),
    retention=7,
    lastAccessTime=8,
    viewOriginalText="select 1",
    viewExpandedText="SELECT 1",
    rewriteEnabled=True,
    creationMetadata=CreationMetadata("hive", "sales", "orders", {"sales.x"}, "5"),
    catName="hive",
    ownerType=1,
    writeId=12,
    requiredReadCapabilities=["one"],
    txnId=2**40,
)


@pytest.mark.parametrize(
    "stored",
    [
        EVERYTHING,
        table(),
        table(sd=None, partitionKeys=None, parameters=None, owner=None, tableType=None),
        table(sd=StorageDescriptor()),
        table(sd=StorageDescriptor(cols=[])),
        table(sd=StorageDescriptor(cols=[FieldSchema("a", "int")], location="")),
        table(sd=descriptor(None), partitionKeys=[]),
    ],
)
def test_everything_of_a_table_comes_back(store: SqlStore, stored: Table) -> None:
    found = create(store, stored)
    assert found.table == stored
    assert found.partition_count == 0
    assert store.read(lambda snapshot: snapshot.tables("sales")) == [found]


def test_what_is_not_the_tables_own_is_left_out(store: SqlStore) -> None:
    found = create(store, table(privileges=PrincipalPrivilegeSet(), temporary=True, id=5))
    assert found.table == table()


def test_map_entries_without_value_are_dropped(store: SqlStore) -> None:
    found = create(store, table(parameters={"a": None, "b": "c"}))
    assert found.table.parameters == {"b": "c"}


@pytest.mark.parametrize("name", ["missing", "a\0", "\udfff", "ORDERS", ""])
def test_an_unknown_name_finds_nothing(store: SqlStore, name: str) -> None:
    create(store)
    assert store.read(lambda snapshot: snapshot.table("sales", name)) is None
    assert store.read(lambda snapshot: snapshot.table(name, "orders")) is None
    assert store.read(lambda snapshot: snapshot.tables(name)) == []
    assert store.read(lambda snapshot: snapshot.table_names(name)) == []


def test_tables_by_name_skip_the_unknown_and_come_once(store: SqlStore) -> None:
    for name in ("b", "a", "c"):
        create(store, table(name))
    found = store.read(lambda snapshot: snapshot.tables("sales", ["c", "a", "nope", "a", "x\0y"]))
    assert [stored.table.tableName for stored in found] == ["a", "c"]
    assert store.read(lambda snapshot: snapshot.tables("sales", [])) == []


def test_a_taken_name_is_refused_in_its_database_only(store: SqlStore) -> None:
    stored = create(store)
    create(store, table(db_name="other"))
    with pytest.raises(DuplicateKey, match="orders"):
        store.write(lambda transaction: transaction.insert_table(stored.database_id, table()))
    second = create(store, table("second"))
    with pytest.raises(DuplicateKey, match="orders"):
        store.write(lambda transaction: transaction.update_table(second.table_id, second.database_id, table()))


@pytest.mark.parametrize("field", ["owner", "tableType", "viewOriginalText", "viewExpandedText"])
def test_text_no_database_can_hold_is_refused_by_name(store: SqlStore, field: str) -> None:
    database_id = store.write(lambda transaction: transaction.insert_database(database()))
    with pytest.raises(UnstorableText, match=r"sales\.orders"):
        store.write(lambda transaction: transaction.insert_table(database_id, table(**{field: "a\0b"})))


def test_a_table_moves_to_another_database_with_its_partitions(store: SqlStore) -> None:
    stored = create(store, values=[["a", "1"]])
    other = store.write(lambda transaction: transaction.insert_database(database("other")))
    store.write(lambda transaction: transaction.update_table(stored.table_id, other, table("renamed", "other")))
    moved = get(store, "other", "renamed")
    assert moved.table == table("renamed", "other")
    assert moved.partition_count == 1
    found = store.read(lambda snapshot: snapshot.partition(moved, "k0=a/k1=1"))
    assert found is not None
    assert (found.partition.dbName, found.partition.tableName) == ("other", "renamed")


def test_deleting_takes_the_partitions_along(store: SqlStore) -> None:
    stored = create(store, values=[["a", "1"]])
    store.write(lambda transaction: transaction.delete_table(stored.table_id))
    assert store.read(lambda snapshot: snapshot.table("sales", "orders")) is None
    assert names(store, stored) == []
    assert names(store, create(store)) == []


def test_names_by_pattern_type_filter_and_limit(store: SqlStore) -> None:
    create(store, table("a", owner="robert", lastAccessTime=5, parameters={"Size": "10"}))
    create(store, table("b", owner="anna", lastAccessTime=9, parameters={"Size": "9"}, tableType="VIRTUAL_VIEW"))
    create(store, table("ab", owner=None, tableType=None))
    create(store, table("a", "other"))

    def found(**arguments: object) -> list[str]:
        return store.read(lambda snapshot: snapshot.table_names("sales", **arguments))  # type: ignore[arg-type]

    assert found() == ["a", "ab", "b"]
    assert found(pattern=parse_pattern("a*")) == ["a", "ab"]
    assert found(table_type="MANAGED_TABLE") == ["a"]
    assert found(table_type="managed_table") == []
    assert found(limit=2) == ["a", "ab"]
    assert found(limit=0) == []
    for text, expected in {
        'hive_filter_field_owner__ = "anna"': ["b"],
        'hive_filter_field_owner__ like ".*rob.*"': ["a"],
        "hive_filter_field_last_access__ > 4": ["a", "b"],
        'hive_filter_field_params__Size = "10"': ["a"],
        'hive_filter_field_params__size = "10"': [],
        'hive_filter_field_params__Size like ".*" and hive_filter_field_owner__ != "anna"': ["a"],
    }.items():
        assert found(filter=parse_table_filter(text)) == expected, text
    both = parse_table_filter("hive_filter_field_last_access__ > 4")
    assert found(filter=both, limit=1) == ["a"]
    assert found(filter=both, pattern=parse_pattern("b")) == ["b"]


def test_metas_by_patterns_and_types(store: SqlStore) -> None:
    create(store, table("a", parameters={"comment": "words"}))
    create(store, table("b", tableType="VIRTUAL_VIEW"))
    create(store, table("a", "other"))

    def found(*arguments: object) -> list[tuple[str | None, str | None]]:
        metas = store.read(lambda snapshot: snapshot.table_metas(*arguments))  # type: ignore[arg-type]
        return [(meta.dbName, meta.tableName) for meta in metas]

    assert found(None, None, None) == [("other", "a"), ("sales", "a"), ("sales", "b")]
    assert found(parse_pattern("s*"), parse_pattern("a"), None) == [("sales", "a")]
    assert found(None, None, ["VIRTUAL_VIEW", "x"]) == [("sales", "b")]
    assert found(None, None, [""]) == []
    metas = store.read(lambda snapshot: snapshot.table_metas(parse_pattern("sales"), parse_pattern("a"), []))
    assert metas == [TableMeta("sales", "a", "MANAGED_TABLE", "words", ownerName="nobody")]


def test_when_a_key_changes_its_type_filters_compare_anew(store: SqlStore) -> None:
    stored = create(store, table(partitionKeys=keys("string")), [["10"], ["9"], ["x"]])
    assert names(store, stored, Selection(filter=bound("k0 > '5'", stored))) == ["k0=9", "k0=x"]
    changed = table(partitionKeys=keys("int"))
    store.write(lambda transaction: transaction.update_table(stored.table_id, stored.database_id, changed))
    stored = get(store)
    assert names(store, stored, Selection(filter=bound("k0 > 5", stored))) == ["k0=10", "k0=9"]


def test_a_changed_location_leaves_partitions_where_they_are(store: SqlStore) -> None:
    stored = create(store, values=[["a", "1"]])
    changed = table(sd=descriptor("file:/elsewhere"))
    store.write(lambda transaction: transaction.update_table(stored.table_id, stored.database_id, changed))
    stored = get(store)
    store.write(lambda transaction: transaction.insert_partitions(stored, [partition(changed, ["b", "2"])]))
    found = store.read(lambda snapshot: snapshot.partitions(get(store), Selection()))
    assert [one.partition.sd and one.partition.sd.location for one in found] == [
        "file:/warehouse/sales.db/orders/k0=a/k1=1",
        "file:/elsewhere/k0=b/k1=2",
    ]
