"""The client of PyPI's hive-metastore-client, with code generated from the IDL of Hive 3, at the Thrift port."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.testing import RunningMetastore

pytestmark = pytest.mark.slow

PACKAGES = Path(sys.prefix) / "thrift-clients"


@pytest.fixture
def client(metastore: RunningMetastore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    if not PACKAGES.is_dir():
        pytest.skip("no hive-metastore-client (requirements/thrift-clients.txt)")
    monkeypatch.syspath_prepend(PACKAGES)
    import hive_metastore_client as package  # type: ignore[import-not-found]

    with package.HiveMetastoreClient("127.0.0.1", metastore.thrift_port) as connected:
        yield connected


def test_databases_tables_columns_and_partitions(client: Any, metastore: RunningMetastore) -> None:
    from hive_metastore_client import builders  # type: ignore[import-not-found]

    def columns(**types: str) -> list[Any]:
        return [builders.ColumnBuilder(name, type).build() for name, type in types.items()]

    def names() -> list[str]:
        return [column.name for column in client.get_table("shop", "orders").sd.cols]

    for _ in range(2):
        client.create_database_if_not_exists(builders.DatabaseBuilder("shop").build())
    storage = builders.StorageDescriptorBuilder(
        columns=columns(id="bigint", name="string", number="int"),
        location=f"{metastore.warehouse.as_uri()}/shop.db/orders",
        input_format="a.In",
        output_format="a.Out",
        serde_info=builders.SerDeInfoBuilder(serialization_lib="a.Serde").build(),
    ).build()
    keys = columns(ds="string")
    client.create_external_table(
        builders.TableBuilder("orders", "shop", owner="ann", storage_descriptor=storage, partition_keys=keys).build()
    )
    assert client.get_table("shop", "orders").tableType == "EXTERNAL_TABLE"
    partitions = [
        builders.PartitionBuilder(values=[value], db_name="shop", table_name="orders").build() for value in "ab"
    ]
    client.add_partitions_to_table("shop", "orders", partitions)
    client.add_partitions_if_not_exists("shop", "orders", partitions)
    assert client.get_partition_values_from_table("shop", "orders") == [["a"], ["b"]]
    client.add_columns_to_table("shop", "orders", columns(more="string"))
    client.drop_columns_from_table("shop", "orders", ["more"])
    assert names() == ["id", "name", "number"]
    # It sets a setting of the connection before, which does not last here: that the columns behind it change types.
    with pytest.raises(Exception, match="The following columns have types incompatible"):
        client.drop_columns_from_table("shop", "orders", ["name"])
    assert names() == ["id", "name", "number"]
    client.bulk_drop_partitions("shop", "orders", [["a"]])
    assert client.get_partition_names("shop", "orders", -1) == ["ds=b"]
