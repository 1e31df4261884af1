"""A table that lies at the default place of another one, so that who drops one of the two deletes the data of both."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.composition.main import build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.rpc.structs import (
    CreateTableRequest,
    Database,
    FieldSchema,
    Index,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from hms_gateway.runtime.settings import Settings
from tests.handlers.rights.test_authorizer import Everybody
from tests.support.catalog import place_empty_database

EXTERNAL = {"EXTERNAL": "TRUE", "external.table.purge": "true"}


class Shared(Everybody):
    """Users who share the database `default`, in which everybody may create."""

    def __init__(self, folder: Path) -> None:
        place_empty_database(folder / DATABASE_FILE)
        super().__init__(
            build_metastore(
                Settings(
                    data_dir=folder,
                    warehouse_dir=str(folder / "lake"),
                    administrators=["root"],
                    authorization="grants",
                )
            )
        )
        self.warehouse = f"file:{folder}/lake"

    def create(self, who: str, table: Table) -> Any:
        return self.ask(who, "create_table", table)

    def change(self, who: str, old: str, new: Table) -> Any:
        new.owner, new.ownerType = new.owner or who, new.ownerType or 1
        return self.ask(who, "alter_table", *old.split("."), new)

    def refused(self, who: str, place: str) -> str:
        return f"MetaException: Permission denied: user {who} may not use location {self.warehouse}/{place}"

    def write(self, name: str) -> Path:
        """A file of data in the directory of a table."""
        location = self.ask("root", "get_table", *name.split(".")).sd.location
        file = Path(location.removeprefix("file:")) / "data"
        file.write_text("of victor")
        return file

    def lay_trap(self, location: str | None = None, name: str = "default.trap") -> None:
        """mallory's table `orders`, which has another name then and lies where it lay."""
        assert self.create("mallory", table("default.orders", location, **EXTERNAL)) is None
        lies = self.ask("mallory", "get_table", "default", "orders").sd.location
        assert self.change("mallory", "default.orders", table(name, lies, **EXTERNAL)) is None


def table(name: str, location: str | None = None, **parameters: str) -> Table:
    database, _, plain = name.partition(".")
    sd = StorageDescriptor(cols=[FieldSchema("a", "int")], serdeInfo=SerDeInfo(parameters={}), location=location)
    kind = "EXTERNAL_TABLE" if parameters else "MANAGED_TABLE"
    return Table(plain, database, sd=sd, partitionKeys=[], parameters=parameters, tableType=kind)


def parted(name: str, location: str | None = None, **parameters: str) -> Table:
    made = table(name, location, **parameters)
    made.partitionKeys = [FieldSchema("ds", "string")]
    return made


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Shared]:
    made = Shared(tmp_path)
    with contextlib.closing(made.metastore.store):
        yield made


def test_nobody_gets_the_default_place_in_which_a_trap_lies(shared: Shared) -> None:
    shared.lay_trap()
    assert shared.create("victor", table("default.orders")) == shared.refused("victor", "orders")


def test_nobody_gets_the_default_place_in_which_the_data_of_another_one_lies(shared: Shared) -> None:
    assert shared.create("victor", table("default.orders", **EXTERNAL)) is None
    data = shared.write("default.orders")
    lies = f"{shared.warehouse}/orders"
    assert shared.change("victor", "default.orders", table("default.kept", lies, **EXTERNAL)) is None
    assert shared.create("mallory", table("default.orders")) == shared.refused("mallory", "orders")
    assert data.exists()


@pytest.mark.slow
def test_the_owner_of_both_goes_on(shared: Shared) -> None:
    """Engines swap tables by two renames, and make the first one anew."""
    shared.lay_trap()
    assert shared.create("mallory", table("default.orders", **EXTERNAL)) is None
    lies = f"{shared.warehouse}/orders"
    assert shared.change("mallory", "default.orders", table("default.other", lies, **EXTERNAL)) is None
    assert shared.change("mallory", "default.trap", table("default.orders", lies, **EXTERNAL)) is None


@pytest.mark.parametrize("below", ["orders/ds=1", "orders/a/b", "/orders//x/"])
@pytest.mark.parametrize("scheme", ["file:", "FILE:", ""])
def test_neither_below_nor_in_another_spelling(shared: Shared, scheme: str, below: str) -> None:
    shared.lay_trap(f"{scheme}{shared.warehouse.removeprefix('file:')}/{below}")
    assert shared.create("victor", table("default.orders")) == shared.refused("victor", "orders")


