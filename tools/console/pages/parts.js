// The small parts that every page is made of.

import { html, useLayoutEffect, useRef, useState } from "./vendor/preact_htm.js";
import { count } from "./format.js";
import { Busy, Refused, Unreachable } from "./session.js";
import { t } from "./texts.js";

const ROWS = 200;
const LONG = 400;
const SHORT = 24;

/** The address of a page of the console; names may have any characters. */
export function link(...parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

export function tableLink(db, name, tab) {
  return tab ? link("t", db, name, tab) : link("t", db, name);
}

/** The sentence for what went wrong. */
export function sentence(error) {
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
  if (whole.length <= LONG) return html`<bdi class="text ${whole.length <= SHORT ? "short" : ""}">${whole}</bdi>`;
  return html`<bdi class="text">${isOpen ? whole : `${whole.slice(0, LONG)}…`}</bdi>
    <button class="quiet" onClick=${() => setOpen(!isOpen)}>${isOpen ? t.showLess : t.showAll(count(whole.length))}</button>`;
}

export function Panel({ title, aside, children, id }) {
  return html`<section class="panel" aria-label=${title} id=${id}>
    <header><h2>${title}</h2>${aside}</header>
    ${children}
  </section>`;
}

/** Rows under titles. `columns` are [title, cell of a row, class]; with `find`, a box filters by the text it gives. */
export function Rows({ label, columns, rows, none, find, keyOf }) {
  const [shown, setShown] = useState(ROWS);
  const [wanted, setWanted] = useState("");
  const fitting = find && wanted ? rows.filter((row) => find(row).toLowerCase().includes(wanted.toLowerCase())) : rows;
  if (!rows.length) return html`<p class="none">${none}</p>`;
  const visible = fitting.slice(0, shown);
  return html`<div>
    ${find &&
    rows.length > 20 &&
    html`<p class="tools">
      <input type="search" aria-label=${t.filterRows} placeholder=${t.filterRows} value=${wanted} onInput=${(event) => setWanted(event.target.value)} />
      <span class="soft" role="status">${t.rows(count(visible.length), count(rows.length))}</span>
    </p>`}
    <div class="scroll" role="group" aria-label=${label} tabindex="0">
      <table>
        <thead>
          <tr>${columns.map(([title, , kind]) => html`<th scope="col" class=${kind ?? ""}>${title}</th>`)}</tr>
        </thead>
        <tbody>
          ${visible.map(
            (row, index) => html`<tr key=${keyOf ? keyOf(row) : index}>
              ${columns.map(([, cell, kind]) => html`<td class=${kind ?? ""}>${cell(row)}</td>`)}
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${fitting.length > shown &&
    html`<p><button class="quiet" onClick=${() => setShown(shown + 5 * ROWS)}>${t.showMore(count(Math.min(fitting.length - shown, 5 * ROWS)))}</button></p>`}
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

export function Parameters({ of }) {
  const rows = [...(of ?? new Map())].sort(([one], [other]) => (one < other ? -1 : 1));
  return html`<${Rows}
    label=${t.parameters}
    rows=${rows}
    none=${t.parametersNone}
    find=${([name, value]) => `${name} ${value}`}
    columns=${[
      [t.parameter, ([name]) => html`<code><${Long} text=${name} /></code>`],
      [t.value, ([, value]) => html`<${Long} text=${value} />`, "wide"],
    ]}
  />`;
}

/** A dialog over the page, closed by Escape. */
export function Dialog({ title, onClose, children }) {
  const place = useRef(null);
  useLayoutEffect(() => {
    const dialog = place.current;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  return html`<dialog
    ref=${place}
    aria-label=${title}
    onCancel=${(event) => {
      event.preventDefault();
      onClose?.();
    }}
  >
    <h2>${title}</h2>
    ${children}
  </dialog>`;
}

/** A dialog that does something: the problem is shown in it, and what was typed stays. */
export function Doing({ title, go, onGo, onClose, children, isDangerous, isReady = true }) {
  const [error, setError] = useState(null);
  const [isBusy, setBusy] = useState(false);
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
        <button class=${isDangerous ? "danger" : "primary"} disabled=${isBusy || !isReady}>${go}</button>
      </p>
    </form>
  </${Dialog}>`;
}
