"""Commands about another catalog than `hive`: `--catalog`, and names of three parts."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.client.metastore_client import MetastoreClient, NoCatalog
from hms_gateway.rpc.structs import (
    Catalog,
    CreateCatalogRequest,
    Database,
    DropCatalogRequest,
    GetTableRequest,
    LeaseObject,
    NoSuchObjectException,
)
from tests.cli.conftest import Run
from tests.pipeline.content import add_partitions, make_table
from tests.support.server import PASSWORD, USER, GatewayServer


def of(gateway: GatewayServer, catalog: str) -> MetastoreClient:
    return MetastoreClient(gateway.url, (USER, PASSWORD), verify=False, catalog=catalog)


@pytest.fixture(scope="module")
def lake(gateway: GatewayServer) -> Iterator[MetastoreClient]:
    """A client of the catalog `lake`, in which `sales` has `visits`; that of `hive` has `orders`."""
    with of(gateway, "hive") as usual, of(gateway, "Lake") as client:
        place = f"file:{gateway.data_dir}/warehouse/lake"
        usual.call("create_catalog", CreateCatalogRequest(Catalog("lake", None, place)))
        for one, table in ((usual, "orders"), (client, "visits")):
            one.call("create_database", Database(name="sales"))
            make_table(one, "sales", table, ("ds", "string"))
            add_partitions(one, "sales", table, [["a"], ["b"]])
        yield client
        for one in (client, usual):
            one.call("drop_database", "sales", True, True)
        usual.call("drop_catalog", DropCatalogRequest("lake"))


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["ls", "sales"], "orders\n"),
        (["ls", "--catalog=lake"], "default\nsales\n"),
        (["ls", "sales", "--catalog", "LAKE"], "visits\n"),
        (["ls", "lake.sales.visits"], "ds=a\nds=b\n"),
        (["ls", "lake.sales.visits/ds=b"], "ds=b\n"),
        (["ls", "hive.sales.orders", "--catalog", "lake", "--limit", "1"], "ds=a\n"),
        (["sql", "SHOW TABLES IN sales"], "visits\n"),
        (["sql", "USE lake.sales; SHOW TABLES; SHOW DATABASES; SHOW PARTITIONS sales.visits"], None),
        (["sql", "SHOW DATABASES IN lake LIKE 's*'"], "sales\n"),
        (["sql", "SHOW PARTITIONS visits; SHOW PARTITIONS hive.sales.orders", "--database=lake.sales"], None),
    ],
)
def test_names_are_those_of_the_catalog(run: Run, lake: MetastoreClient, words: list[str], printed: str | None) -> None:
    if words[0] == "sql":
        of_lake = ["--catalog=lake"] if printed == "visits\n" else []
        words = ["sql", f"--execute={words[1]}", "--format=tsv", *words[2:], *of_lake]
    done = run(*words)
    assert done.exit_code == 0, done.output
    lines = [line for line in done.stdout.splitlines() if line not in ("tab_name", "database_name", "partition")]
    if printed is None:
        both = ["visits", "default", "sales", "ds=a", "ds=b"], ["ds=a", "ds=b", "ds=a", "ds=b"]
        assert lines in both
    else:
        assert lines == printed.splitlines()


def test_statements_change_what_they_name(run: Run, lake: MetastoreClient) -> None:
    text = """CREATE DATABASE lake.other; CREATE TABLE lake.other.t (id BIGINT) PARTITIONED BY (ds STRING);
        ALTER TABLE lake.other.t ADD PARTITION (ds='x'); ALTER TABLE lake.other.t RENAME TO u; USE lake.other;
        CREATE FUNCTION f AS 'x.Y'; CREATE VIEW v AS SELECT id FROM u"""
    assert run("sql", f"--execute={text}").exit_code == 0
    assert sorted(lake.call("get_all_tables", "other")) == ["u", "v"]
    assert lake.call("get_partition_names", "other", "u", -1) == ["ds=x"]
    assert lake.call("get_functions", "other", "*") == ["f"]
    refused = run("sql", "--execute=USE other")
    assert (refused.exit_code, "database other does not exist" in refused.stderr) == (1, True)
    refused = run("sql", "--execute=DESCRIBE lake.other.missing")
    text = "table lake.other.missing does not exist; SHOW TABLES IN lake.other lists"
    assert text in " ".join(refused.stderr.split())
    assert run("sql", "--execute=DROP DATABASE lake.other CASCADE").exit_code == 0
    assert "other" not in lake.call("get_all_databases")


def test_locks_and_leases_are_on_the_object_of_the_catalog(run: Run, lake: MetastoreClient, gateway: Any) -> None:
    lock = "LOCK TABLE lake.sales.visits EXCLUSIVE; SHOW LOCKS lake.sales.visits; UNLOCK TABLE lake.sales.visits"
    done = run("sql", f"--execute={lock}", "--format=tsv")
    assert (done.exit_code, "@" in done.stdout) == (0, False), done.output
    assert "lake.sales.visits" in done.stdout or "lake.sales\tvisits" in done.stdout
    lease = lake.call("grab_lease", [LeaseObject("sales", "visits", None, "x")], 60, 0)
    try:
        with of(gateway, "") as usual:
            other = usual.call("grab_lease", [LeaseObject("sales", "visits", None, "x")], 60, 0)
            usual.call("drop_lease", other, [])
            (held,) = usual.call("list_lease", [])
        (seen,) = lake.call("list_lease", [])
        assert [one.db_name for one in (held, seen)] == ["@lake#sales", "sales"]
    finally:
        lake.call("drop_lease", lease, [])


def test_an_export_goes_into_another_catalog(run: Run, lake: MetastoreClient, tmp_path: Path) -> None:
    file = str(tmp_path / "sales.jsonl")
    assert run("export", "sales", "-o", file).exit_code == 0
    assert "@" not in Path(file).read_text()
    different = run("diff", file, "--catalog", "lake")
    assert (different.exit_code, "- table sales.orders" in different.stdout) == (1, True)
    assert "+ table sales.visits" in different.stdout
    assert run("diff", file).exit_code == 0
    done = run("import", file, "--catalog", "lake", "--exact", "--skip-existing")
    assert done.exit_code == 0, done.output
    assert lake.call("get_partition_names", "sales", "orders", -1) == ["ds=a", "ds=b"]
    lake.call("drop_table", "sales", "orders", False)


def test_grants_and_events_are_those_of_the_catalog(run: Run, lake: MetastoreClient) -> None:
    assert run("grant", "select", "lake.sales.visits", "ann").exit_code == 0
    said = run("grants", "--on=lake.sales.visits", "--format=json").stdout
    assert [one["object"] for one in map(json.loads, said.splitlines()) if one["right"] == "select"] == ["sales.visits"]
    assert "select" not in run("grants", "--on=sales.orders", "--format=json").stdout
    done = run("tail", "lake.sales.visits", "--no-follow", "-n", "1000")
    assert [line.split()[-1] for line in done.stdout.splitlines()][-1] == "sales.visits"
    assert "orders" not in done.stdout
    said = run("may", "ann", "select", "lake.sales.visits").stdout
    assert "ann has select on table lake.sales.visits" in said
    assert "on table sales.orders" in run("may", "ann", "select", "sales.orders").stdout
    assert run("revoke", "select", "lake.sales.visits", "ann").exit_code == 0


def test_a_catalog_that_is_missing_is_named(run: Run, lake: MetastoreClient, gateway: Any) -> None:
    done = run("ls", "--catalog=missing")
    text = "catalog missing does not exist; the metastore has hive, lake"
    assert (done.exit_code, text in " ".join(done.stderr.split())) == (2, True), done.output
    with of(gateway, "missing") as client, pytest.raises(NoCatalog, match=text):
        client.call("get_all_databases")
    done = run("ls", "--catalog=no/name")
    assert "--catalog: no/name is not a valid catalog name" in " ".join(done.stderr.split())
    done = run("ls", "a.b.c.d")
    assert "write database, database.table or catalog.database.table" in " ".join(done.stderr.split())


def test_structs_that_name_their_catalog_keep_it(lake: MetastoreClient) -> None:
    """`@hive#sales` is what a client of `lake` calls the database of `hive`."""
    found = lake.call("get_table", "@hive#sales", "orders")
    assert (found.dbName, found.catName) == ("sales", None)
    asked = GetTableRequest(dbName="@hive#sales", tblName="orders")
    assert lake.call("get_table_req", asked).table.tableName == "orders"
    with pytest.raises(NoSuchObjectException):
        lake.call("get_table_req", GetTableRequest(dbName="sales", tblName="orders"))
