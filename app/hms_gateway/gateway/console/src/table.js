// A table, view or Iceberg table: everything the metastore knows about it, a tab for each part.

import { html, useState } from "./vendor/preact_htm.js";
import { Changes } from "./changes.js";
import { DropTable, EditTable } from "./changing.js";
import { bytes, count, formatOf, numberIn, said, time } from "./format.js";
import { Iceberg } from "./iceberg.js";
import { CHANGES_CALLS, lastChanges, useAsked, useCall } from "./live.js";
import { Answer, Code, Copy, Facts, link, Location, Long, Panel, Parameters, Rows, shownName, tableLink } from "./parts.js";
import { Partitions } from "./partitions.js";
import { call } from "./session.js";
import { ColumnStatistics } from "./statistics.js";
import { t } from "./texts.js";
import { LeaseRows, LockRows } from "./waits.js";

const CHANGES = 100;
const COLUMNS_ASKED = 2000;
// The most that the gateway names in one call.
const ADDED_UP = 10000;
const KINDS = { VIRTUAL_VIEW: t.view, MATERIALIZED_VIEW: t.materializedView, EXTERNAL_TABLE: t.external };

export function isIceberg(table) {
  return (table.parameters?.get("table_type") ?? "").toUpperCase() === "ICEBERG";
}

export function TablePage({ names: [db, name, tab], query }) {
  const asked = useCall("get_table", { dbname: db, tbl_name: name });
  const [doing, setDoing] = useState("");
  const close = () => setDoing("");
  const crumbs = html`<a href=${link("d", db)}><bdi>${shownName(db)}</bdi></a>`;
  if (asked.error?.name === "NoSuchObjectException") {
    return html`<p class="crumbs">${crumbs}</p><h1><bdi>${name}</bdi></h1><p class="none">${t.notFound(`${shownName(db)}.${name}`)}</p>`;
  }
  const table = asked.value;
  if (!table) return html`<p class="crumbs">${crumbs}</p><h1><bdi>${name}</bdi></h1><${Answer} of=${asked} />`;
  const tabs = tabsOf(table);
  const current = Object.hasOwn(tabs, tab ?? "") ? tab : Object.keys(tabs)[0];
  const Tab = tabs[current];
  const parameters = table.parameters ?? new Map();
  return html`<p class="crumbs">${crumbs} · ${isIceberg(table) ? t.iceberg : (KINDS[table.tableType] ?? t.table)}</p>
    <h1><bdi>${name}</bdi> <${Copy} text=${`${shownName(db)}.${name}`} what=${t.name} /></h1>
    <div class="actions">
      <button onClick=${() => setDoing("edit")}>${t.edit}</button>
      <button onClick=${() => setDoing("drop")}>${t.drop}</button>
    </div>
    ${parameters.get("comment") && html`<p class="lead"><${Long} text=${parameters.get("comment")} /></p>`}
    <${Facts}
      pairs=${[
        [t.owner, table.owner],
        [t.format, isView(table) || isIceberg(table) ? "" : formatOf(table.sd)],
        [t.created, table.createTime ? time(table.createTime * 1000) : ""],
        [t.rowsCount, said(numberIn(parameters, "numRows"), count)],
        [t.size, said(numberIn(parameters, "totalSize"), bytes)],
        [t.files, said(numberIn(parameters, "numFiles"), count)],
        [t.location, table.sd?.location ? html`<${Location} of=${table.sd.location} />` : ""],
      ]}
    />
    <nav class="tabs" aria-label=${name}>
      ${Object.keys(tabs).map(
        (each) => html`<a href=${tableLink(db, name, each)} aria-current=${each === current ? "page" : undefined}>${t.tabs[each]}</a>`,
      )}
    </nav>
    <${Tab} key=${current} table=${table} db=${db} name=${name} query=${query} />
    ${doing === "edit" && html`<${EditTable} db=${db} name=${name} table=${table} onClose=${close} onDone=${asked.reload} />`}
    ${doing === "drop" && html`<${DropTable} db=${db} name=${name} table=${table} onClose=${close} />`}`;
}

function tabsOf(table) {
  const tabs = isView(table) ? { query: Query, columns: Columns } : { columns: Columns };
  if (table.partitionKeys?.length) tabs.partitions = Partitions;
  if (isIceberg(table)) tabs.iceberg = Iceberg;
  return { ...tabs, statistics: Statistics, storage: Storage, access: Access, activity: Activity, create: CreateText };
}

function isView(table) {
  return table.tableType === "VIRTUAL_VIEW" || table.tableType === "MATERIALIZED_VIEW";
}

