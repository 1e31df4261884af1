// Opens the page (first argument) in jsdom: the second choice, where there is no browser.
"use strict";

const { JSDOM, ResourceLoader, VirtualConsole } = require("jsdom");

JSDOM.fromURL(process.argv[2], {
  runScripts: "dangerously",
  resources: new ResourceLoader({ strictSSL: false }),
  virtualConsole: new VirtualConsole().sendTo(console),
});
