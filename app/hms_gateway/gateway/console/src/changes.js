// Changes of the catalog: who made which, and what was before and after it.

import { html, useState } from "./vendor/preact_htm.js";
import { count, span, time } from "./format.js";
import { messageOf, useAsked } from "./live.js";
import { Answer, Copy, Dialog, Facts, link, Long, partitionLink, Rows, shownName, tableLink } from "./parts.js";
import { t } from "./texts.js";
import { decodeStruct } from "./tjson.js";

const PARTITIONS = 200;
// What the metastore writes itself with every change.
const STAMPS = new Set(["transient_lastDdlTime", "last_modified_time", "last_modified_by"]);
const STRUCTS = { table: "Table", partition: "Partition", db: "Database", function: "Function" };

/** Changes one after the other of one kind, by one user, on one object: a job makes thousands. The newest first. */
function folded(events) {
  const runs = [];
  for (const event of events) {
    const last = runs.at(-1);
    const isSame = last && ["eventType", "dbName", "tableName", "user"].every((name) => last[name] === event[name]);
    if (isSame) last.number += 1;
    else runs.push({ ...event, number: 1 });
  }
  return runs;
}

function kindOf({ eventType }) {
  const words = eventType.replace(/_EVENT$/, "").replace("TBL_COL_STAT", "STATISTICS").replace("PART_COL_STAT", "PARTITION_STATISTICS");
  return words.replaceAll("_", " ").toLowerCase();
}

function Who({ event }) {
  const { user, real_user, address, method, request_id } = event;
  if (!user) return "";
  const details = [address, method, request_id].filter(Boolean).join(" · ");
  return html`<bdi title=${details}>${user}</bdi>${real_user ? html` <span class="soft">${t.through(real_user)}</span>` : ""}`;
}

/** The changes, at most so many rows. Who made them is known to administrators. */
export function Changes({ events, most = events.length, isOfOne }) {
  const [opened, setOpened] = useState(null);
  const object = ({ dbName, tableName }) => {
    if (!dbName) return html`<span class="soft">${t.ofEverything}</span>`;
    const address = tableName ? tableLink(dbName, tableName) : link("d", dbName);
    return html`<a href=${address}><bdi>${[shownName(dbName), tableName].filter(Boolean).join(".")}</bdi></a>`;
  };
  const at = ({ eventTime }) => time(eventTime * 1000);
  const columns = [
    [t.when, (event) => html`<time datetime=${new Date(event.eventTime * 1000).toISOString()} title=${at(event)}>${span(Date.now() - event.eventTime * 1000)}</time>`, "number", at],
    [t.event, (event) => html`<button class="quiet inline" title=${t.message} onClick=${() => setOpened(event)}>${kindOf(event)}</button>${event.number > 1 ? html` <span class="count">× ${count(event.number)}</span>` : ""}`, "", kindOf],
  ];
  if (!isOfOne) columns.push([t.object, object, "wide", ({ dbName, tableName }) => [shownName(dbName), tableName].filter(Boolean).join(".")]);
  if (events.some(({ user }) => user)) columns.push([t.by, (event) => html`<${Who} event=${event} />`, "", ({ user }) => user]);
  return html`<${Rows} label=${t.changes} rows=${folded(events).slice(0, most)} none=${t.changesNone} keyOf=${(event) => event.eventId} columns=${columns} />
    ${opened && html`<${Change} event=${opened} onClose=${() => setOpened(null)} />`}`;
}