function Query({ table }) {
  const text = table.viewOriginalText || table.viewExpandedText;
  return html`<${Panel} title=${t.query} aside=${text && html`<${Copy} text=${text} what=${t.query} />`}>
    ${text ? html`<${Code} text=${text} title=${t.query} />` : html`<p class="none">${t.queryNone}</p>`}
  </${Panel}>`;
}

function Columns({ table, db, name: tableName }) {
  const keys = table.partitionKeys ?? [];
  const rows = [...(table.sd?.cols ?? []), ...keys.map((key) => ({ ...key, isKey: true }))];
  return html`<${Panel} title=${t.columns} number=${rows.length}>
    <${Rows}
      label=${t.columns}
      file=${`${shownName(db)}.${tableName}-columns`}
      rows=${rows}
      none=${t.columnsNone}
      find=${({ name, type, comment }) => `${name} ${type} ${comment ?? ""}`}
      columns=${[
        [t.name, ({ name, isKey }) => html`<bdi class="name">${name}</bdi>${isKey ? html` <span class="tag">${t.key}</span>` : ""}`, "", ({ name }) => name],
        [t.type, ({ type }) => html`<code><${Long} text=${type} /></code>`, "", ({ type }) => type],
        [t.comment, ({ comment }) => html`<${Long} text=${comment} />`, "wide", ({ comment }) => comment],
      ]}
    />
  </${Panel}>`;
}

function Statistics({ table, db, name }) {
  const columns = (table.sd?.cols ?? []).slice(0, COLUMNS_ASKED).map((column) => column.name);
  const asked = useAsked(
    () => call("get_table_statistics_req", { request: { dbName: db, tblName: name, colNames: columns } }),
    `${db} ${name}`,
  );
  const rows = numberIn(table.parameters, "numRows") ?? 0;
  const [isAdded, setAdded] = useState(false);
  if (isAdded) return html`<${AddedUp} db=${db} name=${name} columns=${columns} rows=${rows} />`;
  return html`<${Panel} title=${t.tabs.statistics}>
    ${table.partitionKeys?.length ? html`<p class="soft">${t.statisticsOfPartitions} <button onClick=${() => setAdded(true)}>${t.addUp}</button></p>` : ""}
    <${Answer} of=${asked}>${({ tableStats }) => html`<${ColumnStatistics} found=${tableStats ?? []} rows=${rows} />`}</${Answer}>
  </${Panel}>`;
}

/** Statistics of the partitions, added up by the gateway over as many as one call may name. */
function AddedUp({ db, name, columns, rows }) {
  const asked = useAsked(async () => {
    const names = await call("list_partition_names", { db_name: db, tbl_name: name, filter: "", after: "", descending: true, max_names: ADDED_UP });
    if (!names.length) return { names, colStats: [], partsFound: 0 };
    const found = await call("get_aggr_stats_for", { request: { dbName: db, tblName: name, colNames: columns, partNames: names } });
    return { names, ...found };
  }, `${db} ${name}`);
  return html`<${Panel} title=${t.tabs.statistics}>
    <${Answer} of=${asked}>
      ${({ names, colStats, partsFound }) => html`<p class="soft" role="status">${t.addedUp(count(Number(partsFound)), count(names.length))} ${names.length === ADDED_UP ? t.addedUpLast(count(ADDED_UP)) : ""}</p>
        <${ColumnStatistics} found=${colStats} rows=${rows} isMerged />`}
    </${Answer}>
  </${Panel}>`;
}

function Storage({ table }) {
  const sd = table.sd ?? {};
  const sorted = (sd.sortCols ?? []).map(({ col, order }) => `${col}${order ? "" : " DESC"}`).join(", ");
  return html`<div class="grid">
    <${Panel} title=${t.tabs.storage}>
      <${Facts}
        pairs=${[
          [t.tableType, table.tableType],
          [t.location, html`<${Location} of=${sd.location} />`],
          [t.inputFormat, sd.inputFormat && html`<code><${Long} text=${sd.inputFormat} /></code>`],
          [t.outputFormat, sd.outputFormat && html`<code><${Long} text=${sd.outputFormat} /></code>`],
          [t.serde, sd.serdeInfo?.serializationLib && html`<code><${Long} text=${sd.serdeInfo.serializationLib} /></code>`],
          [t.buckets, sd.numBuckets > 0 ? `${count(sd.numBuckets)}: ${(sd.bucketCols ?? []).join(", ")}` : ""],
          [t.sortedBy, sorted],
        ]}
      />
    </${Panel}>
    <${Panel} title=${t.parameters} number=${table.parameters?.size}><${Parameters} of=${table.parameters} /></${Panel}>
    <${Panel} title=${t.serdeParameters}><${Parameters} of=${sd.serdeInfo?.parameters} label=${t.serdeParameters} /></${Panel}>
  </div>`;
}

