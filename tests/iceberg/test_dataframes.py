"""Daft and Polars at the REST catalog, by PyIceberg's, in an environment of their own."""

import json
import os
import subprocess

import pytest

from hms_gateway.gateway.certificates.tls import CERTIFICATE_NAME
from tests.support.patience import PATIENCE_SECONDS
from tests.support.readme import ROOT
from tests.support.server import PASSWORD, USER

pytestmark = [pytest.mark.iceberg, pytest.mark.slow, pytest.mark.whole]

PYTHON = ROOT / ".venv" / "engines" / "dataframes" / "bin" / "python"
PROGRAM = """
import json, sys
import daft, polars, pyarrow
from pyiceberg.catalog import load_catalog

catalog = load_catalog("lake", **json.loads(sys.argv[1]))
catalog.create_namespace("frames")
rows = pyarrow.table({"id": [1, 2], "name": ["a", "ö"]})
table = catalog.create_table("frames.t", rows.schema, properties={"hms.append-rebase": "true"})
other = catalog.load_table("frames.t")
daft.from_arrow(rows).write_iceberg(table, mode="append")
polars.DataFrame({"id": [3, 4], "name": ["c", None]}).write_iceberg(other, mode="append")
table = catalog.load_table("frames.t")
read = polars.scan_iceberg(table).filter(polars.col("id") > 1).sort("id").collect().rows()
named = daft.catalog.Catalog.from_iceberg(catalog).get_table("frames.t").read()
seen = named.where(daft.col("id") < 4).sort("id").to_pydict()
daft.from_pydict({"id": [9], "name": ["new"]}).write_iceberg(table, mode="overwrite")
first = table.refresh().snapshots()[0].snapshot_id
past = daft.read_iceberg(table, snapshot_id=first).sort("id").to_pydict()["id"]
print(json.dumps([read, seen, past]))
"""


def test_daft_and_polars_change_the_same_table(iceberg_gateway, catalog):
    if not PYTHON.exists():
        pytest.skip("no Daft and Polars (scripts/peers all, requirements/dataframes.txt)")
    properties = {
        "type": "rest",
        "uri": f"https://127.0.0.1:{iceberg_gateway.port}/iceberg",
        "auth": {"type": "basic", "basic": {"username": USER, "password": PASSWORD}},
    }
    # It comes before the property `ssl` where it is set.
    variables = os.environ | {"REQUESTS_CA_BUNDLE": str(iceberg_gateway.data_dir / CERTIFICATE_NAME)}
    command = [PYTHON, "-c", PROGRAM, json.dumps(properties)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stderr
    read, seen, past = json.loads(done.stdout.splitlines()[-1])
    assert read == [[2, "ö"], [3, "c"], [4, None]]
    assert seen == {"id": [1, 2, 3], "name": ["a", "ö", "c"]}
    assert past == [1, 2]
    assert catalog.load_table("frames.t").scan().to_arrow().to_pylist() == [{"id": 9, "name": "new"}]
