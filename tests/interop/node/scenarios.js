// What a Node service does with a metastore, one function per scenario. They throw when something is not as it should
// be. `prefix` keeps the databases of two runs apart.
"use strict";

const assert = require("assert/strict");
const Int64 = require("node-int64");
const { connect } = require("./session");

const DEMO = "hmshttptestdatabase";

async function nineReads(settings) {
  const { call } = connect(settings);
  const databases = Array.from(await call("get_all_databases"));
  assert.ok(databases.includes("default") && databases.includes(DEMO));
  assert.deepEqual(Array.from(await call("get_databases", "default*")), ["default"]);
  const database = await call("get_database", "default");
  assert.equal(database.name, "default");
  assert.equal(database.description, "Default Hive database");
  assert.equal(database.ownerName, "public");
  assert.equal(database.ownerType, 2);
  assert.deepEqual(Array.from(await call("get_all_tables", DEMO)), ["test_table"]);
  assert.deepEqual(Array.from(await call("get_tables", DEMO, "*")), ["test_table"]);
  assert.deepEqual(Array.from(await call("get_tables_by_type", DEMO, ".*", "MANAGED_TABLE")), ["test_table"]);
  const table = await call("get_table", DEMO, "test_table");
  assert.equal(table.tableName, "test_table");
  assert.equal(table.createTime, 1566250831);
  assert.deepEqual(table.sd.cols.map((column) => [column.name, column.type]), [["name", "string"], ["age", "int"]]);
  assert.deepEqual(table.partitionKeys.map((key) => key.name), ["hair_color"]);
  assert.equal(table.sd.compressed, false);
  const names = Array.from(await call("get_partition_names", DEMO, "test_table", 10));
  assert.deepEqual(names, ["hair_color=black", "hair_color=brown"]);
  const partitions = await call("get_partitions", DEMO, "test_table", 10);
  assert.deepEqual(partitions.map((partition) => Array.from(partition.values)), [["black"], ["brown"]]);
  assert.equal(partitions[0].parameters.COLUMN_STATS_ACCURATE, '{"BASIC_STATS":"true"}');
  assert.ok(partitions[1].sd.location.endsWith("/test_table/hair_color=brown"));
}

async function databaseLifecycle(settings, prefix) {
  const { call, types } = connect(settings);
  const name = `${prefix}_database`;
  const given = new types.Database({ name, description: "made by node", parameters: { team: "red" } });
  await call("create_database", given);
  const made = await call("get_database", name);
  assert.equal(made.description, "made by node");
  assert.equal(made.parameters.team, "red");
  made.parameters.team = "blue";
  made.ownerName = "somebody";
  await call("alter_database", name, made);
  const changed = await call("get_database", name.toUpperCase());
  assert.equal(changed.parameters.team, "blue");
  assert.equal(changed.ownerName, "somebody");
  assert.equal(changed.description, "made by node");
  await call("drop_database", name, true, false);
  const left = await call("get_databases", name);
  assert.deepEqual(Array.from(left), []);
}

async function tableLifecycle(settings, prefix) {
  const { call, types } = connect(settings);
  const database = await makeDatabase(call, types, `${prefix}_tables`);
  await call("create_table", plainTable(types, database, "orders"));
  const table = await call("get_table", database, "orders");
  assert.equal(table.tableType, "MANAGED_TABLE");
  assert.ok(table.sd.location.endsWith(`/${database}.db/orders`), table.sd.location);
  assert.ok(table.parameters.transient_lastDdlTime);
  table.sd.cols.push(new types.FieldSchema({ name: "note", type: "string", comment: "added" }));
  table.tableName = "invoices";
  await call("alter_table", database, "orders", table);
  assert.deepEqual(Array.from(await call("get_all_tables", database)), ["invoices"]);
  const fields = await call("get_fields", database, "invoices");
  assert.deepEqual(fields.map((field) => field.name), ["id", "amount", "note"]);
  await call("drop_table", database, "invoices", true);
  await refused(call("get_table", database, "invoices"), types.NoSuchObjectException);
  await call("drop_database", database, true, true);
}