const TABLE_OBJECT = 3;

function Access({ db, name }) {
  const privileges = useCall("list_privileges", { hiveObject: { objectType: TABLE_OBJECT, dbName: db, objectName: name } });
  const constraints = useCall("get_all_table_constraints", { request: { dbName: db, tblName: name, catName: "hive" } });
  return html`<div class="grid">
    <${Panel} title=${t.privileges} number=${privileges.value?.length}>
      <${Answer} of=${privileges}>
        ${(found) => html`<${Rows}
          label=${t.privileges}
          rows=${found}
          none=${t.privilegesNone}
          columns=${[
            [t.principal, ({ principalName, principalType }) => html`<bdi>${principalName}</bdi> <span class="soft">${["", "user", "role", "group"][principalType]}</span>`, "", ({ principalName }) => principalName],
            [t.privilege, ({ grantInfo }) => grantInfo?.privilege, "", ({ grantInfo }) => grantInfo?.privilege],
            [t.grantor, ({ grantInfo }) => grantInfo?.grantor, "", ({ grantInfo }) => grantInfo?.grantor],
            [t.grantOption, ({ grantInfo }) => (grantInfo?.grantOption ? "✓" : "")],
          ]}
        />`}
      </${Answer}>
    </${Panel}>
    <${Panel} title=${t.constraints}>
      <${Answer} of=${constraints}>
        ${({ allTableConstraints }) => html`<${Rows}
          label=${t.constraints}
          rows=${constraintRows(allTableConstraints)}
          none=${t.constraintsNone}
          columns=${[
            [t.name, ({ name }) => html`<bdi>${name}</bdi>`],
            [t.kind, ({ kind }) => kind],
            [t.columns, ({ columns }) => columns.join(", ")],
            [t.references, ({ references }) => references ?? "", "wide"],
          ]}
        />`}
      </${Answer}>
    </${Panel}>
  </div>`;
}

function constraintRows(all) {
  const rows = new Map();
  const add = (kind, name, column, references) => {
    const key = `${kind} ${name}`;
    if (!rows.has(key)) rows.set(key, { kind, name, columns: [], references });
    rows.get(key).columns.push(column);
  };
  for (const one of all?.primaryKeys ?? []) add("PRIMARY KEY", one.pk_name, one.column_name);
  for (const one of all?.foreignKeys ?? []) add("FOREIGN KEY", one.fk_name, one.fkcolumn_name, `${one.pktable_db}.${one.pktable_name}`);
  for (const one of all?.uniqueConstraints ?? []) add("UNIQUE", one.uk_name, one.column_name);
  for (const one of all?.notNullConstraints ?? []) add("NOT NULL", one.nn_name, one.column_name);
  for (const one of all?.defaultConstraints ?? []) add("DEFAULT", one.dc_name, one.column_name, one.default_value);
  for (const one of all?.checkConstraints ?? []) add("CHECK", one.dc_name, one.column_name, one.check_expression);
  return [...rows.values()];
}

function Activity({ db, name }) {
  const changes = useAsked(() => lastChanges(CHANGES, { dbName: db, tableName: name }), `${db} ${name}`, CHANGES_CALLS);
  const locks = useCall("show_locks", { rqst: { dbname: db, tablename: name } }, true);
  const blocking = useCall("list_blocking_locks", { rqst: { dbname: db } }, true);
  const leases = useCall("list_lease", { objs: [{ db_name: db, table_name: name }] }, true);
  return html`<div class="stack">
    <${Panel} title=${t.changes}><${Answer} of=${changes}>${(events) => html`<${Changes} events=${events} isOfOne />`}</${Answer}></${Panel}>
    <${Panel} title=${t.locksHere} number=${locks.value?.locks?.length}><${Answer} of=${locks}>${(found) => html`<${LockRows} locks=${found.locks ?? []} blocking=${blocking.value} onDone=${locks.reload} />`}</${Answer}></${Panel}>
    <${Panel} title=${t.leasesHere} number=${leases.value?.length}><${Answer} of=${leases}>${(found) => html`<${LeaseRows} leases=${found} onDone=${leases.reload} />`}</${Answer}></${Panel}>
  </div>`;
}

function CreateText({ db, name }) {
  const asked = useCall("get_create_text", { db_name: db, tbl_name: name });
  return html`<${Panel} title=${t.createTitle} aside=${asked.value && html`<${Copy} text=${asked.value} what=${t.createTitle} />`}>
    <${Answer} of=${asked}>${(text) => html`<${Code} text=${text} title=${t.createTitle} />`}</${Answer}>
  </${Panel}>`;
}
