// What a web page does with a metastore on another origin. Each function throws when something is not as it should be;
// the page tells its own server what came of them. `settings` (settings.js): url, port, path, user, password.
"use strict";

const DEMO = "hmshttptestdatabase";
const SCENARIO_SECONDS_MAX = 20;

// The browser library: synchronous without a callback, asynchronous with one.
function browserClient(password = settings.password) {
  const transport = new Thrift.TXHRTransport(settings.url);
  // This release of the library has no option for headers of one's own; newer ones do the same under a name.
  transport.getXmlHttpRequestObject = () => {
    const request = new XMLHttpRequest();
    const open = request.open;
    request.open = function (...parameters) {
      open.apply(request, parameters);
      request.setRequestHeader("Authorization", `Basic ${btoa(`${settings.user}:${password}`)}`);
    };
    return request;
  };
  return new HMS.ThriftHiveMetastoreClient(new Thrift.TJSONProtocol(transport));
}

// The browser build of the Node library.
function npmClient(protocol, password = settings.password) {
  const { thrift, service } = NpmThrift;
  const connection = thrift.createXHRConnection("127.0.0.1", settings.port, {
    transport: thrift.TBufferedTransport,
    protocol,
    path: settings.path,
    https: true,
    headers: { Authorization: `Basic ${btoa(`${settings.user}:${password}`)}` },
  });
  connection.on("error", (error) => console.error(error));
  return thrift.createXHRClient(service, connection);
}

function answerOf(client, method, ...parameters) {
  return new Promise((resolve, reject) => {
    client[method](...parameters, (error, result) => (error ? reject(error) : resolve(result)));
  });
}

const scenarios = {
  anotherOrigin() {
    isTrue(!settings.url.startsWith(location.origin), "the page must come from elsewhere for this test to mean anything");
  },

  nineReadsSynchronously() {
    const client = browserClient();
    isTrue(client.get_all_databases().includes(DEMO), "demo database");
    equal(client.get_databases("default*"), ["default"]);
    const database = client.get_database("default");
    isTrue(database instanceof HMS.Database, "a Database object");
    equal(database.ownerType, HMS.PrincipalType.ROLE);
    equal(client.get_all_tables(DEMO), ["test_table"]);
    equal(client.get_tables(DEMO, "*"), ["test_table"]);
    equal(client.get_tables_by_type(DEMO, ".*", "MANAGED_TABLE"), ["test_table"]);
    const table = client.get_table(DEMO, "test_table");
    isTrue(table instanceof HMS.Table, "a Table object");
    equal(table.sd.cols.map((column) => column.name), ["name", "age"]);
    equal(client.get_partition_names(DEMO, "test_table", 10), ["hair_color=black", "hair_color=brown"]);
    const partitions = client.get_partitions(DEMO, "test_table", 10);
    equal(partitions.map((partition) => partition.values[0]), ["black", "brown"]);
    equal(partitions[0].parameters.COLUMN_STATS_ACCURATE, '{"BASIC_STATS":"true"}');
  },

  async readWithCallback() {
    const client = browserClient();
    const table = await new Promise((resolve) => client.get_table(DEMO, "test_table", resolve));
    equal(table.tableName, "test_table");
  },

  exceptionObject() {
    const error = thrown(() => browserClient().get_table("default", "no_such_table"));
    isTrue(error instanceof HMS.NoSuchObjectException, `${error} is a NoSuchObjectException`);
    isTrue(error.message.includes("no_such_table"), error.message);
  },

  async exceptionObjectWithCallback() {
    const error = await new Promise((resolve) => browserClient().get_database("no_such_database", resolve));
    isTrue(error instanceof HMS.NoSuchObjectException, `${error} is a NoSuchObjectException`);
  },

  writesAndAwkwardStrings() {
    const client = browserClient();
    const name = `${settings.prefix}_page`;
    const parameters = { text: "çà ☃ 😀", controls: "\u0001\b\t\n\r\u001f", quotes: 'a"b\\c' };
    client.create_database(new HMS.Database({ name, description: "made by a page", parameters }));
    const database = client.get_database(name);
    equal({ ...database.parameters }, parameters);
    const again = thrown(() => client.create_database(new HMS.Database({ name })));
    isTrue(again instanceof HMS.AlreadyExistsException, `${again} is an AlreadyExistsException`);
    client.drop_database(name, true, false);
    equal(client.get_databases(name), []);
  },

  wrongPasswordSynchronously() {
    equal(thrown(() => browserClient("wrong").get_all_databases()), "encountered a unknown request status: 401");
  },

  async npmThriftInTjson() {
    await readsWithNpmThrift(NpmThrift.thrift.TJSONProtocol);
  },

  async npmThriftInBinary() {
    await readsWithNpmThrift(NpmThrift.thrift.TBinaryProtocol);
  },

  // The answer's own headers, as a page without any library sees them.
  async fetchReadsAnswerAndHeaders() {
    const answer = await post('[1,"get_databases",1,1,{"1":{"str":"default"}}]', settings.password);
    equal(answer.status, 200);
    isTrue(answer.headers.get("content-type").startsWith("application/vnd.apache.thrift.json"), "content type");
    equal(await answer.text(), '[1,"get_databases",2,1,{"0":{"lst":["str",1,"default"]}}]');
  },

  // A page may read the refusal too, so it can ask its user for the password again.
  async fetchReadsRefusal() {
    const answer = await post('[1,"get_all_databases",1,7,{}]', "wrong");
    equal(answer.status, 401);
    const [version, name, type, seqid] = JSON.parse(await answer.text());
    equal([version, name, type, seqid], [1, "get_all_databases", 3, 7]);
  },
};

