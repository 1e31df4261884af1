// What esbuild bundles for the page: npm thrift's own browser build and the Node-style client, as one global.
const thrift = require("thrift");
const service = require("generated/ThriftHiveMetastore.js");
const types = require("generated/hive_metastore_types.js");

globalThis.NpmThrift = { thrift, service, types };