async function partitionLifecycle(settings, prefix) {
  const { call, types } = connect(settings);
  const database = await makeDatabase(call, types, `${prefix}_partitions`);
  await call("create_table", partitionedTable(types, database, "events"));
  const added = await call("add_partition", partition(types, database, "events", "2024-01-01"));
  assert.deepEqual(Array.from(added.values), ["2024-01-01"]);
  const more = ["2024-01-02", "2024-01-03"].map((day) => partition(types, database, "events", day));
  assert.equal(await call("add_partitions", more), 2);
  const names = await call("get_partition_names", database, "events", -1);
  assert.deepEqual(Array.from(names), ["day=2024-01-01", "day=2024-01-02", "day=2024-01-03"]);
  const found = await call("get_partitions_by_filter", database, "events", 'day > "2024-01-01"', -1);
  assert.equal(found.length, 2);
  const one = await call("get_partition_by_name", database, "events", "day=2024-01-02");
  one.parameters.checked = "yes";
  await call("alter_partition", database, "events", one);
  const changed = await call("get_partition", database, "events", ["2024-01-02"]);
  assert.equal(changed.parameters.checked, "yes");
  assert.equal(await call("drop_partition", database, "events", ["2024-01-01"], true), true);
  await refused(call("get_partition", database, "events", ["2024-01-01"]), types.NoSuchObjectException);
  await call("drop_database", database, true, true);
}

async function declaredExceptions(settings, prefix) {
  const { call, types } = connect(settings);
  const missing = await refused(call("get_table", "default", "no_such_table"), types.NoSuchObjectException);
  assert.ok(missing.message.includes("no_such_table"), missing.message);
  await refused(call("get_database", "no_such_database"), types.NoSuchObjectException);
  const database = await makeDatabase(call, types, `${prefix}_refusals`);
  await refused(call("create_database", new types.Database({ name: database })), types.AlreadyExistsException);
  await call("create_table", plainTable(types, database, "t"));
  await refused(call("create_table", plainTable(types, database, "t")), types.AlreadyExistsException);
  const notEmpty = await refused(call("drop_database", database, true, false), types.InvalidOperationException);
  assert.ok(notEmpty.message.includes(`Database ${database} is not empty`), notEmpty.message);
  await refused(call("create_table", plainTable(types, "no_such_database", "t")), types.InvalidObjectException);
  await call("drop_database", database, true, true);
}

async function longIntegers(settings) {
  const { call, types } = connect(settings);
  // npm thrift writes a negative Int64 as -000000000001, and a BigInt beyond 2^53 exactly.
  for (const id of [new Int64(-1), -1n, 9223372036854775807n, -9223372036854775808n]) {
    const request = new types.GetTableRequest({ dbName: DEMO, tblName: "test_table", id });
    assert.equal((await call("get_table_req", request)).table.tableName, "test_table", `${id}`);
  }
  const since = await call("aliveSince");
  assert.ok(since instanceof Int64);
  const age = Date.now() / 1000 - since.toNumber();
  assert.ok(age > -5 && age < 3600, `alive since ${since}`);
}

async function unknownMethod(settings) {
  const session = connect(settings);
  const { client, thrift } = session;
  const error = await new Promise((resolve, reject) => {
    client._seqid = client.new_seqid();
    client._reqs[client.seqid()] = (refusal, result) => (refusal ? resolve(refusal) : reject(new Error(`${result}`)));
    client.recv_no_such_method = client.recv_get_all_databases;
    const output = new client.pClass(client.output);
    output.writeMessageBegin("no_such_method", thrift.Thrift.MessageType.CALL, client.seqid());
    output.writeStructBegin("no_such_method_args");
    output.writeFieldStop();
    output.writeStructEnd();
    output.writeMessageEnd();
    client.output.flush();
  });
  assert.ok(error instanceof thrift.Thrift.TApplicationException, `${error}`);
  assert.equal(error.message, "Invalid method name: 'no_such_method'");
  assert.equal(error.type, thrift.Thrift.TApplicationExceptionType.UNKNOWN_METHOD);
}

async function wrongPassword(settings) {
  const { call, errors, thrift } = connect(settings, { password: "wrong" });
  const error = await refused(call("get_all_databases"), thrift.Thrift.TApplicationException);
  assert.ok(error.message, "the exception says why");
  // The client reports the status apart from the body.
  assert.equal(errors.length, 1);
  assert.equal(errors[0].statusCode, 401);
}

async function awkwardStrings(settings, prefix) {
  const { call, types } = connect(settings);
  const parameters = {
    accents: "çà et là, Größe, ☃, 😀",
    controls: "\u0001\u0002\b\t\n\f\r\u001f\u007f",
    quotes: 'a"b\\c/d\'e',
    "ключ с пробелами": "значение",
    empty: "",
    html: "</script><!--",
  };
  const database = await makeDatabase(call, types, `${prefix}_strings`);
  const table = plainTable(types, database, "strings");
  table.parameters = { ...parameters };
  table.sd.serdeInfo.parameters = { "field.delim": "\u0001", "line.delim": "\n" };
  await call("create_table", table);
  const kept = await call("get_table", database, "strings");
  for (const [key, value] of Object.entries(parameters)) {
    assert.equal(kept.parameters[key], value, key);
  }
  assert.deepEqual({ ...kept.sd.serdeInfo.parameters }, { "field.delim": "\u0001", "line.delim": "\n" });
  await call("drop_database", database, true, true);
}

