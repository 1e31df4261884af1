// The start page, a database, a function, what a search finds.

import { html, useState } from "./vendor/preact_htm.js";
import { CreateDatabase, DropDatabase, EditDatabase } from "./changing.js";
import { CostPanels } from "./cost.js";
import { count, span, time } from "./format.js";
import { CHANGES_CALLS, lastChanges, messageOf, useAsked, useCall } from "./live.js";
import { Answer, Copy, Dialog, Facts, link, Location, Long, Panel, Parameters, Rows, tableLink } from "./parts.js";
import { t } from "./texts.js";
import { BlockingList } from "./waits.js";

const CHANGES = 15;
const TABLES = 1000;
const SEARCHED = 500;

const KINDS = {
  DATABASE: t.database,
  FUNCTION: t.function,
  MANAGED_TABLE: t.table,
  EXTERNAL_TABLE: t.external,
  VIRTUAL_VIEW: t.view,
  MATERIALIZED_VIEW: t.materializedView,
};

export function kindText(kind) {
  return KINDS[kind] ?? kind;
}

export function nameLink({ db_name, name, kind }) {
  if (!name) return link("d", db_name);
  return kind === "FUNCTION" ? link("f", db_name, name) : tableLink(db_name, name);
}

export function StartPage() {
  const databases = useCall("get_all_databases", {});
  const changes = useAsked(() => lastChanges(CHANGES), "changes", CHANGES_CALLS);
  const blocking = useCall("list_blocking_locks", { rqst: {} }, true);
  const [isCreating, setCreating] = useState(false);
  return html`<h1>${t.startTitle}</h1>
    <div class="grid">
      <div class="stack">
      <${Panel} title=${t.databases} aside=${html`<button onClick=${() => setCreating(true)}>${t.createDatabase} …</button>`}>
        <${Answer} of=${databases}>${(names) => html`<${Databases} names=${names} />`}</${Answer}>
      </${Panel}>
      <${Panel} title=${t.changes}>
        <${Answer} of=${changes}>${(events) => html`<${Changes} events=${events} />`}</${Answer}>
      </${Panel}>
      </div>
      <div class="stack">
      <${Panel} title=${t.waitsShort} aside=${html`<a href="#/waits">${t.allWaits}</a>`}>
        <${Answer} of=${blocking}>${(locks) => html`<${BlockingList} locks=${locks} most=${5} />`}</${Answer}>
      </${Panel}>
      <${CostPanels} />
      </div>
    </div>
    ${isCreating && html`<${CreateDatabase} onClose=${() => setCreating(false)} onDone=${databases.reload} />`}`;
}

function Databases({ names }) {
  return html`<${Rows}
    label=${t.databases}
    rows=${names}
    none=${t.databasesNone}
    find=${(name) => name}
    keyOf=${(name) => name}
    columns=${[[t.name, (name) => html`<a href=${link("d", name)}><bdi>${name}</bdi></a>`]]}
  />`;
}

/** Events of the log, the newest first. */
export function Changes({ events, isOfOne }) {
  const [opened, setOpened] = useState(null);
  const object = ({ dbName, tableName }) => {
    if (!dbName) return t.none;
    const address = tableName ? tableLink(dbName, tableName) : link("d", dbName);
    return html`<a href=${address}><bdi>${tableName ? `${dbName}.${tableName}` : dbName}</bdi></a>`;
  };
  const columns = [
    [t.when, ({ eventTime }) => html`<time datetime=${new Date(eventTime * 1000).toISOString()} title=${time(eventTime * 1000)}>${span(Date.now() - eventTime * 1000)}</time>`, "number"],
    [t.event, (event) => html`<button class="quiet inline" title=${t.message} onClick=${() => setOpened(event)}>${kindOf(event)}</button>`],
  ];
  if (!isOfOne) columns.push([t.object, object, "wide"]);
  return html`<${Rows} label=${t.changes} rows=${events} none=${t.changesNone} keyOf=${(event) => event.eventId} columns=${columns} />
    ${opened && html`<${Message} event=${opened} onClose=${() => setOpened(null)} />`}`;
}

function kindOf({ eventType }) {
  return eventType.replaceAll("_", " ").toLowerCase();
}

/** What the log says about one change. */
function Message({ event, onClose }) {
  const asked = useAsked(() => messageOf(event), `message ${event.eventId}`);
  return html`<${Dialog} title=${t.messageTitle(kindOf(event), event.eventId)} onClose=${onClose}>
    <${Answer} of=${asked}>
      ${(text) => text === null ? html`<p class="none">${t.messageGone}</p>` : html`<div class="scroll" role="group" aria-label=${t.message} tabindex="0"><pre><code><${Long} text=${indented(text)} /></code></pre></div>`}
    </${Answer}>
    <p class="buttons">${asked.value && html`<${Copy} text=${asked.value} what=${t.message} />`} <button onClick=${onClose}>${t.close}</button></p>
  </${Dialog}>`;
}

