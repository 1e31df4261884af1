// Changes: each is one call of the public interface with a key, so that repeating it does nothing twice.

import { html, useMemo, useState } from "./vendor/preact_htm.js";
import { bytes, count, numberIn, time } from "./format.js";
import { useCall } from "./live.js";
import { Doing, keyOf, link, Long, Mistyped, shownName } from "./parts.js";
import { call, DeclaredError } from "./session.js";
import { t } from "./texts.js";

const LOCATIONS = 5;
const LOOKED_AT = 1000;
const LOCKS = ["", t.holds, t.waitsFor];

function freshKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");
}

/** Makes a change of one dialog under a key of its text, so that sending it twice does nothing twice. `values` gives what is sent. */
function useChange() {
  const sent = useMemo(() => new Map(), []);
  return async (method, values, text) => {
    if (!sent.has(text)) sent.set(text, { key: freshKey(), values: await values() });
    const { key, values: again } = sent.get(text);
    try {
      return await call(method, again, { key });
    } catch (error) {
      // The gateway keeps a refusal under its key, and its reason may be gone when the change is tried again.
      if (error instanceof DeclaredError) sent.delete(text);
      throw error;
    }
  };
}

function Field({ title, value, onValue, rows, hint, ...more }) {
  return html`<label>${title}
    ${
      rows
        ? html`<textarea rows=${rows} spellcheck=${false} value=${value} onInput=${(event) => onValue(event.target.value)} ...${more}></textarea>`
        : html`<input value=${value} onInput=${(event) => onValue(event.target.value)} ...${more} />`
    }
    ${hint && html`<span class="soft">${hint}</span>`}
  </label>`;
}

/** Whether a line says it: what is around names and values is no part of them. */
function isOneLine([name, value]) {
  const isTrimmed = [name, value].every((text) => text === text.trim() && !/[\r\n]/.test(text));
  return isTrimmed && name !== "" && !name.includes("=");
}

function parametersText(parameters) {
  return [...(parameters ?? new Map())]
    .filter(isOneLine)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => `${name} = ${value}`)
    .join("\n");
}

/** The parameters a text says; those that no line can say stay. Throws Mistyped with the line that is wrong. */
function parametersOf(text, before) {
  const kept = [...(before ?? new Map())].filter((each) => !isOneLine(each));
  const found = new Map(kept);
  text.split("\n").forEach((line, index) => {
    if (!line.trim()) return;
    const at = line.indexOf("=");
    if (at < 1) throw new Mistyped(t.editBad(index + 1));
    found.set(line.slice(0, at).trim(), line.slice(at + 1).trim());
  });
  return found;
}

/** The parameters of now with what a form has changed: others may have changed other ones since it was opened. */
function merged(now, before, after) {
  const whole = new Map(now ?? []);
  for (const name of before?.keys() ?? []) if (!after.has(name)) whole.delete(name);
  for (const [name, value] of after) if (before?.get(name) !== value) whole.set(name, value);
  return whole;
}

export function CreateDatabase({ catalog, onClose, onDone }) {
  const [name, setName] = useState("");
  const [comment, setComment] = useState("");
  const [place, setPlace] = useState("");
  const change = useChange();
  async function go() {
    const database = { name, catalogName: catalog, description: comment || undefined, locationUri: place || undefined, parameters: new Map() };
    await change("create_database", () => ({ database }), JSON.stringify([catalog, name, comment, place]));
    onDone();
    onClose();
    location.hash = link("d", keyOf(catalog, name.toLowerCase()));
  }
  return html`<${Doing} title=${t.createDatabaseTitle} go=${t.createGo} onGo=${go} onClose=${onClose} isReady=${name.trim()}>
    <${Field} title=${t.name} value=${name} onValue=${setName} required autofocus />
    <${Field} title=${t.comment} value=${comment} onValue=${setComment} />
    <${Field} title=${t.location} value=${place} onValue=${setPlace} hint=${t.locationHint} />
  </${Doing}>`;
}

