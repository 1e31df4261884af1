// Starts the console. What it exports is for the tests.

import { html, render } from "./vendor/preact_htm.js";
import { Frame } from "./frame.js";
import { session } from "./session.js";

render(html`<${Frame} />`, document.getElementById("console"));

export { session };
