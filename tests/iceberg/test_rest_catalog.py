"""PyIceberg's REST catalog and its Hive catalog on the same tables of one gateway."""

import os
import re
import shlex
import subprocess
import sys

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    OAuthError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import IntegerType

from hms_gateway.cli.application import application
from hms_gateway.gateway.certificates.tls import CERTIFICATE_NAME
from tests.iceberg.test_catalog import EVERY_TYPE, SCHEMA
from tests.support.readme import PORT, block
from tests.support.server import PASSWORD, USER

pytestmark = [pytest.mark.iceberg, pytest.mark.slow]


@pytest.fixture
def rest(iceberg_gateway, monkeypatch):
    # Where it is set it comes before the property `ssl`.
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(iceberg_gateway.data_dir / CERTIFICATE_NAME))
    return RestCatalog(
        "rest",
        uri=f"https://127.0.0.1:{iceberg_gateway.port}/iceberg",
        auth={"type": "basic", "basic": {"username": USER, "password": PASSWORD}},
    )


@pytest.fixture
def namespace(rest, request):
    name = "rest_" + request.node.name.removeprefix("test_")[:50]
    rest.create_namespace(name)
    yield name
    for table in rest.list_tables(name):
        rest.drop_table(table)
    rest.drop_namespace(name)


def rows(*ids):
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [str(each) for each in ids]})


def test_both_catalogs_change_the_same_table(rest, catalog, namespace):
    name = f"{namespace}.orders"
    by_rest = rest.create_table(name, SCHEMA)
    by_rest.append(rows(1))
    by_hive = catalog.load_table(name)
    by_hive.append(rows(2))
    by_rest = rest.load_table(name)
    with by_rest.update_schema() as update:
        update.add_column("amount", IntegerType())
    by_hive = catalog.load_table(name)
    assert [field.name for field in by_hive.schema().fields] == ["id", "name", "amount"]
    assert sorted(by_hive.scan().to_arrow()["id"].to_pylist()) == [1, 2]
    assert by_hive.metadata == rest.load_table(name).metadata
    assert catalog.list_tables(namespace) == rest.list_tables(namespace) == [(namespace, "orders")]
    catalog.rename_table(name, f"{namespace}.bills")
    assert rest.table_exists(f"{namespace}.bills")
    rest.drop_table(f"{namespace}.bills")
    assert not catalog.table_exists(f"{namespace}.bills")


def test_a_commit_by_rest_from_an_old_state_fails_after_one_by_hive(rest, catalog, namespace):
    name = f"{namespace}.orders"
    old = rest.create_table(name, SCHEMA, properties={"commit.retry.num-retries": "0"})
    catalog.load_table(name).append(rows(1))
    with pytest.raises(CommitFailedException):
        old.append(rows(2))
    rest.load_table(name).append(rows(3))
    assert sorted(catalog.load_table(name).scan().to_arrow()["id"].to_pylist()) == [1, 3]


def test_an_append_from_an_old_state_succeeds_where_the_table_allows_it(rest, catalog, namespace):
    name = f"{namespace}.orders"
    properties = {"commit.retry.num-retries": "0", "hms.append-rebase": "true"}
    old = rest.create_table(name, SCHEMA, properties=properties)
    for each in (1, 2):
        catalog.load_table(name).append(rows(each))
    old.append(rows(3))
    for reader in (rest, catalog):
        table = reader.load_table(name)
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
        assert table.current_snapshot().summary["total-records"] == "3"


def test_every_type_and_a_partition_spec(rest, catalog, namespace):
    spec = PartitionSpec(PartitionField(6, 1000, BucketTransform(4), "uuid_bucket"))
    made = rest.create_table(f"{namespace}.types", EVERY_TYPE, partition_spec=spec)
    read = catalog.load_table(f"{namespace}.types")
    assert read.schema() == made.schema()
    assert read.spec() == made.spec()


def test_a_transaction_that_makes_a_table_with_data(rest, catalog, namespace):
    name = f"{namespace}.filled"
    with rest.create_table_transaction(name, SCHEMA) as transaction:
        transaction.append(rows(1, 2))
    assert catalog.load_table(name).scan().to_arrow().num_rows == 2


def test_the_block_of_the_document(iceberg_gateway):
    text = block("iceberg rest").replace(PORT, str(iceberg_gateway.port)).replace('"admin"', f'"{USER}"')
    certificate = iceberg_gateway.data_dir / CERTIFICATE_NAME
    text = text.replace("var/certificate.pem", str(certificate))
    variables = {**os.environ, "HMS_GATEWAY_PASSWORD": PASSWORD, "REQUESTS_CA_BUNDLE": str(certificate)}
    done = subprocess.run([sys.executable, "-c", text], env=variables, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[{'id': 1}, {'id': 2}]\n", "")
    command, _, printed = block("snapshots").removeprefix("$ hms-gateway ").partition("\n")
    login = ["--url", iceberg_gateway.url, "--user", USER]
    shown = CliRunner().invoke(application, [*shlex.split(command), *login], env=variables)
    # Time, id and size differ.
    figures = re.compile(r"\d{4}-\S+|\d{3,}")
    assert figures.sub("N", shown.output) == figures.sub("N", printed)


def test_a_client_that_asks_for_a_token_is_told_what_to_send(iceberg_gateway, rest):
    with (
        pytest.warns(DeprecationWarning, match="oauth2-server-uri"),
        pytest.raises(OAuthError, match="this server issues no tokens; send a password"),
    ):
        RestCatalog("asking", uri=f"https://127.0.0.1:{iceberg_gateway.port}/iceberg", credential="etl:secret")


def test_errors_are_those_of_the_library(rest, namespace):
    rest.create_table(f"{namespace}.orders", SCHEMA)
    with pytest.raises(TableAlreadyExistsError):
        rest.create_table(f"{namespace}.orders", SCHEMA)
    with pytest.raises(NamespaceAlreadyExistsError):
        rest.create_namespace(namespace)
    with pytest.raises(NamespaceNotEmptyError):
        rest.drop_namespace(namespace)
    with pytest.raises(NoSuchTableError):
        rest.load_table(f"{namespace}.gone")
    with pytest.raises(NoSuchNamespaceError):
        rest.list_tables("gone")
    assert not rest.namespace_exists("gone")
