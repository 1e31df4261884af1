// What calls cost: figures of the gateway about itself.

import { html } from "./vendor/preact_htm.js";
import { t } from "./texts.js";

export function SlowCalls() {
  return "";
}

export function HotTables() {
  return "";
}

export function CostPage() {
  return html`<h1>${t.costTitle}</h1><p class="none">${t.costMissing}</p>`;
}