function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

export function DatabasePage({ names: [name] }) {
  const database = useCall("get_database", { name });
  const [part, setPart] = useState("");
  const tables = useCall("search_names", { text: `${name}.${part}`, max_names: TABLES });
  const changes = useAsked(() => lastChanges(CHANGES, { dbName: name }), name);
  const [doing, setDoing] = useState("");
  const close = () => setDoing("");
  if (database.error?.name === "NoSuchObjectException") return html`<h1><bdi>${name}</bdi></h1><p class="none">${t.notFound(name)}</p>`;
  return html`<p class="crumbs">${t.database}</p>
    <h1><bdi>${name}</bdi></h1>
    <${Answer} of=${database}>
      ${(found) => html`<div class="actions">
          <button onClick=${() => setDoing("edit")}>${t.edit}</button>
          <button onClick=${() => setDoing("drop")}>${t.drop}</button>
        </div>
        ${found.description && html`<p class="lead"><bdi>${found.description}</bdi></p>`}
        <${Facts}
          pairs=${[
            [t.location, html`<${Location} of=${found.locationUri} />`],
            [t.owner, found.ownerName],
            [t.created, found.createTime ? time(found.createTime * 1000) : ""],
          ]}
        />
        ${doing === "edit" && html`<${EditDatabase} database=${found} onClose=${close} onDone=${database.reload} />`}
        ${doing === "drop" && html`<${DropDatabase} database=${found} onClose=${close} />`}`}
    </${Answer}>
    <div class="grid">
      <${Panel} title=${t.tables}>
        <p class="tools"><input type="search" aria-label=${t.tablesFilter} placeholder=${t.tablesFilter} value=${part} onInput=${(event) => setPart(event.target.value)} /></p>
        <${Answer} of=${tables}>
          ${(found) => html`<${Found} found=${found.filter((each) => each.db_name === name)} most=${TABLES} none=${t.tablesNone} isIn=${name} />`}
        </${Answer}>
      </${Panel}>
      <${Panel} title=${t.changes}>
        <${Answer} of=${changes}>${(events) => html`<${Changes} events=${events} />`}</${Answer}>
      </${Panel}>
      <${Panel} title=${t.parameters}>
        <${Answer} of=${database}>${(found) => html`<${Parameters} of=${found.parameters} />`}</${Answer}>
      </${Panel}>
    </div>`;
}

function Found({ found, most, none, isIn }) {
  const sorted = found.length < most && isIn ? [...found].sort((one, other) => (one.name < other.name ? -1 : 1)) : found;
  return html`<${Rows}
      label=${t.tables}
      rows=${sorted}
      none=${none}
      keyOf=${(each) => JSON.stringify([each.db_name, each.name, each.kind])}
      columns=${[
        [t.name, (each) => html`<a href=${nameLink(each)}><bdi>${isIn || !each.name ? (each.name ?? each.db_name) : `${each.db_name}.${each.name}`}</bdi></a>`, "wide"],
        [t.kind, (each) => kindText(each.kind)],
      ]}
    />
    ${found.length >= most && html`<p class="soft">${t.searchMore(count(most))}</p>`}`;
}

export function SearchPage({ names: [text] }) {
  const found = useCall("search_names", { text, max_names: SEARCHED });
  return html`<h1>${t.search}</h1>
    <${Panel} title=${`“${text}”`}>
      <${Answer} of=${found}>${(names) => html`<${Found} found=${names} most=${SEARCHED} none=${t.searchNone(text)} />`}</${Answer}>
    </${Panel}>`;
}

export function FunctionPage({ names: [db, name] }) {
  const found = useCall("get_function", { dbName: db, funcName: name });
  if (found.error?.name === "NoSuchObjectException") return html`<h1><bdi>${db}.${name}</bdi></h1><p class="none">${t.notFound(name)}</p>`;
  return html`<p class="crumbs"><a href=${link("d", db)}><bdi>${db}</bdi></a> · ${t.function}</p>
    <h1><bdi>${name}</bdi></h1>
    <${Answer} of=${found}>
      ${(one) => html`<${Facts}
        pairs=${[
          [t.className, html`<code>${one.className}</code>`],
          [t.owner, one.ownerName],
          [t.created, one.createTime ? time(one.createTime * 1000) : ""],
          [t.resources, one.resourceUris?.length ? one.resourceUris.map(({ uri }) => html`<p><${Location} of=${uri} /></p>`) : ""],
        ]}
      />`}
    </${Answer}>`;
}
