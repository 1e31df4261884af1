"""The methods for people who look for something: names by a part, create texts, partitions in pages and in groups."""

import pytest

from hms_gateway.catalog.arguments import with_fields
from hms_gateway.rpc.structs import (
    Database,
    DatabaseCounts,
    FieldSchema,
    FoundName,
    Function,
    MetaException,
    NoSuchObjectException,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from tests.handlers.peers import Peer


def table(name: str, db_name: str = "sales", keys: tuple[str, ...] = ()) -> Table:
    return Table(
        tableName=name,
        dbName=db_name,
        sd=StorageDescriptor(cols=[FieldSchema("a", "int")], serdeInfo=SerDeInfo()),
        partitionKeys=[FieldSchema(key, "string") for key in keys],
        tableType="MANAGED_TABLE",
        parameters={},
    )


@pytest.fixture
def catalog(newer: Peer) -> Peer:
    for name in ("sales", "wholesales"):
        newer.ask("create_database", Database(name))
    for name in ("orders", "big_orders", "orders_old", "customers"):
        newer.ask("create_table", table(name))
    newer.ask("create_table", table("orders", "wholesales"))
    newer.ask("create_function", Function("ordered", "sales", "org.example.F"))
    newer.ask("create_table", table("parts", keys=("ds", "hr")))
    values = [("1", "0"), ("1", "1"), ("2", "0"), ("2", "1"), ("2", "2")]
    newer.ask(
        "add_partitions",
        [
            Partition(values=list(each), dbName="sales", tableName="parts", sd=StorageDescriptor(serdeInfo=SerDeInfo()))
            for each in values
        ],
    )
    return newer


def names(found: list[FoundName]) -> list[str]:
    return [".".join(filter(None, (each.db_name, each.name))) for each in found]


ORDERS = ["sales.orders", "wholesales.orders"]


SEARCHES = [
    ("Orders", [*ORDERS, "sales.orders_old", "sales.big_orders"]),
    ("order", [*ORDERS, "sales.ordered", "sales.orders_old", "sales.big_orders"]),
    ("sales", ["sales", "wholesales"]),
    ("sales.orders", ["sales.orders", "sales.orders_old", "sales.big_orders"]),
    ("hole.orders", ["wholesales.orders"]),
    ("b*o*rs", ["sales.big_orders"]),
    ("%", []),
    ("o_ders", []),
    ("nothing\0", []),
]


def test_names_are_found_by_a_part_the_best_first(catalog: Peer) -> None:
    for text, found in SEARCHES:
        assert names(catalog.ask("search_names", text, 100)) == found, text


def test_details_say_how_much_is_in_a_table(catalog: Peer) -> None:
    described = with_fields(
        table("described"),
        owner="ann",
        parameters={"comment": "Of ann", "numRows": "12", "totalSize": "3400", "DO_NOT_UPDATE_STATS": "true"},
    )
    catalog.ask("create_table", described)
    catalog.ask(
        "create_table", with_fields(described, tableName="odd", parameters={"numRows": "-1", "totalSize": "9" * 30})
    )
    (found,) = catalog.ask("search_names", "sales.described", 10, True)
    assert found == FoundName("sales", "described", "MANAGED_TABLE", "ann", "Of ann", 12, 3400, 0)
    assert catalog.ask("search_names", "sales.odd", 10, True) == [
        FoundName("sales", "odd", "MANAGED_TABLE", "ann", partitions=0)
    ]
    assert catalog.ask("search_names", "sales.parts", 10, True)[0].partitions == 5
    assert catalog.ask("search_names", "sales.ordered", 10, True) == [FoundName("sales", "ordered", "FUNCTION")]


def test_what_is_in_each_database_is_counted(catalog: Peer) -> None:
    catalog.ask(
        "create_table",
        with_fields(table("seen"), tableType="VIRTUAL_VIEW", sd=StorageDescriptor(cols=[], serdeInfo=SerDeInfo())),
    )
    assert catalog.ask("count_objects", "", False) == [
        DatabaseCounts("default", 0, 0),
        DatabaseCounts("sales", 6, 1),
        DatabaseCounts("wholesales", 1, 0),
    ]
    sales = DatabaseCounts("sales", tables=6, functions=1, views=1, partitions=5)
    assert catalog.ask("count_objects", "SALES", True) == [sales]
    assert catalog.ask("count_objects", "", True)[::2] == [
        DatabaseCounts(name, number, 0, 0, 0) for name, number in (("default", 0), ("wholesales", 1))
    ]
    assert catalog.ask("count_objects", "nothing", True) == []


def test_what_is_found_says_its_kind_and_is_bounded(catalog: Peer) -> None:
    assert catalog.ask("search_names", "sales", 1) == [FoundName("sales", kind="DATABASE")]
    kinds = {each.name: each.kind for each in catalog.ask("search_names", "order", 100)}
    assert (kinds["orders"], kinds["ordered"]) == ("MANAGED_TABLE", "FUNCTION")
    assert len(catalog.ask("search_names", "order", 2)) == 2
    with pytest.raises(MetaException, match="max_names is 0; ask for 1 to 1000"):
        catalog.ask("search_names", "order", 0)


def test_a_create_text_is_that_of_the_shell(catalog: Peer) -> None:
    text = catalog.ask("get_create_text", "sales", "Orders")
    assert text.startswith("CREATE TABLE `sales`.`orders` (\n  `a` int)")
    with pytest.raises(NoSuchObjectException, match=r"sales\.nothing table not found"):
        catalog.ask("get_create_text", "sales", "nothing")


PAGES = [
    ("", "", False, ["ds=1/hr=0", "ds=1/hr=1"]),
    ("", "ds=1/hr=1", False, ["ds=2/hr=0", "ds=2/hr=1"]),
    ("", "", True, ["ds=2/hr=2", "ds=2/hr=1"]),
    ("", "ds=2/hr=1", True, ["ds=2/hr=0", "ds=1/hr=1"]),
    ('hr = "0"', "ds=1/hr=0", False, ["ds=2/hr=0"]),
    ("", "ds=2/hr=2", False, []),
]


def test_partitions_come_in_pages_of_names(catalog: Peer) -> None:
    for filter_text, after, descending, found in PAGES:
        page = catalog.ask("list_partition_names", "sales", "parts", filter_text, after, descending, 2)
        assert page == found, (filter_text, after, descending)


def test_a_page_of_partitions_has_a_size_and_its_filter_is_checked(catalog: Peer) -> None:
    with pytest.raises(MetaException, match="max_names is 10001; ask for 1 to 10000"):
        catalog.ask("list_partition_names", "sales", "parts", "", "", False, 10_001)
    with pytest.raises(MetaException, match="Error parsing partition filter"):
        catalog.ask("list_partition_names", "sales", "parts", 'ds = "', "", False, 1)
    with pytest.raises(NoSuchObjectException, match=r"sales\.nothing table not found"):
        catalog.ask("list_partition_names", "sales", "nothing", "", "", False, 1)


def test_partitions_are_counted_by_their_first_keys(catalog: Peer) -> None:
    groups = catalog.ask("count_partition_groups", "sales", "parts", "", 1, 10)
    assert [(each.example[:4], each.partitions) for each in groups] == [("ds=1", 2), ("ds=2", 3)]
    assert len(catalog.ask("count_partition_groups", "sales", "parts", "", 2, 10)) == 5
    assert len(catalog.ask("count_partition_groups", "sales", "parts", "", 2, 3)) == 3
    (filtered,) = catalog.ask("count_partition_groups", "sales", "parts", 'hr = "2"', 1, 10)
    assert (filtered.example[:4], filtered.partitions) == ("ds=2", 1)
    with pytest.raises(MetaException, match="keys is 3; ask for 1 or 2"):
        catalog.ask("count_partition_groups", "sales", "parts", "", 3, 10)
    with pytest.raises(MetaException, match="max_groups is 0; ask for 1 to 20000"):
        catalog.ask("count_partition_groups", "sales", "parts", "", 1, 0)


def test_a_condition_of_hiveql_becomes_a_filter(catalog: Peer):
    def ask(condition: str) -> str:
        return catalog.ask("translate_condition", "sales", "Parts", condition)

    found = ask("ds in ('1') and hr not like '1%'")
    assert found == "(ds) in ('1') and (hr < '1' or hr >= '2')"
    assert catalog.ask("list_partition_names", "sales", "parts", found, "", False, 9) == ["ds=1/hr=0"]
    assert ask("") == ""
    with pytest.raises(
        MetaException, match="day is not a partition key; the table is partitioned by ds, hr at character 11"
    ):
        ask("ds = 1 and day = 2")
    with pytest.raises(MetaException, match="the string that begins here and does not end at character 5"):
        ask("ds = '1")
    with pytest.raises(NoSuchObjectException):
        catalog.ask("translate_condition", "sales", "nothing", "")