/** What the log says about one change. */
function Change({ event, onClose }) {
  const asked = useAsked(() => messageOf(event), `message ${event.eventId}`);
  return html`<${Dialog} title=${t.changeTitle(kindOf(event), [shownName(event.dbName), event.tableName].filter(Boolean).join("."))} onClose=${onClose} isWide>
    <${Facts}
      pairs=${[
        [t.when, time(event.eventTime * 1000)],
        [t.by, event.user && html`<${Who} event=${event} />`],
        [t.method, event.method],
        [t.from, event.address],
        [t.requestId, event.request_id && html`<code>${event.request_id}</code>`],
        [t.eventId, String(event.eventId)],
        [t.alike, event.number > 1 ? t.alikeText(count(event.number - 1)) : ""],
      ]}
    />
    <${Answer} of=${asked}>${(text) => (text === null ? html`<p class="none">${t.messageGone}</p>` : html`<${Told} text=${text} eventType=${event.eventType} />`)}</${Answer}>
    <p class="buttons"><button autofocus onClick=${onClose}>${t.close}</button></p>
  </${Dialog}>`;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

function Told({ text, eventType }) {
  const told = parsed(text);
  const [isOpen, setOpen] = useState(false);
  return html`<${Difference} told=${told} eventType=${eventType} />
    <${TouchedPartitions} told=${told} />
    <p>
      <button class="quiet inline" aria-expanded=${isOpen ? "true" : "false"} onClick=${() => setOpen(!isOpen)}>${t.message}</button>
      <${Copy} text=${text} what=${t.message} />
    </p>
    ${isOpen && html`<div class="scroll code" role="group" aria-label=${t.message} tabindex="0"><pre><code><${Long} text=${JSON.stringify(told, null, 2)} /></code></pre></div>`}`;
}

/** The object before and after, side by side: only what differs, or all of a new or dropped one. */
function Difference({ told, eventType }) {
  const found = stateOf(told, eventType);
  if (!found) return "";
  const { before, after } = found;
  const titles = before && after ? [t.before, t.after] : [after ? t.value : t.before];
  const rows = [...new Set([...(before?.keys() ?? []), ...(after?.keys() ?? [])])]
    .filter((name) => before?.get(name) !== after?.get(name))
    .map((name) => ({ name, values: [before, after].filter(Boolean).map((each) => each.get(name)) }));
  const shown = rows.some(({ name }) => name.startsWith(t.columnOf(""))) ? rows.filter(({ name }) => name !== t.columnOrder) : rows;
  return html`<${Rows}
    label=${t.changed}
    rows=${shown}
    none=${t.changedNone}
    keyOf=${({ name }) => name}
    columns=${[
      [t.changed, ({ name }) => html`<bdi class="name">${name}</bdi>`, "", ({ name }) => name],
      ...titles.map((title, index) => [
        title,
        ({ values }) => (values[index] === undefined ? t.none : html`<span class=${titles.length > 1 ? (index ? "added" : "taken") : ""}><${Long} text=${values[index]} /></span>`),
        "wide",
        ({ values }) => values[index],
      ]),
    ]}
  />`;
}

/** What a message says of the object before and after, each a map of facts; null where it says nothing of it. */
function stateOf(told, eventType) {
  const found = {};
  for (const [key, text] of Object.entries(told)) {
    const [, kind, when] = /^(table|partition|db|function)(?:Obj)?(Before|After)?Json$/.exec(key) ?? [];
    // Beside a partition, the table that it is in is no part of what changed.
    if (!kind || typeof text !== "string" || (kind === "table" && (told.partitions || told.keyValues || told.colStatsJson))) continue;
    const side = when ? when.toLowerCase() : eventType.startsWith("DROP") ? "before" : "after";
    try {
      found[side] = factsOf(decodeStruct(STRUCTS[kind], text));
    } catch {
      return null;
    }
  }
  return found.before || found.after ? found : null;
}

function factsOf(struct) {
  const facts = new Map();
  const stamps = new Map();
  const add = (name, value) => value !== undefined && value !== null && value !== "" && facts.set(name, String(value));
  const columns = (fields, title) => fields?.forEach(({ name, type, comment }) => add(title(name), [type, comment].filter(Boolean).join(" · ")));
  const { sd = {} } = struct;
  add(t.name, [struct.dbName, struct.tableName ?? struct.functionName ?? struct.name].filter(Boolean).join("."));
  add(t.values, struct.values?.join(", "));
  add(t.comment, struct.description);
  add(t.owner, struct.owner ?? struct.ownerName);
  add(t.tableType, struct.tableType);
  add(t.location, sd.location ?? struct.locationUri);
  columns(sd.cols, t.columnOf);
  columns(struct.partitionKeys, t.keyOf);
  add(t.columnOrder, sd.cols?.map(({ name }) => name).join(", "));
  add(t.query, struct.viewOriginalText);
  add(t.inputFormat, sd.inputFormat);
  add(t.outputFormat, sd.outputFormat);
  add(t.serde, sd.serdeInfo?.serializationLib);
  add(t.buckets, sd.numBuckets > 0 ? `${sd.numBuckets}: ${sd.bucketCols ?? ""}` : "");
  add(t.sortedBy, sd.sortCols?.map(({ col, order }) => `${col}${order ? "" : " DESC"}`).join(", "));
  for (const [name, value] of sd.serdeInfo?.parameters ?? []) facts.set(t.serdeParameterOf(name), value);
  for (const [name, value] of struct.parameters ?? []) (STAMPS.has(name) ? stamps : facts).set(t.parameterOf(name), value);
  add(t.className, struct.className);
  add(t.resources, struct.resourceUris?.map(({ uri }) => uri).join(", "));
  return new Map([...facts, ...stamps]);
}

/** The partitions that a change was about. */
function TouchedPartitions({ told }) {
  const db = told.db ?? told.database;
  const names = told.partName ? [told.partName] : (told.partitions ?? (told.keyValues ? [told.keyValues] : [])).map(partitionName);
  if (!names.length) return "";
  return html`<h3>${t.tabs.partitions} <span class="count">${count(names.length)}</span></h3>
    <ul class="plain">
      ${names.slice(0, PARTITIONS).map((name) => html`<li><a href=${partitionLink(db, told.table, name)}><bdi>${name}</bdi></a></li>`)}
      ${names.length > PARTITIONS && html`<li>… ${count(names.length - PARTITIONS)}</li>`}
    </ul>`;
}

const ESCAPED = /[\x01-\x1f\x7f"#%'*/:=?\\{[\]^]/g;

function partitionName(values) {
  const escaped = (text) => text.replace(ESCAPED, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);
  return Object.entries(values)
    .map((pair) => pair.map(escaped).join("="))
    .join("/");
}
