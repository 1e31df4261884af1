// Statistics of columns, as a table and a partition have them.

import { html } from "./vendor/preact_htm.js";
import { count, percent, time } from "./format.js";
import { Long, Rows } from "./parts.js";
import { t } from "./texts.js";

/** Statistics of columns; `rows` is what shares are of, `isMerged` that distinct values are no count. */
export function ColumnStatistics({ found, rows, isMerged }) {
  const all = found.map((one) => ({ name: one.colName, type: one.colType, ...Object.values(one.statsData).find(Boolean) }));
  const most = Math.max(1, ...all.map((one) => Number(one.numDVs ?? 0)));
  const nulls = (one) => Number(one.numNulls ?? 0);
  const distinct = (one) => (isMerged ? t.about(count(one.numDVs)) : count(one.numDVs));
  return html`<${Rows}
    label=${t.tabs.statistics}
    rows=${all}
    none=${t.statisticsNone}
    find=${(one) => one.name}
    keyOf=${(one) => one.name}
    columns=${[
      [t.name, (one) => html`<bdi class="name">${one.name}</bdi>`, "", (one) => one.name],
      [t.type, (one) => html`<code><${Long} text=${one.type} /></code>`, "", (one) => one.type],
      [t.nulls, (one) => count(nulls(one)), "number", nulls],
      // Without the number of rows there is no share, and a number in its place would be read as one.
      ...(rows ? [[t.nullShare, (one) => html`<${Bar} share=${Math.min(1, nulls(one) / rows)} text=${percent(Math.min(1, nulls(one) / rows))} />`, "bar", (one) => Math.min(1, nulls(one) / rows)]] : []),
      [t.distinct, (one) => (one.numDVs === undefined ? t.none : html`<${Bar} share=${Number(one.numDVs) / most} text=${distinct(one)} />`), "bar", (one) => one.numDVs],
      [t.lowest, (one) => shown(one.lowValue), "", (one) => shown(one.lowValue)],
      [t.highest, (one) => shown(one.highValue), "", (one) => shown(one.highValue)],
      [t.lengths, (one) => (one.maxColLen === undefined ? "" : `${Number(one.avgColLen).toFixed(1)}, ${count(one.maxColLen)}`), "", (one) => one.maxColLen],
    ]}
  />`;
}

function shown(value) {
  if (value === undefined) return "";
  if (typeof value !== "object") return String(value);
  if (value.daysSinceEpoch !== undefined) return new Date(Number(value.daysSinceEpoch) * 86_400_000).toISOString().slice(0, 10);
  if (value.secondsSinceEpoch !== undefined) return time(Number(value.secondsSinceEpoch) * 1000);
  return value.unscaled === undefined ? "" : decimal(value);
}

function decimal({ unscaled, scale }) {
  const digits = [...atob(unscaled)].map((one) => one.charCodeAt(0).toString(16).padStart(2, "0")).join("");
  const number = BigInt.asIntN(digits.length * 4, BigInt(`0x${digits || "0"}`));
  const text = String(number < 0n ? -number : number).padStart(scale + 1, "0");
  const whole = scale ? `${text.slice(0, -scale)}.${text.slice(-scale)}` : text;
  return number < 0n ? `-${whole}` : whole;
}

function Bar({ share, text }) {
  return html`<span class="meter"><span aria-hidden="true"><i style=${{ width: `${(100 * share).toFixed(1)}%` }}></i></span>${text}</span>`;
}
