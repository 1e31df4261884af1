"""A client of one catalog: what it makes and reads is there, and nowhere else."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hms_gateway.client.in_catalog import call_in_catalog
from hms_gateway.composition.main import Metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.pipeline.catalog import (
    CatalogReader,
    databases_everywhere,
    events,
    latest,
    named_tables,
    statistics_of,
)
from hms_gateway.pipeline.events import Changes
from hms_gateway.pipeline.migrate.sides import plain
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import (
    METHODS,
    Catalog,
    ColumnStatisticsData,
    ColumnStatisticsObj,
    CreateCatalogRequest,
    Function,
    LongColumnStatsData,
)
from tests.handlers.peers import Peer, metastore_in
from tests.pipeline.content import add_partitions, make_table
from tests.pipeline.migrate.content import fill_rest
from tests.support.catalog import place_empty_database


class InCatalog:
    def __init__(self, peer: Peer, catalog: str) -> None:
        self._peer, self._catalog = peer, catalog

    def call(self, name: str, /, *arguments: Any) -> Any:
        return call_in_catalog(self._peer.ask, self._catalog, name, METHODS[name].arguments(*arguments))


class Plain(InCatalog):
    def call(self, name: str, /, *arguments: Any) -> Any:
        return self._peer.ask(name, *arguments)


@pytest.mark.parametrize("dialect", [Dialect.HIVE_2_3, Dialect.HIVE_4])
def test_changes_are_those_of_the_catalog(tmp_path: Path, dialect: Dialect) -> None:
    place_empty_database(tmp_path / DATABASE_FILE)
    metastore = metastore_in(tmp_path)
    asking = Peer(metastore, metastore.codecs.tjson, dialect)
    new = Catalog("spark", None, f"file:{tmp_path}/warehouse/spark")
    peer(metastore).ask("create_catalog", CreateCatalogRequest(new))
    for client, name in ((Plain(asking, ""), "t"), (InCatalog(asking, "spark"), "u"), (Plain(asking, ""), "v")):
        make_table(client, "default", name)
    for client, names in ((Plain(asking, ""), ["t", "v"]), (InCatalog(asking, "spark"), ["u"])):
        changes = Changes()
        changes.note(events(client, 0, latest(client)))
        assert list(changes.tables) == [("default", name) for name in names]
    metastore.store.close()


def filled(client: Any, folder: Path) -> None:
    fill_rest(client, str(folder), transactional=False)
    make_table(client, "everything", "parted", ("day", "string"))
    add_partitions(client, "everything", "parted", [["a"], ["b"]])
    data = ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=1, numDVs=2, lowValue=3, highValue=4))
    table = client.call("get_table", "everything", "parted")
    given = statistics_of(table, None, [ColumnStatisticsObj("id", "bigint", data)])
    client.call("update_table_column_statistics", given)
    client.call("create_function", Function("f", "everything", "x.Y", "ann", 1, 7, 1, []))


def everything(reader: CatalogReader) -> dict[str, Any]:
    """What a migration reads, without times."""
    found: dict[str, Any] = {}
    for database in reader.databases():
        names = reader.client.call("get_all_tables", database.name)
        found[database.name or ""] = [database.description, database.ownerName, names]
        for name, table in reader.tables(database.name or "", names).items():
            partitions = reader.partitions(table, reader.partition_names(table))
            found[name] = [
                *(plain(table), list(partitions), [one.parameters for one in partitions.values()]),
                *(reader.table_statistics(table), reader.constraints(database.name or "", name)),
                reader.write_ids(database.name or "", name),
            ]
    found["functions"] = [(one.dbName, one.functionName, one.className) for one in reader.functions()]
    found["grants"] = [(one.hiveObject, one.principalName, one.grantInfo.privilege) for one in reader.grants()]
    return {name: _without_times(msgspec.to_builtins(value)) for name, value in found.items()}


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        skipped = {"createTime", "transient_lastDdlTime", "location", "catName", "ownerType"}
        return {key: _without_times(one) for key, one in value.items() if key not in skipped}
    return [_without_times(one) for one in value] if isinstance(value, list) else value


def peer(metastore: Metastore) -> Peer:
    return Peer(metastore, metastore.codecs.tjson, Dialect.HIVE_2_3)


def test_a_catalog_is_read_as_if_it_were_the_only_one(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
        place_empty_database(folder / DATABASE_FILE)
    one, other = map(metastore_in, folders)
    new = Catalog("spark", None, f"file:{tmp_path}/other/warehouse/spark")
    peer(other).ask("create_catalog", CreateCatalogRequest(new))
    usual, within = Plain(peer(one), ""), InCatalog(peer(other), "spark")
    for client in (usual, within):
        filled(client, tmp_path)
    ours, theirs = everything(CatalogReader(usual)), everything(CatalogReader(within))
    assert ours.keys() == theirs.keys()
    for name in ours.keys() - {"default", "grants"}:
        assert theirs[name] == ours[name], name
    # What is granted on everything is in no catalog.
    assert theirs["grants"] == [grant for grant in ours["grants"] if grant[0].get("dbName")]
    assert theirs["grants"]
    assert peer(other).ask("get_all_databases") == ["default"]
    assert peer(other).ask("get_all_tables", "default") == []
    everywhere = Plain(peer(other), "")
    assert databases_everywhere(everywhere) == ["default", "@spark#default", "@spark#everything"]
    (table,) = named_tables(everywhere, "@spark#everything", ["parted", "missing"])
    assert (table.dbName, table.tableName) == ("@spark#everything", "parted")
    for metastore in (one, other):
        metastore.store.close()
