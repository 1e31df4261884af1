// Runs every scenario against the server described by the first argument (JSON) and prints one JSON object:
// scenario -> null, or what went wrong. A scenario that gets no answer fails after a while instead of hanging.
"use strict";

const scenarios = require("./scenarios");

const SCENARIO_SECONDS_MAX = 30;

function within(seconds, promise) {
  let timer;
  const tooLate = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${seconds} s`)), seconds * 1000);
  });
  return Promise.race([promise, tooLate]).finally(() => clearTimeout(timer));
}

async function main() {
  const settings = JSON.parse(process.argv[2]);
  const outcomes = {};
  for (const [name, scenario] of Object.entries(scenarios)) {
    outcomes[name] = await within(SCENARIO_SECONDS_MAX, scenario(settings, settings.prefix)).then(
      () => null,
      (error) => error.stack || `${error.constructor.name}: ${error.message}`,
    );
  }
  process.stdout.write(JSON.stringify(outcomes), () => process.exit(0));
}

main();