export function EditDatabase({ database, onClose, onDone }) {
  const [comment, setComment] = useState(database.description ?? "");
  const [text, setText] = useState(parametersText(database.parameters));
  const change = useChange();
  async function go() {
    const parameters = parametersOf(text, database.parameters);
    const values = async () => {
      const now = await call("get_database", { name: database.name });
      const description = comment === (database.description ?? "") ? now.description : comment;
      return { dbname: database.name, db: { ...now, description, parameters: merged(now.parameters, database.parameters, parameters) } };
    };
    await change("alter_database", values, JSON.stringify([comment, text]));
    onDone();
    onClose();
  }
  return html`<${Doing} title=${t.editTitle(shownName(database.name))} go=${t.save} onGo=${go} onClose=${onClose}>
    <${Field} title=${t.comment} value=${comment} onValue=${setComment} autofocus />
    <${Field} title=${t.parameters} value=${text} onValue=${setText} rows="8" hint=${t.editText} />
  </${Doing}>`;
}

export function EditTable({ db, name, table, onClose, onDone }) {
  const [comment, setComment] = useState(table.parameters?.get("comment") ?? "");
  const [text, setText] = useState(parametersText(without(table.parameters, "comment")));
  const change = useChange();
  async function go() {
    const parameters = parametersOf(text, without(table.parameters, "comment"));
    if (comment) parameters.set("comment", comment);
    const values = async () => {
      const { eventId } = await call("get_current_notificationEventId");
      const now = await call("get_table", { dbname: db, tbl_name: name });
      const properties = new Map([["DO_NOT_UPDATE_STATS", "true"], ["hms.unchanged.since", String(eventId)]]);
      const new_tbl = { ...now, parameters: merged(now.parameters, table.parameters, parameters) };
      return { dbname: db, tbl_name: name, new_tbl, environment_context: { properties } };
    };
    await change("alter_table_with_environment_context", values, JSON.stringify([comment, text]));
    onDone();
    onClose();
  }
  return html`<${Doing} title=${t.editTitle(`${shownName(db)}.${name}`)} go=${t.save} onGo=${go} onClose=${onClose}>
    <${Field} title=${t.comment} value=${comment} onValue=${setComment} autofocus />
    <${Field} title=${t.parameters} value=${text} onValue=${setText} rows="10" hint=${t.editText} />
  </${Doing}>`;
}

function without(parameters, name) {
  const rest = new Map(parameters ?? []);
  rest.delete(name);
  return rest;
}

/** Dropping asks for the name, so that no second click does it by mistake. */
function Confirmed({ name, value, onValue }) {
  return html`<${Field} title=${t.dropType(name)} value=${value} onValue=${onValue} autocomplete="off" autofocus />`;
}

function isExternal(table) {
  return table.tableType === "EXTERNAL_TABLE" || (table.parameters?.get("EXTERNAL") ?? "").toUpperCase() === "TRUE";
}

function Goes({ lines, locations = [] }) {
  const shown = lines.filter(Boolean);
  return html`<p>${t.dropWhat}</p>
    <ul>
      ${shown.map((line) => html`<li>${line}</li>`)}
      ${locations.slice(0, LOCATIONS).map((each) => html`<li><code><${Long} text=${each} /></code></li>`)}
      ${locations.length > LOCATIONS && html`<li>… ${count(locations.length - LOCATIONS)}</li>`}
    </ul>`;
}

