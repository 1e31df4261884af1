"""DuckDB's Iceberg extension at the REST catalog: the block of docs/iceberg.md, and changes that PyIceberg reads."""

import subprocess

import pytest

from hms_gateway.gateway.certificates.tls import CERTIFICATE_NAME
from tests.iceberg.duckdb_program import ENVIRONMENT, rows_of
from tests.support.readme import PORT, block
from tests.support.server import COMMAND, USER

pytestmark = [pytest.mark.iceberg, pytest.mark.slow, pytest.mark.whole]


@pytest.fixture
def run(iceberg_gateway):
    """Run statements in DuckDB, after those of the document's block that attach the catalog."""
    if not ENVIRONMENT.exists():
        pytest.skip("no DuckDB with its extensions (scripts/peers all)")
    folder = iceberg_gateway.data_dir
    command = [COMMAND, "token", "create", USER, "--data-dir", str(folder)]
    token = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    text = block("duckdb rest").replace(PORT, str(iceberg_gateway.port))
    text = text.replace("var/certificate.pem", str(folder / CERTIFICATE_NAME)).replace("hmsgw_…", token)
    *attaching, copying = [each.strip() for each in text.split(";") if each.strip()]

    def run(*statements):
        return rows_of(*attaching, *statements)

    run.copying = copying
    return run


def test_duckdb_and_pyiceberg_change_the_same_tables(run, catalog):
    run("CREATE SCHEMA lake.lake", "CREATE TABLE lake.lake.readings (id BIGINT)")
    run("INSERT INTO lake.lake.readings VALUES (1), (2), (3)")
    catalog.load_table("lake.readings").append(catalog.load_table("lake.readings").scan(limit=1).to_arrow())
    assert run("SELECT count(*) FROM lake.lake.readings") == [[4]]
    run(run.copying)
    run("DELETE FROM lake.lake.copied WHERE id = 1", "UPDATE lake.lake.copied SET id = 9 WHERE id = 3")
    assert sorted(catalog.load_table("lake.copied").scan().to_arrow()["id"].to_pylist())[-1] == 9
    run("DROP TABLE lake.lake.copied", "DROP TABLE lake.lake.readings", "DROP SCHEMA lake.lake")
    assert ("lake",) not in catalog.list_namespaces()