def test_nor_from_another_database(shared: Shared) -> None:
    assert shared.ask("root", "create_database", Database(name="own", ownerName="mallory", ownerType=1)) is None
    shared.lay_trap(name="own.trap")
    assert shared.create("victor", table("default.orders")) == shared.refused("victor", "orders")


def test_nor_by_partitions_that_stay_behind(shared: Shared) -> None:
    """Partitions stay where they are when the location of their table changes."""
    assert shared.create("mallory", parted("default.orders", **EXTERNAL)) is None
    one = Partition(["1"], "default", "orders", sd=table("default.x").sd)
    assert shared.ask("mallory", "add_partition", one).values == ["1"]
    lies = f"{shared.warehouse}/orders"
    assert shared.change("mallory", "default.orders", parted("default.trap", lies, **EXTERNAL)) is None
    leaves = parted("default.trap", f"{shared.warehouse}/trap", **EXTERNAL)
    assert shared.change("mallory", "default.trap", leaves) == shared.refused("mallory", "trap")
    assert shared.create("victor", parted("default.orders")) == shared.refused("victor", "orders")


def test_nor_for_the_owner_of_the_database(shared: Shared) -> None:
    """A user who could drop the trap would lose the data all the same, when its owner drops it first."""
    assert shared.ask("root", "create_database", Database(name="sales", ownerName="victor", ownerType=1)) is None
    assert shared.grant("victor", "create", "sales", "mallory") is True
    lies = f"{shared.warehouse}/sales.db/orders"
    assert shared.create("mallory", table("sales.orders", **EXTERNAL)) is None
    assert shared.change("mallory", "sales.orders", table("sales.trap", lies, **EXTERNAL)) is None
    assert shared.create("victor", table("sales.orders")) == shared.refused("victor", "sales.db/orders")


def test_nor_when_the_trap_is_given_away(shared: Shared) -> None:
    """Its maker keeps a grant on it, or the database in which it is."""
    shared.lay_trap()
    assert shared.grant("mallory", "drop", "default.trap", "mallory") is True
    lies = f"{shared.warehouse}/orders"
    given = table("default.trap", lies, **EXTERNAL)
    given.owner = "victor"
    assert shared.change("mallory", "default.trap", given) is None
    assert shared.create("victor", table("default.orders")) == shared.refused("victor", "orders")
    assert shared.revoke("root", "drop", "default.trap", "mallory") is True
    assert shared.create("victor", table("default.orders")) is None


@pytest.mark.parametrize("location", [None, "orders"])
def test_every_way_to_a_new_table(shared: Shared, location: str | None) -> None:
    shared.lay_trap()
    place = None if location is None else f"{shared.warehouse}/{location}"
    refused = shared.refused("victor", "orders")
    made = table("default.orders", place)
    assert shared.ask("victor", "create_table", made) == refused
    assert shared.ask("victor", "create_table_req", CreateTableRequest(made)) == refused
    assert shared.ask("victor", "create_table_with_constraints", made, [], [], [], [], [], []) == refused
    assert shared.ask("victor", "create_table_with_environment_context", made, None) == refused
    assert shared.create("victor", table("default.base")) is None
    index = Index("i", "handler", "default", "base", indexTableName="orders", sd=table("default.x").sd)
    made.tableType = "INDEX_TABLE"
    assert shared.ask("victor", "add_index", index, made) == refused


def test_a_directory_that_moves_with_its_name(shared: Shared) -> None:
    shared.lay_trap()
    (Path(shared.warehouse.removeprefix("file:")) / "orders").rmdir()
    assert shared.create("victor", table("default.new")) is None
    lies = f"{shared.warehouse}/new"
    for location in (lies, ""):
        renamed = shared.change("victor", "default.new", table("default.orders", location))
        assert renamed == shared.refused("victor", "orders")
    assert shared.change("victor", "default.new", table("default.newer", lies)) is None
    elsewhere = f"{shared.warehouse}/newer-2"
    assert shared.change("victor", "default.newer", table("default.newer", elsewhere)) is None
    assert shared.change("victor", "default.newer", table("default.orders", elsewhere)) is None


def test_a_view_lies_nowhere(shared: Shared) -> None:
    shared.lay_trap()
    view = table("default.orders")
    view.tableType, view.viewOriginalText = "VIRTUAL_VIEW", "SELECT 1"
    assert shared.create("victor", view) is None
