// The small parts that every page is made of.

import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact_htm.js";
import { count } from "./format.js";
import { Busy, Refused, Unreachable } from "./session.js";
import { t } from "./texts.js";

const ROWS = 200;
const LONG = 400;
const SHORT = 24;
const FILTERED = 20;
const DOWNLOAD_MILLISECONDS = 60000;

/** The address of a page of the console; names may have any characters. */
export function link(...parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

export function tableLink(db, name, tab) {
  return tab ? link("t", db, name, tab) : link("t", db, name);
}

export function partitionLink(db, name, partition) {
  return link("p", db, name, partition);
}

export const DEFAULT_CATALOG = "hive";

/** The name of a database in calls and addresses: `@catalog#name` in another catalog than the default one. */
export function keyOf(catalog, name) {
  return name && catalog && catalog !== DEFAULT_CATALOG ? `@${catalog}#${name}` : name;
}

/** The same for people: `catalog.name`. */
export function shownName(key) {
  return key?.replace(/^@([^#]*)#/, "$1.");
}

/** What was typed cannot be sent; the message is a sentence. */
export class Mistyped extends Error {}

/** The sentence for what went wrong. */
export function sentence(error) {
  if (error instanceof Mistyped) return error.message;
  if (error instanceof Busy) return t.busy(error.status, error.seconds);
  if (error instanceof Unreachable) return t.unreachable;
  if (error instanceof Refused) return error.status === 403 ? t.noRights : t.refused(error.status, error.message);
  if (error.name === "NoSuchObjectException") return t.gone(error.message);
  return t.failed(error.message || error.name);
}

export function Problem({ error, retry }) {
  return html`<div class="problem" role="alert">
    <p>${sentence(error)}</p>
    ${retry && html`<button onClick=${retry}>${t.retry}</button>`}
  </div>`;
}

export function Loading() {
  return html`<p class="loading" role="status">${t.loading}</p>`;
}

/** What a call gave, or how far it is. */
export function Answer({ of, children }) {
  if (of.error && of.value === undefined) return html`<${Problem} error=${of.error} retry=${of.reload} />`;
  if (of.value === undefined) return html`<${Loading} />`;
  return children(of.value);
}

export function Copy({ text, what }) {
  const [isCopied, setCopied] = useState(false);
  async function copy() {
    await copyText(text);
    setCopied(true);
    setTimeout(setCopied, 2000, false);
  }
  return html`<button class="copy" onClick=${copy} aria-label=${t.copyOf(what)}>${isCopied ? t.copied : t.copy}</button>`;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages over plain HTTP have no clipboard but the selection's.
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

/** Text that may have a million characters. */
export function Long({ text }) {
  const [isOpen, setOpen] = useState(false);
  const whole = text ?? "";
  if (whole.length <= LONG) return html`<bdi class="text ${whole.length <= SHORT ? "short" : ""}">${breakable(whole)}</bdi>`;
  return html`<bdi class="text">${isOpen ? whole : `${whole.slice(0, LONG)}…`}</bdi>
    <button class="quiet" onClick=${() => setOpen(!isOpen)}>${isOpen ? t.showLess : t.showAll(count(whole.length))}</button>`;
}

/** A name or a path, which breaks after a point or slash before it breaks within a word. */
function breakable(text) {
  return /\s/.test(text) ? text : text.split(/(?<=[./])/).flatMap((part) => [part, html`<wbr />`]);
}

export function Panel({ title, number, aside, children }) {
  return html`<section class="panel" aria-label=${title}>
    <header><h2>${title}${number ? html` <span class="count">${count(number)}</span>` : ""}</h2>${aside}</header>
    ${children}
  </section>`;
}

const ORDER = new Intl.Collator("en", { numeric: true });

/** The order of two values of a column: numbers by size, texts as people sort them, nothing last. */
function ordered(one, other) {
  const [isOne, isOther] = [one, other].map((value) => value !== undefined && value !== null && value !== "");
  if (!isOne || !isOther) return isOther - isOne;
  if (typeof one === "string" || typeof other === "string") return ORDER.compare(one, other);
  return one < other ? -1 : one > other ? 1 : 0;
}

/** A cell of CSV. A program for tables would run a text that begins like a formula, so a quote is put before it. */
function csvCell(value) {
  const text = String(value ?? "");
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function download(label, columns, rows) {
  const lines = [columns.map(({ title }) => title), ...rows.map((row) => columns.map(({ value }) => value(row)))];
  const text = lines.map((line) => line.map(csvCell).join(",")).join("\r\n");
  const address = URL.createObjectURL(new Blob(["\ufeff", text, "\r\n"], { type: "text/csv" }));
  const name = `${label.toLowerCase().replace(/[^a-z0-9._-]+/g, "-")}.csv`;
  Object.assign(document.createElement("a"), { href: address, download: name }).click();
  setTimeout(URL.revokeObjectURL, DOWNLOAD_MILLISECONDS, address);
}

/** Rows under titles. A column is [title, cell of a row, class, value of a row]: with a value it sorts by a click and is
 * in the CSV. With `find`, a box filters by the text it gives. */
export function Rows({ label, columns, rows, none, find, keyOf, file }) {
  const [shown, setShown] = useState(ROWS);
  const [wanted, setWanted] = useState("");
  const [sorting, setSorting] = useState(null);
  if (!rows.length) return html`<p class="none">${none}</p>`;
  const fitting = find && wanted ? rows.filter((row) => find(row).toLowerCase().includes(wanted.toLowerCase())) : rows;
  const valued = columns.flatMap(([title, , , value]) => (value ? [{ title, value }] : []));
  const by = sorting && columns[sorting.column]?.[3];
  const sorted = by ? [...fitting].sort((one, other) => sorting.sign * ordered(by(one), by(other))) : fitting;
  const visible = sorted.slice(0, shown);
  const numbers = new Map(keyOf ? [] : rows.map((row, index) => [row, index]));
  // In order, against it, and as it came.
  const sort = (column) => setSorting(sorting?.column !== column ? { column, sign: 1 } : sorting.sign > 0 ? { column, sign: -1 } : null);
  const head = ([title, , kind, value], column) => {
    const sign = sorting?.column === column ? sorting.sign : 0;
    if (!value || rows.length < 2) return html`<th scope="col" class=${kind ?? ""}>${title}</th>`;
    return html`<th scope="col" class=${kind ?? ""} aria-sort=${sign ? (sign > 0 ? "ascending" : "descending") : undefined}>
      <button class="sort" title=${t.sortBy(title)} onClick=${() => sort(column)}>${title}<span aria-hidden="true">${sign ? (sign > 0 ? "▲" : "▼") : ""}</span></button>
    </th>`;
  };
  return html`<div>
    ${find &&
    rows.length > FILTERED &&
    html`<p class="tools">
      <input type="search" aria-label=${t.filterRows} placeholder=${t.filterRows} value=${wanted} onInput=${(event) => setWanted(event.target.value)} />
      <span class="soft" role="status">${t.rows(count(visible.length), count(rows.length))}</span>
    </p>`}
    <div class="scroll" role="group" aria-label=${label} tabindex="0">
      <table>
        <thead>
          <tr>${columns.map(head)}</tr>
        </thead>
        <tbody>
          ${visible.map(
            (row) => html`<tr key=${keyOf ? keyOf(row) : numbers.get(row)}>
              ${columns.map(([, cell, kind]) => html`<td class=${kind ?? ""}>${cell(row)}</td>`)}
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    <p class="foot">
      ${fitting.length > shown &&
      html`<button class="quiet" onClick=${() => setShown(shown + 5 * ROWS)}>${t.showMore(count(Math.min(fitting.length - shown, 5 * ROWS)))}</button>`}
      ${valued.length > 0 &&
      rows.length > 1 &&
      html`<button class="copy" aria-label=${t.csvOf(label)} title=${t.csvOf(label)} onClick=${() => download(file ?? label, valued, sorted)}>${t.csv}</button>`}
    </p>
  </div>`;
}

/** Pairs of a title and what is to be said; pairs without a value are left out. */
export function Facts({ pairs }) {
  const set = pairs.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return html`<dl class="facts">
    ${set.map(([title, value]) => html`<div><dt>${title}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

/** A location, and a button that copies it; what is in `within` is shown without it. */
export function Location({ of, what, within }) {
  if (!of) return t.none;
  const shown = within && of.startsWith(`${within}/`) ? of.slice(within.length + 1) : of;
  return html`<code><${Long} text=${shown} /></code> <${Copy} text=${of} what=${what ?? t.location} />`;
}

export function Parameters({ of, label }) {
  const rows = [...(of ?? new Map())].sort(([one], [other]) => (one < other ? -1 : 1));
  return html`<${Rows}
    label=${label ?? t.parameters}
    rows=${rows}
    none=${t.parametersNone}
    find=${([name, value]) => `${name} ${value}`}
    columns=${[
      [t.parameter, ([name]) => html`<code><${Long} text=${name} /></code>`, "", ([name]) => name],
      [t.value, ([, value]) => html`<${Long} text=${value} />`, "wide", ([, value]) => value],
    ]}
  />`;
}

/** Text of a program, such as a statement. */
export function Code({ text, title }) {
  return html`<div class="scroll code" role="group" aria-label=${title} tabindex="0"><pre><code>${text}</code></pre></div>`;
}

/** A dialog over the page, closed by Escape. */
export function Dialog({ title, onClose, isWide, children }) {
  const place = useRef(null);
  useLayoutEffect(() => {
    const dialog = place.current;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  return html`<dialog
    ref=${place}
    aria-label=${title}
    class=${isWide ? "broad" : ""}
    onCancel=${(event) => {
      event.preventDefault();
      onClose?.();
    }}
  >
    <h2>${title}</h2>
    ${children}
  </dialog>`;
}

/** A dialog that does something: the problem is shown in it until what is `about` changes, and what was typed stays. */
export function Doing({ title, go, onGo, onClose, children, isDangerous, isReady = true, about }) {
  const [error, setError] = useState(null);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => setError(null), [about]);
  async function submit(event) {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await onGo();
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  }
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form onSubmit=${submit}>
      ${children}
      ${error && html`<div class="problem" role="alert"><p>${sentence(error)}</p></div>`}
      <p class="buttons">
        <button type="button" onClick=${onClose}>${t.cancel}</button>
        <button class=${isDangerous ? "primary danger" : "primary"} disabled=${isBusy || !isReady}>${go}</button>
      </p>
    </form>
  </${Dialog}>`;
}
