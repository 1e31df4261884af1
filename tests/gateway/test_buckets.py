"""A gateway whose warehouse is in a bucket, from its settings to the calls of a client."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from hms_gateway.cli.operations.doctor import findings
from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.rpc.structs import Database, FieldSchema, InvalidOperationException, MetaException, Partition
from hms_gateway.runtime.settings_reading import load_settings
from tests.support.bucket_server import BUCKET
from tests.support.catalog import new_table
from tests.support.patience import until
from tests.support.private_bucket import PrivateBucket
from tests.support.server import GatewayServer, trusting

pytestmark = pytest.mark.s3


class Served(NamedTuple):
    """A client of the gateway, and its warehouse: keys begin with `top`."""

    client: MetastoreClient
    top: str

    @property
    def warehouse(self) -> str:
        return f"s3a://{BUCKET}/{self.top}"


@pytest.fixture
def served(bucket: PrivateBucket, tmp_path: Path) -> Iterator[Served]:
    top = uuid.uuid4().hex
    settings = {
        "warehouse_dir": f"s3a://{BUCKET}/{top}",
        "file_systems.s3a": "manage",
        "storage_file": str(bucket.write_options(tmp_path / "storage.toml")),
    }
    with (
        GatewayServer(tmp_path / "var", settings=settings) as server,
        MetastoreClient(server.url, (server.user, server.password), trusting()) as client,
    ):
        yield Served(client, top)


def test_objects_are_in_the_bucket_as_long_as_in_the_catalog(served: Served, bucket: PrivateBucket) -> None:
    client, top = served
    client.call("create_database", Database(name="sales"))
    client.call("create_table", new_table("orders", "sales"))
    orders = client.call("get_table", "sales", "orders")
    assert orders.sd.location == f"{served.warehouse}/sales.db/orders"
    bucket.put(f"{top}/sales.db/orders/part-0", b"12345")
    orders.tableName = "bills"
    client.call("alter_table", "sales", "orders", orders)
    assert bucket.keys(f"{top}/sales.db/") == ["", "bills/", "bills/part-0"]
    bucket.put(f"{top}/elsewhere/f", b"123")
    external = new_table("outside", "sales", location=f"{served.warehouse}/elsewhere", table_type="EXTERNAL_TABLE")
    external.parameters = {"EXTERNAL": "TRUE"}
    client.call("create_table", external)
    client.call("drop_table", "sales", "outside", True)
    client.call("drop_database", "sales", True, True)
    until(lambda: bucket.keys(f"{top}/") == ["", "elsewhere/f"])
    bucket.fail("PUT", code="AccessDenied", status=403)
    with pytest.raises(MetaException) as refused:
        client.call("create_database", Database(name="sales"))
    assert refused.value.message == "bucket lake refuses the gateway: AccessDenied; the log has the message"


def test_partitions_have_directories_and_counts_in_the_bucket(served: Served, bucket: PrivateBucket) -> None:
    client, top = served
    client.call("create_table", new_table("visits", keys=[FieldSchema("day", "string", "")]))
    bucket.put(f"{top}/visits/day=1/f", b"1234")
    sd = client.call("get_table", "default", "visits").sd
    sd.location = None
    for value, size in (("1", "4"), ("2", None)):  # a directory that is made is not counted
        added = client.call("add_partition", Partition(values=[value], dbName="default", tableName="visits", sd=sd))
        assert (added.parameters or {}).get("totalSize") == size
    assert bucket.keys(f"{top}/visits/") == ["", "day=1/f", "day=2/"]
    moved = client.call("get_partition_by_name", "default", "visits", "day=1")
    moved.values = ["3"]
    client.call("rename_partition", "default", "visits", ["1"], moved)
    assert bucket.keys(f"{top}/visits/") == ["", "day=2/", "day=3/f"]
    bucket.put(f"{top}/visits/day=4/f")
    moved.values = ["4"]
    with pytest.raises(InvalidOperationException) as refused:
        client.call("rename_partition", "default", "visits", ["3"], moved)
    assert refused.value.message.endswith(f"already exists : {served.warehouse}/visits/day=4")
    bucket.put(f"{top}/visits/day=2/f")
    client.call("truncate_table", "default", "visits", ["day=2"])
    assert bucket.keys(f"{top}/visits/") == ["", "day=2/", "day=3/f", "day=4/f"]
    client.call("drop_partition_by_name", "default", "visits", "day=3", True)
    until(lambda: bucket.keys(f"{top}/visits/") == ["", "day=2/", "day=4/f"])
    client.call("drop_table", "default", "visits", True)
    until(lambda: bucket.keys(f"{top}/visits") == [])


def test_the_doctor_asks_the_bucket(bucket: PrivateBucket, tmp_path: Path) -> None:
    options = bucket.write_options(tmp_path / "storage.toml")

    def said(root: str) -> str:
        settings = load_settings(
            data_dir=tmp_path, file_systems={"s3a": "manage"}, storage_file=options, file_roots=[root]
        )
        return next(f"{one.level} {one.text}" for one in findings(settings, []) if root in one.text)

    assert said(f"s3a://{BUCKET}").startswith(f"ok s3a://{BUCKET} answers in ")
    assert said(f"s3a://{BUCKET}/none") == f"warning s3a://{BUCKET}/none does not exist; the first table makes it"
    assert said("s3a://missing/t").startswith("error s3a://missing/t: bucket missing does not exist; make it, or name")
