"""Ways by which a caller of the metastore tries to reach files outside the warehouse, as calls over the wire."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from hms_gateway.composition.main import Metastore
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import (
    Database,
    DropPartitionsRequest,
    Index,
    Partition,
    PartitionSpec,
    PartitionSpecWithSharedSD,
    PartitionWithoutSD,
    RequestPartsSpec,
    StorageDescriptor,
    Table,
    ThriftException,
)
from tests.handlers.peers import Peer
from tests.support.catalog import columns, new_table

KEYS = columns("p string")
EXTERNAL = {"EXTERNAL": "TRUE"}
PURGED = {**EXTERNAL, "external.table.purge": "true"}


@dataclass
class Attacker:
    """A caller who makes one attempt after another, each under names of its own; refusals do not stop it."""

    metastore: Metastore
    warehouse: Path
    answers: list[str] = field(default_factory=list)
    attempt: int = 0

    def __post_init__(self) -> None:
        self._peers = {dialect: Peer(self.metastore, self.metastore.codecs.binary, dialect) for dialect in Dialect}

    def ask(self, name: str, *values: Any, dialect: Dialect = Dialect.HIVE_2_3) -> None:
        try:
            self.answers.append(repr(self._peers[dialect].ask(name, *values)))
        except ThriftException as error:
            self.answers.append(repr(error))

    def name(self, letter: str = "t") -> str:
        return f"{letter}{self.attempt}"

    def table(self, location: str | None, *, letter: str = "t", db_name: str = "default", **fields: Any) -> Table:
        if "EXTERNAL" in fields.get("parameters", {}):
            fields.setdefault("table_type", "EXTERNAL_TABLE")
        return new_table(self.name(letter), db_name, location=location, **fields)

    def create(self, location: str | None, **fields: Any) -> Table:
        table = self.table(location, **fields)
        self.ask("create_table", table)
        self.ask("get_table", table.dbName, table.tableName)
        return table

    def drop(self, letter: str = "t", db_name: str = "default") -> None:
        self.ask("drop_table", db_name, self.name(letter), True)

    def partition(self, location: str | None, value: str = "a", letter: str = "t", **fields: Any) -> Partition:
        descriptor = msgspec.structs.replace(new_table().sd or StorageDescriptor(), location=location)
        return Partition([value], "default", self.name(letter), sd=descriptor, parameters={}, **fields)

    def inside(self, *parts: str) -> str:
        return "/".join([f"file:{self.warehouse}", *parts])


Attack = Callable[[Attacker, str], None]
"""Tries to delete, move, make or look at something at a location."""


def managed_table(a: Attacker, place: str) -> None:
    a.create(place)
    a.drop()


def managed_table_of_the_newest_clients(a: Attacker, place: str) -> None:
    a.ask("create_table_with_constraints", a.table(place), None, None, None, None)
    a.drop()


def database(a: Attacker, place: str) -> None:
    a.ask("create_database", Database(name=a.name("d"), locationUri=place))
    a.ask("drop_database", a.name("d"), True, True)


def database_for_managed_tables(a: Attacker, place: str) -> None:
    a.ask("create_database", Database(name=a.name("d"), managedLocationUri=place))
    a.create(None, db_name=a.name("d"))
    a.ask("drop_database", a.name("d"), True, True)


def database_altered(a: Attacker, place: str) -> None:
    a.ask("create_database", Database(name=a.name("d")))
    moved = Database(name=a.name("d"), locationUri=place)
    a.ask("alter_database", a.name("d"), moved, dialect=Dialect.HIVE_4)
    a.create(None, db_name=a.name("d"))
    a.ask("drop_database", a.name("d"), True, True)


def partition_of_a_managed_table(a: Attacker, place: str) -> None:
    a.create(None, keys=KEYS)
    a.ask("add_partition", a.partition(place))
    a.ask("drop_partition", "default", a.name(), ["a"], True)
    a.drop()


def partitions_of_a_purged_table(a: Attacker, place: str) -> None:
    a.create(None, keys=KEYS, parameters=PURGED)
    a.ask("add_partitions", [a.partition(place), a.partition(f"{place}/sub", "b")])
    request = DropPartitionsRequest("default", a.name(), RequestPartsSpec(names=["p=a", "p=b"]), True)
    a.ask("drop_partitions_req", request)
    a.drop()


def partitions_below_a_shared_root(a: Attacker, place: str) -> None:
    a.create(None, keys=KEYS)
    shared = PartitionSpecWithSharedSD([PartitionWithoutSD(["a"], 0, 0, "/sub", {})], a.partition(place).sd)
    a.ask("add_partitions_pspec", [PartitionSpec("default", a.name(), place, sharedSDPartitionSpec=shared)])
    a.drop()


def partition_appended(a: Attacker, place: str) -> None:
    a.create(place, keys=KEYS, parameters=PURGED)
    a.ask("append_partition", "default", a.name(), ["a"])
    a.ask("append_partition_by_name", "default", a.name(), "p=b")
    a.ask("drop_partition", "default", a.name(), ["a"], True)
    a.drop()


def partition_altered(a: Attacker, place: str) -> None:
    a.create(None, keys=KEYS)
    a.ask("add_partition", a.partition(None))
    a.ask("alter_partition", "default", a.name(), a.partition(place))
    a.ask("alter_partitions", "default", a.name(), [a.partition(place)])
    a.ask("drop_partition", "default", a.name(), ["a"], True)
    a.drop()


def partition_renamed_away(a: Attacker, place: str) -> None:
    a.create(None, keys=KEYS)
    a.ask("add_partition", a.partition(place))
    a.ask("rename_partition", "default", a.name(), ["a"], a.partition(place, "b"))
    a.drop()


def partition_renamed_into(a: Attacker, place: str) -> None:
    a.create(place, keys=KEYS, parameters={"EXTERNAL": "true"}, table_type="MANAGED_TABLE")
    a.ask("add_partition", a.partition(a.inside(a.name("moving"))))
    a.ask("rename_partition", "default", a.name(), ["a"], a.partition(f"{place}/x", "b"))
    a.drop()


def archived_partition(a: Attacker, place: str) -> None:
    a.create(None, keys=KEYS)
    partition = a.partition(None)
    partition.parameters = {"is_archived": "true", "original_location": place}
    a.ask("add_partition", partition)
    a.ask("drop_partition", "default", a.name(), ["a"], True)
    a.drop()


def external_table_with_purge(a: Attacker, place: str) -> None:
    a.create(place, parameters=PURGED)
    a.drop()


def external_table_made_managed(a: Attacker, place: str) -> None:
    a.create(place, parameters=EXTERNAL)
    a.ask("alter_table", "default", a.name(), a.table(place))
    a.drop()


def external_table_made_the_owner_of_partitions(a: Attacker, place: str) -> None:
    a.create(None, keys=KEYS, parameters=EXTERNAL)
    a.ask("add_partition", a.partition(place))
    a.ask("alter_table", "default", a.name(), a.table(a.inside(a.name()), keys=KEYS))
    a.drop()


def table_altered_onto_it(a: Attacker, place: str) -> None:
    a.create(None)
    a.ask("alter_table", "default", a.name(), a.table(place))
    a.ask("get_table", "default", a.name())
    a.drop()


def table_altered_onto_a_single_file(a: Attacker, place: str) -> None:
    a.create(None)
    a.ask("alter_table", "default", a.name(), a.table(f"{place}/unguessable"))
    a.drop()


def table_truncated(a: Attacker, place: str) -> None:
    a.create(place, parameters=PURGED)
    a.ask("truncate_table", "default", a.name(), None)
    a.drop()


def partitions_exchanged_away(a: Attacker, place: str) -> None:
    a.create(place, keys=KEYS, parameters=EXTERNAL)
    a.create(None, keys=KEYS, letter="u")
    a.ask("add_partition", a.partition(f"{place}/p=a"))
    a.ask("exchange_partition", {"p": "a"}, "default", a.name(), "default", a.name("u"))
    a.drop()
    a.drop("u")


def partitions_exchanged_into(a: Attacker, place: str) -> None:
    a.create(None, keys=KEYS)
    a.create(place, keys=KEYS, letter="u", parameters=EXTERNAL)
    a.ask("add_partition", a.partition(None, "b"))
    a.ask("exchange_partition", {"p": "b"}, "default", a.name(), "default", a.name("u"))
    a.drop()
    a.drop("u")


def table_renamed_into(a: Attacker, place: str) -> None:
    a.create(None)
    a.ask("create_database", Database(name=a.name("d"), locationUri=place))
    a.ask("alter_table", "default", a.name(), a.table("", letter="renamed", db_name=a.name("d")))
    a.ask("drop_database", a.name("d"), True, True)
    a.drop()


def table_renamed_away(a: Attacker, place: str) -> None:
    a.ask("create_database", Database(name=a.name("d"), locationUri=place))
    a.ask("create_table", new_table("sub", a.name("d")))
    a.ask("alter_table", a.name("d"), "sub", a.table("", letter="renamed"))
    a.drop("renamed")
    a.ask("drop_database", a.name("d"), True, True)


def table_of_an_index(a: Attacker, place: str) -> None:
    a.create(None)
    index = Index(a.name("i"), "H", "default", a.name(), 0, 0, a.name("x"), new_table().sd, {}, True)
    a.ask("add_index", index, a.table(place, letter="x", table_type="INDEX_TABLE"))
    a.ask("drop_index_by_name", "default", a.name(), a.name("i"), True)
    a.drop()


def view(a: Attacker, place: str) -> None:
    a.create(place, table_type="VIRTUAL_VIEW")
    a.ask("alter_table", "default", a.name(), a.table(place))
    a.drop()


def materialized_view(a: Attacker, place: str) -> None:
    a.create(place, table_type="MATERIALIZED_VIEW")
    a.drop()


def tables_purged_with_their_database(a: Attacker, place: str) -> None:
    a.ask("create_database", Database(name=a.name("d")))
    a.create(place, db_name=a.name("d"), parameters=PURGED)
    a.create(f"{place}/sub", db_name=a.name("d"), letter="u")
    a.ask("drop_database", a.name("d"), True, True)


def looking_at_its_size(a: Attacker, place: str) -> None:
    a.create(place, parameters=EXTERNAL)
    a.ask("alter_table", "default", a.name(), a.table(place, parameters=EXTERNAL))
    a.ask("get_table", "default", a.name())
    a.create(None, letter="u", keys=KEYS, parameters=EXTERNAL)
    a.ask("add_partition", a.partition(place, letter="u"))
    a.ask("get_partition", "default", a.name("u"), ["a"])
    a.drop()
    a.drop("u")


ATTACKS: tuple[Attack, ...] = (
    managed_table,
    managed_table_of_the_newest_clients,
    database,
    database_for_managed_tables,
    database_altered,
    partition_of_a_managed_table,
    partitions_of_a_purged_table,
    partitions_below_a_shared_root,
    partition_appended,
    partition_altered,
    partition_renamed_away,
    partition_renamed_into,
    archived_partition,
    external_table_with_purge,
    external_table_made_managed,
    external_table_made_the_owner_of_partitions,
    table_altered_onto_it,
    table_altered_onto_a_single_file,
    table_truncated,
    partitions_exchanged_away,
    partitions_exchanged_into,
    table_renamed_into,
    table_renamed_away,
    table_of_an_index,
    view,
    materialized_view,
    tables_purged_with_their_database,
    looking_at_its_size,
)