/** Says who uses what is about to be dropped: locks and leases on it and in it, or on some of its partitions. */
function InUse({ db, table, partitions }) {
  const locks = useCall("show_locks", { rqst: { dbname: db, tablename: table } });
  const leases = useCall("list_lease", { objs: [{ db_name: db, table_name: table }] });
  const names = partitions && new Set(partitions);
  const isIn = (name) => !names || !name || names.has(name);
  const lines = [
    ...(locks.value?.locks ?? []).filter(({ partname }) => isIn(partname)).map((lock) => t.locked(lock.user, LOCKS[lock.state] ?? "", lock.lockid, lockText(lock))),
    ...(leases.value ?? []).filter(({ partition_name }) => isIn(partition_name)).map((lease) => t.leased(lease.user, lockText({ dbname: lease.db_name, tablename: lease.table_name, partname: lease.partition_name }), time(lease.end_utc * 1000))),
  ];
  if (!lines.length) return "";
  return html`<div class="warning" role="alert">
    <p>${t.inUse}</p>
    <ul>${lines.slice(0, LOCATIONS).map((line) => html`<li>${line}</li>`)}${lines.length > LOCATIONS && html`<li>… ${count(lines.length - LOCATIONS)}</li>`}</ul>
  </div>`;
}

/** What a lock is on. */
export function lockText({ dbname, tablename, partname }) {
  return [shownName(dbname), tablename].filter(Boolean).join(".") + (partname ? ` / ${partname}` : "");
}

export function DropTable({ db, name, table, onClose }) {
  const [typed, setTyped] = useState("");
  const [isDeleting, setDeleting] = useState(!isExternal(table));
  const change = useChange();
  const isPartitioned = Boolean(table.partitionKeys?.length);
  const hasFiles = Boolean(table.sd?.location);
  const partitions = useCall("get_num_partitions_by_filter", { db_name: db, tbl_name: name, filter: "" });
  const size = numberIn(table.parameters, "totalSize");
  async function go() {
    const values = () => ({ dbname: db, name, deleteData: isDeleting });
    await change("drop_table_with_environment_context", values, String(isDeleting));
    onClose();
    location.hash = link("d", db);
  }
  return html`<${Doing} title=${t.dropTableTitle(`${shownName(db)}.${name}`)} go=${t.dropGo} onGo=${go} onClose=${onClose} isDangerous isReady=${typed === name} about=${isDeleting}>
    <${InUse} db=${db} table=${name} />
    <${Goes}
      lines=${[
        !hasFiles && t.dropView,
        isPartitioned && partitions.value !== undefined && t.partitionsOf(count(partitions.value)),
        hasFiles && (size !== undefined ? bytes(size) : t.dropUnknownSize),
        hasFiles && (isExternal(table) ? t.dropKeepsFiles : isDeleting ? t.dropFiles : t.dropLeavesFiles),
      ]}
      locations=${hasFiles ? [table.sd.location] : []}
    />
    ${hasFiles && !isExternal(table) && html`<label class="choice"><input type="checkbox" checked=${isDeleting} onChange=${() => setDeleting(!isDeleting)} /> ${t.dropData}</label>`}
    <${Confirmed} name=${name} value=${typed} onValue=${setTyped} />
  </${Doing}>`;
}

export function DropPartitions({ db, name, table, partitions, onClose, onDone }) {
  const change = useChange();
  const isDeleting = !isExternal(table);
  const sizes = partitions.map((each) => numberIn(each.parameters, "totalSize"));
  const known = sizes.filter((each) => each !== undefined);
  const names = partitions.map((each) => each.name);
  async function go() {
    const req = { dbName: db, tblName: name, parts: { names }, deleteData: isDeleting, ifExists: true, needResult: false };
    await change("drop_partitions_req", () => ({ req }), "drop");
    onClose();
    onDone();
  }
  return html`<${Doing} title=${t.dropPartitionsTitle(partitions.length)} go=${t.dropGo} onGo=${go} onClose=${onClose} isDangerous>
    <${InUse} db=${db} table=${name} partitions=${names} />
    <${Goes}
      lines=${[
        t.partitionsOf(count(partitions.length)),
        known.length ? bytes(known.reduce((one, other) => one + other, 0)) : t.dropUnknownSize,
        isDeleting ? t.dropFiles : t.dropKeepsFiles,
      ]}
      locations=${partitions.map((each) => each.sd?.location).filter(Boolean)}
    />
  </${Doing}>`;
}

