"""Emptying tables and partitions (semantics §10.3)."""

from typing import Any

import msgspec
import pytest

from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import NewPartition, Selection
from hms_gateway.rpc.structs import EnvironmentContext, MetaException, Partition
from tests.support.catalog import NOW, Catalog, columns, new_table

T = TableName("default", "t")
COUNTED = {"numFiles": "1", "totalSize": "5", "numRows": "2", "rawDataSize": "3", "k": "v"}
EMPTY = {
    "numFiles": "0",
    "totalSize": "0",
    "numRows": "0",
    "rawDataSize": "0",
    "k": "v",
    "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}',
    "transient_lastDdlTime": str(NOW + 9),
}


@pytest.fixture
def filled(catalog: Catalog) -> Catalog:
    """A table `t` and a partitioned table `p` with two partitions, a file in each."""
    catalog.tables.create(new_table(parameters=COUNTED))
    (catalog.warehouse / "t/file").write_text("12345")
    catalog.tables.create(new_table("p", keys=columns("ds string")))

    def add(tx: Any) -> None:
        table = TableName("default", "p").load(tx)
        new = []
        for value in ("1", "2"):
            sd = msgspec.structs.replace(table.table.sd, location=f"{catalog.root}/p/ds={value}")
            new.append(NewPartition(f"ds={value}", Partition([value], "default", "p", NOW, 0, sd, dict(COUNTED))))
        tx.insert_partitions(table, new)

    catalog.store.write(add)
    for value in ("1", "2"):
        (catalog.warehouse / f"p/ds={value}").mkdir()
        (catalog.warehouse / f"p/ds={value}/file").write_text("12345")
    catalog.clock.advance(9)
    return catalog


def partition_parameters(catalog: Catalog) -> list[dict[str, str]]:
    name = TableName("default", "p")
    found = catalog.store.read(lambda snapshot: snapshot.partitions(name.load(snapshot), Selection()))
    return [stored.partition.parameters for stored in found]


def test_a_table_loses_its_files_and_says_so(filled: Catalog) -> None:
    filled.truncations.truncate(T, None)
    assert list((filled.warehouse / "t").iterdir()) == []
    assert filled.tables.get(T).parameters == EMPTY
    kind, db_name, table_name, message = filled.last_event()
    assert (kind, db_name, table_name, message["isTruncateOp"]) == ("ALTER_TABLE", "default", "t", True)


def test_all_partitions_are_emptied(filled: Catalog) -> None:
    filled.truncations.truncate(TableName("default", "p"), None)
    assert [list(folder.iterdir()) for folder in (filled.warehouse / "p").iterdir()] == [[], []]
    assert partition_parameters(filled) == [EMPTY, EMPTY]


def test_some_partitions_are_emptied(filled: Catalog) -> None:
    filled.truncations.truncate(TableName("default", "p"), ["ds=2"])
    assert (filled.warehouse / "p/ds=1/file").exists()
    assert not (filled.warehouse / "p/ds=2/file").exists()
    assert partition_parameters(filled) == [COUNTED, EMPTY]


def test_files_may_be_kept(filled: Catalog) -> None:
    filled.truncations.truncate(T, None, EnvironmentContext({"truncateSkipDataDeletion": "true"}))
    assert (filled.warehouse / "t/file").exists()
    assert filled.tables.get(T).parameters["numRows"] == "0"


@pytest.mark.parametrize(
    ("name", "part_names", "text"),
    [
        ("nope", None, "default.nope table not found"),
        ("p", ["ds=1", "ds=3"], "default.p has no partition ds=3"),
        ("t", ["ds=1"], "default.t is not partitioned"),
        ("e", None, "Cannot truncate non-managed table e."),
        ("v", None, "Cannot truncate a view v."),
        ("h", None, "Cannot truncate: this server does not manage the files in hdfs://nn/h"),
    ],
)
def test_what_is_not_emptied(filled: Catalog, name: str, part_names: list[str] | None, text: str) -> None:
    filled.tables.create(new_table("e", parameters={"EXTERNAL": "TRUE"}))
    filled.tables.create(new_table("v", table_type="VIRTUAL_VIEW"))
    filled.tables.create(new_table("h", location="hdfs://nn/h"))
    with pytest.raises(MetaException) as raised:
        filled.truncations.truncate(TableName("default", name), part_names)
    assert raised.value == MetaException(text)
    assert (filled.warehouse / "p/ds=1/file").exists()


def test_an_external_table_that_owns_its_data_is_emptied(filled: Catalog) -> None:
    parameters = {"EXTERNAL": "TRUE", "external.table.purge": "TRUE"}
    filled.tables.create(new_table("e", parameters=parameters))
    (filled.warehouse / "e/file").write_text("x")
    filled.truncations.truncate(TableName("default", "e"), None)
    assert not (filled.warehouse / "e/file").exists()
