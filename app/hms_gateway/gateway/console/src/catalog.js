// The start page, a database, a function, what a search finds.

import { html, useState } from "./vendor/preact_htm.js";
import { Changes } from "./changes.js";
import { CreateDatabase, DropDatabase, EditDatabase } from "./changing.js";
import { CostPanels } from "./cost.js";
import { bytes, count, said, time } from "./format.js";
import { CHANGES_CALLS, lastChanges, useAsked, useCall } from "./live.js";
import { Answer, DEFAULT_CATALOG, Facts, keyOf, link, Location, Long, Panel, Parameters, Rows, shownName, tableLink } from "./parts.js";
import { t } from "./texts.js";
import { BlockingList } from "./waits.js";

const CHANGES = 15;
// A job makes many of one kind, which are one row.
const CHANGES_ASKED = 300;
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

export function StartPage({ query }) {
  const catalogs = useCall("get_catalogs", {});
  const catalog = query.get("catalog") ?? undefined;
  const databases = useCall("get_databases_req", { request: { catalogName: catalog } });
  const counts = useCall("count_objects", { db_name: "" });
  const changes = useAsked(() => lastChanges(CHANGES_ASKED), "changes", CHANGES_CALLS);
  const blocking = useCall("list_blocking_locks", { rqst: {} }, true);
  const [isCreating, setCreating] = useState(false);
  return html`<h1>${t.startTitle}</h1>
    <div class="grid">
      <div class="stack">
      <${Panel} title=${t.databases} number=${databases.value?.databases.length} aside=${html`<${CatalogChoice} names=${catalogs.value?.names} chosen=${catalog} /><button onClick=${() => setCreating(true)}>${t.createDatabase} …</button>`}>
        <${Answer} of=${databases}>${(found) => html`<${Databases} databases=${found.databases} counts=${counts.value} />`}</${Answer}>
      </${Panel}>
      <${Panel} title=${t.changes}>
        <${Answer} of=${changes}>${(events) => html`<${Changes} events=${events} most=${CHANGES} />`}</${Answer}>
      </${Panel}>
      </div>
      <div class="stack">
      <${Panel} title=${t.waitsShort} aside=${html`<a href="#/waits">${t.allWaits}</a>`}>
        <${Answer} of=${blocking}>${(locks) => html`<${BlockingList} locks=${locks} most=${5} />`}</${Answer}>
      </${Panel}>
      <${CostPanels} />
      </div>
    </div>
    ${isCreating && html`<${CreateDatabase} catalog=${catalog} onClose=${() => setCreating(false)} onDone=${databases.reload} />`}`;
}

/** Nothing where there is only one. */
function CatalogChoice({ names, chosen }) {
  if (!names || names.length < 2) return "";
  const choose = ({ target }) => (location.hash = target.value ? `#/?catalog=${encodeURIComponent(target.value)}` : "#/");
  return html`<label class="choice">${t.catalog}
    <select onChange=${choose}>
      ${names.map((name) => html`<option value=${name === DEFAULT_CATALOG ? "" : name} selected=${name === (chosen ?? DEFAULT_CATALOG)}>${name}</option>`)}
    </select>
  </label>`;
}

function Databases({ databases, counts }) {
  const known = new Map((counts ?? []).map((each) => [each.db_name, each]));
  const key = ({ catalogName, name }) => keyOf(catalogName, name);
  const objects = (each) => known.get(key(each))?.tables;
  return html`<${Rows}
    label=${t.databases}
    rows=${databases}
    none=${t.databasesNone}
    find=${({ name, description }) => `${name} ${description ?? ""}`}
    keyOf=${key}
    columns=${[
      [t.name, (each) => html`<a href=${link("d", key(each))}><bdi>${each.name}</bdi></a>`, "", ({ name }) => name],
      [t.tables, (each) => said(objects(each), count), "number", objects],
      [t.comment, ({ description }) => html`<${Long} text=${description} />`, "wide", ({ description }) => description],
      [t.owner, ({ ownerName }) => html`<bdi>${ownerName}</bdi>`, "", ({ ownerName }) => ownerName],
    ]}
  />`;
}

