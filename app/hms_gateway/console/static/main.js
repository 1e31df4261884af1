// Starts the console.

import { html, render } from "./vendor/preact_htm.js";
import { Frame } from "./frame.js";

render(html`<${Frame} />`, document.getElementById("console"));