async function thousandPartitions(settings, prefix) {
  const { call, types } = connect(settings);
  const database = await makeDatabase(call, types, `${prefix}_thousand`);
  await call("create_table", partitionedTable(types, database, "wide"));
  const values = Array.from({ length: 1000 }, (_, index) => String(index).padStart(4, "0"));
  assert.equal(await call("add_partitions", values.map((value) => partition(types, database, "wide", value))), 1000);
  const listed = await call("get_partitions", database, "wide", -1);
  assert.deepEqual(listed.map((one) => one.values[0]), values);
  assert.equal(listed[999].sd.cols.length, 2);
  assert.ok(listed[999].sd.location.endsWith("/wide/day=0999"), listed[999].sd.location);
  assert.equal((await call("get_partition_names", database, "wide", 100)).length, 100);
  await call("drop_database", database, true, true);
}

async function longAnswer(settings) {
  const { call } = connect(settings);
  const { database, table, values } = settings.long;
  const listed = await call("get_partitions", database, table, -1);
  assert.deepEqual(listed.map((one) => one.values[0]), values);
  assert.equal(listed[0].sd.cols[0].name, "column_00");
}

async function manyCallsAtOnce(settings, prefix) {
  const { call, client, types } = connect(settings);
  const databases = [];
  for (let number = 0; number < 20; number++) {
    databases.push(await makeDatabase(call, types, `${prefix}_busy_${number}`));
  }
  const before = client.seqid();
  // Answers come in any order; the sequence number alone says to which call one belongs.
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, number) => call("get_database", databases[number % databases.length])),
  );
  assert.deepEqual(answers.map((answer) => answer.name), answers.map((_, number) => databases[number % 20]));
  assert.equal(client.seqid(), before + 200);
  for (const database of databases) {
    await call("drop_database", database, true, false);
  }
}

async function onewayShutdown(settings) {
  const { call, client, errors } = connect(settings);
  client.shutdown(() => {});
  // The next call tells that the server took no notice, and that the empty answer did not disturb the connection.
  assert.ok((await call("get_all_databases")).length >= 2);
  assert.deepEqual(errors, []);
}

async function refused(answer, type) {
  try {
    await answer;
  } catch (error) {
    assert.ok(error instanceof type, `${error.constructor.name}: ${error.message} instead of ${type.name}`);
    return error;
  }
  throw new assert.AssertionError({ message: `no ${type.name}` });
}

async function makeDatabase(call, types, name) {
  await call("create_database", new types.Database({ name }));
  return name;
}

function plainTable(types, dbName, tableName) {
  return new types.Table({
    dbName,
    tableName,
    owner: "interop",
    tableType: "MANAGED_TABLE",
    sd: descriptor(types),
    partitionKeys: [],
    parameters: {},
  });
}

function partitionedTable(types, dbName, tableName) {
  const table = plainTable(types, dbName, tableName);
  table.partitionKeys = [new types.FieldSchema({ name: "day", type: "string" })];
  return table;
}

function partition(types, dbName, tableName, day) {
  return new types.Partition({ dbName, tableName, values: [day], sd: descriptor(types), parameters: {} });
}

function descriptor(types) {
  return new types.StorageDescriptor({
    cols: [
      new types.FieldSchema({ name: "id", type: "bigint" }),
      new types.FieldSchema({ name: "amount", type: "decimal(10,2)", comment: "in euros" }),
    ],
    inputFormat: "org.apache.hadoop.mapred.TextInputFormat",
    outputFormat: "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
    compressed: false,
    numBuckets: -1,
    serdeInfo: new types.SerDeInfo({
      serializationLib: "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
      parameters: { "serialization.format": "1" },
    }),
    bucketCols: [],
    sortCols: [],
    parameters: {},
  });
}

module.exports = {
  nineReads,
  databaseLifecycle,
  tableLifecycle,
  partitionLifecycle,
  declaredExceptions,
  longIntegers,
  unknownMethod,
  wrongPassword,
  awkwardStrings,
  thousandPartitions,
  longAnswer,
  manyCallsAtOnce,
  onewayShutdown,
};
