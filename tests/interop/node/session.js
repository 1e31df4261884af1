// One connection of npm thrift to the gateway, with the client and types generated from our schema.
"use strict";

const path = require("path");
const thrift = require("thrift");

// `settings`: port, path, user, password, generated (folder), promises (generated with es6).
function connect(settings, replaced = {}) {
  const { port, path: urlPath, user, password, generated, promises } = { ...settings, ...replaced };
  const service = require(path.join(generated, "ThriftHiveMetastore.js"));
  const types = require(path.join(generated, "hive_metastore_types.js"));
  const connection = thrift.createHttpConnection("127.0.0.1", port, {
    transport: thrift.TBufferedTransport,
    protocol: thrift.TJSONProtocol,
    path: urlPath,
    https: true,
    headers: { Authorization: "Basic " + Buffer.from(`${user}:${password}`).toString("base64") },
    nodeOptions: { rejectUnauthorized: false },
  });
  const errors = [];
  connection.on("error", (error) => errors.push(error));
  const client = thrift.createHttpClient(service, connection);

  function call(method, ...parameters) {
    if (promises) {
      return client[method](...parameters);
    }
    return new Promise((resolve, reject) => {
      client[method](...parameters, (error, result) => (error ? reject(error) : resolve(result)));
    });
  }

  return { call, client, connection, errors, types, thrift };
}

module.exports = { connect };
