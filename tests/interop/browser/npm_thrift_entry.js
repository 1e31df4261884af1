// What esbuild bundles for the page: npm thrift's own browser build and the Node-style client, as one global.
const thrift = require("thrift");
const service = require("generated/ThriftHiveMetastore.js");
const types = require("generated/hive_metastore_types.js");

// The scripts generated for the browser library want Int64 for the defaults of 64-bit fields, and it brings none.
globalThis.Int64 = thrift.Int64;
globalThis.NpmThrift = { thrift, service, types };
