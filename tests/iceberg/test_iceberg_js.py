"""The npm package iceberg-js on Node.js: every call that it has."""

import json
import os
import shutil
import subprocess

import pytest

from hms_gateway.gateway.certificates.tls import CERTIFICATE_NAME
from hms_gateway.rpc.structs import Catalog, CreateCatalogRequest
from tests.support.patience import PATIENCE_SECONDS
from tests.support.readme import ROOT
from tests.support.server import PASSWORD, USER, basic

pytestmark = [pytest.mark.node, pytest.mark.slow]

MODULES = ROOT / "tests" / "interop" / "node" / "node_modules"
PROGRAM = """
const { IcebergRestCatalog, IcebergError } = require("iceberg-js");
const [, baseUrl, authorization, warehouse, location] = process.argv;
const auth = { type: "header", name: "Authorization", value: authorization };
const catalog = new IcebergRestCatalog({ baseUrl, auth, warehouse, accessDelegation: ["vended-credentials"] });
const described = (error) => [error instanceof IcebergError, error.status, error.icebergType];
const refusal = (promise) => promise.then(() => null, described);
const schema = {
  type: "struct",
  fields: [
    { id: 1, name: "id", type: "long", required: true },
    { id: 2, name: "price", type: "decimal(10, 2)", required: false },
  ],
};
(async () => {
  const space = { namespace: ["script"] }, id = { ...space, name: "orders" }, found = {};
  await catalog.createNamespace(space, { properties: { owner: "ann" } });
  found.again = await refusal(catalog.createNamespace(space));
  found.ignored = await catalog.createNamespaceIfNotExists(space);
  const properties = { removals: ["owner", "none"], updates: { team: "till" } };
  found.changed = await catalog.updateNamespaceProperties(space, properties);
  const namespace = await catalog.loadNamespaceMetadata(space);
  found.namespace = [await catalog.namespaceExists(space), namespace.properties.team];
  const { namespaces } = await catalog.listNamespaces({ pageSize: 100 });
  found.listed = namespaces.some((one) => one.namespace[0] === "script");
  found.below = (await catalog.listNamespaces({ parent: space })).namespaces;
  const made = await catalog.createTableResult(space, { name: "orders", schema, "partition-spec": { fields: [] } });
  const uuid = made.metadata["table-uuid"];
  found.same = (await catalog.createTableIfNotExists(space, { name: "orders", schema }))["table-uuid"] === uuid;
  found.tables = (await catalog.listTables(space, { pageSize: 1 })).identifiers;
  const loaded = await catalog.loadTableResult(id, { snapshots: "refs" });
  found.held = await catalog.loadTableResult(id, { snapshots: "refs", ifNoneMatch: loaded.etag });
  const requirements = [{ type: "assert-table-uuid", uuid }];
  const updates = [{ action: "set-properties", updates: { a: "b" } }];
  const committed = await catalog.updateTable(id, { requirements, updates });
  found.property = committed.metadata.properties.a;
  const stale = [{ type: "assert-current-schema-id", "current-schema-id": 7 }];
  found.stale = await refusal(catalog.commitTable(id, { requirements: stale, updates: [] }));
  await catalog.renameTable({ source: id, destination: { ...space, name: "bills" } });
  found.renamed = [await catalog.tableExists(id), await catalog.tableExists({ ...space, name: "bills" })];
  await catalog.dropTable({ ...space, name: "bills" });
  const register = { name: "orders", "metadata-location": committed["metadata-location"] };
  found.registered = (await catalog.registerTable(space, register)).properties.a;
  found.full = await refusal(catalog.dropNamespace(space));
  await catalog.dropTable(id, { purge: true });
  await catalog.dropNamespace(space);
  found.gone = await refusal(catalog.loadTable(id));
  console.log(JSON.stringify(found));
})();
"""


@pytest.fixture(scope="module")
def call(iceberg_gateway):
    """Run the program with a warehouse; what it has found."""
    node = shutil.which("node")
    if node is None or not (MODULES / "iceberg-js").is_dir():
        pytest.skip("no Node.js, or no iceberg-js (`npm ci` in tests/interop/node)")

    def called(warehouse):
        login = basic(USER, PASSWORD)["Authorization"]
        url = f"https://127.0.0.1:{iceberg_gateway.port}/iceberg"
        certificate = str(iceberg_gateway.data_dir / CERTIFICATE_NAME)
        done = subprocess.run(
            [node, "-e", PROGRAM, url, login, warehouse],
            env=os.environ | {"NODE_PATH": str(MODULES), "NODE_EXTRA_CA_CERTS": certificate},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return called


@pytest.mark.parametrize("warehouse", ["hive", pytest.param("scripts", marks=pytest.mark.whole)])
def test_every_call(call, thrift_client, warehouse, iceberg_gateway):
    """The name of the default catalog, for which the server gives no prefix, and that of another one."""
    if warehouse != "hive":
        place = f"file:{iceberg_gateway.data_dir}/warehouse/{warehouse}"
        thrift_client.create_catalog(CreateCatalogRequest(Catalog(name=warehouse, locationUri=place)))
    assert call(warehouse) == {
        "again": [True, 409, "AlreadyExistsException"],
        "changed": {"updated": ["team"], "removed": ["owner"], "missing": ["none"]},
        "namespace": [True, "till"],
        "listed": True,
        "below": [],
        "same": True,
        "tables": [{"namespace": ["script"], "name": "orders"}],
        "held": None,
        "property": "b",
        "stale": [True, 409, "CommitFailedException"],
        "renamed": [False, True],
        "registered": "b",
        "full": [True, 409, "NamespaceNotEmptyException"],
        "gone": [True, 404, "NoSuchTableException"],
    }