async function readsWithNpmThrift(protocol) {
  const client = npmClient(protocol);
  const databases = await answerOf(client, "get_all_databases");
  isTrue(Array.from(databases).includes(DEMO), "demo database");
  const table = await answerOf(client, "get_table", DEMO, "test_table");
  equal(table.tableName, "test_table");
  const error = await answerOf(client, "get_table", "default", "no_such_table").catch((refusal) => refusal);
  isTrue(error instanceof NpmThrift.types.NoSuchObjectException, `${error} is a NoSuchObjectException`);
}

function post(body, password) {
  return fetch(settings.url, {
    method: "POST",
    body,
    headers: {
      Authorization: `Basic ${btoa(`${settings.user}:${password}`)}`,
      "Content-Type": "application/vnd.apache.thrift.json",
    },
  });
}

function equal(actual, expected) {
  const [left, right] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (left !== right) {
    throw new Error(`${left} instead of ${right}`);
  }
}

function isTrue(claim, text) {
  if (!claim) {
    throw new Error(`not so: ${text}`);
  }
}

function thrown(work) {
  let result;
  try {
    result = work();
  } catch (error) {
    return error;
  }
  throw new Error(`no exception but ${JSON.stringify(result)}`);
}

function within(seconds, promise) {
  let timer;
  const tooLate = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${seconds} s`)), seconds * 1000);
  });
  return Promise.race([promise, tooLate]).finally(() => clearTimeout(timer));
}

async function runAll() {
  const outcomes = {};
  for (const [name, scenario] of Object.entries(scenarios)) {
    if (name.startsWith("fetch") && typeof fetch === "undefined") {
      outcomes[name] = "skip: this browser has no fetch";
      continue;
    }
    try {
      await within(SCENARIO_SECONDS_MAX, Promise.resolve().then(scenario));
      outcomes[name] = null;
    } catch (error) {
      outcomes[name] = (error && error.stack) || String(error);
    }
  }
  const report = new XMLHttpRequest();
  report.open("POST", "outcomes");
  report.send(JSON.stringify(outcomes));
}

window.addEventListener("load", runAll);