export function DropDatabase({ database, onClose }) {
  const { name } = database;
  const shown = shownName(name);
  const [typed, setTyped] = useState("");
  const [isDeleting, setDeleting] = useState(true);
  const [isCascading, setCascading] = useState(false);
  const change = useChange();
  const counts = useCall("count_objects", { db_name: name, details: true });
  const found = useCall("search_names", { text: `${name}.`, max_names: LOOKED_AT, details: true });
  const [counted] = counts.value ?? [];
  const isFilled = counted && (counted.tables > 0 || counted.functions > 0);
  const sizes = (found.value ?? []).filter((each) => each.db_name === name && each.bytes !== undefined).map((each) => Number(each.bytes));
  async function go() {
    const values = { name, deleteData: isDeleting, cascade: isCascading };
    await change("drop_database", () => values, JSON.stringify(values));
    onClose();
    location.hash = "#/";
  }
  return html`<${Doing} title=${t.dropDatabaseTitle(shown)} go=${t.dropGo} onGo=${go} onClose=${onClose} isDangerous isReady=${typed === shown && (!isFilled || isCascading)} about=${`${isDeleting} ${isCascading}`}>
    <${InUse} db=${name} />
    <${Goes}
      lines=${[
        isFilled && t.contentsOf(counted),
        sizes.length > 0 && t.dropKnownSize(bytes(sizes.reduce((one, other) => one + other, 0))),
        isFilled && isCascading && isDeleting ? t.dropOwnedFiles : isDeleting ? t.dropDirectory : t.dropLeavesFiles,
      ]}
      locations=${[database.locationUri].filter(Boolean)}
    />
    ${isFilled && html`<label class="choice"><input type="checkbox" checked=${isCascading} onChange=${() => setCascading(!isCascading)} /> ${t.dropCascade(t.contentsOf(counted))}</label>`}
    <label class="choice"><input type="checkbox" checked=${isDeleting} onChange=${() => setDeleting(!isDeleting)} /> ${t.dropData}</label>
    <${Confirmed} name=${shown} value=${typed} onValue=${setTyped} />
  </${Doing}>`;
}

export function FreeLock({ lock, waiters, onClose, onDone }) {
  const change = useChange();
  async function go() {
    await change("force_release_lock", () => ({ lockid: lock.lockid, reason: "console" }), "free");
    onDone();
    onClose();
  }
  return html`<${Doing} title=${t.freeTitle(lock.lockid)} go=${t.freeGo} onGo=${go} onClose=${onClose} isDangerous>
    <p>${t.freeText(lock.user, lockText(lock))}</p>
    ${lock.txnid ? html`<p>${t.freeTxn(lock.txnid)}</p>` : ""}
    ${waiters ? html`<p>${t.freeWaiters(waiters)}</p>` : ""}
  </${Doing}>`;
}

export function AbortTxn({ txn, onClose, onDone }) {
  const change = useChange();
  async function go() {
    await change("abort_txns", () => ({ rqst: { txn_ids: [txn.id] } }), "abort");
    onDone();
    onClose();
  }
  return html`<${Doing} title=${t.abortTitle(txn.id)} go=${t.abortGo} onGo=${go} onClose=${onClose} isDangerous>
    <p>${t.abortText(txn.user)}</p>
  </${Doing}>`;
}

export function EndLease({ lease, what, onClose, onDone }) {
  const change = useChange();
  async function go() {
    const { db_name, table_name, partition_name } = lease;
    await change("force_drop_lease", () => ({ objs: [{ db_name, table_name, partition_name }] }), "end");
    onDone();
    onClose();
  }
  return html`<${Doing} title=${t.leaseTitle(lease.lease_id)} go=${t.leaseGo} onGo=${go} onClose=${onClose} isDangerous>
    <p>${t.leaseText(lease.user, what)}</p>
  </${Doing}>`;
}