export function DatabasePage({ names: [name] }) {
  const database = useCall("get_database", { name });
  const [part, setPart] = useState("");
  const tables = useCall("search_names", { text: `${name}.${part}`, max_names: TABLES, details: true });
  const changes = useAsked(() => lastChanges(CHANGES_ASKED, { dbName: name }), name);
  const counts = useCall("count_objects", { db_name: name });
  const within = (tables.value ?? []).filter((each) => each.db_name === name);
  const [doing, setDoing] = useState("");
  const close = () => setDoing("");
  if (database.error?.name === "NoSuchObjectException") return html`<h1><bdi>${shownName(name)}</bdi></h1><p class="none">${t.notFound(shownName(name))}</p>`;
  return html`<p class="crumbs">${t.database}</p>
    <h1><bdi>${shownName(name)}</bdi></h1>
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
            [t.contents, counts.value?.length ? t.contentsOf(counts.value[0]) : ""],
          ]}
        />
        ${doing === "edit" && html`<${EditDatabase} database=${{ ...found, name }} onClose=${close} onDone=${database.reload} />`}
        ${doing === "drop" && html`<${DropDatabase} database=${{ ...found, name }} onClose=${close} />`}`}
    </${Answer}>
    <div class="stack">
      <${Panel} title=${t.tables} number=${within.length && within.length < TABLES ? within.length : undefined}>
        <p class="tools"><input type="search" aria-label=${t.tablesFilter} placeholder=${t.tablesFilter} value=${part} onInput=${(event) => setPart(event.target.value)} /></p>
        <${Answer} of=${tables}>
          ${() => html`<${Found} found=${within} most=${TABLES} none=${part ? t.searchNone(part) : t.tablesNone} isIn=${name} />`}
        </${Answer}>
      </${Panel}>
      <${Panel} title=${t.changes}>
        <${Answer} of=${changes}>${(events) => html`<${Changes} events=${events} most=${CHANGES} />`}</${Answer}>
      </${Panel}>
      <${Panel} title=${t.parameters}>
        <${Answer} of=${database}>${(found) => html`<${Parameters} of=${found.parameters} />`}</${Answer}>
      </${Panel}>
    </div>`;
}

function Found({ found, most, none, isIn }) {
  const sorted = found.length < most && isIn ? [...found].sort((one, other) => (one.name < other.name ? -1 : 1)) : found;
  const text = (each) => (isIn || !each.name ? (each.name ?? shownName(each.db_name)) : `${shownName(each.db_name)}.${each.name}`);
  return html`<${Rows}
      label=${isIn ? `${shownName(isIn)} ${t.tables}` : t.tables}
      rows=${sorted}
      none=${none}
      keyOf=${(each) => JSON.stringify([each.db_name, each.name, each.kind])}
      columns=${[
        [t.name, (each) => html`<a href=${nameLink(each)}><bdi>${text(each)}</bdi></a>`, "", text],
        [t.kind, (each) => kindText(each.kind), "", (each) => kindText(each.kind)],
        [t.owner, ({ owner }) => html`<bdi>${owner}</bdi>`, "", ({ owner }) => owner],
        [t.rowsCount, ({ rows }) => said(rows, count), "number", ({ rows }) => rows],
        [t.size, (each) => said(each.bytes, bytes), "number", (each) => each.bytes],
        [t.tabs.partitions, ({ partitions }) => (partitions ? count(partitions) : ""), "number", ({ partitions }) => partitions],
        [t.comment, ({ comment }) => html`<${Long} text=${comment} />`, "wide", ({ comment }) => comment],
      ]}
    />
    ${found.length >= most && html`<p class="soft">${t.searchMore(count(most))}</p>`}`;
}

export function SearchPage({ names: [text] }) {
  const found = useCall("search_names", { text, max_names: SEARCHED, details: true });
  return html`<h1>${t.search}</h1>
    <${Panel} title=${`“${text}”`} number=${found.value?.length}>
      <${Answer} of=${found}>${(names) => html`<${Found} found=${names} most=${SEARCHED} none=${t.searchNone(text)} />`}</${Answer}>
    </${Panel}>`;
}

export function FunctionPage({ names: [db, name] }) {
  const found = useCall("get_function", { dbName: db, funcName: name });
  if (found.error?.name === "NoSuchObjectException") return html`<h1><bdi>${shownName(db)}.${name}</bdi></h1><p class="none">${t.notFound(name)}</p>`;
  return html`<p class="crumbs"><a href=${link("d", db)}><bdi>${shownName(db)}</bdi></a> · ${t.function}</p>
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
